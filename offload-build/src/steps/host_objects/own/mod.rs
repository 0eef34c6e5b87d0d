//! Names that keep a module apart from others: two versions of a crate have the same names.

mod coff;
mod elf;

use crate::error::Error;
use std::path::PathBuf;

/// Names that keep a module's entries apart from those of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Own {
    /// Suffix of names, which no other module in any program has.
    pub(crate) suffix: String,
    /// The symbols that get it.
    pub(crate) symbols: Symbols,
}

/// The symbols of a module that are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbols {
    /// No symbols: OpenMP's kernels have names of their file, and the last link joins what it registers.
    None,
    /// Symbols that the offload entries name, and the entries.
    OfEntries,
    /// Symbols that nvcc hides from other objects, or names for them alone.
    OfNvcc,
}

/// Part of the names of functions that launch a kernel.
const DEVICE_STUB: &str = "__device_stub__";

impl Own {
    /// The name of a symbol that is this module's own.
    pub(crate) fn name(&self, symbol: &str) -> String {
        match self.symbols {
            Symbols::None => symbol.to_owned(),
            Symbols::OfEntries | Symbols::OfNvcc => format!("{symbol}.{}", self.suffix),
        }
    }

    /// Returns all objects of a module, given by their paths, with its own names.
    pub(crate) fn apply(&self, objects: Vec<(PathBuf, Vec<u8>)>) -> Result<Vec<Vec<u8>>, Error> {
        match objects.as_slice() {
            // Joined already.
            [(path, object)] => {
                let wrong = |error| Error::because(path.display(), error);
                Ok(vec![self.apply_to_elf(object).map_err(wrong)?])
            }
            _ => self.apply_to_coff(&objects),
        }
    }
}
