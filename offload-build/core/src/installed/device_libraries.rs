//! The vendors' libraries of device functions (`sin`, `powf`) for OpenMP: bitcode that joins images whose kernels call it.
//!
//! | GPU | library | searched |
//! |---|---|---|
//! | AMD | `ocml.bc` and the files that select its variants; clang names them | `HIP_DEVICE_LIB_PATH`, ROCm's variables, `/opt/rocm`, `/usr` |
//! | NVIDIA | `libdevice.10.bc` | CUDA's variables, the tree of `ptxas`, `/usr/local/cuda`, `/usr/lib/cuda` |
//!
//! An option in `flags` that names the tree replaces the search.
//!
//! In modules of HIP and CUDA, clang itself links them, to each source that uses the SDK.

use crate::declare::family::Family;
use crate::declare::language::Language;
use crate::declare::module::{Module, Target};
use crate::environment::Environment;
use crate::installed::answers::Answers;
use crate::installed::compilers::Compiler;
use crate::installed::llvm::Llvm;
use crate::installed::rocm;
use crate::installed::sdk::{self, DEBIAN_CUDA};
use crate::process::command::Command;
use crate::process::install::Need;
use crate::process::search::Search;
use std::path::{Path, PathBuf};

/// The libraries of one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceLibraries {
    /// Bitcode files, in the order in which they are linked.
    Found(Vec<PathBuf>),
    /// The reason why there are none, and what to do.
    Missing(String),
}

/// Prefixes of the functions in the libraries for AMD GPUs, and in those for NVIDIA GPUs.
const AMD: &[&str] = &["__ocml_", "__ockl_", "__oclc_"];
const NVIDIA: &[&str] = &["__nv_"];

/// Returns the prefixes of the libraries' functions for `target`.
pub fn prefixes(target: &Target) -> &'static [&'static str] {
    match target.triple.is_amdgpu() {
        true => AMD,
        false => NVIDIA,
    }
}

/// Returns the reason why `flags` leave the libraries for `target` out, if they do.
pub fn left_out(target: &Target) -> Option<String> {
    let flag = sdk::without_libraries(target)?;
    Some(format!(
        "`{flag}` in `flags` leaves the vendor's device libraries out: remove it"
    ))
}

/// Finds the libraries for each target of `module`; none for languages and targets that do not join them here.
pub fn find(
    module: &Module,
    llvm: Option<&Llvm>,
    environment: &Environment,
    search: &Search,
    answers: &Answers,
) -> Vec<(String, DeviceLibraries)> {
    let Some(llvm) = llvm.filter(|_| module.language == Language::OpenMp) else {
        return Vec::new();
    };
    let gpus = module
        .targets
        .iter()
        .filter(|target| target.triple.is_amdgpu() || target.triple.is_nvptx());
    gpus.map(|target| {
        let libraries = match left_out(target) {
            Some(reason) => DeviceLibraries::Missing(reason),
            None if target.triple.is_amdgpu() => amd(target, llvm, environment, answers),
            None => nvidia(target, search),
        };
        if let DeviceLibraries::Found(files) = &libraries {
            files.iter().for_each(|file| environment.watch(file));
        }
        (target.written.clone(), libraries)
    })
    .collect()
}

/// Asks the compiler of a module of HIP or CUDA whether it finds the libraries for `target`, which it links to each source that
/// uses the SDK. Returns its error if it does not.
#[cfg(feature = "tools")]
pub fn sdk_lacks(module: &Module, target: &Target, compiler: &Compiler) -> Option<String> {
    /// Words with which clang begins to say that it does not find the libraries.
    const NOT_FOUND: [&str; 2] = ["cannot find ROCm device library", "cannot find libdevice"];
    let question = sdk_question(module, target, compiler)?;
    // Clang 16 succeeds even so. The answer is not kept, because it depends on files.
    let answer = match question.run() {
        Ok(answer) => answer.stderr,
        Err(error) => error.output().to_owned(),
    };
    let mut errors = answer
        .lines()
        .filter_map(|line| Some(line.split_once("error: ")?.1));
    let error = errors.find(|error| NOT_FOUND.iter().any(|words| error.starts_with(words)))?;
    Some(format!("`{}`: {error}", compiler.program.display()))
}

