//! What is left to do to a file that LLVM's tools have made.

use crate::steps::task::regions;
use offload_formats::container::code_object;
use std::fs;
use std::io;
use std::path::Path;

/// What is done in this process to what commands made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Finish {
    /// Nothing.
    #[default]
    None,
    /// To an object with AMD's machine code: [`code_object::share_descriptors`].
    ShareDescriptors,
    /// To an image linked of such objects: [`code_object::join_notes`].
    JoinNotes,
    /// To a host object or an image of OpenMP: kernels get names of their module, which this number stands for.
    OwnRegions(u64),
}

impl Finish {
    /// For people; nothing where nothing is done.
    #[must_use]
    pub(crate) fn what(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::ShareDescriptors => Some("descriptors of shared kernels made weak"),
            Self::JoinNotes => Some("notes of metadata joined"),
            Self::OwnRegions(_) => Some("kernels named for this module alone"),
        }
    }

    /// Does it to a file.
    pub(crate) fn run(self, path: &Path) -> io::Result<()> {
        if self == Self::None {
            return Ok(());
        }
        let mut bytes = fs::read(path)?;
        let edited = match self {
            Self::ShareDescriptors => code_object::share_descriptors(&mut bytes),
            Self::JoinNotes => code_object::join_notes(&mut bytes),
            Self::OwnRegions(module) => {
                regions::rename(&mut bytes, module);
                Ok(())
            }
            Self::None => Ok(()),
        };
        edited.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        fs::write(path, bytes)
    }
}
