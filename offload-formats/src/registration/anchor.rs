//! An object of one function, which returns at once: calling it pulls what it was joined with out of an archive.

use object::elf;

use super::writer::Writer;
use super::{Error, Global};
use crate::container::elf::Machine;

/// Returns the object file for an ELF host.
///
/// # Errors
///
/// When there is no machine code for `host`, or `name` is not a symbol name.
pub fn to_object(host: Machine, name: &str) -> Result<Vec<u8>, Error> {
    let mut writer = Writer::new(host)?;
    let executable = elf::SHF_ALLOC | elf::SHF_EXECINSTR;
    let text = writer.section(".text", elf::SHT_PROGBITS, executable, 4)?;
    writer.globals(&[Global::Anchor { name }], text, text)?;
    writer.finish()
}

/// Returns the object file for an x86-64 host of Windows.
///
/// # Errors
///
/// If `name` is not a symbol name.
pub fn to_coff(name: &str) -> Result<Vec<u8>, Error> {
    super::coff::anchor(name)
}
