//! Symbols by which HIP objects of clang's older driver refer to the fat binary.
//!
//! Up to LLVM 22, `clang -x hip -fgpu-rdc` without the new driver makes objects that register
//! themselves. They need the fat binary as `__hip_fatbin_<id>` and a shared handle as
//! `__hip_gpubin_handle_<id>`, with an ID for each source. clang defines these symbols in an object
//! that it makes at the link. Here one object defines them: alone ([`HipFatBinary`]), or with a
//! registration for objects of the new driver
//! ([`FatBinary::symbols`](super::fat_binary::FatBinary)).
//!
//! Specification: `constructGenerateObjFileFromHIPFatBinary` in
//! `clang/lib/Driver/ToolChains/HIPUtility.cpp` of LLVM 22.

#[cfg(feature = "tools")]
mod hip_fat_binary;

use object::{SymbolKind, elf};

use super::error::{RegistrationError, check_name};
use super::writer::Writer;
use crate::container::relocatable::SectionId;

#[cfg(feature = "tools")]
pub use hip_fat_binary::HipFatBinary;

/// Symbols that objects of the older driver leave undefined. All symbols of a list are at the same
/// address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HipSymbols<'a> {
    /// Symbols of the fat binary: `__hip_fatbin_<id>` each, or `__hip_fatbin` for a single object.
    pub fat_binary: &'a [&'a str],
    /// Symbols of the runtime's handle of 8 bytes: `__hip_gpubin_handle_<id>` each.
    pub handle: &'a [&'a str],
}

impl HipSymbols<'_> {
    /// Defines the symbols, protected like clang's. `image` is the section of the fat binary.
    pub(super) fn define(
        &self,
        writer: &mut Writer<'_>,
        image: SectionId,
    ) -> Result<(), RegistrationError> {
        let size = writer.object.size(image);
        protected(writer, self.fat_binary, image, size)?;
        if !self.handle.is_empty() {
            let flags = elf::SHF_WRITE | elf::SHF_ALLOC;
            let handle = writer.section(".hip_gpubin_handle", elf::SHT_PROGBITS, flags, 8)?;
            writer.object.append(handle, &[0; 8], 8);
            protected(writer, self.handle, handle, 8)?;
        }
        Ok(())
    }
}

fn protected(
    writer: &mut Writer<'_>,
    names: &[&str],
    section: SectionId,
    size: u64,
) -> Result<(), RegistrationError> {
    for name in names {
        check_name(name)?;
        writer.global(name, SymbolKind::Data, section, size, elf::STV_PROTECTED);
    }
    Ok(())
}
