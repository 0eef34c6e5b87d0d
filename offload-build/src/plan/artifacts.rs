//! Libraries that a module comes out as, for programs that are linked elsewhere.
//!
//! | `artifact`       | file                          | members, one for each source                          |
//! |------------------|-------------------------------|-------------------------------------------------------|
//! | `hda`            | `lib<name>.a`                 | the host's object with the code for each target in it |
//! | `device-archive` | `libbc-<name>-<arch>-<id>.a`, for each target | its code for that target      |
//!
//! What is in them is not linked for the device yet: `offload-link` does it in the link of the program.
//! Host objects with offload entries demand it: with another linker their code would run unregistered.
//! Specification: `docs/spec/linker-wrapper.md` §7.1 for the objects, §7.4 for the names.

use crate::declare::language::ArtifactKind;
use crate::declare::module::{Module, Target};
use crate::error;
use crate::error::Error;
use crate::files;
use crate::process::command::Command;
use crate::steps::host_objects::entries::has_entries;
use crate::steps::task::Done;
use offload_formats::container::archive::{self, Index, MemberPlan};
use offload_formats::container::definitions;
use offload_formats::container::object_bundle::{NewEntry, embed_bundle};
use offload_formats::format::pieces::{self, Piece};
use offload_formats::names::{ConflictScope, EntryId, conflict, library_name};
use offload_formats::registration::deferred::add_demand;
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where they are, below `OUT_DIR`: `cargo offload build` looks there.
const FOLDER: &str = "offload/artifacts";

/// What a module has of one source.
pub(crate) struct Unit {
    /// As its members are called, without an extension.
    pub(crate) stem: String,
    pub(crate) host: PathBuf,
    /// Those of the targets that compile it, in the order of the manifest.
    pub(crate) images: Vec<(Target, PathBuf)>,
}

/// Writes an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Artifact {
    pub(crate) library: PathBuf,
    members: Vec<Member>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    name: String,
    content: PathBuf,
    /// Entry IDs, and the images that go into the content.
    images: Vec<(String, PathBuf)>,
    /// The entry ID of the content, where images go into it.
    host: String,
}

/// The archives that `module` asks for, made of `units`, for a host of that triple.
pub(crate) fn plan(
    module: &Module,
    units: &[Unit],
    host: &str,
    out: &Path,
) -> Result<Vec<Artifact>, Error> {
    let wants = |kind| module.artifacts.contains(&kind);
    let folder = out.join(FOLDER);
    let mut artifacts = Vec::new();
    if wants(ArtifactKind::Hda) {
        check(module)?;
        let members = units.iter().map(|unit| Member {
            name: format!("{}.o", unit.stem),
            content: unit.host.clone(),
            images: unit
                .images
                .iter()
                .map(|(target, image)| (entry_id(target), image.clone()))
                .collect(),
            host: format!("host-{host}-"),
        });
        artifacts.push(Artifact {
            library: folder.join(format!("lib{}.a", module.library)),
            members: members.collect(),
        });
    }
    // A target for which nothing is compiled has none.
    let targets = module.targets.iter().filter(|target| {
        let has = |unit: &Unit| unit.images.iter().any(|(of, _)| of == *target);
        wants(ArtifactKind::DeviceArchive) && units.iter().any(has)
    });
    for target in targets {
        let name = library_name::file_name(&module.library, &target.triple, &target.id.to_string());
        let members = units.iter().filter_map(|unit| {
            let (_, image) = unit.images.iter().find(|(of, _)| of == target)?;
            let extension = image.extension()?.to_string_lossy();
            Some(Member {
                name: format!("{}.{extension}", unit.stem),
                content: image.clone(),
                images: Vec::new(),
                host: String::new(),
            })
        });
        artifacts.push(Artifact {
            library: folder.join(name),
            members: members.collect(),
        });
    }
    Ok(artifacts)
}

/// Removes what an earlier build left there and `artifacts` does not name.
pub(crate) fn clean(out: &Path, artifacts: &BTreeSet<&Path>) -> Result<(), Error> {
    let folder = out.join(FOLDER);
    let files = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        files => files.map_err(error::io(&folder))?,
    };
    for file in files {
        let path = file.map_err(error::io(&folder))?.path();
        if !artifacts.contains(&*path) {
            fs::remove_file(&path).map_err(error::io(&path))?;
        }
    }
    Ok(())
}

/// Processors have triples of three fields, and the place of the fourth stays empty (`docs/spec/bundler.md` §6).
fn entry_id(target: &Target) -> String {
    let triple = target.triple.as_str().trim_end_matches('-');
    match target.id.to_string().as_str() {
        "" => format!("openmp-{triple}-"),
        id => format!("openmp-{triple}--{id}"),
    }
}

