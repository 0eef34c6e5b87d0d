//! Warnings of kernels that only some targets have, or none: a program does not find them in the images of the others.

use crate::generate::Described;
use crate::steps::images::planned::PlannedImage;
use offload_build_core::declare::module::{OptionalKernel, Target};
use offload_build_core::declare::skipped::Skipped;
use offload_formats::container::kernels::{is_of_one_processor, source_name};

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

/// Returns a warning for each target that lacks kernels of `parts` of a module which other targets have, one for the kernels of host
/// code that no image has (`absent`), and one for each pattern of `optional-kernels` that matches no such kernel. Sources may have
/// kernels from a compute capability on.
pub(crate) fn warnings_of_lacking_kernels<'a>(
    parts: impl IntoIterator<Item = (&'a [PlannedImage], &'a [Described])>,
    absent: &[String],
    skipped: &[Skipped],
) -> String {
    let mut all: Vec<Lacking<'_>> = Vec::new();
    for (images, kernels) in parts {
        for PlannedImage { target, .. } in images {
            let lacks =
                |kernel: &&Described| kernel.images.iter().all(|(of, _)| *of != target.written);
            let kernels = kernels.iter().filter(lacks);
            let kernels = kernels.filter_map(|kernel| Name::of(&kernel.name));
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
    let absent: Vec<Name<'_>> = absent
        .iter()
        .filter_map(|symbol| Name::of(symbol))
        .collect();
    let mut warnings: String = all.iter().filter_map(Lacking::warning).collect();
    warnings.extend(warning_of_absent(&all, &absent));
    // A target without an image may be the one that needs the pattern, or that has the kernels.
    if skipped.is_empty() {
        for text in without_match(&all, &absent) {
            warnings += &format!("warning: {text}\n");
        }
    }
    warnings
}

impl<'a> Name<'a> {
    /// Returns nothing for a kernel that other targets lack whatever the user writes.
    fn of(symbol: &'a str) -> Option<Self> {
        if is_of_one_processor(symbol) {
            return None;
        }
        Some(Self {
            symbol,
            source: source_name(symbol),
        })
    }
}

/// Returns the warning of kernels of host code that no target has, and that a target may not lack.
fn warning_of_absent(all: &[Lacking<'_>], absent: &[Name<'_>]) -> Option<String> {
    let is_optional = |kernel: &&Name<'_>| all.iter().all(|target| target.may_lack(kernel));
    let kernels = absent.iter().filter(|kernel| !is_optional(kernel));
    let kernels: Vec<&str> = kernels.map(|kernel| kernel.source.as_str()).collect();
    let own = all.first()?.target.optional_kernels.iter();
    let patterns = patterns(own.filter(|pattern| !pattern.is_of_target), &kernels);
    Some(format!(
        "warning: no image has the kernel {}, which host code launches\n\
         hint: if this is intended, write `optional-kernels = [{patterns}]` in the table of the module\n",
        some_of(&kernels)?
    ))
}

/// Returns the first names and the number of the others, or nothing if there are none.
fn some_of(kernels: &[&str]) -> Option<String> {
    let (shown, others) = kernels.split_at(kernels.len().min(SHOWN));
    let shown = shown.join("`, `");
    match (kernels.len(), others.len()) {
        (0, _) => None,
        (_, 0) => Some(format!("`{shown}`")),
        (_, 1) => Some(format!("`{shown}` and 1 other")),
        (_, count) => Some(format!("`{shown}` and {count} others")),
    }
}

impl Lacking<'_> {
    /// A target that leaves sources out may lack any kernel.
    fn may_lack(&self, kernel: &Name<'_>) -> bool {
        let mut patterns = self.target.optional_kernels.iter();
        self.target.leaves_out
            || patterns.any(|pattern| pattern.matches(kernel.symbol, &kernel.source))
    }

    /// Returns the warning of kernels that the target may not lack.
    fn warning(&self) -> Option<String> {
        let kernels = self.kernels.iter().filter(|kernel| !self.may_lack(kernel));
        let kernels: Vec<&str> = kernels.map(|kernel| kernel.source.as_str()).collect();
        let target = &self.target.written;
        let own = self.target.optional_kernels.iter();
        let patterns = patterns(own.filter(|pattern| pattern.is_of_target), &kernels);
        Some(format!(
            "warning: {target} has no kernel {}, which other targets have\n\
             hint: if this is intended, write `optional-kernels = [{patterns}]` in [package.metadata.offload.target.{target:?}]\n",
            some_of(&kernels)?
        ))
    }
}

/// Returns the values of the key, which has its `own` ones, with `kernels`: each once, as strings of TOML.
fn patterns<'p>(own: impl Iterator<Item = &'p OptionalKernel>, kernels: &[&str]) -> String {
    let own = own.map(|pattern| format!("{:?}", pattern.written()));
    let kernels = kernels.iter();
    let kernels = kernels.map(|kernel| format!("{:?}", OptionalKernel::pattern(kernel)));
    let mut patterns: Vec<String> = Vec::new();
    for pattern in own.chain(kernels) {
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    patterns.join(", ")
}

/// Returns a text for each pattern that matches no kernel of those that its targets lack. A pattern of the module holds for
/// several targets.
fn without_match(all: &[Lacking<'_>], absent: &[Name<'_>]) -> Vec<String> {
    let mut texts: Vec<(String, bool)> = Vec::new();
    for Lacking { target, kernels } in all {
        for pattern in &target.optional_kernels {
            let Some(place) = &pattern.place else {
                continue;
            };
            let mut kernels = kernels.iter().chain(absent);
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
