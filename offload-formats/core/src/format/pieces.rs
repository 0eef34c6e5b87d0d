//! Pieces of an output, before anything is copied.
//!
//! Writers of large files do not hold the images in memory. They list ranges of inputs, and the
//! caller, who has the files open, copies them. A file that exists only as pieces can be read like one
//! ([`PieceSource`]), and be a part of another ([`replace_inputs`]).

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Range;

use super::bytes::Source;

/// A part of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// These bytes.
    Bytes(Vec<u8>),
    /// This number of zeros.
    Zeros(u64),
    /// A range of an input.
    Copy {
        /// Number of the input, as defined by the caller.
        input: usize,
        /// Range from the start of the input.
        range: Range<u64>,
    },
}

impl Piece {
    /// Returns the size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Zeros(size) => *size,
            Self::Copy { range, .. } => range.end.saturating_sub(range.start),
        }
    }
}

/// Returns the size of all pieces in bytes.
#[must_use]
pub fn size(pieces: &[Piece]) -> u64 {
    let sizes = pieces.iter().map(Piece::size);
    sizes.fold(0, u64::saturating_add)
}

/// Bytes to embed: in memory, or pieces that refer to inputs of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Embedded<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// This number of zeros.
    Zeros(u64),
    /// These pieces, one after the other.
    Pieces(&'a [Piece]),
}

impl Embedded<'_> {
    /// Returns the size in bytes.
    #[must_use]
    pub fn size(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Zeros(size) => size,
            Self::Pieces(pieces) => size(pieces),
        }
    }

    /// Returns all bytes; `None` if a piece copies an input.
    #[cfg(feature = "tools")]
    #[doc(hidden)]
    pub fn in_memory(self) -> Option<Vec<u8>> {
        to_bytes(&self.to_pieces(), &[])
    }

    /// Returns the bytes as pieces.
    #[must_use]
    pub fn to_pieces(self) -> Vec<Piece> {
        match self {
            Self::Bytes(bytes) => vec![Piece::Bytes(bytes.to_vec())],
            Self::Zeros(size) => vec![Piece::Zeros(size)],
            Self::Pieces(pieces) => pieces.to_vec(),
        }
    }
}

/// Returns `pieces`, which copy input `number(k)` in the place of input *k*.
#[must_use]
pub fn renumbered(mut pieces: Vec<Piece>, number: impl Fn(usize) -> usize) -> Vec<Piece> {
    for piece in &mut pieces {
        if let Piece::Copy { input, .. } = piece {
            *input = number(*input);
        }
    }
    pieces
}

/// Returns `pieces` with each copy of input *k* replaced by that part of `inputs[k]`, which are pieces themselves.
/// `None` if a copy exceeds its input.
#[must_use]
pub fn replace_inputs(pieces: &[Piece], inputs: &[&[Piece]]) -> Option<Vec<Piece>> {
    let mut replaced = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Copy { input, range } => {
                append_part(inputs.get(*input)?, range.clone(), &mut replaced)?;
            }
            other => replaced.push(other.clone()),
        }
    }
    Some(replaced)
}

/// Appends the part `range` of what `pieces` consist of.
fn append_part(pieces: &[Piece], range: Range<u64>, to: &mut Vec<Piece>) -> Option<()> {
    let mut start = 0_u64;
    let mut left = range.clone();
    for piece in pieces {
        let end = start.checked_add(piece.size())?;
        if left.start < left.end && left.start < end {
            let part = left.start - start..left.end.min(end) - start;
            left.start = left.end.min(end);
            to.push(piece.part(part)?);
        }
        start = end;
    }
    (left.start >= left.end && range.end <= start).then_some(())
}

impl Piece {
    /// Returns a part of the piece.
    fn part(&self, part: Range<u64>) -> Option<Self> {
        Some(match self {
            Self::Bytes(bytes) => {
                let start = usize::try_from(part.start).ok()?;
                let end = usize::try_from(part.end).ok()?;
                Self::Bytes(bytes.get(start..end)?.to_vec())
            }
            Self::Zeros(_) => Self::Zeros(part.end - part.start),
            Self::Copy { input, range } => Self::Copy {
                input: *input,
                range: range.start.checked_add(part.start)?..range.start.checked_add(part.end)?,
            },
        })
    }
}

/// Returns the range of input 0 with new bytes at some offsets, as [`replaced`] does.
#[must_use]
pub fn changed(range: Range<u64>, changes: BTreeMap<u64, Vec<u8>>) -> Vec<Piece> {
    let changes = changes.into_iter().map(|(offset, bytes)| {
        let size = bytes.len() as u64;
        (offset, (size, vec![Piece::Bytes(bytes)]))
    });
    replaced(range, changes.collect())
}

/// Returns the range of input 0 with other pieces in the place of some ranges: by their offsets, the old sizes and the
/// new pieces. The ranges do not overlap: of two that do, the second follows the first.
#[must_use]
pub fn replaced(range: Range<u64>, changes: BTreeMap<u64, (u64, Vec<Piece>)>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut copied = range.start;
    let copy = |range: Range<u64>, pieces: &mut Vec<Piece>| {
        if range.start < range.end {
            pieces.push(Piece::Copy { input: 0, range });
        }
    };
    for (offset, (size, new)) in changes {
        copy(copied..offset, &mut pieces);
        copied = offset.saturating_add(size);
        pieces.extend(new);
    }
    copy(copied..range.end, &mut pieces);
    pieces
}

/// Reads what pieces consist of, without joining them: at any offset ([`Source`]), or from the start to the end
/// ([`Read`]).
#[derive(Debug)]
pub struct PieceSource<S> {
    /// Each piece that is not empty, with its offset in bytes.
    pieces: Vec<(u64, Piece)>,
    inputs: Vec<S>,
    size: u64,
    /// Offset of the next byte for [`Read`].
    position: u64,
}

