//! The rustc that compiles crates of kernels, and Cargo around it.
//!
//! A stable rustc will do: `RUSTC_BOOTSTRAP=1` is set for the processes that compile kernels. It needs the sources of
//! its library, because no rustc comes with `core` for AMD GPUs.

use crate::declare::module::{KernelCrate, Module};
use crate::environment::Environment;
use crate::error::Error;
use crate::files;
use crate::installed::answers::Answers;
use crate::installed::outer_cargo::OuterCargo;
use crate::process::command::Command;
use crate::process::install::Need;
use crate::process::search::{Search, program_in};
use offload_formats_core::names::Triple;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The first release whose calls in device code are `convergent`: before it, barriers can be miscompiled
/// (rust-lang/rust#153995).
const OLDEST: (u32, u32) = (1, 96);

/// The first release that does not duplicate calls by jump threading in device code (rust-lang/rust#149637).
const WITHOUT_JUMP_THREADING: (u32, u32) = (1, 97);

/// Debian's, of its packages `rustc` and `rustc-web`.
const DEBIAN: &str = "/usr/bin/rustc";

/// Minor releases whose versioned program names (`rustc-1.97`) are looked for: Ubuntu's packages of these names.
const NAMED: std::ops::RangeInclusive<u32> = OLDEST.1..=112;

/// A rustc that compiles kernels, and the Cargo that starts it.
#[derive(Clone, Debug)]
pub struct Rustc {
    /// The compiler, of its sysroot: not rustup's front.
    pub program: PathBuf,
    /// Its release: `1.96.0`.
    pub version: String,
    /// The release of its LLVM, such as 22.
    pub llvm: u32,
    /// True if it threads jumps unless told otherwise.
    pub threads_jumps: bool,
    /// Sources of its library.
    pub library: PathBuf,
    /// Folders of LLVM programs in Rust toolchains, as rustup installs them: its own first, then those of other rustcs that were
    /// asked.
    pub tools: Vec<PathBuf>,
    /// The part of a key that tells it from others.
    pub identity: String,
    /// The Cargo that runs this build script.
    pub cargo: PathBuf,
    /// Options and settings of that Cargo which also hold for a Cargo that it starts.
    pub outer: OuterCargo,
    /// Variables that Cargo and its users set for this package, and that are not for a crate of kernels.
    pub removed: Vec<OsString>,
}

/// A file that may be a rustc that will do.
struct RustcCandidate {
    /// Path, or name in `PATH`.
    written: String,
    /// Who named it.
    origin: String,
}

impl Rustc {
    /// Finds the declared rustc, else the first that compiles for all targets of `module`: that of this build, those of `PATH`,
    /// also under names with a release, Debian's.
    ///
    /// # Errors
    ///
    /// If none will do; the error says why for each.
    pub fn find(
        module: &Module,
        kernels: &KernelCrate,
        environment: &Environment,
        search: &Search,
        answers: &Answers,
    ) -> Result<Self, Error> {
        let triples: Vec<&Triple> = module.targets.iter().map(|target| &target.triple).collect();
        let candidates = candidates(kernels.rustc.as_ref(), environment);
        let (mut problems, mut asked) = (Vec::new(), BTreeSet::new());
        let mut tools = Vec::new();
        for RustcCandidate { written, origin } in &candidates {
            let programs: Vec<PathBuf> = search.programs(written).collect();
            if programs.is_empty() && origin != "PATH" && written != DEBIAN {
                problems.push(format!("`{written}` ({origin}) is not an executable file"));
            }
            for program in programs {
                if !asked.insert(program.clone()) {
                    continue;
                }
                let found = of(&program, answers);
                match found {
                    // A front and its compiler.
                    Ok(found)
                        if found.program != program && !asked.insert(found.program.clone()) => {}
                    Ok(found) => match found.problem(&triples) {
                        None => return found.with_cargo(tools, environment),
                        Some(problem) => {
                            tools.extend(found.tools);
                            let name = found.program.display();
                            problems.push(format!("`{name}` ({origin}) {problem}"));
                        }
                    },
                    Err(problem) => {
                        problems.push(format!("`{}` ({origin}) {problem}", program.display()));
                    }
                }
            }
        }
        let listed = match problems.as_slice() {
            [] => "none found (searched: RUSTC, PATH, /usr/bin)".to_owned(),
            problems => problems.join("; "),
        };
        Err(Error::missing(format_args!(
            "module `{}`: no rustc for its kernels: {listed} [OFF608]\n\
             hint: {}; or name another rustc with `compiler` or OFFLOAD_RUSTC{}",
            module.name,
            Need::Rustc.install(None),
            module.stub_hint()
        )))
    }
}

/// A rustc of this machine, for people.
#[cfg(feature = "tools")]
#[derive(Debug)]
pub struct KnownRustc {
    pub program: PathBuf,
    pub version: String,
    pub llvm: u32,
    /// The folder of LLVM programs that rustup installs with it.
    pub tools: Option<PathBuf>,
    /// The reason why it compiles no kernels for some GPUs.
    pub problem: Option<String>,
}

