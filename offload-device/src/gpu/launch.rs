//! Launches of kernels in Rust.

use super::arguments::Arguments;
use super::{Api, Error, Module};
use crate::Grid;
use crate::description::{Description, Layout};

/// Launches a kernel in Rust. The module of the kernel calls this function.
///
/// # Safety
/// `description` is that of the kernel, and `append` appends each of its arguments, in order.
#[doc(hidden)]
pub unsafe fn launch(
    description: &Description,
    module: &Module,
    grid: Grid,
    append: impl FnOnce(&mut Arguments<'_>),
) -> Result<(), Error> {
    let mut arguments = Arguments::new(module.stream());
    append(&mut arguments);
    debug_assert_eq!(
        arguments.bytes.len(),
        Layout::buffer_size(description.arguments),
        "the arguments of a launch are those of the description"
    );
    if !grid.is_empty() {
        grid.check(description)
            .map_err(|problem| Error::Launch { problem })?;
        check_for_hip(description.name, module, grid)?;
    }
    let kernel = module.kernel(description.name)?;
    module.check_signature(description)?;
    // SAFETY: the image's kernel has the same signature: it takes arguments of these types, and needs no more shared memory. Its accesses
    // are checked (see the documentation of `Global`).
    unsafe { kernel.launch_bytes(grid, description.shared, arguments) }
}

/// Refuses a grid of more than 2³² − 1 work-items in a dimension, which HIP counts in 32 bits.
fn check_for_hip(name: &str, module: &Module, grid: Grid) -> Result<(), Error> {
    let is_too_large = |(groups, items): (u32, u32)| groups.checked_mul(items).is_none();
    let is_hip = module.stream().device().api() == Api::Hip;
    if is_hip && grid.groups.into_iter().zip(grid.items).any(is_too_large) {
        return Err(Error::Launch {
            problem: format!(
                "kernel `{name}`: expected less than 2^32 work-items in each dimension, found {:?} workgroups of {:?}",
                grid.groups, grid.items
            ),
        });
    }
    Ok(())
}
