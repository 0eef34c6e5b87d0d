//! The OpenMP registration: passes a binary descriptor of the images to libomptarget.
//!
//! | section           | content                                                            |
//! |-------------------|--------------------------------------------------------------------|
//! | `.text.startup`   | constructor and its counterpart                                    |
//! | entry section     | nothing; see [`EntryTable`]                                        |
//! | [`BlobSection`]   | the blobs, each at a multiple of 8                                 |
//! | `.data.rel.ro`    | 32 bytes per image: start, end, first entry, end of entries        |
//! |                   | descriptor: count (4, padded to 8), images, first entry, end       |
//! | `.init_array.101` | the constructor's address                                          |
//!
//! On x86_64 with [`EntryTable::StartStop`] and [`BlobSection::Offloading`], sections, symbols,
//! relocations and machine code are those of `clang-linker-wrapper` 19 to 22. Only the entry
//! section is also retained, because lld's `--gc-sections` would drop it.

use std::ops::Range;

use object::{SymbolKind, elf};

pub use super::blob_section::BlobSection;
pub use super::entries::EntryTable;
use super::error::in_memory;
use super::machine::Operand;
use super::writer::{PRIORITY, Writer};
use super::{ElfHost, Global, RegistrationError};
use crate::container::relocatable::SectionId;
use crate::format::pieces::{Embedded, Piece};

/// Registers images with libomptarget when the program starts.
#[derive(Clone, Copy, Debug)]
pub struct OpenMp<'a> {
    /// Images in the order of registration.
    pub images: &'a [Blob<'a>],
    /// Location of the offload entries for kernels and globals.
    pub table: EntryTable<'a>,
    /// The section that contains the blobs.
    pub section: BlobSection,
    /// Additional symbols to define.
    pub globals: &'a [Global<'a>],
}

/// Embedded bytes that contain the image to register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob<'a> {
    /// The embedded bytes, usually an offload binary.
    pub bytes: Embedded<'a>,
    /// Range of the image in `bytes`.
    pub image: Range<u64>,
}

impl Blob<'_> {
    /// Returns start and end of the image, after a check against the bytes.
    pub(super) fn checked(&self, index: usize) -> Result<(u64, u64), RegistrationError> {
        let size = self.bytes.size();
        let Range { start, end } = self.image;
        match end <= size && start <= end {
            true => Ok((start, end)),
            false => Err(RegistrationError::Range {
                what: format!("image {index}"),
                end,
                size,
            }),
        }
    }
}

impl<'a> OpenMp<'a> {
    /// Writes the object file.
    ///
    /// # Errors
    ///
    /// Fails if `host` has no machine code here, or an image or a symbol exceeds its blob, or if a blob is not in memory.
    pub fn to_object(&self, host: impl Into<ElfHost>) -> Result<Vec<u8>, RegistrationError> {
        in_memory(&self.elf_pieces(host)?)
    }

    /// Writes the object file in pieces, which copy the inputs of the embedded pieces.
    pub(super) fn elf_pieces(
        &self,
        host: impl Into<ElfHost>,
    ) -> Result<Vec<Piece>, RegistrationError> {
        let count = i32::try_from(self.images.len()).map_err(|_| RegistrationError::Images {
            count: self.images.len(),
        })?;
        let mut writer = Writer::new(host)?;
        let code = writer.code;
        let executable = elf::SHF_ALLOC | elf::SHF_EXECINSTR;

        let text = writer.section(".text", elf::SHT_PROGBITS, executable, 4)?;
        let startup = writer.startup(code.openmp)?;
        let ends = self.table.ends(&mut writer)?;
        let (blobs, images) = self.blob_section(&mut writer)?;
        let write_alloc = elf::SHF_WRITE | elf::SHF_ALLOC;
        let data = writer.section(".data.rel.ro", elf::SHT_PROGBITS, write_alloc, 16)?;
        let descriptor = IMAGE_SIZE * self.images.len() as u64;
        let mut table = vec![0; self.images.len() * IMAGE_SIZE as usize];
        table.extend_from_slice(&count.to_le_bytes());
        table.resize(table.len() + DESCRIPTOR_SIZE as usize - 4, 0);
        writer.object.set_data(data, table, 16);

        let mut object = |name: &str, section, at, size| {
            let name = format!(".omp_offloading.{name}");
            writer.local(&name, SymbolKind::Data, section, at, size);
        };
        object("descriptor", data, descriptor, DESCRIPTOR_SIZE);
        object("device_images", data, 0, descriptor);
        for (index, blob) in images.iter().enumerate() {
            let name = match index {
                0 => "device_image".to_owned(),
                _ => format!("device_image.{index}"),
            };
            object(&name, blobs, blob.start, blob.end - blob.start);
        }

        let blobs_symbol = writer.object.section_symbol(blobs);
        let data_symbol = writer.object.section_symbol(data);
        let mut point =
            |at, (symbol, addend)| writer.relocate(data, at, code.absolute, symbol, addend);
        for (index, (blob, at)) in self.images.iter().zip(&images).enumerate() {
            let record = IMAGE_SIZE * index as u64;
            point(record, (blobs_symbol, at.start + blob.image.start))?;
            point(record + 8, (blobs_symbol, at.start + blob.image.end))?;
            point(record + 16, ends.first)?;
            point(record + 24, ends.last)?;
        }
        point(descriptor + 8, (data_symbol, 0))?;
        point(descriptor + 16, ends.first)?;
        point(descriptor + 24, ends.last)?;

        writer.globals(self.globals, blobs, text)?;
        let operands = [(Operand::Descriptor, data_symbol, descriptor as i64)];
        writer.constructor(startup, code.openmp, PRIORITY, &operands)?;
        writer.finish()
    }

    /// Writes the blobs, and returns their offsets in the section.
    fn blob_section(
        &self,
        writer: &mut Writer<'a>,
    ) -> Result<(SectionId, Vec<Range<u64>>), RegistrationError> {
        let id = writer.blob_section(self.section)?;
        let mut ranges = Vec::new();
        for (index, blob) in self.images.iter().enumerate() {
            blob.checked(index)?;
            let start = writer.object.embed(id, blob.bytes, 8);
            ranges.push(start..start + blob.bytes.size());
        }
        Ok((id, ranges))
    }
}

/// Size of an image record in bytes.
const IMAGE_SIZE: u64 = 32;
/// Size of the descriptor in bytes, with the padding after its count.
const DESCRIPTOR_SIZE: u64 = 32;
