//! Writes objects that contain one section of data with symbols, for linkers.
//!
//! | part    | ELF (64 bits, little-endian)                                   | COFF (x86-64)                             |
//! |---------|----------------------------------------------------------------|-------------------------------------------|
//! | header  | 64 bytes                                                       | 20 bytes                                  |
//! | headers | at the end                                                     | 40 bytes for the only section             |
//! | content | allocated, read-only, large on request                         | initialized, read-only                    |
//! | symbols | global, hidden objects with sizes                              | external                                  |
//! | strings | one table of all names                                         | names of more than 8 bytes                |
//!
//! Specification: the gABI's chapters 4 "Object Files" and "Symbol Table"; Microsoft's "PE Format". This module makes the
//! bytes around the content, which may be large: the caller copies it.

use std::fmt;

use object::{elf, pe};

use super::elf::Machine;
use super::fields::{Fields, SectionHeader, elf_header};
use super::large::ImagePlacement;
use crate::format::pieces::Piece;

#[doc(inline)]
pub use offload_formats_core::names::host::DataHost;

/// A section of data and its symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataObject<'a> {
    /// Usual name of the section.
    pub section: &'a str,
    /// Placement by the linker; COFF has usual sections only.
    pub placement: ImagePlacement,
    /// Alignment of the section in bytes, a power of two; COFF allows at most 8192.
    pub alignment: u64,
    /// Symbols in the section.
    pub symbols: &'a [DataSymbol],
}

/// A symbol of the section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSymbol {
    /// The name.
    pub name: String,
    /// Offset from the start of the section in bytes.
    pub offset: u64,
    /// Size in bytes; COFF has no sizes.
    pub size: u64,
}

/// Reason why an object cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DataObjectError {
    /// The content, or a number that depends on its size, does not fit in the format.
    TooLarge {
        /// Size of the content in bytes.
        size: u64,
    },
    /// The alignment is not a power of two that the format can express.
    Alignment {
        /// Alignment in bytes.
        alignment: u64,
    },
}

impl fmt::Display for DataObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { size } => write!(f, "{size:#x} bytes are too large for this object"),
            Self::Alignment { alignment } => write!(
                f,
                "alignment {alignment:#x} is not a power of two that the object can have"
            ),
        }
    }
}

impl std::error::Error for DataObjectError {}

