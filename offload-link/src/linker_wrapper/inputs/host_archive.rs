//! An archive with bundles that have parts for the host, as the host's linker can read it.
//!
//! | member                            | in the archive that is linked in its place    |
//! |-----------------------------------|-----------------------------------------------|
//! | a bundle with a part for the host | the object made of that, under the same name  |
//! | a bundle without, offload binaries | none: no host linker reads them, and with `--whole-archive` it stops there |
//! | any other                         | itself                                        |
//!
//! With an index of all symbols, so that the members are taken when they are wanted, as those of the archive
//! itself would be.

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
use crate::linker_wrapper::error::Error;
use crate::linker_wrapper::inputs::file::{InputFile, Problem};
use crate::llvm_tool::{Output, Sources, Style, outputs};

/// What is asked about the link.
pub(crate) struct Maker<'a> {
    pub arguments: &'a Arguments,
    pub workplace: &'a Workplace,
    pub actions: Actions,
}

/// Writes the archive; its path.
pub(crate) fn write(file: &InputFile, maker: &Maker<'_>) -> Result<PathBuf, Error> {
    let stem = file.path.file_stem().unwrap_or_default().to_string_lossy();
    let path = maker
        .workplace
        .file(&format!("{stem}-{}.host.a", file.item));
    if maker.actions.are_dry() {
        let shown = path.display();
        maker
            .actions
            .note(format_args!("archive {shown} of the parts for the host"));
        return Ok(path);
    }
    let written = copy(file, &path);
    written.map(|()| path).map_err(|source| Error::Input {
        from: terminal(&*file.path).to_string(),
        source,
    })
}

fn copy(file: &InputFile, path: &Path) -> Result<(), Problem> {
    let mut sources = Sources::default();
    let places = places(file, &mut sources)?;
    let mut members = Vec::new();
    for (name, content) in &places {
        let data = sources.file(content.number).data();
        let symbols = definitions(data, content.range.clone());
        // What cannot be read is in no index, as in that of `ar`.
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
    let output = Output {
        path: path.to_owned(),
        pieces: layout(&plans, Index::Always)?,
        style: Style::Plain,
    };
    let written = outputs::write(&[output], &sources, false);
    written.map_err(|problem| problem.to_string().into())
}

/// Where the content of a member comes from.
struct MemberContent {
    /// Of the source.
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

/// What is for no host linker.
const FOR_DEVICES: [Magic; 4] = [
    Magic::Bundle,
    Magic::CompressedBundle,
    Magic::TextBundle,
    Magic::OffloadBinary,
];

/// A member of the archive.
struct FoundMember {
    name: Vec<u8>,
    /// Offset of its header.
    header: u64,
    /// In bytes.
    size: u64,
    /// In the archive, unless that is thin.
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

/// What the archive shall have, by name.
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
