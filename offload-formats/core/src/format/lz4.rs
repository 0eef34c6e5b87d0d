//! Decompresses a block of LZ4, without the headers and checksums of LZ4's files.
//!
//! A block is a list of sequences:
//!
//! | part | content |
//! |---|---|
//! | token, 1 byte | high four bits: number of literals; low four bits: length of the match, less 4 |
//! | more literals | if the token has 15: bytes that are added, up to and including the first below 255 |
//! | literals | bytes of the output |
//! | offset, 2 bytes | distance back from the end of the output to the match, at least 1 |
//! | longer match | if the token has 15: bytes that are added, as for literals |
//!
//! The match may overlap the bytes that it appends. The last sequence ends after its literals.
//!
//! Specification: <https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md>.

/// Size of the shortest match.
const SHORTEST: usize = 4;
/// Value of four bits of a token that has more bytes.
const MORE: u8 = 15;
/// Maximum output for each byte of input: a length's byte adds at most 255.
const LARGEST_RATIO: usize = 255;

/// A damaged block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lz4Error {
    /// The block ends inside a sequence that starts before this offset.
    Cut {
        /// Offset from the start of the block.
        offset: usize,
    },
    /// A match starts before the output, or at its end.
    Offset {
        /// Offset of the match's offset from the start of the block.
        offset: usize,
    },
    /// The output is larger than expected.
    Longer,
    /// The output is smaller than expected.
    Shorter {
        /// Its size.
        found: usize,
    },
}

/// Decompresses `block` to exactly `size` bytes.
pub(super) fn decompress(block: &[u8], size: usize) -> Result<Vec<u8>, Lz4Error> {
    let room = size.min(block.len().saturating_mul(LARGEST_RATIO));
    let mut output = Lz4Output {
        bytes: Vec::with_capacity(room),
        size,
    };
    let mut input = Lz4Input { block, position: 0 };
    loop {
        let [token] = input.array()?;
        let literals = input.length(token >> 4)?;
        output.literals(input.take(literals)?)?;
        if input.is_at_end() {
            break;
        }
        let offset = input.position;
        let distance = usize::from(u16::from_le_bytes(input.array()?));
        let length = input.length(token & MORE)?.saturating_add(SHORTEST);
        output.matched(distance, length, offset)?;
    }
    match output.bytes.len() {
        found if found == size => Ok(output.bytes),
        found => Err(Lz4Error::Shorter { found }),
    }
}

/// The rest of a block.
struct Lz4Input<'d> {
    block: &'d [u8],
    position: usize,
}

impl<'d> Lz4Input<'d> {
    fn is_at_end(&self) -> bool {
        self.position == self.block.len()
    }

    fn take(&mut self, count: usize) -> Result<&'d [u8], Lz4Error> {
        let end = self.position.checked_add(count);
        let bytes = end.and_then(|end| self.block.get(self.position..end));
        let bytes = bytes.ok_or(Lz4Error::Cut {
            offset: self.position,
        })?;
        self.position += count;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Lz4Error> {
        let bytes = self.take(N)?;
        Ok(bytes.try_into().expect("N bytes were taken"))
    }

    /// Returns the length that starts with four bits of a token.
    fn length(&mut self, bits: u8) -> Result<usize, Lz4Error> {
        let mut length = usize::from(bits);
        if bits == MORE {
            loop {
                let [more] = self.array()?;
                length = length.saturating_add(more.into());
                if more != u8::MAX {
                    break;
                }
            }
        }
        Ok(length)
    }
}

/// Decompressed bytes, at most `size`.
struct Lz4Output {
    bytes: Vec<u8>,
    size: usize,
}

impl Lz4Output {
    fn literals(&mut self, literals: &[u8]) -> Result<(), Lz4Error> {
        self.check(literals.len())?;
        self.bytes.extend_from_slice(literals);
        Ok(())
    }

    /// Appends `length` bytes, each equal to the byte `distance` before it.
    fn matched(&mut self, distance: usize, length: usize, offset: usize) -> Result<(), Lz4Error> {
        self.check(length)?;
        let start = self.bytes.len().checked_sub(distance);
        let start = start
            .filter(|_| distance > 0)
            .ok_or(Lz4Error::Offset { offset })?;
        let mut left = length;
        // Each pass copies the bytes after `start`, of which there are more after each pass.
        while left > 0 {
            let count = left.min(self.bytes.len() - start);
            self.bytes.extend_from_within(start..start + count);
            left -= count;
        }
        Ok(())
    }

    fn check(&self, more: usize) -> Result<(), Lz4Error> {
        match self.size - self.bytes.len() < more {
            true => Err(Lz4Error::Longer),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decompresses_literals_and_overlapping_matches() {
        // By hand: `abc`, then 9 bytes from 3 back, then `!`.
        assert_eq!(
            decompress(b"\x35abc\x03\0\x10!", 13).as_deref(),
            Ok(&b"abcabcabcabc!"[..])
        );
        // 15 + 255 + 5 literals.
        let long = [b"\xf0\xff\x05".to_vec(), vec![b'x'; 275]].concat();
        assert_eq!(decompress(&long, 275), Ok(vec![b'x'; 275]));
        // One literal, then 4 + 15 + 255 + 1 bytes from 1 back; no literals at the end.
        let run = b"\x1fz\x01\0\xff\x01\0";
        assert_eq!(decompress(run, 276), Ok(vec![b'z'; 276]));
        assert_eq!(decompress(b"\0", 0), Ok(Vec::new()));
    }

    #[test]
    fn rejects_damage() {
        let block = b"\x35abc\x03\0\x10!";
        for len in 0..block.len() {
            // A cut after literals is a whole block of fewer bytes.
            let expected = match len {
                4 => Lz4Error::Shorter { found: 3 },
                0 => Lz4Error::Cut { offset: 0 },
                1..=3 => Lz4Error::Cut { offset: 1 },
                5 => Lz4Error::Cut { offset: 4 },
                6 => Lz4Error::Cut { offset: 6 },
                _ => Lz4Error::Cut { offset: 7 },
            };
            assert_eq!(decompress(&block[..len], 13), Err(expected), "{len}");
        }
        assert_eq!(decompress(block, 12), Err(Lz4Error::Longer));
        assert_eq!(decompress(block, 14), Err(Lz4Error::Shorter { found: 13 }));
        for distance in [0, 4, 255] {
            let mut wrong = *block;
            wrong[4] = distance;
            assert_eq!(
                decompress(&wrong, 13),
                Err(Lz4Error::Offset { offset: 4 }),
                "{distance}"
            );
        }
        // A size that the input cannot have allocates nothing of that size.
        assert_eq!(
            decompress(b"\x10x", usize::MAX),
            Err(Lz4Error::Shorter { found: 1 })
        );
    }

    #[test]
    fn survives_every_single_byte_change() {
        let mut block = *b"\x35abc\x03\0\x1fz\x01\0\xff\x01\0";
        for place in 0..block.len() {
            let byte = block[place];
            for changed in 0..=255 {
                block[place] = changed;
                let _ = decompress(&block, 300);
            }
            block[place] = byte;
        }
    }
}