impl<S> PieceSource<S> {
    /// Returns a source of the bytes of `pieces`, which copy ranges of `inputs`.
    pub fn new(pieces: Vec<Piece>, inputs: Vec<S>) -> Self {
        let mut size = 0_u64;
        let mut placed = Vec::new();
        for piece in pieces {
            let end = size.saturating_add(piece.size());
            if end > size {
                placed.push((size, piece));
            }
            size = end;
        }
        Self {
            pieces: placed,
            inputs,
            size,
            position: 0,
        }
    }
}

impl<S: Source> Source for PieceSource<S> {
    fn size(&mut self) -> io::Result<u64> {
        Ok(self.size)
    }

    fn read_exact_at(&mut self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        let outside = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let mut index = self.pieces.partition_point(|(start, _)| *start <= offset);
        index = index.saturating_sub(1);
        while !buffer.is_empty() {
            let (start, piece) = self.pieces.get(index).ok_or_else(outside)?;
            let skipped = offset.checked_sub(*start).ok_or_else(outside)?;
            let left = piece.size().checked_sub(skipped);
            let left = left.ok_or_else(outside)?;
            let count = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
            let (part, rest) = buffer.split_at_mut(count);
            match piece {
                Piece::Bytes(bytes) => {
                    let from = usize::try_from(skipped).ok();
                    let bytes = from.and_then(|from| bytes.get(from..)?.get(..count));
                    part.copy_from_slice(bytes.ok_or_else(outside)?);
                }
                Piece::Zeros(_) => part.fill(0),
                Piece::Copy { input, range } => {
                    let from = range.start.checked_add(skipped).ok_or_else(outside)?;
                    let input = self.inputs.get_mut(*input).ok_or_else(outside)?;
                    input.read_exact_at(part, from)?;
                }
            }
            buffer = rest;
            offset = offset.checked_add(count as u64).ok_or_else(outside)?;
            index += 1;
        }
        Ok(())
    }
}

/// Reads from the start to the end. A piece that exceeds its input is an error of kind `UnexpectedEof`.
impl<S: Source> Read for PieceSource<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.size.saturating_sub(self.position);
        let count = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let position = self.position;
        let part = buffer.get_mut(..count).unwrap_or_default();
        self.read_exact_at(part, position)?;
        self.position = position.saturating_add(count as u64);
        Ok(count)
    }
}

/// Joins all pieces in memory; `None` if a piece exceeds its input.
#[must_use]
pub fn to_bytes(pieces: &[Piece], inputs: &[&[u8]]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Bytes(part) => bytes.extend_from_slice(part),
            Piece::Zeros(size) => bytes.extend((0..*size).map(|_| 0)),
            Piece::Copy { input, range } => {
                let start = usize::try_from(range.start).ok()?;
                let end = usize::try_from(range.end).ok()?;
                bytes.extend_from_slice(inputs.get(*input)?.get(start..end)?);
            }
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn puts_the_pieces_together() {
        let copy = |input, range| Piece::Copy { input, range };
        let pieces = [
            Piece::Bytes(b"ab".to_vec()),
            Piece::Zeros(2),
            copy(1, 1..3),
            copy(0, 0..0),
        ];
        assert_eq!(pieces.iter().map(Piece::size).sum::<u64>(), 6);
        assert_eq!(to_bytes(&pieces, &[b"", b"xyz"]).unwrap(), b"ab\0\0yz");
        assert_eq!(to_bytes(&pieces, &[b"", b"xy"]), None);
        assert_eq!(to_bytes(&pieces, &[b""]), None);
    }

    #[test]
    fn reads_and_replaces_pieces_as_if_they_were_joined() {
        let copy = |input, range| Piece::Copy { input, range };
        let inner = [
            Piece::Bytes(b"head".to_vec()),
            Piece::Zeros(3),
            Piece::Bytes(Vec::new()),
            copy(1, 2..5),
        ];
        let inputs: [&[u8]; 2] = [b"none", b"0123456"];
        let joined = to_bytes(&inner, &inputs).unwrap();
        assert_eq!(joined, b"head\0\0\x00234");
        assert_eq!(size(&inner), 10);
        for start in 0..=joined.len() {
            for end in start..=joined.len() + 1 {
                let outer = [
                    Piece::Bytes(b"<".to_vec()),
                    copy(0, start as u64..end as u64),
                ];
                let replaced = replace_inputs(&outer, &[&inner]);
                let found = replaced.and_then(|pieces| to_bytes(&pieces, &inputs));
                let expected = joined.get(start..end).map(|part| [b"<", part].concat());
                assert_eq!(found, expected, "{start}..{end}");
                let cursors = inputs.map(io::Cursor::new).to_vec();
                let mut source = PieceSource::new(inner.to_vec(), cursors);
                let mut buffer = vec![0xff; end - start];
                let read = source.read_exact_at(&mut buffer, start as u64);
                let expected = joined.get(start..end).map(<[u8]>::to_vec);
                assert_eq!(read.ok().map(|()| buffer), expected, "{start}..{end}");
            }
        }
        let mut all = Vec::new();
        let cursors = inputs.map(io::Cursor::new).to_vec();
        let mut source = PieceSource::new(inner.to_vec(), cursors);
        source.read_to_end(&mut all).unwrap();
        assert_eq!(all, joined);
        let mut short = PieceSource::new(inner.to_vec(), vec![io::Cursor::new(&b"12"[..]); 2]);
        let problem = short.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(problem.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(replace_inputs(&[copy(1, 0..1)], &[&inner]), None);
    }
}
