//! Edits of files that LLVM's tools have made.

use crate::steps::task::{regions, temporary_names};
use offload_build_core::files;
use offload_formats::container::code_object;
use offload_formats::format::bytes::ReadCache;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// Work of this process on a file that commands made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Finish {
    /// Nothing.
    #[default]
    None,
    /// Edits an object with AMD's machine code: [`code_object::share_descriptors`], [`code_object::join_static_names`].
    MachineCode,
    /// Edits an image linked of such objects: [`code_object::joined_notes`].
    JoinNotes,
    /// Renames the kernels of an OpenMP host object or image: they get names of their module, which this number stands
    /// for.
    OwnRegions(u64),
    /// Edits a host object of nvcc: [`temporary_names::without_process`].
    WithoutProcess,
}

/// Returns the file from which `output` is assembled.
pub(crate) fn assembly(output: &Path) -> PathBuf {
    output.with_extension("s")
}

impl Finish {
    /// Returns a description; nothing if nothing is done.
    #[must_use]
    pub(crate) fn what(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::MachineCode => {
                Some("descriptors of shared kernels made weak, static variables named once")
            }
            Self::JoinNotes => Some("notes of metadata joined"),
            Self::OwnRegions(_) => Some("kernels named for this module alone"),
            Self::WithoutProcess => Some("names of temporary files made the same in each build"),
        }
    }

    /// Returns the assembly from which `output` was made, which nothing reads after that. That of a template can be as large as the
    /// module's images.
    pub(crate) fn assembly(self, output: &Path) -> Option<PathBuf> {
        (self == Self::MachineCode).then(|| assembly(output))
    }

    /// Does it to a file.
    pub(crate) fn run(self, path: &Path) -> io::Result<()> {
        if self == Self::None {
            return Ok(());
        }
        if self == Self::JoinNotes {
            return join_notes(path);
        }
        let mut bytes = fs::read(path)?;
        let edited = match self {
            Self::MachineCode => code_object::share_descriptors(&mut bytes)
                .and_then(|()| code_object::join_static_names(&mut bytes)),
            Self::OwnRegions(module) => {
                regions::rename(&mut bytes, module);
                Ok(())
            }
            Self::WithoutProcess => {
                temporary_names::without_process(&mut bytes);
                Ok(())
            }
            Self::None | Self::JoinNotes => Ok(()),
        };
        edited.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        // Beside it: what a launcher gave may be a link to the file in its cache.
        files::write(path, &bytes)
    }
}

/// Edits an image in its file. Linked images may be too large for memory.
fn join_notes(path: &Path) -> io::Result<()> {
    let data = ReadCache::new(File::open(path)?);
    let changes = code_object::joined_notes(&data);
    data.take_error().map_or(Ok(()), Err)?;
    let changes = changes.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let mut file = OpenOptions::new().write(true).open(path)?;
    for (offset, bytes) in changes {
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(&bytes)?;
    }
    Ok(())
}