/// Returns the command that prints what the compiler of a module of HIP or CUDA would start for a source that uses the SDK; nothing
/// if no source does.
fn sdk_question(module: &Module, target: &Target, compiler: &Compiler) -> Option<Command> {
    let options = match (module.language, compiler.family) {
        (Language::Hip, _) => ["hip", "--offload-device-only"],
        (Language::Cuda, Family::Clang) => ["cuda", "--cuda-device-only"],
        _ => return None,
    };
    if !sdk::has_sources_with_sdk(module) {
        return None;
    }
    let path = |option: &str, path: Option<&Path>| Some(format!("{option}={}", path?.display()));
    let root = compiler.sdk.as_deref();
    let places = match module.language {
        Language::Hip => [
            path("--rocm-path", root),
            path(
                "--rocm-device-lib-path",
                compiler.device_libraries.as_deref(),
            ),
        ],
        _ => [path("--cuda-path", root), None],
    };
    let command = Command::new(&compiler.program)
        .args(["--no-default-config", "-###", "-x"])
        .args(options)
        .arg(format!("--offload-arch={}", target.id))
        .args(places.into_iter().flatten())
        .args(&target.own.flags)
        .args(["-nogpuinc", "-c", "/dev/null", "-o", "/dev/null"]);
    Some(command)
}

/// Returns the files that the compiler of a module of HIP or CUDA links by itself to each source that uses the SDK, for each
/// target.
pub fn linked_to_sources(
    module: &Module,
    compiler: &Compiler,
    answers: &Answers,
) -> Vec<(String, Vec<PathBuf>)> {
    let files = |target: &Target| {
        if sdk::without_libraries(target).is_some() {
            return None;
        }
        let question = sdk_question(module, target, compiler)?;
        let are_present = |answer: &str| linked_files(answer).all(|path| path.is_file());
        // What fails here fails in the compiles, with its reason.
        let answer = answers.accepted(&question, are_present).ok()?;
        Some((target.written.clone(), linked_files(&answer).collect()))
    };
    module.targets.iter().filter_map(files).collect()
}

/// Returns the libraries of bitcode in clang's answer.
fn linked_files(answer: &str) -> impl Iterator<Item = PathBuf> {
    let parts = answer.split("\"-mlink-builtin-bitcode\" \"").skip(1);
    parts.filter_map(|rest| Some(PathBuf::from(rest.split_once('"')?.0)))
}

/// Returns the values of an option in `flags`.
fn named<'f>(target: &'f Target, option: &'f str) -> impl Iterator<Item = PathBuf> + 'f {
    let flags = target.own.flags.iter();
    flags.filter_map(move |flag| Some(flag.strip_prefix(option)?.strip_prefix('=')?.into()))
}

fn amd(
    target: &Target,
    llvm: &Llvm,
    environment: &Environment,
    answers: &Answers,
) -> DeviceLibraries {
    let options = ["--rocm-device-lib-path", "--rocm-path"];
    let is_named = options
        .iter()
        .any(|option| named(target, option).next().is_some());
    let folder = match is_named {
        true => None,
        false => match amd_folder(llvm, environment) {
            Ok(folder) => Some(folder),
            Err(searched) => {
                return DeviceLibraries::Missing(format!(
                    "ROCm's device libraries are missing: `ocml.bc` not found (searched: {}) [OFF604]; {} or set ROCM_PATH to ROCm's root",
                    searched.join(", "),
                    Need::DeviceLibraries.install(None)
                ));
            }
        },
    };
    match answers.to(&amd_question(target, llvm, folder.as_deref())) {
        Ok(answer) => match linked_by(&answer) {
            Ok(files) => DeviceLibraries::Found(files),
            Err(problem) => DeviceLibraries::Missing(problem),
        },
        Err(error) => {
            let errors = error.output().lines().filter_map(|line| {
                let (_, error) = line.split_once("error: ")?;
                Some(error.to_owned())
            });
            let problem = errors.into_iter().next();
            let problem = problem.unwrap_or_else(|| error.to_string());
            let folder = folder.map(|folder| format!(" with {}", folder.display()));
            DeviceLibraries::Missing(format!(
                "`{}` cannot link ROCm's device libraries{}: {problem}; set ROCM_PATH to the root of another ROCm, or use the clang of this one",
                llvm.clang.display(),
                folder.unwrap_or_default()
            ))
        }
    }
}

