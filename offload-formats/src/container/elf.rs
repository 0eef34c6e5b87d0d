//! ELF files: reads headers, names and symbols, and adds, removes and renames sections.
//!
//! The type `0x6fff4c0b` marks sections of offload binaries; their names do not matter.
//! Compilers mark them `SHF_EXCLUDE`: the linker wrapper reads them, and the host linker drops them.
//! A linked program has them as `SHF_ALLOC`.
//!
//! A link reads every object, so [`Elf::parse`] reads only the file header and the section
//! headers. Names and symbols are read on request. Both classes and byte orders are supported.
//! The layouts are those of the crate `object`.
//!
//! Specification: <https://gabi.xinuos.com>; the section type:
//! <https://llvm.org/docs/Extensions.html>.

use std::ops::Range;

use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, elf};

use crate::container::view::View;
use crate::format::bytes::{Cursor, OutOfBounds, ReadAt};

mod edit;
mod entries;
mod error;
mod groups;
mod notes;
#[cfg(feature = "tools")]
pub(super) mod relocations;
mod rename;
mod separate;
mod symbols;
mod write;

#[cfg(feature = "tools")]
pub use edit::remove_sections;
pub use edit::{ElfRelocation, add_sections};
pub(crate) use edit::{REFERENCE_SECTION, add_reference};
pub use entries::ElfEntrySection;
pub use error::ElfError;
pub use groups::ComdatGroup;
pub use notes::ElfNote;
pub use rename::{rename_section, rename_symbols};
pub use separate::separate_symbols;
pub use symbols::{Binding, ElfSymbol, SymbolPlace, SymbolTable};
#[cfg(feature = "tools")]
pub(super) use write::check;
pub use write::{ElfWriteError, Machine};

/// Type of sections of offload binaries.
pub const SHT_LLVM_OFFLOADING: u32 = 0x6fff_4c0b;

/// Name that compilers give to sections of offload binaries.
pub const OFFLOADING_SECTION: &str = ".llvm.offloading";

/// Name of our ordinary section of linked and registered images, which is never input of a link.
pub(crate) const FINISHED_SECTION: &str = ".offloading.images";

/// An ELF file in a range of some data.
#[derive(Clone, Debug)]
pub struct Elf<'d, R> {
    /// Type: relocatable, executable or shared (`e_type`).
    pub file_type: u16,
    /// Instruction set (`e_machine`).
    pub machine: u16,
    /// Flags, which depend on `machine` (`e_flags`).
    pub flags: u32,
    /// Version of the format for `machine` (`EI_ABIVERSION`).
    pub abi_version: u8,
    data: R,
    range: Range<u64>,
    header: &'d [u8],
    headers: Headers<'d>,
    /// Offset of the section headers from the start of the file that contains the ELF file.
    headers_offset: u64,
    endian: Endianness,
    /// Index of the section that contains the section names.
    names: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
enum Headers<'d> {
    Elf32(&'d [elf::SectionHeader32<Endianness>]),
    Elf64(&'d [elf::SectionHeader64<Endianness>]),
}

/// A section header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ElfSection {
    /// Index in the section header table; 0 is not a section.
    pub index: u32,
    /// `sh_type`.
    pub section_type: u32,
    /// `sh_flags`.
    pub flags: u64,
    /// Offset from the start of the file that contains the ELF file.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// `sh_addralign`.
    pub alignment: u64,
    /// Address in memory (`sh_addr`).
    pub address: u64,
    /// `sh_link`.
    pub link: u32,
    /// Information that depends on `section_type` (`sh_info`).
    pub info: u32,
    /// Size of a table's entries in bytes (`sh_entsize`).
    pub entry_size: u64,
    /// Offset of the name in the section of names (`sh_name`).
    pub name_offset: u32,
}

/// The section names of a file.
#[derive(Clone, Copy, Debug)]
pub struct SectionNames<'d> {
    strings: &'d [u8],
}

