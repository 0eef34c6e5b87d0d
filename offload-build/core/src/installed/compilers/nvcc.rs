//! nvcc, and the compiler of C++ for the host that it runs.

use crate::declare::family::Family;
use crate::declare::module::Module;
use crate::declare::module::refused_option;
use crate::environment::Environment;
use crate::error::Error;
use crate::files::real_path;
use crate::installed::answers::Answers;
use crate::installed::compilers::compiler::Compiler;
use crate::process::command::Command;
use crate::process::search::NotFound;
use crate::process::search::Search;
use crate::process::search::program_in;
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
    let host = host_compiler(module, environment, search)?;
    let real = real_path(&program).unwrap_or_else(|| program.clone());
    let root = real.ancestors().nth(2).unwrap_or(Path::new("/")).to_owned();
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
        behind: host.into_iter().chain(parts).collect(),
        sdk: Some(root),
        ..Compiler::alone(program, Family::Nvcc, search, version)
    })
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
            return Err(Error::new(format_args!(
                "{variable}: `{name}` {why} [OFF500]"
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

/// Returns the compiler that nvcc runs for the host's side; nothing if only nvcc knows it.
fn host_compiler(
    module: &Module,
    environment: &Environment,
    search: &Search,
) -> Result<Option<PathBuf>, Error> {
    let added = ADDED_FLAGS.map(|name| environment.variable(name).unwrap_or_default());
    let is_added = added.iter().any(|flags| {
        flags
            .split_whitespace()
            .any(|flag| host_option(flag).is_some())
    });
    if is_added || cfg!(windows) {
        return Ok(None);
    }
    let named = named(&module.own.flags).map(str::to_owned);
    let named = named.or_else(|| environment.variable("NVCC_CCBIN"));
    let name = named.unwrap_or_else(|| "gcc".to_owned());
    let path = PathBuf::from(&name);
    if path.is_dir() {
        return Ok(None);
    }
    if let Some(found) = search.programs(&name).next() {
        return Ok(Some(found));
    }
    let hint = "nvcc needs a C++ compiler of the host: install one that nvcc supports (Debian: `apt install g++`), or name \
                it in NVCC_CCBIN or with `flags = [\"-ccbin=g++-14\"]`";
    let missing = NotFound::new(&name, vec!["PATH".to_owned()], hint);
    Err(Error::missing(format_args!(
        "module `{}`: {missing}",
        module.name
    )))
}

/// The last host compiler that `flags` name.
fn named(flags: &[String]) -> Option<&str> {
    let mut flags = flags.iter();
    let mut found = None;
    while let Some(flag) = flags.next() {
        found = match host_option(flag) {
            Some("") => flags.next().map(String::as_str),
            Some(name) => Some(name),
            None => found,
        };
    }
    found
}

/// The value of an option that names the host's compiler, empty where it is the next argument.
fn host_option(flag: &str) -> Option<&str> {
    let names = ["--compiler-bindir", "-ccbin"];
    let rest = names.iter().find_map(|name| flag.strip_prefix(name))?;
    match rest {
        "" => Some(rest),
        _ => rest.strip_prefix('='),
    }
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
}