/// Returns the folder of AMD's libraries that the clang reads; otherwise the searched places.
fn amd_folder(llvm: &Llvm, environment: &Environment) -> Result<PathBuf, Vec<String>> {
    if let Some(folder) = environment.variable("HIP_DEVICE_LIB_PATH") {
        return Ok(folder.into());
    }
    let roots = rocm::named_roots(environment).into_iter();
    let roots: Vec<PathBuf> = roots
        .chain(rocm::ROCM_FOLDERS.iter().map(PathBuf::from))
        .collect();
    let release = llvm.release();
    let found = roots
        .iter()
        .find_map(|root| rocm::device_libraries(root, release));
    let found = found.map(|libraries| libraries.folder);
    found.ok_or_else(|| {
        let shown = roots.iter().map(|root| root.display().to_string());
        shown.collect()
    })
}

/// Asks clang which files it links for a target: it knows the variants that `flags` and the processor select.
fn amd_question(target: &Target, llvm: &Llvm, folder: Option<&Path>) -> Command {
    let triple = &target.triple;
    let folder = folder.map(|folder| format!("--rocm-device-lib-path={}", folder.display()));
    Command::new(&llvm.clang)
        .args(["--no-default-config", "-fopenmp"])
        .arg(format!("-fopenmp-targets={triple}"))
        .arg("--offload-device-only")
        .arg(format!("-Xopenmp-target={triple}"))
        .arg(format!("-march={}", target.id))
        .arg("-foffload-lto")
        .args(folder)
        .args(&target.own.flags)
        .args(["-###", "-x", "c", "-c", "/dev/null", "-o", "/dev/null"])
}

/// Reads the libraries in clang's answer. OpenMP's own runtime is left out.
fn linked_by(answer: &str) -> Result<Vec<PathBuf>, String> {
    let is_runtime = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libomptarget")
    };
    let paths = linked_files(answer).filter(|path| !is_runtime(path));
    let paths: Vec<PathBuf> = paths.collect();
    match paths.iter().find(|path| !path.is_file()) {
        Some(missing) => Err(format!(
            "clang links `{}`, which is missing: reinstall ROCm's device libraries",
            missing.display()
        )),
        None if paths.is_empty() => {
            Err("clang links no ROCm device libraries for this target".to_owned())
        }
        None => Ok(paths),
    }
}

fn nvidia(target: &Target, search: &Search) -> DeviceLibraries {
    let mut roots: Vec<PathBuf> = named(target, "--cuda-path").collect();
    if roots.is_empty() {
        roots.extend(search.cuda.iter().cloned());
        let ptxas = search.cuda_program("ptxas").ok();
        let tree = ptxas.and_then(|ptxas| Some(ptxas.ancestors().nth(2)?.to_owned()));
        roots.extend(tree);
        roots.push(DEBIAN_CUDA.into());
    }
    let files = roots.iter().flat_map(|root| {
        ["nvvm/libdevice", "libdevice"].map(|folder| root.join(folder).join("libdevice.10.bc"))
    });
    let found = files.into_iter().find(|path| path.is_file());
    match found {
        Some(path) => DeviceLibraries::Found(vec![path]),
        None => {
            let mut searched: Vec<String> = roots
                .iter()
                .map(|root| root.display().to_string())
                .collect();
            searched.dedup();
            DeviceLibraries::Missing(format!(
                "CUDA's device library is missing: `nvvm/libdevice/libdevice.10.bc` not found (searched: {}) [OFF604]; {} and set CUDA_PATH to its root",
                searched.join(", "),
                Need::CudaToolkit.install(None)
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_which_libraries_clang_links() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("ocml.bc"), "").unwrap();
        let line = |name: &str| format!("\"-mlink-builtin-bitcode\" \"{}\" ", path(name).display());
        let answer = |names: &[&str]| {
            let lines: String = names.iter().map(|name| line(name)).collect();
            format!(" \"clang\" \"-cc1\" {lines}\"-o\" \"k.bc\"\n")
        };
        assert_eq!(
            linked_by(&answer(&["libomptarget-amdgpu-gfx90a.bc", "ocml.bc"])),
            Ok(vec![path("ocml.bc")])
        );
        let missing = linked_by(&answer(&["ocml.bc", "oclc_isa_version_90a.bc"])).unwrap_err();
        assert!(missing.contains("oclc_isa_version_90a.bc"), "{missing}");
        assert!(linked_by(&answer(&["libomptarget-amdgpu-gfx90a.bc"])).is_err());
    }
}
