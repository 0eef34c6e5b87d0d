//! The OpenMP registration: a binary descriptor of the images, given to libomptarget.
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
//! relocations and machine code are those of `clang-linker-wrapper` 19 to 22; the entry section
//! alone is also retained, because lld's `--gc-sections` would take it.

use std::borrow::Cow;
use std::ops::Range;

use object::write::SectionId;
use object::{SymbolKind, elf};

use super::machine::Operand;
use super::{Error, Global, Writer};
use crate::container::elf::{FINISHED_SECTION, Machine, OFFLOADING_SECTION, SHT_LLVM_OFFLOADING};

/// What gives images to libomptarget when the program starts.
#[derive(Clone, Copy, Debug)]
pub struct OpenMp<'a> {
    /// In the order of registration.
    pub images: &'a [Blob<'a>],
    /// Where the runtime finds the host's side of kernels and globals.
    pub table: EntryTable<'a>,
    /// The section that holds the blobs.
    pub section: BlobSection,
    /// Further symbols to define.
    pub globals: &'a [Global<'a>],
}

/// Embedded bytes with the image that is registered somewhere inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob<'a> {
    /// What is embedded, as a rule an offload binary.
    pub bytes: &'a [u8],
    /// Where the image is in `bytes`.
    pub image: Range<u64>,
}

/// How the object names the offload entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryTable<'a> {
    /// Everything in `section` of the linked output, by the linker's `__start_` and `__stop_`.
    StartStop {
        /// Section name; a C identifier.
        section: &'a str,
    },
    /// The first `size` bytes of the section that a relocatable link makes out of this object's
    /// (empty) `section` and those of the objects after it.
    SectionRange {
        /// Section name.
        section: &'a str,
        /// Bytes of all offload entries.
        size: u64,
        /// `sh_flags` of that section in the host's objects.
        flags: u64,
        /// `sh_addralign` of that section in the host's objects.
        alignment: u64,
    },
}

/// The section that holds the blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobSection {
    /// `.llvm.offloading`, with the type that linker wrappers look for: for a final link.
    Offloading,
    /// `.offloading.images`, ordinary data: no linker wrapper links these images again.
    Finished,
}

impl BlobSection {
    /// The name of the section.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Offloading => OFFLOADING_SECTION,
            Self::Finished => FINISHED_SECTION,
        }
    }
}

impl<'a> OpenMp<'a> {
    /// The object file.
    ///
    /// # Errors
    ///
    /// When there is no machine code for `host`, or an image or a symbol lies outside its blob.
    pub fn to_object(&self, host: Machine) -> Result<Vec<u8>, Error> {
        let count = i32::try_from(self.images.len()).map_err(|_| Error::Images {
            count: self.images.len(),
        })?;
        let mut writer = Writer::new(host)?;
        let code = writer.code;
        let write_alloc = elf::SHF_WRITE | elf::SHF_ALLOC;
        let executable = elf::SHF_ALLOC | elf::SHF_EXECINSTR;

        let text = writer.section(".text", elf::SHT_PROGBITS, executable, 4)?;
        let startup = writer.section(".text.startup", elf::SHT_PROGBITS, executable, 16)?;
        writer.object.append_section_data(startup, code.startup, 16);
        let entries = self.entry_section(&mut writer)?;
        let (blobs, images) = self.blob_section(&mut writer)?;
        let data = writer.section(".data.rel.ro", elf::SHT_PROGBITS, write_alloc, 16)?;
        let descriptor = IMAGE_SIZE * self.images.len() as u64;
        let mut table = vec![0; self.images.len() * IMAGE_SIZE as usize];
        table.extend_from_slice(&count.to_le_bytes());
        table.resize(table.len() + DESCRIPTOR_SIZE as usize - 4, 0);
        writer.object.set_section_data(data, table, 16);
        let init = writer.section(".init_array.101", elf::SHT_INIT_ARRAY, write_alloc, 8)?;
        writer.object.append_section_data(init, &[0; 8], 8);

        writer
            .object
            .add_file_symbol(b"offload.wrapper.module".to_vec());
        let startup_symbol = writer.object.section_symbol(startup);
        let name = |suffix| format!(".omp_offloading.{suffix}");
        let (function, object) = (SymbolKind::Text, SymbolKind::Data);
        writer.local(
            &name("descriptor_reg"),
            function,
            startup,
            0,
            code.register_size,
        );
        writer.local(
            &name("descriptor"),
            object,
            data,
            descriptor,
            DESCRIPTOR_SIZE,
        );
        let end = code.startup.len() as u64;
        writer.local(
            &name("descriptor_unreg"),
            function,
            startup,
            code.unregister_offset,
            end - code.unregister_offset,
        );
        for (index, blob) in images.iter().enumerate() {
            let suffix = match index {
                0 => "device_image".to_owned(),
                _ => format!("device_image.{index}"),
            };
            writer.local(
                &format!(".omp_offloading.{suffix}"),
                object,
                blobs,
                blob.start,
                blob.end - blob.start,
            );
        }
        let blobs_symbol = writer.object.section_symbol(blobs);
        writer.local(&name("device_images"), object, data, 0, descriptor);
        let data_symbol = writer.object.section_symbol(data);

        let register = writer.undefined("__tgt_register_lib", elf::STV_DEFAULT);
        let atexit = writer.undefined("atexit", elf::STV_DEFAULT);
        let unregister = writer.undefined("__tgt_unregister_lib", elf::STV_DEFAULT);
        let (first, last) = match self.table {
            EntryTable::StartStop { section } => {
                let first = format!("__start_{section}");
                let last = format!("__stop_{section}");
                (
                    (writer.undefined(&first, elf::STV_HIDDEN), 0),
                    (writer.undefined(&last, elf::STV_HIDDEN), 0),
                )
            }
            EntryTable::SectionRange { size, .. } => {
                let symbol = writer.object.section_symbol(entries);
                ((symbol, 0), (symbol, size))
            }
        };

        for fixup in code.fixups {
            let (symbol, base) = match fixup.to {
                Operand::Descriptor => (data_symbol, descriptor as i64),
                Operand::Startup => (startup_symbol, 0),
                Operand::Register => (register, 0),
                Operand::Atexit => (atexit, 0),
                Operand::Unregister => (unregister, 0),
            };
            writer.relocate_by(
                startup,
                fixup.offset,
                fixup.r_type,
                symbol,
                base + fixup.addend,
            )?;
        }
        let point = |writer: &mut Writer<'_>, at, (symbol, addend)| {
            writer.relocate(data, at, code.absolute, symbol, addend)
        };
        for (index, (blob, at)) in self.images.iter().zip(&images).enumerate() {
            let record = IMAGE_SIZE * index as u64;
            point(
                &mut writer,
                record,
                (blobs_symbol, at.start + blob.image.start),
            )?;
            point(
                &mut writer,
                record + 8,
                (blobs_symbol, at.start + blob.image.end),
            )?;
            point(&mut writer, record + 16, first)?;
            point(&mut writer, record + 24, last)?;
        }
        point(&mut writer, descriptor + 8, (data_symbol, 0))?;
        point(&mut writer, descriptor + 16, first)?;
        point(&mut writer, descriptor + 24, last)?;
        writer.relocate(init, 0, code.absolute, startup_symbol, 0)?;

