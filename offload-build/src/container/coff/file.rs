//! The old file, with what was decided about it.

use std::ops::Range;

use object::read::coff::{CoffHeader, SectionTable, Symbol as _, SymbolTable};
use object::{LittleEndian as LE, ReadRef, SymbolIndex, U16, U32, pe};

use super::{CoffError, Section};
use crate::container::edit::NewSection;
use crate::format::bytes::{Cursor, OutOfBounds, Window};
use crate::format::pieces::Piece;

/// A COFF file that is edited. Symbols keep the indices that they had.
#[derive(Debug)]
pub(super) struct File<'d> {
    /// Where the COFF file is in the data.
    pub(super) range: Range<u64>,
    pub(super) header: pe::ImageFileHeader,
    /// What PE images have before and after the file header.
    pub(super) image: Option<Image<'d>>,
    pub(super) parts: Vec<Part<'d>>,
    pub(super) symbols: Vec<Symbol<'d>>,
}

/// The forms that COFF files have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    Object,
    /// With many sections.
    LargeObject,
    Image {
        /// Where the PE signature is, from the start of the COFF file.
        stub: u64,
    },
}

/// What PE images have and objects do not.
#[derive(Debug)]
pub(super) struct Image<'d> {
    /// The DOS program, from the start of the COFF file.
    pub(super) stub: u64,
    /// With its directories, and no more.
    pub(super) optional_header: &'d [u8],
    pub(super) file_alignment: u64,
    pub(super) section_alignment: u64,
    pub(super) debug: Option<DebugDirectory<'d>>,
}

/// The debug directory of an image, which has offsets in the file.
#[derive(Debug)]
pub(super) struct DebugDirectory<'d> {
    /// Index of the section that it is in.
    pub(super) part: usize,
    /// From the start of the content of the section.
    pub(super) offset: u64,
    pub(super) bytes: &'d [u8],
}

/// A section, as it will be.
#[derive(Debug)]
pub(super) struct Part<'d> {
    pub(super) name: &'d [u8],
    /// As it was, apart from what `layout` decides.
    pub(super) header: pe::ImageSectionHeader,
    /// As large as `size_of_raw_data` or smaller.
    pub(super) content: Piece,
    pub(super) relocations: &'d [pe::ImageRelocation],
    pub(super) kept: bool,
}

