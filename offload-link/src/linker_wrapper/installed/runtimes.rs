//! Finds the runtime libraries that a registration calls, if the user named none.
//!
//! Clang adds them when it links. rustc and C compilers do not know that there is device code
//! (`docs/spec/linker-wrapper.md` §8.3 item 4).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use offload_build::tools::{CUDA_ROOTS, Llvm, Search, USUAL_CUDA};
use offload_formats::container::elf::Machine;
use offload_formats::names::OffloadKind;

use crate::environment::variable;
use crate::linker_wrapper::line::arguments::{Arguments, Item, Position};

/// A runtime that the command line lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundRuntime {
    /// Names of its libraries, without those on the command line.
    pub libraries: Vec<&'static str>,
    /// Folder with its first library; `None` if only the host linker can find it.
    pub folder: Option<PathBuf>,
}

/// A program that will be linked, as far as it decides which runtimes fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostProgram<'a> {
    pub arguments: &'a Arguments,
    /// Release of clang that made the host objects.
    pub release: Option<u32>,
    pub machine: Machine,
}

/// A kind's runtime, its libraries, and the libraries that replace it.
struct Runtime {
    kind: OffloadKind,
    libraries: &'static [&'static str],
    /// Names that mean that the runtime is on the command line already.
    instead: &'static [&'static str],
    /// Returns the folders that may have it, best first.
    folders: fn(HostProgram<'_>) -> Vec<PathBuf>,
}

const RUNTIMES: [Runtime; 3] = [
    Runtime {
        kind: OffloadKind::OPENMP,
        libraries: &["omptarget", "omp"],
        instead: &["omptarget"],
        folders: openmp,
    },
    Runtime {
        kind: OffloadKind::CUDA,
        libraries: &["cudart"],
        instead: &["cudart", "cudart_static"],
        folders: cuda,
    },
    Runtime {
        kind: OffloadKind::HIP,
        libraries: &["amdhip64"],
        instead: &["amdhip64"],
        folders: hip,
    },
];

/// Finds the runtimes of these kinds that a compiler driver must be told.
///
/// The result is empty in linker position, where the caller links the runtimes, with `-nostdlib`, and if the output
/// is not a program. It has no runtime that is on the command line.
pub(crate) fn find(kinds: &[OffloadKind], program: HostProgram<'_>) -> Vec<FoundRuntime> {
    let arguments = program.arguments;
    let named_by_user = arguments.no_libraries || arguments.relocatable || arguments.all_static;
    if arguments.position != Position::Driver || named_by_user {
        return Vec::new();
    }
    let is_missing = |runtime: &&Runtime| {
        let mut names = runtime.instead.iter();
        kinds.contains(&runtime.kind) && !names.any(|name| is_named(arguments, name))
    };
    let missing = RUNTIMES.iter().filter(is_missing);
    let found = missing.map(|runtime| {
        let libraries = runtime.libraries.iter().copied();
        let file = format!("lib{}.so", runtime.libraries[0]);
        let mut folders = (runtime.folders)(program).into_iter();
        FoundRuntime {
            libraries: libraries
                .filter(|name| !is_named(arguments, name))
                .collect(),
            folder: folders.find(|folder| folder.join(&file).exists()),
        }
    });
    found.collect()
}

/// Returns the folder of the LLVM release that made the device code.
fn openmp(program: HostProgram<'_>) -> Vec<PathBuf> {
    let search = Search {
        path: variable("PATH").unwrap_or_default(),
        cuda: Vec::new(),
    };
    let clang = program
        .release
        .and_then(|release| search.program(&format!("clang-{release}")));
    let folder = clang.and_then(|clang| Llvm::of(clang).offload_runtime(program.machine));
    folder.into_iter().collect()
}

fn cuda(program: HostProgram<'_>) -> Vec<PathBuf> {
    let mut roots = roots(&CUDA_ROOTS, USUAL_CUDA);
    roots.splice(0..0, program.arguments.options.cuda.clone());
    folders(&roots, &["lib64", "lib", "targets/x86_64-linux/lib"])
}

fn hip(_: HostProgram<'_>) -> Vec<PathBuf> {
    let roots = roots(&["ROCM_PATH", "HIP_PATH"], "/opt/rocm");
    folders(&roots, &["lib", "lib64"])
}

