//! Unpacking, and its errors.

use std::error::Error as StdError;
use std::fmt;
use std::path::Path;

use offload_build_core::error::Error;
use offload_formats::container::decompression_limit::{Remedy, VARIABLE};
use offload_formats::format::bytes::ReadCache;
use offload_formats::format::fatbin::{FatbinEntry, FatbinUnpackError, FatbinUnpacker};

/// Images of `path` that cannot be read. The hint says how to allow more, or where to make room.
pub(crate) fn unpacking(
    path: &Path,
    remedy: Option<Remedy>,
    problem: impl Into<Box<dyn StdError + Send + Sync>>,
) -> Error {
    let problem = problem.into();
    match remedy {
        Some(Remedy::Limit) => {
            let text = format!("{problem}\nhint: {VARIABLE}=<size> allows more [OFF704]");
            Error::because(path.display(), text)
        }
        Some(Remedy::Space) => unwritten(path, problem),
        _ => Error::because(path.display(), problem),
    }
}

/// Unpacked images of `path` that cannot be written. The hint says how to make room.
pub(crate) fn unwritten(path: &Path, problem: impl fmt::Display) -> Error {
    let hint = "hint: set TMPDIR to a folder with enough space";
    Error::new(format_args!(
        "{}: {problem} [OFF509]\n{hint}",
        path.display()
    ))
}

/// Returns the bytes of an image of a fat binary in the file `path`.
pub(crate) fn unpacked_image<'s>(
    unpacker: &'s mut FatbinUnpacker<&ReadCache>,
    entry: &FatbinEntry,
    path: &Path,
) -> Result<&'s [u8], Error> {
    let image = unpacker.image(entry);
    image.map_err(|problem| {
        let is_limit = matches!(problem, FatbinUnpackError::Limit { .. });
        let text = format!("{entry} of a CUDA fat binary: {problem}");
        unpacking(path, is_limit.then_some(Remedy::Limit), text)
    })
}
