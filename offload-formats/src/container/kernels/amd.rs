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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::elf::sample::{SampleSection, elf_file, symbol_table};
    use object::elf;

    /// A note on the kernel `k` that has so many registers.
    fn note(registers: u8) -> Vec<u8> {
        let parts: [&[u8]; 7] = [
            b"\x81\xaeamdhsa.kernels\x91\x85",
            b"\xb5.kernarg_segment_size\0",
            b"\xb9.group_segment_fixed_size\0",
            b"\xbb.private_segment_fixed_size\0",
            b"\xa7.symbol\xa4k.kd",
            b"\xab.vgpr_count",
            &[registers],
        ];
        let content = parts.concat();
        let sizes = [7, content.len() as u32, METADATA.1];
        let mut note = [&sizes.map(u32::to_le_bytes).concat(), &b"AMDGPU\0\0"[..]].concat();
        note.extend(content);
        note.resize(note.len().next_multiple_of(4), 0);
        note
    }

    #[test]
    fn keeps_the_first_description_of_a_kernel_as_linkers_keep_its_code() {
        let (symbols, notes) = (symbol_table(&[(1, 1)]), [note(7), note(9)].concat());
        let section = |kind: elf::SectionType, content| SampleSection {
            kind: kind.0,
            flags: 0,
            address: 0,
            link: 1,
            content,
        };
        let sections = [
            section(elf::SHT_SYMTAB, &symbols[..]),
            section(elf::SHT_NOTE, &notes),
        ];
        let file = elf_file(elf::ET_DYN.0, elf::EM_AMDGPU.0, b"\0k.kd\0", &sections);
        let file = Elf::parse(&file[..], 0..file.len() as u64).unwrap();
        let found = kernels(&file).unwrap();
        let found = found
            .iter()
            .map(|kernel| (&kernel.name[..], kernel.registers));
        assert!(found.eq([("k", Some(7))]));
    }
}
