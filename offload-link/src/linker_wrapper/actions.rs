//! What a link does, or only shows: the one place that knows `--dry-run` and `--wrapper-verbose`.

use std::ffi::OsStr;
use std::fmt::Display;
use std::fs;
use std::path::Path;

use offload_build::tools::{Command, CommandError};

use crate::linker_wrapper::error::Error;
use crate::linker_wrapper::line::options::Options;
use crate::linker_wrapper::report::shown::Shown;
use crate::linker_wrapper::workplace::Workplace;

/// Runs commands and writes files, as the options say: silently, shown, or shown only.
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
    /// Those of a tool with its options.
    pub(crate) fn new(options: &Options, tool: &OsStr) -> Self {
        Self {
            mode: match (options.dry_run, options.verbose) {
                (true, _) => Mode::Dry,
                (false, true) => Mode::Verbose,
                (false, false) => Mode::Silent,
            },
            shown: Shown::of(tool),
        }
    }

    /// Tells whether nothing is done.
    pub(crate) fn are_dry(self) -> bool {
        self.mode == Mode::Dry
    }

    /// Tells whether what is shown are LLVM's lines, which its tests compare.
    pub(crate) fn show_as_llvm(self) -> bool {
        self.are_dry() && self.shown == Shown::Llvm
    }

    /// Shows a command, if anybody wants to see it.
    pub(crate) fn show(self, command: &Command) {
        if self.mode != Mode::Silent {
            self.shown.print(command);
        }
    }

    /// Says in a dry run what this process would do itself. LLVM's tool does not say it.
    pub(crate) fn note(self, what: impl Display) {
        if self.are_dry() && self.shown == Shown::Plain {
            eprintln!("# {what}");
        }
    }

    /// Shows a command and runs it.
    ///
    /// # Errors
    ///
    /// When it cannot be started or fails.
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
    /// When it cannot be written.
    pub(crate) fn write(self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        if self.are_dry() {
            return Ok(());
        }
        fs::write(path, bytes)
            .map_err(|source| Error::io(format!("cannot write `{}`", path.display()), source))
    }
}
