//! Limit on the size of decompressed data: its option, its variable and its hint.

use offload_formats::container::prune::PruneError;
use offload_formats::container::{self, decompression_limit::VARIABLE};

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

/// Returns the text of an error of pruning, with the hint for data that is too large, or cannot be written.
pub(crate) fn with_hint(error: &PruneError) -> String {
    let problem = &error.problem;
    match (problem.is_limit(), problem.is_output()) {
        (true, _) => format!("{error}\nhint: {}", hint()),
        (_, true) => match files::check_unpacked() {
            Err(unwritten) => format!("{unwritten}\nhint: {FULL}"),
            Ok(()) => format!("{error}\nhint: {FULL}"),
        },
        _ => error.to_string(),
    }
}

/// Returns the hint for images that are missing because of the limit, or because their bytes cannot be written.
pub(crate) fn hint_for(problem: &container::FindError) -> Option<String> {
    match problem.is_limit() {
        true => Some(hint()),
        false => problem.is_output().then(|| FULL.to_owned()),
    }
}
