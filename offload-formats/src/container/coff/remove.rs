//! Removes sections of COFF files. The bytes are those of LLVM's `llvm-objcopy`.

use std::ops::Range;

use super::error::CoffError;
use super::file::EditedCoff;
use crate::format::bytes::ReadAt;
use crate::format::pieces::Piece;

/// Returns a COFF file without the sections whose names match, their associated sections, and the symbols
/// in both.
///
/// Input 0 of the pieces is `data`.
///
/// # Errors
///
/// Fails as [`add_sections`](super::add_sections) does, and if a kept section or symbol needs a removed symbol.
pub fn remove_sections<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    matches: impl Fn(&[u8]) -> bool,
) -> Result<Vec<Piece>, CoffError> {
    let mut file = EditedCoff::read(data, range)?;
    for part in &mut file.parts {
        part.kept = !matches(part.name);
    }
    // A section associated with a removed one is unused.
    let mut changed = true;
    while changed {
        changed = false;
        for symbol in &file.symbols {
            if symbol.associate.is_some_and(|number| !file.is_kept(number)) {
                let part = usize::try_from(symbol.section - 1).ok();
                if let Some(part) = part.and_then(|index| file.parts.get_mut(index)) {
                    changed |= std::mem::replace(&mut part.kept, false);
                }
            }
        }
    }
    let kept: Vec<bool> = file
        .symbols
        .iter()
        .map(|symbol| file.is_kept(symbol.section))
        .collect();
    for (symbol, kept) in file.symbols.iter_mut().zip(kept) {
        symbol.kept = kept;
    }
    file.write()
}

impl EditedCoff<'_> {
    /// Returns false if the section with that number is removed.
    pub(super) fn is_kept(&self, number: i32) -> bool {
        let index = usize::try_from(number)
            .ok()
            .and_then(|number| number.checked_sub(1));
        let part = index.and_then(|index| self.parts.get(index));
        part.is_none_or(|part| part.kept)
    }
}
