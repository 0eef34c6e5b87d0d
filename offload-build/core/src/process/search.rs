//! Programs looked for in folders: what was searched is kept, so that a report can say it.

use crate::process::install::Need;
use std::borrow::Cow;
use std::env::{self, consts::EXE_SUFFIX};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// Extensions of programs on Windows.
const PROGRAM_EXTENSIONS: [&str; 4] = ["exe", "com", "bat", "cmd"];

/// Folders in which programs are looked for, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// The value of `PATH`.
    pub path: OsString,
    /// Roots of CUDA trees, whose `bin` folders are searched before `PATH` for NVIDIA's tools.
    pub cuda: Vec<PathBuf>,
}

impl Search {
    /// Returns the first executable file `name` in a folder of `PATH`.
    #[must_use]
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        self.programs(name).next()
    }

    /// Returns every executable file `name` in the folders of `PATH`, in order.
    pub fn programs(&self, name: &str) -> impl Iterator<Item = PathBuf> {
        // A relative folder in PATH would depend on where the build is started: not searched.
        let folders: Vec<PathBuf> = match Path::new(name).components().count() {
            0 | 1 => env::split_paths(&self.path)
                .filter(|folder| folder.is_absolute())
                .collect(),
            _ => vec![PathBuf::from("/")],
        };
        files_of(&folders, name)
            .into_iter()
            .filter(|path| is_executable(path))
    }

    /// A program of the CUDA toolkit.
    ///
    /// # Errors
    ///
    /// When none of the trees, nor `PATH`, has it.
    pub fn cuda_program(&self, name: &'static str) -> Result<PathBuf, NotFound> {
        let bins = self.cuda.iter().map(|root| root.join("bin"));
        let found = bins
            .map(|bin| program_in(&bin, name))
            .find(|path| path.is_file());
        found.or_else(|| self.program(name)).ok_or_else(|| {
            let bins = self.cuda.iter();
            let bins = bins.map(|root| format!("{}/bin", root.display()));
            let mut searched: Vec<String> = Vec::new();
            for place in bins.chain(["PATH".to_owned()]) {
                // Several variables may name one tree.
                if !searched.contains(&place) {
                    searched.push(place);
                }
            }
            let install = Need::CudaTools.install(None);
            NotFound::new(
                name,
                searched,
                format!("{install}, and set CUDA_PATH to its root"),
            )
        })
    }
}

/// Returns the files that may be a program, in the order in which this system tries them.
fn files_of(folders: &[PathBuf], name: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in folders {
        let file = folder.join(name);
        if cfg!(not(windows)) || file.extension().is_some_and(is_program_extension) {
            files.push(file);
            continue;
        }
        for extension in PROGRAM_EXTENSIONS {
            let mut file = file.clone().into_os_string();
            file.push(".");
            file.push(extension);
            files.push(file.into());
        }
    }
    files
}

fn is_program_extension(extension: &OsStr) -> bool {
    PROGRAM_EXTENSIONS
        .iter()
        .any(|known| extension.eq_ignore_ascii_case(known))
}

/// Returns true if `path` is a file that its permissions let somebody execute.
fn is_executable(path: &Path) -> bool {
    let Ok(metadata) = path.metadata() else {
        return false;
    };
    #[cfg(unix)]
    let may_run = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may_run = true;
    metadata.is_file() && may_run
}

/// A program in a folder, as this system calls the file.
pub fn program_in(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}{EXE_SUFFIX}"))
}

/// A program or file that a target needs and that no searched place has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFound {
    program: String,
    searched: Vec<String>,
    /// Processors that are supported: not the file is missing, but support for another one.
    supported: Vec<String>,
    hint: Cow<'static, str>,
}

impl NotFound {
    /// `program` was looked for in `searched`; `hint` says how to get it.
    #[must_use]
    pub fn new(program: &str, searched: Vec<String>, hint: impl Into<Cow<'static, str>>) -> Self {
        Self {
            program: program.to_owned(),
            searched,
            supported: Vec::new(),
            hint: hint.into(),
        }
    }

    /// Adds the processors for which this release has such a file.
    #[must_use]
    pub fn with_supported(mut self, processors: Vec<String>) -> Self {
        self.supported = processors;
        self
    }

    /// Tells whether no installation would help: the release does not know the processor.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        !self.supported.is_empty()
    }
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (program, searched) = (&self.program, self.searched.join(", "));
        match self.supported.as_slice() {
            [] => write!(
                f,
                "`{program}` not found (searched: {searched}) [OFF605]\nhint: {}",
                self.hint
            ),
            known => write!(
                f,
                "`{program}` not found (searched: {searched}) [OFF606]\n\
                 hint: this LLVM has OpenMP's device runtime for {}; name one of these, or use another release",
                known.join(", ")
            ),
        }
    }
}

impl std::error::Error for NotFound {}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn finds_executable_files_of_absolute_folders_in_order() {
        let root = tempfile::TempDir::new().unwrap();
        let put = |name: &str, mode: u32| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let (later, first) = (put("later/tool", 0o755), put("first/tool", 0o700));
        put("text/tool", 0o644);
        fs::create_dir_all(root.path().join("folder/tool")).unwrap();
        let folders = ["text", "folder", "missing", "first", "later"];
        let absolute = folders.map(|name| root.path().join(name));
        let path = env::join_paths(&absolute).unwrap();
        let search = Search { path, cuda: vec![] };
        let found = |name: &str| search.programs(name).collect::<Vec<_>>();
        let theirs = which::which_in_all("tool", Some(&search.path), root.path()).unwrap();
        assert_eq!(found("tool"), theirs.collect::<Vec<_>>());
        assert_eq!(found("tool"), [first, later.clone()]);
        assert_eq!(found("tool.exe"), [""; 0].map(PathBuf::from));
        assert_eq!(found(""), [""; 0].map(PathBuf::from));
        assert_eq!(found(later.to_str().unwrap()), [later]);
        let up = env::current_dir().unwrap().components().count() - 1;
        let relative = "../".repeat(up)
            + root
                .path()
                .join("first")
                .to_str()
                .unwrap()
                .trim_start_matches('/');
        assert!(Path::new(&relative).join("tool").is_file());
        let path = OsString::from(relative);
        let mut search = Search { path, cuda: vec![] };
        assert_eq!(search.program("tool"), None);
        // Variables may name one tree.
        search.cuda = ["/none/a", "/none/b", "/none/a"].map(PathBuf::from).into();
        let missing = search.cuda_program("ptxas").unwrap_err().to_string();
        assert!(
            missing.contains("(searched: /none/a/bin, /none/b/bin, PATH)"),
            "{missing}"
        );
    }
}
