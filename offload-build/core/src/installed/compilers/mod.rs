//! The compiler of a module, and, for OpenMP, the runtime of its release.

mod choice;
mod compiler;
mod hipcc;
pub mod nvcc;

pub use crate::installed::compilers::choice::processors;
pub use crate::installed::compilers::compiler::{Compiler, KernelLinker, WithoutClang};

use crate::declare::family::Family;
use crate::declare::language::Language;
use crate::declare::module::Module;
use crate::environment::Environment;
use crate::error::Error;
use crate::installed::answers::Answers;
use crate::installed::compilers::choice::instead;
use crate::installed::fitting_clangs::UsedSdk;
use crate::installed::host::Host;
use crate::installed::lld::Lld;
use crate::installed::llvm::Llvm;
use crate::installed::llvm_tools::LlvmTools;
use crate::installed::rocm;
use crate::installed::rustc::Rustc;
use crate::installed::sdk::{self, Root};
use crate::process::command::Command;
use crate::process::install::Need;
use crate::process::search::NotFound;
use crate::process::search::Search;
use offload_formats_core::names::Triple;
use offload_formats_core::names::host::Machine;
use std::path::{Path, PathBuf};

/// The machine of programs that run here.
const HERE: Machine = if cfg!(target_arch = "aarch64") {
    Machine::AARCH64
} else {
    Machine::X86_64
};

impl Compiler {
    /// The compiler that `module` declares, else the newest that has what the language needs: OpenMP's runtime of
    /// its own release; lld.
    pub fn find(
        module: &Module,
        rustc: Option<&Rustc>,
        host: &Host,
        environment: &Environment,
        search: &Search,
        answers: &Answers,
    ) -> Result<Self, Error> {
        let declared = module.declared_compiler();
        let named = |error| module.with_compiler_origin(error);
        let in_rocm = |declared| hipcc::find(module, declared, environment, search, answers);
        let declared = match (module.family(), declared) {
            (Family::Nvcc, Some(nvcc)) => {
                return nvcc::find(module, nvcc, host, environment, search, answers).map_err(named);
            }
            (Family::Hipcc, Some(hipcc)) => {
                return hipcc::hipcc(module, in_rocm(hipcc)?, search, answers).map_err(named);
            }
            (_, Some(clang)) if rocm::is_amdclang(clang) => {
                Some(vec![rocm::llvm_of(in_rocm(clang)?)])
            }
            (_, Some(clang)) => Some(search.programs(clang).map(Llvm::of).collect()),
            (_, None) => None,
        };
        let tree = tree(module, declared.iter().flatten());
        let sdk = sdk::root(module, environment, search, answers, tree);
        let is_declared = declared.is_some();
        let mut found = declared.unwrap_or_else(|| clangs(module, search, sdk.as_ref().ok()));
        if let Some(rustc) = rustc {
            found = match readers(rustc, preferred(module, search, found)) {
                Ok(found) => found,
                Err(no_clang) => return without_clang(module, rustc, &no_clang, search, answers),
            };
        }
        let root = sdk.iter().flatten().map(|root| &*root.path).next();
        let headers = sdk::headers(module, root);
        let used = UsedSdk::new(module, headers.as_deref(), root, environment);
        let refused = |llvm: &Llvm| {
            is_declared
                .then(|| refuse_others(module, llvm, answers))
                .flatten()
        };
        let no_compiler = || {
            let lacking = || not_found(module, &found, search, host, &used, answers);
            named(found.first().and_then(refused).unwrap_or_else(lacking))
        };
        let sysroot = sysroot(&module.own.flags);
        let (llvm, runtime) = match module.language {
            Language::OpenMp => {
                openmp_host(host)?;
                let both = with_runtime(module, &found, host, sysroot.as_deref());
                let (llvm, runtime) = both.ok_or_else(no_compiler)?;
                (llvm, Some(runtime))
            }
            _ => {
                let first = found.first().ok_or_else(no_compiler)?;
                let chosen = match is_declared {
                    true => first.clone(),
                    false => choice::choose(module, &found, &used, answers)?,
                };
                (chosen, None)
            }
        };
        refused(&llvm).map(named).map_or(Ok(()), Err)?;
        choice::check_declared(module, &llvm, &used).map_err(named)?;
        let sdk = sdk?.map(|root| root.path);
        let program = llvm.clang.clone();
        let version = version(&llvm, answers)?;
        Ok(Self {
            device_libraries: device_libraries(module, sdk.as_deref(), &llvm, environment),
            lacks_wavefront_size: used.lacks_wavefront_size(&llvm),
            include_last: sdk::folders_last(module, headers.as_deref()),
            sdk,
            llvm: Some(llvm),
            runtime,
            sysroot,
            ..Self::alone(program, Family::Clang, search.clone(), version)
        })
    }

