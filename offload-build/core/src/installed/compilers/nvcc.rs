//! nvcc, and the compiler of C++ for the host that it runs.

use crate::declare::family::Family;
use crate::declare::module::Module;
use crate::declare::module::{names_processor, refused_option};
use crate::environment::Environment;
use crate::error::Error;
use crate::files::real_path;
use crate::installed::answers::Answers;
use crate::installed::compilers::compiler::Compiler;
use crate::installed::host::Host;
use crate::process::command::Command;
use crate::process::search::NotFound;
use crate::process::search::Search;
use crate::process::search::program_in;
use offload_formats_core::names::host::HostFormat;
use std::path::{Path, PathBuf};

/// Returns the nvcc that is called `declared`: in `PATH`, else in the roots of toolkits that variables name.
pub fn program(declared: &str, search: &Search) -> Option<PathBuf> {
    let mut in_roots = bins(declared, search).map(|bin| program_in(&bin, declared));
    let in_path = search.programs(declared).next();
    in_path.or_else(|| in_roots.find(|path| path.is_file()))
}

/// Returns the folders of programs in these roots; none for a path.
fn bins(declared: &str, search: &Search) -> impl Iterator<Item = PathBuf> {
    let is_path = Path::new(declared).components().count() > 1;
    let roots = search.cuda.iter().filter(move |_| !is_path);
    roots.map(|root| root.join("bin"))
}

/// The toolkit's compiler that `module` declares: [`program`].
pub fn find(
    module: &Module,
    declared: &str,
    host: &Host,
    environment: &Environment,
    search: &Search,
    answers: &Answers,
) -> Result<Compiler, Error> {
    let Some(program) = program(declared, search) else {
        let is_path = Path::new(declared).components().count() > 1;
        let first = if is_path { declared } else { "PATH" };
        let bins = bins(declared, search).map(|bin| bin.display().to_string());
        let searched = [first.to_owned()].into_iter().chain(bins).collect();
        let hint = "install NVIDIA's CUDA toolkit and set CUDA_PATH to its root, or leave `compiler` out: \
                    clang compiles CUDA too";
        let missing = NotFound::new(declared, searched, hint);
        return Err(Error::missing(format_args!(
            "module `{}`: {missing}",
            module.name
        )));
    };
    check_added_flags(module, environment)?;
    let (real, root) = place(&program);
    let is_elf = matches!(host.objects(), Ok(HostFormat::Elf(_)));
    let is_other = host.is_cross && module.has_host_code && is_elf;
    let other = is_other.then_some(host);
    let of_host = match cfg!(windows) {
        true => HostCompiler::default(),
        false => host_compiler(module, other, environment, search)?,
    };
    let question = Command::new(&program).arg("--version");
    let answer = answers.to(&question).map_err(Error::new)?;
    let release = answer.lines().find(|line| line.contains("release"));
    // Those of one toolkit read what the others write.
    let mut search = search.clone();
    search.cuda.insert(0, root.clone());
    let version = release.or(answer.lines().next()).unwrap_or_default();
    let version = version.trim().to_owned();
    let parts = parts(&root).filter(|part| *part != real);
    Ok(Compiler {
        behind: of_host.program.clone().into_iter().chain(parts).collect(),
        host_compiler: of_host.program.filter(|_| other.is_some()),
        ccbin: of_host.ccbin,
        sdk: Some(root),
        ..Compiler::alone(program, Family::Nvcc, search, version)
    })
}

/// Returns the file of an nvcc, and the root of its toolkit.
fn place(program: &Path) -> (PathBuf, PathBuf) {
    let real = real_path(program).unwrap_or_else(|| program.to_owned());
    let root = real.ancestors().nth(2).unwrap_or(Path::new("/")).to_owned();
    (real, root)
}

