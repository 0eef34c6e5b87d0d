//! An object file under construction: fields, and embedded pieces between them.

use super::RelocatableSection;
use crate::container::fields::Fields;
use crate::format::pieces::{self, Piece};

/// The part of a file after its header, which is written last.
pub(super) struct FileFields {
    /// Everything before `fields`.
    pieces: Vec<Piece>,
    /// Size of the header and `pieces` in bytes.
    start: u64,
    pub(super) fields: Fields,
}

impl FileFields {
    /// Returns an empty file after a header of `size` bytes.
    pub(super) fn after_header(size: u64) -> Self {
        Self {
            pieces: Vec::new(),
            start: size,
            fields: Fields::default(),
        }
    }

    /// Returns the offset of the next byte in the file.
    pub(super) fn end(&self) -> u64 {
        self.start + self.fields.0.len() as u64
    }

    /// Adds zeros up to a multiple of `alignment`, and returns the offset.
    pub(super) fn align(&mut self, alignment: u64) -> u64 {
        let end = self.end();
        let offset = end.next_multiple_of(alignment);
        self.fields.zeros(offset - end);
        offset
    }

    /// Adds the embedded parts of a section.
    pub(super) fn embed(&mut self, section: &RelocatableSection<'_>) {
        let parts = section.embedded.iter().filter(|part| part.size() > 0);
        let parts: Vec<Piece> = parts.flat_map(|part| part.to_pieces()).collect();
        if parts.is_empty() {
            return;
        }
        self.start = self.end() + pieces::size(&parts);
        let fields = std::mem::take(&mut self.fields);
        self.pieces.push(Piece::Bytes(fields.0));
        self.pieces.extend(parts);
    }

    /// Returns the file with its header.
    pub(super) fn finish(self, header: Vec<u8>) -> Vec<Piece> {
        let mut file = vec![Piece::Bytes(header)];
        file.extend(self.pieces);
        file.push(Piece::Bytes(self.fields.0));
        file
    }
}