/// A symbol with its auxiliary records.
#[derive(Clone, Debug)]
pub(super) struct Symbol<'d> {
    /// Auxiliary records counted.
    pub(super) old_index: usize,
    pub(super) name: &'d [u8],
    pub(super) value: u32,
    /// From 1; 0 and less is none.
    pub(super) section: i32,
    pub(super) kind: u16,
    pub(super) class: pe::SymbolClass,
    pub(super) auxiliary: Auxiliary<'d>,
    /// The section that it comes and goes with.
    pub(super) associate: Option<i32>,
    /// The symbol that stands in for it.
    pub(super) default: Option<u32>,
    pub(super) kept: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Auxiliary<'d> {
    /// The name of a source file, in as many records as it needs.
    FileName(&'d [u8]),
    Records(Vec<&'d [u8]>),
}

/// Of an auxiliary record; those of large objects have padding after it.
pub(super) const RECORD_SIZE: usize = pe::IMAGE_SIZEOF_SYMBOL;

impl<'d> File<'d> {
    pub(super) fn read<R: ReadRef<'d>>(data: R, range: Range<u64>) -> Result<Self, CoffError> {
        let (form, range) = Form::of(data, range)?;
        match form {
            Form::Image { stub } => Self::image(data, range, stub),
            Form::LargeObject => {
                let large: &pe::AnonObjectHeaderBigobj = record(data, &range, 0, "file header")?;
                let header = pe::ImageFileHeader {
                    machine: large.machine,
                    number_of_sections: U16::new(LE, 0),
                    time_date_stamp: large.time_date_stamp,
                    pointer_to_symbol_table: U32::new(LE, 0),
                    number_of_symbols: U32::new(LE, 0),
                    size_of_optional_header: U16::new(LE, 0),
                    characteristics: U16::new(LE, pe::FileFlags(0)),
                };
                Self::object::<pe::AnonObjectHeaderBigobj, R>(data, range, 0, header)
            }
            Form::Object => {
                let header: &pe::ImageFileHeader = record(data, &range, 0, "file header")?;
                Self::object::<pe::ImageFileHeader, R>(data, range, 0, *header)
            }
        }
    }

    fn image<R: ReadRef<'d>>(data: R, range: Range<u64>, stub: u64) -> Result<Self, CoffError> {
        let header: &pe::ImageFileHeader = record(data, &range, stub + 4, "file header")?;
        let mut file =
            Self::object::<pe::ImageFileHeader, R>(data, range.clone(), stub + 4, *header)?;
        let place = stub + 4 + size_of::<pe::ImageFileHeader>() as u64;
        let offset = range.start.saturating_add(place);
        let size = u64::from(file.header.size_of_optional_header.get(LE));
        let unknown = CoffError::OptionalHeader { offset, size };
        let mut cursor = Cursor::new(data, range.clone()).at(offset);
        let bytes = cursor.read(size, "optional header")?;
        let word = |place: usize| {
            let bytes = bytes.get(place..place + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        // Both kinds have the same fields up to the sizes of stack and heap.
        let count_place = match bytes {
            [0x0b, 0x01, ..] => 92,
            [0x0b, 0x02, ..] => 108,
            _ => return Err(unknown),
        };
        let directories = count_place + 4;
        let count = word(count_place).ok_or(unknown)?;
        let end = usize::try_from(count)
            .ok()
            .and_then(|count| count.checked_mul(8)?.checked_add(directories));
        let optional_header = end.and_then(|end| bytes.get(..end)).ok_or(unknown)?;
        let debug = directories + 8 * 6;
        let debug = match (count, word(debug), word(debug + 4)) {
            (7.., Some(address), Some(size)) if size > 0 => {
                Some(file.debug_directory(data, address, size)?)
            }
            _ => None,
        };
        let alignment = |place| {
            let alignment = word(place).map(u64::from);
            alignment
                .filter(|alignment| alignment.is_power_of_two())
                .ok_or(unknown)
        };
        let image = Image {
            stub,
            optional_header,
            section_alignment: alignment(32)?,
            file_alignment: alignment(36)?,
            debug,
        };
        // Contents past the size in memory are padding.
        for part in &mut file.parts {
            if let Piece::Copy { range, .. } = &mut part.content {
                let size = u64::from(part.header.virtual_size.get(LE));
                range.end = range.end.min(range.start.saturating_add(size));
            }
        }
        file.image = Some(image);
        Ok(file)
    }

    fn debug_directory<R: ReadRef<'d>>(
        &self,
        data: R,
        address: u32,
        size: u32,
    ) -> Result<DebugDirectory<'d>, CoffError> {
        let missing = CoffError::DebugDirectory;
        let found = self.parts.iter().enumerate().find_map(|(index, part)| {
            let distance = address.checked_sub(part.header.virtual_address.get(LE))?;
            let raw_size = part.header.size_of_raw_data.get(LE);
            let rest = raw_size.checked_sub(distance).filter(|rest| *rest > 0)?;
            Some((index, part, distance, rest))
        });
        let (
            part,
            Part {
                content: Piece::Copy { range, .. },
                ..
            },
            distance,
            rest,
        ) = found.ok_or(missing)?
        else {
            return Err(missing);
        };
        if size > rest {
            return Err(missing);
        }
        let offset = u64::from(distance);
        let mut cursor = Cursor::new(data, self.range.clone());
        cursor = cursor.at(range.start.saturating_add(offset));
        let bytes = cursor.read(size.into(), "debug directory")?;
        Ok(DebugDirectory {
            part,
            offset,
            bytes,
        })
    }

    /// From the file header on, which lies at `place`.
    fn object<H: CoffHeader, R: ReadRef<'d>>(
        data: R,
        range: Range<u64>,
        place: u64,
        header: pe::ImageFileHeader,
    ) -> Result<Self, CoffError> {
        let (old, sections) = headers::<H, R>(data, &range, place)?;
        let window = Window::new(data, range.clone());
        let lies =
            |what, place: u64, count: u32, size: usize| lies(what, &range, place, count, size);
        let table = SymbolTable::<Window<R>, H>::parse(old, window).map_err(|_| {
            let (place, count) = (old.pointer_to_symbol_table(), old.number_of_symbols());
            lies(
                "symbol table",
                place.into(),
                count,
                size_of::<H::SymbolBytes>(),
            )
        })?;
        let mut file = Self {
            header,
            range: range.clone(),
            image: None,
            parts: Vec::new(),
            symbols: Vec::new(),
        };
        for (number, section) in (1..).zip(sections.iter()) {
            let name = section
                .name(table.strings())
                .map_err(|_| CoffError::Name { number })?;
            let place = u64::from(section.pointer_to_raw_data.get(LE));
            let size = u64::from(section.size_of_raw_data.get(LE));
            let at = range.start.saturating_add(place);
            let content = if place == 0 {
                Piece::Zeros(0)
            } else {
                let range = OutOfBounds::check("content", at, size, range.end)
                    .map_err(|problem| CoffError::Section { number, problem })?;
                Piece::Copy { input: 0, range }
            };
            let relocations = section.coff_relocations(window).map_err(|_| {
                let place = section.pointer_to_relocations.get(LE).into();
                let count = section.number_of_relocations.get(LE).into();
                let problem = lies(
                    "relocations",
                    place,
                    count,
                    size_of::<pe::ImageRelocation>(),
                );
                CoffError::Section { number, problem }
            })?;
            file.parts.push(Part {
                name,
                header: *section,
                content,
                relocations,
                kept: true,
            });
        }
        file.read_symbols(&table)?;
        Ok(file)
    }

    fn read_symbols<H: CoffHeader, R: ReadRef<'d>>(
        &mut self,
        table: &SymbolTable<'d, R, H>,
    ) -> Result<(), CoffError> {
        let mut index = 0;
        while index < table.len() {
            let wrong = CoffError::Symbol { index };
            let symbol = table.symbol(SymbolIndex(index)).map_err(|_| wrong)?;
            let name = symbol.name(table.strings()).map_err(|_| wrong)?;
            let section = symbol.section_number().0;
            let count = self.parts.len();
            let is_section = |number| (1..=count).contains(&usize::try_from(number).unwrap_or(0));
            if section > 0 && !is_section(section) {
                return Err(wrong);
            }
            let mut records = Vec::new();
            let mut joined: Option<&[u8]> = None;
            let count = symbol.number_of_aux_symbols();
            if symbol.has_aux_file_name() {
                let name = table.aux_file_name(SymbolIndex(index), count);
                joined = Some(name.map_err(|_| wrong)?);
            } else {
                for record in 1..=usize::from(count) {
                    let record = table.get::<[u8; RECORD_SIZE]>(SymbolIndex(index), record);
                    records.push(&record.map_err(|_| wrong)?[..]);
                }
            }
            let first = records.first().copied().unwrap_or_default();
            let associate = associate::<H>(symbol, first).map(i32::try_from);
            let associate = associate.transpose().map_err(|_| wrong)?;
            if associate.is_some_and(|number| !is_section(number)) {
                return Err(wrong);
            }
            self.symbols.push(Symbol {
                old_index: index,
                name,
                value: symbol.value(),
                section,
                kind: symbol.typ().0,
                class: symbol.storage_class(),
                auxiliary: match joined {
                    Some(name) => Auxiliary::FileName(name),
                    None => Auxiliary::Records(records),
                },
                associate,
                default: default::<H>(symbol, first),
                kept: true,
            });
            index += 1 + usize::from(count);
        }
        Ok(())
    }
}

