//! Adds a section that refers to a symbol of another object.

use std::ops::Range;

use object::elf;

use super::super::ElfWriteError;
use super::file::{EditedElf, EditedElfSection, SectionContent};
use super::form::ElfForm;
use crate::format::bytes::ReadAt;
use crate::format::pieces::Piece;

/// Name of the section that refers to a symbol which only `offload-link` defines.
pub(crate) const REFERENCE_SECTION: &str = ".data.rel.ro.offload_link";
const RELOCATIONS: &str = ".rela.data.rel.ro.offload_link";

/// Adds the section [`REFERENCE_SECTION`] with the address of a symbol that the object does not
/// define. Linkers keep the section, also with `--gc-sections`, so a link without the symbol fails.
/// `address` is the machine's relocation for a 64-bit address.
///
/// Input 0 of the pieces is `data`.
///
/// # Errors
///
/// Fails as [`add_sections`](super::add_sections) does, and for 32-bit objects, objects for MIPS (whose
/// relocations have another layout), and objects without a symbol table.
pub(crate) fn add_reference<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    symbol: &'d str,
    address: elf::RelocationType,
) -> Result<Vec<Piece>, ElfWriteError> {
    let mut file = EditedElf::read(data, range)?;
    file.remove(|_, _| false)?;
    let form = file.form;
    if !form.wide {
        return Err(ElfWriteError::NotWide);
    }
    if form.mips {
        let number = elf::EM_MIPS.0;
        return Err(ElfWriteError::Machine { number });
    }
    let no_symbols = || ElfWriteError::NoSection {
        name: ".symtab".into(),
    };
    let symbols = file.symbols.as_mut().ok_or_else(no_symbols)?;
    let symbol = symbols.add(&UNDEFINED, symbol.as_bytes());
    let table = symbols.index;
    let index = file.parts.len() as u32;
    file.parts.push(EditedElfSection::retained());
    let bytes = relocation(form, symbol, address)?;
    file.parts
        .push(EditedElfSection::relocations(bytes, table, index));
    // Without this, SHF_GNU_RETAIN has no meaning.
    file.gnu_abi = true;
    file.write()
}

/// Encodes a relocation of the first 8 bytes of a section.
fn relocation(
    form: ElfForm,
    symbol: u32,
    kind: elf::RelocationType,
) -> Result<Vec<u8>, ElfWriteError> {
    let info = u64::from(symbol) << 32 | u64::from(kind.0);
    let fields = [0, info, 0].map(|field| form.word(field));
    let fields: Vec<Vec<u8>> = fields.into_iter().collect::<Result<_, _>>()?;
    Ok(fields.concat())
}

/// An undefined global 64-bit symbol: only `st_info` is not zero.
static UNDEFINED: [u8; size_of::<elf::Sym64<object::Endianness>>()] = {
    let mut symbol = [0; size_of::<elf::Sym64<object::Endianness>>()];
    symbol[std::mem::offset_of!(elf::Sym64<object::Endianness>, st_info)] = elf::STB_GLOBAL.0 << 4;
    symbol
};

impl EditedElfSection<'_> {
    /// Creates a section of 8 zeros that linkers keep.
    fn retained() -> Self {
        let mut part = Self::empty(REFERENCE_SECTION.as_bytes(), elf::SHT_PROGBITS.0, 8);
        part.section.flags = (elf::SHF_WRITE | elf::SHF_ALLOC | elf::SHF_GNU_RETAIN).0;
        part.section.size = 8;
        part.content = SectionContent::New(Piece::Zeros(8));
        part
    }

    /// Creates the relocations of the section with index `of`, with symbols of section `table`.
    fn relocations(bytes: Vec<u8>, table: u32, of: u32) -> Self {
        let mut part = Self::empty(RELOCATIONS.as_bytes(), elf::SHT_RELA.0, 8);
        part.section.flags = elf::SHF_INFO_LINK.0;
        part.section.size = bytes.len() as u64;
        part.section.entry_size = bytes.len() as u64;
        (part.section.link, part.section.info) = (table, of);
        part.content = SectionContent::New(Piece::Bytes(bytes));
        part
    }
}
