//! Chooses an installed clang that compiles for all targets of a module.
//!
//! Each is asked which processors it knows, once for as long as it is the same program. A compiler that is declared
//! is asked when it failed, to say why.

use crate::declare::language::Language;
use crate::declare::module::{Module, Target};
use crate::error::Error;
use crate::installed::answers::Answers;
use crate::installed::fitting_clangs::{self, UsedSdk};
use crate::installed::llvm::Llvm;
use crate::process::command::Command;
use crate::process::install::Need;
use offload_formats_core::names::Triple;
use std::collections::BTreeSet;

/// The message of a clang that was built without the back end for a triple (16 to 22).
const NO_BACK_END: &str = "No available targets are compatible";

/// The newest measured clang whose front end refuses family-specific processors, although its back end lists them.
const NO_FAMILIES: u32 = 22;

/// The newest measured release, which knows the processors of those before.
const NEWEST: u32 = 22;

/// Words in front of a processor that a clang does not know.
const UNKNOWN: &str = "does not know";

/// Returns the end of a hint, after how to install a compiler.
pub(super) fn instead(module: &Module) -> String {
    let stub = module.stub_hint();
    // In a crate of kernels the key names the rustc.
    let key = match module.language {
        Language::Rust => "",
        _ => "`compiler` or ",
    };
    format!("or name another clang with {key}OFFLOAD_COMPILER{stub}")
}

/// The first of `found` that knows every GPU of `module` and can compile for the SDK in use. Those with lld come before those
/// without.
///
/// A compiler that does not answer is an error: without it another would be chosen, in this build only.
pub(super) fn choose(
    module: &Module,
    found: &[Llvm],
    sdk: &UsedSdk,
    answers: &Answers,
) -> Result<Llvm, Error> {
    let has_lld = |llvm: &&Llvm| llvm.sibling("ld.lld").is_ok();
    let without: Vec<&Llvm> = found.iter().filter(|llvm| !has_lld(llvm)).collect();
    let (mut problems, mut hints) = (Vec::new(), Vec::new());
    for llvm in found.iter().filter(has_lld).chain(without) {
        if let Some(misfit) = sdk.misfit(llvm) {
            problems.push(format!("{} {misfit}", named(llvm)));
            hints.push(misfit.hint);
            continue;
        }
        match unknown(module, llvm, answers)? {
            None => return Ok(llvm.clone()),
            Some(problem) => problems.push(problem),
        }
    }
    // If another clang fits the SDK, the targets are the problem.
    let hint = hints.pop().filter(|_| hints.len() + 1 == problems.len());
    let newest = found.iter().filter_map(Llvm::release).max();
    Err(no_clang(module, &problems.join("; "), hint, newest))
}

/// Checks that a declared compiler can compile for the SDK in use.
pub(super) fn check_declared(module: &Module, llvm: &Llvm, sdk: &UsedSdk) -> Result<(), Error> {
    let misfit = sdk.misfit(llvm).filter(|misfit| misfit.is_certain);
    misfit.map_or(Ok(()), |misfit| {
        Err(Error::missing(format_args!(
            "module `{}`: {} {misfit} [OFF603]\nhint: {}",
            module.name,
            named(llvm),
            misfit.hint
        )))
    })
}

/// Returns a clang's path and release, for messages.
fn named(llvm: &Llvm) -> String {
    let release = llvm.release().map(|release| format!(" (LLVM {release})"));
    let clang = llvm.clang.display();
    format!("`{clang}`{}", release.unwrap_or_default())
}

/// Returns what `llvm` does not know; nothing if it knows all targets of `module`.
pub(super) fn unknown(
    module: &Module,
    llvm: &Llvm,
    answers: &Answers,
) -> Result<Option<String>, Error> {
    let mut known: Vec<(&str, BTreeSet<String>)> = Vec::new();
    let mut problems = Vec::new();
    let mut unknown = Vec::new();
    for target in module
        .targets
        .iter()
        .filter(|target| !target.triple.is_cpu())
    {
        let triple = target.triple.as_str();
        let place = known.iter().position(|(of, _)| *of == triple);
        let place = match place {
            Some(place) => place,
            None => {
                known.push((triple, processors(llvm, &target.triple, answers)?));
                known.len() - 1
            }
        };
        let (_, processors) = &known[place];
        if processors.is_empty() {
            let problem = format!("has no back end for `{triple}`");
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        } else if !processors.contains(processor(target)) {
            unknown.push(format!("`{}`", processor(target)));
        }
    }
    if !unknown.is_empty() {
        problems.push(format!("{UNKNOWN} {}", unknown.join(", ")));
    }
    if problems.is_empty() {
        return Ok(None);
    }
    Ok(Some(format!("{} {}", named(llvm), problems.join(", "))))
}