impl Form {
    /// What the headers say, and the part of the range that is there.
    pub(super) fn of<'d, R: ReadRef<'d>>(
        data: R,
        range: Range<u64>,
    ) -> Result<(Self, Range<u64>), CoffError> {
        let mut cursor = Cursor::new(data, range.clone());
        let range = range.start..cursor.end();
        let form = match cursor.read(4, "file header")? {
            [b'M', b'Z', ..] => {
                let dos: &pe::ImageDosHeader = record(data, &range, 0, "DOS header")?;
                let stub: u64 = dos.e_lfanew.get(LE).into();
                let offset = range.start.saturating_add(stub);
                if cursor.at(offset).read(4, "PE signature")? != b"PE\0\0" {
                    return Err(CoffError::Signature { offset });
                }
                Self::Image { stub }
            }
            [0, 0, 0xff, 0xff] => {
                let large: &pe::AnonObjectHeaderBigobj = record(data, &range, 0, "file header")?;
                if large.class_id != pe::ANON_OBJECT_HEADER_BIGOBJ_CLASS_ID {
                    return Err(CoffError::Anonymous);
                }
                Self::LargeObject
            }
            _ => Self::Object,
        };
        Ok((form, range))
    }
}

/// For which processor a file is, and whether it is an image, when its headers are there.
pub(super) fn recognize<'d, R: ReadRef<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<(pe::Machine, bool), CoffError> {
    let (form, range) = Form::of(data, range)?;
    Ok(match form {
        Form::Image { stub } => {
            let (header, _) = headers::<pe::ImageFileHeader, R>(data, &range, stub + 4)?;
            (header.machine(), true)
        }
        Form::LargeObject => {
            let (header, _) = headers::<pe::AnonObjectHeaderBigobj, R>(data, &range, 0)?;
            (header.machine(), false)
        }
        Form::Object => {
            let (header, _) = headers::<pe::ImageFileHeader, R>(data, &range, 0)?;
            (header.machine(), false)
        }
    })
}

