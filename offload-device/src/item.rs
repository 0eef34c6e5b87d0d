//! Work-items: place, barrier and shared memory.

use core::fmt;
use core::marker::PhantomData;

use crate::device;

/// One work-item of a running kernel, in a workgroup with a shared `S`.
///
/// Dimensions are 0, 1 and 2.
///
/// The kernel of an `Item<S, 1>` is launched in one dimension only: `run` and `launch` refuse grids with several work-items in another one.
/// There its places are 0 and its sizes 1, so [`global_index`](Self::global_index) costs what it costs in C++:
///
/// ```
/// # use offload_device::{Global, Grid, Item, kernel};
/// #[kernel]
/// fn twice(item: &Item<(), 1>, y: Global<f32>) {
///     if item.global_index() < y.len() {
///         y.set(item, 2.0 * y.get(item));
///     }
/// }
///
/// # fn main() {
/// let mut y = [1.0; 100];
/// twice::run(Grid::covering(100, 64), Global::new(&mut y));
/// assert_eq!(y, [2.0; 100]);
/// # }
/// ```
pub struct Item<S = (), const DIMENSIONS: usize = 3> {
    state: device::State,
    /// Keeps a work-item on its thread: the barrier of another thread's fiber cannot be used.
    shared: PhantomData<*mut S>,
}

impl<S, const DIMENSIONS: usize> Item<S, DIMENSIONS> {
    /// Creates the value that a kernel gets.
    ///
    /// # Safety
    /// `state` describes the running work-item, the grid has one work-item in each dimension from `DIMENSIONS` on, the `Item` is not used after that work-item ends, and the workgroup's shared
    /// memory has at least `size_of::<S>()` bytes.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn new(state: device::State) -> Self {
        Self {
            state,
            shared: PhantomData,
        }
    }

    /// Returns the index of the work-item in its workgroup, in one dimension (CUDA: `threadIdx`).
    ///
    /// # Panics
    /// If the dimension is not 0, 1 or 2.
    #[inline(always)]
    #[track_caller]
    pub fn local_id(&self, dimension: u32) -> usize {
        match is_within::<DIMENSIONS>(dimension) {
            true => self.state.local_id(dimension) as usize,
            false => 0,
        }
    }

    /// Returns the index of the workgroup in the grid, in one dimension (CUDA: `blockIdx`).
    ///
    /// # Panics
    /// If the dimension is not 0, 1 or 2.
    #[inline(always)]
    #[track_caller]
    pub fn group_id(&self, dimension: u32) -> usize {
        match is_within::<DIMENSIONS>(dimension) {
            true => self.state.group_id(dimension) as usize,
            false => 0,
        }
    }

    /// Returns the number of work-items of a workgroup in one dimension (CUDA: `blockDim`).
    ///
    /// # Panics
    /// If the dimension is not 0, 1 or 2.
    #[inline(always)]
    #[track_caller]
    pub fn local_size(&self, dimension: u32) -> usize {
        match is_within::<DIMENSIONS>(dimension) {
            true => self.state.local_size(dimension) as usize,
            false => 1,
        }
    }

    /// Returns the number of workgroups of the grid in one dimension (CUDA: `gridDim`).
    ///
    /// # Panics
    /// If the dimension is not 0, 1 or 2.
    #[inline(always)]
    #[track_caller]
    pub fn group_count(&self, dimension: u32) -> usize {
        match is_within::<DIMENSIONS>(dimension) {
            true => self.state.group_count(dimension) as usize,
            false => 1,
        }
    }

    /// Returns the index of the work-item in the grid, in one dimension (CUDA: `blockIdx * blockDim + threadIdx`).
    ///
    /// # Panics
    /// If the dimension is not 0, 1 or 2.
    #[inline(always)]
    #[track_caller]
    pub fn global_id(&self, dimension: u32) -> usize {
        let (group, size) = (self.group_id(dimension), self.local_size(dimension));
        in_dimension(group, size, self.local_id(dimension))
    }

    /// Returns the number of work-items of the grid in one dimension (CUDA: `gridDim * blockDim`).
    ///
    /// # Panics
    /// If the dimension is not 0, 1 or 2.
    #[inline(always)]
    #[track_caller]
    pub fn global_size(&self, dimension: u32) -> usize {
        in_dimension(self.group_count(dimension), self.local_size(dimension), 0)
    }

    /// Returns the linear index of the work-item in the whole grid; dimension 0 varies fastest.
    ///
    /// Two work-items of a launch never have the same index. Launches refuse grids of 2⁶⁴ or more work-items.
    #[inline(always)]
    pub fn global_index(&self) -> usize {
        (self.global_id(2) * self.global_size(1) + self.global_id(1)) * self.global_size(0)
            + self.global_id(0)
    }

    /// Waits until all work-items of the workgroup reach this barrier; then each sees what the others wrote before it.
    ///
    /// All work-items of the workgroup must take the same branches to it, equally often: otherwise a launch on a GPU hangs or
    /// computes wrong results. On the CPU it panics if some work-items do not reach a barrier, or reach different ones.
    ///
    /// The CPU distinguishes barriers by their line of the source. A function that contains one and is called in several places
    /// needs `#[track_caller]`: then the barrier has the line of the call. Work-items that reach one line in different rounds of a
    /// loop do not panic.
    ///
    /// On the CPU a barrier has no effect while a panic unwinds the work-item.
    ///
    /// On the CPU the work-items of a workgroup share a thread and its thread-local variables. Do not call `barrier` in the closure of a scoped
    /// thread-local variable (crate `scoped-tls`): that crate relies on calls that end in the reverse order, and would leave a dangling
    /// pointer. GPUs have no thread-local variables.
    #[inline(always)]
    #[track_caller]
    pub fn barrier(&self) {
        self.state.barrier();
    }

    /// Returns the memory that the workgroup shares: `size_of::<S>()` bytes, not initialized.
    ///
    /// On the CPU each byte starts as `0xA5`, so that a missing initialization shows. GPUs limit its size, most to 64 KiB; the
    /// CPU does not. `S` must have an alignment of at most 16 and must not need to be dropped.
    ///
    /// Use raw places, `(*item.shared())[i] = x`, rather than references: a reference to the whole memory conflicts with the
    /// accesses of other work-items.
    #[inline(always)]
    pub fn shared(&self) -> *mut S {
        // The expansion of `kernel` checks both at the kernel. Here they hold for other callers too.
        const {
            assert!(is_shared_aligned::<&Self>() && is_shared_plain::<&Self>());
        }
        self.state.shared().cast()
    }
}

