//! Device memory that work-items write.

use core::fmt;
use core::marker::PhantomData;

use crate::signature::ArgumentKind;
use crate::{Atomic, AtomicInteger, AtomicUnsigned, Element, Item};

/// A slice of device memory that all work-items of a launch can read and write.
///
/// A kernel has no `&mut [T]`: every work-item would have one of the same memory. Use instead
/// - [`set`](Self::set) and [`get`](Self::get) for the element at [`Item::global_index`], which only this work-item owns,
/// - atomic operations for any element of type `u32`, `i32`, `u64`, `i64`, `f32` or `f64`,
/// - the unsafe [`read`](Self::read) and [`write`](Self::write) for any other pattern.
///
/// An index is checked: one that is out of bounds panics, which is a trap on a GPU.
///
/// # Why the safe methods are sound
/// A data race needs two work-items that access the same bytes at the same time, at least one of which writes and at least one
/// of which is not atomic. The safe methods exclude it by these rules:
///
/// 1. *Exclusive memory.* [`Global::new`] borrows `&mut [T]`. While a `Global` exists, the host cannot access its memory, and no
///    other argument, `&[T]` or `Global`, refers to it, except copies of the same `Global`.
/// 2. *One type.* `T` is invariant. All copies of a `Global` access the same elements by the same rules.
/// 3. *One thread.* A `Global` is neither `Send` nor `Sync`. Only a launch brings it to other threads: it splits the arguments
///    and joins them again for each work-item. `run` returns after its last work-item, so launches on one thread are
///    sequential. A work-item's thread cannot start a launch: `run` panics there.
/// 4. *One owner.* All work-items that have copies of a `Global` at the same time are therefore of one launch, in which
///    [`Item::global_index`] is unique: launches refuse grids with more dimensions than the kernel's `Item` has. Safe code cannot create, copy or keep an [`Item`], nor pass it to another thread. So
///    `set` and `get` of one element come from one work-item, in its order.
/// 5. *Atomic or owned.* If `T` has atomic operations, `set` and `get` are relaxed atomic accesses: they can coincide with
///    atomic operations of other work-items on the same element. All other types have no atomic operations, so the safe
///    methods let only the owner access an element.
/// 6. *Plain data.* An [`Element`] is `Copy`, contains no pointers and has no invalid bit patterns. Each value that a method
///    returns is valid.
/// 7. *Bounds.* Each method checks its index.
///
/// `read` and `write` are plain accesses, for which rules 4 and 5 do not hold: their safety requirements ask the caller to
/// exclude the race. On a GPU the host that launches a kernel must guarantee rules 1, 3 and 4: memory that nothing else uses
/// during the launch, and a grid of less than 2⁶⁴ work-items, on AMD GPUs of less than 2³² in each dimension, in the dimensions of
/// the kernel's `Item`.
pub struct Global<'a, T> {
    /// Raw, so that a `Global` is neither `Send` nor `Sync` (rule 3) and `T` is invariant (rule 2).
    pointer: *mut T,
    len: usize,
    memory: PhantomData<&'a mut [T]>,
}

impl<T> Clone for Global<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Global<'_, T> {}

impl<T> fmt::Debug for Global<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Global")
            .field("pointer", &self.pointer)
            .field("len", &self.len)
            .finish()
    }
}

#[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
impl<'a, T: Element> Global<'a, T> {
    /// Makes an argument of a slice, for a kernel on the CPU. It does not exist on GPUs.
    ///
    /// ```
    /// # use offload_device::{Global, Item, cpu::Grid, kernel};
    /// #[kernel]
    /// fn count(item: &Item, total: Global<u32>) {
    ///     total.atomic_add(0, item.local_id(0) as u32);
    /// }
    ///
    /// fn main() {
    ///     let mut total = [0];
    ///     count::run(Grid::new(2, 4), Global::new(&mut total));
    ///     assert_eq!(total, [12]);
    /// }
    /// ```
    ///
    /// A `Global` stays on its thread, see rule 3:
    ///
    /// ```compile_fail,E0277
    /// # use offload_device::Global;
    /// fn send<T: Send>(_: T) {}
    /// send(Global::new(&mut [0u32]));
    /// ```
    pub fn new(memory: &'a mut [T]) -> Self {
        Self {
            pointer: memory.as_mut_ptr(),
            len: memory.len(),
            memory: PhantomData,
        }
    }
}

