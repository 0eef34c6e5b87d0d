//! Programs looked for in folders: what was searched is kept, so that a report can say it.

use crate::process::install::Need;
use std::borrow::Cow;
use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// Folders in which programs are looked for, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// The value of `PATH`.
    pub path: OsString,
    /// Roots of CUDA trees, whose `bin` folders are searched before `PATH` for NVIDIA's tools.
    pub cuda: Vec<PathBuf>,
}

impl Search {
    /// The first of `names` that is an executable file in a folder of `PATH`.
    #[must_use]
    pub fn program(&self, names: &[&str]) -> Option<PathBuf> {
        names.iter().find_map(|name| self.programs(name).next())
    }

    /// Returns every executable file `name` in the folders of `PATH`, in order.
    pub fn programs(&self, name: &str) -> impl Iterator<Item = PathBuf> {
        // A relative folder in PATH would depend on where the build is started: not searched.
        let here = Path::new("/");
        which::which_in_all(name, Some(&self.path), here)
            .into_iter()
            .flatten()
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
        found.or_else(|| self.program(&[name])).ok_or_else(|| {
            let mut searched: Vec<String> = self
                .cuda
                .iter()
                .map(|root| format!("{}/bin", root.display()))
                .collect();
            searched.push("PATH".to_owned());
            let install = Need::CudaTools.install(None);
            NotFound::new(
                name,
                searched,
                format!("{install}, and set CUDA_PATH to its root"),
            )
        })
    }
}

/// A program in a folder, as this system calls the file.
pub(crate) fn program_in(folder: &Path, name: &str) -> PathBuf {
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
    pub(crate) fn with_supported(mut self, processors: Vec<String>) -> Self {
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