impl<'d, R: ReadAt<'d>> Elf<'d, R> {
    /// Reads the headers of the ELF file that a range of `data` consists of.
    ///
    /// # Errors
    ///
    /// Fails if the range is not an ELF file, or its section header table is not inside the range.
    pub fn parse(data: R, range: Range<u64>) -> Result<Self, ElfError> {
        const LARGEST: u64 = size_of::<elf::FileHeader64<Endianness>>() as u64;
        let mut cursor = Cursor::new(data, range.clone());
        let range = range.start..cursor.end();
        let rest = range.end.saturating_sub(range.start);
        let header = cursor
            .read(rest.min(LARGEST), "file header")
            .map_err(ElfError::Outside)?;
        let (class, encoding) = match header {
            [0x7f, b'E', b'L', b'F', class, encoding, ..] => (*class, *encoding),
            _ => {
                return Err(ElfError::Magic {
                    offset: range.start,
                });
            }
        };
        match (class, encoding) {
            (1, 1 | 2) => {
                Self::with_header::<elf::FileHeader32<_>>(data, range, header, Headers::Elf32)
            }
            (2, 1 | 2) => {
                Self::with_header::<elf::FileHeader64<_>>(data, range, header, Headers::Elf64)
            }
            _ => Err(ElfError::Class { class, encoding }),
        }
    }

    fn with_header<H: FileHeader<Endian = Endianness>>(
        data: R,
        range: Range<u64>,
        bytes: &'d [u8],
        headers: impl Fn(&'d [H::SectionHeader]) -> Headers<'d>,
    ) -> Result<Self, ElfError> {
        let size = size_of::<H>() as u64;
        let missing = OutOfBounds::new("file header", range.start, size, range.end);
        let short = (bytes.len() as u64) < size;
        let Some(header) = H::parse(bytes).ok().filter(|_| !short) else {
            // Magic and class are valid, so the version is not.
            return Err(if short {
                ElfError::Outside(missing)
            } else {
                ElfError::Version
            });
        };
        let endian = header.endian().map_err(|_| ElfError::Version)?;
        let window = View::new(data, range.clone());
        let sections = header.section_headers(endian, window).map_err(|_| {
            let (found, expected) = (header.e_shentsize(endian), size_of::<H::SectionHeader>());
            if usize::from(found) != expected {
                return ElfError::EntrySize {
                    found,
                    expected: expected as u16,
                };
            }
            let offset = range.start.saturating_add(header.e_shoff(endian).into());
            // If section header 0 is missing, the count is unknown.
            let count = header.shnum(endian, window).map_or(1, u64::from);
            let (what, size) = (
                "section header table",
                count.saturating_mul(expected as u64),
            );
            ElfError::Outside(OutOfBounds::new(what, offset, size, range.end))
        })?;
        Ok(Self {
            file_type: header.e_type(endian).0,
            machine: header.e_machine(endian).0,
            flags: header.e_flags(endian).0,
            abi_version: header.e_ident().abi_version,
            header: bytes
                .get(..size_of::<H>())
                .expect("the file header is complete"),
            headers: headers(sections),
            headers_offset: range.start.saturating_add(header.e_shoff(endian).into()),
            // Reads section header 0 only if the file has more than 65,279 sections.
            names: header.shstrndx(endian, window).ok(),
            data,
            range,
            endian,
        })
    }

    /// Lists all sections from their headers, unchecked: their contents may be outside of the file.
    pub fn sections(&self) -> impl Iterator<Item = ElfSection> + '_ {
        let (narrow, wide) = match self.headers {
            Headers::Elf32(headers) => (headers, &[][..]),
            Headers::Elf64(headers) => (&[][..], headers),
        };
        let narrow = narrow.iter().map(|header| self.section_of(header));
        let sections = narrow.chain(wide.iter().map(|header| self.section_of(header)));
        (0..)
            .zip(sections)
            .map(|(index, section)| ElfSection { index, ..section })
    }

    fn section_of<H: SectionHeader<Endian = Endianness>>(&self, header: &H) -> ElfSection {
        let endian = self.endian;
        ElfSection {
            index: 0,
            section_type: header.sh_type(endian).0,
            flags: header.sh_flags(endian).0,
            offset: self
                .range
                .start
                .saturating_add(header.sh_offset(endian).into()),
            size: header.sh_size(endian).into(),
            alignment: header.sh_addralign(endian).into(),
            address: header.sh_addr(endian).into(),
            link: header.sh_link(endian),
            info: header.sh_info(endian),
            entry_size: header.sh_entsize(endian).into(),
            name_offset: header.sh_name(endian),
        }
    }

    /// Returns the range of a section's content from the start of the file that contains the ELF file.
    ///
    /// # Errors
    ///
    /// Fails if the content is not inside the ELF file.
    pub fn check(&self, section: &ElfSection) -> Result<Range<u64>, ElfError> {
        let ElfSection {
            index,
            offset,
            size,
            ..
        } = *section;
        if section.section_type == elf::SHT_NOBITS.0 {
            return Ok(offset..offset);
        }
        OutOfBounds::check("content", offset, size, self.range.end)
            .map_err(|problem| ElfError::Section { index, problem })
    }

    /// Returns the content of a section.
    ///
    /// # Errors
    ///
    /// Fails if the content is not inside the file.
    pub fn content(&self, section: &ElfSection) -> Result<&'d [u8], ElfError> {
        let range = self.check(section)?;
        let size = range.end.saturating_sub(range.start);
        let bytes = Cursor::new(self.data, range).read(size, "content");
        bytes.map_err(|problem| ElfError::Section {
            index: section.index,
            problem,
        })
    }

    /// Reads the names of all sections.
    ///
    /// # Errors
    ///
    /// Fails if the section of names is missing.
    pub fn names(&self) -> Result<SectionNames<'d>, ElfError> {
        let Some(index) = self.names else {
            // A file without sections has no names.
            return Ok(SectionNames { strings: &[] });
        };
        Ok(SectionNames {
            strings: self.content(&self.section(index)?)?,
        })
    }

    /// Returns the first section with that name.
    ///
    /// # Errors
    ///
    /// Fails if a section's name is not inside the section of names.
    pub fn find(&self, name: &str) -> Result<Option<ElfSection>, ElfError> {
        let names = self.names()?;
        for section in self.sections().skip(1) {
            if names.of(&section)? == name.as_bytes() {
                return Ok(Some(section));
            }
        }
        Ok(None)
    }

    /// Returns the end of the file's headers and contents, for an ELF file that other data follows. It may be outside of
    /// the range.
    #[cfg(feature = "tools")]
    pub(crate) fn end(&self) -> u64 {
        let (headers, segments) = match self.headers {
            Headers::Elf32(headers) => (
                size_of_val(headers),
                self.segments_end::<elf::FileHeader32<_>>(),
            ),
            Headers::Elf64(headers) => (
                size_of_val(headers),
                self.segments_end::<elf::FileHeader64<_>>(),
            ),
        };
        let headers = self.headers_offset.saturating_add(headers as u64);
        let sections = self.sections();
        let sections = sections.filter(|section| section.section_type != elf::SHT_NOBITS.0);
        let ends = sections.map(|section| section.offset.saturating_add(section.size));
        ends.fold(headers.max(segments), u64::max)
    }

    /// Returns the end of the program headers, which NVIDIA's compilers write last.
    #[cfg(feature = "tools")]
    fn segments_end<H: FileHeader<Endian = Endianness>>(&self) -> u64 {
        let header = H::parse(self.header).expect("the file header was parsed");
        let count = u64::from(header.e_phnum(self.endian));
        let size = count.saturating_mul(header.e_phentsize(self.endian).into());
        let start = self.range.start;
        let start = start.saturating_add(header.e_phoff(self.endian).into());
        start.saturating_add(size)
    }

    /// Returns the data that contains the file.
    pub(crate) fn data(&self) -> R {
        self.data
    }

    /// Returns the range of the file in the data that contains it.
    pub(crate) fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Returns the section with that index.
    ///
    /// # Errors
    ///
    /// Fails if the file has fewer sections.
    pub(crate) fn section(&self, index: u32) -> Result<ElfSection, ElfError> {
        let place = usize::try_from(index).unwrap_or(usize::MAX);
        let section = match self.headers {
            Headers::Elf32(headers) => headers.get(place).map(|header| self.section_of(header)),
            Headers::Elf64(headers) => headers.get(place).map(|header| self.section_of(header)),
        };
        let count = match self.headers {
            Headers::Elf32(headers) => headers.len(),
            Headers::Elf64(headers) => headers.len(),
        };
        let section = section.map(|section| ElfSection { index, ..section });
        section.ok_or(ElfError::SectionIndex { index, count })
    }
}

