//! Describes the kernels of a linked image, or of PTX, which the driver links.
//!
//! | image | mark of a kernel |
//! |---|---|
//! | AMD code object | a kernel descriptor: an object `<name>.kd` (LLVM's AMDGPUUsage, "Symbols") |
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

use object::read::elf::{ElfFile64, FileHeader as _};
use object::{Object as _, ObjectSymbol as _, SymbolFlags};
use std::collections::BTreeSet;

use amd::DESCRIPTOR;

pub use error::KernelError;
pub use kernel::{Argument, ArgumentKind, Kernel};
pub use mangled::source_name;

/// Flag in `st_other` of a kernel.
const STO_CUDA_ENTRY: u8 = 0x10;

/// Lists the kernels of an image, sorted by name. An image for a CPU has none.
///
/// # Errors
///
/// Fails if the image is not a 64-bit ELF file, or the description of its kernels is truncated or invalid.
pub fn kernels(image: &[u8]) -> Result<Vec<Kernel>, KernelError> {
    let file = parse(image)?;
    let names = names(image)?;
    let known = match file.elf_header().e_machine(file.endian()) {
        object::elf::EM_AMDGPU => amd::kernels(&file)?,
        object::elf::EM_CUDA => nvidia::kernels(&file, &names)?,
        _ => Vec::new(),
    };
    let described = |name: String| {
        let kernel = known.iter().find(|kernel| kernel.name == name);
        let kernel = kernel.cloned().unwrap_or(Kernel {
            name,
            ..Kernel::default()
        });
        kernel.with_kinds()
    };
    Ok(names.into_iter().map(described).collect())
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
    let kernels = ptx::PtxText::parse(text)?.kernels()?;
    Ok(kernels.into_iter().map(Kernel::with_kinds).collect())
}

/// Lists the kernels and variables of `names` that PTX does not define, and the functions that it calls but neither
/// it nor the driver defines. The driver does not load PTX with undefined functions.
///
/// # Errors
///
/// Fails as [`ptx_kernels`] does.
pub fn undefined_in_ptx(text: &[u8], names: &BTreeSet<String>) -> Result<Vec<String>, KernelError> {
    let text = ptx::PtxText::parse(text)?;
    let missing = names.iter().filter(|name| !text.has(name));
    let missing = missing.map(String::as_str).chain(text.undefined());
    Ok(missing.map(str::to_owned).collect())
}

fn parse(image: &[u8]) -> Result<ElfFile64<'_, object::Endianness>, KernelError> {
    ElfFile64::parse(image).map_err(|error| KernelError::new(error.to_string()))
}

/// Lists the names of an image's kernels, as its runtime looks them up. An image for a CPU has none.
///
/// # Errors
///
/// Fails if the image is not a 64-bit ELF file.
fn names(image: &[u8]) -> Result<BTreeSet<String>, KernelError> {
    let file = parse(image)?;
    let machine = file.elf_header().e_machine(file.endian());
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let defined = symbols.filter(|symbol| !symbol.is_undefined() && symbol.is_global());
    let names = defined.filter_map(|symbol| {
        let name = symbol.name().ok()?;
        match machine {
            object::elf::EM_AMDGPU => name.strip_suffix(DESCRIPTOR),
            object::elf::EM_CUDA => {
                let SymbolFlags::Elf { st_other, .. } = symbol.flags() else {
                    return None;
                };
                (st_other.0 & STO_CUDA_ENTRY != 0).then_some(name)
            }
            _ => None,
        }
    });
    Ok(names.map(str::to_owned).collect())
}
