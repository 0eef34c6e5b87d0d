//! What NVIDIA's cubins say of their kernels: the sections `.nv.info.<kernel>`, and those of its code and memory.

use super::{Kernel, KernelError};
use object::Endianness;
use object::read::elf::ElfFile64;
use std::collections::BTreeSet;

pub(super) fn kernels(
    _file: &ElfFile64<'_, Endianness>,
    _names: &BTreeSet<String>,
) -> Result<Vec<Kernel>, KernelError> {
    Ok(Vec::new())
}
