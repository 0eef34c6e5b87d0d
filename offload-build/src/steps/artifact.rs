//! Writes a library for programs that are linked elsewhere.

use crate::error::{self, Error};
use crate::files;
use crate::messages::Failure;
use crate::process::command::Command;
use crate::steps::digests::Digests;
use crate::steps::host_objects::entries::has_entries;
use crate::steps::step::{Done, Made, Step};
use offload_formats::container::archive::{self, Index, MemberPlan};
use offload_formats::container::definitions;
use offload_formats::container::object_bundle::{NewObjectEntry, embed_bundle};
use offload_formats::format::pieces::{self, Piece};
use offload_formats::registration::deferred::add_demand;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Folder of the libraries, below `OUT_DIR`: `cargo offload build` looks there.
pub(crate) const FOLDER: &str = "offload/artifacts";

/// Writes an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Artifact {
    pub(crate) library: PathBuf,
    pub(crate) members: Vec<Member>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) content: PathBuf,
    /// Entry IDs, and the images that go into the content.
    pub(crate) images: Vec<(String, PathBuf)>,
    /// The entry ID of the content, where images go into it.
    pub(crate) host: String,
}

impl Artifact {
    fn inputs(&self) -> Vec<PathBuf> {
        let of_member = |member: &Member| {
            let images = member.images.iter().map(|(_, image)| image.clone());
            [member.content.clone()]
                .into_iter()
                .chain(images)
                .collect::<Vec<_>>()
        };
        self.members.iter().flat_map(of_member).collect()
    }

    fn run(&self) -> Result<Done, Error> {
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
        let mut entries: Vec<NewObjectEntry<'_>> = self
            .images
            .iter()
            .zip(&images)
            .map(|((id, _), image)| NewObjectEntry {
                id,
                size: Some(image.len() as u64),
            })
            .collect();
        entries.push(NewObjectEntry {
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

/// Returns all pieces of what is made of `path`.
fn whole(pieces: &[Piece], inputs: &[&[u8]], path: &Path) -> Result<Vec<u8>, Error> {
    let lacks = || {
        Error::new(format_args!(
            "{}: a piece is outside of its input",
            path.display()
        ))
    };
    pieces::to_bytes(pieces, inputs).ok_or_else(lacks)
}

impl Step for Artifact {
    fn title(&self) -> String {
        format!("library `{}`", self.library.display())
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

    fn folder(&self) -> Option<&Path> {
        self.library.parent()
    }

    fn artifact(&self) -> Option<&Path> {
        Some(&self.library)
    }

    fn execute(&self, _digests: &Digests) -> Result<Done, Failure> {
        Ok(self.run()?)
    }

    fn made(&self, _reads: Vec<PathBuf>) -> Made {
        Made::in_process(self.title(), vec![self.library.clone()], self.inputs())
    }
}