/// Returns the rustcs among which [`Rustc::find`] chooses if none is declared.
#[cfg(feature = "tools")]
pub fn known(environment: &Environment, search: &Search, answers: &Answers) -> Vec<KnownRustc> {
    let triples = ["amdgcn-amd-amdhsa", "nvptx64-nvidia-cuda"];
    let triples = triples.map(|triple| Triple::parse(triple).expect("it is a triple"));
    let triples: Vec<&Triple> = triples.iter().collect();
    let candidates = candidates(None, environment).into_iter();
    let programs =
        candidates.flat_map(|candidate| search.programs(&candidate.written).collect::<Vec<_>>());
    let mut known: Vec<KnownRustc> = Vec::new();
    for found in programs.filter_map(|program| of(&program, answers).ok()) {
        if known.iter().all(|other| other.program != found.program) {
            known.push(KnownRustc {
                problem: found.problem(&triples),
                program: found.program,
                version: found.version,
                llvm: found.llvm,
                tools: found.tools,
            });
        }
    }
    known
}

/// Returns the places of a rustc. A declared one is the only one.
fn candidates(
    declared: Option<&(String, String)>,
    environment: &Environment,
) -> Vec<RustcCandidate> {
    let candidate = |written: &str, origin: &str| RustcCandidate {
        written: written.to_owned(),
        origin: origin.to_owned(),
    };
    let variable = environment.variable("OFFLOAD_RUSTC");
    if let Some((path, origin)) = declared {
        return vec![candidate(path, &format!("{origin}: `compiler`"))];
    }
    if let Some(path) = variable {
        return vec![candidate(&path, "OFFLOAD_RUSTC")];
    }
    let own = environment.cargo("RUSTC");
    let mut found: Vec<RustcCandidate> = own.iter().map(|path| candidate(path, "RUSTC")).collect();
    found.push(candidate("rustc", "PATH"));
    let named = NAMED.rev().map(|minor| format!("rustc-1.{minor}"));
    found.extend(named.map(|name| candidate(&name, "PATH")));
    found.push(candidate(DEBIAN, "Debian's"));
    found
}

/// Answers of a rustc about itself.
struct Answered {
    program: PathBuf,
    release: (u32, u32),
    version: String,
    llvm: u32,
    library: PathBuf,
    tools: Option<PathBuf>,
    targets: BTreeSet<String>,
    identity: String,
}

/// Asks a program what it is.
fn of(program: &Path, answers: &Answers) -> Result<Answered, String> {
    // rustup's front is another rustc tomorrow.
    let is_front = files::real_path(program)
        .is_some_and(|real| real.file_stem().is_some_and(|stem| stem == "rustup"));
    let ask = |program: &Path, args: &[&str], is_front: bool| {
        let question = Command::new(program).args(args.iter().copied());
        let answer = match is_front {
            true => question.run().map(|output| output.stdout),
            false => answers.to(&question),
        };
        answer.map_err(|error| {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            format!("does not print its version: {line}")
        })
    };
    let question = ["--print", "sysroot", "--print", "target-list"];
    let sysroot = ask(program, &question, is_front)?;
    let mut lines = sysroot.lines().map(str::trim);
    let root = lines.next().filter(|root| !root.is_empty());
    let root = PathBuf::from(root.ok_or("does not print its sysroot")?);
    let targets = lines.map(str::to_owned).collect();
    let own = program_in(&root.join("bin"), "rustc");
    let program = match own.is_file() {
        true => own,
        false => program.to_owned(),
    };
    let text = ask(&program, &["-vV"], false)?;
    let value = |name: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
    };
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<u32>().ok());
    let version = value("release:").unwrap_or_default();
    let mut numbers = version.split(['.', '-']);
    let release = (number(numbers.next()), number(numbers.next()));
    let llvm = value("LLVM version:").unwrap_or_default();
    let (Some(major), Some(minor), Some(llvm)) =
        (release.0, release.1, number(llvm.split('.').next()))
    else {
        let line = text.lines().next().unwrap_or_default();
        return Err(format!("is not a rustc: its version is `{line}`"));
    };
    Ok(Answered {
        release: (major, minor),
        llvm,
        library: root.join("lib/rustlib/src/rust/library"),
        tools: value("host:").map(|host| root.join("lib/rustlib").join(host).join("bin")),
        targets,
        identity: format!("{}\n{text}", files::identity(&program)),
        version,
        program,
    })
}

impl Answered {
    /// Returns the reason why it does not compile kernels for these targets.
    fn problem(&self, triples: &[&Triple]) -> Option<String> {
        if self.release < OLDEST {
            return Some(format!(
                "is Rust {}: kernels need 1.96 or newer, because older releases can miscompile barriers",
                self.version
            ));
        }
        let unknown = |triple: &&&Triple| !self.targets.contains(triple.as_str());
        if let Some(triple) = triples.iter().find(unknown) {
            return Some(format!("does not know the target `{triple}`"));
        }
        let core = self.library.join("core");
        (!core.join("src/lib.rs").is_file()).then(|| {
            format!(
                "has no library sources: `{}` is missing{}",
                core.display(),
                match core.to_string_lossy().contains("toolchains") {
                    true => " (`rustup component add rust-src` adds them)",
                    false => " (Debian, Ubuntu: `apt install rust-src`, `rust-web-src` or `rust-1.97-src`, as the rustc)",
                }
            )
        })
    }

    fn with_cargo(self, others: Vec<PathBuf>, environment: &Environment) -> Result<Rustc, Error> {
        let folder = PathBuf::from(environment.required("CARGO_MANIFEST_DIR")?);
        Ok(Rustc {
            threads_jumps: self.release < WITHOUT_JUMP_THREADING,
            program: self.program,
            version: self.version,
            llvm: self.llvm,
            library: self.library,
            tools: self.tools.into_iter().chain(others).collect(),
            identity: self.identity,
            cargo: environment.required("CARGO")?.into(),
            outer: OuterCargo::of(&folder, environment),
            removed: environment.of_this_package(),
        })
    }
}
