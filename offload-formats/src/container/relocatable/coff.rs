//! The object as a COFF file.

use object::{SymbolKind, pe};

use super::file_fields::FileFields;
use super::{NewRelocation, NewSymbol, RelocatableObject, RelocatableSection};
use crate::container::fields::Fields;
use crate::container::relocatable::DataObjectError;
use crate::format::pieces::Piece;
use crate::format::string_table::{StringTable, StringTableBuilder};

/// Size of a symbol, and of each auxiliary record after it, in bytes.
const SYMBOL: usize = pe::IMAGE_SIZEOF_SYMBOL;
/// Largest alignment of a section in bytes.
const LARGEST_ALIGNMENT: u64 = 8192;
/// Largest offset of a section's name in bytes: seven decimal digits.
const LARGEST_NAME_OFFSET: u64 = 9_999_999;
/// Largest number of relocations in a section header; more are counted by the first relocation.
const MOST_RELOCATIONS: usize = 0xffff;

impl RelocatableObject<'_> {
    /// Returns the file for x86-64 in pieces.
    ///
    /// Checksums of sections are zero: linkers that keep any of the COMDAT sections compare none.
    ///
    /// # Errors
    ///
    /// Fails if an alignment is larger than 8192, or a number does not fit in its field.
    pub(crate) fn to_coff(&self) -> Result<Vec<Piece>, DataObjectError> {
        let mut strings = StringTableBuilder::default();
        let sections = self.sections.iter().map(|section| &*section.name);
        let symbols = self.symbols.iter().map(|symbol| self.name(symbol));
        for name in sections.chain(symbols).filter(|name| is_long(name)) {
            strings.add(name.as_bytes());
        }
        let strings = strings.layout(&[0; 4]);

        let count = self.sections.len() as u64;
        let mut headers = Fields::default();
        let mut file = FileFields::after_header(20 + 40 * count);
        for section in &self.sections {
            self.write_section(section, &strings, &mut headers, &mut file)?;
        }
        let symbols_start = small(file.end())?;
        for symbol in &self.symbols {
            self.write_symbol(symbol, &strings, &mut file.fields)?;
        }
        let records = (file.end() - u64::from(symbols_start)) / SYMBOL as u64;
        file.fields.word(small(strings.bytes.len() as u64)?);
        let text = strings.bytes.get(4..);
        let text = text.expect("the table begins with its size");
        file.fields.bytes(text);

        let mut header = Fields::default();
        header.half(pe::IMAGE_FILE_MACHINE_AMD64.0);
        header.half(u16::try_from(count).map_err(|_| too_large(count))?);
        header.word(0);
        header.word(symbols_start);
        header.word(small(records)?);
        header.word(0);
        header.bytes(&headers.0);
        Ok(file.finish(header.0))
    }

    /// Writes the content and the relocations of a section, and its header.
    fn write_section(
        &self,
        section: &RelocatableSection<'_>,
        strings: &StringTable<'_>,
        headers: &mut Fields,
        file: &mut FileFields,
    ) -> Result<(), DataObjectError> {
        let alignment = section.alignment;
        if alignment > LARGEST_ALIGNMENT {
            return Err(DataObjectError::Alignment { alignment });
        }
        let has_content = section.zeros == 0 && section.size() > 0;
        let content = match has_content {
            false => 0,
            true => file.align(4),
        };
        let mut data = section.data.to_vec();
        for relocation in &section.relocations {
            relocation.write_addend(&mut data);
        }
        file.fields.bytes(&data);
        file.embed(section);
        let count = section.relocations.len();
        let relocations = match count {
            0 => 0,
            _ => file.end(),
        };
        let is_many = count > MOST_RELOCATIONS;
        let fields = &mut file.fields;
        if is_many {
            fields.word(small(count as u64 + 1)?);
            fields.zeros(6);
        }
        let numbers = self.record_numbers();
        for relocation in &section.relocations {
            let symbol = numbers.get(relocation.symbol.0);
            let symbol = *symbol.expect("an ID is one of its object");
            fields.word(small(relocation.offset)?);
            fields.word(small(symbol as u64)?);
            fields.half(relocation.relocation_type as u16);
        }
        match is_long(&section.name) {
            false => headers.name(&section.name),
            true => {
                let offset = place(strings, &section.name);
                if offset > LARGEST_NAME_OFFSET {
                    return Err(too_large(offset));
                }
                headers.name(&format!("/{offset}"));
            }
        }
        headers.long(0);
        for field in [section.size(), content, relocations, 0] {
            headers.word(small(field)?);
        }
        headers.half(count.min(MOST_RELOCATIONS) as u16);
        headers.half(0);
        let overflow = match is_many {
            true => pe::IMAGE_SCN_LNK_NRELOC_OVFL.0,
            false => 0,
        };
        headers.word(section.flags as u32 | overflow | (alignment.trailing_zeros() + 1) << 20);
        Ok(())
    }

    /// Writes a symbol and its auxiliary records.
    fn write_symbol(
        &self,
        symbol: &NewSymbol,
        strings: &StringTable<'_>,
        file: &mut Fields,
    ) -> Result<(), DataObjectError> {
        let name = self.name(symbol);
        match is_long(name) {
            false => file.name(name),
            true => {
                file.word(0);
                file.word(small(place(strings, name))?);
            }
        }
        file.word(small(symbol.value)?);
        let section = match (symbol.section, symbol.kind) {
            (Some(section), _) => section.0 as u16 + 1,
            (None, SymbolKind::File) => pe::IMAGE_SYM_DEBUG.0 as u16,
            (None, _) => pe::IMAGE_SYM_UNDEFINED.0 as u16,
        };
        file.half(section);
        file.half(match symbol.kind {
            SymbolKind::Text => pe::SymbolType::from(pe::IMAGE_SYM_DTYPE_FUNCTION).0,
            _ => 0,
        });
        let class = match (symbol.kind, symbol.is_local) {
            (SymbolKind::File, _) => pe::IMAGE_SYM_CLASS_FILE,
            (_, true) => pe::IMAGE_SYM_CLASS_STATIC,
            (_, false) => pe::IMAGE_SYM_CLASS_EXTERNAL,
        };
        file.bytes(&[class.0, auxiliary_records(symbol) as u8]);
        match (symbol.kind, symbol.section) {
            (SymbolKind::File, _) => {
                let padding = auxiliary_records(symbol) * SYMBOL - symbol.name.len();
                file.bytes(symbol.name.as_bytes());
                file.zeros(padding as u64);
            }
            (SymbolKind::Section, Some(section)) => {
                let section = self.section(section);
                let count = section.relocations.len().min(MOST_RELOCATIONS);
                file.word(small(section.size())?);
                file.half(count as u16);
                file.zeros(8);
                // Of COMDAT sections with the same symbol, linkers keep any.
                let selection = match section.flags as u32 & pe::IMAGE_SCN_LNK_COMDAT.0 {
                    0 => 0,
                    _ => pe::IMAGE_COMDAT_SELECT_ANY.0,
                };
                file.bytes(&[selection, 0, 0, 0]);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the number of each symbol's record, by ID.
    fn record_numbers(&self) -> Vec<usize> {
        let mut next = 0;
        let number = |symbol| {
            let number = next;
            next += 1 + auxiliary_records(symbol);
            number
        };
        self.symbols.iter().map(number).collect()
    }

    /// Returns the name in a symbol's record; that of a source is in the records after it.
    fn name<'s>(&'s self, symbol: &'s NewSymbol) -> &'s str {
        match (symbol.kind, symbol.section) {
            (SymbolKind::File, _) => ".file",
            (SymbolKind::Section, Some(section)) => &self.section(section).name,
            _ => &symbol.name,
        }
    }
}

impl NewRelocation {
    /// Writes the addend into the content of the section.
    fn write_addend(&self, content: &mut [u8]) {
        let kind = pe::RelocationType(self.relocation_type as u16);
        let (size, end) = match kind {
            pe::IMAGE_REL_AMD64_ADDR64 => (8, 0),
            // Relative to the end of the field.
            pe::IMAGE_REL_AMD64_REL32 => (4, 4),
            _ => (4, 0),
        };
        let value = (self.addend + end).to_le_bytes();
        let offset = self.offset as usize;
        let field = content.get_mut(offset..offset + size);
        let field = field.expect("a relocation is in the content of its section");
        field.copy_from_slice(value.get(..size).expect("at most eight bytes"));
    }
}

/// Returns the number of records after a symbol: the file's name, or the description of a section.
fn auxiliary_records(symbol: &NewSymbol) -> usize {
    match symbol.kind {
        SymbolKind::File => symbol.name.len().div_ceil(SYMBOL),
        SymbolKind::Section => 1,
        _ => 0,
    }
}

fn is_long(name: &str) -> bool {
    name.len() > 8
}

fn place(strings: &StringTable<'_>, name: &str) -> u64 {
    let offset = strings.offset(name.as_bytes());
    offset.expect("the table has all long names")
}

fn small(number: u64) -> Result<u32, DataObjectError> {
    u32::try_from(number).map_err(|_| too_large(number))
}

const fn too_large(size: u64) -> DataObjectError {
    DataObjectError::TooLarge { size }
}
