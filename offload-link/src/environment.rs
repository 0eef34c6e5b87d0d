//! Variables of the environment.

use std::env;
use std::ffi::{OsStr, OsString};

/// Returns the value of a variable. An empty one counts as unset.
pub(crate) fn variable(name: impl AsRef<OsStr>) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}
