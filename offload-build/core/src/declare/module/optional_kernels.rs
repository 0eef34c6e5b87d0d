//! Kernels that the images of a target may lack, as patterns of their names.

use crate::declare::settings::{Reach, Settings};
use crate::error::Error;

/// Name of the key.
const KEY: &str = "optional-kernels";

/// A pattern of kernels that the images of a target may lack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionalKernel {
    pattern: glob::Pattern,
    /// True if it is in the target's table, false if it is for all targets of the module.
    pub is_of_target: bool,
    /// Place of the pattern, for the warning that it matches no kernel; nothing if another module or build may need it.
    pub place: Option<String>,
}

impl OptionalKernel {
    /// Returns the pattern as written.
    pub fn written(&self) -> &str {
        self.pattern.as_str()
    }

    /// Returns the pattern that matches one name.
    pub fn pattern(name: &str) -> String {
        glob::Pattern::escape(name)
    }

    /// Tells whether it matches a kernel, by its symbol or by its name in the source.
    pub fn matches(&self, symbol: &str, source_name: &str) -> bool {
        self.pattern.matches(symbol) || self.pattern.matches(source_name)
    }
}

/// Returns the patterns of `module` for one of its targets, which may have a `table`. They have a place only if the build
/// has all targets: kernels may be missing beside another one.
pub(super) fn optional_kernels(
    module: &Settings,
    table: Option<&Settings>,
    has_all_targets: bool,
) -> Result<Vec<OptionalKernel>, Error> {
    let mut all = Vec::new();
    let places = [(Some(module), false), (table, true)];
    for (settings, is_of_target) in places {
        let Some((settings, entry)) =
            settings.and_then(|settings| Some((settings, settings.entry(KEY)?)))
        else {
            continue;
        };
        let is_own = entry.reach == Reach::Module;
        let place = Some(&entry.origin).filter(|_| is_own && has_all_targets);
        for text in settings.list(KEY) {
            let pattern = glob::Pattern::new(text).map_err(|error| {
                let hint = "hint: `[*]` stands for the character `*`, and `[?]` and `[[]` for the other wildcards";
                settings.error_at(KEY, format_args!("`{text}`: {error}\n{hint}"))
            })?;
            all.push(OptionalKernel {
                pattern,
                is_of_target,
                place: place.cloned(),
            });
        }
    }
    Ok(all)
}
