//! Options in `flags` that a key stands for, or that decisions of ours undo.

use crate::declare::language::Language;
use crate::declare::settings::Settings;
use crate::error::Error;

/// Options of nvcc, hipcc and clang that name processors.
const PROCESSORS: [&str; 9] = [
    "-arch",
    "--gpu-architecture",
    "-gencode",
    "--generate-code",
    "-code",
    "--gpu-code",
    "--offload-arch",
    "--cuda-gpu-arch",
    "-fopenmp-targets",
];

/// Options that change how the outputs of several commands fit together, which are ours: what does that instead.
const OF_WHOLE_BUILDS: [(&[&str], &str); 4] = [
    (
        &[
            "-fgpu-rdc",
            "-fno-gpu-rdc",
            "-fcuda-rdc",
            "-fno-cuda-rdc",
            "-rdc",
            "--relocatable-device-code",
            "-dc",
            "--device-c",
            "-dw",
            "--device-w",
        ],
        "the key `rdc` does that",
    ),
    (
        &[
            "--offload-compress",
            "--no-offload-compress",
            "--offload-compression-level",
        ],
        "the key `compress` does that",
    ),
    (
        &["-flto", "--offload-new-driver", "--no-offload-new-driver"],
        "remove it; device code with `rdc = true` is optimized as a whole anyway",
    ),
    (
        &["-dlto", "--dlink-time-opt"],
        "modules with `nvcc` link machine code; without `compiler`, clang optimizes device code with `rdc = true` as a whole",
    ),
];

/// Options that choose what the compiler makes.
const OUTPUTS: [&str; 15] = [
    "-S",
    "-E",
    "-M",
    "-MM",
    "-fsyntax-only",
    "-ptx",
    "--ptx",
    "-cubin",
    "--cubin",
    "-fatbin",
    "--fatbin",
    "-optix-ir",
    "--optix-ir",
    "-ltoir",
    "--ltoir",
];

/// Options whose argument may be the next word, besides those that begin with `-X`.
const WITH_ARGUMENT: [&str; 13] = [
    "--archive-options",
    "--compiler-options",
    "--cudafe-options",
    "--fatbin-options",
    "--linker-options",
    "--nvlink-options",
    "--ptxas-options",
    "-D",
    "-I",
    "-U",
    "-include",
    "-isystem",
    "-mllvm",
];

/// Tells whether the next word is an argument of `flag`, and no option of this compiler.
fn takes_next(flag: &str) -> bool {
    let is_for_another =
        flag.starts_with("-X") && !is_for_this_compiler(flag) && !flag.contains('=');
    is_for_another || WITH_ARGUMENT.contains(&flag)
}

/// Tells whether the next word is an option of this compiler for one side. It is a word of its own behind `-Xopenmp-target=…` as well.
fn is_for_this_compiler(flag: &str) -> bool {
    flag.starts_with("-Xarch_") || flag.starts_with("-Xopenmp-target")
}

/// Tells whether an option of nvcc has options for compression as its argument: behind `=`, or in the next word.
fn compresses(flag: &str, next: Option<&String>) -> bool {
    let same_word = ["-Xfatbin", "--fatbin-options"]
        .iter()
        .find_map(|name| flag.strip_prefix(name));
    let has = |options: &str| options.contains("compress");
    same_word.is_some_and(|rest| has(rest) || rest.is_empty() && next.is_some_and(|next| has(next)))
}

/// Tells whether an option chooses a GPU, in the way that chooses a CPU of the host.
fn is_gpu_as_cpu(flag: &str) -> bool {
    let value = flag.strip_prefix("-march=");
    let value = value.or_else(|| flag.strip_prefix("-mcpu="));
    value.is_some_and(|value| value.starts_with("gfx") || value.starts_with("sm_"))
}

/// Checks `flags` of a module of `language`, and those of the tables of its targets.
pub(super) fn check(settings: &Settings, language: Language) -> Result<(), Error> {
    let tables = settings.list("targets").iter();
    let tables = tables.filter_map(|target| settings.targets.get(target));
    let mut all = std::iter::once(settings).chain(tables);
    match language {
        Language::Hip | Language::Cuda | Language::OpenMp | Language::Rust => {
            all.try_for_each(|table| flags_of(table, language))
        }
        _ => Ok(()),
    }
}

