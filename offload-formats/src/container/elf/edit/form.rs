//! Class and byte order of a file: the encoding of its numbers.

use std::mem::offset_of;

use object::{Endian as _, Endianness, elf};

use super::super::{Elf, ElfWriteError, Headers};

/// Relocations in the compact form of LLVM 20.
pub(super) const SHT_CREL: elf::SectionType = elf::SectionType(0x4000_0014);

/// Class and byte order of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElfForm {
    pub(super) wide: bool,
    pub(super) mips: bool,
    pub(super) endian: Endianness,
}

impl ElfForm {
    pub(super) fn of<R>(file: &Elf<'_, R>) -> Self {
        Self {
            wide: matches!(file.headers, Headers::Elf64(_)),
            mips: file.machine == elf::EM_MIPS.0,
            endian: file.endian,
        }
    }

    /// Returns the size of an address.
    pub(super) fn word_size(self) -> u64 {
        if self.wide { 8 } else { 4 }
    }

    pub(super) fn u16(self, value: u16) -> [u8; 2] {
        self.endian.write_u16(value)
    }

    pub(super) fn u32(self, value: u32) -> [u8; 4] {
        self.endian.write_u32(value)
    }

    /// Encodes a number with the size of an address.
    ///
    /// # Errors
    ///
    /// Fails if the number is too large.
    pub(super) fn word(self, value: u64) -> Result<Vec<u8>, ElfWriteError> {
        if self.wide {
            return Ok(self.endian.write_u64(value).to_vec());
        }
        let value = u32::try_from(value).map_err(|_| ElfWriteError::TooLarge { value })?;
        Ok(self.u32(value).to_vec())
    }

    /// Decodes number `place` of a record of numbers with the size of an address.
    pub(super) fn word_at(self, record: &[u8], place: usize) -> u64 {
        let size = self.word_size() as usize;
        let bytes = record.chunks_exact(size).nth(place);
        let bytes = bytes.expect("the record's size was checked");
        match bytes.try_into() {
            Ok(bytes) => self.endian.read_u64(bytes),
            Err(_) => self.number(bytes).into(),
        }
    }

    /// Decodes a 32-bit number.
    pub(super) fn number(self, bytes: &[u8]) -> u32 {
        let bytes = bytes.try_into().expect("a 32-bit number has 4 bytes");
        self.endian.read_u32(bytes)
    }

    /// Returns the sizes of the file header, a program header, a section header and a symbol.
    pub(super) fn sizes(self) -> [u16; 4] {
        let sizes = if self.wide {
            [
                size_of::<elf::FileHeader64<Endianness>>(),
                size_of::<elf::ProgramHeader64<Endianness>>(),
                size_of::<elf::SectionHeader64<Endianness>>(),
                size_of::<elf::Sym64<Endianness>>(),
            ]
        } else {
            [
                size_of::<elf::FileHeader32<Endianness>>(),
                size_of::<elf::ProgramHeader32<Endianness>>(),
                size_of::<elf::SectionHeader32<Endianness>>(),
                size_of::<elf::Sym32<Endianness>>(),
            ]
        };
        sizes.map(|size| size as u16)
    }

    /// Returns the offset of a symbol's section index.
    pub(super) fn symbol_section(self) -> usize {
        if self.wide {
            offset_of!(elf::Sym64<Endianness>, st_shndx)
        } else {
            offset_of!(elf::Sym32<Endianness>, st_shndx)
        }
    }

    /// Returns the offset of a program header's segment offset.
    pub(super) fn segment_offset(self) -> usize {
        if self.wide {
            offset_of!(elf::ProgramHeader64<Endianness>, p_offset)
        } else {
            offset_of!(elf::ProgramHeader32<Endianness>, p_offset)
        }
    }
}