impl DataObject<'_> {
    /// Returns the object for `host` with `content`, whose inputs keep their numbers.
    ///
    /// # Errors
    ///
    /// Fails if the content is too large for the format, or the alignment is invalid.
    pub fn to_pieces(
        &self,
        host: DataHost,
        content: &[Piece],
    ) -> Result<Vec<Piece>, DataObjectError> {
        let alignment = self.alignment;
        if !alignment.is_power_of_two() {
            return Err(DataObjectError::Alignment { alignment });
        }
        let size = content.iter().try_fold(0_u64, |size, piece| {
            let sum = size.checked_add(piece.size());
            sum.ok_or(DataObjectError::TooLarge { size })
        })?;
        let (before, after) = match host {
            DataHost::Elf(machine) => self.elf(machine, size)?,
            DataHost::Coff => self.coff(size)?,
        };
        let mut pieces = vec![Piece::Bytes(before)];
        pieces.extend_from_slice(content);
        pieces.push(Piece::Bytes(after));
        Ok(pieces)
    }

    /// Returns the bytes before and after the content.
    fn elf(&self, machine: Machine, size: u64) -> Result<(Vec<u8>, Vec<u8>), DataObjectError> {
        const START: u64 = 64;
        const SYMBOL: u64 = 24;
        let too_large = DataObjectError::TooLarge { size };
        // Everything after the content takes less than this.
        let names = self.symbols.iter().map(|symbol| symbol.name.len() as u64);
        let after_content = names.sum::<u64>() + SYMBOL * self.symbols.len() as u64 + 4096;
        size.checked_add(after_content + START).ok_or(too_large)?;

        let mut strings = vec![0];
        let mut name = |name: &str| {
            let at = strings.len() as u32;
            strings.extend_from_slice(name.as_bytes());
            strings.push(0);
            at
        };
        let section = self.placement.section(self.section);
        let sections = [&*section, ".note.GNU-stack", ".symtab", ".strtab"].map(&mut name);
        let mut after = Fields::default();
        let end = START + size;
        let symbols_start = end.next_multiple_of(8);
        after.zeros(symbols_start - end);
        after.zeros(SYMBOL);
        for symbol in self.symbols {
            after.word(name(&symbol.name));
            after.bytes(&[elf::STB_GLOBAL.0 << 4 | elf::STT_OBJECT.0]);
            after.bytes(&[elf::STV_HIDDEN.0]);
            after.half(1);
            after.long(symbol.offset);
            after.long(symbol.size);
        }
        let strings_start = end + after.0.len() as u64;
        after.bytes(&strings);
        let headers = (end + after.0.len() as u64).next_multiple_of(8);
        after.zeros(headers - end - after.0.len() as u64);
        let symbols_size = strings_start - symbols_start;
        let strings_size = strings.len() as u64;
        let [data, stack, symtab, strtab] = sections;
        // The first symbol is local; without `.note.GNU-stack` linkers make the stack executable.
        let program = elf::SHT_PROGBITS.0;
        let (content, table) = ([START, size], [symbols_start, symbols_size]);
        let strings = [strings_start, strings_size];
        let rows: [SectionHeader; SECTIONS as usize] = [
            (0, elf::SHT_NULL.0, 0, [0, 0], [0, 0], [0, 0]),
            (
                data,
                program,
                self.placement.flags().0,
                content,
                [0, 0],
                [self.alignment, 0],
            ),
            (stack, program, 0, [end, 0], [0, 0], [1, 0]),
            (symtab, elf::SHT_SYMTAB.0, 0, table, [4, 1], [8, SYMBOL]),
            (strtab, elf::SHT_STRTAB.0, 0, strings, [0, 0], [1, 0]),
        ];
        for row in rows {
            after.section_header(row);
        }
        let header = elf_header(machine, elf::ELFOSABI_NONE.0, headers, SECTIONS);
        Ok((header, after.0))
    }

    /// Returns the bytes before and after the content.
    fn coff(&self, size: u64) -> Result<(Vec<u8>, Vec<u8>), DataObjectError> {
        const START: u32 = 20 + 40;
        const LARGEST_ALIGNMENT: u64 = 8192;
        let alignment = self.alignment;
        if alignment > LARGEST_ALIGNMENT {
            return Err(DataObjectError::Alignment { alignment });
        }
        let too_large = DataObjectError::TooLarge { size };
        let content_size = u32::try_from(size).map_err(|_| too_large)?;
        let symbols_start = START.checked_add(content_size).ok_or(too_large)?;
        // Offsets of strings count the four bytes of their size.
        let mut strings = vec![0; 4];
        let mut long_name = |name: &str| {
            let at = strings.len();
            strings.extend_from_slice(name.as_bytes());
            strings.push(0);
            at
        };
        let mut before = Fields::default();
        before.half(pe::IMAGE_FILE_MACHINE_AMD64.0);
        before.half(1);
        before.word(0);
        before.word(symbols_start);
        before.word(self.symbols.len() as u32);
        before.word(0);
        match self.section.len() {
            0..=8 => before.name(self.section),
            _ => before.name(&format!("/{}", long_name(self.section))),
        }
        let alignment_field = (alignment.trailing_zeros() + 1) << 20;
        let flags = pe::IMAGE_SCN_CNT_INITIALIZED_DATA | pe::IMAGE_SCN_MEM_READ;
        for word in [
            0,
            0,
            content_size,
            START,
            0,
            0,
            0,
            flags.0 | alignment_field,
        ] {
            before.word(word);
        }
        let mut after = Fields::default();
        for symbol in self.symbols {
            match symbol.name.len() {
                0..=8 => after.name(&symbol.name),
                _ => {
                    after.word(0);
                    after.word(long_name(&symbol.name) as u32);
                }
            }
            after.word(u32::try_from(symbol.offset).map_err(|_| too_large)?);
            after.half(1);
            after.half(0);
            after.bytes(&[pe::IMAGE_SYM_CLASS_EXTERNAL.0, 0]);
        }
        let strings_size = (strings.len() as u32).to_le_bytes();
        after.bytes(&strings_size);
        after.bytes(strings.get(4..).expect("the table begins with its size"));
        Ok((before.0, after.0))
    }
}

/// Number of section headers of an ELF object.
const SECTIONS: u16 = 5;

