//! The vendor's headers and device libraries: ROCm's for HIP, the toolkit's for CUDA.
//!
//! A module needs them unless each source uses `<offload/gpu.h>` alone, or its `flags` say that it does without. So what is built does not depend on what is
//! installed: without an installation such a module is an error, and one that needs none never reads it.

use crate::declare::family::Family;
use crate::declare::language::Language;
use crate::declare::module::{Module, Target};
use crate::environment::{CUDA_ROOTS, Environment, USUAL_CUDA};
use crate::error::Error;
use crate::files::real_path;
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
    /// The folder of the root below `/usr`, as Debian spreads the vendor's files, and a link in that folder to a header that stands
    /// beside `header`.
    collected: Option<[&'static str; 2]>,
    /// Options that say where it is.
    options: &'static [&'static str],
    need: Need,
}

/// The root of a vendor's files.
pub struct Root {
    pub path: PathBuf,
    /// True if a variable names it.
    pub is_named: bool,
}

/// Spellings of the option that leaves the vendor's headers out.
const NO_HEADERS: &[&str] = &["-nogpuinc", "-nohipinc", "-nocudainc"];

/// Spellings of the option that leaves the vendor's device libraries out.
const NO_LIBRARIES: &[&str] = &["-nogpulib", "-no-gpulib", "-nohiplib", "-nocudalib"];

/// Tells whether a compile with `flags` reads the vendor's headers.
pub fn uses_headers(flags: &[String]) -> bool {
    !flags.iter().any(|flag| NO_HEADERS.contains(&flag.as_str()))
}

/// Tells whether a compile with `flags` links the vendor's device libraries.
pub fn uses_libraries(flags: &[String]) -> bool {
    !flags
        .iter()
        .any(|flag| NO_LIBRARIES.contains(&flag.as_str()))
}

static ROCM: Sdk = Sdk {
    vendor: "ROCm",
    variables: rocm::VARIABLES,
    usual: rocm::ROCM_FOLDERS,
    header: "include/hip/hip_runtime.h",
    collected: None,
    options: &["--rocm-path", "--hip-path"],
    need: Need::Rocm,
};

/// Folder of CUDA in Debian and Ubuntu.
pub(super) const DEBIAN_CUDA: &str = "/usr/lib/cuda";

static CUDA: Sdk = Sdk {
    vendor: "CUDA",
    variables: &CUDA_ROOTS,
    usual: &[USUAL_CUDA, DEBIAN_CUDA],
    header: "include/cuda_runtime.h",
    collected: Some(["lib/cuda", "include/cuda.h"]),
    options: &["--cuda-path"],
    need: Need::CudaToolkit,
};

/// The root of what the sources of `module` include; nothing where they do without or `flags` name it.
///
/// Roots in variables come first, then `tree`, the compiler's own, then roots that are found.
pub fn root(
    module: &Module,
    environment: &Environment,
    search: &Search,
    answers: &Answers,
    tree: Vec<PathBuf>,
) -> Result<Option<Root>, Error> {
    match module.language {
        Language::OpenMp | Language::Bitcode | Language::Rust | Language::Prebuilt => Ok(None),
        Language::Hip => {
            let asked = || rocm::asked_roots(search, answers);
            ROCM.root(module, environment, tree, asked)
        }
        Language::Cuda => CUDA.root(module, environment, tree, || Ok(trees_in_path(search))),
    }
}

/// Returns the root of the headers that sources of `module` include: the one that was `found`, or the one that `flags` name.
pub fn headers(module: &Module, found: Option<&Path>) -> Option<PathBuf> {
    let named = || {
        let sdk = Sdk::of(module.language)?;
        let targets = module.targets.iter().map(|target| &target.own.flags);
        let flags = targets.filter(|flags| uses_headers(flags)).flatten();
        sdk.in_flags(flags).last()
    };
    match found {
        Some(root) => Some(root.to_owned()),
        None if has_sources_with_sdk(module) => named(),
        None => None,
    }
}

