//! The runtime libraries that a registration calls, where the user named none.
//!
//! Clang adds them when it links; rustc and C compilers do not know that there is device code
//! (`docs/spec/linker-wrapper.md` §8.3 item 4).

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use offload_build::tools::{Llvm, Search};
use offload_formats::container::elf::Machine;
use offload_formats::names::OffloadKind;

use crate::linker_wrapper::line::arguments::{Arguments, Item, Position};

/// Where runtimes are installed, the first first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RuntimeFolders {
    openmp: Vec<PathBuf>,
    cuda: Vec<PathBuf>,
    hip: Vec<PathBuf>,
}

impl RuntimeFolders {
    /// As the environment says; OpenMP's runtime is that of the release of LLVM which made the
    /// device code.
    pub(crate) fn find(arguments: &Arguments, release: Option<u32>, machine: Machine) -> Self {
        let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let roots = |names: &[&str], usual: &str| -> Vec<PathBuf> {
            let named = names.iter().filter_map(|name| variable(name));
            named.map(PathBuf::from).chain([usual.into()]).collect()
        };
        let mut cuda = roots(&["CUDA_PATH", "CUDA_HOME"], "/usr/local/cuda");
        cuda.splice(0..0, arguments.options.cuda.clone());
        let search = Search {
            path: variable("PATH").unwrap_or_default(),
            cuda: Vec::new(),
        };
        let clang = release.and_then(|release| search.program(&[&format!("clang-{release}")]));
        let openmp = clang.and_then(|clang| Llvm::of(clang).offload_runtime(machine));
        Self {
            openmp: openmp.into_iter().collect(),
            cuda: folders(&cuda, &["lib64", "lib", "targets/x86_64-linux/lib"]),
            hip: folders(
                &roots(&["ROCM_PATH", "HIP_PATH"], "/opt/rocm"),
                &["lib", "lib64"],
            ),
        }
    }
}

fn folders(roots: &[PathBuf], below: &[&str]) -> Vec<PathBuf> {
    let all = |root: &PathBuf| below.iter().map(|name| root.join(name)).collect::<Vec<_>>();
    roots.iter().flat_map(all).collect()
}

/// A runtime: who needs it, its libraries, and which others stand for it.
struct Runtime {
    kind: OffloadKind,
    libraries: &'static [&'static str],
    /// On the line already, under one of these names.
    instead: &'static [&'static str],
    places: fn(&RuntimeFolders) -> &[PathBuf],
}

const RUNTIMES: [Runtime; 3] = [
    Runtime {
        kind: OffloadKind::OPENMP,
        libraries: &["omptarget", "omp"],
        instead: &["omptarget"],
        places: |places| &places.openmp,
    },
    Runtime {
        kind: OffloadKind::CUDA,
        libraries: &["cudart"],
        instead: &["cudart", "cudart_static"],
        places: |places| &places.cuda,
    },
    Runtime {
        kind: OffloadKind::HIP,
        libraries: &["amdhip64"],
        instead: &["amdhip64"],
        places: |places| &places.hip,
    },
];

/// What to add at the end of a compiler driver's line so that images of these kinds find their
/// runtimes, and the folders that these are in, which the program must find at run time too.
///
/// Nothing where a linker's own arguments came: whoever wrote these links what is needed. Nothing
/// for a library that is on the line, with `-nostdlib`, or where no program comes out.
pub(crate) fn runtime_libraries(
    kinds: &[OffloadKind],
    arguments: &Arguments,
    places: &RuntimeFolders,
) -> (Vec<OsString>, Vec<PathBuf>) {
    let (mut line, mut used) = (Vec::new(), Vec::new());
    let named_by_user = arguments.no_libraries || arguments.relocatable || arguments.all_static;
    if arguments.position != Position::Driver || named_by_user {
        return (line, used);
    }
    for runtime in &RUNTIMES {
        let wanted = kinds.contains(&runtime.kind);
        if !wanted || runtime.instead.iter().any(|name| is_named(arguments, name)) {
            continue;
        }
        let missing: Vec<&str> = runtime
            .libraries
            .iter()
            .copied()
            .filter(|name| !is_named(arguments, name))
            .collect();
        let has = |folder: &&PathBuf| {
            folder
                .join(format!("lib{}.so", runtime.libraries[0]))
                .exists()
        };
        if let Some(folder) = (runtime.places)(places).iter().find(has) {
            let mut option = OsString::from("-L");
            option.push(folder);
            line.push(option);
            used.push(folder.clone());
        }
        // What a program turns out not to call is no dependency of it.
        line.push("-Wl,--push-state,--as-needed".into());
        line.extend(
            missing
                .iter()
                .map(|name| OsString::from(format!("-l{name}"))),
        );
        line.push("-Wl,--pop-state".into());
    }
    (line, used)
}

