//! The symbol index of an archive: tells which member defines a symbol, without a read of any member.
//!
//! GNU's linker knows members by the index alone; lld and mold read every member. So a member without any symbol in
//! the index is asked itself.

use std::ops::Range;

use offload_formats::container::archive::{ArchiveError, symbol_index};
use offload_formats::format::bytes::ReadAt;

/// Copied index, so that nothing else of the archive stays in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArchiveIndex {
    /// All names, one after the other.
    names: Vec<u8>,
    /// Offset of a member's header, and the range of one of its symbols in `names`; sorted.
    symbols: Vec<(u64, Range<usize>)>,
}

impl ArchiveIndex {
    /// Reads the index of an archive of `size` bytes.
    ///
    /// # Errors
    ///
    /// Fails if the index is damaged.
    pub(crate) fn read<'d, R: ReadAt<'d>>(data: R, size: u64) -> Result<Self, ArchiveError> {
        let mut index = Self::default();
        for symbol in symbol_index(data, 0..size)? {
            let start = index.names.len();
            index.names.extend_from_slice(symbol.name);
            let name = start..index.names.len();
            index.symbols.push((symbol.header_offset, name));
        }
        index.symbols.sort_by_key(|(header, _)| *header);
        Ok(index)
    }

    /// Tells whether it has no symbol, as in an archive of bundle files.
    pub(crate) fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Returns the symbols of the member whose header is at this offset.
    pub(crate) fn of_member(&self, header: u64) -> impl Iterator<Item = &[u8]> {
        let start = self.symbols.partition_point(|(of, _)| *of < header);
        let symbols = self.symbols.get(start..).unwrap_or_default().iter();
        let symbols = symbols.take_while(move |(of, _)| *of == header);
        symbols.filter_map(|(_, name)| self.names.get(name.clone()))
    }
}

#[cfg(test)]
mod tests {
    use offload_formats::container::archive::Archive;

    use super::*;

    #[test]
    fn finds_the_symbols_that_llvm_ar_wrote_for_each_member() {
        let bytes: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/gnu.a");
        let index = ArchiveIndex::read(bytes, bytes.len() as u64).unwrap();
        let archive = Archive::parse(bytes, 0..bytes.len() as u64).unwrap();
        let of = archive.members.iter().map(|member| {
            let symbols: Vec<&[u8]> = index.of_member(member.header_offset).collect();
            (member.name, symbols)
        });
        // As `llvm-nm-22 --print-armap` lists them.
        let expected: [(&[u8], Vec<&[u8]>); 3] = [
            (b"fat.o", vec![b"x"]),
            (b"a_rather_long_member_name.o", vec![b"f", b"y"]),
            (b"odd.txt", vec![]),
        ];
        assert_eq!(of.collect::<Vec<_>>(), expected);
        assert_eq!(index.of_member(9).count(), 0);
    }
}