impl<T: Element> Global<'_, T> {
    /// Returns the number of elements.
    #[must_use]
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there is no element.
    #[must_use]
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns a pointer to the first element.
    #[must_use]
    #[inline(always)]
    pub fn as_mut_ptr(&self) -> *mut T {
        self.pointer
    }

    /// Returns the element at [`Item::global_index`].
    ///
    /// The access is atomic and relaxed if `T` has atomic operations.
    ///
    /// # Panics
    /// If [`Item::global_index`] is out of bounds.
    #[must_use]
    #[inline(always)]
    #[track_caller]
    pub fn get<S, const D: usize>(&self, item: &Item<S, D>) -> T {
        // SAFETY: in bounds. Only this work-item stores this element, except by atomic operations (rules 4 and 5).
        unsafe { T::__load(self.at(item.global_index())) }
    }

    /// Stores a value in the element at [`Item::global_index`].
    ///
    /// The access is atomic and relaxed if `T` has atomic operations.
    ///
    /// # Panics
    /// If [`Item::global_index`] is out of bounds.
    #[inline(always)]
    #[track_caller]
    pub fn set<S, const D: usize>(&self, item: &Item<S, D>, value: T) {
        // SAFETY: in bounds. Only this work-item accesses this element, except by atomic operations (rules 4 and 5).
        unsafe { T::__store(self.at(item.global_index()), value) }
    }

    /// Returns an element by a plain access.
    ///
    /// # Safety
    /// No other work-item writes this element at the same time, by any method. Only a barrier orders the accesses of different
    /// work-items, and only within a workgroup.
    ///
    /// # Panics
    /// If the index is out of bounds.
    #[must_use]
    #[inline(always)]
    #[track_caller]
    pub unsafe fn read(&self, index: usize) -> T {
        // SAFETY: in bounds; the caller excludes data races.
        unsafe { *self.at(index) }
    }

    /// Stores a value in an element by a plain access.
    ///
    /// # Safety
    /// No other work-item reads or writes this element at the same time, by any method. Only a barrier orders the accesses of
    /// different work-items, and only within a workgroup.
    ///
    /// # Panics
    /// If the index is out of bounds.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn write(&self, index: usize, value: T) {
        // SAFETY: in bounds; the caller excludes data races.
        unsafe { *self.at(index) = value }
    }

    /// Returns a pointer to an element.
    #[inline(always)]
    #[track_caller]
    fn at(&self, index: usize) -> *mut T {
        if index >= self.len {
            out_of_bounds(index, self.len);
        }
        // SAFETY: the pointer is valid for `len` elements, from the slice of `new` or of the host that launched the kernel.
        unsafe { self.pointer.add(index) }
    }
}

/// Defines methods that call an operation of an element, with the trait that has it.
macro_rules! atomic_operations {
    ($($(#[$documentation:meta])* $method:ident($($value:ident)?) $(-> $result:ident)? = $bound:ident::$operation:ident;)*) => {
        /// Atomic operations are relaxed and of device scope: they order no other accesses. Each returns the value from before it.
        impl<T: Element> Global<'_, T> {
            $(
                $(#[$documentation])*
                ///
                /// # Panics
                /// If the index is out of bounds.
                #[inline(always)]
                #[track_caller]
                pub fn $method(&self, index: usize $(, $value: T)?) $(-> $result)?
                where
                    T: $bound,
                {
                    // SAFETY: in bounds; concurrent accesses of safe code are atomic (rule 5).
                    unsafe { T::$operation(self.at(index) $(, $value)?) }
                }
            )*
        }
    };
}

atomic_operations! {
    /// Adds to an element; integers wrap. For `f32` GPUs take subnormal numbers for zero, as operands and as results; the CPU does not.
    atomic_add(value) -> T = Atomic::add;
    /// Replaces an element.
    atomic_exchange(value) -> T = Atomic::exchange;
    /// Returns an element.
    #[must_use]
    atomic_load() -> T = Atomic::load;
    /// Stores a value in an element.
    atomic_store(value) = Atomic::store;
    /// Stores the minimum of the element and a value.
    atomic_min(value) -> T = AtomicInteger::min;
    /// Stores the maximum of the element and a value.
    atomic_max(value) -> T = AtomicInteger::max;
    /// Stores the bitwise and of the element and a value.
    atomic_and(value) -> T = AtomicUnsigned::and;
    /// Stores the bitwise or of the element and a value.
    atomic_or(value) -> T = AtomicUnsigned::or;
    /// Stores the bitwise exclusive or of the element and a value.
    atomic_xor(value) -> T = AtomicUnsigned::xor;
}

impl<T: Element> Global<'_, T> {
    /// Replaces an element if it equals a value.
    ///
    /// # Errors
    /// Returns the element's value if it is not `expected`. The comparison never fails spuriously.
    ///
    /// # Panics
    /// If the index is out of bounds.
    #[inline(always)]
    #[track_caller]
    pub fn atomic_compare_exchange(&self, index: usize, expected: T, new: T) -> Result<T, T>
    where
        T: AtomicUnsigned,
    {
        // SAFETY: in bounds; concurrent accesses of safe code are atomic (rule 5).
        let before = unsafe { T::compare_exchange(self.at(index), expected, new) };
        if before == expected {
            Ok(before)
        } else {
            Err(before)
        }
    }
}

impl<T: Element> crate::argument::sealed::SignatureArgument for Global<'_, T> {
    const KIND: ArgumentKind = ArgumentKind::global::<T>();
}

// SAFETY: passed as a raw pointer and an integer. Copies on many threads are what rules 1 to 7 allow.
unsafe impl<T: Element> crate::Argument for Global<'_, T> {
    type First = *mut T;
    type Second = usize;

    #[inline(always)]
    fn split(self) -> (*mut T, usize) {
        (self.pointer, self.len)
    }

    #[inline(always)]
    unsafe fn join(first: *mut T, second: usize) -> Self {
        Self {
            pointer: first,
            len: second,
            memory: PhantomData,
        }
    }
}

/// On a GPU nothing of it remains but a trap, without a call.
#[cold]
#[cfg_attr(any(target_arch = "amdgpu", target_arch = "nvptx64"), inline(always))]
#[cfg_attr(
    not(any(target_arch = "amdgpu", target_arch = "nvptx64")),
    inline(never)
)]
#[track_caller]
fn out_of_bounds(index: usize, len: usize) -> ! {
    panic!("index out of bounds: the length is {len} but the index is {index}")
}
