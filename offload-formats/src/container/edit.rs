//! Shared parts of edits of object files: sections to add, and an output composed of pieces of
//! the old file.

use std::collections::BTreeMap;

use crate::format::pieces::Piece;

/// A section to add. Linkers leave it out: it is for tools that run before the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewSection<'a> {
    /// Name, without NUL.
    pub name: &'a [u8],
    /// The section's content.
    pub content: NewContent<'a>,
}

/// Content of a new section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewContent<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// A whole input: the added section with index *k* contains input *k* + 1.
    Input {
        /// Size in bytes.
        size: u64,
    },
}

impl NewContent<'_> {
    /// Returns the size in bytes.
    #[must_use]
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Input { size } => *size,
        }
    }

    /// Returns the content of the added section with that index.
    pub(super) fn piece(&self, index: usize) -> Piece {
        match self {
            Self::Bytes(bytes) => Piece::Bytes(bytes.to_vec()),
            // Saturation cannot happen: no file has `usize::MAX` sections.
            Self::Input { size } => Piece::Copy {
                input: index.saturating_add(1),
                range: 0..*size,
            },
        }
    }
}

/// The pieces of an output by offset. A later piece covers earlier ones.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// Pieces by offset, without overlaps.
    parts: BTreeMap<u64, Piece>,
}

impl Output {
    pub(super) fn put(&mut self, offset: u64, piece: Piece) {
        let end = offset.saturating_add(piece.size());
        if end == offset {
            return;
        }
        self.cut(offset);
        self.cut(end);
        let mut covered: Vec<u64> = Vec::new();
        covered.extend(self.parts.range(offset..end).map(|(start, _)| *start));
        for start in covered {
            self.parts.remove(&start);
        }
        self.parts.insert(offset, piece);
    }

    /// Splits the piece that contains `offset`, if there is one.
    fn cut(&mut self, offset: u64) {
        let Some((start, piece)) = self.parts.range_mut(..offset).next_back() else {
            return;
        };
        let before = offset - *start;
        if let Some(rest) = split(piece, before) {
            self.parts.insert(offset, rest);
        }
    }

    /// Returns the pieces up to `size`, with zeros in the gaps.
    pub(super) fn finish(self, size: u64) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut end = 0;
        for (offset, piece) in self.parts {
            append(&mut pieces, Piece::Zeros(offset - end));
            end = offset + piece.size();
            append(&mut pieces, piece);
        }
        append(&mut pieces, Piece::Zeros(size.saturating_sub(end)));
        pieces
    }
}

/// Leaves the first `before` bytes in `piece` and returns the others, if there are any.
fn split(piece: &mut Piece, before: u64) -> Option<Piece> {
    if before >= piece.size() {
        return None;
    }
    Some(match piece {
        // `before` is less than the length, which is a `usize`.
        Piece::Bytes(bytes) => Piece::Bytes(bytes.split_off(before as usize)),
        Piece::Zeros(size) => {
            let rest = *size - before;
            *size = before;
            Piece::Zeros(rest)
        }
        Piece::Copy { input, range } => {
            let middle = range.start + before;
            let rest = middle..range.end;
            range.end = middle;
            Piece::Copy {
                input: *input,
                range: rest,
            }
        }
    })
}

/// Appends a piece; merges it with the last one if they are contiguous.
fn append(pieces: &mut Vec<Piece>, piece: Piece) {
    if piece.size() == 0 {
        return;
    }
    match (pieces.last_mut(), &piece) {
        (Some(Piece::Bytes(bytes)), Piece::Bytes(more)) => bytes.extend_from_slice(more),
        (Some(Piece::Zeros(size)), Piece::Zeros(more)) => *size += more,
        (
            Some(Piece::Copy { input, range }),
            Piece::Copy {
                input: same,
                range: more,
            },
        ) if input == same && range.end == more.start => range.end = more.end,
        _ => pieces.push(piece),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::pieces::to_bytes;

    fn copy(range: std::ops::Range<u64>) -> Piece {
        Piece::Copy { input: 0, range }
    }

    #[test]
    fn covers_what_is_there_and_fills_the_gaps() {
        let mut output = Output::default();
        output.put(2, copy(0..6));
        output.put(4, Piece::Bytes(b"xy".to_vec()));
        output.put(10, copy(8..10));
        output.put(7, Piece::Zeros(2));
        output.put(12, copy(3..3));
        let pieces = output.finish(14);
        assert_eq!(
            to_bytes(&pieces, &[b"ABCDEFGHIJ"]).unwrap(),
            b"\0\0ABxyE\0\0\0IJ\0\0"
        );
    }

    #[test]
    fn covers_parts_as_a_plain_buffer_would() {
        // All pairs of ranges of 6 bytes, on a third that is cut twice.
        let input: Vec<u8> = (b'a'..=b'z').collect();
        for (start, end, other, past) in (0..6).flat_map(|start| {
            (start..7).flat_map(move |end| {
                (0..6).flat_map(move |other| (other..7).map(move |past| (start, end, other, past)))
            })
        }) {
            let mut expected = vec![0; 8];
            let mut output = Output::default();
            let mut put = |offset: u64, range: std::ops::Range<u64>| {
                let (size, at) = ((range.end - range.start) as usize, offset as usize);
                let from = range.start as usize;
                expected[at..at + size].copy_from_slice(&input[from..from + size]);
                output.put(offset, copy(range));
            };
            put(1, 10..16);
            put(start, start..end);
            put(other, 7 + other..7 + past);
            assert_eq!(to_bytes(&output.finish(8), &[&input]).unwrap(), expected);
        }
    }

    #[test]
    fn copies_in_one_piece_what_lies_together() {
        let mut output = Output::default();
        output.put(0, copy(0..4));
        output.put(4, copy(4..9));
        assert_eq!(output.finish(9), [copy(0..9)]);
    }
}