fn processor(target: &Target) -> &str {
    target.id.processor()
}

/// Returns the processors that clang compiles for; none if it has no back end.
pub fn processors(
    llvm: &Llvm,
    triple: &Triple,
    answers: &Answers,
) -> Result<BTreeSet<String>, Error> {
    let question = Command::new(&llvm.clang)
        .arg("--no-default-config")
        .arg(format!("--target={triple}"))
        .args(["-nogpulib", "-print-supported-cpus"]);
    match answers.to(&question) {
        Ok(answer) => {
            let mut names = parse(&answer);
            if llvm.release().is_some_and(|release| release <= NO_FAMILIES) {
                names.retain(|name| !is_family_specific(name));
            }
            Ok(names)
        }
        Err(error) if error.output().contains(NO_BACK_END) => Ok(BTreeSet::new()),
        Err(error) => Err(Error::new(format_args!(
            "cannot ask a compiler which processors it knows: {error}\n\
             hint: `compiler` in [package.metadata.offload] or OFFLOAD_COMPILER names another one"
        ))),
    }
}

/// Returns what to do for a family-specific processor among the targets.
pub(super) fn family_hint(module: &Module) -> Option<String> {
    let mut targets = module.targets.iter();
    let target = targets.find(|target| is_family_specific(processor(target)))?;
    let name = &target.written;
    let plain = name.trim_end_matches('f');
    let nvcc = match module.language {
        Language::Cuda => "set `compiler = \"nvcc\"`, or ",
        _ => "",
    };
    Some(format!(
        "clang up to {NO_FAMILIES} knows no family-specific processors such as `{name}`: {nvcc}use `{plain}` or `{plain}a`"
    ))
}

/// Tells whether the name is that of a family of NVIDIA processors: `sm_100f`.
fn is_family_specific(name: &str) -> bool {
    name.starts_with("sm_") && name.ends_with('f')
}

/// Parses the answer: one processor on each line, after a tab.
fn parse(answer: &str) -> BTreeSet<String> {
    let names = answer.lines().filter_map(|line| line.strip_prefix('\t'));
    names.map(|name| name.trim().to_owned()).collect()
}

/// Returns the error of a module that no clang compiles; `newest` is the newest release among those that were found.
fn no_clang(module: &Module, problem: &str, hint: Option<String>, newest: Option<u32>) -> Error {
    let name = &module.name;
    if let Some(hint) = hint {
        let problem = format!("module `{name}`: no compiler for its SDK: {problem} [OFF603]");
        return Error::missing(format_args!("{problem}\nhint: {hint}"));
    }
    // No release knows such a processor, so none helps.
    let mut doubts: Vec<&str> = Vec::new();
    for target in &module.targets {
        let doubt = module.doubt(target).filter(|doubt| {
            !doubts.contains(doubt) && problem.contains(&format!("`{}`", processor(target)))
        });
        doubts.extend(doubt);
    }
    if !doubts.is_empty() {
        return Error::missing(format_args!(
            "{}\nhint: `cargo offload targets` lists the known processors; for a new GPU install a newer clang\n\
             note: module `{name}`: no compiler for its targets: {problem}",
            doubts.join("\n")
        ));
    }
    let problem = format!("module `{name}`: no compiler for its targets: {problem} [OFF602]");
    if let Some(hint) = family_hint(module) {
        return Error::missing(format_args!("{problem}\nhint: {hint}"));
    }
    let install = match newest {
        Some(newest) if problem.contains(UNKNOWN) && newest < NEWEST => {
            fitting_clangs::install(NEWEST, "later")
        }
        Some(newest) if problem.contains(UNKNOWN) => {
            format!("install a clang of LLVM {} or later", newest + 1)
        }
        _ => Need::Clang.install(None),
    };
    let instead = instead(module);
    Error::missing(format_args!("{problem}\nhint: {install}; {instead}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_processors_that_clang_lists() {
        // clang 22.1, shortened.
        let answer = "Debian clang version 22.1.8 (1~deb12u1)\nTarget: nvptx64-nvidia-cuda\nThread model: posix\n\
            InstalledDir: /usr/lib/llvm-22/bin\nAvailable CPUs for this target:\n\n\tsm_80\n\tsm_90a\n\n\
            Use -mcpu or -mtune to specify the target's processor.\n";
        assert_eq!(parse(answer), ["sm_80", "sm_90a"].map(str::to_owned).into());
        let none = "error: unable to create target: 'No available targets are compatible with triple \"amdgcn\"'\n";
        assert!(parse(none).is_empty());
    }
}
