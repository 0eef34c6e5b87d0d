//! Unpacking, and its errors.

use std::error::Error as StdError;
use std::fmt;
use std::path::Path;

use offload_build_core::error::Error;
use offload_formats::container::FindError;
use offload_formats::container::bundled::BundledEntryError;
use offload_formats::container::decompression_limit::VARIABLE;
use offload_formats::container::device_library::DeviceLibraryError;
use offload_formats::format::bytes::ReadCache;
use offload_formats::format::fatbin::{FatbinEntry, FatbinUnpackError, FatbinUnpacker};

/// An error of reading images, which may be compressed.
pub(crate) trait UnpackingProblem: StdError + Send + Sync + 'static {
    /// Returns whether they claim more than the limit.
    fn is_limit(&self) -> bool;
    /// Returns whether their unpacked bytes cannot be written.
    fn is_output(&self) -> bool;
}

macro_rules! unpacking_problems {
    ($($problem:ty),*) => {$(
        impl UnpackingProblem for $problem {
            fn is_limit(&self) -> bool {
                self.is_limit()
            }

            fn is_output(&self) -> bool {
                self.is_output()
            }
        }
    )*};
}

unpacking_problems!(BundledEntryError, DeviceLibraryError, FindError);

/// Images of `path` that cannot be read. The hint says how to allow more, or where to make room.
pub(crate) fn unpacking(path: &Path, problem: impl UnpackingProblem) -> Error {
    let problem: Box<dyn StdError + Send + Sync> = match (problem.is_limit(), problem.is_output()) {
        (true, _) => format!("{problem}\nhint: {VARIABLE}=<size> allows more [OFF704]").into(),
        (_, true) => return unwritten(path, problem),
        _ => problem.into(),
    };
    Error::because(path.display(), problem)
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
        let image = entry.to_string();
        unpacking(path, PackedImageError { image, problem })
    })
}

/// An image of a fat binary that cannot be unpacked.
#[derive(Debug)]
struct PackedImageError {
    image: String,
    problem: FatbinUnpackError,
}

impl UnpackingProblem for PackedImageError {
    fn is_limit(&self) -> bool {
        matches!(self.problem, FatbinUnpackError::Limit { .. })
    }

    fn is_output(&self) -> bool {
        false
    }
}

impl fmt::Display for PackedImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of a CUDA fat binary: {}", self.image, self.problem)
    }
}

impl StdError for PackedImageError {}
