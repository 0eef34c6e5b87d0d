//! Options in `flags` that neither side of HIP and CUDA sources uses.
//!
//! A compile for one side warns of what only the other side uses, so these warnings are off. The driver, asked for both sides at
//! once, names the options that no compile uses.

use offload_build_core::declare::family::Family;
use offload_build_core::declare::language::Language;
use offload_build_core::declare::module::{Module, Target};
use offload_build_core::installed::host::Host;
use offload_build_core::installed::machine::Machine;
use offload_build_core::process::command::Command;
use std::collections::BTreeSet;

/// Returns the warning; nothing where clang uses all options.
pub(crate) fn unused_flags(module: &Module, machine: &Machine, host: &Host) -> Option<String> {
    let has_sides = matches!(module.language, Language::Hip | Language::Cuda);
    if !has_sides || !module.has_host_code || machine.compiler.family == Family::Nvcc {
        return None;
    }
    let of_targets = module.targets.iter().map(|target| &target.own.flags);
    let mut all: Vec<&Vec<String>> = std::iter::once(&module.own.flags)
        .chain(of_targets)
        .collect();
    all.retain(|flags| !flags.is_empty());
    all.dedup();
    let mut unused = Vec::new();
    for flags in all {
        let question = question(module, machine, host, flags);
        // What fails here fails in the compiles, with its reason.
        let answer = machine.answers.to(&question).unwrap_or_default();
        for option in parse(&answer) {
            if !unused.contains(&option) {
                unused.push(option);
            }
        }
    }
    if unused.is_empty() {
        return None;
    }
    let hint = match module.language {
        Language::Cuda => "; options of nvcc need `compiler = \"nvcc\"`",
        _ => "",
    };
    Some(format!(
        "flags of `{}`: clang uses none of these: {}\nhint: remove them{hint}",
        module.name,
        unused.join(", ")
    ))
}

/// Asks for the commands of a compile for the host and all targets. They are not started.
fn question(module: &Module, machine: &Machine, host: &Host, flags: &[String]) -> Command {
    let (language, root) = match module.language {
        Language::Cuda => ("cuda", "--cuda-path="),
        _ => ("hip", "--rocm-path="),
    };
    let arch = |target: &Target| format!("--offload-arch={}", target.id);
    let arches: BTreeSet<String> = module.targets.iter().map(arch).collect();
    let target = host.clang_target();
    let compiler = &machine.compiler;
    let command = Command::new(&compiler.program)
        .args(["--no-default-config", "-###", "-x", language])
        .args(target.map(|target| format!("--target={target}")))
        .args(arches);
    let command = match &compiler.sdk {
        Some(path) => command.arg(format!("{root}{}", path.display())),
        None => command.args(["-nogpuinc", "-nogpulib"]),
    };
    command
        .args(if module.rdc { Some("-fgpu-rdc") } else { None })
        .args(flags)
        .args(["-c", "/dev/null", "-o", "/dev/null"])
}

/// Returns the options that clang does not use: `argument unused during compilation: '-u se_fast_math' [-W…]`, and
/// `-lineinfo: 'linker' input unused [-W…]`.
fn parse(answer: &str) -> Vec<String> {
    let unused = |line: &str| {
        let (_, text) = line.split_once("warning: ")?;
        let (text, _) = text.split_once(" [-Wunused-command-line-argument")?;
        let argument = text.strip_prefix("argument unused during compilation: '");
        let argument = argument.and_then(|text| text.strip_suffix('\''));
        let option = argument.or_else(|| text.strip_suffix(": 'linker' input unused"))?;
        Some(format!("`{option}`"))
    };
    answer.lines().filter_map(unused).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_clang_does_not_use() {
        // clang 22.1; 16 and 19 say the same.
        let answer = "Target: x86_64-pc-linux-gnu\n\
            clang-22: warning: -lineinfo: 'linker' input unused [-Wunused-command-line-argument]\n\
            clang-22: warning: argument unused during compilation: '-u se_fast_math' [-Wunused-command-line-argument]\n\
            clang-22: warning: CUDA version is newer than the latest supported version 12.8 [-Wunknown-cuda-version]\n \
            \"/usr/lib/llvm-22/bin/clang\" \"-cc1\"\n";
        assert_eq!(parse(answer), ["`-lineinfo`", "`-u se_fast_math`"]);
    }
}