/// Returns the folders of headers below `root` that compilers search last: from CUDA 13 on, libcu++, CUB and Thrust have one of
/// their own, which clang 22 does not search.
pub fn folders_last(module: &Module, root: Option<&Path>) -> Vec<PathBuf> {
    let root = root.filter(|_| module.language == Language::Cuda);
    let folder = root.map(|root| root.join("include").join("cccl"));
    folder.into_iter().filter(|path| path.is_dir()).collect()
}

/// Tells whether a source of `module` uses the vendor's SDK.
pub fn has_sources_with_sdk(module: &Module) -> bool {
    let without = &module.sources_without_sdk;
    module
        .sources
        .iter()
        .any(|source| !without.contains(source))
}

/// Returns places of the vendor's tree, for files that do not depend on the sources: named by `flags`, by a variable,
/// or in a usual place.
pub fn roots(module: &Module, environment: &Environment) -> Vec<PathBuf> {
    let Some(sdk) = Sdk::of(module.language) else {
        return Vec::new();
    };
    let mut roots: Vec<PathBuf> = sdk.in_flags(&module.own.flags).collect();
    roots.extend(sdk.places(environment).concat());
    roots
}

/// Returns the folder over which Debian spreads the vendor's files, if `root` is the part of them that it collects.
pub fn spread_over(root: &Path) -> Option<&Path> {
    let [collected, _] = CUDA.collected?;
    let is_collected = root.ends_with(collected) && root.is_dir();
    root.ancestors().nth(2).filter(|_| is_collected)
}

/// Returns the root of the SDK of `language`, whatever the sources of a module use; `tree` is that of its compiler.
///
/// # Errors
///
/// If no root is found, with the places that were searched.
pub fn any_root(
    language: Language,
    environment: &Environment,
    answers: &Answers,
    tree: Vec<PathBuf>,
) -> Result<PathBuf, Error> {
    let search = environment.search();
    let (sdk, found) = match language {
        Language::Hip => {
            let asked = || rocm::asked_roots(&search, answers);
            (&ROCM, ROCM.find(environment, tree, asked)?)
        }
        _ => {
            // nvcc reads the headers of its own toolkit, whatever variables say.
            let own = tree.iter().find(|root| root.join(CUDA.header).is_file());
            if let Some(own) = own {
                return Ok(own.clone());
            }
            let asked = || Ok(trees_in_path(&search));
            (&CUDA, CUDA.find(environment, tree, asked)?)
        }
    };
    let root = found.map(|root| root.path);
    root.map_err(|searched| Error::missing(sdk.not_found(&searched)))
}

/// Returns the trees of NVIDIA's compilers in `PATH`, which clang takes for CUDA's toolkit, too.
fn trees_in_path(search: &Search) -> Vec<PathBuf> {
    let programs = ["ptxas", "nvcc"].into_iter();
    let real = programs.filter_map(|name| real_path(&search.program(name)?));
    let mut trees: Vec<PathBuf> = real
        .filter_map(|program| program.ancestors().nth(2).map(Path::to_owned))
        .collect();
    trees.dedup();
    trees
}

/// Returns the variable that names the vendor's tree, for HIP and CUDA.
pub fn main_variable(language: Language) -> &'static str {
    let sdk = Sdk::of(language).expect("HIP and CUDA have a tree");
    sdk.variables.first().expect("a variable names each tree")
}

/// Returns the flag of `target` that leaves out the vendor's device libraries.
pub fn without_libraries(target: &Target) -> Option<&str> {
    let mut flags = target.own.flags.iter().map(String::as_str);
    flags.find(|flag| NO_LIBRARIES.contains(flag))
}

