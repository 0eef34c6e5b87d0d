//! Launches: spread workgroups over threads and report the first failure.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use super::Settings;
use super::failure::Failure;
use super::workgroup::{FiberState, Launch, Resources, run_workgroup};
use crate::Grid;
use crate::description::Description;

/// Maximum number of stacks of all threads. A stack needs two memory mappings, of which Linux by default allows 65,530.
const MAX_STACKS: usize = 24 << 10;

/// Runs a kernel: calls `work_item` for each work-item of a grid, in workgroups with `shared` bytes of shared memory, and
/// panics if a workgroup fails.
#[track_caller]
pub(crate) fn run(
    kernel: &Description,
    grid: Grid,
    shared: usize,
    work_item: &(dyn Fn(FiberState) + Sync),
) {
    if grid.is_empty() {
        return;
    }
    let launch = Launch::new(kernel, grid, Settings::current(), shared, work_item);
    let result = Settings::keep(|| launch.run());
    if let Err(failure) = result {
        failure.report();
    }
}

impl<'a> Launch<'a> {
    /// Checks the sizes of a launch that is not empty.
    #[track_caller]
    fn new(
        kernel: &'a Description,
        grid: Grid,
        settings: Settings,
        shared: usize,
        work_item: &'a (dyn Fn(FiberState) + Sync),
    ) -> Self {
        let name = kernel.name;
        assert!(
            !IN_WORK_ITEM.get(),
            "kernel `{name}`: a kernel cannot run a kernel"
        );
        let (items, groups) = grid
            .check(kernel)
            .unwrap_or_else(|problem| panic!("{problem}"));
        Self {
            kernel,
            grid,
            items,
            settings,
            shared,
            work_item,
            groups,
            next_group: AtomicU64::new(0),
            failed: AtomicBool::new(false),
        }
    }

    /// Runs all workgroups and returns the failure of the first that failed.
    fn run(&self) -> Result<(), Failure> {
        let threads = thread_count(self.settings.threads, self.items, self.groups);
        // A barrier has no effect while its thread panics, so that a panicking thread leaves the work to others.
        let panicking = thread::panicking();
        thread::scope(|scope| {
            let mut workers = Vec::new();
            while workers.len() + usize::from(!panicking) < threads {
                let work = || {
                    IN_WORK_ITEM.set(true);
                    self.run_workgroups()
                };
                match thread::Builder::new().spawn_scoped(scope, work) {
                    Ok(worker) => workers.push(worker),
                    Err(_) if !panicking || !workers.is_empty() => break,
                    Err(error) => panic!("cannot start a thread: {error}"),
                }
            }
            let mut result = Ok(());
            if !panicking {
                let _in_work_item = InWorkItem::enter();
                result = self.run_workgroups();
            }
            for worker in workers {
                let other = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
                result = match (result, other) {
                    (Err(one), Err(other)) => {
                        Err(if other.index < one.index { other } else { one })
                    }
                    (one, other) => one.and(other),
                };
            }
            result
        })
    }

    /// Runs workgroups until none is left or one has failed.
    fn run_workgroups(&self) -> Result<(), Failure> {
        let mut resources = Resources::new(self);
        while !self.failed() {
            let index = self.next_group.fetch_add(1, Relaxed);
            if index >= self.groups {
                break;
            }
            run_workgroup(self, index, &mut resources)
                .inspect_err(|_| self.failed.store(true, Relaxed))?;
        }
        Ok(())
    }
}

/// Returns the number of threads of a launch with a number of work-items in each workgroup.
fn thread_count(max: usize, items: u32, groups: u64) -> usize {
    let groups = usize::try_from(groups).unwrap_or(usize::MAX);
    max.min(MAX_STACKS / items as usize).min(groups).max(1)
}

thread_local! {
    /// True on a thread that runs work-items, where no kernel can be run (rule 3 of `Global`). A thread that a launch started
    /// never leaves this state, so that destructors of its thread-local values cannot run kernels either.
    static IN_WORK_ITEM: Cell<bool> = const { Cell::new(false) };
}

/// Makes the calling thread one that runs work-items, until dropped.
struct InWorkItem;

impl InWorkItem {
    fn enter() -> Self {
        IN_WORK_ITEM.set(true);
        Self
    }
}

impl Drop for InWorkItem {
    fn drop(&mut self) {
        IN_WORK_ITEM.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_threads_by_workgroups_and_stacks() {
        assert_eq!(thread_count(8, 256, 100), 8);
        assert_eq!(thread_count(8, 256, 3), 3);
        assert_eq!(thread_count(0, 256, 3), 1);
        assert_eq!(thread_count(200, 1024, 1000), 24);
        assert_eq!(thread_count(200, 64, u64::MAX), 200);
    }
}
