//! What keeps the names of a module apart from those of others: two versions of a crate have the same.

mod coff;
mod elf;

use crate::error::Error;
use std::path::PathBuf;

/// What keeps a module's entries apart from those of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Own {
    /// Behind names, which no other module in any program has.
    pub(crate) suffix: String,
    /// Whose symbols get it.
    pub(crate) symbols: Symbols,
}

/// The symbols of a module that are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbols {
    /// None: OpenMP's kernels have names of their file, and what the last link registers meets there.
    None,
    /// What the offload entries name, and the entries.
    OfEntries,
    /// What nvcc hides from other objects, or names for them alone.
    OfNvcc,
}

/// In the names of functions that launch a kernel.
const DEVICE_STUB: &str = "__device_stub__";

impl Own {
    /// The name of a symbol that is this module's own.
    pub(crate) fn name(&self, symbol: &str) -> String {
        match self.symbols {
            Symbols::None => symbol.to_owned(),
            Symbols::OfEntries | Symbols::OfNvcc => format!("{symbol}.{}", self.suffix),
        }
    }

    /// All objects of a module, by their paths, with the names that are its own.
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