/// The entries of one member may be together (`docs/spec/bundler.md` §5).
fn check(module: &Module) -> Result<(), Error> {
    let ids = module
        .targets
        .iter()
        .map(|target| EntryId::parse(&entry_id(target)));
    let ids: Vec<EntryId> = ids.collect::<Result<_, _>>().map_err(Error::new)?;
    let Some((one, other)) = conflict(&ids, ConflictScope::All) else {
        return Ok(());
    };
    let written = |index: usize| {
        module
            .targets
            .get(index)
            .map_or("", |target| &target.written)
    };
    Err(Error::new(format_args!(
        "module `{}`: `{}` and `{}` cannot be in one archive of bundles: one of them leaves open what the other says",
        module.name,
        written(one),
        written(other)
    )))
}

impl Artifact {
    pub(crate) fn inputs(&self) -> Vec<PathBuf> {
        let of_member = |member: &Member| {
            let images = member.images.iter().map(|(_, image)| image.clone());
            [member.content.clone()]
                .into_iter()
                .chain(images)
                .collect::<Vec<_>>()
        };
        self.members.iter().flat_map(of_member).collect()
    }

    pub(crate) fn execute(&self) -> Result<Done, Error> {
        let contents = self.members.iter().map(Member::bytes);
        let contents: Vec<Vec<u8>> = contents.collect::<Result<_, _>>()?;
        let inputs: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
        let mut plans = Vec::new();
        for (number, (member, bytes)) in self.members.iter().zip(&inputs).enumerate() {
            let range = 0..bytes.len() as u64;
            let wrong = |problem| Error::because(member.content.display(), problem);
            let symbols = definitions(*bytes, range.clone()).map_err(wrong)?;
            let piece = Piece::Copy {
                input: number,
                range,
            };
            plans.push((member, [piece], symbols));
        }
        let plans: Vec<MemberPlan<'_>> = plans
            .iter()
            .map(|(member, content, symbols)| MemberPlan {
                name: &member.name,
                content,
                symbols,
            })
            .collect();
        let wrong = |problem| Error::because(self.library.display(), problem);
        let layout = archive::layout(&plans, Index::Always).map_err(wrong)?;
        let bytes = whole(&layout, &inputs, &self.library)?;
        files::write(&self.library, &bytes).map_err(error::io(&self.library))?;
        Ok(Done::default())
    }
}

impl Member {
    fn bytes(&self) -> Result<Vec<u8>, Error> {
        let read = |path: &PathBuf| fs::read(path).map_err(error::io(path));
        let mut content = read(&self.content)?;
        if self.images.is_empty() {
            return Ok(content);
        }
        if has_entries(&self.content, &content)? {
            let wrong = |problem| Error::because(self.content.display(), problem);
            let demanding = add_demand(&content).map_err(wrong)?;
            content = whole(&demanding, &[&content], &self.content)?;
        }
        let images = self.images.iter().map(|(_, path)| read(path));
        let images: Vec<Vec<u8>> = images.collect::<Result<_, _>>()?;
        let mut entries: Vec<NewEntry<'_>> = self
            .images
            .iter()
            .zip(&images)
            .map(|((id, _), image)| NewEntry {
                id,
                size: Some(image.len() as u64),
            })
            .collect();
        entries.push(NewEntry {
            id: &self.host,
            size: None,
        });
        let planned = embed_bundle(content.as_slice(), 0..content.len() as u64, &entries);
        let planned = planned.map_err(|problem| Error::because(self.content.display(), problem))?;
        let inputs: Vec<&[u8]> = [&content]
            .into_iter()
            .chain(&images)
            .map(Vec::as_slice)
            .collect();
        whole(&planned, &inputs, &self.content)
    }
}

/// All pieces of what is made of `path`.
fn whole(pieces: &[Piece], inputs: &[&[u8]], path: &Path) -> Result<Vec<u8>, Error> {
    let lacks = || {
        Error::new(format_args!(
            "{}: a piece is outside of its input",
            path.display()
        ))
    };
    pieces::to_bytes(pieces, inputs).ok_or_else(lacks)
}

/// For a dry run: what does the like.
impl fmt::Display for Artifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# library `{}`, in this process", self.library.display())?;
        for member in &self.members {
            let images = member.images.iter();
            let ids: Vec<&str> = images.map(|(id, _)| id.as_str()).collect();
            let with = match ids.as_slice() {
                [] => String::new(),
                ids => format!(" with {}", ids.join(", ")),
            };
            writeln!(f, "#   {}: {}{with}", member.name, member.content.display())?;
        }
        let contents = self.members.iter().map(|member| &member.content);
        let has_bundles = self.members.iter().any(|member| !member.images.is_empty());
        match has_bundles {
            true => Ok(()),
            false => writeln!(
                f,
                "{}",
                Command::new("ar")
                    .arg("rcsD")
                    .arg(&self.library)
                    .args(contents)
            ),
        }
    }
}
