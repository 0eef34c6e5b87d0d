//! The CUDA and HIP registration: one fat binary, and every table of offload entries.
//!
//! | section                               | content                                                  |
//! |---------------------------------------|----------------------------------------------------------|
//! | `.text.startup`                       | constructor, its counterpart, the walk over one table     |
//! | entry sections                        | nothing; see [`EntryTable`]                              |
//! | `.nv_fatbin`, `.hip_fatbin`           | the fat binary                                           |
//! | `.nvFatBinSegment`, `.hipFatBinSegment` | fatbin wrapper: magic, 1, the fat binary, 0            |
//! | `.data.rel.ro`                        | 24 bytes per table, and 24 of zeros at the end           |
//! | `.bss`                                | the runtime's handle                                     |
//! | `.hip_gpubin_handle`                  | see [`super::hip_symbols`]                               |
//! | `.init_array.101`                     | the constructor's address                                |
//!
//! LLVM's object handles only the table of its own release. Here objects of several releases may be
//! linked: the fat binary is registered once, with the entries of all tables. Sections, names and
//! calls are otherwise those of `clang-linker-wrapper` 19 to 22, according to
//! `llvm/lib/Frontend/Offloading/OffloadWrapper.cpp`.

use object::{SymbolKind, elf};

pub use super::entries::EntryTable;
use super::error::in_memory;
use super::hip_symbols::HipSymbols;
use super::machine::Operand;
pub use super::runtime::Runtime;
use super::runtime::image;
use super::writer::{PRIORITY, Writer};
use super::{ElfHost, Global, RegistrationError};
use crate::container::relocatable::SectionId;
use crate::format::offload_entry;
use crate::format::pieces::{Embedded, Piece};

/// Registers a fat binary with CUDA's or HIP's runtime when the program starts.
#[derive(Clone, Copy, Debug)]
pub struct FatBinary<'a> {
    /// The runtime.
    pub runtime: Runtime,
    /// The file that the runtime loads: a CUDA fat binary, or a HIP bundle, plain or compressed.
    pub bytes: Embedded<'a>,
    /// All tables of offload entries in the host's objects, in the order of registration.
    pub tables: &'a [HostTable<'a>],
    /// HIP: symbols by which objects of clang's older driver refer to the fat binary.
    pub symbols: HipSymbols<'a>,
    /// Additional symbols to define.
    pub globals: &'a [Global<'a>],
}

/// A table of offload entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostTable<'a> {
    /// Layout of its entries.
    pub layout: offload_entry::EntryLayout,
    /// Location of the table.
    pub table: EntryTable<'a>,
}

impl<'a> FatBinary<'a> {
    /// Writes the object file.
    ///
    /// # Errors
    ///
    /// Fails if `host` has no machine code here, or a symbol exceeds the fat binary, or if the fat binary is not
    /// in memory.
    pub fn to_object(&self, host: impl Into<ElfHost>) -> Result<Vec<u8>, RegistrationError> {
        in_memory(&self.elf_pieces(host)?)
    }

    /// Writes the object file in pieces, which copy the inputs of the embedded pieces.
    pub(super) fn elf_pieces(
        &self,
        host: impl Into<ElfHost>,
    ) -> Result<Vec<Piece>, RegistrationError> {
        let mut writer = Writer::new(host)?;
        let code = writer.code;
        let instructions = match self.runtime {
            Runtime::Cuda => code.cuda,
            Runtime::Hip => code.hip,
        };
        let executable = elf::SHF_ALLOC | elf::SHF_EXECINSTR;
        let write_alloc = elf::SHF_WRITE | elf::SHF_ALLOC;
        let text = writer.section(".text", elf::SHT_PROGBITS, executable, 4)?;
        let startup = writer.startup(instructions)?;
        let tables = self.tables(&mut writer)?;
        let image = image(&mut writer, self.runtime, self.bytes)?;

        let name = self.runtime.wrapper_section();
        let record = writer.section(name, elf::SHT_PROGBITS, write_alloc, 8)?;
        writer.object.set_data(record, self.runtime.wrapper(), 8);
        let (kind, size) = (SymbolKind::Data, RECORD_SIZE);
        writer.local(".fatbin_wrapper", kind, record, 0, size);
        let image_symbol = writer.object.section_symbol(image);
        writer.relocate(record, 8, code.absolute, image_symbol, 0)?;

        let handle = writer.zeroed(8, 8);
        let name = format!(".{}.binary_handle", self.runtime.name());
        writer.local(&name, kind, handle, 0, 8);
        self.symbols.define(&mut writer, image)?;
        writer.globals(self.globals, image, text)?;
        let operands = [
            (Operand::Record, writer.object.section_symbol(record), 0),
            (Operand::Handle, writer.object.section_symbol(handle), 0),
            (Operand::Tables, writer.object.section_symbol(tables), 0),
        ];
        writer.constructor(startup, instructions, PRIORITY, &operands)?;
        writer.finish()
    }

    /// Writes the list of tables for the constructor.
    fn tables(&self, writer: &mut Writer<'a>) -> Result<SectionId, RegistrationError> {
        let mut bytes = Vec::new();
        let mut ends = Vec::new();
        for HostTable { layout, table } in self.tables {
            ends.push(table.ends(writer)?);
            bytes.extend_from_slice(&self.runtime.table_record(*layout));
        }
        bytes.extend_from_slice(&[0; TABLE_SIZE as usize]);
        let size = bytes.len() as u64;
        let flags = elf::SHF_WRITE | elf::SHF_ALLOC;
        let id = writer.section(".data.rel.ro", elf::SHT_PROGBITS, flags, 8)?;
        writer.object.set_data(id, bytes, 8);
        let name = format!(".{}.entry_tables", self.runtime.name());
        writer.local(&name, SymbolKind::Data, id, 0, size);
        let absolute = writer.code.absolute;
        for (index, ends) in ends.into_iter().enumerate() {
            let at = TABLE_SIZE * index as u64;
            writer.relocate(id, at, absolute, ends.first.0, ends.first.1)?;
            writer.relocate(id, at + 8, absolute, ends.last.0, ends.last.1)?;
        }
        Ok(id)
    }
}

/// Size of a fatbin wrapper in bytes.
const RECORD_SIZE: u64 = 24;
/// Size of a table in the list in bytes: first entry, end of entries, stride (4), two kinds (2
/// each).
const TABLE_SIZE: u64 = 24;
