//! The size from which images are too large to stand among the data of a program.

use super::sizes;

/// Option of the tools, without dashes.
pub const LARGE_OPTION: &str = "large-images";

/// Environment variable that applies if the option is missing.
pub const LARGE_VARIABLE: &str = "OFFLOAD_LARGE_IMAGES";

/// Default for the largest total of images in usual sections, in bytes. Code reaches twice as much: the rest is for the
/// program's own code and data.
const LARGEST_USUAL: u64 = 1 << 30;

/// Reads the largest total of images in usual sections, in bytes: the value of the option, or else of the variable, or
/// else 1 GiB.
///
/// # Errors
///
/// Returns a message if the value is not a size.
pub fn largest_usual(option: Option<&str>, variable: Option<&str>) -> Result<u64, String> {
    let names = [LARGE_OPTION, LARGE_VARIABLE];
    Ok(sizes::setting(names, option, variable)?.unwrap_or(LARGEST_USUAL))
}
