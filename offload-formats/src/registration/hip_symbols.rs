//! The names by which HIP objects of clang's old driver know the fat binary.
//!
//! Up to LLVM 22, `clang -x hip -fgpu-rdc` without the new driver makes objects that register
//! themselves. They want the fat binary as `__hip_fatbin_<id>` and the handle that they share as
//! `__hip_gpubin_handle_<id>`, with an ID for each source; clang gives these in an object made when
//! it links. Here one object gives them, alone ([`HipFatBinary`]) or with a registration of the
//! same bytes for objects of the new driver ([`FatBinary::symbols`](super::fat_binary::FatBinary)).
//!
//! Specification: `constructGenerateObjFileFromHIPFatBinary` in
//! `clang/lib/Driver/ToolChains/HIPUtility.cpp` of LLVM 22.

use object::write::SectionId;
use object::{SymbolKind, elf};

use super::error::{RegistrationError, check_name};
use super::runtime::{self, Runtime};
use super::writer::Writer;
use crate::container::elf::Machine;

/// Symbols that objects of the old driver leave undefined. All of a list mean the same place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HipSymbols<'a> {
    /// The fat binary: `__hip_fatbin_<id>` each, or `__hip_fatbin` of one object alone.
    pub fat_binary: &'a [&'a str],
    /// Eight bytes for the runtime's handle: `__hip_gpubin_handle_<id>` each.
    pub handle: &'a [&'a str],
}

/// A fat binary for objects that register themselves: nothing here is a constructor.
#[derive(Clone, Copy, Debug)]
pub struct HipFatBinary<'a> {
    /// HIP's bundle, plain or compressed.
    pub bytes: &'a [u8],
    /// What the objects call it.
    pub symbols: HipSymbols<'a>,
}

impl HipFatBinary<'_> {
    /// The object file.
    ///
    /// # Errors
    ///
    /// When there is no support for `host`, or a name is empty or holds a NUL.
    pub fn to_object(&self, host: Machine) -> Result<Vec<u8>, RegistrationError> {
        let mut writer = Writer::new(host)?;
        let image = runtime::image(&mut writer, Runtime::Hip, self.bytes)?;
        self.symbols.define(&mut writer, image)?;
        writer.finish()
    }
}

impl HipSymbols<'_> {
    /// Defines them, protected as clang's are: `image` is the section of the fat binary.
    pub(super) fn define(
        &self,
        writer: &mut Writer<'_>,
        image: SectionId,
    ) -> Result<(), RegistrationError> {
        let size = writer.object.section(image).data().len() as u64;
        protected(writer, self.fat_binary, image, size)?;
        if !self.handle.is_empty() {
            let flags = elf::SHF_WRITE | elf::SHF_ALLOC;
            let handle = writer.section(".hip_gpubin_handle", elf::SHT_PROGBITS, flags, 8)?;
            writer.object.append_section_data(handle, &[0; 8], 8);
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
