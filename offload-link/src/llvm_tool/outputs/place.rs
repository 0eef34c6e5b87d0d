//! Place of an output while it is written: beside its final path under a temporary name, or apart in an unnamed file.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::files::{NewFile, follow};
use crate::llvm_tool::output::{Output, Style};
use crate::platform;

/// Places of all outputs.
#[derive(Default)]
pub(super) struct OutputPlaces {
    pub(super) list: Vec<OutputPlace>,
}

/// Place of one output.
pub(super) struct OutputPlace {
    pub(super) new: NewFile,
    /// Identities of the file; empty if it is not a regular file.
    pub(super) identities: Vec<Identity>,
}

/// Identity of a file, the same under all its names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Identity {
    /// Path with links resolved.
    Path(PathBuf),
    /// Device and inode, equal for hard links.
    File(u64, u64),
}

impl OutputPlaces {
    /// Chooses a place for an output.
    pub(super) fn add(&mut self, output: &Output) -> io::Result<()> {
        self.list.push(OutputPlace::of(output)?);
        Ok(())
    }

    /// Renames all files but those that are left out, which are removed. `wrong` turns the index of an output and its error
    /// into the result.
    pub(super) fn finish<E>(
        self,
        left_out: &BTreeSet<usize>,
        wrong: impl Fn(usize, io::Error) -> E,
    ) -> Result<(), E> {
        let places = self.list.into_iter().enumerate();
        let mut places = places.filter(|(index, _)| !left_out.contains(index));
        places.try_for_each(|(index, place)| {
            let finished = place.new.finish();
            finished.map_err(|error| wrong(index, error))
        })
    }
}

impl OutputPlace {
    fn of(output: &Output) -> io::Result<Self> {
        let path = &output.path;
        let archive = matches!(output.style, Style::Archive);
        if path == Path::new("-") && !archive {
            return Self::apart(None);
        }
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            // Not a file: opening it returns the system's error.
            OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)?;
        }
        let existing = fs::metadata(path).ok();
        if let Some(existing) = &existing {
            // Pipes and devices are opened once, when there is data to write.
            if !existing.is_file() && !existing.is_dir() {
                return Self::apart(Some(path.clone()));
            }
            // Opening folders or files without write permission returns the system's error.
            OpenOptions::new().write(true).open(path)?;
        }
        let target = follow(path)?;
        let host = match &output.style {
            Style::Object(host) => fs::metadata(host).ok().filter(fs::Metadata::is_file),
            _ => None,
        };
        let replaced = existing.as_ref().and_then(platform::file_number);
        let replaced = replaced.map(|(device, inode)| Identity::File(device, inode));
        let identities = std::iter::once(Identity::Path(target.clone()));
        let identities: Vec<Identity> = identities.chain(replaced).collect();
        let mode = host.or(existing).as_ref().map(platform::mode);
        let new = match NewFile::beside(target.clone(), ".tmp", mode) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                // Fails before any work is done if the file cannot be written.
                OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(false)
                    .open(&target)?;
                NewFile::apart(Some(target))?
            }
            created => created?,
        };
        Ok(Self { new, identities })
    }

    /// Returns a place that no other output can have.
    fn apart(target: Option<PathBuf>) -> io::Result<Self> {
        Ok(Self {
            new: NewFile::apart(target)?,
            identities: Vec::new(),
        })
    }
}
