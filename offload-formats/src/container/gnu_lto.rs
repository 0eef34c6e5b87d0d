//! The symbols of an object that GCC's LTO compiles at the last link (`gcc -flto`). Its ELF symbol table is empty; linkers read
//! this one through GCC's plugin.
//!
//! | bytes | field of an entry in `.gnu.lto_.symtab.<id>` |
//! |---|---|
//! | to a NUL | name |
//! | to a NUL | name of its COMDAT group, or nothing |
//! | 1 | kind: definition, weak definition, reference, weak reference, common storage |
//! | 1 | visibility, as `enum ld_plugin_symbol_visibility` of `plugin-api.h` counts it |
//! | 8 | size |
//! | 4 | number in the streams of LTO |
//!
//! Source: objects of GCC 12.2, and `plugin-api.h` of binutils 2.40.

use super::elf::{Elf, ElfError};
use crate::format::bytes::ReadAt;
use crate::format::global_symbol::GlobalSymbol;

const SECTION: &[u8] = b".gnu.lto_.symtab.";
/// Size in bytes of size and number, which follow kind and visibility.
const REST: usize = 12;
/// `LDPV_INTERNAL` and `LDPV_HIDDEN`.
const HIDDEN: [u8; 2] = [2, 3];

/// Lists the symbols; none of other objects.
pub(super) fn symbols<'d, R: ReadAt<'d>>(
    elf: &Elf<'d, R>,
) -> Result<Vec<GlobalSymbol<'d>>, ElfError> {
    let mut symbols = Vec::new();
    let mut excluded = elf
        .sections()
        .filter(super::elf::ElfSection::excluded)
        .peekable();
    if excluded.peek().is_none() {
        return Ok(symbols);
    }
    let names = elf.names()?;
    for section in excluded {
        if names.of(&section)?.starts_with(SECTION) {
            let mut table = elf.content(&section)?;
            while let Some((symbol, rest)) = entry(table) {
                symbols.push(symbol);
                table = rest;
            }
        }
    }
    Ok(symbols)
}

/// Reads an entry, and returns it with what follows.
fn entry(table: &[u8]) -> Option<(GlobalSymbol<'_>, &[u8])> {
    let (name, rest) = string(table)?;
    let (_, rest) = string(rest)?;
    let ([kind, visibility], rest) = rest.split_first_chunk()?;
    let mut symbol = GlobalSymbol::undefined(name);
    symbol.lto = true;
    (symbol.defined, symbol.weak) = match kind {
        0 | 4 => (true, false),
        1 => (true, true),
        3 => (false, true),
        _ => (false, false),
    };
    symbol.common = *kind == 4;
    symbol.hidden = HIDDEN.contains(visibility);
    Some((symbol, rest.get(REST..)?))
}

fn string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let (text, rest) = bytes.split_at_checked(end)?;
    Some((text, rest.get(1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_entries_and_stops_at_damage() {
        let mut table = Vec::new();
        for (name, kind, visibility) in [
            ("main", 0, 0),
            ("w", 1, 3),
            ("cb", 2, 0),
            ("r", 3, 0),
            ("v", 4, 0),
        ] {
            table.extend(name.as_bytes());
            table.extend([0, 0, kind, visibility]);
            table.extend([0; REST]);
        }
        let read = |mut table: &[u8]| {
            let mut found = Vec::new();
            while let Some((symbol, rest)) = entry(table) {
                let name = String::from_utf8(symbol.name.to_vec()).unwrap();
                found.push((
                    name,
                    [symbol.defined, symbol.weak, symbol.hidden, symbol.common],
                ));
                table = rest;
            }
            found
        };
        let expected = [
            ("main", [true, false, false, false]),
            ("w", [true, true, true, false]),
            ("cb", [false, false, false, false]),
            ("r", [false, true, false, false]),
            ("v", [true, false, false, true]),
        ];
        let expected = expected.map(|(name, standing)| (name.to_owned(), standing));
        assert_eq!(read(&table), expected);
        for end in 0..table.len() {
            assert!(read(&table[..end]).len() < expected.len());
        }
    }
}