/// Checks that `flags` have no options that other keys or decisions of ours undo: images for another processor would be built,
/// and left out by the device link.
fn flags_of(settings: &Settings, language: Language) -> Result<(), Error> {
    let flags = settings.list("flags");
    let refused = match language {
        Language::Rust => refused_of_rustc(flags),
        _ => refused_option(flags, language),
    };
    match refused {
        Some((name, why)) => {
            let problem = format!("`{name}` in `flags` {why}");
            Err(settings.error_at("flags", problem))
        }
        None => Ok(()),
    }
}

/// Options of rustc that do not belong in `flags`, those behind `-C` by their names, and why.
const OF_RUSTC: [(&str, &str); 6] = [
    ("target-cpu", "names a processor: `targets` does that"),
    ("opt-level", "has no effect: the key `opt-level` does that"),
    ("--target", "names a target: `targets` does that"),
    ("--emit", "changes what the compiler makes: remove it"),
    ("--crate-type", "changes what the compiler makes: remove it"),
    ("-O", "has no effect: the key `opt-level` does that"),
];

/// Returns the first option of rustc that does not belong in `flags`, and why.
fn refused_of_rustc(flags: &[String]) -> Option<(&str, String)> {
    let mut behind_c = false;
    for flag in flags {
        let codegen = match behind_c {
            true => Some(flag.as_str()),
            false => flag
                .strip_prefix("-C")
                .or_else(|| flag.strip_prefix("--codegen=")),
        };
        behind_c = !behind_c && (flag == "-C" || flag == "--codegen");
        if flag.starts_with('@') {
            let why =
                "is a file of options, which Cargo does not watch: write its options into `flags`";
            return Some((flag, why.to_owned()));
        }
        let option = codegen.unwrap_or(flag);
        let name = option.split_once('=').map_or(option, |(name, _)| name);
        if let Some((name, why)) = OF_RUSTC.iter().find(|(known, _)| *known == name) {
            return Some((name, (*why).to_owned()));
        }
    }
    None
}

/// Tells whether an option, without its value, names a processor.
pub fn names_processor(option: &str) -> bool {
    PROCESSORS.contains(&option)
}

/// Returns the first option that does not belong in `flags` of a module of `language`, and why.
pub fn refused_option(flags: &[String], language: Language) -> Option<(&str, String)> {
    let mut flags = flags.iter();
    while let Some(flag) = flags.next() {
        let argument = takes_next(flag).then(|| flags.next());
        let compresses = compresses(flag, argument.flatten());
        if argument.is_some() && !compresses {
            continue;
        }
        let name = flag.split_once('=').map_or(flag.as_str(), |(name, _)| name);
        if names_processor(name) || is_gpu_as_cpu(flag) {
            let hint = match name {
                "-arch" | "--gpu-architecture" => {
                    "\nhint: nvcc's `-arch=sm_80` is `targets = [\"sm_80\", \"compute_80\"]`: an image, and PTX for newer GPUs"
                }
                "-gencode" | "--generate-code" => {
                    "\nhint: `code=sm_80` is `\"sm_80\"` in `targets`, an image; `code=compute_80` is `\"compute_80\"`, PTX for newer GPUs"
                }
                _ => "",
            };
            return Some((
                name,
                format!("names a processor: `targets` does that{hint}"),
            ));
        }
        let mut whole = OF_WHOLE_BUILDS.iter();
        if let Some((_, instead)) = whole.find(|(names, _)| names.contains(&name)) {
            return Some((name, format!("changes only a part of the build: {instead}")));
        }
        if OUTPUTS.contains(&name) {
            let instead = match language {
                Language::Cuda => "`targets` does that: `compute_80` makes PTX, `sm_80` a cubin",
                _ => "remove it",
            };
            return Some((name, format!("changes what the compiler makes: {instead}")));
        }
        let reason = match name {
            "-cudart" | "--cudart" => "the key `cudart` does that",
            "-compress-mode" | "--compress-mode" | "-no-compress" | "--no-compress" => {
                "the key `compress` does that"
            }
            _ if compresses => "the key `compress` does that",
            _ => continue,
        };
        if language == Language::Cuda {
            return Some((name, format!("has no effect: {reason}")));
        }
    }
    None
}
