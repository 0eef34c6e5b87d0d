//! The symbols of an ELF file.

use object::read::elf::Sym;
use object::{Endian as _, Endianness, elf};

use super::{Elf, ElfError, ElfSection, Headers, string};
use crate::format::bytes::ReadAt;

/// A symbol of an ELF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ElfSymbol<'d> {
    /// Name, without NUL.
    pub name: &'d [u8],
    /// Visibility to other objects of a link.
    pub binding: Binding,
    /// True for a hidden or internal symbol, which other linked files do not see.
    pub hidden: bool,
    /// Type (`st_type`).
    pub symbol_type: u8,
    /// Visibility and flags that depend on the machine (`st_other`).
    pub other: u8,
    /// Place of the definition.
    pub place: SymbolPlace,
    /// Value (`st_value`).
    pub value: u64,
    /// Size in bytes.
    pub size: u64,
}

/// Visibility of a symbol to other objects of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Binding {
    /// Only its object sees the symbol.
    Local,
    /// All objects see the symbol.
    Global,
    /// All objects see the symbol. Another definition may replace it, and it may be undefined.
    Weak,
}

/// Place of a symbol's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SymbolPlace {
    /// Another object.
    Undefined,
    /// The section with that index.
    Section(u32),
    /// A special index: an absolute value, common storage, or a processor's own.
    Other(u16),
}

/// One of a file's symbol tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolTable {
    /// All symbols; missing in a stripped file.
    All,
    /// The symbols that the dynamic linker needs.
    Dynamic,
}

impl ElfSymbol<'_> {
    /// Returns true for a function, also one that is chosen when the program starts (`STT_GNU_IFUNC`).
    #[must_use]
    pub fn is_function(&self) -> bool {
        matches!(
            elf::SymbolType(self.symbol_type),
            elf::STT_FUNC | elf::STT_GNU_IFUNC
        )
    }

    /// Returns true for a variable that all threads share.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.symbol_type == elf::STT_OBJECT.0
    }

    /// Returns true for a symbol that represents its section.
    #[must_use]
    pub fn is_section(&self) -> bool {
        self.symbol_type == elf::STT_SECTION.0
    }
}

impl<'d, R: ReadAt<'d>> Elf<'d, R> {
    /// Reads a symbol table. The result is empty if the file has no such table.
    ///
    /// # Errors
    ///
    /// Fails if the table, its names, or a name is not inside the file.
    pub fn symbols(&self, table: SymbolTable) -> Result<Vec<ElfSymbol<'d>>, ElfError> {
        let wanted = match table {
            SymbolTable::All => elf::SHT_SYMTAB,
            SymbolTable::Dynamic => elf::SHT_DYNSYM,
        };
        let Some(table) = self
            .sections()
            .find(|section| section.section_type == wanted.0)
        else {
            return Ok(Vec::new());
        };
        match self.headers {
            Headers::Elf32(_) => self.symbols_of::<elf::Sym32<Endianness>>(&table),
            Headers::Elf64(_) => self.symbols_of::<elf::Sym64<Endianness>>(&table),
        }
    }

    /// Tells for each symbol of the dynamic table whether only references to its version lead to it; the list is empty without
    /// versions.
    ///
    /// # Errors
    ///
    /// Fails if the versions are not inside the file.
    #[cfg(feature = "tools")]
    pub fn hidden_versions(&self) -> Result<Vec<bool>, ElfError> {
        /// Bit of a version that is not the default.
        const HIDDEN: u16 = 0x8000;
        let mut sections = self.sections();
        let versions = sections.find(|section| section.section_type == elf::SHT_GNU_VERSYM.0);
        let content = versions.map(|section| self.content(&section)).transpose()?;
        let versions = content.unwrap_or_default().chunks_exact(2);
        let versions = versions.map(|bytes| match *bytes {
            [first, second] => self.endian.read_u16([first, second]),
            _ => 0,
        });
        Ok(versions.map(|version| version & HIDDEN != 0).collect())
    }

    fn symbols_of<S: Sym<Endian = Endianness>>(
        &self,
        table: &ElfSection,
    ) -> Result<Vec<ElfSymbol<'d>>, ElfError> {
        let endian = self.endian;
        let strings = self.content(&self.section(table.link)?)?;
        // A separate table contains the section indices that do not fit into a symbol.
        let wide = |section: &ElfSection| {
            section.section_type == elf::SHT_SYMTAB_SHNDX.0 && section.link == table.index
        };
        let wide = self
            .sections()
            .find(wide)
            .map(|section| self.content(&section))
            .transpose()?;
        let mut wide = wide.unwrap_or_default().chunks_exact(4);
        let entries = object::pod::slice_from_all_bytes::<S>(self.content(table)?)
            .map_err(|()| ElfError::SymbolTable { index: table.index })?;
        let mut symbols = Vec::with_capacity(entries.len());
        for (index, symbol) in (0..).zip(entries) {
            let offset = symbol.st_name(endian);
            let name = string(strings, offset).ok_or(ElfError::SymbolName { index, offset })?;
            symbols.push(ElfSymbol {
                name,
                binding: match symbol.st_bind() {
                    elf::STB_LOCAL => Binding::Local,
                    elf::STB_WEAK => Binding::Weak,
                    _ => Binding::Global,
                },
                hidden: matches!(symbol.st_visibility(), elf::STV_HIDDEN | elf::STV_INTERNAL),
                symbol_type: symbol.st_type().0,
                other: symbol.st_other().0,
                place: match (symbol.st_shndx(endian), wide.next()) {
                    (elf::SHN_UNDEF, _) => SymbolPlace::Undefined,
                    (elf::SHN_XINDEX, Some(bytes)) => {
                        let bytes = bytes.try_into().expect("chunks have 4 bytes");
                        SymbolPlace::Section(endian.read_u32(bytes))
                    }
                    (section, _) if section.is_special() => SymbolPlace::Other(section.0),
                    (section, _) => SymbolPlace::Section(section.0.into()),
                },
                value: symbol.st_value(endian).into(),
                size: symbol.st_size(endian).into(),
            });
        }
        Ok(symbols)
    }
}