/// File header, at `place`, and section headers.
fn headers<'d, H: CoffHeader, R: ReadRef<'d>>(
    data: R,
    range: &Range<u64>,
    place: u64,
) -> Result<(&'d H, SectionTable<'d>), CoffError> {
    let header: &H = record(data, range, place, "file header")?;
    let (window, mut offset) = (Window::new(data, range.clone()), place);
    let parsed = H::parse(window, &mut offset);
    parsed.map_err(|_| lies("file header", range, place, 1, size_of::<H>()))?;
    let sections = SectionTable::parse(header, window, offset).map_err(|_| {
        let (count, size) = (header.number_of_sections(), pe::IMAGE_SIZEOF_SECTION_HEADER);
        lies("section table", range, offset, count, size)
    })?;
    Ok((header, sections))
}

/// What does not lie at `place`, from the start of the range.
fn lies(
    what: &'static str,
    range: &Range<u64>,
    place: u64,
    count: u32,
    size: usize,
) -> OutOfBounds {
    OutOfBounds {
        what,
        offset: range.start.saturating_add(place),
        size: u64::from(count).saturating_mul(size as u64),
        end: range.end,
    }
}

impl<'d> Part<'d> {
    /// One to add, of that index among those, at that address.
    pub(super) fn new(
        index: usize,
        section: &NewSection<'d>,
        address: u64,
        alignment: u64,
    ) -> Result<Self, CoffError> {
        let size = section.content.size();
        let padded = align(size, alignment)?;
        Ok(Self {
            name: section.name,
            header: pe::ImageSectionHeader {
                name: [0; 8],
                virtual_size: U32::new(LE, small(size)?),
                virtual_address: U32::new(LE, small(address)?),
                size_of_raw_data: U32::new(LE, small(padded)?),
                pointer_to_raw_data: U32::new(LE, 0),
                pointer_to_relocations: U32::new(LE, 0),
                pointer_to_linenumbers: U32::new(LE, 0),
                number_of_relocations: U16::new(LE, 0),
                number_of_linenumbers: U16::new(LE, 0),
                // What linkers leave out, and can be read.
                characteristics: U32::new(LE, pe::IMAGE_SCN_LNK_REMOVE | pe::IMAGE_SCN_MEM_READ),
            },
            content: section.content.piece(index),
            relocations: &[],
            kept: true,
        })
    }