/// Returns the `ptxas` that an nvcc starts. `None` if it is a script of another folder, or a link to a program of another name, as
/// ccache has them.
#[must_use]
pub fn ptxas(program: &Path) -> Option<PathBuf> {
    let (real, root) = place(program);
    let is = |path: &Path, name| path.file_stem().is_some_and(|stem| stem == name);
    let mut parts = parts(&root).filter(|_| is(&real, "nvcc"));
    parts.find(|part| is(part, "ptxas"))
}

/// Programs that nvcc starts; Debian's nvcc is a script that starts another one.
const PROGRAMS: [&str; 6] = ["nvcc", "cicc", "cudafe++", "fatbinary", "nvlink", "ptxas"];

/// Returns the installed programs that the nvcc of a toolkit starts, and its file of settings. Debian has folders of its own.
fn parts(root: &Path) -> impl Iterator<Item = PathBuf> {
    let folders = ["bin", "nvvm/bin", "lib/nvidia-cuda-toolkit/bin"].map(|name| root.join(name));
    let files = folders.into_iter().flat_map(|folder| {
        let programs = PROGRAMS.map(|name| program_in(&folder, name));
        let settings = folder.join("nvcc.profile");
        programs.into_iter().chain([settings])
    });
    files.filter(|file| file.is_file())
}

/// Variables with flags that nvcc adds to each command.
const ADDED_FLAGS: [&str; 2] = ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"];

/// Checks that these variables change nothing that must be known here, as `flags` may not.
fn check_added_flags(module: &Module, environment: &Environment) -> Result<(), Error> {
    for variable in ADDED_FLAGS {
        let flags = environment.variable(variable).unwrap_or_default();
        let flags: Vec<String> = flags.split_whitespace().map(str::to_owned).collect();
        if let Some((name, why)) = refused_option(&flags, module.language) {
            // The hint for `flags` is for the author of the manifest.
            let why = why.lines().next().unwrap_or_default();
            let hint = match names_processor(name) {
                true => {
                    "\nhint: if the variable is for other crates, unset it for this build; CUDAARCHS or OFFLOAD_TARGETS choose its processors"
                }
                false => "",
            };
            return Err(Error::new(format_args!(
                "{variable}: `{name}` {why} [OFF500]{hint}"
            )));
        }
        let mut flags = flags.iter();
        if let Some(name) = flags.find(|flag| ["-G", "--device-debug"].contains(&flag.as_str())) {
            return Err(Error::new(format_args!(
                "{variable}: `{name}` reaches only some commands: OFFLOAD_FLAGS and `flags` do that [OFF500]"
            )));
        }
    }
    Ok(())
}

/// The compiler of C++ that nvcc runs for the host.
#[derive(Default)]
struct HostCompiler {
    /// Nothing if only nvcc knows it.
    program: Option<PathBuf>,
    /// The value of `-ccbin`, in the words of whoever named it: nvcc warns if `flags` repeat the option with other words.
    ccbin: Option<String>,
}

