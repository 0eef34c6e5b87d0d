//! Releases of clang that can read the headers and device libraries of an SDK.
//!
//! [`FITS`] is the table in `docs/compilers.md`, "Clang and SDK releases". A toolkit that it does not list, and a clang whose release is
//! unknown, are not restricted.

use crate::declare::language::Language;
use crate::declare::module::Module;
use crate::environment::Environment;
use crate::installed::llvm::Llvm;
use crate::installed::rocm::{self, RocmLibraries};
use crate::installed::sdk;
use crate::process::install::Need;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// A release of an SDK: major and minor number.
type Version = (u32, u32);

/// Releases of clang for the headers of an SDK, from one of its releases on.
pub struct Fit {
    pub language: Language,
    pub since: Version,
    pub oldest_clang: u32,
    /// The newest clang that can read all of these headers.
    pub newest_clang: Option<u32>,
    /// The newest clang that can read all but some headers, and their names.
    pub newest_without: Option<(u32, &'static str)>,
    /// The releases of the SDK and of clang that were tried with each other.
    pub tested: (&'static [Version], &'static [u32]),
}

pub const FITS: [Fit; 7] = [
    Fit {
        language: Language::Cuda,
        since: (12, 0),
        oldest_clang: 16,
        newest_clang: None,
        newest_without: None,
        tested: (&[(12, 4), (12, 9)], &[16, 17, 18, 19, 21, 22, 23]),
    },
    // clang's own header includes `texture_fetch_functions.h`, which CUDA 13 no longer has.
    Fit {
        language: Language::Cuda,
        since: (13, 0),
        oldest_clang: 22,
        newest_clang: None,
        newest_without: None,
        tested: (&[(13, 5)], &[22, 23]),
    },
    // `hip_fp16.h` calls `__llvm_amdgcn_rcp_f16`, which clang 22 no longer declares.
    Fit {
        language: Language::Hip,
        since: (5, 0),
        oldest_clang: 16,
        newest_clang: Some(21),
        newest_without: Some((22, "`hip_fp16.h`")),
        tested: (&[(5, 2)], &[16, 19, 21]),
    },
    // `hip_runtime.h` calls `__ocml_floor_f64`, which clang 23 no longer declares.
    Fit {
        language: Language::Hip,
        since: (5, 7),
        oldest_clang: 16,
        newest_clang: Some(22),
        newest_without: None,
        tested: (&[(5, 7)], &[16, 17, 18, 19, 21, 22]),
    },
    Fit {
        language: Language::Hip,
        since: (6, 0),
        oldest_clang: 16,
        newest_clang: Some(22),
        newest_without: None,
        tested: (&[(6, 4)], &[21, 22]),
    },
    // The other headers call functions that clang 23 no longer declares: `__ocml_sqrt_f16`, `__ocml_log_f32`.
    Fit {
        language: Language::Hip,
        since: (7, 0),
        oldest_clang: 16,
        newest_clang: Some(22),
        newest_without: Some((u32::MAX, "`hip_fp16.h` or `hip_bf16.h`")),
        tested: (&[(7, 1), (7, 2)], &[21, 22]),
    },
    // They declare what they call since ROCm/rocm-systems#2230.
    Fit {
        language: Language::Hip,
        since: (7, 3),
        oldest_clang: 16,
        newest_clang: None,
        newest_without: None,
        tested: (&[(7, 15)], &[22, 23]),
    },
];

/// The first release of clang that makes version 6 of AMD's code objects by default.
pub const CODE_OBJECT_6: u32 = 20;

/// The first release of clang that does not define `__AMDGCN_WAVEFRONT_SIZE`.
const NO_WAVEFRONT_SIZE: u32 = 22;

/// The first major release of ROCm whose headers do without this macro.
const HEADERS_WITHOUT_WAVEFRONT_SIZE: u32 = 7;

/// The SDK that a module's sources use.
#[derive(Debug, Default)]
pub struct UsedSdk {
    language: Option<Language>,
    /// The release of its headers, if the sources include them.
    version: Option<Version>,
    /// The root of the ROCm tree whose device libraries clang links.
    library_root: Option<PathBuf>,
    /// True if `flags` choose the version of code objects.
    names_code_object_version: bool,
}

/// Reason why a clang cannot compile for an SDK.
#[derive(Debug, PartialEq, Eq)]
pub struct Misfit {
    pub problem: String,
    /// The next action.
    pub hint: String,
    /// True if every source fails, not only those that include certain headers.
    pub is_certain: bool,
}

impl UsedSdk {
    /// Reads the release of the SDK with headers in `headers` and, for ROCm, device libraries in the tree `root`.
    pub fn new(
        module: &Module,
        headers: Option<&Path>,
        root: Option<&Path>,
        environment: &Environment,
    ) -> Self {
        let flags = || module.targets.iter().flat_map(|target| &target.own.flags);
        let has = |start: &str| flags().any(|flag| flag.starts_with(start));
        let named = environment.variable("HIP_DEVICE_LIB_PATH").is_some()
            || has("--rocm-device-lib-path")
            || has("--hip-device-lib-path");
        let mut targets = module.targets.iter();
        let uses_headers = targets.any(|target| sdk::uses_headers(&target.own.flags));
        let mut targets = module.targets.iter();
        let uses_libraries = targets.any(|target| sdk::uses_libraries(&target.own.flags));
        let is_hip = module.language == Language::Hip;
        let root = root.filter(|_| is_hip && uses_libraries && !named);
        Self {
            language: Some(module.language),
            version: headers
                .filter(|_| uses_headers)
                .and_then(|root| version(module.language, root)),
            library_root: root.map(Path::to_owned),
            names_code_object_version: has("-mcode-object-version="),
        }
    }

