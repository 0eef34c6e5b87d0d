//! Bundles with another compression.

use std::io::Read;
use std::ops::Range;

use super::choice::Recompression;
use super::error::PruneProblem;
use super::job::PruneJob;
use crate::format::bytes::{Cursor, ReadAt};
use crate::format::codec::OnceStream;
use crate::format::compressed_bundle::{self, CompressedBundle, Compression};
use crate::format::magic::Magic;
use crate::format::pieces::{Piece, PieceSource};
use crate::format::unpacked::Unpacked;

/// Returns the bundle at a range with another compression; `None` if it stays as it is.
pub(super) fn recompressed<'d, R: ReadAt<'d>>(
    data: R,
    range: &Range<u64>,
    how: Recompression,
    job: PruneJob<'_>,
) -> Result<Option<Unpacked>, PruneProblem> {
    let how = match how {
        Recompression::Compress { bundles: None, .. } => return Ok(None),
        Recompression::Compress { bundles, .. } => bundles,
        Recompression::Decompress => None,
    };
    let old = match Magic::at(data, range.clone()) {
        Magic::CompressedBundle => {
            let old = CompressedBundle::parse(data, range.start, range.end);
            Some(old.map_err(PruneProblem::Compressed)?)
        }
        _ => None,
    };
    let unpack = |old: &CompressedBundle, scratch| {
        let content = old.unpack(data, job.limit.files(), scratch);
        content.map_err(PruneProblem::Compressed)
    };
    match (old, how) {
        (None, None) => Ok(None),
        (Some(old), None) => unpack(&old, job.scratch).map(Some),
        (Some(old), Some(how))
            if (old.version, old.method) == (how.version, how.method) && how.level.is_none() =>
        {
            Ok(None)
        }
        // One of an unsuitable version must change, even if it grows. Another level is worth it only if it saves something.
        (Some(old), Some(how)) => {
            let is_same = (old.version, old.method) == (how.version, how.method);
            let content = unpack(&old, &job.scratch.another())?;
            let size = content.size();
            let copy = Piece::Copy {
                input: 0,
                range: 0..size,
            };
            let bytes = PieceSource::new(vec![copy], vec![content.source()]);
            let new = compressed_copy(job, how, size, bytes)?;
            let stored = range.end.saturating_sub(range.start);
            Ok(Some(new).filter(|new| !is_same || new.size() < stored))
        }
        (None, Some(how)) => {
            let size = range.end.saturating_sub(range.start);
            let bytes = OnceStream::new(Cursor::new(data, range.clone()));
            let new = compressed_copy(job, how, size, bytes)?;
            Ok(Some(new).filter(|new| new.size() < size))
        }
    }
}

/// Compresses a bundle of `size` bytes to the scratch.
pub(super) fn compressed_copy(
    job: PruneJob<'_>,
    how: Compression,
    size: u64,
    bundle: impl Read,
) -> Result<Unpacked, PruneProblem> {
    job.scratch.keep_written(|out| {
        let header = compressed_bundle::compress_to(how, size, bundle, out);
        header.map(drop).map_err(PruneProblem::Compress)
    })
}
