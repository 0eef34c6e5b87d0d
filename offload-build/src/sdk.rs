//! The vendor's headers and device libraries: ROCm's for HIP, the toolkit's for CUDA.
//!
//! A module needs them unless its `flags` say that it does without. So what is built does not depend on what is
//! installed: without an installation such a module is an error, and one that needs none never reads it.

use crate::environment::Environment;
use crate::error::Error;
use crate::language::Language;
use crate::module::Module;
use std::path::{Path, PathBuf};

/// Where the vendor's files are, and how a module says otherwise.
struct Sdk {
    vendor: &'static str,
    /// Variables that name the root, the first first, and the folders where it is without them.
    variables: &'static [&'static str],
    usual: &'static [&'static str],
    /// In a root.
    header: &'static str,
    /// Options that say where it is.
    options: &'static [&'static str],
    /// Spellings of what does without headers, and without device libraries.
    without: [&'static [&'static str]; 2],
    install: &'static str,
}

const ROCM: Sdk = Sdk {
    vendor: "ROCm",
    variables: &["ROCM_PATH", "ROCM_HOME", "HIP_PATH"],
    usual: &["/opt/rocm", "/usr"],
    header: "include/hip/hip_runtime.h",
    options: &["--rocm-path", "--hip-path"],
    without: [
        &["-nogpuinc", "-nohipinc"],
        &["-nogpulib", "-no-gpulib", "-nohiplib"],
    ],
    install: "install ROCm's HIP headers and device libraries and set ROCM_PATH",
};

const CUDA: Sdk = Sdk {
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
    install: "install NVIDIA's CUDA toolkit and set CUDA_PATH to its root",
};

/// The root of what the sources of `module` include; nothing where they do without or `flags` name it.
pub(crate) fn root(module: &Module, environment: &Environment) -> Result<Option<PathBuf>, Error> {
    match module.language {
        Language::OpenMp | Language::Bitcode | Language::Prebuilt => Ok(None),
        Language::Hip => ROCM.root(module, environment),
        Language::Cuda => CUDA.root(module, environment),
    }
}

impl Sdk {
    fn root(&self, module: &Module, environment: &Environment) -> Result<Option<PathBuf>, Error> {
        // Of all targets: those that need it read the same installation.
        let does_without = |flags: &[String]| {
            let has = |names: &&[&str]| flags.iter().any(|flag| names.contains(&flag.as_str()));
            self.without.iter().all(has)
        };
        let names_root = |flag: &String| {
            let name = flag.split('=').next().unwrap_or_default();
            self.options.contains(&name)
        };
        let mut targets = module.targets.iter().map(|target| &target.own.flags);
        let is_named = |flags: &Vec<String>| flags.iter().any(names_root);
        if targets.all(|flags| does_without(flags) || is_named(flags)) {
            return Ok(None);
        }
        let variables = self.variables.iter();
        let named = variables.filter_map(|name| environment.variable(name));
        let roots: Vec<PathBuf> = named
            .chain(self.usual.iter().map(ToString::to_string))
            .map(PathBuf::from)
            .collect();
        let has_header = |root: &&PathBuf| root.join(self.header).is_file();
        if let Some(root) = roots.iter().find(has_header) {
            return Ok(Some(root.clone()));
        }
        let searched: Vec<String> = roots.iter().map(|root| shown(root)).collect();
        let [no_headers, no_libraries] = self.without.map(|names| names[0]);
        Err(Error::missing(format_args!(
            "module `{}`: no {} for `{}`: `{}` not found (searched: {}, and {} name others)\n\
             hint: {}, or declare that the sources need nothing of it: `flags = [\"{no_headers}\", \"{no_libraries}\"]`",
            module.name,
            self.vendor,
            module.language.name(),
            self.header,
            searched.join(", "),
            self.variables.join(", "),
            self.install,
        )))
    }
}

fn shown(root: &Path) -> String {
    root.display().to_string()
}
