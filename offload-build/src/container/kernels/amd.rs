//! What AMD's code objects say of their kernels: the note `NT_AMDGPU_METADATA`, in MessagePack
//! (LLVM's AMDGPUUsage, "Code Object V3 Metadata" and later).

use super::{Kernel, KernelError};
use object::Endianness;
use object::read::elf::ElfFile64;

pub(super) fn kernels(_file: &ElfFile64<'_, Endianness>) -> Result<Vec<Kernel>, KernelError> {
    Ok(Vec::new())
}
