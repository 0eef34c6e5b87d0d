//! The limit on what compressed data may become, for the tools: its option, its variable and its hint.

use offload_formats::container::{self, decompression_limit::VARIABLE};

pub(crate) use offload_formats::container::decompression_limit::{DecompressionLimit, OPTION};

/// The line of help; each tool adds it to its table.
pub(crate) const HELP: &str = "Refuse compressed data that claims more; bytes, or with K, M, G, T; default 8G on disk, 1G in memory";

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

/// Says what to do if decompressed data cannot be written.
pub(crate) const FULL: &str = "set TMPDIR to a folder with enough space";

/// Says how to allow more.
pub(crate) fn hint() -> String {
    format!("--{OPTION}=<size> or {VARIABLE} allows more")
}

/// Says the same if images are missing because of the limit.
pub(crate) fn hint_for(problem: &container::Error) -> Option<String> {
    problem.is_limit().then(hint)
}
