//! Registrations as objects in the format of their host.

use super::RegistrationError;
use super::coff::WindowsAbi;
use super::deferred::Deferred;
use super::elf_host::ElfHost;
use super::fat_binary::FatBinary;
use super::openmp::OpenMp;
use crate::container::elf::Machine;
use crate::container::large::ImagePlacement;

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
    /// Writes the object in the format of its host. COFF has no large sections.
    ///
    /// # Errors
    ///
    /// Those of [`Self::to_object`] and [`Self::to_coff`].
    pub fn to_host_object(
        &self,
        host: HostFormat,
        placement: ImagePlacement,
    ) -> Result<Vec<u8>, RegistrationError> {
        match host {
            HostFormat::Elf(machine) => self.to_object(ElfHost { machine, placement }),
            HostFormat::Coff(abi) => self.to_coff(abi),
        }
    }
}

impl FatBinary<'_> {
    /// Writes the object in the format of its host. COFF has no large sections.
    ///
    /// # Errors
    ///
    /// Those of [`Self::to_object`] and [`Self::to_coff`].
    pub fn to_host_object(
        &self,
        host: HostFormat,
        placement: ImagePlacement,
    ) -> Result<Vec<u8>, RegistrationError> {
        match host {
            HostFormat::Elf(machine) => self.to_object(ElfHost { machine, placement }),
            HostFormat::Coff(abi) => self.to_coff(abi),
        }
    }
}

impl Deferred<'_> {
    /// Writes the object in the format of its host.
    ///
    /// # Errors
    ///
    /// Those of [`Self::to_object`] and [`Self::to_coff`].
    pub fn to_host_object(&self, host: HostFormat) -> Result<Vec<u8>, RegistrationError> {
        match host {
            HostFormat::Elf(machine) => self.to_object(machine),
            HostFormat::Coff(abi) => self.to_coff(abi),
        }
    }
}