    /// Returns the reason why `llvm` cannot compile for this SDK.
    pub fn misfit(&self, llvm: &Llvm) -> Option<Misfit> {
        let clang = llvm.release()?;
        let headers = || self.header_misfit(clang);
        headers().or_else(|| self.library_misfit(clang))
    }

    fn header_misfit(&self, clang: u32) -> Option<Misfit> {
        let (language, version) = (self.language?, self.version?);
        let fit = fit(language, version)?;
        let is_too_old = clang < fit.oldest_clang;
        let wanted = match fit.newest_clang {
            Some(newest) if clang > newest => newest,
            _ if is_too_old => fit.oldest_clang,
            _ => return None,
        };
        let name = name(language);
        let mut ways = vec![install(wanted, if is_too_old { "later" } else { "older" })];
        if let Some((major, minor)) = newest_for(language, clang).filter(|_| is_too_old) {
            let variable = sdk::main_variable(language);
            ways.push(format!("set {variable} to {name} {major}.{minor} or older"));
        }
        if language == Language::Cuda {
            ways.push("set `compiler = \"nvcc\"`".to_owned());
        }
        let without = fit.newest_without;
        let without = without.filter(|(newest, _)| !is_too_old && clang <= *newest);
        if let Some((_, headers)) = without {
            ways.push(format!(
                "set `compiler = \"clang-{clang}\"` if no source includes {headers}"
            ));
        }
        let (major, minor) = version;
        Some(Misfit {
            problem: format!("cannot read the headers of {name} {major}.{minor}"),
            hint: ways.join(", or "),
            is_certain: without.is_none(),
        })
    }

    fn library_misfit(&self, clang: u32) -> Option<Misfit> {
        let root = self.library_root.as_deref()?;
        let misfit = |problem, hint| Misfit {
            problem,
            hint,
            is_certain: true,
        };
        let Some(libraries) = rocm::device_libraries(root, Some(clang)) else {
            // There may be some for a newer clang.
            let newer = rocm::device_libraries(root, None)?;
            return Some(too_new(&newer, misfit));
        };
        if libraries.release().is_some_and(|release| release > clang) {
            return Some(too_new(&libraries, misfit));
        }
        let lacks_code_object_6 = clang >= CODE_OBJECT_6
            && !self.names_code_object_version
            && !libraries.folder.join("oclc_abi_version_600.bc").is_file();
        lacks_code_object_6.then(|| {
            let newest = CODE_OBJECT_6 - 1;
            misfit(
                format!(
                    "needs device libraries for code objects of version 6 (ROCm 6.3 or later), which `{}` does not have",
                    libraries.folder.display()
                ),
                format!(
                    "{}, or set `flags = [\"-mcode-object-version=5\"]`",
                    install(newest, "older")
                ),
            )
        })
    }