#[cfg(test)]
mod tests {
    use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolFlags};

    use super::*;
    use crate::format::pieces::to_bytes;

    fn symbols() -> Vec<DataSymbol> {
        let symbol = |name: &str, offset, size| DataSymbol {
            name: name.to_owned(),
            offset,
            size,
        };
        vec![symbol("short", 0, 11), symbol("a_longer_name", 3, 5)]
    }

    fn object(host: DataHost, section: &str) -> Vec<u8> {
        let object = DataObject {
            section,
            placement: ImagePlacement::Usual,
            alignment: 4096,
            symbols: &symbols(),
        };
        let content = Piece::Copy {
            input: 0,
            range: 0..11,
        };
        let pieces = object.to_pieces(host, &[content]).unwrap();
        to_bytes(&pieces, &[b"the content"]).unwrap()
    }

    /// The crate `object` reads what is written here.
    #[test]
    fn writes_objects_that_another_reader_reads() {
        for (host, name) in [
            (DataHost::Elf(Machine::X86_64), ".hip_fatbin"),
            (DataHost::Elf(Machine::RISCV64), ".x"),
            (DataHost::Coff, ".hip_fatbin"),
            (DataHost::Coff, ".x"),
        ] {
            let bytes = object(host, name);
            let file = object::File::parse(&*bytes).unwrap();
            let section = file.section_by_name(name).unwrap();
            assert_eq!(section.data().unwrap(), b"the content");
            assert_eq!(section.align(), 4096);
            match (host, section.flags()) {
                (DataHost::Elf(machine), SectionFlags::Elf { sh_flags, .. }) => {
                    assert_eq!(sh_flags, elf::SHF_ALLOC);
                    let flags = object::FileFlags::Elf {
                        os_abi: elf::ELFOSABI_NONE,
                        abi_version: 0,
                        e_flags: elf::FileFlags(machine.flags),
                    };
                    assert_eq!(file.flags(), flags);
                    assert!(file.section_by_name(".note.GNU-stack").is_some());
                }
                (DataHost::Coff, SectionFlags::Coff { characteristics }) => {
                    assert_eq!(characteristics.0, 0x40d0_0040);
                }
                (_, other) => panic!("{other:?}"),
            }
            let found: Vec<_> = file.symbols().collect();
            assert_eq!(found.len(), 2);
            for (found, symbol) in found.iter().zip(symbols()) {
                assert_eq!(found.name().unwrap(), symbol.name);
                assert_eq!(found.address(), symbol.offset);
                assert!(found.is_definition() && found.is_global());
                if let SymbolFlags::Elf { st_other, .. } = found.flags() {
                    assert_eq!(found.size(), symbol.size);
                    assert_eq!(st_other, elf::STV_HIDDEN.into());
                }
            }
        }
    }

    /// `SHF_X86_64_LARGE` is 0x10000000 in the x86-64 psABI.
    #[test]
    fn writes_sections_of_large_data() {
        let symbols = symbols();
        let object = |placement| {
            let object = DataObject {
                section: ".hip_fatbin",
                placement,
                alignment: 4096,
                symbols: &symbols,
            };
            let content = [Piece::Zeros(11)];
            let pieces = object.to_pieces(DataHost::Elf(Machine::X86_64), &content);
            to_bytes(&pieces.unwrap(), &[]).unwrap()
        };
        let large = object(ImagePlacement::Large);
        let file = object::File::parse(&*large).unwrap();
        let section = file.section_by_name(".lrodata.hip_fatbin").unwrap();
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
            panic!("{:?}", section.flags());
        };
        assert_eq!(sh_flags.0, 0x1000_0002);
        assert_eq!(section.align(), 4096);
        let usual = object(ImagePlacement::Usual);
        assert!(
            object::File::parse(&*usual)
                .unwrap()
                .section_by_name(".hip_fatbin")
                .is_some()
        );
    }

    #[test]
    fn rejects_what_the_format_cannot_express() {
        let object = |alignment| DataObject {
            section: ".x",
            placement: ImagePlacement::Usual,
            alignment,
            symbols: &[],
        };
        let error = |alignment, host, size| {
            let pieces = object(alignment).to_pieces(host, &[Piece::Zeros(size)]);
            pieces.unwrap_err().to_string()
        };
        let elf = DataHost::Elf(Machine::X86_64);
        assert_eq!(
            error(3, elf, 1),
            "alignment 0x3 is not a power of two that the object can have"
        );
        assert_eq!(
            error(1 << 14, DataHost::Coff, 1),
            "alignment 0x4000 is not a power of two that the object can have"
        );
        assert_eq!(
            error(1, DataHost::Coff, 1 << 32),
            "0x100000000 bytes are too large for this object"
        );
        assert_eq!(
            error(1, elf, u64::MAX),
            "0xffffffffffffffff bytes are too large for this object"
        );
    }
}
