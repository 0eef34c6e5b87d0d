//! Fibers that borrow, and the stacks that they run on.

use std::any::Any;
use std::io;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

/// Suspends a fiber and passes a value to the caller of [`Fiber::resume`].
pub(super) type Suspend<T> = Yielder<(), T>;

/// State of a fiber after it ran.
pub(super) enum Outcome<T> {
    Suspended(T),
    Returned,
    Panicked(Box<dyn Any + Send>),
}

/// A function that runs on a stack of its own and suspends itself.
///
/// `'a` is the lifetime of what the function borrows: a `Coroutine` has no such lifetime, and corosensei's `ScopedCoroutine`
/// is used in a closure of its own, so that there cannot be a list of them.
pub(super) struct Fiber<'a, T> {
    coroutine: Coroutine<(), T, ()>,
    borrowed: PhantomData<&'a mut ()>,
}

impl<'a, T> Fiber<'a, T> {
    /// Creates a fiber that calls a function when it is first resumed.
    ///
    /// # Safety
    /// The fiber is dropped or ends before `'a` does: it is not forgotten.
    pub(super) unsafe fn new(stack: DefaultStack, function: impl FnOnce(&Suspend<T>) + 'a) -> Self {
        // SAFETY: the function and its borrows live for `'a`, and the caller drops the fiber before.
        let coroutine = unsafe {
            Coroutine::with_stack_unchecked(stack, |suspend: &Suspend<T>, ()| function(suspend))
        };
        Self {
            coroutine,
            borrowed: PhantomData,
        }
    }

    /// Runs the fiber until it suspends itself or ends.
    pub(super) fn resume(&mut self) -> Outcome<T> {
        // A fiber that panicked is not resumed, and the launch fails: no state that the panic left is used.
        match catch_unwind(AssertUnwindSafe(|| self.coroutine.resume(()))) {
            Ok(CoroutineResult::Yield(value)) => Outcome::Suspended(value),
            Ok(CoroutineResult::Return(())) => Outcome::Returned,
            Err(panic) => Outcome::Panicked(panic),
        }
    }

    /// Returns the stack; unwinds the fiber if it is suspended, which drops the values on the stack.
    pub(super) fn into_stack(mut self) -> DefaultStack {
        // A destructor can panic. That panic is not reported: the launch fails already for another reason, the first one.
        let _ = catch_unwind(AssertUnwindSafe(|| self.coroutine.force_unwind()));
        self.coroutine.into_stack()
    }
}

/// Stacks of one size, for one thread, that are used again.
pub(super) struct Stacks {
    size: usize,
    free: Vec<DefaultStack>,
}

/// Maximum number of stacks that wait for the next launch.
const MAX_KEPT: usize = 1024;

/// Stacks that wait for the next launch, and their size. A new stack takes longer than a work-item of a small kernel.
static KEPT: Mutex<(usize, Vec<DefaultStack>)> = Mutex::new((0, Vec::new()));

impl Stacks {
    pub(super) fn new(size: usize) -> Self {
        Self {
            size,
            free: Vec::new(),
        }
    }

    pub(super) fn take(&mut self) -> io::Result<DefaultStack> {
        let stack = self.free.pop().or_else(|| {
            let mut kept = kept();
            if kept.0 == self.size {
                kept.1.pop()
            } else {
                None
            }
        });
        // corosensei adds pages to the size, and panics if the sum overflows.
        if self.size > isize::MAX as usize {
            return Err(io::Error::from(io::ErrorKind::OutOfMemory));
        }
        stack.map_or_else(|| DefaultStack::new(self.size), Ok)
    }

    pub(super) fn give_back(&mut self, stack: DefaultStack) {
        self.free.push(stack);
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        let mut kept = kept();
        if kept.0 != self.size {
            *kept = (self.size, Vec::new());
        }
        let room = MAX_KEPT.saturating_sub(kept.1.len());
        self.free.truncate(room);
        kept.1.append(&mut self.free);
    }
}

fn kept() -> MutexGuard<'static, (usize, Vec<DefaultStack>)> {
    // Nothing panics between changes that belong together.
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    struct CountsDrop<'a>(&'a Cell<u32>);
    impl Drop for CountsDrop<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    #[test]
    fn unwinds_a_suspended_fiber_and_reuses_its_stack() {
        let drops = Cell::new(0);
        let mut stacks = Stacks::new(64 << 10);
        for round in 1..=3 {
            // SAFETY: the fiber is consumed below.
            let mut fiber = unsafe {
                Fiber::new(stacks.take().unwrap(), |suspend| {
                    let _value = CountsDrop(&drops);
                    suspend.suspend(());
                    unreachable!("never resumed");
                })
            };
            assert!(matches!(fiber.resume(), Outcome::Suspended(())));
            assert_eq!(drops.get(), round - 1);
            stacks.give_back(fiber.into_stack());
            assert_eq!(drops.get(), round);
            assert_eq!(stacks.free.len(), 1);
        }
    }

    #[test]
    fn keeps_stacks_for_the_next_launch() {
        // A size that no other test has.
        const SIZE: usize = 1 << 20;
        let kept_one = (0..8).any(|_| {
            let mut stacks = Stacks::new(SIZE);
            let stack = stacks.take().unwrap();
            stacks.give_back(stack);
            drop(stacks);
            let kept = kept();
            kept.0 == SIZE && kept.1.len() == 1
        });
        // Other tests can replace the stacks that are kept, but not each time.
        assert!(kept_one);
        assert!(kept().1.len() <= MAX_KEPT);
    }

    #[test]
    fn keeps_no_more_stacks_than_the_limit() {
        // A size that no other test has.
        const SIZE: usize = 16 << 10;
        let threads = [MAX_KEPT, 1].map(|count| {
            let mut stacks = Stacks::new(SIZE);
            (0..count).for_each(|_| stacks.give_back(DefaultStack::new(SIZE).unwrap()));
            stacks
        });
        drop(threads);
        assert!(kept().1.len() <= MAX_KEPT);
    }

    #[test]
    fn contains_the_panic_of_a_fiber_that_is_unwound() {
        let mut stacks = Stacks::new(256 << 10);
        // SAFETY: the fiber is consumed below.
        let mut fiber = unsafe {
            Fiber::new(stacks.take().unwrap(), |suspend| {
                // A fiber that suspends itself again is unwound again.
                for _ in 0..2 {
                    let caught = catch_unwind(AssertUnwindSafe(|| suspend.suspend(())));
                    assert!(caught.is_err());
                }
                panic!("instead of the unwinding");
            })
        };
        assert!(matches!(fiber.resume(), Outcome::Suspended(())));
        stacks.give_back(fiber.into_stack());
    }
}