impl ElfSection {
    /// Returns true if the host linker leaves the section out.
    #[must_use]
    pub fn excluded(&self) -> bool {
        self.flags & elf::SHF_EXCLUDE.0 != 0
    }

    /// Returns true if programs load the section.
    #[must_use]
    pub fn allocated(&self) -> bool {
        self.flags & elf::SHF_ALLOC.0 != 0
    }

    /// Returns true if the section contains machine code.
    #[must_use]
    pub fn executable(&self) -> bool {
        self.flags & elf::SHF_EXECINSTR.0 != 0
    }

    /// Returns true if the section consists of zeros, which the file does not contain.
    #[must_use]
    pub fn zeroed(&self) -> bool {
        self.section_type == elf::SHT_NOBITS.0
    }

    /// Returns true if programs may write to the section.
    #[must_use]
    pub fn writable(&self) -> bool {
        self.flags & elf::SHF_WRITE.0 != 0
    }
}

impl<'d> SectionNames<'d> {
    /// Returns the name of a section of the same file.
    ///
    /// # Errors
    ///
    /// Fails if the name is not inside the section of names.
    pub fn of(&self, section: &ElfSection) -> Result<&'d [u8], ElfError> {
        let ElfSection {
            index,
            name_offset: offset,
            ..
        } = *section;
        string(self.strings, offset).ok_or(ElfError::Name { index, offset })
    }
}

fn string(strings: &[u8], offset: u32) -> Option<&[u8]> {
    let rest = strings.get(usize::try_from(offset).ok()?..)?;
    rest.get(..rest.iter().position(|byte| *byte == 0)?)
}

#[cfg(test)]
pub(super) mod sample;
#[cfg(test)]
mod tests;
