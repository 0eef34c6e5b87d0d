//! Errors of unpacking.

use std::error::Error as StdError;

use offload_build_core::error::Error;
use offload_formats::container::FindError;
use offload_formats::container::bundled::BundledEntryError;
use offload_formats::container::decompression_limit::VARIABLE;
use offload_formats::container::device_library::DeviceLibraryError;

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
pub(crate) fn unpacking(path: &std::path::Path, problem: impl UnpackingProblem) -> Error {
    let problem: Box<dyn StdError + Send + Sync> = match (problem.is_limit(), problem.is_output()) {
        (true, _) => format!("{problem}\nhint: {VARIABLE}=<size> allows more [OFF704]").into(),
        (_, true) => {
            format!("{problem} [OFF509]\nhint: set TMPDIR to a folder with enough space").into()
        }
        _ => problem.into(),
    };
    Error::because(path.display(), problem)
}
