//! The notes of an ELF file.

use std::ops::Range;

use object::read::elf::{FileHeader, NoteIterator, ProgramHeader as _};
use object::{Endianness, elf};

use super::{Elf, ElfError, Headers};
use crate::container::view::View;
use crate::format::bytes::{Cursor, OutOfBounds, ReadAt};

/// A note of an ELF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ElfNote<'d> {
    /// Owner of the type, without NUL.
    pub owner: &'d [u8],
    /// Type (`n_type`).
    pub note_type: u32,
    /// The content, without padding.
    pub content: &'d [u8],
}

impl<'d, R: ReadAt<'d>> Elf<'d, R> {
    /// Reads the notes in segments, which loaders read, or else those in sections.
    ///
    /// # Errors
    ///
    /// Fails if the program headers or notes are not inside the file, are invalid, or overlap.
    pub fn notes(&self) -> Result<Vec<ElfNote<'d>>, ElfError> {
        match self.headers {
            Headers::Elf32(_) => self.notes_of::<elf::FileHeader32<Endianness>>(),
            Headers::Elf64(_) => self.notes_of::<elf::FileHeader64<Endianness>>(),
        }
    }

    fn notes_of<H: FileHeader<Endian = Endianness>>(&self) -> Result<Vec<ElfNote<'d>>, ElfError> {
        let header = H::parse(self.header).expect("`Elf::parse` read this header");
        let (endian, window) = (self.endian, View::new(self.data, self.range.clone()));
        let segments = header
            .program_headers(endian, window)
            .map_err(|_| ElfError::Segments {
                offset: header.e_phoff(endian).into(),
                count: header.e_phnum(endian).into(),
                entry_size: header.e_phentsize(endian),
            })?;
        // Notes do not overlap, so together they are not larger than the file.
        let mut left = self.range.end.saturating_sub(self.range.start);
        let mut found = Vec::new();
        for (index, segment) in segments.iter().enumerate() {
            if segment.p_type(endian) == elf::PT_NOTE {
                let (offset, size) = segment.file_range(endian);
                let offset = self.range.start.saturating_add(offset);
                let range = OutOfBounds::check("content", offset, size, self.range.end)
                    .map_err(|problem| ElfError::Segment { index, problem })?;
                let align = segment.p_align(endian).into();
                self.collect(range, align, &mut left, &mut found)?;
            }
        }
        if found.is_empty() {
            let sections = self.sections();
            for section in sections.filter(|one| one.section_type == elf::SHT_NOTE.0) {
                let range = self.check(&section)?;
                self.collect(range, section.alignment, &mut left, &mut found)?;
            }
        }
        Ok(found)
    }

    /// Adds the notes of a range, which takes its size from `left`.
    fn collect(
        &self,
        range: Range<u64>,
        align: u64,
        left: &mut u64,
        found: &mut Vec<ElfNote<'d>>,
    ) -> Result<(), ElfError> {
        let offset = range.start;
        let damaged = ElfError::Notes { offset };
        let size = range.end.saturating_sub(offset);
        *left = left.checked_sub(size).ok_or(damaged)?;
        let bytes = Cursor::new(self.data, range).read(size, "notes");
        let bytes = bytes.map_err(ElfError::Outside)?;
        // Notes of both classes have the same layout.
        type Header = elf::FileHeader64<Endianness>;
        let notes = NoteIterator::<Header>::new(self.endian, align, bytes);
        for note in notes.map_err(|_| damaged)? {
            let note = note.map_err(|_| damaged)?;
            found.push(ElfNote {
                owner: note.name(),
                note_type: note.n_type(self.endian).0,
                content: note.desc(),
            });
        }
        Ok(())
    }
}
