//! The programs and files of this machine that the build of one module needs: asked for once, before planning.

use crate::declare::family::Family;
use crate::declare::language::Language;
use crate::declare::module::{Module, Register, Target};
use crate::environment::Environment;
use crate::error::Error;
use crate::files;
use crate::installed::answers::Answers;
use crate::installed::compilers::{Compiler, nvcc};
use crate::installed::cuda;
use crate::installed::device_libraries::{self, DeviceLibraries};
use crate::installed::device_tools::{DeviceTools, LinkTarget};
use crate::installed::host::Host;
use crate::installed::runtimes::{self, Runtime};
use crate::installed::rustc::Rustc;
use crate::process::command::Command;
use crate::process::launcher::Launcher;
use crate::process::search::Search;
use std::path::{Path, PathBuf};

/// The programs and files with which a module is compiled.
#[derive(Debug)]
pub struct Machine {
    pub compiler: Compiler,
    /// The compiler of a crate of kernels.
    pub rustc: Option<Rustc>,
    /// The runtime that host code calls, if it calls one.
    pub runtime: Option<Runtime>,
    /// The program that starts compiles.
    pub launcher: Option<Launcher>,
    /// Variables that the compiler reads, and the programs that it runs, for the keys of tasks.
    pub variables: String,
    /// The one that registers the images, decided.
    pub registration: Registrar,
    pub answers: Answers,
    /// Programs and files of device links, by target (`Target::written`).
    pub device_tools: Vec<(String, DeviceTools)>,
    /// The targets that NVIDIA's tools do not know (`Target::written`), each with the `ptxas` that says so.
    pub unknown_to_ptxas: Vec<(String, PathBuf)>,
    /// True if lld is beside clang.
    pub has_lld: bool,
    /// The vendors' device libraries, by target (`Target::written`).
    pub device_libraries: Vec<(String, DeviceLibraries)>,
    /// Files of the vendor's libraries that the compiler links by itself to sources that use the SDK, for each target.
    pub sdk_libraries: Vec<(String, Vec<PathBuf>)>,
    /// The targets whose device runtime lacks the lock of `omp critical` (`Target::written`).
    pub without_critical_lock: Vec<String>,
    /// The library of CUDA's device runtime, for modules that nvcc compiles.
    pub cuda_device_runtime: Option<PathBuf>,
}

/// The one that links and registers the images of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registrar {
    /// The module's own object; the program itself if there is no host code.
    Module,
    /// `offload-link`, in the last link.
    LastLink,
}

impl Machine {
    /// Finds what `module` needs; its package is in `root`, and `out` keeps the answers of programs.
    pub fn ask(
        module: &Module,
        host: &Host,
        environment: &Environment,
        root: &Path,
        out: &Path,
    ) -> Result<Self, Error> {
        let search = environment.search();
        let variable = |name: &&str| {
            let value = environment.variable(name).unwrap_or_default();
            format!("{name}={value}")
        };
        let variables = module.family().variables().iter().map(variable);
        let variables = variables.collect::<Vec<_>>().join("\n");
        // hipcc tells which clang the variables name; others tell about themselves alone.
        let asked = match module.family() {
            Family::Hipcc => variables.as_str(),
            Family::Clang | Family::Nvcc => "",
        };
        let answers = Answers::below(out, asked);
        let rustc = match &module.kernel_crate {
            Some(kernels) => Some(Rustc::find(
                module,
                kernels,
                environment,
                &search,
                &answers,
            )?),
            None => None,
        };
        let compiler =
            Compiler::find(module, rustc.as_ref(), host, environment, &search, &answers)?;
        let variables = compiler.behind.iter().fold(variables, |all, program| {
            format!("{all}\n{}", files::identity(program))
        });
        let launcher = launcher(module, root, environment, &search)?;
        let registration = registration(module, environment)?;
        let llvm = compiler.llvm.as_ref();
        Ok(Self {
            device_libraries: device_libraries::find(module, llvm, environment, &search, &answers),
            sdk_libraries: device_libraries::linked_to_sources(module, &compiler, &answers),
            device_tools: device_tools(module, &compiler, &answers),
            unknown_to_ptxas: unknown_to_ptxas(module, &compiler, &answers),
            has_lld: llvm.is_some_and(|llvm| llvm.sibling("ld.lld").is_ok()),
            without_critical_lock: without_critical_lock(module, &compiler),
            cuda_device_runtime: match (compiler.family, &compiler.sdk) {
                (Family::Nvcc, Some(root)) if compiler.host_compiler.is_some() => {
                    runtimes::cuda_device_runtime(root, host)
                }
                (Family::Nvcc, Some(root)) => nvcc::device_runtime(root),
                _ => None,
            },
            runtime: Runtime::of(module, &compiler, host, environment),
            compiler,
            rustc,
            launcher,
            variables,
            registration,
            answers,
        })
    }
}

