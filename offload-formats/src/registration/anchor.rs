//! An object with one function that only returns. A call of the function links the archive member
//! that contains it.

use object::elf;

use super::error::in_memory;
use super::writer::Writer;
use super::{Global, RegistrationError};
use crate::container::elf::Machine;

/// Writes the object file for an ELF host.
///
/// # Errors
///
/// Fails if `host` has no machine code here, or `name` is not a symbol name.
pub fn to_object(host: Machine, name: &str) -> Result<Vec<u8>, RegistrationError> {
    let mut writer = Writer::new(host)?;
    let executable = elf::SHF_ALLOC | elf::SHF_EXECINSTR;
    let text = writer.section(".text", elf::SHT_PROGBITS, executable, 4)?;
    writer.globals(&[Global::Anchor { name }], text, text)?;
    in_memory(&writer.finish()?)
}

/// Writes the object file for an x86-64 host of Windows.
///
/// # Errors
///
/// Fails if `name` is not a symbol name.
pub fn to_coff(name: &str) -> Result<Vec<u8>, RegistrationError> {
    super::coff::anchor(name)
}