impl Sdk {
    fn of(language: Language) -> Option<&'static Self> {
        match language {
            Language::OpenMp | Language::Bitcode | Language::Rust | Language::Prebuilt => None,
            Language::Hip => Some(&ROCM),
            Language::Cuda => Some(&CUDA),
        }
    }

    /// Returns the roots that `flags` name.
    fn in_flags<'f>(
        &'f self,
        flags: impl IntoIterator<Item = &'f String>,
    ) -> impl Iterator<Item = PathBuf> {
        flags.into_iter().filter_map(|flag| {
            let (name, root) = flag.split_once('=')?;
            self.options.contains(&name).then(|| PathBuf::from(root))
        })
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
        let names_root = |flag: &String| {
            let name = flag
                .split('=')
                .next()
                .expect("a split text has a first part");
            self.options.contains(&name)
        };
        if module.family() != Family::Nvcc && !has_sources_with_sdk(module) {
            return Ok(None);
        }
        // Of all targets: those that need it read the same installation.
        let mut targets = module.targets.iter().map(|target| &target.own.flags);
        let is_named = |flags: &Vec<String>| flags.iter().any(names_root);
        let does_without = |flags: &Vec<String>| !uses_headers(flags) && !uses_libraries(flags);
        if targets.all(|flags| does_without(flags) || is_named(flags)) {
            return Ok(None);
        }
        match self.find(environment, tree, asked)? {
            Ok(root) => Ok(Some(root)),
            Err(searched) => Err(Error::missing(format_args!(
                "module `{}`: no {} for `{}`: {}, or do without: include `<offload/gpu.h>` in each source, or set `flags = [\"-nogpuinc\", \"-nogpulib\"]`",
                module.name,
                self.vendor,
                module.language.name(),
                self.not_found(&searched),
            ))),
        }
    }

    /// Returns the root of the SDK, or the places without one that were searched.
    fn find(
        &self,
        environment: &Environment,
        tree: Vec<PathBuf>,
        asked: impl FnOnce() -> Result<Vec<PathBuf>, Error>,
    ) -> Result<Result<Root, Vec<PathBuf>>, Error> {
        let [mut roots, usual] = self.places(environment);
        let count = roots.len();
        roots.extend(tree);
        let first = |roots: &[PathBuf]| {
            let mut found = roots.iter().map(|root| self.root_at(root)).zip(0..);
            found.find_map(|(root, place)| Some((root?, place)))
        };
        let mut found = first(&roots);
        // Programs are asked when nothing nearer says it.
        if found.is_none() {
            roots.extend(asked()?);
            roots.extend(usual);
            found = first(&roots);
        }
        Ok(match found {
            Some((path, place)) => Ok(Root {
                path,
                is_named: place < count,
            }),
            None => Err(roots),
        })
    }

    /// Returns the root for the vendor's files at `place`, if they are there.
    fn root_at(&self, place: &Path) -> Option<PathBuf> {
        let header = Path::new(self.header);
        if let Some([folder, link]) = self.collected {
            // `place` may be that folder itself.
            let roots = [place.join(folder), place.to_owned()];
            let is_collected = |root: &PathBuf| {
                let real = real_path(&root.join(link));
                let beside = real.and_then(|real| Some(real.with_file_name(header.file_name()?)));
                !root.join(header).is_file() && beside.is_some_and(|header| header.is_file())
            };
            if let Some(root) = roots.into_iter().find(is_collected) {
                return Some(root);
            }
        }
        place.join(header).is_file().then(|| place.to_owned())
    }

    /// Says where the SDK was looked for, and how to get it.
    fn not_found(&self, searched: &[PathBuf]) -> String {
        let searched: Vec<String> = searched.iter().map(|root| shown(root)).collect();
        format!(
            "`{}` not found (searched: {}, and {} name others) [OFF604]\nhint: {} and name its root by {}",
            self.header,
            searched.join(", "),
            self.variables.join(", "),
            self.need.install(None),
            self.variables.first().unwrap_or(&""),
        )
    }
}

fn shown(root: &Path) -> String {
    root.display().to_string()
}
