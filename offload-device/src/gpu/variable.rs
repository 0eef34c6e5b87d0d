//! Variables of loaded modules.

use super::driver::Address;
use super::{Error, Stream};
use crate::Element;

/// A variable of a loaded module in device memory: `__device__` or `__constant__`.
///
/// ```no_run
/// # use offload_device::gpu::*;
/// # fn run(module: &Module) -> Result<(), Error> {
/// // __constant__ float filter[3];
/// let filter = module.variable("filter")?;
/// // SAFETY: no kernel that is running reads it.
/// unsafe { filter.copy_from(&[0.25f32, 0.5, 0.25])? }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Variable<'a> {
    /// Stream of the module, which stays borrowed and therefore loaded.
    pub(super) stream: &'a Stream,
    pub(super) name: String,
    pub(super) address: Address,
    /// Size in bytes.
    pub(super) size: usize,
}

impl Variable<'_> {
    /// Returns the size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the address in the memory of the GPU.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Replaces the value by the bytes of a slice, after all that the module's stream does before. Waits for the end of the
    /// copy.
    ///
    /// # Errors
    /// [`Error::VariableSize`] if the slice has another size; if a function of the API or an earlier launch fails.
    ///
    /// # Safety
    /// - The bytes are a value of the variable.
    /// - No kernel of another stream accesses the variable during the copy.
    /// - Kernels in Rust do not read it: they have only constants.
    /// - Its name does not start with `__offload_signature$`: a safe `launch` reads these variables.
    pub unsafe fn copy_from<T: Element>(&self, elements: &[T]) -> Result<(), Error> {
        self.check_size(size_of_val(elements))?;
        let from = elements.as_ptr().cast();
        // SAFETY: the sizes are equal; the caller guarantees that nothing else accesses the variable.
        unsafe { self.stream.copy_to_device(self.address, from, self.size) }
    }

    /// Copies the value to a slice, after all that the module's stream does before. Waits for the end of the copy.
    ///
    /// # Errors
    /// [`Error::VariableSize`] if the slice has another size; if a function of the API or an earlier launch fails.
    pub fn copy_to<T: Element>(&self, elements: &mut [T]) -> Result<(), Error> {
        self.check_size(size_of_val(elements))?;
        let to = elements.as_mut_ptr().cast();
        // SAFETY: the sizes are equal; every bit pattern is a value of an `Element`.
        unsafe { self.stream.copy_to_host(to, self.address, self.size) }
    }

    fn check_size(&self, slice: usize) -> Result<(), Error> {
        match slice == self.size {
            true => Ok(()),
            false => Err(Error::VariableSize {
                variable: self.name.clone(),
                size: self.size,
                slice,
            }),
        }
    }
}
