//! The old file, with the edits.

use std::ops::Range;

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};

use super::super::{Elf, ElfError, ElfSection, ElfWriteError, Headers};
use super::form::{ElfForm, SHT_CREL};
use super::symbols::Symbols;
use crate::container::edit::NewSection;
use crate::container::view::View;
use crate::format::bytes::{OutOfBounds, ReadAt};
use crate::format::pieces::Piece;

/// An ELF file to edit. Sections and symbols keep their old indices.
#[derive(Debug)]
pub(super) struct EditedElf<'d> {
    pub(super) form: ElfForm,
    /// Offset of the ELF file in the data.
    pub(super) start: u64,
    pub(super) size: u64,
    pub(super) header: &'d [u8],
    /// All sections by index; index 0 is not a section.
    pub(super) parts: Vec<EditedElfSection<'d>>,
    pub(super) segments: Vec<Segment>,
    /// The old program headers, and their offset from the start of the ELF file.
    pub(super) program_headers: (&'d [u8], u64),
    /// Index of the section of section names.
    pub(super) names: u32,
    pub(super) symbols: Option<Symbols<'d>>,
    /// True to set the GNU ABI in the new file.
    pub(super) gnu_abi: bool,
}

/// A section of the new file.
#[derive(Debug)]
pub(super) struct EditedElfSection<'d> {
    pub(super) name: &'d [u8],
    /// The header, with old offset, link, info and index. The offset of a new section is `u64::MAX`.
    pub(super) section: ElfSection,
    pub(super) content: SectionContent<'d>,
    pub(super) kept: bool,
    /// Index of the segment that the section moves with.
    pub(super) segment: Option<usize>,
}

/// Content of a section.
#[derive(Debug)]
pub(super) enum SectionContent<'d> {
    /// No bytes in the file.
    None,
    /// The old bytes.
    Same(Range<u64>),
    /// New bytes.
    New(Piece),
    /// Names of sections, symbols or both.
    Strings,
    /// The symbol table.
    Symbols,
    /// The section index of each symbol, if it does not fit into the symbol.
    WideIndices,
    Group(Group),
    /// Relocations with symbols of the symbol table.
    Relocations {
        bytes: &'d [u8],
        range: Range<u64>,
    },
}

/// Sections that a linker keeps or drops together.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) flags: u32,
    pub(super) members: Vec<u32>,
}

/// A part of the file that programs load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Index in the program header table. The file header and the program headers have the next two.
    pub(super) index: usize,
    pub(super) segment_type: u32,
    /// Offset from the start of the ELF file.
    pub(super) offset: u64,
    pub(super) file_size: u64,
    pub(super) address: u64,
    pub(super) memory_size: u64,
    pub(super) alignment: u64,
}

impl<'d> EditedElf<'d> {
    pub(super) fn read<R: ReadAt<'d>>(data: R, range: Range<u64>) -> Result<Self, ElfWriteError> {
        let elf = Elf::parse(data, range)?;
        match elf.headers {
            Headers::Elf32(_) => Self::of::<elf::FileHeader32<Endianness>, R>(&elf),
            Headers::Elf64(_) => Self::of::<elf::FileHeader64<Endianness>, R>(&elf),
        }
    }

    fn of<H: FileHeader<Endian = Endianness>, R: ReadAt<'d>>(
        elf: &Elf<'d, R>,
    ) -> Result<Self, ElfWriteError> {
        let names = elf.names.filter(|_| elf.sections().next().is_some());
        let names = names.ok_or(ElfWriteError::NoSections)?;
        let form = ElfForm::of(elf);
        let mut parts = SectionReader::new(form);
        for section in elf.sections() {
            parts.read(elf, section)?;
        }
        parts.mark_strings(names)?;
        let symbols = match parts.symbols {
            None => None,
            Some(index) => {
                let strings = elf.section(index)?.link;
                parts.mark_strings(strings)?;
                Some(Symbols::read::<H, R>(elf, form, index, parts.wide_indices)?)
            }
        };
        let mut file = Self {
            form,
            start: elf.range.start,
            size: elf.range.end.saturating_sub(elf.range.start),
            header: elf.header,
            parts: parts.parts,
            segments: Vec::new(),
            program_headers: (&[], 0),
            names,
            symbols,
            gnu_abi: false,
        };
        file.read_segments::<H, R>(elf)?;
        Ok(file)
    }

    fn read_segments<H: FileHeader<Endian = Endianness>, R: ReadAt<'d>>(
        &mut self,
        elf: &Elf<'d, R>,
    ) -> Result<(), ElfWriteError> {
        let header = H::parse(self.header).expect("`Elf::parse` read this header");
        let window = View::new(elf.data, elf.range.clone());
        let endian = elf.endian;
        let offset: u64 = header.e_phoff(endian).into();
        let headers = header
            .program_headers(endian, window)
            .map_err(|_| ElfError::Segments {
                offset,
                count: header
                    .phnum(endian, window)
                    .unwrap_or(header.e_phnum(endian).into()),
                entry_size: header.e_phentsize(endian),
            })?;
        self.program_headers = (object::pod::bytes_of_slice(headers), offset);
        for (index, header) in headers.iter().enumerate() {
            let (offset, file_size) = header.file_range(endian);
            let start = self.start.saturating_add(offset);
            OutOfBounds::check("content", start, file_size, elf.range.end)
                .map_err(|problem| ElfError::Segment { index, problem })?;
            self.segments.push(Segment {
                index,
                segment_type: header.p_type(endian).0,
                offset,
                file_size,
                address: header.p_vaddr(endian).into(),
                memory_size: header.p_memsz(endian).into(),
                alignment: header.p_align(endian).into(),
            });
        }
        for part in self.parts.iter_mut().skip(1) {
            // Rebuilt contents, such as names, cannot stay in a segment.
            if matches!(part.content, SectionContent::Same(_) | SectionContent::None) {
                let offset = part.section.offset.saturating_sub(elf.range.start);
                let mut first: Option<&Segment> = None;
                for segment in &self.segments {
                    if segment.contains(&part.section, offset)
                        && first.is_none_or(|first| first.offset > segment.offset)
                    {
                        first = Some(segment);
                    }
                }
                part.segment = first.map(|segment| segment.index);
            }
        }
        Ok(())
    }
}

