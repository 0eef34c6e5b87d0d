//! Warnings of kernels that only some targets have: a program does not find them in the images of the others.

use crate::generate::Described;
use crate::steps::images::planned::PlannedImage;
use offload_build_core::declare::module::{OptionalKernel, Target};
use offload_build_core::declare::skipped::Skipped;
use offload_formats::container::kernels::source_name;

/// Kernels whose names a warning shows.
const SHOWN: usize = 3;

/// A target, and the kernels that it lacks.
struct Lacking<'a> {
    target: &'a Target,
    kernels: Vec<Name<'a>>,
}

/// A kernel's symbol, and its name in the source.
struct Name<'a> {
    symbol: &'a str,
    source: String,
}

/// Returns a warning for each target that lacks kernels of `parts` of a module which other targets have, and for each pattern of
/// `optional-kernels` that matches no such kernel. Sources may have kernels from a compute capability on.
pub(crate) fn warnings_of_lacking_kernels<'a>(
    parts: impl IntoIterator<Item = (&'a [PlannedImage], &'a [Described])>,
    skipped: &[Skipped],
) -> String {
    let mut all: Vec<Lacking<'_>> = Vec::new();
    for (images, kernels) in parts {
        for PlannedImage { target, .. } in images {
            let lacks =
                |kernel: &&Described| kernel.images.iter().all(|(of, _)| *of != target.written);
            let kernels = kernels.iter().filter(lacks).map(|kernel| Name {
                symbol: &kernel.name,
                source: source_name(&kernel.name),
            });
            match all
                .iter_mut()
                .find(|lacking| lacking.target.written == target.written)
            {
                Some(lacking) => lacking.kernels.extend(kernels),
                None => all.push(Lacking {
                    target,
                    kernels: kernels.collect(),
                }),
            }
        }
    }
    let mut warnings: String = all.iter().filter_map(Lacking::warning).collect();
    // A target without an image may be the one that needs the pattern, or that has the kernels.
    if skipped.is_empty() {
        for text in without_match(&all) {
            warnings += &format!("warning: {text}\n");
        }
    }
    warnings
}

impl Lacking<'_> {
    /// Returns the warning of kernels that the target may not lack. A target that leaves sources out may lack any.
    fn warning(&self) -> Option<String> {
        let is_optional = |kernel: &&Name<'_>| {
            let mut patterns = self.target.optional_kernels.iter();
            patterns.any(|pattern| pattern.matches(kernel.symbol, &kernel.source))
        };
        let kernels = self.kernels.iter().filter(|kernel| !is_optional(kernel));
        let kernels: Vec<&str> = kernels.map(|kernel| kernel.source.as_str()).collect();
        if kernels.is_empty() || self.target.leaves_out {
            return None;
        }
        let (shown, others) = kernels.split_at(kernels.len().min(SHOWN));
        let others = match others.len() {
            0 => String::new(),
            1 => " and 1 other".to_owned(),
            count => format!(" and {count} others"),
        };
        let (target, shown) = (&self.target.written, shown.join("`, `"));
        let patterns = self.patterns(&kernels).join(", ");
        Some(format!(
            "warning: {target} has no kernel `{shown}`{others}, which other targets have\n\
             hint: if this is intended, write `optional-kernels = [{patterns}]` in [package.metadata.offload.target.{target:?}]\n"
        ))
    }

    /// Returns the value of the target's key with `kernels`, each once, as strings of TOML.
    fn patterns(&self, kernels: &[&str]) -> Vec<String> {
        let own = self.target.optional_kernels.iter();
        let own = own.filter(|pattern| pattern.is_of_target);
        let own = own.map(|pattern| format!("{:?}", pattern.written()));
        let kernels = kernels.iter();
        let kernels = kernels.map(|kernel| format!("{:?}", OptionalKernel::pattern(kernel)));
        let mut patterns: Vec<String> = Vec::new();
        for pattern in own.chain(kernels) {
            if !patterns.contains(&pattern) {
                patterns.push(pattern);
            }
        }
        patterns
    }
}

/// Returns a text for each pattern that matches no kernel of those that its targets lack. A pattern of the module holds for
/// several targets.
fn without_match(all: &[Lacking<'_>]) -> Vec<String> {
    let mut texts: Vec<(String, bool)> = Vec::new();
    for Lacking { target, kernels } in all {
        for pattern in &target.optional_kernels {
            let Some(place) = &pattern.place else {
                continue;
            };
            let mut kernels = kernels.iter();
            let is_used = kernels.any(|kernel| pattern.matches(kernel.symbol, &kernel.source));
            let written = pattern.written();
            let text =
                format!("{place}: `optional-kernels`: `{written}` matches no missing kernel");
            match texts.iter_mut().find(|(known, _)| *known == text) {
                Some((_, is_used_before)) => *is_used_before |= is_used,
                None => texts.push((text, is_used)),
            }
        }
    }
    let unused = texts.into_iter().filter(|(_, is_used)| !is_used);
    unused.map(|(text, _)| text).collect()
}
