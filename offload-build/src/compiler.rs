//! The clang that compiles a module, and the OpenMP runtime of its release.

use crate::error::{self, Error};
use crate::module::Module;
use crate::toolchain::{Command, Llvm, Search, task};
use std::fs;
use std::path::{Path, PathBuf};

const HINT: &str = "hint: install clang with OpenMP's offload runtime of the same release \
    (Debian: `apt install clang-19 lld-19 llvm-19 libomp-19-dev`), set `compiler` in \
    [package.metadata.offload] or OFFLOAD_COMPILER, or build without device code: OFFLOAD_MISSING=stub";

/// A compiler with its runtime: objects of one release crash another's.
#[derive(Debug)]
pub(crate) struct Compiler {
    pub(crate) llvm: Llvm,
    /// The folder of `libomptarget.so`.
    pub(crate) runtime: PathBuf,
    /// The first line of `--version`.
    pub(crate) version: String,
}

impl Compiler {
    /// The compiler that `module` declares, else the newest that has a runtime of its own release.
    pub(crate) fn find(module: &Module, search: &Search, out: &Path) -> Result<Self, Error> {
        let (llvm, runtime) = match &module.compiler {
            Some(declared) => Self::declared(declared, search)?,
            None => Self::newest(module, &search.clangs())?,
        };
        let version = version(&llvm, out)?;
        Ok(Self {
            llvm,
            runtime,
            version,
        })
    }

    fn declared(declared: &str, search: &Search) -> Result<(Llvm, PathBuf), Error> {
        let found: Vec<Llvm> = search.programs(declared).map(Llvm::of).collect();
        let Some(first) = found.first() else {
            let problem = format!("`compiler`: `{declared}` is not an executable file\n{HINT}");
            return Err(Error::missing(problem));
        };
        let Some(both) = found.iter().find_map(with_runtime) else {
            let folder = first.prefix.display();
            let problem =
                format!("`compiler`: `{declared}` has no libomptarget.so in {folder}/lib\n{HINT}");
            return Err(Error::missing(problem));
        };
        Ok(both)
    }

    fn newest(module: &Module, found: &[Llvm]) -> Result<(Llvm, PathBuf), Error> {
        if let Some(both) = found.iter().find_map(with_runtime) {
            return Ok(both);
        }
        let without = |llvm: &Llvm| {
            let (clang, folder) = (llvm.clang.display(), llvm.prefix.display());
            format!("{clang} (no libomptarget.so in {folder}/lib)")
        };
        let saw = match found {
            [] => "none is in PATH".to_owned(),
            _ => format!(
                "found {}",
                found.iter().map(without).collect::<Vec<_>>().join(", ")
            ),
        };
        let searched = "searched PATH for clang-24 to clang-16 and clang";
        let name = &module.name;
        let problem =
            format!("module `{name}`: no compiler for `openmp`: {searched}, {saw}\n{HINT}");
        Err(Error::missing(problem))
    }

    /// Makes a folder with links to the runtime's libraries, and to them alone.
    ///
    /// It is searched in the place of the runtime's own folder, which holds a `libgomp.so` that is not GCC's;
    /// and because it lies in the target folder, `cargo run` and `cargo test` put it into the loader's path,
    /// for programs that only depend on this package as well.
    pub(crate) fn link_runtime(&self, links: &Path) -> Result<(), Error> {
        fs::create_dir_all(links).map_err(error::io(links))?;
        for file in fs::read_dir(&self.runtime).map_err(error::io(&self.runtime))? {
            let file = file.map_err(error::io(&self.runtime))?;
            let name = file.file_name().to_string_lossy().into_owned();
            let link = links.join(&name);
            let ours = ["libomp.so", "libomptarget.so"]
                .iter()
                .any(|library| name.starts_with(library));
            if ours && fs::read_link(&link).ok() != Some(file.path()) {
                let _ = fs::remove_file(&link);
                symlink(&file.path(), &link).map_err(error::io(&link))?;
            }
        }
        Ok(())
    }
}

fn with_runtime(llvm: &Llvm) -> Option<(Llvm, PathBuf)> {
    Some((llvm.clone(), llvm.offload_runtime()?))
}

#[cfg(unix)]
fn symlink(original: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(original, link)
}

#[cfg(not(unix))]
fn symlink(original: &Path, link: &Path) -> std::io::Result<()> {
    fs::copy(original, link).map(|_| ())
}

/// The first line of the compiler's `--version`, asked once for each compiler.
fn version(llvm: &Llvm, out: &Path) -> Result<String, Error> {
    let identity = task::identity(&llvm.clang);
    let path = out.join("offload/compiler.txt");
    let known = fs::read_to_string(&path).unwrap_or_default();
    if let Some((_, version)) = known.split_once('\n').filter(|(of, _)| *of == identity) {
        return Ok(version.trim_end().to_owned());
    }
    let output = Command::new(&llvm.clang)
        .arg("--version")
        .run()
        .map_err(Error::new)?;
    let version = output
        .stdout
        .lines()
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned();
    task::write(&path, format!("{identity}\n{version}\n").as_bytes()).map_err(error::io(&path))?;
    Ok(version)
}