/// Finds the programs and files of the device link for each target.
fn device_tools(
    module: &Module,
    compiler: &Compiler,
    answers: &Answers,
) -> Vec<(String, DeviceTools)> {
    let (llvm, search) = (compiler.llvm.as_ref(), &compiler.search);
    let tools = |target: &Target| {
        let link = LinkTarget {
            triple: &target.triple,
            processor: &target.id.to_string(),
            // AMD's other links leave bitcode to clang and lld.
            merges_bitcode: module.language == Language::OpenMp || !target.triple.is_amdgpu(),
        };
        let tools = DeviceTools::find(llvm, search, &link, Some(answers));
        let alone = compiler.without_clang.as_ref();
        let alone = alone.and_then(|without| without.llvm_tools.as_ref()?.as_ref().ok());
        match alone.filter(|_| target.triple.is_nvptx()) {
            Some(alone) => tools.without_clang(alone),
            None => tools,
        }
    };
    let targets = module.targets.iter();
    targets
        .map(|target| (target.written.clone(), tools(target)))
        .collect()
}

/// Returns the targets that NVIDIA's tools do not know, each with the `ptxas` that says so. Returns none if `ptxas` lists no processors.
fn unknown_to_ptxas(
    module: &Module,
    compiler: &Compiler,
    answers: &Answers,
) -> Vec<(String, PathBuf)> {
    let is_nvcc = compiler.family == Family::Nvcc;
    // PTX that clang writes is for the driver.
    let is_read_here = |target: &&Target| target.triple.is_nvptx() && (is_nvcc || !target.is_ptx);
    let targets: Vec<&Target> = module.targets.iter().filter(is_read_here).collect();
    let ptxas = || match is_nvcc {
        true => nvcc::ptxas(&compiler.program),
        false => compiler.search.cuda_program("ptxas").ok(),
    };
    let Some(ptxas) = (!targets.is_empty()).then(ptxas).flatten() else {
        return Vec::new();
    };
    let known = cuda::processors(&ptxas, answers).unwrap_or_default();
    let is_unknown = |target: &&Target| !known.is_empty() && !known.contains(target.id.processor());
    let unknown = targets.into_iter().filter(is_unknown);
    unknown
        .map(|target| (target.written.clone(), ptxas.clone()))
        .collect()
}

/// Returns the targets whose device runtime lacks the lock of `omp critical`.
fn without_critical_lock(module: &Module, compiler: &Compiler) -> Vec<String> {
    let llvm = compiler.llvm.as_ref();
    let Some(llvm) = llvm.filter(|_| module.language == Language::OpenMp) else {
        return Vec::new();
    };
    let lacks = |target: &&Target| {
        target.triple.is_nvptx() && llvm.lacks_critical_lock(&target.triple, target.id.processor())
    };
    let lacking = module.targets.iter().filter(lacks);
    lacking.map(|target| target.written.clone()).collect()
}

/// Decides who registers the images of `module`.
fn registration(module: &Module, environment: &Environment) -> Result<Registrar, Error> {
    let is_deferred = match module.register {
        // A module of these is whole by itself, as with the vendors' compilers.
        Register::Auto if module.language != Language::OpenMp => false,
        Register::Auto => linked_by_us(environment)?,
        register => register == Register::Deferred,
    };
    Ok(match is_deferred {
        true => Registrar::LastLink,
        false => Registrar::Module,
    })
}

/// Tells whether `offload-link` runs the last link, as far as Cargo says. A program of another name must be of this version.
fn linked_by_us(environment: &Environment) -> Result<bool, Error> {
    let Some(linker) = environment.cargo("RUSTC_LINKER") else {
        return Ok(false);
    };
    let stem = Path::new(&linker)
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    Ok(match stem.as_str() {
        "offload-link" | "offload-ld" => true,
        "cc" | "gcc" | "clang" | "ld" | "lld" | "rust-lld" | "mold" | "wild" => false,
        _ => {
            match Command::new(linker).arg("--print-offload-abi").run() {
                Ok(answer) => {
                    answer.stdout.trim() == concat!("offload-link ", env!("CARGO_PKG_VERSION"))
                }
                // A linker that is not there links nothing; any other refuses an option that it does not know.
                Err(error) if error.was_killed() => return Err(Error::new(error)),
                Err(_) => false,
            }
        }
    })
}

/// Returns the launcher of the compiles of `module`: the declared one, else the one that Cargo starts rustc with, if it
/// launches C compilers as well.
fn launcher(
    module: &Module,
    root: &Path,
    environment: &Environment,
    search: &Search,
) -> Result<Option<Launcher>, Error> {
    match &module.launcher {
        Some((text, _)) if ["", "none"].contains(&text.as_str()) => Ok(None),
        Some((text, origin)) => Launcher::find(text, root, search)
            .map(Some)
            .map_err(|missing| Error::new(format_args!("{origin}: `launcher`: {missing}"))),
        None => {
            let wrapper = environment.cargo("RUSTC_WRAPPER").unwrap_or_default();
            Ok(Launcher::of_rustc(&wrapper, search))
        }
    }
}
