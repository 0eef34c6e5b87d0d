//! Limit on the size of decompressed data: its option, its variable and its hint.

use std::fmt;

use offload_formats::container::decompression_limit::{Remedy, VARIABLE};

use crate::files;

pub(crate) use offload_formats::container::decompression_limit::{DecompressionLimit, OPTION};

/// Help text of the option, for each tool's table.
pub(crate) const HELP: &str = "Largest decompressed size: bytes, or a number with K, M, G or T; default 8G on disk, 1G in memory";

/// Returns the limit: the option's value, else the variable's, else the defaults.
///
/// # Errors
///
/// Returns a message if the value is not a size.
pub(crate) fn limit(option: Option<&str>) -> Result<DecompressionLimit, String> {
    let variable = std::env::var_os(VARIABLE);
    let variable = variable.as_deref().map(|value| value.to_string_lossy());
    DecompressionLimit::parse(option, variable.as_deref())
}

/// Hint for decompressed data that cannot be written.
pub(crate) const FULL: &str = "set TMPDIR to a folder with enough space";

/// Returns the hint that says how to raise the limit.
pub(crate) fn hint() -> String {
    format!("--{OPTION}=<size> or {VARIABLE} allows more [OFF704]")
}

/// Returns the hint for an error with this remedy.
pub(crate) fn hint_for(remedy: Option<Remedy>) -> Option<String> {
    Some(match remedy? {
        Remedy::Limit => hint(),
        Remedy::Space => FULL.to_owned(),
        _ => return None,
    })
}

/// Returns the text of an error with this remedy, with its hint. If a temporary file could not be written, it is about that file.
pub(crate) fn with_hint(error: &impl fmt::Display, remedy: Option<Remedy>) -> String {
    let text = match remedy {
        Some(Remedy::Space) => match files::check_unpacked() {
            Err(unwritten) => unwritten.to_string(),
            Ok(()) => error.to_string(),
        },
        _ => error.to_string(),
    };
    match hint_for(remedy) {
        Some(hint) => format!("{text}\nhint: {hint}"),
        None => text,
    }
}
