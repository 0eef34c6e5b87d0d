//! The compilers of a ROCm tree: its clang, also under the name amdclang, and hipcc, a front for it.
//!
//! hipcc takes clang's options and adds its own: where headers and device libraries of its tree are. What its
//! clang made is linked by that clang.

use crate::environment::Environment;
use crate::error::Error;
use crate::installed::answers::Answers;
use crate::installed::llvm::Llvm;
use crate::installed::llvm::RELEASES;
use crate::process::command::Command;
use crate::process::search::Search;
use crate::process::search::program_in;
use crate::readable::Readable;
use offload_formats_core::format::bitcode;
use offload_formats_core::format::bytes::ReadAt;
use std::path::{Path, PathBuf};

/// Usual folders of a ROCm tree.
pub const ROCM_FOLDERS: &[&str] = &["/opt/rocm", "/usr"];

/// Variables that name the root of a tree, the first first.
pub const VARIABLES: &[&str] = &["ROCM_PATH", "ROCM_HOME", "HIP_PATH"];

/// Programs that say where their tree is, and how they are asked: ROCm's own, and that of its Python packages.
const QUESTIONS: [(&str, &[&str]); 2] = [
    ("hipconfig", &["--rocmpath"]),
    ("rocm-sdk", &["path", "--root"]),
];

/// Roots that variables name.
pub fn named_roots(environment: &Environment) -> Vec<PathBuf> {
    let named = VARIABLES
        .iter()
        .filter_map(|name| environment.variable(name));
    named.map(PathBuf::from).collect()
}

/// Roots that programs in `PATH` name.
///
/// # Errors
///
/// When such a program fails: another tree would take the place of the one that it stands for.
pub fn asked_roots(search: &Search, answers: &Answers) -> Result<Vec<PathBuf>, Error> {
    let mut roots = Vec::new();
    for (name, args) in QUESTIONS {
        let Some(program) = search.program(name) else {
            continue;
        };
        let question = Command::new(program).args(args.iter().copied());
        let answer = answers.to(&question).map_err(|error| {
            Error::new(format_args!(
                "cannot ask `{name}` where ROCm is: {error}\n\
                 hint: set ROCM_PATH to ROCm's root"
            ))
        })?;
        // Both may warn.
        let mut named = answer.lines().map(|line| PathBuf::from(line.trim()));
        roots.extend(named.find(|root| root.is_absolute() && root.is_dir()));
    }
    Ok(roots)
}

/// A ROCm tree, and what clang does not find in it by itself.
#[derive(Clone, Copy, Debug)]
pub struct RocmTree<'a> {
    /// The root of headers and device libraries.
    pub root: &'a Path,
    /// The folder of the device libraries, where they do not lie as in AMD's own tree.
    pub device_libraries: Option<&'a Path>,
    /// True if the headers need `__AMDGCN_WAVEFRONT_SIZE` and the compiler does not define it.
    pub lacks_wavefront_size: bool,
}

/// Folders of a tree's programs: its own, and those of its LLVM, as AMD, Ubuntu and Fedora have it.
const BINS: [&str; 5] = [
    "bin",
    "llvm/bin",
    "lib/llvm/bin",
    "lib/rocm/llvm/bin",
    "lib64/rocm/llvm/bin",
];

/// The program of that name in a tree.
#[must_use]
pub fn program(root: &Path, name: &str) -> Option<PathBuf> {
    let paths = BINS.iter().map(|bin| root.join(bin).join(name));
    paths.into_iter().find(|path| path.is_file())
}

/// The clang that belongs to a tree. What lies in its `bin` may be the system's.
#[must_use]
pub fn clang(root: &Path) -> Option<Llvm> {
    let paths = BINS[1..].iter().map(|bin| root.join(bin).join("clang"));
    paths.into_iter().find(|path| path.is_file()).map(Llvm::of)
}

