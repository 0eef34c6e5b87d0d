//! The object as an ELF file.

use object::{SymbolKind, elf};

use super::file_fields::FileFields;
use super::{NewSymbol, RelocatableObject, RelocatableSection};
use crate::container::elf::Machine;
use crate::container::fields::{Fields, elf_header};
use crate::container::relocatable::DataObjectError;
use crate::format::pieces::Piece;
use crate::format::string_table::{StringTable, StringTableBuilder};

/// Size of a symbol in bytes.
const SYMBOL: u64 = 24;
/// Size of a relocation in bytes.
const RELOCATION: u64 = 24;
/// Size of the file's header, and of each section header, in bytes.
const HEADER: u64 = 64;

impl RelocatableObject<'_> {
    /// Returns the file for `machine` in pieces; `os_abi` is `EI_OSABI`.
    ///
    /// # Errors
    ///
    /// Fails if a number does not fit in its field.
    pub(crate) fn to_elf(
        &self,
        machine: Machine,
        os_abi: u8,
    ) -> Result<Vec<Piece>, DataObjectError> {
        let relocation_names = self.relocation_names();
        let names = self.section_names(&relocation_names);
        let mut file = FileFields::after_header(HEADER);
        let contents = self.sections.iter().map(|section| {
            // Offsets in an object need no alignment; that of pages spares readers copies.
            let offset = file.align(section.alignment.min(0x1000));
            file.fields.bytes(&section.data);
            file.embed(section);
            offset
        });
        let contents: Vec<u64> = contents.collect();
        let symbols_start = file.align(8);
        let locals = self.write_symbols(&mut file.fields)?;
        let strings_start = symbols_start + SYMBOL * (self.symbols.len() as u64 + 1);
        let strings_size = file.end() - strings_start;
        let symbol_table = small(self.symbol_table())?;
        let mut headers = Fields::default();
        headers.section_header((0, elf::SHT_NULL.0, 0, [0, 0], [0, 0], [0, 0]));
        let rows = self.sections.iter().zip(&relocation_names).zip(contents);
        for ((section, relocations), offset) in rows {
            headers.section_header((
                place(&names, &section.name)?,
                section.section_type,
                section.flags,
                [offset, section.size()],
                [0, 0],
                [section.alignment, 0],
            ));
            let Some(name) = relocations else {
                continue;
            };
            let of = small(headers.0.len() as u64 / 64 - 1)?;
            let offset = self.write_relocations(section, &mut file)?;
            headers.section_header((
                place(&names, name)?,
                elf::SHT_RELA.0,
                elf::SHF_INFO_LINK.0,
                [offset, RELOCATION * section.relocations.len() as u64],
                [symbol_table, of],
                [8, RELOCATION],
            ));
        }
        let names_start = file.end();
        file.fields.bytes(&names.bytes);
        headers.section_header((
            place(&names, ".symtab")?,
            elf::SHT_SYMTAB.0,
            0,
            [symbols_start, strings_start - symbols_start],
            [symbol_table + 1, locals],
            [8, SYMBOL],
        ));
        let names_size = names.bytes.len() as u64;
        for (name, range) in [
            (".strtab", [strings_start, strings_size]),
            (".shstrtab", [names_start, names_size]),
        ] {
            let name = place(&names, name)?;
            headers.section_header((name, elf::SHT_STRTAB.0, 0, range, [0, 0], [1, 0]));
        }
        let header = write_headers(machine, os_abi, &headers, &mut file)?;
        Ok(file.finish(header))
    }

    /// Returns the name of each section's relocations, if it has any.
    fn relocation_names(&self) -> Vec<Option<String>> {
        let name = |section: &RelocatableSection<'_>| {
            let is_needed = !section.relocations.is_empty();
            is_needed.then(|| format!(".rela{}", section.name))
        };
        self.sections.iter().map(name).collect()
    }

    /// Returns the table with the names of all sections.
    fn section_names<'n>(&'n self, relocation_names: &'n [Option<String>]) -> StringTable<'n> {
        let mut names = StringTableBuilder::default();
        for section in &self.sections {
            names.add(section.name.as_bytes());
        }
        for name in relocation_names.iter().flatten() {
            names.add(name.as_bytes());
        }
        for name in [".symtab", ".strtab", ".shstrtab"] {
            names.add(name.as_bytes());
        }
        names.layout(b"\0")
    }

    /// Returns the index of the symbol table: after all sections and their relocations.
    fn symbol_table(&self) -> u64 {
        let with_relocations = |section: &&RelocatableSection<'_>| !section.relocations.is_empty();
        let relocations = self.sections.iter().filter(with_relocations).count();
        (1 + self.sections.len() + relocations) as u64
    }

    /// Writes the symbols and their names; returns the number of local ones, with the first, which is empty.
    fn write_symbols(&self, file: &mut Fields) -> Result<u32, DataObjectError> {
        let mut strings = StringTableBuilder::default();
        for symbol in &self.symbols {
            strings.add(symbol.name.as_bytes());
        }
        let strings = strings.layout(b"\0");
        file.zeros(SYMBOL);
        let (locals, globals): (Vec<_>, Vec<_>) =
            self.symbols.iter().partition(|symbol| symbol.is_local);
        for symbol in locals.iter().chain(&globals) {
            file.word(place(&strings, &symbol.name)?);
            file.bytes(&[symbol.info(), symbol.visibility.0]);
            file.half(match (symbol.section, symbol.kind) {
                (Some(section), _) => self.section_index(section.0) as u16,
                (None, SymbolKind::File) => elf::SHN_ABS.0,
                (None, _) => elf::SHN_UNDEF.0,
            });
            file.long(symbol.value);
            file.long(symbol.size);
        }
        file.bytes(&strings.bytes);
        small(locals.len() as u64 + 1)
    }

    /// Writes the relocations of a section, and returns their offset.
    fn write_relocations(
        &self,
        section: &RelocatableSection<'_>,
        file: &mut FileFields,
    ) -> Result<u64, DataObjectError> {
        let numbers = self.symbol_numbers();
        let offset = file.align(8);
        for relocation in &section.relocations {
            let symbol = numbers.get(relocation.symbol.0);
            let symbol = *symbol.expect("an ID is one of its object");
            let fields = &mut file.fields;
            fields.long(relocation.offset);
            fields.word(relocation.relocation_type);
            fields.word(small(symbol)?);
            fields.long(relocation.addend as u64);
        }
        Ok(offset)
    }

    /// Returns the number of each symbol in the table, by ID.
    fn symbol_numbers(&self) -> Vec<u64> {
        let locals = self.symbols.iter().filter(|symbol| symbol.is_local);
        let (mut local, mut global) = (1, 1 + locals.count() as u64);
        let next = |symbol: &NewSymbol| {
            let next = match symbol.is_local {
                true => &mut local,
                false => &mut global,
            };
            *next += 1;
            *next - 1
        };
        self.symbols.iter().map(next).collect()
    }

    /// Returns the index of a section: those before it may have sections of relocations.
    fn section_index(&self, section: usize) -> usize {
        let before = self.sections.iter().take(section);
        let relocations = before.filter(|section| !section.relocations.is_empty());
        1 + section + relocations.count()
    }
}