fn roots(variables: &[&str], usual: &str) -> Vec<PathBuf> {
    let named = variables.iter().filter_map(variable);
    named.map(PathBuf::from).chain([usual.into()]).collect()
}

fn folders(roots: &[PathBuf], below: &[&str]) -> Vec<PathBuf> {
    let all = |root: &PathBuf| below.iter().map(|name| root.join(name)).collect::<Vec<_>>();
    roots.iter().flat_map(all).collect()
}

/// Returns the libraries of a kind's runtime.
pub(crate) fn libraries_of(kind: OffloadKind) -> &'static [&'static str] {
    let runtime = RUNTIMES.iter().find(|runtime| runtime.kind == kind);
    runtime.map_or(&[], |runtime| runtime.libraries)
}

/// Tells whether the command line has the library, by `-l` or by its file's path.
fn is_named(arguments: &Arguments, library: &str) -> bool {
    let file = format!("lib{library}.");
    let is_file = |name: &OsStr| name.to_string_lossy().starts_with(&file);
    arguments.items.iter().any(|item| match item {
        Item::Library { name, .. } => {
            let exact = name.to_string_lossy();
            *exact == *library
                || exact
                    .strip_prefix(':')
                    .is_some_and(|name| is_file(name.as_ref()))
        }
        Item::File { path, .. } => Path::new(path).file_name().is_some_and(is_file),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn arguments(line: &[&str]) -> Arguments {
        Arguments::parse(line.iter().map(OsString::from).collect(), "offload-link").unwrap()
    }

    fn found(kinds: &[OffloadKind], arguments: &Arguments) -> Vec<FoundRuntime> {
        let program = HostProgram {
            arguments,
            release: None,
            machine: Machine::X86_64,
        };
        find(kinds, program)
    }

    fn libraries(kinds: &[OffloadKind], line: &[&str]) -> Vec<Vec<&'static str>> {
        let found = found(kinds, &arguments(line)).into_iter();
        found.map(|runtime| runtime.libraries).collect()
    }

    #[test]
    fn finds_the_runtimes_of_the_kinds_that_are_there() {
        use OffloadKind as Kind;
        for (kinds, expected) in [
            (&[][..], &[][..]),
            (&[Kind::OPENMP], &[&["omptarget", "omp"][..]]),
            (&[Kind::CUDA], &[&["cudart"]]),
            (&[Kind::HIP, Kind::CUDA], &[&["cudart"], &["amdhip64"]]),
            (&[Kind::SYCL], &[]),
        ] {
            let line = ["a.o", "-nodefaultlibs", "-lc"];
            assert_eq!(libraries(kinds, &line), expected, "{kinds:?}");
        }
    }

    #[test]
    fn finds_nothing_that_the_user_decided() {
        let kinds = [OffloadKind::OPENMP, OffloadKind::CUDA, OffloadKind::HIP];
        let all = [
            "-lomptarget",
            "-lcudart_static",
            "/opt/rocm/lib/libamdhip64.so.6",
        ];
        assert!(libraries(&kinds, &all).is_empty());
        let all = ["-l", ":libomptarget.so.19.1", "-lcudart", "-lamdhip64"];
        assert!(libraries(&kinds, &all).is_empty());
        for decided in ["-nostdlib", "-static", "-r"] {
            assert!(libraries(&kinds, &[decided]).is_empty(), "{decided}");
        }
        assert!(!libraries(&kinds, &["-lomptargets"]).is_empty());
        // A library of the runtime that is on the line is not named twice.
        assert_eq!(libraries(&kinds[..1], &["-lomp"]), [["omptarget"]]);
        // Clang, or whoever wrote a linker's arguments, names the runtimes.
        let linker = Arguments::parse(vec!["a.o".into()], "offload-ld").unwrap();
        assert!(found(&kinds, &linker).is_empty());
    }

    #[test]
    fn finds_the_folder_where_the_runtime_is() {
        let dir = tempfile::tempdir().unwrap();
        let lib = dir.path().join("lib64");
        std::fs::create_dir(&lib).unwrap();
        std::fs::write(lib.join("libcudart.so"), "").unwrap();
        let cuda = format!("--cuda-path={}", dir.path().display());
        let found = found(&[OffloadKind::CUDA], &arguments(&["a.o", &cuda]));
        assert_eq!(found[0].folder, Some(lib));
    }
}
