//! Place of an output while it is written: beside its final path under a temporary name, or apart in an unnamed file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::files::{self, Replacement, follow};
use crate::llvm_tool::output::{Output, Style};
use crate::platform;
use crate::signals::Watch;

/// Places of all outputs, and the watch that removes them on a signal.
#[derive(Default)]
pub(super) struct OutputPlaces {
    pub(super) list: Vec<OutputPlace>,
    /// Starts with the first temporary file. If no thread can be started, a signal leaves the files.
    watch: Option<Watch>,
}

/// Place of one output.
pub(super) enum OutputPlace {
    Beside(Beside),
    Apart(Apart),
}

/// An unnamed file, to be copied to a path that a rename cannot replace: standard output, devices, pipes, files in
/// folders where no other file can be created.
pub(super) struct Apart {
    file: File,
    /// Path of the output; `None` is standard output.
    target: Option<PathBuf>,
    /// Identities of the file; empty if it is not a regular file.
    identities: Vec<Identity>,
}

/// A file under a temporary name in the folder of its final name.
pub(super) struct Beside {
    new: Replacement,
    /// `None` if each write opens it again: there may be more outputs than a process may have open files.
    file: Option<File>,
    identities: Vec<Identity>,
}

/// Identity of a file, the same under all its names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Identity {
    /// Path with links resolved.
    Path(PathBuf),
    /// Device and inode, equal for hard links.
    File(u64, u64),
}

/// Number of files that stay open.
const MAX_OPEN: usize = 32;

impl OutputPlaces {
    /// Chooses a place for an output.
    pub(super) fn add(&mut self, output: &Output) -> io::Result<()> {
        let path = &output.path;
        let archive = matches!(output.style, Style::Archive);
        if path == Path::new("-") && !archive {
            self.list.push(Apart::place(None, Vec::new())?);
            return Ok(());
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
                let place = Apart::place(Some(path.clone()), Vec::new())?;
                self.list.push(place);
                return Ok(());
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
        let place = match self.beside(target.clone(), mode) {
            Ok((new, file)) => OutputPlace::Beside(Beside {
                new,
                file,
                identities,
            }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                // Fails before any work is done if the file cannot be written.
                OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(false)
                    .open(&target)?;
                Apart::place(Some(target), identities)?
            }
            Err(error) => return Err(error),
        };
        self.list.push(place);
        Ok(())
    }

    /// Creates the file.
    fn beside(
        &mut self,
        target: PathBuf,
        mode: Option<u32>,
    ) -> io::Result<(Replacement, Option<File>)> {
        if self.watch.is_none() {
            self.watch = Watch::start().ok();
        }
        let (new, file) = Replacement::create(target, ".tmp", mode, self.watch.as_ref())?;
        let open = self.list.len() < MAX_OPEN;
        Ok((new, open.then_some(file)))
    }

    /// Renames all files. `wrong` turns the index of an output and its error into the result.
    pub(super) fn finish<E>(self, wrong: impl Fn(usize, io::Error) -> E) -> Result<(), E> {
        let Self { list, watch } = self;
        for (index, place) in list.into_iter().enumerate() {
            place
                .finish(watch.as_ref())
                .map_err(|error| wrong(index, error))?;
        }
        Ok(())
    }
}

impl OutputPlace {
    pub(super) fn file(&self) -> io::Result<OpenedPlace<'_>> {
        match self {
            Self::Beside(Beside {
                file: None, new, ..
            }) => Ok(OpenedPlace::Again(new.open()?)),
            Self::Beside(Beside {
                file: Some(file), ..
            })
            | Self::Apart(Apart { file, .. }) => Ok(OpenedPlace::Kept(file)),
        }
    }

    /// Returns the identities of the file; none if it is not a regular file.
    pub(super) fn identities(&self) -> &[Identity] {
        match self {
            Self::Beside(place) => &place.identities,
            Self::Apart(place) => &place.identities,
        }
    }

    fn finish(self, watch: Option<&Watch>) -> io::Result<()> {
        match self {
            Self::Beside(Beside { new, file, .. }) => {
                drop(file);
                new.finish(watch)
            }
            Self::Apart(Apart {
                mut file, target, ..
            }) => {
                file.seek(SeekFrom::Start(0))?;
                match target {
                    None => {
                        let mut out = io::stdout().lock();
                        io::copy(&mut file, &mut out)?;
                        out.flush()
                    }
                    Some(path) => {
                        let mut out = OpenOptions::new().write(true).truncate(true).open(path)?;
                        io::copy(&mut file, &mut out).map(drop)
                    }
                }
            }
        }
    }
}

impl Apart {
    fn place(target: Option<PathBuf>, identities: Vec<Identity>) -> io::Result<OutputPlace> {
        Ok(OutputPlace::Apart(Self {
            file: files::temporary()?,
            target,
            identities,
        }))
    }
}

/// Open file of a place.
pub(super) enum OpenedPlace<'a> {
    Kept(&'a File),
    Again(File),
}

impl Deref for OpenedPlace<'_> {
    type Target = File;

    fn deref(&self) -> &File {
        match self {
            Self::Kept(file) => file,
            Self::Again(file) => file,
        }
    }
}