/// The device libraries of a tree.
#[derive(Clone, Debug)]
pub struct RocmLibraries {
    pub folder: PathBuf,
    /// True if clang finds them from the root of the tree.
    pub is_found_by_clang: bool,
}

impl RocmLibraries {
    /// Returns the release of LLVM that wrote the libraries, if it is known.
    pub fn release(&self) -> Option<u32> {
        let file = Readable::open(&self.folder.join(LIBRARY)).ok()?;
        let size = file.data().size()?;
        bitcode::release(file.data(), 0..size).ok()?
    }
}

/// A library that every folder of device libraries contains.
const LIBRARY: &str = "ocml.bc";

/// Returns a tree's device libraries. Distributions keep them beside the clang of their release, where clang does not find them.
/// A clang of `release` reads those of its own release and of older ones, of which this returns the newest.
#[must_use]
pub fn device_libraries(root: &Path, release: Option<u32>) -> Option<RocmLibraries> {
    let has_libraries = |folder: &PathBuf| folder.join(LIBRARY).is_file();
    let by_itself = ["amdgcn/bitcode", "lib/amdgcn/bitcode"].map(|name| root.join(name));
    let found = by_itself.into_iter().find(has_libraries);
    let is_found_by_clang = found.is_some();
    let folder = found.or_else(|| beside_clang(root, release, has_libraries))?;
    Some(RocmLibraries {
        folder,
        is_found_by_clang,
    })
}

/// Returns the folder of device libraries beside a clang of `release` or an older one.
fn beside_clang(
    root: &Path,
    release: Option<u32>,
    has_libraries: impl Fn(&PathBuf) -> bool,
) -> Option<PathBuf> {
    let lib = root.join("lib");
    let of_release = |release: u32| {
        let clangs = [
            lib.join(format!("llvm-{release}/lib/clang")),
            lib.join("llvm/lib/clang"),
            lib.join("clang"),
            lib.join("rocm/llvm/lib/clang"),
            root.join("lib64/rocm/llvm/lib/clang"),
        ];
        let folders = clangs.map(|clang| clang.join(release.to_string()));
        let folders = folders.into_iter().flat_map(|own| [own.join("lib"), own]);
        folders
            .map(|folder| folder.join("amdgcn/bitcode"))
            .find(&has_libraries)
    };
    let newest = release.unwrap_or(*RELEASES.end());
    let releases = RELEASES.rev().filter(|release| *release <= newest);
    releases.into_iter().find_map(of_release).or_else(|| {
        // Debian 12, for its clang 14 and 15: those of no release.
        let folders = ["x86_64", "aarch64"].map(|arch| lib.join(format!("{arch}-linux-gnu")));
        let folders = folders.map(|folder| folder.join("amdgcn/bitcode"));
        folders.into_iter().find(|folder| has_libraries(folder))
    })
}

/// The LLVM of `clang`, also where that is a front in the tree's own `bin`.
#[must_use]
pub fn llvm_of(clang: PathBuf) -> Llvm {
    let llvm = Llvm::of(clang);
    if llvm.sibling("ld.lld").is_ok() {
        return llvm;
    }
    let prefixes = ["llvm", "lib/llvm"].map(|name| llvm.prefix.join(name));
    let has_lld = |prefix: &PathBuf| program_in(&prefix.join("bin"), "ld.lld").is_file();
    match prefixes.into_iter().find(has_lld) {
        Some(prefix) => Llvm::within(prefix, llvm.clang),
        None => llvm,
    }
}

/// Tells whether `program` has the name of ROCm's own clang.
pub fn is_amdclang(program: &str) -> bool {
    let stem = Path::new(program)
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy();
    stem.starts_with("amdclang") || stem == "amdllvm"
}

