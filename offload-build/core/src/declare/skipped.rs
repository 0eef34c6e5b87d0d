//! Declared targets that get no image: an error, or left out and recorded.

use crate::declare::module::{Missing, Module, Target};
use crate::error::Error;
use std::fmt::{self, Display};

/// A target without an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    pub module: String,
    /// The target as the manifest spells it.
    pub target: String,
    /// The reason, then hints, a line each.
    pub reason: String,
    /// True if programs could use the image, so that they lose it.
    is_lost: bool,
}

impl Skipped {
    /// Something on this machine cannot make the image.
    pub fn missing(module: &Module, target: &Target, reason: impl Display) -> Self {
        Self {
            module: module.name.clone(),
            target: target.written.clone(),
            reason: reason.to_string(),
            is_lost: true,
        }
    }

    /// Its device link lacks something. If no release of LLVM knows the processor, that comes first: whatever else is
    /// missing follows from it.
    pub fn unlinked(module: &Module, target: &Target, reason: &dyn Display) -> Self {
        let reason = reason.to_string();
        let Some(doubt) = module.doubt(target) else {
            return Self::missing(module, target, reason);
        };
        let mut lines = reason.lines();
        let first = lines.next().unwrap_or_default();
        let hints: String = lines.map(|line| format!("\n{line}")).collect();
        Self::missing(
            module,
            target,
            format_args!("{doubt}{hints}\nnote: {first}"),
        )
    }

    /// No program of this build could use the image.
    pub fn useless(module: &Module, target: &Target, reason: impl Display) -> Self {
        Self {
            is_lost: false,
            ..Self::missing(module, target, reason)
        }
    }
}

/// `` module `kernels`: no image for `sm_80`: … ``
impl Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (module, target, reason) = (&self.module, &self.target, &self.reason);
        write!(f, "module `{module}`: no image for `{target}`: {reason}")
    }
}

/// Returns the reasons, each with the targets that it is for.
fn by_reason<'s>(skipped: impl Iterator<Item = &'s Skipped>) -> Vec<(&'s str, String)> {
    let mut reasons: Vec<(&str, String)> = Vec::new();
    for Skipped { target, reason, .. } in skipped {
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, targets)) => *targets += &format!(", `{target}`"),
            None => reasons.push((reason, format!("`{target}`"))),
        }
    }
    reasons
}

/// Returns a line about the `targets` of `module` that get no image, and the hints of the reason.
fn no_image(module: &Module, targets: &str, reason: &str) -> String {
    format!("module `{}`: no image for {targets}: {reason}", module.name)
}

/// Returns the warnings of a module that is built without `skipped`, one for each reason.
pub fn warnings(module: &Module, skipped: &[Skipped]) -> Vec<String> {
    let reasons = by_reason(skipped.iter()).into_iter();
    let warnings = reasons.map(|(reason, targets)| {
        let problem = no_image(module, &targets, reason);
        format!("{problem}\nnote: the module is built without {targets}")
    });
    warnings.collect()
}

/// The error of a module that must not lose `skipped`, with the ways on; `built` are the targets that have images, and `modules` counts the
/// modules of the package.
pub fn refused(
    module: &Module,
    skipped: &[Skipped],
    built: &[Target],
    modules: usize,
) -> Option<Error> {
    let lost = skipped.iter().filter(|skipped| skipped.is_lost);
    let reasons = by_reason(lost);
    if module.missing != Missing::Error || reasons.is_empty() {
        return None;
    }
    let lines = reasons
        .iter()
        .map(|(reason, targets)| no_image(module, targets, reason) + "\n");
    let others: Vec<&str> = built.iter().map(|target| &*target.written).collect();
    let others = match modules {
        1 => format!(
            "OFFLOAD_TARGETS={} builds the other targets; ",
            others.join(",")
        ),
        _ => String::new(),
    };
    Some(Error::missing(format_args!(
        "{}hint: {others}OFFLOAD_MISSING=skip leaves out the targets that cannot be built",
        lines.collect::<String>()
    )))
}

/// The error of a module without any image.
pub fn nothing_left(module: &Module, skipped: &[Skipped]) -> Error {
    let name = &module.name;
    let reasons = by_reason(skipped.iter()).into_iter();
    let lines = reasons.map(|(reason, targets)| no_image(module, &targets, reason) + "\n");
    let text: String = lines.collect();
    let hint = match module.missing {
        Missing::Stub => "",
        Missing::Error | Missing::Skip => {
            "\nhint: OFFLOAD_MISSING=stub builds the crate without device code"
        }
    };
    Error::missing(format_args!(
        "{text}module `{name}`: no image can be built{hint}"
    ))
}