/// The libraries of a kind's runtime.
pub(crate) fn libraries_of(kind: OffloadKind) -> &'static [&'static str] {
    let runtime = RUNTIMES.iter().find(|runtime| runtime.kind == kind);
    runtime.map_or(&[], |runtime| runtime.libraries)
}

/// Whether the line has the library, by `-l` or by the path of its file.
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

    fn arguments(line: &[&str]) -> Arguments {
        Arguments::parse(line.iter().map(OsString::from).collect(), "offload-link").unwrap()
    }

    fn libraries(kinds: &[OffloadKind], line: &[&str]) -> Vec<OsString> {
        runtime_libraries(kinds, &arguments(line), &RuntimeFolders::default()).0
    }

    const AS_NEEDED: &str = "-Wl,--push-state,--as-needed";
    const USUAL: &str = "-Wl,--pop-state";

    #[test]
    fn adds_the_runtimes_of_the_kinds_that_are_there() {
        use OffloadKind as Kind;
        for (kinds, expected) in [
            (&[][..], &[][..]),
            (&[Kind::OPENMP], &[AS_NEEDED, "-lomptarget", "-lomp", USUAL]),
            (&[Kind::CUDA], &[AS_NEEDED, "-lcudart", USUAL]),
            (
                &[Kind::HIP, Kind::CUDA],
                &[AS_NEEDED, "-lcudart", USUAL, AS_NEEDED, "-lamdhip64", USUAL],
            ),
            (&[Kind::SYCL], &[]),
        ] {
            assert_eq!(
                libraries(kinds, &["a.o", "-nodefaultlibs", "-lc"]),
                expected,
                "{kinds:?}"
            );
        }
    }

    #[test]
    fn adds_nothing_that_the_user_decided() {
        let kinds = [OffloadKind::OPENMP, OffloadKind::CUDA, OffloadKind::HIP];
        let all = [
            "-lomptarget",
            "-lcudart_static",
            "/opt/rocm/lib/libamdhip64.so.6",
        ];
        assert!(libraries(&kinds, &all).is_empty());
        assert!(
            libraries(
                &kinds,
                &["-l", ":libomptarget.so.19.1", "-lcudart", "-lamdhip64"]
            )
            .is_empty()
        );
        for decided in ["-nostdlib", "-static", "-r"] {
            assert!(libraries(&kinds, &[decided]).is_empty(), "{decided}");
        }
        assert!(!libraries(&kinds, &["-lomptargets"]).is_empty());
        // A library of its own that is there is not named twice.
        assert_eq!(
            libraries(&kinds[..1], &["-lomp"]),
            [AS_NEEDED, "-lomptarget", USUAL]
        );
        // Clang, or whoever wrote a linker's arguments, knows.
        let linker = Arguments::parse(vec!["a.o".into()], "offload-ld").unwrap();
        assert!(
            runtime_libraries(&kinds, &linker, &RuntimeFolders::default())
                .0
                .is_empty()
        );
    }

    #[test]
    fn names_the_folder_where_the_runtime_is() {
        let dir = tempfile::tempdir().unwrap();
        let lib = dir.path().join("lib64");
        std::fs::create_dir(&lib).unwrap();
        std::fs::write(lib.join("libcudart.so"), "").unwrap();
        let cuda = format!("--cuda-path={}", dir.path().display());
        let arguments = arguments(&["a.o", &cuda]);
        let places = RuntimeFolders::find(&arguments, None, Machine::X86_64);
        let (line, folders) = runtime_libraries(&[OffloadKind::CUDA], &arguments, &places);
        let mut option = OsString::from("-L");
        option.push(&lib);
        assert_eq!(
            line,
            [option, AS_NEEDED.into(), "-lcudart".into(), USUAL.into()]
        );
        assert_eq!(folders, [lib]);
    }
}
