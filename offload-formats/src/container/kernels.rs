//! Describes the kernels of a linked image, or of PTX, which the driver links.
//!
//! | image | mark of a kernel |
//! |---|---|
//! | AMD code object | a kernel descriptor: an object `<name>.kd` (LLVM's AMDGPUUsage, "Symbols"); in code objects of version 2 a symbol of type `STT_AMDGPU_HSA_KERNEL` |
//! | NVIDIA cubin | `STO_CUDA_ENTRY` in the function's `st_other` (as `cuobjdump -elf` shows) |
//! | PTX | a `.visible` or `.weak` `.entry`; before version 3.1 each `.entry` |
//!
//! ```
//! use offload_formats::container::kernels::ptx_kernels;
//!
//! let ptx = b".version 7.0\n.target sm_80\n.address_size 64\n\
//!     .visible .entry scale(.param .u64 data, .param .f32 factor) { ret; }";
//! let kernels = ptx_kernels(ptx)?;
//! assert_eq!(kernels[0].name, "scale");
//! assert_eq!((kernels[0].arguments.len(), kernels[0].arguments_size), (2, 12));
//! # Ok::<(), offload_formats::container::kernels::KernelError>(())
//! ```

mod amd;
mod error;
mod kernel;
mod mangled;
mod nvidia;
mod ptx;

use std::collections::BTreeSet;
use std::ops::Range;

use super::elf::Elf;
use crate::format::bytes::{ReadAt, SourceError, unless_unread};

pub use error::KernelError;
pub use kernel::{Argument, ArgumentKind, Kernel};
#[cfg(feature = "tools")]
pub(crate) use mangled::symbol_in_file;
pub use mangled::{component_at, signature, source_name};

/// Tells whether a library has a kernel under this symbol in images for one processor alone, and in host code for all that it
/// knows: rocPRIM from version 4.5 on, and hipCUB and rocThrust, which use it. Their host code starts the one for its GPU.
///
/// Source: names in the library of PyPI's `jax-rocm7-pjrt` 0.12.0.
#[must_use]
pub fn is_of_one_processor(symbol: &str) -> bool {
    symbol.starts_with("_ZN7rocprim")
        && symbol.contains("17trampoline_kernelI")
        && symbol.contains("11comp_targetI")
}

/// Lists the kernels of an image, sorted by name. An image for a CPU has none.
///
/// # Errors
///
/// Fails as [`kernels_within`] does.
// Compiled where it is called, with all that it reads a slice by: build scripts call none of it.
#[inline]
pub fn kernels(image: &[u8]) -> Result<Vec<Kernel>, KernelError> {
    kernels_within(image, 0..image.len() as u64)
}

/// Lists the kernels of the image in a range of `data`, sorted by name. Reads headers, symbols and notes, not the code.
/// An image for a CPU has none.
///
/// # Errors
///
/// Fails if the image is not an ELF file, the description of its kernels is truncated or invalid, or `data` cannot be read.
pub fn kernels_within<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<Kernel>, KernelError> {
    let unread = |problem: SourceError| KernelError::new(problem.to_string());
    unless_unread(data, elf_kernels(data, range), unread)
}

fn elf_kernels<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Result<Vec<Kernel>, KernelError> {
    let file = Elf::parse(data, range)?;
    let kernels = match object::elf::Machine(file.machine) {
        object::elf::EM_AMDGPU => amd::kernels(&file)?,
        object::elf::EM_CUDA => nvidia::kernels(&file)?,
        _ => Vec::new(),
    };
    Ok(kernels.into_iter().map(Kernel::with_kinds).collect())
}

impl Kernel {
    /// Adds the argument kinds that the mangled name tells but the image does not.
    fn with_kinds(mut self) -> Self {
        if self
            .arguments
            .iter()
            .all(|argument| argument.kind.is_some())
        {
            return self;
        }
        let kinds = mangled::parameter_kinds(&self.name);
        let kinds = kinds.filter(|kinds| kinds.len() == self.arguments.len());
        for (argument, kind) in self.arguments.iter_mut().zip(kinds.unwrap_or_default()) {
            argument.kind.get_or_insert(kind);
        }
        self
    }
}

/// Lists the kernels of PTX, sorted by name. Properties that the driver decides, such as registers, are `None` or 0.
///
/// # Errors
///
/// Fails if a kernel, or a variable in shared memory, is truncated or invalid.
pub fn ptx_kernels(text: &[u8]) -> Result<Vec<Kernel>, KernelError> {
    let text = stripped(text);
    let kernels = ptx::PtxText::parse(&text)?.kernels()?;
    Ok(kernels.into_iter().map(Kernel::with_kinds).collect())
}

/// Returns the text without comments.
fn stripped(text: &[u8]) -> String {
    String::from_utf8_lossy(&crate::format::ptx::stripped(text)).into_owned()
}

/// Reasons for which no driver loads PTX.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedPtx {
    /// Kernels and variables that are expected and missing, and functions and variables that the text uses but neither it nor the driver
    /// defines. Variables that are only declared become zeros.
    pub undefined: Vec<String>,
    /// Variables whose initial values have addresses in shared memory: there is no address before a kernel runs. clang 19 and 22
    /// write one for a table of such addresses in a kernel, `char *p[2] = {tile, tile + 16};`.
    pub initialized_with_shared: Vec<String>,
}

/// Returns the reasons for which no driver loads PTX, and what it lacks of `names`.
///
/// # Errors
///
/// Fails as [`ptx_kernels`] does.
pub fn refused_in_ptx(text: &[u8], names: &BTreeSet<String>) -> Result<RefusedPtx, KernelError> {
    let text = stripped(text);
    let text = ptx::PtxText::parse(&text)?;
    let missing = names.iter().filter(|name| !text.has(name));
    let missing = missing.map(String::as_str).chain(text.undefined());
    let initialized = text.initialized_with_shared().into_iter();
    Ok(RefusedPtx {
        undefined: missing.map(str::to_owned).collect(),
        initialized_with_shared: initialized.map(str::to_owned).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_kinds_from_a_name_with_as_many_parameters() {
        let kinds = |name: &str| {
            let kernel = Kernel {
                name: name.to_owned(),
                arguments: vec![Argument::at(0, 8), Argument::at(8, 8)],
                ..Kernel::default()
            };
            let kernel = kernel.with_kinds();
            let kinds = kernel.arguments.iter().map(|argument| argument.kind);
            kinds.collect::<Vec<_>>()
        };
        // `k(float*, double)`, and `k(float*)`.
        let both = [ArgumentKind::Pointer, ArgumentKind::Value].map(Some);
        assert_eq!(kinds("_Z1kPfd"), both);
        assert_eq!(kinds("_Z1kPf"), [None, None]);
    }

    #[test]
    fn knows_kernels_that_each_image_has_for_its_own_processor() {
        // Shortened: the names of the library have up to a thousand letters.
        let of_rocprim = "_ZN7rocprim17ROCPRIM_400500_NS6detail17trampoline_kernelINS0_14default_configENS1_\
            11comp_targetILNS1_3genE9ELNS1_11target_archE1100EEEEEvT_";
        assert!(is_of_one_processor(of_rocprim));
        for other in [
            "_ZN4mine6detail17trampoline_kernelINS0_11comp_targetILi9EEEEEvT_",
            "_ZN7rocprim17ROCPRIM_300401_NS6detail16histogram_kernelILj256EEEvT_",
        ] {
            assert!(!is_of_one_processor(other), "{other}");
        }
    }
}
