//! Writes the new file from the old one and its edits.

use std::mem::offset_of;

use object::pod::bytes_of;
use object::{LittleEndian as LE, U16, U32, pe};

use super::error::CoffError;
use super::file::EditedCoff;
use super::part::{EditedCoffSection, align, small};
use super::symbols::{Auxiliary, EditedCoffSymbol, RECORD_SIZE};
use crate::container::edit::Output;
use crate::format::pieces::Piece;
use crate::format::string_table::{StringTable, StringTableBuilder};

/// Maximum growth of a file without new contents. Sections without bytes in the old file have bytes in the
/// new one, as many as the file claims.
const LARGEST_GROWTH: u64 = 1 << 30;

/// Largest file alignment of images, and so the largest padding.
const LARGEST_ALIGNMENT: u64 = 0x1_0000;

impl EditedCoff<'_> {
    pub(super) fn write(self) -> Result<Vec<Piece>, CoffError> {
        let kept = || self.parts.iter().filter(|part| part.kept);
        let count = kept().count() as u64;
        let large = count > pe::IMAGE_SYM_SECTION_MAX.into();
        if large && self.image.is_some() {
            return Err(CoffError::TooLarge { value: count });
        }
        let symbol_size = if large {
            pe::IMAGE_SIZEOF_SYMBOL_EX
        } else {
            RECORD_SIZE
        };
        let mut strings = StringTableBuilder::default();
        for part in kept().filter(|part| is_apart(part.name)) {
            strings.add_first(part.name);
        }
        let symbols = self.symbols.iter().filter(|symbol| symbol.kept);
        for symbol in symbols.filter(|symbol| is_long(symbol.name)) {
            strings.add(symbol.name);
        }
        let mut strings = strings.layout(&[0; 4]);
        let size = small(strings.bytes.len() as u64)?;
        if let Some(field) = strings.bytes.first_chunk_mut() {
            *field = size.to_le_bytes();
        }
        CoffWriter {
            numbers: self.numbers(),
            places: self.places(symbol_size)?,
            file: &self,
            strings,
            large,
            symbol_size,
        }
        .pieces(count)
    }

    /// Returns the new number of each section by index; 0 for removed ones.
    fn numbers(&self) -> Vec<i32> {
        let mut last = 0;
        let number = |part: &EditedCoffSection<'_>| {
            last += i32::from(part.kept);
            if part.kept { last } else { 0 }
        };
        self.parts.iter().map(number).collect()
    }

    /// Returns the old and the new index of each kept symbol; the last row has the number of all records.
    fn places(&self, symbol_size: usize) -> Result<Vec<(usize, u32)>, CoffError> {
        let mut places = Vec::new();
        let mut next = 0;
        for symbol in self.symbols.iter().filter(|symbol| symbol.kept) {
            places.push((symbol.old_index, small(next)?));
            next += symbol.count(symbol_size) as u64;
        }
        places.push((usize::MAX, small(next)?));
        Ok(places)
    }
}

/// The decisions about the new file.
struct CoffWriter<'f, 'd> {
    file: &'f EditedCoff<'d>,
    numbers: Vec<i32>,
    places: Vec<(usize, u32)>,
    strings: StringTable<'d>,
    /// True for the header and symbols of a large object.
    large: bool,
    symbol_size: usize,
}

impl CoffWriter<'_, '_> {
    fn pieces(&self, count: u64) -> Result<Vec<Piece>, CoffError> {
        let file = self.file;
        let image = file.image.as_ref();
        let file_alignment = image.map_or(1, |image| image.file_alignment);
        let header_size = if self.large {
            size_of::<pe::AnonObjectHeaderBigobj>()
        } else {
            size_of::<pe::ImageFileHeader>()
        };
        let optional = image.map_or(&[][..], |image| image.optional_header);
        let before = image.map_or(0, |image| image.stub + 4) + header_size as u64;
        let sections = before + optional.len() as u64;
        let size = count.saturating_mul(pe::IMAGE_SIZEOF_SECTION_HEADER as u64);
        let headers_size = align(sections.saturating_add(size), file_alignment)?;

        let old = file.range.end.saturating_sub(file.range.start);
        self.check_relocations(old)?;

        let mut output = Output::default();
        let mut headers: Vec<pe::ImageSectionHeader> = Vec::new();
        let (mut end, mut new, mut initialized) = (headers_size, 0, 0);
        for part in file.parts.iter().filter(|part| part.kept) {
            let (header, past) = self.section(part, end, &mut output)?;
            let size = u64::from(header.size_of_raw_data.get(LE));
            if part.is_new() {
                new += size;
            }
            let kind = header.characteristics.get(LE);
            if kind.contains(pe::IMAGE_SCN_CNT_INITIALIZED_DATA) {
                initialized += size;
            }
            headers.push(header);
            end = align(past, file_alignment)?;
        }
        if end.saturating_sub(old).saturating_sub(new) > LARGEST_GROWTH {
            return Err(CoffError::TooLarge { value: end });
        }

        let tables = self.tables()?;
        // The header of an image without symbols and strings has the offset 0.
        let symbols = if tables.is_empty() { 0 } else { end };
        end += tables.len() as u64;
        output.put(symbols, Piece::Bytes(tables));

        let mut bytes = Vec::new();
        if let Some(image) = image {
            let start = file.range.start;
            let range = start..start.saturating_add(image.stub);
            output.put(0, Piece::Copy { input: 0, range });
            bytes.extend_from_slice(b"PE\0\0");
        }
        let stub = image.map_or(0, |image| image.stub);
        self.header(count, symbols, optional.len(), &mut bytes)?;
        if let Some(image) = image {
            let last = headers.last();
            bytes.extend(image.optional_header(last, headers_size, initialized)?);
            let (offset, debug) = image.debug_directory(&headers, &self.numbers)?;
            output.put(offset, Piece::Bytes(debug));
        }
        for header in &headers {
            bytes.extend_from_slice(bytes_of(header));
        }
        output.put(stub, Piece::Bytes(bytes));
        Ok(output.finish(align(end, file_alignment)?))
    }

