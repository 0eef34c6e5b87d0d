//! Bundles with another compression.

use std::ops::Range;

use super::choice::Recompression;
use super::error::PruneProblem;
use crate::format::bytes::{Cursor, ReadAt};
use crate::format::compressed_bundle::{self, CompressedBundle, CompressedBundleError};
use crate::format::magic::Magic;

/// Returns the bundle at a range with another compression; `None` if it stays as it is. Neither the bundle nor its unpacked
/// bytes may exceed `limit`.
pub(super) fn recompressed<'d, R: ReadAt<'d>>(
    data: R,
    range: &Range<u64>,
    how: Recompression,
    limit: u64,
) -> Result<Option<Vec<u8>>, PruneProblem> {
    let size = range.end.saturating_sub(range.start);
    let old = match Magic::at(data, range.clone()) {
        Magic::CompressedBundle => {
            let old = CompressedBundle::parse(data, range.start, range.end);
            Some(old.map_err(PruneProblem::Compressed)?)
        }
        _ => None,
    };
    let plain = match (&old, how) {
        (None, Recompression::Decompress) => return Ok(None),
        (Some(old), Recompression::Compress(how))
            if (old.version, old.method) == (how.version, how.method) && how.level.is_none() =>
        {
            return Ok(None);
        }
        (Some(old), _) => old
            .decompress(data, limit)
            .map_err(PruneProblem::Compressed)?,
        (None, _) if size > limit => {
            let claimed = size;
            let problem = CompressedBundleError::Limit { claimed, limit };
            return Err(PruneProblem::Compressed(problem));
        }
        (None, _) => {
            let bytes = Cursor::new(data, range.clone()).read(size, "bundle");
            bytes.map_err(PruneProblem::Outside)?.to_vec()
        }
    };
    match how {
        Recompression::Decompress => Ok(Some(plain)),
        Recompression::Compress(how) => {
            let packed =
                compressed_bundle::compress(&plain, how).map_err(PruneProblem::Compress)?;
            // A small bundle may grow; one of an unsuitable version must change whatever its size.
            let is_smaller = (packed.len() as u64) < size;
            Ok(Some(packed).filter(|_| is_smaller || old.is_some()))
        }
    }
}
