//! Executes a plan.

use crate::messages;
use crate::plan::Plan;
use crate::run::progress::Progress;
use crate::steps::digests::Digests;
use crate::steps::planned::PlannedStep;
use crate::steps::step::Made;
use offload_build_core::error::Error;
use offload_build_core::process::jobserver::Jobs;
use offload_build_core::process::parent::Parent;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Number of failed steps of a stage after which no other one starts. A mistake in a header fails each source that includes it,
/// and Cargo shows nothing before the build script ends.
const MOST_FAILURES: usize = 20;

/// Result of an executed plan.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Compilers' warnings, each once, by the title of the first task that gave it.
    pub(crate) warnings: Vec<(String, String)>,
    /// Records of the steps, in the order of the plan.
    pub(crate) made: Vec<Made>,
    /// Names of variables that Cargo has to watch, besides those that the plan read.
    pub(crate) variables: BTreeSet<String>,
}

/// Executes all steps of a plan, those of one stage in parallel. A failed step does not stop the others of its stage, up to
/// [`MOST_FAILURES`]. No step starts after `cargo` has ended.
pub(crate) fn execute(
    plan: &Plan,
    jobs: &Jobs,
    progress: &Progress,
    digests: &Digests,
    cargo: Parent,
) -> Result<Outcome, Error> {
    let mut outcome = Outcome::default();
    let mut seen = BTreeSet::new();
    for stage in &plan.stages {
        debug_assert_eq!(written_twice(stage), None, "steps of a stage run at once");
        let failed = AtomicUsize::new(0);
        let results = jobs.run(stage.iter().collect(), |planned: &PlannedStep| {
            if failed.load(Ordering::Relaxed) >= MOST_FAILURES || cargo.has_ended() {
                return None;
            }
            let started = Instant::now();
            let result = planned.execute(digests);
            if result.is_err() {
                failed.fetch_add(1, Ordering::Relaxed);
            }
            progress.finished(&*planned.step, started.elapsed(), &result);
            Some(result)
        });
        let left = results.iter().filter(|result| result.is_none()).count();
        let mut failures = Vec::new();
        for (PlannedStep { step, .. }, result) in stage.iter().zip(results) {
            let Some(result) = result else {
                continue;
            };
            match result {
                Ok(done) => {
                    let mut made = step.made();
                    made.inputs.extend(done.reads);
                    outcome.made.push(made);
                    outcome.variables.extend(done.variables);
                    let mut new = messages::diagnostics(&done.messages);
                    new.retain(|text| seen.insert(messages::identity(text)));
                    if !new.is_empty() {
                        outcome.warnings.push((step.title(), new.concat()));
                    }
                }
                Err(failure) => failures.push((step.title(), failure)),
            }
        }
        if failures.is_empty() && left > 0 {
            return Err(ended_before());
        }
        if !failures.is_empty() {
            return Err(Error::new(messages::report(&failures, left)));
        }
    }
    Ok(outcome)
}

/// Returns the error of a build script that has nothing more to do: what it would write may be another one's now.
pub(crate) fn ended_before() -> Error {
    Error::new("Cargo ended before its build script")
}

/// Returns a file that two steps of the stage write.
fn written_twice(stage: &[PlannedStep]) -> Option<PathBuf> {
    let mut written = BTreeSet::new();
    let mut outputs = stage.iter().flat_map(|planned| planned.step.made().outputs);
    outputs.find(|output| !written.insert(output.clone()))
}
