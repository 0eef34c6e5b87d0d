//! Relocations of linked 64-bit little-endian files.

use object::elf;

use crate::format::bytes::record;

record! {
    pub(crate) struct Relocation64, "relocation", 24 bytes {
        0x00 address: u64,
        0x08 info: u64,
        0x10 addend: u64,
    }
}

/// Effect of a relocation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RelocationKind {
    /// Writes an address: the load address and the addend.
    Relative,
    /// Writes a symbol's address and the addend.
    Absolute,
    /// Writes a symbol's address.
    Symbol,
    Other,
}

impl RelocationKind {
    /// Returns the effect of a type of relocation on a machine.
    pub(crate) fn of(machine: u16, number: u32) -> Self {
        let [relative, indirect, absolute, data, jump] = match elf::Machine(machine) {
            elf::EM_AARCH64 => [1027, 1032, 257, 1025, 1026],
            _ => [8, 37, 1, 6, 7],
        };
        match number {
            _ if number == relative || number == indirect => Self::Relative,
            _ if number == absolute => Self::Absolute,
            _ if number == data || number == jump => Self::Symbol,
            _ => Self::Other,
        }
    }
}

/// Lists the addresses of words that packed relative relocations change: an even word is an address; an odd one has a bit
/// for each of the 63 words after the last.
pub(crate) fn packed_addresses(words: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
    let mut next = 0_u64;
    words.flat_map(move |word| {
        let start = next;
        let (first, bits) = match word & 1 {
            0 => (Some(word), 0),
            _ => (None, word >> 1),
        };
        next = match first {
            Some(address) => address.wrapping_add(8),
            None => start.wrapping_add(63 * 8),
        };
        let bits = (0..63).filter(move |bit| bits >> bit & 1 == 1);
        let others = bits.map(move |bit| start.wrapping_add(bit * 8));
        first.into_iter().chain(others)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_words_of_bits_one_after_the_other() {
        // An address; bits of the first and last word after it; the first word after these 63.
        let words = [0x1000, 1 | 1 << 1 | 1 << 63, 1 | 1 << 1, 0x2000, 1 | 1 << 1];
        let found: Vec<u64> = packed_addresses(words.into_iter()).collect();
        let last = 0x1008 + 62 * 8;
        assert_eq!(found, [0x1000, 0x1008, last, last + 8, 0x2000, 0x2008]);
    }
}
