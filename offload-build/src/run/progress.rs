//! Progress of a build for `cargo offload`, which shows it while Cargo keeps the output of build scripts to itself.
//!
//! A line for each finished step that started a program: `<package>\t<module>\t<number>\t<steps>\t<milliseconds>\t<title>`.
//! Lines of several build scripts go to one file, each by one write.

use crate::messages::Failure;
use crate::steps::step::{Done, Step};
use offload_build_core::environment::Environment;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Variable that names the file. It is not announced to Cargo: another file must not build again.
const VARIABLE: &str = "OFFLOAD_PROGRESS";

/// Progress of a module.
pub(crate) struct Progress {
    file: Option<File>,
    /// Package and module, each with a tab after it.
    start: String,
    done: AtomicUsize,
    steps: usize,
}

impl Progress {
    /// Returns the progress of a module with that many steps that start programs.
    pub(crate) fn new(environment: &Environment, module: &str, steps: usize) -> Self {
        let path = environment.cargo(VARIABLE).filter(|path| !path.is_empty());
        // Nobody watches a file that is not there, and a build does not fail for it.
        let open = |path| OpenOptions::new().append(true).open(path).ok();
        let package = environment.cargo("CARGO_PKG_NAME").unwrap_or_default();
        Self {
            file: path.and_then(open),
            start: format!("{package}\t{module}\t"),
            done: AtomicUsize::new(0),
            steps,
        }
    }

    /// Counts a finished step, and reports it unless its output was up to date. Of a failed one, the title says so: Cargo shows
    /// the reason when the build script ends.
    pub(crate) fn finished(&self, step: &dyn Step, took: Duration, result: &Result<Done, Failure>) {
        if step.commands().is_empty() {
            return;
        }
        let number = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let is_fresh = result.as_ref().is_ok_and(|done| done.fresh);
        let Some(mut file) = self.file.as_ref().filter(|_| !is_fresh) else {
            return;
        };
        let mut title = step.title().replace(['\n', '\t'], " ");
        if result.is_err() {
            title += ": failed";
        }
        let (start, steps, took) = (&self.start, self.steps, took.as_millis());
        let line = format!("{start}{number}\t{steps}\t{took}\t{title}\n");
        let _ = file.write_all(line.as_bytes());
    }
}
