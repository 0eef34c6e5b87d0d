//! A step of a plan, and when it is executed.

use crate::messages::Failure;
use crate::steps::digests::Digests;
use crate::steps::keyed;
use crate::steps::step::{Done, Step};
use offload_build_core::error;
use offload_build_core::process::lock::ProcessLock;
use std::path::PathBuf;
use std::sync::Arc;

/// A step with the condition of its execution.
#[derive(Clone, Debug)]
pub(crate) struct PlannedStep {
    pub(crate) step: Arc<dyn Step>,
    pub(crate) execution: Execution,
}

/// Condition for the execution of a step.
#[derive(Clone, Debug)]
pub(crate) enum Execution {
    /// With each build.
    Always,
    /// Only when something has changed.
    Keyed,
    /// Under the lock of this output, which packages share: one process at a time executes it, and the next ones find it up to date.
    Locked(PathBuf),
}

impl PlannedStep {
    pub(crate) fn execute(&self, digests: &Digests) -> Result<Done, Failure> {
        match &self.execution {
            Execution::Always => self.step.execute(digests),
            Execution::Keyed => keyed::execute(&*self.step, digests),
            Execution::Locked(output) => {
                let _lock = ProcessLock::wait(output).map_err(error::io(output))?;
                self.step.execute(digests)
            }
        }
    }
}
