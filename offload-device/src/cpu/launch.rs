//! Launches: spread workgroups over threads and report the first failure.

use std::any::Any;
use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::{fmt, io, thread};

use super::workgroup::{Divergence, Resources, State, run_workgroup};
use super::{Grid, Settings};
use crate::expansion::Description;
use crate::{Argument, Item};

/// Maximum number of stacks of all threads. A stack needs two memory mappings, of which Linux by default allows 65,530.
const MAX_STACKS: usize = 24 << 10;

/// Arguments of a kernel other than the first: `()`, or [`Passed`] with the arguments after it.
///
/// # Safety
/// The values that `join` makes may exist on many threads at the same time.
pub unsafe trait Arguments: Copy {
    /// The arguments as nested pairs that end with `()`, such as `(f32, (&[f32], ()))`.
    type Values;

    /// Makes the arguments of the scalars that were passed.
    ///
    /// # Safety
    /// As for [`Argument::join`].
    unsafe fn join(self) -> Self::Values;
}

// SAFETY: no argument at all.
unsafe impl Arguments for () {
    type Values = ();

    unsafe fn join(self) {}
}

/// An argument split into scalars, and the arguments after it. Only [`Given`] creates it.
pub struct Passed<A, First, Second, Others> {
    scalars: (First, Second),
    join: unsafe fn(First, Second) -> A,
    others: Others,
}

/// An argument of `run`, to be split. Only the method of this type is called in crates that compile; see
/// `ArgumentType` in `expansion.rs`.
pub struct Given<A>(pub A);

impl<A: Argument> Given<A> {
    /// Splits the argument.
    pub fn pass<Others>(self, others: Others) -> Passed<A, A::First, A::Second, Others> {
        Passed {
            scalars: self.0.split(),
            join: A::join,
            others,
        }
    }
}

/// Stands for what types lack that are not arguments, in crates that do not compile.
pub trait InvalidArgument<A>: Sized {
    /// Has the form of the method of `Given`.
    fn pass<Others>(self, _: Others) -> Passed<A, (), (), Others> {
        unreachable!("a crate with a type that is not an `Argument` does not compile")
    }
}
impl<A> InvalidArgument<A> for Given<A> {}

impl<A, First: Copy, Second: Copy, Others: Copy> Clone for Passed<A, First, Second, Others> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<A, First: Copy, Second: Copy, Others: Copy> Copy for Passed<A, First, Second, Others> {}

// SAFETY: `Given` contains an `Argument`, which guarantees the same.
unsafe impl<A, First: Copy, Second: Copy, Others: Arguments> Arguments
    for Passed<A, First, Second, Others>
{
    type Values = (A, Others::Values);

    unsafe fn join(self) -> Self::Values {
        let (first, second) = self.scalars;
        // SAFETY: the caller guarantees it for each argument.
        unsafe { ((self.join)(first, second), self.others.join()) }
    }
}

/// Runs a kernel. The module of a kernel calls this function, and names the kernel by `call`.
///
/// A work-item gets arguments made of the scalars, as on a GPU. That, and the refusal to run a kernel on the thread of a
/// work-item, is what the soundness of [`Global`](crate::Global) needs of this function.
#[doc(hidden)]
#[track_caller]
pub fn run_kernel<S, A: Arguments>(
    kernel: &Description,
    grid: Grid,
    arguments: A,
    call: impl Fn(&Item<S>, A::Values) + Sync,
) {
    /// Arguments that all threads use.
    struct Shared<T>(T);
    // SAFETY: `Arguments`, of which `join` makes values that may be on many threads.
    unsafe impl<T: Arguments> Sync for Shared<T> {}

    let arguments = Shared(arguments);
    let work_item = |state: State| {
        // The whole struct, which is `Sync`, rather than its field.
        let arguments: &Shared<A> = &arguments;
        // SAFETY: the workgroup gives the state of the running work-item and `size_of::<S>()` bytes. `call` takes a reference
        // of any lifetime, so it cannot keep it.
        let item = unsafe { Item::new(state) };
        // SAFETY: the memory stays borrowed for the lifetime in `A`, which does not end before this function returns.
        call(&item, unsafe { arguments.0.join() });
    };
    if grid.is_empty() {
        return;
    }
    let launch = Launch::new(
        kernel,
        grid,
        Settings::current(),
        size_of::<S>(),
        &work_item,
    );
    if let Err(failure) = launch.run() {
        failure.report();
    }
}

/// A launch that all its threads share.
pub(super) struct Launch<'a> {
    pub(super) kernel: &'a Description,
    pub(super) grid: Grid,
    /// Number of work-items in a workgroup, from 1 to 1024.
    pub(super) items: u32,
    pub(super) settings: Settings,
    /// Bytes of memory that a workgroup shares.
    pub(super) shared: usize,
    pub(super) work_item: &'a (dyn Fn(State) + Sync),
    /// Number of workgroups, at least 1.
    groups: u64,
    next_group: AtomicU64,
    failed: AtomicBool,
}

impl<'a> Launch<'a> {
    /// Checks the sizes of a launch that is not empty.
    #[track_caller]
    fn new(
        kernel: &'a Description,
        grid: Grid,
        settings: Settings,
        shared: usize,
        work_item: &'a (dyn Fn(State) + Sync),
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

    /// Returns true if a workgroup has failed: all others stop.
    pub(super) fn failed(&self) -> bool {
        self.failed.load(Relaxed)
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

/// Failure of a workgroup.
pub(super) struct Failure {
    pub(super) kernel: &'static str,
    /// Linear index of the workgroup, then its place.
    pub(super) index: u64,
    pub(super) group: [u32; 3],
    pub(super) seed: u64,
    pub(super) cause: Cause,
}

/// Causes of failures.
pub(super) enum Cause {
    /// A work-item panicked.
    Panic {
        item: [u32; 3],
        payload: Box<dyn Any + Send>,
    },
    /// Work-items are not at the same barrier.
    Divergence(Divergence),
    /// The operating system refused a stack.
    Stack { size: usize, error: io::Error },
}

impl Failure {
    /// Panics with a message, or with the payload of the work-item's panic if that is not a message.
    #[track_caller]
    pub(super) fn report(self) -> ! {
        let message = self.to_string();
        match self.cause {
            Cause::Panic { payload, .. } if panic_message(&*payload).is_none() => {
                eprintln!("{message}");
                resume_unwind(payload)
            }
            _ => panic!("{message}"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}`, workgroup {:?}", self.kernel, self.group)?;
        match &self.cause {
            Cause::Panic { item, payload } => {
                write!(
                    f,
                    ", work-item {item:?}: {}",
                    panic_message(&**payload).unwrap_or("panicked")
                )?;
            }
            Cause::Divergence(divergence) => write!(f, ": {divergence}")?,
            Cause::Stack { size, error } => {
                write!(
                    f,
                    ": cannot allocate a work-item's stack of {} KiB: {error}",
                    size / 1024
                )?;
                write!(
                    f,
                    "\nhint: decrease OFFLOAD_DEVICE_THREADS or OFFLOAD_DEVICE_STACK"
                )?;
            }
        }
        write!(
            f,
            "\nhint: OFFLOAD_DEVICE_SEED={:#x} repeats this order of work-items",
            self.seed
        )
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> Option<&str> {
    let text = payload.downcast_ref::<&'static str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
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
