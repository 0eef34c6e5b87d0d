//! Place of the symbols in an object.

use object::elf;

use super::CodeObjectError;
use crate::container::elf::Elf;

/// Size of a 64-bit symbol.
pub(super) const SYMBOL_SIZE: usize = size_of::<elf::Sym64<object::LittleEndian>>();

/// Returns the offset of the symbol table in the file; nothing without one.
pub(super) fn start_of_symbols(elf: &Elf<'_, &[u8]>) -> Result<Option<usize>, CodeObjectError> {
    let mut sections = elf.sections();
    let table = sections.find(|section| section.section_type == elf::SHT_SYMTAB.0);
    let start = table.map(|table| usize::try_from(table.offset));
    start.transpose().map_err(|_| CodeObjectError::Symbols)
}