impl Segment {
    /// Returns true if the segment contains a section. An empty section counts as one byte.
    fn contains(&self, section: &ElfSection, offset: u64) -> bool {
        let size = section.size.max(1);
        let within = |start: u64, len: u64, offset: u64| match offset.checked_add(size) {
            Some(end) => start <= offset && end <= start.saturating_add(len),
            None => false,
        };
        if section.section_type != elf::SHT_NOBITS.0 {
            return within(self.offset, self.file_size, offset);
        }
        let tls = section.flags & elf::SHF_TLS.0 != 0;
        section.allocated()
            && tls == (self.segment_type == elf::PT_TLS.0)
            && within(self.address, self.memory_size, section.address)
    }
}

/// Reads the sections of a file.
struct SectionReader<'d> {
    form: ElfForm,
    parts: Vec<EditedElfSection<'d>>,
    symbols: Option<u32>,
    wide_indices: Option<u32>,
    /// Size of all contents that may be rewritten.
    anew: u64,
}

impl<'d> SectionReader<'d> {
    fn new(form: ElfForm) -> Self {
        Self {
            form,
            parts: Vec::new(),
            symbols: None,
            wide_indices: None,
            anew: 0,
        }
    }

    fn read<R: ReadAt<'d>>(
        &mut self,
        elf: &Elf<'d, R>,
        mut section: ElfSection,
    ) -> Result<(), ElfWriteError> {
        let index = section.index;
        let (mut name, mut content) = (&b""[..], SectionContent::None);
        if index > 0 {
            name = elf.names()?.of(&section)?;
            content = self.content(elf, &mut section)?;
            elf.section(section.link)?;
        }
        self.parts.push(EditedElfSection {
            name,
            section,
            content,
            kept: true,
            segment: None,
        });
        Ok(())
    }

    /// Returns the content of a section, and updates its alignment.
    fn content<R: ReadAt<'d>>(
        &mut self,
        elf: &Elf<'d, R>,
        section: &mut ElfSection,
    ) -> Result<SectionContent<'d>, ElfWriteError> {
        let index = section.index;
        let once = |place: &mut Option<u32>| match place.replace(index) {
            None => Ok(()),
            Some(first) => Err(ElfWriteError::Twice { first, index }),
        };
        let (range, number) = (elf.check(section)?, self.form.word_size());
        let same = Ok(SectionContent::Same(range.clone()));
        let kind = elf::SectionType(section.section_type);
        if [elf::SHT_GROUP, elf::SHT_REL, elf::SHT_RELA].contains(&kind) {
            // These contents are kept in memory, so overlapping sections must not multiply them.
            self.anew = self.anew.saturating_add(section.size);
            if self.anew > elf.range.end.saturating_sub(elf.range.start) {
                let value = self.anew;
                return Err(ElfWriteError::TooLarge { value });
            }
        }
        match kind {
            elf::SHT_NOBITS => Ok(SectionContent::None),
            elf::SHT_SYMTAB => {
                once(&mut self.symbols)?;
                section.alignment = number;
                Ok(SectionContent::Symbols)
            }
            elf::SHT_SYMTAB_SHNDX => {
                once(&mut self.wide_indices)?;
                Ok(SectionContent::WideIndices)
            }
            elf::SHT_GROUP => {
                let form = self.form;
                let bytes = elf.content(section)?;
                let mut words = bytes.chunks_exact(4).map(|word| form.number(word));
                let flags = words.next().ok_or(ElfWriteError::Group { index })?;
                let members: Vec<u32> = words.collect();
                for member in &members {
                    elf.section(*member)?;
                }
                Ok(SectionContent::Group(Group { flags, members }))
            }
            // Relocations of a program refer to dynamic symbols.
            elf::SHT_REL | elf::SHT_RELA if section.allocated() => {
                elf.section(section.info)?;
                same
            }
            kind @ (elf::SHT_REL | elf::SHT_RELA) => {
                elf.section(section.info)?;
                let words = if kind == elf::SHT_RELA { 3 } else { 2 };
                let entry_size = words * number;
                if section.entry_size != entry_size || section.size % entry_size != 0 {
                    return Err(ElfWriteError::Relocations { index });
                }
                section.alignment = number;
                let bytes = elf.content(section)?;
                Ok(SectionContent::Relocations { bytes, range })
            }
            SHT_CREL => {
                elf.section(section.info)?;
                same
            }
            _ => same,
        }
    }

    /// Marks the section with that index as a table of names.
    fn mark_strings(&mut self, index: u32) -> Result<(), ElfWriteError> {
        let part = self.parts.get_mut(index as usize);
        match part {
            Some(part)
                if index != 0
                    && part.section.section_type == elf::SHT_STRTAB.0
                    && !part.section.allocated() =>
            {
                part.content = SectionContent::Strings;
                Ok(())
            }
            _ => Err(ElfWriteError::Strings { index }),
        }
    }
}

