//! Plan of a build, as a value: printed for a dry run, executed by `run`.

use crate::steps::planned::{Execution, PlannedStep};
use crate::steps::step::Step;
use offload_build_core::declare::skipped::Skipped;
use offload_build_core::process::command::Command;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Steps that do not wait for each other.
pub(crate) type Stage = Vec<PlannedStep>;

/// The steps of a build, in stages: the steps of one stage do not wait for each other.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub(crate) stages: Vec<Stage>,
    /// Targets that get no image.
    pub(crate) skipped: Vec<Skipped>,
}

/// Returns `step` as one of a stage.
pub(crate) fn step(step: impl Step + 'static) -> PlannedStep {
    PlannedStep {
        step: Arc::new(step),
        execution: Execution::Always,
    }
}

/// Returns `step` as one of a stage, which is executed only when something has changed.
pub(crate) fn keyed(step: impl Step + 'static) -> PlannedStep {
    PlannedStep {
        step: Arc::new(step),
        execution: Execution::Keyed,
    }
}

impl Plan {
    /// Returns the libraries for programs that are linked elsewhere.
    pub(crate) fn artifacts(&self) -> impl Iterator<Item = &Path> {
        self.steps().filter_map(Step::artifact)
    }

    /// Returns the programs that it starts, and those that they start, by path.
    pub(crate) fn programs(&self) -> impl Iterator<Item = &Path> {
        let commands = self.steps().flat_map(Step::commands);
        let inner = self.steps().flat_map(Step::inner_programs);
        let programs = commands.map(Command::program);
        let programs = sorted(programs.chain(inner.map(PathBuf::as_path)));
        programs.into_iter().filter(|program| program.is_absolute())
    }

    fn steps(&self) -> impl Iterator<Item = &dyn Step> {
        self.stages.iter().flatten().map(|planned| &*planned.step)
    }
}

/// Returns each path once, sorted.
pub(crate) fn sorted<'p>(paths: impl Iterator<Item = &'p Path>) -> Vec<&'p Path> {
    let mut paths: Vec<&Path> = paths.collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// Prints the dry run as a POSIX shell takes it; what is done in this process is a comment.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for skipped in &self.skipped {
            writeln!(f, "# {}", skipped.to_string().replace('\n', "\n# "))?;
        }
        let folders = sorted(self.steps().filter_map(Step::folder));
        if !folders.is_empty() {
            writeln!(f, "{}", Command::new("mkdir").arg("-p").args(folders))?;
        }
        self.steps().try_for_each(|step| step.show(f))
    }
}