    /// Tells whether ROCm's headers need the macro `__AMDGCN_WAVEFRONT_SIZE` and `llvm` does not define it.
    pub fn lacks_wavefront_size(&self, llvm: &Llvm) -> bool {
        let needs_it = |(major, _): Version| major < HEADERS_WITHOUT_WAVEFRONT_SIZE;
        self.language == Some(Language::Hip)
            && self.version.is_some_and(needs_it)
            && llvm
                .release()
                .is_some_and(|release| release >= NO_WAVEFRONT_SIZE)
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

fn too_new(libraries: &RocmLibraries, misfit: impl Fn(String, String) -> Misfit) -> Misfit {
    let folder = libraries.folder.display();
    match libraries.release() {
        Some(release) => misfit(
            format!("cannot read the device libraries of LLVM {release} in `{folder}`"),
            install(release, "later"),
        ),
        None => misfit(
            format!("cannot read the device libraries in `{folder}`"),
            Need::Clang.install(None),
        ),
    }
}

/// Returns how to install clang of a release, or of `others`: `older` or `later` ones.
pub(super) fn install(release: u32, others: &str) -> String {
    let commands = Need::Clang.install(Some(release));
    let commands = commands.strip_prefix("install clang").unwrap_or(&commands);
    format!("install clang {release} or {others}{commands}")
}

/// Returns the row for the headers of a release.
fn fit(language: Language, version: Version) -> Option<&'static Fit> {
    let rows = FITS.iter().filter(|row| row.language == language);
    rows.filter(|row| row.since <= version)
        .max_by_key(|row| row.since)
}

/// Returns the newest tested release of an SDK whose headers a clang can read.
fn newest_for(language: Language, clang: u32) -> Option<Version> {
    let rows = FITS.iter().filter(|row| row.language == language);
    let fitting = rows.filter(|row| row.oldest_clang <= clang);
    let (versions, _) = fitting.max_by_key(|row| row.since)?.tested;
    versions.last().copied()
}

fn name(language: Language) -> &'static str {
    match language {
        Language::Hip => "HIP",
        _ => "CUDA",
    }
}

/// Reads the release of the headers below the root of an SDK.
pub fn version(language: Language, root: &Path) -> Option<Version> {
    let define = |file: &str, name: &str| -> Option<u32> {
        let text = fs::read_to_string(root.join("include").join(file)).ok()?;
        text.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            let is_it = words.next() == Some("#define") && words.next() == Some(name);
            is_it.then(|| words.next()?.parse().ok()).flatten()
        })
    };
    match language {
        Language::Cuda => {
            let number = define("cuda.h", "CUDA_VERSION")?;
            Some((number / 1000, number % 1000 / 10))
        }
        Language::Hip => {
            let header = "hip/hip_version.h";
            let major = define(header, "HIP_VERSION_MAJOR")?;
            Some((major, define(header, "HIP_VERSION_MINOR")?))
        }
        Language::OpenMp | Language::Bitcode | Language::Rust | Language::Prebuilt => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of the table as `docs/compilers.md` has them.
    fn rows() -> Vec<String> {
        let list = |numbers: &[u32]| {
            let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
            numbers.join(", ")
        };
        let row = |fit: &Fit| {
            let name = name(fit.language);
            let same = |next: &&Fit| next.language == fit.language && next.since > fit.since;
            let next = FITS.iter().filter(same).min_by_key(|next| next.since);
            let end = next.map_or(String::new(), |next| {
                format!(", before {}.{}", next.since.0, next.since.1)
            });
            let clangs = match fit.newest_clang {
                Some(newest) => format!("{} to {newest}", fit.oldest_clang),
                None => format!("{} and later", fit.oldest_clang),
            };
            let (versions, tested) = fit.tested;
            let versions = versions
                .iter()
                .map(|(major, minor)| format!("{major}.{minor}"));
            let versions: Vec<String> = versions.collect();
            let (major, minor) = fit.since;
            format!(
                "| {name} from {major}.{minor}{end} | {clangs} | {name} {} with clang {} |",
                versions.join(", "),
                list(tested)
            )
        };
        FITS.iter().map(row).collect()
    }

    #[test]
    fn documents_the_table() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compilers.md");
        let page = fs::read_to_string(page).unwrap();
        let (_, section) = page.split_once("\n## Clang and SDK releases\n").unwrap();
        let documented = section
            .lines()
            .filter(|line| line.starts_with("| CUDA") || line.starts_with("| HIP"));
        let documented: Vec<&str> = documented.collect();
        assert_eq!(documented, rows());
    }

    #[test]
    fn lists_only_tests_that_fit() {
        for row in FITS {
            let (versions, clangs) = row.tested;
            for version in versions {
                let fit = fit(row.language, *version).unwrap();
                assert_eq!(fit.since, row.since);
            }
            let newest = row.newest_clang.unwrap_or(u32::MAX);
            assert!(
                clangs
                    .iter()
                    .all(|clang| (row.oldest_clang..=newest).contains(clang))
            );
        }
    }

    #[test]
    fn reads_the_release_of_headers() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = folder.path().join("include").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let read = |language| version(language, folder.path());
        assert_eq!(read(Language::Cuda), None);
        put(
            "cuda.h",
            "/* CUDA_VERSION 1 */\n#define CUDA_VERSION 12080\n",
        );
        assert_eq!(read(Language::Cuda), Some((12, 8)));
        put("hip/hip_version.h", "#define HIP_VERSION_MAJOR 6\n");
        assert_eq!(read(Language::Hip), None);
        put(
            "hip/hip_version.h",
            "#define HIP_VERSION_MAJOR 6\n#define HIP_VERSION_MINOR 4\n",
        );
        assert_eq!(read(Language::Hip), Some((6, 4)));
        put("cuda.h", "#define CUDA_VERSION x\n");
        assert_eq!(read(Language::Cuda), None);
    }
}
