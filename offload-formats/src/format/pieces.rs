//! Pieces of an output, before anything is copied.
//!
//! Writers of large files do not hold the images in memory. They list ranges of inputs, and the
//! caller, who has the files open, copies them.

use std::ops::Range;

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
}
