//! The SYCL registration: a descriptor of the images, with the kernels of each.
//!
//! | section           | content                                                                  |
//! |-------------------|--------------------------------------------------------------------------|
//! | `.text.startup`   | constructor and destructor                                               |
//! | [`BlobSection`]   | the images, each at a multiple of 8                                      |
//! | `.rodata`         | triples, options and names of kernels, each with a NUL                   |
//! | `.data.rel.ro`    | offload entries of all images, of LLVM 21's layout: a name and nothing else |
//! |                   | 80 bytes per image, see `IMAGE_SIZE`                                   |
//! |                   | descriptor: version 1 (2), count (2, padded to 8), images, no host entries (16) |
//! | `.init_array.1`   | the constructor's address                                                |
//! | `.fini_array.1`   | the destructor's                                                         |
//!
//! Objects of `clang-linker-wrapper` 22 have another entry for each kernel, in
//! `llvm_offload_entries`. Nothing reads these entries, so this object omits them.
//!
//! Specification: the record of version 3 in `llvm/lib/Frontend/Offloading/OffloadWrapper.cpp` of
//! LLVM 22. Descriptors of Intel's compiler have other versions.

use object::{SymbolKind, elf};

pub use super::blob_section::BlobSection;
use super::error::in_memory;
use super::machine::{Operand, sycl_aarch64, sycl_x86_64};
use super::writer::Writer;
use super::{ElfHost, Global, RegistrationError};
use crate::container::relocatable::{SectionId, SymbolId};
use crate::format::offload_entry::EntryLayout;
use crate::format::pieces::{Embedded, Piece};
use crate::names::{ImageKind, LlvmRelease, OffloadKind};

/// Registers images with a SYCL runtime when the program starts.
#[derive(Clone, Copy, Debug)]
pub struct Sycl<'a> {
    /// Images in the order of registration.
    pub images: &'a [SyclImage<'a>],
    /// The section that contains the images.
    pub section: BlobSection,
    /// Additional symbols to define.
    pub globals: &'a [Global<'a>],
}

/// An image with the strings of its offload binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyclImage<'a> {
    /// The image itself.
    pub bytes: Embedded<'a>,
    /// Kind of the image.
    pub kind: ImageKind,
    /// The string `triple`.
    pub triple: &'a str,
    /// The string `symbols`: names of kernels, with newlines (LLVM 22) or NULs between them.
    pub symbols: &'a [u8],
    /// Options for the compiler at run time, in any encoding; empty in LLVM 22.
    pub compile_options: &'a [u8],
    /// Options for the linker at run time, in any encoding; empty in LLVM 22.
    pub link_options: &'a [u8],
}

impl<'a> SyclImage<'a> {
    /// Lists the names of the kernels.
    pub(crate) fn kernels(&self) -> impl Iterator<Item = &'a [u8]> {
        let names = self.symbols.split(|byte| [b'\n', 0].contains(byte));
        names.filter(|name| !name.is_empty())
    }

    /// Returns triple, compiler options and linker options, which the runtime reads up to a NUL.
    pub(crate) fn texts(&self) -> Result<[&'a [u8]; 3], RegistrationError> {
        let texts = [
            self.triple.as_bytes(),
            self.compile_options,
            self.link_options,
        ];
        match texts.iter().find(|text| text.contains(&0)) {
            None => Ok(texts),
            Some(text) => Err(RegistrationError::Name {
                name: String::from_utf8_lossy(text).into_owned(),
            }),
        }
    }
}

impl<'a> Sycl<'a> {
    /// Writes the object file.
    ///
    /// # Errors
    ///
    /// Fails like [`Self::to_pieces`], or if an image is not in memory.
    pub fn to_object(&self, host: impl Into<ElfHost>) -> Result<Vec<u8>, RegistrationError> {
        in_memory(&self.to_pieces(host)?)
    }

    /// Writes the object file in pieces, which copy the inputs of the embedded pieces.
    ///
    /// # Errors
    ///
    /// Fails if `host` has no machine code here, or there are more than 65,535 images. Fails if an image's kind
    /// does not fit into a byte, or a triple or options contain a NUL.
    pub fn to_pieces(&self, host: impl Into<ElfHost>) -> Result<Vec<Piece>, RegistrationError> {
        let count = u16::try_from(self.images.len()).map_err(|_| RegistrationError::Images {
            count: self.images.len(),
        })?;
        let host = host.into();
        let mut writer = Writer::new(host)?;
        let instructions = match elf::Machine(host.machine.number) {
            elf::EM_AARCH64 => &sycl_aarch64::SYCL,
            _ => &sycl_x86_64::SYCL,
        };
        let executable = elf::SHF_ALLOC | elf::SHF_EXECINSTR;
        let text = writer.section(".text", elf::SHT_PROGBITS, executable, 4)?;
        let startup = writer.startup(instructions)?;
        let images = self.images(&mut writer)?;
        let (data, descriptor) = self.data(count)?.write(&mut writer, images)?;
        writer.globals(self.globals, images, text)?;
        let operands = [(Operand::Descriptor, data, descriptor as i64)];
        writer.constructor(startup, instructions, PRIORITY, &operands)?;
        writer.destructor(startup, instructions, PRIORITY)?;
        writer.finish()
    }

    fn images(&self, writer: &mut Writer<'a>) -> Result<SectionId, RegistrationError> {
        let section = writer.blob_section(self.section)?;
        for (index, image) in self.images.iter().enumerate() {
            let at = writer.object.embed(section, image.bytes, 8);
            let name = format!(".sycl_offloading.{index}.data");
            let size = image.bytes.size();
            writer.local(&name, SymbolKind::Data, section, at, size);
        }
        Ok(section)
    }