impl<'d> EditedElfSection<'d> {
    /// Creates the added section with that index.
    pub(super) fn new(index: usize, section: &NewSection<'d>) -> Self {
        let note = section.name.starts_with(b".note") && section.name != b".note.GNU-stack";
        let kind = if note {
            elf::SHT_NOTE
        } else {
            elf::SHT_PROGBITS
        };
        let mut part = Self::empty(section.name, kind.0, 1);
        part.section.flags = elf::SHF_EXCLUDE.0;
        part.section.size = section.content.size();
        part.content = SectionContent::New(section.content.piece(index));
        part
    }

    /// Creates the table of section indices for files with very many sections.
    pub(super) fn wide_indices() -> Self {
        let mut part = Self::empty(b".symtab_shndx", elf::SHT_SYMTAB_SHNDX.0, 4);
        part.section.entry_size = 4;
        part.content = SectionContent::WideIndices;
        part
    }

    pub(super) fn empty(name: &'d [u8], section_type: u32, alignment: u64) -> Self {
        Self {
            name,
            section: ElfSection {
                index: 0,
                section_type,
                flags: 0,
                offset: u64::MAX,
                size: 0,
                alignment,
                address: 0,
                link: 0,
                info: 0,
                entry_size: 0,
                name_offset: 0,
            },
            content: SectionContent::None,
            kept: true,
            segment: None,
        }
    }

    /// Returns true for relocations, whose `info` is the index of the relocated section.
    pub(super) fn is_relocations(&self) -> bool {
        let kind = elf::SectionType(self.section.section_type);
        [elf::SHT_REL, elf::SHT_RELA, SHT_CREL].contains(&kind)
    }
}

impl EditedElf<'_> {
    /// Returns the index of the first kept section of relocations that needs a removed symbol,
    /// and the symbol's old index.
    pub(super) fn relocation_of_removed_symbol(&self) -> Option<(u32, u32)> {
        let symbols = self.symbols.as_ref().filter(|symbols| symbols.changed)?;
        let parts = (0..).zip(&self.parts).filter(|(_, part)| part.kept);
        for (index, part) in parts {
            if let SectionContent::Relocations { bytes, .. } = &part.content {
                let mut named = self.form.relocated(bytes, part.section.entry_size);
                if let Some(symbol) = named.find(|symbol| symbols.place(*symbol).is_none()) {
                    return Some((index, symbol));
                }
            }
        }
        None
    }
}
