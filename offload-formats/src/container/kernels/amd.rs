//! The kernels of AMD code objects: names and sizes from symbols, the rest from notes.
//!
//! | code object | name | size of the code | description |
//! |---|---|---|---|
//! | version 3 to 6 | `<name>.kd`, a descriptor | function `<name>` | note `NT_AMDGPU_METADATA` of `AMDGPU` ([`metadata`]) |
//! | version 2 | a symbol of type `STT_AMDGPU_HSA_KERNEL` | that symbol, without a record of 256 bytes | note `NT_AMD_HSA_METADATA` of `AMD` ([`version2`]) |
//!
//! clang 16 writes version 2 on request (`-mcode-object-version=2`), clang 19 does not.
//!
//! Specification: <https://llvm.org/docs/AMDGPUUsage.html#code-object>.

mod metadata;
mod version2;

use super::{Kernel, KernelError};
use crate::by_name::ByName;
use crate::container::elf::{Binding, Elf, ElfSymbol, SymbolPlace, SymbolTable};
use crate::format::bytes::ReadAt;

/// Owner and type of notes in MessagePack.
const METADATA: (&[u8], u32) = (b"AMDGPU", 32);
/// Owner and type of notes of version 2.
const METADATA_2: (&[u8], u32) = (b"AMD", 10);
/// Type of a kernel's symbol in version 2 (`STT_AMDGPU_HSA_KERNEL`).
const KERNEL_2: u8 = 10;
/// Size of the record before the code of a kernel in version 2 (`amd_kernel_code_t`).
const RECORD_2: u64 = 256;

/// Describes the kernels of a code object, sorted by name.
pub(super) fn kernels<'d, R: ReadAt<'d>>(file: &Elf<'d, R>) -> Result<Vec<Kernel>, KernelError> {
    let mut symbols = file.symbols(SymbolTable::All)?;
    symbols.extend(file.symbols(SymbolTable::Dynamic)?);
    let mut kernels = names(symbols);
    if kernels.is_empty() {
        return Ok(Vec::new());
    }
    // One note for each linked object.
    for note in file.notes()? {
        let described = match (note.owner, note.note_type) {
            METADATA => metadata::kernels(note.content)
                .map_err(|problem| format!("note NT_AMDGPU_METADATA: {problem}")),
            METADATA_2 => version2::kernels(note.content)
                .map_err(|problem| format!("note NT_AMD_HSA_METADATA: {problem}")),
            _ => continue,
        };
        for kernel in described.map_err(KernelError::new)? {
            // If several objects define a kernel, the linker keeps the first.
            if let Some(found) = kernels.get_mut(&kernel.name) {
                found.description.get_or_insert(kernel);
            }
        }
    }
    Ok(kernels.iter().map(described).collect())
}

fn described((name, found): (&str, &FoundKernel)) -> Kernel {
    Kernel {
        code_size: found.code_size,
        name: name.to_owned(),
        ..found.description.clone().unwrap_or_default()
    }
}

/// A kernel that a symbol names.
#[derive(Default)]
struct FoundKernel {
    code_size: Option<u64>,
    description: Option<Kernel>,
}

/// Returns the kernels by name, as the runtime looks them up, with the sizes of their code.
fn names(mut symbols: Vec<ElfSymbol<'_>>) -> ByName<FoundKernel> {
    symbols.retain(|symbol| {
        symbol.binding != Binding::Local && symbol.place != SymbolPlace::Undefined
    });
    let mut kernels = ByName::default();
    for symbol in &symbols {
        let Ok(name) = std::str::from_utf8(symbol.name) else {
            continue;
        };
        if symbol.symbol_type == KERNEL_2 {
            let code_size = symbol.size.checked_sub(RECORD_2);
            let description = None;
            kernels.insert(
                name.to_owned(),
                FoundKernel {
                    code_size,
                    description,
                },
            );
        } else if let Some(name) = name.strip_suffix(metadata::DESCRIPTOR) {
            kernels.insert(name.to_owned(), FoundKernel::default());
        }
    }
    for symbol in &symbols {
        let kernel = std::str::from_utf8(symbol.name).ok();
        let kernel = kernel.and_then(|name| kernels.get_mut(name));
        if let (object::elf::STT_FUNC, Some(kernel)) =
            (object::elf::SymbolType(symbol.symbol_type), kernel)
        {
            kernel.code_size = Some(symbol.size);
        }
    }
    kernels
}
