//! Kernels that compile without warnings, in a crate without unsafe code.
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, unreachable_pub, unused_qualifications)]
#![allow(dead_code)]

use offload_device::{Global as Memory, Item as WorkItem, kernel};

/// Type of a module further up.
pub struct Shared([f32; 4]);

/// Module of kernels.
pub mod inner {
    use super::{Memory, WorkItem, kernel};

    #[kernel(threads = 1_024,)]
    pub(super) fn restricted(item: &WorkItem<super::Shared>, mut x: u32, y: Memory<u32>) {
        x += 1;
        y.set(item, x);
        item.shared();
    }

    #[kernel(threads = 0x20u32)]
    pub(in super::inner) fn in_path(_item: &WorkItem) {}

    #[kernel]
    pub(self) fn in_self(_item: &WorkItem<()>) {}

    /// Nested.
    pub mod nested {
        /// Kernel for the crate, whose name is that of a constant of its module.
        #[offload_device::kernel]
        pub(in super::super) fn run(_item: &offload_device::Item) {}
    }
}

/// A pointer to a function and a type with a comma.
#[kernel]
#[allow(clippy::too_many_arguments)]
#[cfg(not(any()))]
#[cfg_attr(all(), doc = "More.")]
pub fn types(_item: &WorkItem<[fn(u32, u32) -> Option<(u8, u8)>; 2]>, _x: &[[f32; { 2 > 1 } as usize]], _y: Memory<'_, f64>) {}

/// A function with these attributes has no warnings either.
#[kernel]
#[deprecated(note = "use `types`")]
#[must_use]
#[allow(non_snake_case)]
pub fn Old(_item: &WorkItem) {}

/// The module has this name, too.
#[kernel]
#[expect(non_snake_case, reason = "a name of a paper")]
pub fn Named(_item: &WorkItem, _x: &[u32]) {}

/// Elements of `allowed`.
#[deprecated]
pub type Words = [u32];

/// A type that the kernel allows.
#[kernel]
#[allow(deprecated)]
pub fn allowed(_item: &WorkItem, _x: &Words) {}

macro_rules! kernels {
    ($($visibility:vis $name:ident($item:ident: $first:ty, $argument:ident: $type:ty);)*) => {$(
        /// Comes from a macro.
        #[kernel]
        $visibility fn $name($item: $first, $argument: $type) {
            let _ = ($item, $argument);
        }
    )*};
}
kernels! {
    from_macro(item: &WorkItem, x: &[u32]);
    pub public_from_macro(item: &WorkItem<[u32; 2]>, x: Memory<u32>);
    pub(crate) restricted_from_macro(item: &WorkItem, x: f32);
}

fn main() {
    inner::restricted::run(offload_device::cpu::Grid::new(1, 1), 1, Memory::new(&mut [0]));
    restricted_from_macro::run(offload_device::cpu::Grid::new(1, 1), 1.0);
}
