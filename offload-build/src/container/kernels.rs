//! The kernels of a linked image.
//!
//! | image | a kernel is |
//! |---|---|
//! | AMD's code object | what has a kernel descriptor: an object `<name>.kd` (LLVM's AMDGPUUsage, "Symbols") |
//! | NVIDIA's cubin | a function with `STO_CUDA_ENTRY` in `st_other` (as `cuobjdump -elf` shows it) |

use object::read::elf::{ElfFile64, FileHeader as _};
use object::{Object as _, ObjectSymbol as _, SymbolFlags};
use std::collections::BTreeSet;

/// Behind the name of a kernel, that of its descriptor.
const DESCRIPTOR: &str = ".kd";
/// In `st_other` of a function that the host starts.
const STO_CUDA_ENTRY: u8 = 0x10;

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
