//! A step whose outputs packages share: one process at a time executes it, and the next ones find them up to date.

use crate::messages::Failure;
use crate::steps::digests::Digests;
use crate::steps::step::{Done, Made, Step};
use offload_build_core::error;
use offload_build_core::process::command::Command;
use offload_build_core::process::lock::ProcessLock;
use std::fmt;
use std::path::{Path, PathBuf};

/// A step that is executed under the lock of its output.
#[derive(Debug)]
pub(crate) struct SharedStep<S> {
    pub(crate) step: S,
    pub(crate) output: PathBuf,
}

impl<S: Step> Step for SharedStep<S> {
    fn title(&self) -> String {
        self.step.title()
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.step.show(f)
    }

    fn folder(&self) -> Option<&Path> {
        self.step.folder()
    }

    fn commands(&self) -> &[Command] {
        self.step.commands()
    }

    fn inner_programs(&self) -> &[PathBuf] {
        self.step.inner_programs()
    }

    fn artifact(&self) -> Option<&Path> {
        self.step.artifact()
    }

    fn execute(&self, digests: &Digests) -> Result<Done, Failure> {
        let _lock = ProcessLock::wait(&self.output).map_err(error::io(&self.output))?;
        self.step.execute(digests)
    }

    fn made(&self, reads: Vec<PathBuf>) -> Made {
        self.step.made(reads)
    }
}