    /// Lays out entries, images and the descriptor.
    fn data(&self, count: u16) -> Result<SyclData, RegistrationError> {
        let mut strings = SyclStrings::default();
        let mut bytes = Vec::new();
        let mut pointers = Vec::new();
        let mut entries = Vec::new();
        for image in self.images {
            let first = bytes.len() as u64;
            for kernel in image.kernels() {
                let at = bytes.len() as u64;
                bytes.extend_from_slice(&[0; 8]);
                let kind = OffloadKind::SYCL.raw(LlvmRelease::default());
                bytes.extend_from_slice(&[1_u16.to_le_bytes(), kind.to_le_bytes()].concat());
                bytes.resize((at + EntryLayout::V21.stride()) as usize, 0);
                pointers.push((at + 24, PointerTarget::Strings, strings.add(kernel)));
            }
            entries.push(first..bytes.len() as u64);
        }
        let records = bytes.len() as u64;
        let mut end = 0_u64;
        for (index, (image, entries)) in self.images.iter().zip(entries).enumerate() {
            let at = bytes.len() as u64;
            let kind = image.kind.raw();
            let kind =
                u8::try_from(kind).map_err(|_| RegistrationError::ImageKind { index, kind })?;
            let sycl = OffloadKind::SYCL.raw(LlvmRelease::default()) as u8;
            bytes.extend_from_slice(&[3, 0, sycl, kind]);
            bytes.resize((at + IMAGE_SIZE) as usize, 0);
            for (field, text) in (1..).zip(image.texts()?) {
                let offset = strings.add(text);
                pointers.push((at + 8 * field, PointerTarget::Strings, offset));
            }
            let start = end.next_multiple_of(8);
            end = start + image.bytes.size();
            for (field, place, offset) in [
                (4, PointerTarget::Images, start),
                (5, PointerTarget::Images, end),
                (6, PointerTarget::Data, entries.start),
                (7, PointerTarget::Data, entries.end),
            ] {
                pointers.push((at + 8 * field, place, offset));
            }
        }
        let descriptor = bytes.len() as u64;
        bytes.extend_from_slice(&[1_u16.to_le_bytes(), count.to_le_bytes()].concat());
        bytes.resize((descriptor + DESCRIPTOR_SIZE) as usize, 0);
        pointers.push((descriptor + 8, PointerTarget::Data, records));
        Ok(SyclData {
            bytes,
            pointers,
            strings,
            records,
            descriptor,
        })
    }
}

/// The sections that the constructor's argument consists of.
struct SyclData {
    /// Entries, records of images, and the descriptor.
    bytes: Vec<u8>,
    /// Each pointer: its offset in `bytes`, the section it points to, and the offset there.
    pointers: Vec<(u64, PointerTarget, u64)>,
    strings: SyclStrings,
    /// Offset of the records of images in `bytes`.
    records: u64,
    /// Offset of the descriptor in `bytes`.
    descriptor: u64,
}

impl SyclData {
    /// Writes the sections. Returns the symbol of the section of `bytes` and the descriptor's
    /// offset.
    fn write(
        self,
        writer: &mut Writer<'_>,
        images: SectionId,
    ) -> Result<(SymbolId, u64), RegistrationError> {
        let Self {
            bytes,
            pointers,
            strings,
            records,
            descriptor,
        } = self;
        let flags = elf::SHF_WRITE | elf::SHF_ALLOC;
        let data = writer.section(".data.rel.ro", elf::SHT_PROGBITS, flags, 16)?;
        writer.object.set_data(data, bytes, 16);
        let flags = elf::SHF_ALLOC;
        let rodata = writer.section(".rodata", elf::SHT_PROGBITS, flags, 1)?;
        writer.object.set_data(rodata, strings.bytes, 1);
        for (name, at, size) in [
            ("device_images", records, descriptor - records),
            ("descriptor", descriptor, DESCRIPTOR_SIZE),
        ] {
            let name = format!(".sycl_offloading.{name}");
            writer.local(&name, SymbolKind::Data, data, at, size);
        }
        let symbols = [data, rodata, images].map(|section| writer.object.section_symbol(section));
        let [data_symbol, strings, images] = symbols;
        let absolute = writer.code.absolute;
        for (at, place, offset) in pointers {
            let symbol = match place {
                PointerTarget::Data => data_symbol,
                PointerTarget::Strings => strings,
                PointerTarget::Images => images,
            };
            writer.relocate(data, at, absolute, symbol, offset)?;
        }
        Ok((data_symbol, descriptor))
    }
}

/// A section that pointers point to.
#[derive(Clone, Copy)]
enum PointerTarget {
    Data,
    Strings,
    Images,
}

#[derive(Default)]
struct SyclStrings {
    bytes: Vec<u8>,
}

impl SyclStrings {
    fn add(&mut self, string: &[u8]) -> u64 {
        let at = self.bytes.len() as u64;
        self.bytes.extend_from_slice(string);
        self.bytes.push(0);
        at
    }
}

/// Priority of the constructor and the destructor, so that they run before and after the program's
/// own.
const PRIORITY: u16 = 1;
/// Size of an image record in bytes: version 3 (2), offload kind (1), image kind (1, padded to 8).
/// The pointers follow: triple, compile options, link options, image, its end, entries, their end,
/// and two for properties, which are null.
const IMAGE_SIZE: u64 = 80;
/// Size of the descriptor in bytes.
const DESCRIPTOR_SIZE: u64 = 32;