        writer.globals(self.globals, blobs, text)?;
        let eh_frame = writer.section(".eh_frame", code.eh_frame_type, elf::SHF_ALLOC, 8)?;
        writer
            .object
            .append_section_data(eh_frame, code.eh_frame, 8);
        for (at, function) in code.eh_frame_fixups {
            writer.relocate(
                eh_frame,
                at,
                code.eh_frame_relocation,
                startup_symbol,
                function,
            )?;
        }
        writer.finish()
    }

    /// The section must exist even when no object has entries, or its ends would be undefined.
    fn entry_section(&self, writer: &mut Writer<'_>) -> Result<SectionId, Error> {
        match self.table {
            EntryTable::StartStop { section } => {
                writer.claim_gnu_abi();
                let flags = elf::SHF_ALLOC | elf::SHF_GNU_RETAIN;
                let id = writer.section(section, elf::SHT_PROGBITS, flags, 8)?;
                let dummy = format!("__dummy.{section}");
                writer.local(&dummy, SymbolKind::Data, id, 0, 0);
                Ok(id)
            }
            EntryTable::SectionRange {
                section,
                flags,
                alignment,
                ..
            } => writer.section(
                section,
                elf::SHT_PROGBITS,
                elf::SectionFlags(flags),
                alignment,
            ),
        }
    }

    /// The blobs, and where each is in the section.
    fn blob_section(&self, writer: &mut Writer<'a>) -> Result<(SectionId, Vec<Range<u64>>), Error> {
        let mut ranges = Vec::new();
        let mut end = 0_u64;
        for (index, blob) in self.images.iter().enumerate() {
            let size = blob.bytes.len() as u64;
            if blob.image.end > size || blob.image.start > blob.image.end {
                return Err(Error::Range {
                    what: format!("image {index}"),
                    end: blob.image.end,
                    size,
                });
            }
            let start = end.next_multiple_of(8);
            end = start + size;
            ranges.push(start..end);
        }
        let sh_type = match self.section {
            BlobSection::Offloading => elf::SectionType(SHT_LLVM_OFFLOADING),
            BlobSection::Finished => elf::SHT_PROGBITS,
        };
        let id = writer.section(self.section.name(), sh_type, elf::SHF_ALLOC, 8)?;
        let bytes = match self.images {
            [only] => Cow::Borrowed(only.bytes),
            several => {
                let mut bytes = Vec::new();
                for (blob, at) in several.iter().zip(&ranges) {
                    bytes.resize(at.start as usize, 0);
                    bytes.extend_from_slice(blob.bytes);
                }
                Cow::Owned(bytes)
            }
        };
        writer.object.set_section_data(id, bytes, 8);
        Ok((id, ranges))
    }
}

/// Bytes of an image record.
const IMAGE_SIZE: u64 = 32;
/// Bytes of the descriptor, with the padding after its count.
const DESCRIPTOR_SIZE: u64 = 32;