    /// Explains which targets of `module` the declared compiler does not know, and which other clang does.
    pub fn explain(&self, module: &Module, answers: &Answers) -> Option<String> {
        let llvm = self.llvm.as_ref()?;
        // The build failed already: a compiler that does not answer explains nothing.
        let problem = choice::unknown(module, llvm, answers).ok()??;
        let others = self.search.clangs();
        let any_sdk = UsedSdk::default();
        Some(match choice::choose(module, &others, &any_sdk, answers) {
            Ok(other) => format!(
                "{problem}\nhint: `{}` does: {} to use it",
                other.clang.display(),
                module.without_compiler()
            ),
            Err(_) => match choice::family_hint(module) {
                Some(hint) => format!("{problem}\nhint: {hint}"),
                None => problem,
            },
        })
    }
}

/// Returns the clangs, the preferred one of a crate of kernels first.
fn preferred(module: &Module, search: &Search, found: Vec<Llvm>) -> Vec<Llvm> {
    let preferred = module.preferred_clang();
    let preferred = preferred.and_then(|clang| search.programs(clang).map(Llvm::of).next());
    let others = found.into_iter();
    let others = others.filter(|llvm| preferred.as_ref() != Some(llvm));
    preferred.clone().into_iter().chain(others).collect()
}

/// Returns the clangs that read the bitcode of `rustc`: those of its release of LLVM, or newer. An older one says only
/// `Unknown attribute kind`.
///
/// # Errors
///
/// If there are none: the reason.
fn readers(rustc: &Rustc, found: Vec<Llvm>) -> Result<Vec<Llvm>, String> {
    let reads = |llvm: &Llvm| llvm.release().is_some_and(|release| release >= rustc.llvm);
    let (readers, others): (Vec<Llvm>, Vec<Llvm>) = found.into_iter().partition(reads);
    if !readers.is_empty() {
        return Ok(readers);
    }
    let others = others.iter().map(|llvm| {
        let release = llvm
            .release()
            .map_or("unknown".to_owned(), |release| release.to_string());
        format!("`{}` (LLVM {release})", llvm.clang.display())
    });
    let others: Vec<String> = others.collect();
    let others = match others.as_slice() {
        [] => "found none in PATH".to_owned(),
        others => format!("found {}", others.join(", ")),
    };
    Err(format!(
        "no clang reads the bitcode of `{}`, Rust {} with LLVM {}: {others}",
        rustc.program.display(),
        rustc.version,
        rustc.llvm,
    ))
}

