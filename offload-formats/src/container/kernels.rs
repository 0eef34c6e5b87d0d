//! The kernels of a linked image, or of PTX, which the driver links.
//!
//! | image | a kernel is |
//! |---|---|
//! | AMD's code object | what has a kernel descriptor: an object `<name>.kd` (LLVM's AMDGPUUsage, "Symbols") |
//! | NVIDIA's cubin | a function with `STO_CUDA_ENTRY` in `st_other` (as `cuobjdump -elf` shows it) |
//! | PTX | a `.visible` or `.weak` `.entry`; before 3.1 each |
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

/// In `st_other` of a function that the host starts.
const STO_CUDA_ENTRY: u8 = 0x10;

/// The kernels of an image, by name. None in an image for a CPU.
///
/// # Errors
///
/// When the image is no ELF file of 64 bits, or what it says of its kernels is cut or makes no sense.
pub fn kernels(image: &[u8]) -> Result<Vec<Kernel>, KernelError> {
    let wrong = |error: object::Error| KernelError::new(error.to_string());
    let file = ElfFile64::<object::Endianness>::parse(image).map_err(wrong)?;
    let names = names(image).map_err(wrong)?;
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
    /// The same kernel; its mangled name tells argument kinds that the image does not.
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

/// The kernels of PTX, by name, as far as it says. What no image has before the driver makes it is nothing, or 0.
///
/// # Errors
///
/// When a kernel, or a variable in shared memory, is cut or makes no sense.
pub fn ptx_kernels(text: &[u8]) -> Result<Vec<Kernel>, KernelError> {
    let kernels = ptx::PtxText::parse(text)?.kernels()?;
    Ok(kernels.into_iter().map(Kernel::with_kinds).collect())
}

/// Which of `names`, of kernels and variables, PTX does not have, and the functions that it calls and neither it nor the
/// driver has: with them it does not load.
///
/// # Errors
///
/// As [`ptx_kernels`].
pub fn undefined_in_ptx(text: &[u8], names: &BTreeSet<String>) -> Result<Vec<String>, KernelError> {
    let text = ptx::PtxText::parse(text)?;
    let missing = names.iter().filter(|name| !text.has(name));
    let missing = missing.map(String::as_str).chain(text.undefined());
    Ok(missing.map(str::to_owned).collect())
}

/// The names of the kernels in an image, as its runtime looks them up. None in an image for a CPU.
///
/// # Errors
///
/// When it is no ELF file of 64 bits.
pub fn names(image: &[u8]) -> Result<BTreeSet<String>, object::Error> {
    let file = ElfFile64::<object::Endianness>::parse(image)?;
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
