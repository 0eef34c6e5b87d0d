//! The host of an ELF object, and where its program has images.

use crate::container::elf::Machine;
use crate::container::large::ImagePlacement;

/// A host whose objects are ELF files. A [`Machine`] is one whose programs have images in usual sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElfHost {
    /// Its machine.
    pub machine: Machine,
    /// Placement of images by its linker; large sections are for x86-64 only.
    pub placement: ImagePlacement,
}

impl From<Machine> for ElfHost {
    fn from(machine: Machine) -> Self {
        Self {
            machine,
            placement: ImagePlacement::Usual,
        }
    }
}
