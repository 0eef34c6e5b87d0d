//! A module whose images are linked later: its offload binaries, and a reference that only our
//! linker resolves.
//!
//! The offload binaries are where a compiler would put them, so the last link finds them. One
//! object of the program also needs [`NEEDS_OFFLOAD_LINK`]. A stock linker fails with that name,
//! instead of linking a program that crashes.

use std::ops::Range;

use object::elf;

use super::error::in_memory;
use super::machine::Code;
use super::writer::Writer;
use super::{Global, RegistrationError};
use crate::container::elf::{
    Elf, Machine, OFFLOADING_SECTION, REFERENCE_SECTION, SHT_LLVM_OFFLOADING, add_reference,
};
use crate::format::bytes::ReadAt;
use crate::format::pieces::{Embedded, Piece};

/// The symbol that a deferred object needs and that only `offload-link` defines.
pub const NEEDS_OFFLOAD_LINK: &str = "__offload_needs_offload_link";

/// Offload binaries for the last link.
#[derive(Clone, Copy, Debug)]
pub struct Deferred<'a> {
    /// Consecutive offload binaries, each at a multiple of 8.
    pub binaries: Embedded<'a>,
    /// Name of a function that only returns; a call of it links this object from its archive.
    pub anchor: &'a str,
}

impl Deferred<'_> {
    /// Writes the object file.
    ///
    /// # Errors
    ///
    /// Fails if `host` has no machine code here, or `anchor` is not a symbol name, or if the offload binaries
    /// are not in memory.
    pub fn to_object(&self, host: Machine) -> Result<Vec<u8>, RegistrationError> {
        in_memory(&self.elf_pieces(host)?)
    }

    /// Writes the object file in pieces, which copy the inputs of the embedded pieces.
    pub(super) fn elf_pieces(&self, host: Machine) -> Result<Vec<Piece>, RegistrationError> {
        let mut writer = Writer::new(host)?;
        writer.claim_gnu_abi();
        let absolute = writer.code.absolute;
        let executable = elf::SHF_ALLOC | elf::SHF_EXECINSTR;
        let text = writer.section(".text", elf::SHT_PROGBITS, executable, 4)?;
        let binaries = writer.section(
            OFFLOADING_SECTION,
            elf::SectionType(SHT_LLVM_OFFLOADING),
            elf::SHF_EXCLUDE,
            8,
        )?;
        writer.object.embed(binaries, self.binaries, 8);
        let demand = writer.section(
            REFERENCE_SECTION,
            elf::SHT_PROGBITS,
            elf::SHF_WRITE | elf::SHF_ALLOC | elf::SHF_GNU_RETAIN,
            8,
        )?;
        writer.object.append(demand, &[0; 8], 8);
        let symbol = writer.undefined(NEEDS_OFFLOAD_LINK, elf::STV_DEFAULT);
        writer.relocate(demand, 0, absolute, symbol, 0)?;
        writer.globals(&[Global::Anchor { name: self.anchor }], binaries, text)?;
        writer.finish()
    }
}

/// Adds a reference to [`NEEDS_OFFLOAD_LINK`] to a host object in a range of `data`, whose images are elsewhere.
///
/// Input 0 of the pieces is `data`.
///
/// # Errors
///
/// Fails if the object is not an ELF object, or its machine has no machine code here.
pub fn add_demand<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<Piece>, RegistrationError> {
    let elf = Elf::parse(data, range.clone())
        .map_err(|problem| RegistrationError::Elf(problem.into()))?;
    let machine = elf.machine;
    let code = Code::of(machine).ok_or(RegistrationError::Machine { machine })?;
    add_reference(data, range, NEEDS_OFFLOAD_LINK, code.absolute).map_err(RegistrationError::Elf)
}