/// Returns the compiler of a crate of kernels that no clang reads: an lld links its images for AMD GPUs, LLVM's tools those for
/// NVIDIA GPUs.
fn without_clang(
    module: &Module,
    rustc: &Rustc,
    no_clang: &str,
    search: &Search,
    answers: &Answers,
) -> Result<Compiler, Error> {
    let clang = Need::Clang.install(Some(rustc.llvm));
    let explain = |missing: &[&[String; 2]]| {
        let reasons = missing.iter().map(|[reason, _]| format!("; {reason}"));
        let hints = missing.iter().map(|[_, hint]| format!("; {hint}"));
        let (reasons, hints): (String, String) = (reasons.collect(), hints.collect());
        format!("{no_clang}{reasons} [OFF610]\nhint: {clang}{hints}")
    };
    let lacking = |what: &str, searched: &str, found: Vec<String>, gpus: &str, need: Need| {
        let found = match found.as_slice() {
            [] => format!("found none in PATH or in {searched}"),
            found => format!("found {}", found.join(", ")),
        };
        let install = need.install(Some(rustc.llvm));
        [
            format!("no {what} reads it: {found}"),
            format!("for {gpus} GPUs alone, {install}"),
        ]
    };
    let has = |is_of: fn(&Triple) -> bool| {
        let mut targets = module.targets.iter();
        targets.any(|target| is_of(&target.triple))
    };
    let lld = has(Triple::is_amdgpu).then(|| {
        let toolchain = "the Rust toolchain";
        let found = Lld::find(rustc, search, answers);
        found.map_err(|found| lacking("lld", toolchain, found, "AMD", Need::LldAlone))
    });
    let llvm_tools = has(Triple::is_nvptx).then(|| {
        let (what, toolchains) = ("`llc` with `opt` and `llvm-link`", "the Rust toolchains");
        let found = LlvmTools::find(rustc, search, answers);
        found.map_err(|found| lacking(what, toolchains, found, "NVIDIA", Need::LlvmToolsAlone))
    });
    let (program, version) = match (&lld, &llvm_tools) {
        (Some(Ok(lld)), _) => (lld.program.clone(), lld.version.clone()),
        (_, Some(Ok(tools))) => (tools.llc.clone(), tools.version.clone()),
        (lld, tools) => {
            let lld = lld.iter().filter_map(|found| found.as_ref().err());
            let tools = tools.iter().filter_map(|found| found.as_ref().err());
            let missing: Vec<&[String; 2]> = lld.chain(tools).collect();
            let (name, reason) = (&module.name, explain(&missing));
            return Err(Error::missing(format_args!(
                "module `{name}`: {reason}; {}",
                instead(module)
            )));
        }
    };
    Ok(Compiler {
        without_clang: Some(WithoutClang {
            lld: lld.map(|found| found.map_err(|missing| explain(&[&missing]))),
            llvm_tools: llvm_tools.map(|found| found.map_err(|missing| explain(&[&missing]))),
        }),
        ..Compiler::alone(program, Family::Clang, search.clone(), version)
    })
}

/// Returns the places of the ROCm tree that the declared clangs of `module` belong to.
fn tree<'l>(module: &Module, declared: impl Iterator<Item = &'l Llvm>) -> Vec<PathBuf> {
    let compiler = module.declared_compiler();
    let is_of_rocm = compiler.is_some_and(rocm::is_amdclang);
    let declared = declared.filter(|_| is_of_rocm);
    let folders = declared.flat_map(|llvm| llvm.prefix.ancestors().take(3));
    folders.map(Path::to_owned).collect()
}

/// Returns the folder of ROCm's device libraries, if clang must be told where it is.
fn device_libraries(
    module: &Module,
    sdk: Option<&Path>,
    llvm: &Llvm,
    environment: &Environment,
) -> Option<PathBuf> {
    let is_hip = module.language == Language::Hip;
    // Where the variable says it, clang reads that.
    let is_named = environment.variable("HIP_DEVICE_LIB_PATH").is_some();
    let root = sdk.filter(|_| is_hip && !is_named)?;
    let libraries = rocm::device_libraries(root, llvm.release())?;
    (!libraries.is_found_by_clang).then_some(libraries.folder)
}