/// The clang behind a hipcc, by what that says to `--version`: its folder and release.
#[must_use]
pub fn clang_behind(version: &str) -> Option<Llvm> {
    let after = |text: &str| {
        version
            .lines()
            .find_map(|line| Some(line.split_once(text)?.1.trim()))
    };
    let folder = Path::new(after("InstalledDir:")?);
    let release = after("clang version ")?.split('.').next()?;
    // Debian's hipcc takes one of several that lie in one folder.
    let names = [format!("clang-{release}"), "clang".to_owned()];
    let paths = names.iter().map(|name| program_in(folder, name));
    paths.into_iter().find(|path| path.is_file()).map(Llvm::of)
}

/// Returns what hipcc says about itself and its clang, in one line.
#[must_use]
pub fn version_line(version: &str) -> String {
    let of = |start: &str| {
        version
            .lines()
            .find(|line| line.contains(start))
            .map(str::trim)
    };
    let lines = [of("HIP version"), of("clang version")];
    lines.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// By hipcc 5.2.3 of Debian 12, in front of clang 16.
    const VERSION: &str = "HIP version: 5.2.21153-0\nDebian clang version 16.0.6 (15~deb12u1)\n\
        Target: x86_64-pc-linux-gnu\nThread model: posix\nInstalledDir: ";

    #[test]
    fn reads_what_hipcc_says_of_its_clang() {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().canonicalize().unwrap().join("llvm/bin");
        fs::create_dir_all(&bin).unwrap();
        let version = format!("{VERSION}{}\n", bin.display());
        assert_eq!(clang_behind(&version), None);
        fs::write(bin.join("clang"), "").unwrap();
        let found = |version: &str| clang_behind(version).unwrap();
        assert_eq!(found(&version).clang, bin.join("clang"));
        fs::write(bin.join("clang-16"), "").unwrap();
        assert_eq!(found(&version).clang, bin.join("clang-16"));
        assert_eq!(found(&version).prefix, bin.parent().unwrap());
        assert_eq!(
            clang_behind("HIP version: \nnvcc: NVIDIA (R) Cuda compiler driver\n"),
            None
        );
        assert_eq!(
            version_line(&version),
            "HIP version: 5.2.21153-0; Debian clang version 16.0.6 (15~deb12u1)"
        );
    }

    #[test]
    fn finds_device_libraries_that_the_clang_reads() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let put = |name: &str| {
            let folder = root.join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("ocml.bc"), "").unwrap();
            folder
        };
        let found = |root: &Path, release| {
            let libraries = device_libraries(root, release)?;
            Some((libraries.folder, libraries.is_found_by_clang))
        };
        assert_eq!(found(root, None), None);
        let debian12 = put("lib/x86_64-linux-gnu/amdgcn/bitcode");
        assert_eq!(found(root, Some(19)), Some((debian12.clone(), false)));
        let of_21 = put("lib/llvm-21/lib/clang/21/amdgcn/bitcode");
        let of_17 = put("lib/llvm-17/lib/clang/17/lib/amdgcn/bitcode");
        for (release, expected) in [
            (16, debian12),
            (17, of_17.clone()),
            (20, of_17),
            (22, of_21.clone()),
        ] {
            assert_eq!(
                found(root, Some(release)),
                Some((expected, false)),
                "{release}"
            );
        }
        assert_eq!(found(root, None), Some((of_21, false)));
        let of_amd = put("amdgcn/bitcode");
        assert_eq!(found(root, Some(22)), Some((of_amd, true)));
    }

    #[test]
    fn knows_where_a_tree_has_its_programs() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let put = |name: &str| {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), "").unwrap();
        };
        put("bin/clang");
        assert_eq!(clang(&root), None);
        put("lib/llvm/bin/clang");
        assert_eq!(clang(&root).unwrap().prefix, root.join("lib/llvm"));
        put("bin/amdclang++");
        let front = program(&root, "amdclang++").unwrap();
        assert_eq!(front, root.join("bin/amdclang++"));
        assert_eq!(llvm_of(front.clone()).prefix, root);
        put("lib/llvm/bin/ld.lld");
        let llvm = llvm_of(front.clone());
        assert_eq!((llvm.clang, llvm.prefix), (front, root.join("lib/llvm")));
    }
}
