//! Parts of the expansion of `#[kernel]`.

use core::marker::PhantomData;

use crate::Argument;
use crate::description::Layout;
use crate::signature::ArgumentKind;

/// The type of an argument. The expansion names it more than once, and the compiler shall report an invalid type once: these
/// layouts exist for every type, by [`InvalidType`], and one item of the expansion alone needs `Argument`.
pub struct ArgumentType<T>(PhantomData<T>);

impl<T: Argument> ArgumentType<T> {
    /// Layouts of both scalars.
    pub const LAYOUTS: [Layout; 2] = [Layout::of::<T::First>(), Layout::of::<T::Second>()];
    /// Kind of the argument.
    pub const KIND: ArgumentKind = T::KIND;
}

/// Stands for what types lack that are not arguments, in crates that do not compile.
pub trait InvalidType {
    /// Constant of the same type as that of `ArgumentType`.
    const LAYOUTS: [Layout; 2] = [Layout::of::<()>(); 2];
    /// Constant of the same type as that of `ArgumentType`.
    const KIND: ArgumentKind = ArgumentKind::INVALID;
}
impl<T> InvalidType for ArgumentType<T> {}

/// Counts the layouts whose size is not zero: an argument without a second scalar has `()` there, which is not passed.
pub const fn arguments_len(all: &[Layout]) -> usize {
    let (mut index, mut count) = (0, 0);
    while index < all.len() {
        count += (all[index].size > 0) as usize;
        index += 1;
    }
    count
}

/// Returns the layouts whose size is not zero.
pub const fn present_arguments<const N: usize>(all: &[Layout]) -> [Layout; N] {
    let mut present = [Layout::of::<u8>(); N];
    let (mut index, mut count) = (0, 0);
    while index < all.len() {
        if all[index].size > 0 {
            present[count] = all[index];
            count += 1;
        }
        index += 1;
    }
    present
}

/// The same item. Paths of the kernel's module skip functions: they would find another kernel of the same name.
#[diagnostic::on_unimplemented(
    message = "a kernel is an item of a module, not of a function",
    label = "the module around the function has another kernel of this name",
    note = "move the kernel out of the function, or into a `mod` in it"
)]
pub trait SameItem<T> {}
impl<T> SameItem<T> for T {}

/// Checks that the path of the kernel's module and a name find the same item.
pub const fn check_place<P, F: SameItem<P>>(_at_path: &P, _found: &F) {}

/// Keeps its items in a build for a GPU only. A macro rather than `#[cfg]` in the user's crate, where older rustc warn of
/// target architectures that they do not know.
#[doc(hidden)]
#[macro_export]
#[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
macro_rules! __gpu {
    ($($item:tt)*) => { $($item)* };
}

/// Keeps its items in a build for a GPU only.
#[doc(hidden)]
#[macro_export]
#[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
macro_rules! __gpu {
    ($($item:tt)*) => {};
}

/// Keeps its items in a build for the CPU only.
#[doc(hidden)]
#[macro_export]
#[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
macro_rules! __cpu {
    ($($item:tt)*) => { $($item)* };
}

/// Keeps its items in a build for the CPU only.
#[doc(hidden)]
#[macro_export]
#[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
macro_rules! __cpu {
    ($($item:tt)*) => {};
}

/// Keeps the first items, launches on GPUs, in a build for the CPU with the feature `gpu`; otherwise the others.
#[doc(hidden)]
#[macro_export]
#[cfg(all(
    feature = "gpu",
    not(any(target_arch = "amdgpu", target_arch = "nvptx64"))
))]
macro_rules! __launch {
    ({ $($launch:tt)* } { $($other:tt)* }) => { $($launch)* };
}

/// Keeps the first items, launches on GPUs, in a build for the CPU with the feature `gpu`; otherwise the others.
#[doc(hidden)]
#[macro_export]
#[cfg(not(all(
    feature = "gpu",
    not(any(target_arch = "amdgpu", target_arch = "nvptx64"))
)))]
macro_rules! __launch {
    ({ $($launch:tt)* } { $($other:tt)* }) => { $($other)* };
}
