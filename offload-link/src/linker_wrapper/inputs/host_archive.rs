//! Writes an archive that the host linker can read, for one with bundles that have host parts.
//!
//! | member                            | in the archive that replaces it               |
//! |-----------------------------------|-----------------------------------------------|
//! | a bundle with a host part         | the object of that part, under the same name  |
//! | a bundle without one, offload binaries | none: host linkers cannot read them and fail with `--whole-archive` |
//! | any other                         | itself                                        |
//!
//! The new archive has a symbol index, so its members are loaded on demand, like those of the original.

use crate::linker_wrapper::line::arguments::Arguments;
use crate::linker_wrapper::workplace::Workplace;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use offload_formats::container::archive::{Archive, Index, MemberPlan, layout, plain_name};
use offload_formats::container::definitions;
use offload_formats::escape::terminal;
use offload_formats::format::magic::Magic;
use offload_formats::format::pieces::Piece;

use crate::linker_wrapper::actions::Actions;
use crate::linker_wrapper::error::{LinkError, Problem};
use crate::linker_wrapper::inputs::file::InputFile;
use crate::llvm_tool::{Output, Sources, outputs};

/// Facts about the link that the archive depends on.
pub(crate) struct Maker<'a> {
    pub arguments: &'a Arguments,
    pub workplace: &'a Workplace,
    pub actions: Actions,
}

/// Writes the archive and returns its path.
pub(crate) fn write(file: &InputFile, maker: &Maker<'_>) -> Result<PathBuf, LinkError> {
    let stem = file.path.file_stem().unwrap_or_default().to_string_lossy();
    let path = maker
        .workplace
        .file(&format!("{stem}-{}.host.a", file.item));
    if maker.actions.are_dry() {
        let shown = path.display();
        maker
            .actions
            .note(format_args!("archive {shown} of host parts"));
        return Ok(path);
    }
    let written = copy(file, &path);
    written.map_err(|problem| LinkError::input(terminal(&*file.path), problem))?;
    Ok(path)
}

fn copy(file: &InputFile, path: &Path) -> Result<(), Problem> {
    let mut sources = Sources::default();
    let places = places(file, &mut sources)?;
    let mut members = Vec::new();
    for (name, content) in &places {
        let data = sources.file(content.number).data();
        let symbols = definitions(data, content.range.clone());
        // Like with `ar`, members that cannot be read have no symbols in the index.
        members.push((name, [content.piece()], symbols.unwrap_or_default()));
    }
    let plans: Vec<MemberPlan<'_>> = members
        .iter()
        .map(|(name, content, symbols)| MemberPlan {
            name,
            content,
            symbols,
        })
        .collect();
    let output = Output::plain(path.to_owned(), layout(&plans, Index::Always)?);
    let written = outputs::write(&[output], &sources);
    written.map_err(|problem| problem.to_string().into())
}

/// Source of a member's content.
struct MemberContent {
    /// Number of the source.
    number: usize,
    range: Range<u64>,
}

impl MemberContent {
    fn open(path: &Path, sources: &mut Sources) -> Result<Self, Problem> {
        let number = sources.open(path).map_err(|problem| problem.to_string())?;
        let range = sources.file(number).whole();
        Ok(Self { number, range })
    }

    fn piece(&self) -> Piece {
        Piece::Copy {
            input: self.number,
            range: self.range.clone(),
        }
    }
}

/// Formats that host linkers cannot read.
const FOR_DEVICES: [Magic; 4] = [
    Magic::Bundle,
    Magic::CompressedBundle,
    Magic::TextBundle,
    Magic::OffloadBinary,
];

/// A member of the archive.
struct FoundMember {
    name: Vec<u8>,
    /// Offset of the header.
    header: u64,
    /// Size in bytes.
    size: u64,
    /// Range in the archive; `None` if that is thin.
    content: Option<Range<u64>>,
}

fn members(sources: &Sources, archive: &MemberContent) -> Result<Vec<FoundMember>, Problem> {
    let data = sources.file(archive.number).data();
    let parsed = Archive::parse(data, archive.range.clone())?;
    let members = parsed.members.iter().map(|member| FoundMember {
        name: member.name.to_vec(),
        header: member.header_offset,
        size: member.size,
        content: member.content.clone(),
    });
    Ok(members.collect())
}

/// Returns the members of the new archive with their names.
fn places(
    file: &InputFile,
    sources: &mut Sources,
) -> Result<Vec<(String, MemberContent)>, Problem> {
    let archive = MemberContent::open(&file.path, sources)?;
    let found = members(sources, &archive)?;
    let made = file.units.iter().filter_map(|unit| {
        let place = unit.bundle.as_ref()?;
        let object = unit.outside.as_deref();
        let object = object.filter(|_| place.outside.as_deref() != object);
        Some((unit.member?, object?))
    });
    let mut made: HashMap<u64, &Path> = made.collect();
    let mut members = Vec::new();
    for member in found {
        let name = String::from_utf8_lossy(&member.name);
        let content = match (made.remove(&member.header), member.content) {
            (Some(object), _) => MemberContent::open(object, sources)?,
            (None, None) => {
                let number = sources.open_member(&file.path, &member.name, member.size);
                let number = number.map_err(|problem| problem.to_string())?;
                let range = sources.file(number).whole();
                MemberContent { number, range }
            }
            (None, Some(range)) => MemberContent {
                number: archive.number,
                range,
            },
        };
        let data = sources.file(content.number).data();
        if !FOR_DEVICES.contains(&Magic::at(data, content.range.clone())) {
            members.push((plain_name(&name), content));
        }
    }
    match made.is_empty() {
        true => Ok(members),
        false => Err("it changed while it was linked".into()),
    }
}