    /// Checks that the relocations fit into the old file of `size` bytes: if not, they overlap there, and writing them
    /// anew would amplify them.
    fn check_relocations(&self, size: u64) -> Result<(), CoffError> {
        let parts = self.file.parts.iter();
        let count: u64 = parts.map(|part| part.relocations.len() as u64).sum();
        let value = count * size_of::<pe::ImageRelocation>() as u64;
        if value > size {
            return Err(CoffError::TooLarge { value });
        }
        Ok(())
    }

    /// Returns the symbols and the strings; nothing for an image without both.
    fn tables(&self) -> Result<Vec<u8>, CoffError> {
        let mut tables = Vec::new();
        for symbol in self.file.symbols.iter().filter(|symbol| symbol.kept) {
            self.symbol(symbol, &mut tables)?;
        }
        if self.file.image.is_none() || !tables.is_empty() || self.strings.bytes.len() > 4 {
            tables.extend_from_slice(&self.strings.bytes);
        }
        Ok(tables)
    }

    /// Puts content and relocations at `offset`; returns the header and their end.
    fn section(
        &self,
        part: &EditedCoffSection<'_>,
        offset: u64,
        output: &mut Output,
    ) -> Result<(pe::ImageSectionHeader, u64), CoffError> {
        let mut header = part.header;
        header.name = self.section_name(part.name)?;
        let size = u64::from(header.size_of_raw_data.get(LE));
        let pointer = if size > 0 { small(offset)? } else { 0 };
        header.pointer_to_raw_data = U32::new(LE, pointer);
        output.put(offset, part.content.clone());
        let kind = header.characteristics.get(LE);
        let rest = size.saturating_sub(part.content.size());
        if kind.contains(pe::IMAGE_SCN_CNT_CODE) && rest > 0 {
            if rest > LARGEST_ALIGNMENT {
                return Err(CoffError::TooLarge { value: rest });
            }
            // Padding that traps if it runs.
            let start = offset + part.content.size();
            output.put(start, Piece::Bytes((0..rest).map(|_| 0xcc).collect()));
        }
        let mut end = offset + size;

        let count = part.relocations.len();
        let mut bytes = Vec::new();
        let small_count = u16::try_from(count).ok().filter(|count| *count < u16::MAX);
        header.number_of_relocations = U16::new(LE, small_count.unwrap_or(u16::MAX));
        if small_count.is_none() {
            header.characteristics = U32::new(LE, kind | pe::IMAGE_SCN_LNK_NRELOC_OVFL);
            // The first record is not a relocation: it has the number of all records, with itself.
            bytes.extend(small(count as u64 + 1)?.to_le_bytes());
            bytes.extend([0; 6]);
        }
        for relocation in part.relocations {
            let mut relocation = *relocation;
            let index = relocation.symbol_table_index.get(LE);
            relocation.symbol_table_index = U32::new(LE, self.place(index)?);
            bytes.extend_from_slice(bytes_of(&relocation));
        }
        let pointer = if bytes.is_empty() { 0 } else { small(end)? };
        header.pointer_to_relocations = U32::new(LE, pointer);
        let size = bytes.len() as u64;
        output.put(end, Piece::Bytes(bytes));
        end += size;
        Ok((header, end))
    }

    /// Returns the name field of a section header: the name, or its offset in the string table.
    fn section_name(&self, name: &[u8]) -> Result<[u8; 8], CoffError> {
        const LARGEST_DECIMAL: u64 = 9_999_999;
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        if !is_apart(name) {
            return Ok(short_name(name));
        }
        let offset = self.offset(name);
        if offset <= LARGEST_DECIMAL {
            return Ok(short_name(format!("/{offset}").as_bytes()));
        }
        let rest = u64::from(small(offset)?);
        let digit = |place: u32| DIGITS.get((rest >> (6 * place) & 63) as usize);
        let digits = (0..6).rev().filter_map(digit);
        let name: Vec<u8> = b"//".iter().chain(digits).copied().collect();
        Ok(short_name(&name))
    }

