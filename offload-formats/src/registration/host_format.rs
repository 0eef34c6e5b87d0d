//! Registrations as objects in the format of their host.

use super::RegistrationError;
use super::coff::WindowsAbi;
use super::deferred::Deferred;
use super::elf_host::ElfHost;
use super::fat_binary::FatBinary;
use super::openmp::OpenMp;
use crate::container::elf::Machine;
use crate::container::large::ImagePlacement;
use crate::format::pieces::Piece;

/// Format of a host's objects, for hosts with machine code here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostFormat {
    /// ELF, for that machine.
    Elf(Machine),
    /// COFF, for x86-64 Windows.
    Coff(WindowsAbi),
}

impl HostFormat {
    /// Returns the machine of an ELF host.
    #[must_use]
    pub const fn elf(self) -> Option<Machine> {
        match self {
            Self::Elf(machine) => Some(machine),
            Self::Coff(_) => None,
        }
    }
}

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
