//! Renames a function of bitcode in place, to a name of the same size.
//!
//! The strings contain the names, and records have their offsets. So nothing else changes, except the symbol table for linkers: it
//! has no functions whose name starts with `llvm.`. LLVM makes a table of another version anew (`irsymtab::readBitcode` in
//! `llvm/lib/Object/IRSymtab.cpp` of LLVM 22), and no LLVM writes version 0.

use std::ops::Range;

use super::bitstream::blocks;
use super::{BitcodeError, FUNCTION, MODULE, STRTAB, SYMTAB, name, unwrap};

/// Size in bytes of the version, at the start of a symbol table.
const VERSION_SIZE: usize = size_of::<u32>();

/// Renames the function `from` of the bitcode `data`, if it has one.
///
/// # Errors
///
/// Fails if `data` is not bitcode, or a block, record or name exceeds its container.
pub fn rename_function<const SIZE: usize>(
    data: &mut [u8],
    from: &[u8; SIZE],
    to: &[u8; SIZE],
) -> Result<(), BitcodeError> {
    let [names, versions] = places(data, from)?;
    if names.is_empty() {
        return Ok(());
    }
    for place in names {
        if let Some(name) = data.get_mut(place) {
            name.copy_from_slice(to);
        }
    }
    for place in versions {
        if let Some(version) = data.get_mut(place) {
            version.fill(0);
        }
    }
    Ok(())
}

/// Returns the places of the function's name, and of the versions of symbol tables.
fn places(data: &[u8], function: &[u8]) -> Result<[Vec<Range<usize>>; 2], BitcodeError> {
    let place = |part: &[u8]| {
        let start = part.as_ptr().addr().saturating_sub(data.as_ptr().addr());
        start..start.saturating_add(part.len())
    };
    let (mut waiting, mut names, mut versions) = (Vec::new(), Vec::new(), Vec::new());
    for block in blocks(data, unwrap(data, 0..data.len() as u64)?)? {
        let mut blob = None;
        block.records(data, &mut |record| match block.id {
            MODULE if record.code == FUNCTION => {
                waiting.push((record.field(0), record.field(1)));
            }
            STRTAB | SYMTAB => blob = blob.or(record.blob),
            _ => {}
        })?;
        match (block.id, blob) {
            (STRTAB, Some(strings)) => {
                for (offset, size) in waiting.drain(..) {
                    let name = name(strings, offset, size)?;
                    names.extend((name == function).then(|| place(name)));
                }
            }
            (SYMTAB, Some(table)) => versions.extend(table.get(..VERSION_SIZE).map(place)),
            _ => {}
        }
    }
    match waiting.as_slice() {
        [] => Ok([names, versions]),
        _ => Err(BitcodeError::Strings),
    }
}