    /// Whether it is one that is added.
    pub(super) fn is_new(&self) -> bool {
        !matches!(self.content, Piece::Copy { input: 0, .. } | Piece::Zeros(_))
    }

    pub(super) fn into_section(self) -> Section<'d> {
        let content = match self.content {
            Piece::Copy { range, .. } => range,
            _ => 0..0,
        };
        let name = self.name;
        Section { name, content }
    }
}

impl Symbol<'_> {
    /// How many records it has, itself included, each of that size.
    pub(super) fn count(&self, size: usize) -> usize {
        1 + match &self.auxiliary {
            Auxiliary::FileName(name) => name.len().div_ceil(size),
            Auxiliary::Records(records) => records.len(),
        }
    }
}

/// The number of the section that a symbol's section comes and goes with. `record` is its first
/// auxiliary record, if there is one.
fn associate<H: CoffHeader>(symbol: &H::Symbol, record: &[u8]) -> Option<u32> {
    let class = symbol.storage_class();
    // C++/CLI has such a record at absolute symbols, too.
    let of_section = class == pe::IMAGE_SYM_CLASS_STATIC
        || class == pe::IMAGE_SYM_CLASS_EXTERNAL
            && symbol.section_number() == pe::IMAGE_SYM_ABSOLUTE;
    let (definition, _) = object::pod::from_bytes::<pe::ImageAuxSymbolSection>(record).ok()?;
    if !of_section || definition.selection != pe::IMAGE_COMDAT_SELECT_ASSOCIATIVE {
        return None;
    }
    let low = u32::from(definition.number.get(LE));
    let high = u32::from(definition.high_number.get(LE));
    // Ordinary objects have no upper half, and may have anything there.
    Some(if H::is_type_bigobj() {
        high << 16 | low
    } else {
        low
    })
}

/// The index of the symbol that stands in for one that is not defined.
fn default<H: CoffHeader>(symbol: &H::Symbol, record: &[u8]) -> Option<u32> {
    let (weak, _) = object::pod::from_bytes::<pe::ImageAuxSymbolWeak>(record).ok()?;
    let is_weak = symbol.storage_class() == pe::IMAGE_SYM_CLASS_WEAK_EXTERNAL;
    is_weak.then(|| weak.weak_default_sym_index.get(LE))
}

/// The next multiple of a power of two.
pub(super) fn align(value: u64, alignment: u64) -> Result<u64, CoffError> {
    let aligned = value.checked_next_multiple_of(alignment);
    aligned.ok_or(CoffError::TooLarge { value })
}

/// As a field of 32 bits.
pub(super) fn small(value: u64) -> Result<u32, CoffError> {
    u32::try_from(value).map_err(|_| CoffError::TooLarge { value })
}

/// What lies at `place`, from the start of the range.
fn record<'d, T: object::Pod, R: ReadRef<'d>>(
    data: R,
    range: &Range<u64>,
    place: u64,
    what: &'static str,
) -> Result<&'d T, CoffError> {
    let offset = range.start.saturating_add(place);
    let size = size_of::<T>() as u64;
    let mut cursor = Cursor::new(data, range.clone()).at(offset);
    let bytes = cursor.read(size, what)?;
    let record = object::pod::from_bytes(bytes).map(|(record, _)| record);
    let end = range.end;
    record.map_err(|()| {
        OutOfBounds {
            what,
            offset,
            size,
            end,
        }
        .into()
    })
}
