//! What is left to do to a file that LLVM's tools have made.

use crate::container::code_object::{self, CodeObjectError};
use std::fs;
use std::io;
use std::path::Path;

/// What is done in this process to what commands made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Finish {
    /// Nothing.
    #[default]
    None,
    /// To an object with AMD's machine code: [`code_object::share_descriptors`].
    ShareDescriptors,
    /// To an image linked of such objects: [`code_object::join_notes`].
    JoinNotes,
}

impl Finish {
    /// For people; nothing where nothing is done.
    #[must_use]
    pub fn what(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::ShareDescriptors => Some("descriptors of shared kernels made weak"),
            Self::JoinNotes => Some("notes of metadata joined"),
        }
    }

    /// Does it to a file.
    pub(super) fn run(self, path: &Path) -> io::Result<()> {
        let edit: fn(&mut [u8]) -> Result<(), CodeObjectError> = match self {
            Self::None => return Ok(()),
            Self::ShareDescriptors => code_object::share_descriptors,
            Self::JoinNotes => code_object::join_notes,
        };
        let mut bytes = fs::read(path)?;
        edit(&mut bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        fs::write(path, bytes)
    }
}
