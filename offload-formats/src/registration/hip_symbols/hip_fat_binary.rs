//! A fat binary for HIP objects of clang's older driver, alone.

use super::HipSymbols;
use crate::format::pieces::{Embedded, Piece};
use crate::registration::elf_host::ElfHost;
use crate::registration::error::{RegistrationError, in_memory};
use crate::registration::runtime::{self, Runtime};
use crate::registration::writer::Writer;

/// A fat binary for objects that register themselves; it has no constructor.
#[derive(Clone, Copy, Debug)]
pub struct HipFatBinary<'a> {
    /// A HIP bundle, plain or compressed.
    pub bytes: Embedded<'a>,
    /// Symbols of the objects.
    pub symbols: HipSymbols<'a>,
}

impl HipFatBinary<'_> {
    /// Writes the object file.
    ///
    /// # Errors
    ///
    /// Fails like [`Self::to_pieces`], or if the fat binary is not in memory.
    pub fn to_object(&self, host: impl Into<ElfHost>) -> Result<Vec<u8>, RegistrationError> {
        in_memory(&self.to_pieces(host)?)
    }

    /// Writes the object file in pieces, which copy the inputs of the embedded pieces.
    ///
    /// # Errors
    ///
    /// Fails if `host` is not supported, or a name is empty or contains a NUL.
    pub fn to_pieces(&self, host: impl Into<ElfHost>) -> Result<Vec<Piece>, RegistrationError> {
        let mut writer = Writer::new(host)?;
        let image = runtime::image(&mut writer, Runtime::Hip, self.bytes)?;
        self.symbols.define(&mut writer, image)?;
        writer.finish()
    }
}
