//! The function `run` of a kernel: passes arguments as scalars, as on a GPU.

use crate::description::Description;
use crate::device::State;
use crate::executor;
use crate::{Argument, Grid, Item};

/// Arguments of a kernel other than the first: `()`, or [`Passed`] with the arguments after it.
///
/// # Safety
/// The values that `join` makes may exist on many threads at the same time.
pub unsafe trait ArgumentList: Copy {
    /// The arguments as nested pairs that end with `()`, such as `(f32, (&[f32], ()))`.
    type Values;

    /// Makes the arguments of the scalars that were passed.
    ///
    /// # Safety
    /// As for [`Argument::join`].
    unsafe fn join(self) -> Self::Values;
}

// SAFETY: no argument at all.
unsafe impl ArgumentList for () {
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
unsafe impl<A, First: Copy, Second: Copy, Others: ArgumentList> ArgumentList
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
pub fn run_kernel<S, A: ArgumentList, const DIMENSIONS: usize>(
    kernel: &Description,
    grid: Grid,
    arguments: A,
    call: impl Fn(&Item<S, DIMENSIONS>, A::Values) + Sync,
) {
    /// Arguments that all threads use.
    struct Shared<T>(T);
    // SAFETY: `ArgumentList`, of which `join` makes values that may be on many threads.
    unsafe impl<T: ArgumentList> Sync for Shared<T> {}

    let arguments = Shared(arguments);
    let work_item = |state: State| {
        // The whole struct, which is `Sync`, rather than its field.
        let arguments: &Shared<A> = &arguments;
        // SAFETY: the workgroup gives the state of the running work-item and `size_of::<S>()` bytes, the grid has the dimensions
        // of the item. `call` takes a reference of any lifetime, so it cannot keep it.
        let item = unsafe { Item::new(state) };
        // SAFETY: the memory stays borrowed for the lifetime in `A`, which does not end before this function returns.
        call(&item, unsafe { arguments.0.join() });
    };
    let kernel = Description {
        dimensions: DIMENSIONS,
        ..*kernel
    };
    executor::run(&kernel, grid, size_of::<S>(), &work_item);
}
