//! Executes the actions of a link or only shows them: the only file that knows `--dry-run` and `--wrapper-verbose`.

use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use offload_build::tools::{Command, CommandError};
use offload_formats::format::pieces::Piece;

use crate::files::write_pieces;
use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::line::options::LinkerOptions;
use crate::linker_wrapper::report::shown::Shown;
use crate::linker_wrapper::temporaries::Temporaries;
use crate::linker_wrapper::workplace::Workplace;

/// Runs commands and writes files: silently, shown, or only shown, as the options require.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Actions {
    mode: Mode,
    shown: Shown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Silent,
    Verbose,
    Dry,
}

impl Actions {
    /// Returns the actions for a tool with its options.
    pub(crate) fn new(options: &LinkerOptions, tool: &OsStr) -> Self {
        Self {
            mode: match (options.dry_run, options.verbose) {
                (true, _) => Mode::Dry,
                (false, true) => Mode::Verbose,
                (false, false) => Mode::Silent,
            },
            shown: Shown::of(tool),
        }
    }

    /// Tells whether this is a dry run.
    pub(crate) fn are_dry(self) -> bool {
        self.mode == Mode::Dry
    }

    /// Tells whether commands are shown in LLVM's form, which LLVM's tests compare.
    pub(crate) fn show_as_llvm(self) -> bool {
        self.are_dry() && self.shown == Shown::Llvm
    }

    /// Writes a response file. In a dry run there is none: the command that is shown has its arguments.
    pub(crate) fn response_file(
        self,
        files: &Temporaries,
        content: &[u8],
    ) -> Result<Option<PathBuf>, LinkError> {
        match self.are_dry() {
            true => Ok(None),
            false => files.response_file(content).map(Some),
        }
    }

    /// Shows a command if an option requests that.
    pub(crate) fn show(self, command: &Command) {
        if self.mode != Mode::Silent {
            self.shown.print(command);
        }
    }

    /// Prints, in a dry run, work that this process would do itself. LLVM's tool prints nothing for it.
    pub(crate) fn note(self, what: impl Display) {
        if self.are_dry() && self.shown == Shown::Plain {
            eprintln!("# {what}");
        }
    }

    /// Shows a command and runs it.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be started or fails.
    pub(crate) fn run(self, command: &Command, workplace: &Workplace) -> Result<(), CommandError> {
        self.show(command);
        match self.mode {
            Mode::Dry => Ok(()),
            _ => command.run_with(&workplace.variables()).map(drop),
        }
    }

    /// Writes an intermediate file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub(crate) fn write(self, path: &Path, bytes: &[u8]) -> Result<(), LinkError> {
        self.write_by(path, || fs::write(path, bytes))
    }

    /// Writes an intermediate file of pieces, which copy ranges of the files `inputs`.
    ///
    /// # Errors
    ///
    /// Fails if an input cannot be read, or the file cannot be written.
    pub(crate) fn write_pieces(
        self,
        path: &Path,
        pieces: &[Piece],
        inputs: &[PathBuf],
    ) -> Result<(), LinkError> {
        self.write_by(path, || write_pieces(&File::create(path)?, pieces, inputs))
    }

    fn write_by(
        self,
        path: &Path,
        write: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), LinkError> {
        if self.are_dry() {
            return Ok(());
        }
        write().map_err(|source| LinkError::unwritten(path, source))
    }
}
