//! Failures of launches, and their messages.

use std::any::Any;
use std::panic::{Location, resume_unwind};
use std::{fmt, io};

/// Barrier of the source.
pub(super) type Barrier = &'static Location<'static>;

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

/// Place of a work-item and the barrier that it waits at, or `None` if it has returned.
#[derive(Clone, Copy)]
pub(super) struct Stop {
    pub(super) item: [u32; 3],
    pub(super) barrier: Option<Barrier>,
}

/// Two work-items of a workgroup that are not at the same barrier.
#[derive(Clone, Copy)]
pub(super) struct Divergence {
    /// Waits at a barrier.
    waiting: Stop,
    other: Stop,
}

impl Divergence {
    pub(super) fn new(one: Stop, other: Stop) -> Self {
        if one.barrier.is_some() {
            Self {
                waiting: one,
                other,
            }
        } else {
            Self {
                waiting: other,
                other: one,
            }
        }
    }
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (separator, stop) in [("", self.waiting), (", ", self.other)] {
            write!(f, "{separator}work-item {:?} ", stop.item)?;
            match stop.barrier {
                Some(barrier) => write!(f, "waits at the barrier at {barrier}")?,
                None => write!(f, "has returned")?,
            }
        }
        Ok(())
    }
}
