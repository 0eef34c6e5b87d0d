//! Writes a library for programs that are linked elsewhere.

use crate::messages::Failure;
use crate::steps::archive::{NewMember, write_library};
use crate::steps::digests::Digests;
use crate::steps::host_objects::entries::has_entries;
use crate::steps::step::{Done, Made, Step};
use offload_build_core::error::{self, Error};
use offload_build_core::process::command::Command;
use offload_build_core::readable::Readable;
use offload_formats::container::archive::Index;
use offload_formats::container::object_bundle::{NewObjectEntry, embed_bundle};
use offload_formats::format::pieces::{self, Piece};
use offload_formats::registration::deferred::add_demand;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

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
        self.members.iter().flat_map(Member::files).collect()
    }

    fn run(&self) -> Result<Done, Error> {
        let new = |member: &Member| {
            Ok(NewMember {
                name: member.name.clone(),
                files: member.files(),
                pieces: member.pieces()?,
            })
        };
        let members: Vec<NewMember> = self.members.iter().map(new).collect::<Result<_, Error>>()?;
        write_library(&self.library, &members, Index::Always)?;
        Ok(Done::default())
    }
}

impl Member {
    /// Returns the content and the images.
    fn files(&self) -> Vec<PathBuf> {
        let images = self.images.iter().map(|(_, image)| image);
        [&self.content].into_iter().chain(images).cloned().collect()
    }

    /// Returns the member in pieces, which copy its files.
    fn pieces(&self) -> Result<Vec<Piece>, Error> {
        let mut content = Readable::open(&self.content)?;
        let mut pieces = content.all();
        if self.images.is_empty() {
            return Ok(pieces);
        }
        if has_entries(&content)? {
            pieces = content.parse(add_demand)?;
            content = Readable::edited(&self.content, pieces.clone())?;
        }
        let mut entries = Vec::new();
        for (id, path) in &self.images {
            let size = fs::metadata(path).map_err(error::io(path))?.len();
            entries.push(NewObjectEntry {
                id,
                size: Some(size),
            });
        }
        entries.push(NewObjectEntry {
            id: &self.host,
            size: None,
        });
        let planned = content.parse(|data, range| embed_bundle(data, range, &entries))?;
        let images = (1..).zip(&entries).map(|(input, entry)| {
            let range = 0..entry.size.unwrap_or(0);
            vec![Piece::Copy { input, range }]
        });
        let inputs: Vec<Vec<Piece>> = std::iter::once(pieces).chain(images).collect();
        let inputs: Vec<&[Piece]> = inputs.iter().map(Vec::as_slice).collect();
        pieces::replace_inputs(&planned, &inputs).ok_or_else(|| {
            Error::new(format_args!(
                "{}: a piece is outside of its input",
                self.content.display()
            ))
        })
    }
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

    fn made(&self) -> Made {
        Made::in_process(self.title(), vec![self.library.clone()], self.inputs())
    }
}