/// Checks that OpenMP's offload runtime supports a host.
fn openmp_host(host: &Host) -> Result<(), Error> {
    host.loads_runtimes()?;
    host.machine().map(drop).ok_or_else(|| {
        Error::new(format_args!(
            "OpenMP is not supported for `{}`: LLVM's offload runtime supports only Linux on x86_64 and aarch64 [OFF609]",
            host.triple
        ))
    })
}

/// The first of `found` that has OpenMP's runtime for the host and for the GPUs of `module`, else for the host. In a cross build
/// that of the host may be missing.
fn with_runtime(
    module: &Module,
    found: &[Llvm],
    host: &Host,
    sysroot: Option<&Path>,
) -> Option<(Llvm, Result<PathBuf, NotFound>)> {
    let runtime = |llvm: &Llvm| host.runtime(llvm, sysroot);
    let both = |llvm: &Llvm| Some((llvm.clone(), Ok(runtime(llvm).ok()?)));
    // A release that has its runtime here has the parts of it that are the same everywhere.
    let has_it_here = |llvm: &&Llvm| llvm.offload_runtime(HERE).is_some();
    let is_for_gpus = |llvm: &&Llvm| {
        let mut gpus = module.targets.iter().filter(|it| !it.triple.is_cpu());
        gpus.all(|target| {
            llvm.device_runtime(&target.triple, target.id.processor())
                .is_ok()
        })
    };
    let of_gpus = found.iter().filter(is_for_gpus).find_map(both);
    of_gpus.or_else(|| found.iter().find_map(both)).or_else(|| {
        let first = found.iter().find(has_it_here).or(found.first());
        let llvm = first.filter(|_| host.is_cross)?;
        Some((llvm.clone(), Err(missing(host, runtime(llvm).err()?))))
    })
}

/// The clangs to choose from, when none is declared: that of the ROCm tree which a variable names, for sources that
/// use the tree, because its headers and device libraries are for its own; then those of `PATH`, the newest first. That
/// of a tree which nobody named comes last.
fn clangs(module: &Module, search: &Search, sdk: Option<&Option<Root>>) -> Vec<Llvm> {
    let mut found = search.clangs();
    let root = sdk
        .and_then(Option::as_ref)
        .filter(|_| module.language == Language::Hip);
    let of_tree = root.and_then(|root| Some((root, rocm::clang(&root.path)?)));
    if let Some((root, llvm)) = of_tree {
        let place = if root.is_named { 0 } else { found.len() };
        found.insert(place, llvm);
    }
    found
}

/// Returns the clang in `PATH` that compiles `module` if no compiler is declared.
fn undeclared(
    module: &Module,
    search: &Search,
    host: &Host,
    sdk: &UsedSdk,
    answers: &Answers,
) -> Option<Llvm> {
    let clangs = search.clangs();
    if module.language != Language::OpenMp {
        return choice::choose(module, &clangs, sdk, answers).ok();
    }
    let sysroot = sysroot(&module.own.flags);
    let (llvm, runtime) = with_runtime(module, &clangs, host, sysroot.as_deref())?;
    runtime.is_ok().then_some(llvm)
}

