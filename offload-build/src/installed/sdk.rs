//! The vendor's headers and device libraries: ROCm's for HIP, the toolkit's for CUDA.
//!
//! A module needs them unless each source uses `<offload/gpu.h>` alone, or its `flags` say that it does without. So what is built does not depend on what is
//! installed: without an installation such a module is an error, and one that needs none never reads it.

use crate::declare::family::Family;
use crate::declare::language::Language;
use crate::declare::module::{Module, Target};
use crate::environment::Environment;
use crate::error::Error;
use crate::installed::answers::Answers;
use crate::installed::rocm;
use crate::process::install::Need;
use crate::process::search::Search;
use std::path::{Path, PathBuf};

/// Places of the vendor's files, and options that name another.
struct Sdk {
    vendor: &'static str,
    /// Variables that name the root, the first first, and the folders where it is without them.
    variables: &'static [&'static str],
    usual: &'static [&'static str],
    /// A header that every root contains.
    header: &'static str,
    /// Options that say where it is.
    options: &'static [&'static str],
    /// Spellings of what does without headers, and without device libraries.
    without: [&'static [&'static str]; 2],
    need: Need,
}

/// The root of a vendor's files.
pub(crate) struct Root {
    pub(crate) path: PathBuf,
    /// True if a variable names it.
    pub(crate) is_named: bool,
}

static ROCM: Sdk = Sdk {
    vendor: "ROCm",
    variables: rocm::VARIABLES,
    usual: rocm::ROCM_FOLDERS,
    header: "include/hip/hip_runtime.h",
    options: &["--rocm-path", "--hip-path"],
    without: [
        &["-nogpuinc", "-nohipinc"],
        &["-nogpulib", "-no-gpulib", "-nohiplib"],
    ],
    need: Need::Rocm,
};

static CUDA: Sdk = Sdk {
    vendor: "CUDA",
    variables: &[
        "CUDA_HOME",
        "CUDA_PATH",
        "CUDA_ROOT",
        "CUDA_TOOLKIT_ROOT_DIR",
    ],
    usual: &["/usr/local/cuda"],
    header: "include/cuda_runtime.h",
    options: &["--cuda-path"],
    without: [
        &["-nogpuinc", "-nocudainc"],
        &["-nogpulib", "-no-gpulib", "-nocudalib"],
    ],
    need: Need::CudaToolkit,
};

/// The root of what the sources of `module` include; nothing where they do without or `flags` name it.
///
/// Roots in variables come first, then `tree`, the compiler's own, then roots that are found.
pub(crate) fn root(
    module: &Module,
    environment: &Environment,
    search: &Search,
    answers: &Answers,
    tree: Vec<PathBuf>,
) -> Result<Option<Root>, Error> {
    match module.language {
        Language::OpenMp | Language::Bitcode | Language::Prebuilt => Ok(None),
        Language::Hip => {
            let asked = || rocm::asked_roots(search, answers);
            ROCM.root(module, environment, tree, asked)
        }
        Language::Cuda => CUDA.root(module, environment, tree, || Ok(Vec::new())),
    }
}

/// Returns places of the vendor's tree, for files that do not depend on the sources: named by `flags`, by a variable,
/// or
/// in a usual place.
pub(crate) fn roots(module: &Module, environment: &Environment) -> Vec<PathBuf> {
    let Some(sdk) = Sdk::of(module) else {
        return Vec::new();
    };
    let mut roots = Vec::new();
    for flag in &module.own.flags {
        if let Some((name, root)) = flag.split_once('=') {
            if sdk.options.contains(&name) {
                roots.push(PathBuf::from(root));
            }
        }
    }
    roots.extend(sdk.places(environment).concat());
    roots
}

/// The variable that names the vendor's tree.
pub(crate) fn variable(module: &Module) -> &'static str {
    let sdk = Sdk::of(module);
    sdk.and_then(|sdk| sdk.variables.first()).unwrap_or(&"")
}

/// Returns the flag of `target` that leaves out the vendor's device libraries.
pub(crate) fn without_libraries(target: &Target) -> Option<&str> {
    let sdk = match target.triple.is_amdgpu() {
        true => &ROCM,
        false => &CUDA,
    };
    let [_, names] = sdk.without;
    let mut flags = target.own.flags.iter().map(String::as_str);
    flags.find(|flag| names.contains(flag))
}

impl Sdk {
    fn of(module: &Module) -> Option<&'static Self> {
        match module.language {
            Language::OpenMp | Language::Bitcode | Language::Prebuilt => None,
            Language::Hip => Some(&ROCM),
            Language::Cuda => Some(&CUDA),
        }
    }

    /// Returns the places that variables name, and the usual ones.
    fn places(&self, environment: &Environment) -> [Vec<PathBuf>; 2] {
        let variables = self.variables.iter();
        let named = variables.filter_map(|name| environment.variable(name));
        let usual = self.usual.iter().map(PathBuf::from);
        [named.map(PathBuf::from).collect(), usual.collect()]
    }

    fn root(
        &self,
        module: &Module,
        environment: &Environment,
        tree: Vec<PathBuf>,
        asked: impl FnOnce() -> Result<Vec<PathBuf>, Error>,
    ) -> Result<Option<Root>, Error> {
        // Of all targets: those that need it read the same installation.
        let does_without = |flags: &[String]| {
            let has = |names: &&[&str]| flags.iter().any(|flag| names.contains(&flag.as_str()));
            self.without.iter().all(has)
        };
        let names_root = |flag: &String| {
            let name = flag
                .split('=')
                .next()
                .expect("a split text has a first part");
            self.options.contains(&name)
        };
        let uses_sdk = |source| !module.sources_without_sdk.contains(source);
        if module.family() != Family::Nvcc && !module.sources.iter().any(uses_sdk) {
            return Ok(None);
        }
        let mut targets = module.targets.iter().map(|target| &target.own.flags);
        let is_named = |flags: &Vec<String>| flags.iter().any(names_root);
        if targets.all(|flags| does_without(flags) || is_named(flags)) {
            return Ok(None);
        }
        let [mut roots, usual] = self.places(environment);
        let count = roots.len();
        roots.extend(tree);
        let has_header = |root: &PathBuf| root.join(self.header).is_file();
        // Programs are asked when nothing nearer says it.
        if !roots.iter().any(has_header) {
            roots.extend(asked()?);
            roots.extend(usual);
        }
        if let Some(place) = roots.iter().position(has_header) {
            return Ok(Some(Root {
                path: roots.swap_remove(place),
                is_named: place < count,
            }));
        }
        let searched: Vec<String> = roots.iter().map(|root| shown(root)).collect();
        let [no_headers, no_libraries] = self.without.map(|names| names[0]);
        Err(Error::missing(format_args!(
            "module `{}`: no {} for `{}`: `{}` not found (searched: {}, and {} name others)\n\
             hint: {} and name its root by {}, or do without: include `<offload/gpu.h>` in each source, or set `flags = [\"{no_headers}\", \"{no_libraries}\"]`",
            module.name,
            self.vendor,
            module.language.name(),
            self.header,
            searched.join(", "),
            self.variables.join(", "),
            self.need.install(None),
            self.variables.first().unwrap_or(&""),
        )))
    }
}

fn shown(root: &Path) -> String {
    root.display().to_string()
}
