//! An object of one function, which returns at once: calling it pulls what it was joined with out of an archive.

use object::elf;

use super::writer::Writer;
use super::{Global, RegistrationError};
use crate::container::elf::Machine;

/// The object file.
///
/// # Errors
///
/// When there is no machine code for `host`, or `name` is not a symbol name.
pub fn to_object(host: Machine, name: &str) -> Result<Vec<u8>, RegistrationError> {
    let mut writer = Writer::new(host)?;
    let executable = elf::SHF_ALLOC | elf::SHF_EXECINSTR;
    let text = writer.section(".text", elf::SHT_PROGBITS, executable, 4)?;
    writer.globals(&[Global::Anchor { name }], text, text)?;
    writer.finish()
}