impl<S, const DIMENSIONS: usize> fmt::Debug for Item<S, DIMENSIONS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item").finish_non_exhaustive()
    }
}

/// Returns a place or a size in one dimension of the grid: so many workgroups of a size, and work-items. It never wraps.
///
/// AMD GPUs multiply 32 bits in one scalar instruction, and 64 bits in several for each lane. Their dispatch packet has 32 bits for the
/// number of work-items in a dimension (`grid_size_x` of `hsa_kernel_dispatch_packet_t`), so no launch has more.
#[inline(always)]
fn in_dimension(groups: usize, size: usize, items: usize) -> usize {
    if cfg!(target_arch = "amdgpu") {
        let whole = (groups as u32).wrapping_mul(size as u32);
        return whole.wrapping_add(items as u32) as usize;
    }
    groups * size + items
}

/// Type of a kernel's first argument.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the first argument of a kernel",
    label = "expected `&Item` or `&Item<S>`"
)]
pub trait ItemReference {
    /// Type of the shared memory.
    type Shared;
    /// Dimensions in which the grid has more than one work-item.
    const DIMENSIONS: usize;
}
impl<S, const DIMENSIONS: usize> ItemReference for &Item<S, DIMENSIONS> {
    type Shared = S;
    const DIMENSIONS: usize = DIMENSIONS;
}

/// Returns the number of dimensions of the grids of a kernel with the first argument `I`.
pub const fn dimensions<I: ItemReference>() -> usize {
    assert!(
        I::DIMENSIONS >= 1 && I::DIMENSIONS <= 3,
        "an item has 1, 2 or 3 dimensions"
    );
    I::DIMENSIONS
}

/// Returns the size of the shared memory of a kernel with the first argument `I`.
pub const fn shared_size<I: ItemReference>() -> usize {
    size_of::<I::Shared>()
}

/// Returns true if shared memory has the alignment that its type needs.
pub const fn is_shared_aligned<I: ItemReference>() -> bool {
    align_of::<I::Shared>() <= 16
}

/// Returns true if nothing is lost when shared memory is not dropped.
pub const fn is_shared_plain<I: ItemReference>() -> bool {
    !core::mem::needs_drop::<I::Shared>()
}

/// Tells whether a dimension is one of the first `DIMENSIONS`; on a GPU, an invalid one would read memory outside the launch's
/// description.
#[inline(always)]
#[track_caller]
fn is_within<const DIMENSIONS: usize>(dimension: u32) -> bool {
    assert!(
        dimension < 3,
        "expected dimension 0, 1 or 2, found {dimension}"
    );
    (dimension as usize) < DIMENSIONS
}
