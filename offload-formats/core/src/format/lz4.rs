//! Blocks of LZ4, without the headers and checksums of LZ4's files.
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
//! The match may overlap the bytes that it appends. The last sequence ends after its literals, of which it has at least 5;
//! the last match starts at least 12 bytes before the end.
//!
//! Specification: <https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md>.

/// Size of the shortest match.
const SHORTEST: usize = 4;
/// Value of four bits of a token that has more bytes.
const MORE: u8 = 15;
/// Maximum output for each byte of input: a length's byte adds at most 255.
const LARGEST_RATIO: usize = 255;
/// Largest distance to a match.
const WINDOW: usize = 0xffff;
/// No match starts in as many bytes at the end of the output.
const LAST_START: usize = 12;
/// No match reaches into as many bytes at the end of the output.
const LAST_LITERALS: usize = 5;
/// Number of earlier places that are compared, the nearest first. On PTX, twice as many save 1 %.
const ATTEMPTS: usize = 32;
/// Bits of the number that stands for the first bytes of a match.
const HASH_BITS: u32 = 16;

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

/// Compresses `bytes` to a block. The same bytes become the same block.
pub(super) fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut matches = Matches::new(bytes);
    let mut block = Vec::new();
    let (mut written, mut position) = (0, 0);
    let last = bytes.len().saturating_sub(LAST_START);
    while position < last {
        let found = matches.longest(position);
        let end = position + found.as_ref().map_or(1, |found| found.length);
        (position..end).for_each(|position| matches.add(position));
        if let Some(found) = found {
            let literals = bytes.get(written..position).unwrap_or_default();
            write_sequence(&mut block, literals, Some(&found));
            written = end;
        }
        position = end;
    }
    let literals = bytes.get(written..).unwrap_or_default();
    write_sequence(&mut block, literals, None);
    block
}

/// Bytes that occurred before.
struct Match {
    distance: u16,
    length: usize,
}

/// The earlier places of all bytes in the window.
struct Matches<'d> {
    bytes: &'d [u8],
    /// For each hash, the end of the last place's first byte; 0 if there is none.
    heads: Vec<usize>,
    /// For each place, by its low bits, the same of the place before it with its hash.
    before: Vec<usize>,
}

impl<'d> Matches<'d> {
    fn new(bytes: &'d [u8]) -> Self {
        Self {
            bytes,
            heads: vec![0; 1 << HASH_BITS],
            before: vec![0; WINDOW + 1],
        }
    }

    /// Returns the number that stands for the bytes at `position`.
    fn hash(&self, position: usize) -> Option<usize> {
        let first: &[u8; SHORTEST] = self.bytes.get(position..)?.first_chunk()?;
        // The golden ratio in 32 bits spreads what differs over the high bits.
        let spread = u32::from_le_bytes(*first).wrapping_mul(0x9e37_79b1);
        Some((spread >> (u32::BITS - HASH_BITS)) as usize)
    }

    /// Adds the place at `position`.
    fn add(&mut self, position: usize) {
        let Some(hash) = self.hash(position) else {
            return;
        };
        let head = self.heads.get_mut(hash);
        if let (Some(head), Some(before)) = (head, self.before.get_mut(position & WINDOW)) {
            *before = std::mem::replace(head, position + 1);
        }
    }

    /// Returns the longest match for the bytes at `position`, the nearest of equal ones.
    fn longest(&self, position: usize) -> Option<Match> {
        let end = self.bytes.len().checked_sub(LAST_LITERALS)?;
        let wanted = self.bytes.get(position..end)?;
        let mut next = self.heads.get(self.hash(position)?).copied();
        let mut longest = None;
        let mut length = SHORTEST - 1;
        for _ in 0..ATTEMPTS {
            let Some(place) = next.and_then(|end| end.checked_sub(1)) else {
                break;
            };
            let distance = position - place;
            let Some(distance) = u16::try_from(distance).ok() else {
                break;
            };
            let found = self.bytes.get(place..).unwrap_or_default();
            // Most places are not longer, which one byte shows.
            if found.get(length) == wanted.get(length) {
                let common = common_length(found, wanted);
                if common > length {
                    length = common;
                    longest = Some(Match { distance, length });
                }
            }
            if length >= wanted.len() {
                break;
            }
            next = self.before.get(place & WINDOW).copied();
        }
        longest
    }
}

/// Returns how many bytes `one` and `other` begin with in common.
fn common_length(one: &[u8], other: &[u8]) -> usize {
    const PART: usize = 16;
    let parts = one.chunks_exact(PART).zip(other.chunks_exact(PART));
    let equal = PART * parts.take_while(|(one, other)| one == other).count();
    let (one, other) = (one.iter().skip(equal), other.iter().skip(equal));
    equal
        + one
            .zip(other)
            .take_while(|(one, other)| one == other)
            .count()
}

fn write_sequence(block: &mut Vec<u8>, literals: &[u8], found: Option<&Match>) {
    let longer = found.map_or(0, |found| found.length - SHORTEST);
    let bits = |length: usize| u8::try_from(length).map_or(MORE, |length| length.min(MORE));
    block.push(bits(literals.len()) << 4 | bits(longer));
    write_more(block, literals.len());
    block.extend_from_slice(literals);
    if let Some(found) = found {
        block.extend(found.distance.to_le_bytes());
        write_more(block, longer);
    }
}

/// Writes what the four bits of a token do not have of `length`.
fn write_more(block: &mut Vec<u8>, length: usize) {
    let Some(more) = length.checked_sub(MORE.into()) else {
        return;
    };
    let full = more / usize::from(u8::MAX);
    block.resize(block.len() + full, u8::MAX);
    block.push((more % usize::from(u8::MAX)) as u8);
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
    fn compresses_to_what_the_format_allows() {
        // By hand, as above: no match starts in the last 12 bytes, or reaches into the last 5.
        assert_eq!(compress(b""), b"\0");
        assert_eq!(compress(b"abcabcabcabc!"), b"\xd0abcabcabcabc!");
        assert_eq!(compress(b"abcabcabcabcabcabc!"), b"\x37abc\x03\0\x50cabc!");
    }

    #[test]
    fn decompresses_what_it_compressed() {
        let mut numbers = 1_u32;
        let mut random = |below: u32| {
            numbers = numbers.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (numbers >> 16) % below
        };
        for letters in [1, 2, 5, 256] {
            for size in (0..40).chain([4096, 70_000, 200_000]) {
                let bytes: Vec<u8> = (0..size).map(|_| random(letters) as u8).collect();
                let block = compress(&bytes);
                assert_eq!(decompress(&block, bytes.len()).as_ref(), Ok(&bytes));
                if size > 4096 && letters == 1 {
                    assert!(block.len() <= size / LARGEST_RATIO + 16, "{}", block.len());
                }
            }
        }
        // At the largest distance, and one byte beyond it.
        let word = b"a word that stands at both ends";
        for (between, repeats) in [
            (WINDOW - word.len(), true),
            (WINDOW + 1 - word.len(), false),
        ] {
            let mut bytes = word.to_vec();
            bytes.extend((0..between).map(|_| 128 | random(128) as u8));
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"the end");
            let block = compress(&bytes);
            assert_eq!(decompress(&block, bytes.len()).as_ref(), Ok(&bytes));
            let literals = block
                .windows(word.len())
                .filter(|part| part == word)
                .count();
            assert_eq!(literals, if repeats { 1 } else { 2 });
        }
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