/// Returns the error if no compiler in `found` suits `module`, which uses `sdk`.
fn not_found(
    module: &Module,
    found: &[Llvm],
    search: &Search,
    host: &Host,
    sdk: &UsedSdk,
    answers: &Answers,
) -> Error {
    let folder = |llvm: &Llvm| format!("no libomptarget.so in {}/lib", llvm.prefix.display());
    let (declared, name) = (module.declared_compiler(), &module.name);
    let problem = match (declared, found) {
        (Some(declared), []) if declared.contains('/') => {
            format!("`compiler`: `{declared}` is not an executable file [OFF601]")
        }
        (Some(declared), []) => format!("`compiler`: `{declared}` not found in PATH [OFF601]"),
        (Some(declared), [first, ..]) => {
            format!("`compiler`: `{declared}` has {} [OFF606]", folder(first))
        }
        (None, _) => {
            let without = |llvm: &Llvm| format!("{} ({})", llvm.clang.display(), folder(llvm));
            let saw: Vec<String> = found.iter().map(without).collect();
            let saw = match saw.as_slice() {
                [] => "found none [OFF601]".to_owned(),
                saw => format!("found {} [OFF606]", saw.join(", ")),
            };
            let searched = "searched PATH for clang-24 to clang-16 and clang";
            let language = module.language.name();
            format!("module `{name}`: no compiler for `{language}`: {searched}, {saw}")
        }
    };
    let other = declared.and_then(|_| undeclared(module, search, host, sdk, answers));
    if let Some(other) = other {
        return Error::missing(format_args!(
            "{problem}\nhint: {} to use `{}`",
            module.without_compiler(),
            other.clang.display()
        ));
    }
    let need = match module.language {
        Language::OpenMp => Need::ClangWithRuntime,
        _ => Need::Clang,
    };
    let install = need.install(None);
    let vendors = match (declared, module.language) {
        (None, Language::Hip) => "; with hipcc installed, set `compiler = \"hipcc\"`",
        (None, Language::Cuda) => "; with nvcc installed, set `compiler = \"nvcc\"`",
        _ => "",
    };
    let instead = instead(module);
    Error::missing(format!("{problem}\nhint: {install}{vendors}; {instead}"))
}

/// Returns the error of a cross build without a runtime to link.
fn missing(host: &Host, searched: Vec<PathBuf>) -> NotFound {
    let searched = searched.iter().map(|folder| folder.display().to_string());
    let hint = format!(
        "programs for {} need this library for their host and of the compiler's release: name its folder in \
         LIBRARY_PATH, with `-L` in Cargo's `rustflags`, or name its root with `--sysroot=` in `flags`",
        host.triple
    );
    NotFound::new("libomptarget.so", searched.collect(), hint)
}

/// The last `--sysroot` of `flags`.
fn sysroot(flags: &[String]) -> Option<PathBuf> {
    let mut flags = flags.iter();
    let mut found = None;
    while let Some(flag) = flags.next() {
        match flag.strip_prefix("--sysroot") {
            Some("") => found = flags.next().map(PathBuf::from),
            Some(rest) => found = rest.strip_prefix('=').map(PathBuf::from).or(found),
            None => {}
        }
    }
    found
}

/// The error of a compiler that is neither a clang nor a front for one; nothing where it does not say what it is.
fn refuse_others(module: &Module, llvm: &Llvm, answers: &Answers) -> Option<Error> {
    let question = Command::new(&llvm.clang).arg("--version");
    let answer = answers.to(&question).ok()?;
    let is_clang = ["clang", "InstalledDir:"]
        .iter()
        .any(|mark| answer.contains(mark));
    let (program, line) = (llvm.clang.display(), answer.lines().next()?);
    (!is_clang).then(|| {
        Error::new(format_args!(
            "`compiler`: `{program}` is not a clang: its version is `{line}`\n\
             hint: {} to use a clang that compiles for the targets",
            module.without_compiler()
        ))
    })
}

/// The first line of the compiler's `--version`.
fn version(llvm: &Llvm, answers: &Answers) -> Result<String, Error> {
    let answer = answers.to(&Command::new(&llvm.clang).arg("--version"));
    let answer = answer.map_err(Error::new)?;
    Ok(answer.lines().next().unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_root_of_the_hosts_files() {
        let root = |flags: &[&str]| {
            let flags: Vec<String> = flags.iter().map(ToString::to_string).collect();
            sysroot(&flags)
        };
        assert_eq!(root(&["-O2", "--sysrooted", "--sysroot"]), None);
        assert_eq!(root(&["--sysroot=/a", "-O2"]), Some("/a".into()));
        assert_eq!(
            root(&["--sysroot=/a", "--sysroot", "/b", "-g"]),
            Some("/b".into())
        );
    }
}