    fn symbol(&self, symbol: &EditedCoffSymbol<'_>, out: &mut Vec<u8>) -> Result<(), CoffError> {
        let name = if is_long(symbol.name) {
            let offset = self.offset(symbol.name);
            (u64::from(small(offset)?) << 32).to_le_bytes()
        } else {
            short_name(symbol.name)
        };
        out.extend(name);
        out.extend(symbol.value.to_le_bytes());
        let number = self.number(symbol.section);
        if self.large {
            out.extend(number.to_le_bytes());
        } else {
            // Negative numbers are the last values of 16 bits.
            out.extend((number as u16).to_le_bytes());
        }
        out.extend(symbol.kind.to_le_bytes());
        let count = symbol.count(self.symbol_size) - 1;
        out.extend([symbol.class.0, count as u8]);
        let start = out.len();
        match &symbol.auxiliary {
            Auxiliary::FileName(name) => out.extend_from_slice(name),
            Auxiliary::Records(records) => {
                for record in records {
                    out.extend_from_slice(record);
                    out.resize(out.len() + self.symbol_size - RECORD_SIZE, 0);
                }
            }
        }
        out.resize(start + count * self.symbol_size, 0);
        let [record] = (match &symbol.auxiliary {
            Auxiliary::Records(records) => &records[..],
            Auxiliary::FileName(_) => &[],
        }) else {
            return Ok(());
        };
        let mut record = record.to_vec();
        let mut patch = |place: usize, field: &[u8]| {
            if let Some(bytes) = record.get_mut(place..place + field.len()) {
                bytes.copy_from_slice(field);
            }
        };
        if symbol.section > 0 && symbol.class == pe::IMAGE_SYM_CLASS_STATIC {
            let number = self.number(symbol.associate.unwrap_or(symbol.section));
            let [a, b, c, d] = number.to_le_bytes();
            patch(offset_of!(pe::ImageAuxSymbolSection, number), &[a, b]);
            patch(offset_of!(pe::ImageAuxSymbolSection, high_number), &[c, d]);
        }
        if let Some(default) = symbol.default {
            patch(0, &self.place(default)?.to_le_bytes());
        }
        if let Some(bytes) = out.get_mut(start..start + RECORD_SIZE) {
            bytes.copy_from_slice(&record);
        }
        Ok(())
    }

    /// Returns the offset of a kept name in the string table.
    fn offset(&self, name: &[u8]) -> u64 {
        let offset = self.strings.offset(name);
        offset.expect("the table has every kept name")
    }

    /// Returns the new number of a section. Special numbers stay as they are.
    fn number(&self, number: i32) -> i32 {
        let index = usize::try_from(number)
            .ok()
            .and_then(|number| number.checked_sub(1));
        let new = index.and_then(|index| self.numbers.get(index));
        new.copied().unwrap_or(number)
    }

    /// Returns the new index of a symbol.
    fn place(&self, index: u32) -> Result<u32, CoffError> {
        let found = self
            .places
            .binary_search_by_key(&(index as usize), |(old, _)| *old);
        let place = found.ok().and_then(|found| self.places.get(found));
        place
            .map(|(_, new)| *new)
            .ok_or(CoffError::SymbolNeeded { index })
    }

    fn header(
        &self,
        sections: u64,
        symbols: u64,
        optional: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), CoffError> {
        let (old, pointer) = (self.file.header, U32::new(LE, small(symbols)?));
        let (_, count) = self
            .places
            .last()
            .expect("the last row is the number of records");
        let count = U32::new(LE, *count);
        if self.large {
            let none = U32::new(LE, 0);
            out.extend_from_slice(bytes_of(&pe::AnonObjectHeaderBigobj {
                sig1: U16::new(LE, pe::IMAGE_FILE_MACHINE_UNKNOWN),
                sig2: U16::new(LE, 0xffff),
                version: U16::new(LE, 2),
                machine: old.machine,
                time_date_stamp: old.time_date_stamp,
                class_id: pe::ANON_OBJECT_HEADER_BIGOBJ_CLASS_ID,
                size_of_data: none,
                flags: none,
                meta_data_size: none,
                meta_data_offset: none,
                number_of_sections: U32::new(LE, small(sections)?),
                pointer_to_symbol_table: pointer,
                number_of_symbols: count,
            }));
        } else {
            out.extend_from_slice(bytes_of(&pe::ImageFileHeader {
                // `EditedCoff::write` and the size field have bounded both to 16 bits.
                number_of_sections: U16::new(LE, sections as u16),
                size_of_optional_header: U16::new(LE, optional as u16),
                pointer_to_symbol_table: pointer,
                number_of_symbols: count,
                ..old
            }));
        }
        Ok(())
    }
}

/// Returns true if a section name belongs in the string table. In the header, `/` marks such a name.
fn is_apart(name: &[u8]) -> bool {
    is_long(name) || name.starts_with(b"/")
}

/// Returns true if a symbol name belongs in the string table.
fn is_long(name: &[u8]) -> bool {
    name.len() > 8
}

fn short_name(name: &[u8]) -> [u8; 8] {
    let mut field = [0; 8];
    for (place, byte) in field.iter_mut().zip(name) {
        *place = *byte;
    }
    field
}
