//! String tables of object files and offload binaries, with the same bytes as LLVM's writers. A
//! string that is a suffix of another shares its bytes.
//!
//! The strings are sorted by their reversed bytes, descending. So a string comes right after one
//! that it is a suffix of, if there is one.

use std::cmp::Ordering;

/// Strings to put into a string table.
#[derive(Debug, Default)]
pub struct StringTableBuilder<'a> {
    /// Strings that must come before all others.
    first: Vec<&'a [u8]>,
    others: Vec<&'a [u8]>,
}

/// Offsets of the strings.
#[derive(Debug)]
pub struct StringTable<'a> {
    /// Strings with their offsets from the start of the table, sorted.
    places: Vec<(&'a [u8], u64)>,
    /// The table, with its first bytes.
    pub bytes: Vec<u8>,
}

impl<'a> StringTableBuilder<'a> {
    /// Adds a string. The empty string is in every table.
    pub fn add(&mut self, string: &'a [u8]) {
        if !string.is_empty() {
            self.others.push(string);
        }
    }

    /// Adds a string whose offset must be small.
    pub fn add_first(&mut self, string: &'a [u8]) {
        if !string.is_empty() {
            self.first.push(string);
        }
    }

    /// Builds the table, which begins with `start`.
    pub fn layout(mut self, start: &[u8]) -> StringTable<'a> {
        for strings in [&mut self.first, &mut self.others] {
            strings.sort_unstable_by(|a, b| backwards(a, b));
            strings.dedup();
        }
        let is_first = |string: &&[u8]| {
            let place = self
                .first
                .binary_search_by(|first| backwards(first, string));
            place.is_ok()
        };
        self.others.retain(|string| !is_first(string));
        let mut bytes = start.to_vec();
        let mut places: Vec<(&[u8], u64)> = Vec::new();
        let mut previous: &[u8] = &[];
        for string in self.first.into_iter().chain(self.others) {
            if !previous.ends_with(string) {
                bytes.extend_from_slice(string);
                bytes.push(0);
                previous = string;
            }
            // The bytes written last end with the string and a NUL.
            places.push((string, (bytes.len() - string.len() - 1) as u64));
        }
        places.sort_unstable_by(|(a, _), (b, _)| backwards(a, b));
        StringTable { places, bytes }
    }
}

impl StringTable<'_> {
    /// Returns the offset of a string, if it was added.
    pub fn offset(&self, string: &[u8]) -> Option<u64> {
        if string.is_empty() {
            return Some(0);
        }
        let place = self
            .places
            .binary_search_by(|(other, _)| backwards(other, string));
        self.places.get(place.ok()?).map(|(_, offset)| *offset)
    }
}

fn backwards(a: &[u8], b: &[u8]) -> Ordering {
    b.iter().rev().cmp(a.iter().rev())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_the_ends_of_strings() {
        let mut strings = StringTableBuilder::default();
        for string in [".text", ".rela.text", "x", "", ".data", "x", "next"] {
            strings.add(string.as_bytes());
        }
        let table = strings.layout(b"\0");
        assert_eq!(table.bytes, b"\0x\0.rela.text\0next\0.data\0");
        let offset = |string: &str| table.offset(string.as_bytes());
        assert_eq!(offset(".text"), Some(8));
        assert_eq!(offset(".rela.text"), Some(3));
        assert_eq!(offset(""), Some(0));
        assert_eq!(offset("x"), Some(1));
        assert_eq!(offset("ext"), None);
    }

    #[test]
    fn is_its_start_when_empty() {
        assert_eq!(StringTableBuilder::default().layout(b"\0").bytes, b"\0");
        let mut strings = StringTableBuilder::default();
        strings.add(b"");
        assert_eq!(strings.layout(b"\0").bytes, b"\0");
    }
}
