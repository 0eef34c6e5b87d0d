//! Registrations as objects in the format of their host.

use super::RegistrationError;
use super::deferred::Deferred;
use super::elf_host::ElfHost;
use super::fat_binary::FatBinary;
use super::openmp::OpenMp;
use crate::container::large::ImagePlacement;
use crate::format::pieces::Piece;

#[doc(inline)]
pub use offload_formats_core::names::host::HostFormat;

impl OpenMp<'_> {
    /// Writes the object in the format of its host, in pieces, which copy the inputs of the embedded pieces. COFF has no large sections.
    ///
    /// # Errors
    ///
    /// Fails as [`Self::to_object`] and [`Self::to_coff`] do, but embedded bytes need not be in memory.
    pub fn to_host_pieces(
        &self,
        host: HostFormat,
        placement: ImagePlacement,
    ) -> Result<Vec<Piece>, RegistrationError> {
        match host {
            HostFormat::Elf(machine) => self.elf_pieces(ElfHost { machine, placement }),
            HostFormat::Coff(abi) => self.coff_pieces(abi),
        }
    }
}

impl FatBinary<'_> {
    /// Writes the object in the format of its host, in pieces, which copy the inputs of the embedded pieces. COFF has no large sections.
    ///
    /// # Errors
    ///
    /// Fails as [`Self::to_object`] and [`Self::to_coff`] do, but embedded bytes need not be in memory.
    pub fn to_host_pieces(
        &self,
        host: HostFormat,
        placement: ImagePlacement,
    ) -> Result<Vec<Piece>, RegistrationError> {
        match host {
            HostFormat::Elf(machine) => self.elf_pieces(ElfHost { machine, placement }),
            HostFormat::Coff(abi) => self.coff_pieces(abi),
        }
    }
}

impl Deferred<'_> {
    /// Writes the object in the format of its host, in pieces, which copy the inputs of the embedded pieces.
    ///
    /// # Errors
    ///
    /// Fails as [`Self::to_object`] and [`Self::to_coff`] do, but embedded bytes need not be in memory.
    pub fn to_host_pieces(&self, host: HostFormat) -> Result<Vec<Piece>, RegistrationError> {
        match host {
            HostFormat::Elf(machine) => self.elf_pieces(machine),
            HostFormat::Coff(abi) => self.coff_pieces(abi),
        }
    }
}