/// Finds the compiler that nvcc runs for the host's side. `other` is the host of a cross build, which nvcc does not know.
fn host_compiler(
    module: &Module,
    other: Option<&Host>,
    environment: &Environment,
    search: &Search,
) -> Result<HostCompiler, Error> {
    let added = |variable| {
        let flags = environment.variable(variable)?;
        let flags: Vec<String> = flags.split_whitespace().map(str::to_owned).collect();
        named(&flags).map(str::to_owned)
    };
    let [prepended, appended] = ADDED_FLAGS.map(added);
    let is_added = prepended.is_some() || appended.is_some();
    // The last one counts. Variables of nvcc may be for this machine.
    let named = appended
        .or_else(|| named(&module.own.flags).map(str::to_owned))
        .or_else(|| other?.declared_compiler(environment, "CXX"))
        .or(prepended);
    // nvcc 11.8 and 12.4 do not read it.
    let variable = || environment.variable("NVCC_CCBIN");
    let of_variable = named.is_none().then(variable).flatten();
    let is_passed = other.is_some() || of_variable.is_some();
    let name = named
        .or(of_variable)
        .or_else(|| other.map(|host| host.usual_compiler("g++")))
        .unwrap_or_else(|| "gcc".to_owned());
    let ccbin = is_passed.then(|| name.clone());
    let path = Path::new(&name);
    let program = match path.is_dir() {
        true => path.join("gcc").display().to_string(),
        false => name.clone(),
    };
    if let Some(program) = search.programs(&program).next() {
        return Ok(HostCompiler {
            program: Some(program),
            ccbin,
        });
    }
    if other.is_none() && (is_added || path.is_dir()) {
        return Ok(HostCompiler {
            program: None,
            ccbin,
        });
    }
    let package = match other {
        None => Some("g++"),
        Some(host) => host.headers_package("C++").filter(|_| host.has_glibc()),
    };
    let package = package.map_or(String::new(), |name| {
        format!(" (Debian: `apt install {name}`)")
    });
    let (variable, example) = match other {
        None => ("NVCC_CCBIN".to_owned(), "g++-14".to_owned()),
        Some(host) => (
            format!("CXX_{}", host.triple.replace('-', "_")),
            format!("{}-14", host.usual_compiler("g++")),
        ),
    };
    let hint = format!(
        "nvcc needs a C++ compiler of the host: install one that nvcc supports{package}, or name it in {variable} or with \
         `flags = [\"-ccbin={example}\"]`"
    );
    let missing = NotFound::new(&program, vec!["PATH".to_owned()], hint);
    Err(Error::missing(format_args!(
        "module `{}`: {missing}",
        module.name
    )))
}

/// Options that name the host's compiler.
const HOST_COMPILER: [&str; 2] = ["--compiler-bindir", "-ccbin"];

/// Returns the last host compiler that `flags` name.
fn named(flags: &[String]) -> Option<&str> {
    let mut flags = flags.iter();
    let mut found = None;
    while let Some(flag) = flags.next() {
        let rest = HOST_COMPILER
            .iter()
            .find_map(|name| flag.strip_prefix(name));
        found = match rest {
            Some("") => flags.next().map(String::as_str),
            Some(rest) => rest.strip_prefix('=').or(found),
            None => found,
        };
    }
    found
}

/// Returns the library of CUDA's device runtime in the tree `root` of a toolkit.
pub fn device_runtime(root: &Path) -> Option<PathBuf> {
    let folders = ["lib64", "lib", "lib/x64", "lib/x86_64-linux-gnu"];
    let names = ["libcudadevrt.a", "cudadevrt.lib"];
    let folders = folders.into_iter().map(|name| root.join(name));
    let mut files = folders.flat_map(|folder| names.map(|name| folder.join(name)));
    files.find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_which_compiler_of_the_host_flags_name() {
        let named = |flags: &[&str]| {
            let flags: Vec<String> = flags.iter().map(ToString::to_string).collect();
            named(&flags).map(str::to_owned)
        };
        assert_eq!(named(&["-O2", "-ccbinary"]), None);
        assert_eq!(
            named(&["-ccbin", "g++-12", "-O2"]),
            Some("g++-12".to_owned())
        );
        let two = ["--compiler-bindir=/opt/gcc/bin", "-ccbin=clang++"];
        assert_eq!(named(&two), Some("clang++".to_owned()));
    }

    #[cfg(unix)]
    #[test]
    fn finds_the_ptxas_of_a_linked_nvcc_and_none_for_other_programs() {
        use std::{fs, os::unix::fs::symlink};
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let bin = root.join("usr/bin");
        fs::create_dir_all(&bin).unwrap();
        for name in ["nvcc", "ptxas", "ccache"] {
            fs::write(bin.join(name), "").unwrap();
        }
        for (behind, expected) in [("nvcc", Some(bin.join("ptxas"))), ("ccache", None)] {
            let links = root.join(behind);
            fs::create_dir(&links).unwrap();
            symlink(bin.join(behind), links.join("nvcc")).unwrap();
            assert_eq!(ptxas(&links.join("nvcc")), expected, "{behind}");
        }
    }
}
