//! `Step`: what every step of a plan can do; its result and its record.

use crate::messages::Failure;
use crate::steps::digests::Digests;
use offload_build_core::process::command::Command;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// One step of a plan. Steps of later stages may read the files that it writes.
pub(crate) trait Step: fmt::Debug + Send + Sync {
    /// Returns what it does, for people, in one line.
    fn title(&self) -> String;

    /// Writes the lines of the dry run: commands as a POSIX shell takes them, and comments for what this process does.
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Returns the folder that the commands of the dry run need.
    fn folder(&self) -> Option<&Path> {
        None
    }

    /// Returns the programs that it starts, without a launcher.
    fn commands(&self) -> &[Command] {
        &[]
    }

    /// Returns the programs that the commands start in turn, if they decide what is made.
    fn inner_programs(&self) -> &[PathBuf] {
        &[]
    }

    /// Returns the library for programs that are linked elsewhere, if it writes one.
    fn artifact(&self) -> Option<&Path> {
        None
    }

    /// Does it, unless its outputs are up to date.
    fn execute(&self, digests: &Digests) -> Result<Done, Failure>;

    /// Returns what it makes, with the files that it reads; those that its programs read are in [`Done`].
    fn made(&self) -> Made;
}

/// Result of an executed step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// True if nothing was started because the output was up to date.
    pub fresh: bool,
    /// Warnings: what the commands wrote on standard error, now or when the output was made.
    pub messages: String,
    /// Every file that its programs read.
    pub reads: Vec<PathBuf>,
    /// Names of variables on which the output depends, but for those that the plan read.
    pub variables: BTreeSet<String>,
}

impl Done {
    /// Returns the result of a step that only has a warning.
    pub(crate) fn with_warning(warning: Option<String>) -> Self {
        let messages = warning.map(|warning| format!("warning: {warning}\n"));
        Self {
            messages: messages.unwrap_or_default(),
            ..Self::default()
        }
    }
}

/// Files that a step made, and what it made them from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) title: String,
    pub(crate) outputs: Vec<PathBuf>,
    /// Every file that was read.
    pub(crate) inputs: Vec<PathBuf>,
    /// The commands that ran; empty for what was done in this process.
    pub(crate) commands: Vec<String>,
}

impl Made {
    /// Returns the record of a step without commands.
    pub(crate) fn in_process(title: String, outputs: Vec<PathBuf>, inputs: Vec<PathBuf>) -> Self {
        Self {
            title,
            outputs,
            inputs,
            commands: Vec::new(),
        }
    }
}