impl NewSymbol {
    /// Returns `st_info`: binding and type.
    fn info(&self) -> u8 {
        let binding = match (self.is_weak, self.is_local) {
            (true, _) => elf::STB_WEAK,
            (false, true) => elf::STB_LOCAL,
            (false, false) => elf::STB_GLOBAL,
        };
        let kind = match (self.kind, self.section) {
            (SymbolKind::File, _) => elf::STT_FILE,
            (_, None) => elf::STT_NOTYPE,
            (SymbolKind::Text, _) => elf::STT_FUNC,
            (SymbolKind::Section, _) => elf::STT_SECTION,
            _ => elf::STT_OBJECT,
        };
        binding.0 << 4 | kind.0
    }
}

/// Writes the section headers, and returns the header at the start of the file.
fn write_headers(
    machine: Machine,
    os_abi: u8,
    headers: &Fields,
    file: &mut FileFields,
) -> Result<Vec<u8>, DataObjectError> {
    let start = file.align(8);
    let size = headers.0.len() as u64;
    // Larger numbers are special section indexes.
    let count = u16::try_from(size / HEADER).ok();
    let count = count.filter(|count| *count < elf::SHN_LORESERVE);
    let count = count.ok_or(too_large(size))?;
    file.fields.bytes(&headers.0);
    Ok(elf_header(machine, os_abi, start, count))
}

fn place(names: &StringTable<'_>, name: &str) -> Result<u32, DataObjectError> {
    let offset = names.offset(name.as_bytes());
    small(offset.expect("the table has all names"))
}

fn small(number: u64) -> Result<u32, DataObjectError> {
    u32::try_from(number).map_err(|_| too_large(number))
}

const fn too_large(size: u64) -> DataObjectError {
    DataObjectError::TooLarge { size }
}
