//! Registrations as COFF objects, for x86-64 Windows hosts.
//!
//! | section                     | content                                                       |
//! |-----------------------------|---------------------------------------------------------------|
//! | `.text.startup`             | the functions; `.pdata` and `.xdata` say how to unwind them   |
//! | entry section, `$OA`, `$OZ` | one entry of zeros each, between which linkers put the `$OE`s |
//! | image section               | the images, or the fat binary                                 |
//! | wrapper section             | of fat binaries: the fatbin wrapper                           |
//! | `.rdata`                    | what the functions refer to: a descriptor, or the tables      |
//! | `.bss`                      | of fat binaries: the runtime's handle                         |
//! | `.CRT$XCA00101`             | the constructor's address; for MinGW `.ctors.65434`           |
//!
//! Names and sections are those of `clang-linker-wrapper` 22, whose ends of a table are empty.
//! Since LLVM 23 they are entries of zeros; without them the linker may drop the ends (LLVM's pull
//! request 215390). Here the table starts after the first of them.

use object::{SymbolKind, pe};

use super::deferred::{Deferred, NEEDS_OFFLOAD_LINK};
use super::entries::EntryTable;
use super::error::{RegistrationError, check_name, in_memory};
use super::fat_binary::{FatBinary, HostTable, Runtime};
use super::global::Global;
use super::machine::{Operand, StartupCode, windows_x86_64};
use super::openmp::OpenMp;
use crate::container::elf::OFFLOADING_SECTION;
use crate::container::relocatable::{
    NewRelocation, NewSymbol, RelocatableObject, SectionId, SymbolId,
};
use crate::format::offload_entry;
use crate::format::pieces::{Embedded, Piece};

#[doc(inline)]
pub use offload_formats_core::names::host::WindowsAbi;

impl OpenMp<'_> {
    /// Writes the object for an x86-64 Windows host.
    ///
    /// # Errors
    ///
    /// Fails if an image or a symbol exceeds its blob, or the table is a part of a section: COFF has no
    /// relocatable links.
    pub fn to_coff(&self, abi: WindowsAbi) -> Result<Vec<u8>, RegistrationError> {
        in_memory(&self.coff_pieces(abi)?)
    }

    /// Writes the object file in pieces, which copy the inputs of the embedded pieces.
    pub(super) fn coff_pieces(&self, abi: WindowsAbi) -> Result<Vec<Piece>, RegistrationError> {
        let count = i32::try_from(self.images.len()).map_err(|_| RegistrationError::Images {
            count: self.images.len(),
        })?;
        let text = &windows_x86_64::OPENMP;
        let mut writer = Coff::new();
        let startup = writer.startup(text);
        let layout = offload_entry::EntryLayout::V21;
        let (first, last) = writer.ends(&self.table, self.layout().unwrap_or(layout))?;
        let images = writer.section(self.section.name(), READ_ONLY, 8);
        let data = writer.section(".rdata", READ_ONLY, 16);
        let mut pointers = Vec::new();
        let mut bytes = Vec::new();
        let images_symbol = writer.object.section_symbol(images);
        for (index, blob) in self.images.iter().enumerate() {
            let (start, end) = blob.checked(index)?;
            let at = writer.object.embed(images, blob.bytes, 8);
            let name = match index {
                0 => ".omp_offloading.device_image".to_owned(),
                _ => format!(".omp_offloading.device_image.{index}"),
            };
            writer.local(&name, images, at);
            let record = bytes.len() as u64;
            bytes.extend_from_slice(&[0; 32]);
            for (field, target) in [
                (0, (images_symbol, at + start)),
                (8, (images_symbol, at + end)),
                (16, first),
                (24, last),
            ] {
                pointers.push((record + field, target));
            }
        }
        let descriptor = bytes.len() as u64;
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.extend_from_slice(&[0; 28]);
        let data_symbol = writer.object.section_symbol(data);
        for (field, target) in [(8, (data_symbol, 0)), (16, first), (24, last)] {
            pointers.push((descriptor + field, target));
        }
        writer.object.set_data(data, bytes, 16);
        writer.local(".omp_offloading.device_images", data, 0);
        writer.local(".omp_offloading.descriptor", data, descriptor);
        for (at, (symbol, addend)) in pointers {
            writer.address(data, at, symbol, addend);
        }
        writer.keep(data);
        writer.globals(self.globals, images)?;
        let operands = [(Operand::Descriptor, data_symbol, descriptor as i64)];
        writer.constructor(startup, text, abi, &operands)?;
        writer.finish()
    }

    /// Returns the layout of the entries, if the section's name determines it. OpenMP's runtime
    /// detects it itself.
    fn layout(&self) -> Option<offload_entry::EntryLayout> {
        let EntryTable::StartStop { section, .. } = self.table else {
            return None;
        };
        offload_entry::EntryLayout::oldest_in(section)
    }
}

impl FatBinary<'_> {
    /// Writes the object for an x86-64 Windows host.
    ///
    /// # Errors
    ///
    /// Fails if a symbol exceeds the fat binary, or a table is a part of a section: COFF has no
    /// relocatable links.
    pub fn to_coff(&self, abi: WindowsAbi) -> Result<Vec<u8>, RegistrationError> {
        in_memory(&self.coff_pieces(abi)?)
    }

    /// Writes the object file in pieces, which copy the inputs of the embedded pieces.
    pub(super) fn coff_pieces(&self, abi: WindowsAbi) -> Result<Vec<Piece>, RegistrationError> {
        let text = match self.runtime {
            Runtime::Cuda => &windows_x86_64::CUDA,
            Runtime::Hip => &windows_x86_64::HIP,
        };
        let mut writer = Coff::new();
        let startup = writer.startup(text);
        let mut list = Vec::new();
        let mut pointers = Vec::new();
        for HostTable { layout, table } in self.tables {
            let (first, last) = writer.ends(table, *layout)?;
            let at = list.len() as u64;
            list.extend_from_slice(&self.runtime.table_record(*layout));
            pointers.extend([(at, first), (at + 8, last)]);
        }
        list.extend_from_slice(&[0; 24]);
        let tables = writer.section(".rdata", READ_ONLY, 8);
        writer.object.set_data(tables, list, 8);
        let name = self.runtime.name();
        writer.local(&format!(".{name}.entry_tables"), tables, 0);
        writer.keep(tables);
        for (at, (symbol, addend)) in pointers {
            writer.address(tables, at, symbol, addend);
        }

        let alignment = self.runtime.alignment();
        let image = writer.section(self.runtime.section(), READ_ONLY, alignment);
        writer.object.embed(image, self.bytes, alignment);
        let padding = Embedded::Zeros(self.runtime.padding(self.bytes.size()));
        writer.object.embed(image, padding, 1);
        writer.local(".fatbin_image", image, 0);
        let record = writer.section(self.runtime.wrapper_section(), READ_ONLY, 8);
        let fields = self.runtime.wrapper();
        writer.object.set_data(record, fields, 8);
        writer.local(".fatbin_wrapper", record, 0);
        let image_symbol = writer.object.section_symbol(image);
        writer.address(record, 8, image_symbol, 0);

        let handle = writer.zeroed(".bss", 8);
        writer.local(&format!(".{name}.binary_handle"), handle, 0);
        for symbol in self.symbols.fat_binary {
            check_name(symbol)?;
            writer.global(symbol, SymbolKind::Data, image, 0);
        }
        if !self.symbols.handle.is_empty() {
            let handle = writer.section(".hip_gpubin_handle", READ_WRITE, 8);
            writer.object.append(handle, &[0; 8], 8);
            for symbol in self.symbols.handle {
                check_name(symbol)?;
                writer.global(symbol, SymbolKind::Data, handle, 0);
            }
        }
        writer.globals(self.globals, image)?;
        let operands = [
            (Operand::Record, writer.object.section_symbol(record), 0),
            (Operand::Handle, writer.object.section_symbol(handle), 0),
            (Operand::Tables, writer.object.section_symbol(tables), 0),
        ];
        writer.constructor(startup, text, abi, &operands)?;
        writer.finish()
    }
}

impl Deferred<'_> {
    /// Writes the object for an x86-64 Windows host. A constructor refers to
    /// [`NEEDS_OFFLOAD_LINK`], because linkers that collect garbage keep only constructors.
    ///
    /// # Errors
    ///
    /// Fails if `anchor` is not a symbol name.
    pub fn to_coff(&self, abi: WindowsAbi) -> Result<Vec<u8>, RegistrationError> {
        in_memory(&self.coff_pieces(abi)?)
    }

    /// Writes the object file in pieces, which copy the inputs of the embedded pieces.
    pub(super) fn coff_pieces(&self, abi: WindowsAbi) -> Result<Vec<Piece>, RegistrationError> {
        let mut writer = Coff::new();
        let binaries = writer.section(OFFLOADING_SECTION, EXCLUDED, 8);
        writer.object.embed(binaries, self.binaries, 8);
        let demand = writer.undefined(NEEDS_OFFLOAD_LINK);
        writer.hook(abi, demand);
        writer.globals(&[Global::Anchor { name: self.anchor }], binaries)?;
        writer.finish()
    }
}

/// Returns an object that defines the anchor `name` and nothing else.
pub(super) fn anchor(name: &str) -> Result<Vec<u8>, RegistrationError> {
    let mut writer = Coff::new();
    let data = writer.section(".rdata", READ_ONLY, 8);
    writer.globals(&[Global::Anchor { name }], data)?;
    in_memory(&writer.finish()?)
}

const READ_ONLY: pe::SectionFlags =
    pe::SectionFlags(pe::IMAGE_SCN_CNT_INITIALIZED_DATA.0 | pe::IMAGE_SCN_MEM_READ.0);
/// The flags of embedded images in clang 22: linkers omit the section.
const EXCLUDED: pe::SectionFlags =
    pe::SectionFlags(pe::IMAGE_SCN_LNK_REMOVE.0 | pe::IMAGE_SCN_MEM_DISCARDABLE.0);
const READ_WRITE: pe::SectionFlags = pe::SectionFlags(READ_ONLY.0 | pe::IMAGE_SCN_MEM_WRITE.0);
const CODE: pe::SectionFlags = pe::SectionFlags(
    pe::IMAGE_SCN_CNT_CODE.0 | pe::IMAGE_SCN_MEM_EXECUTE.0 | pe::IMAGE_SCN_MEM_READ.0,
);
const ZEROED: pe::SectionFlags = pe::SectionFlags(
    pe::IMAGE_SCN_CNT_UNINITIALIZED_DATA.0 | pe::IMAGE_SCN_MEM_READ.0 | pe::IMAGE_SCN_MEM_WRITE.0,
);

/// A symbol and an offset.
type Address = (SymbolId, u64);

/// A COFF object under construction.
struct Coff<'a> {
    object: RelocatableObject<'a>,
    /// Symbols at entries that must stay in the program.
    kept: Vec<SymbolId>,
}

impl Coff<'_> {
    fn new() -> Self {
        let mut object = RelocatableObject::default();
        object.add_file_symbol("offload.wrapper.module");
        Self {
            object,
            kept: Vec::new(),
        }
    }

    fn section(&mut self, name: &str, flags: pe::SectionFlags, align: u64) -> SectionId {
        self.object.add_section(name, 0, flags.0.into(), align)
    }

    fn zeroed(&mut self, name: &str, size: u64) -> SectionId {
        let id = self.section(name, ZEROED, 8);
        self.object.set_zeros(id, size);
        id
    }

    fn symbol(&mut self, symbol: NewSymbol, section: SectionId, value: u64) {
        self.object.add_symbol(NewSymbol {
            section: Some(section),
            value,
            ..symbol
        });
    }

    fn local(&mut self, name: &str, section: SectionId, value: u64) {
        let symbol = NewSymbol {
            name: name.into(),
            kind: SymbolKind::Data,
            is_local: true,
            ..NewSymbol::default()
        };
        self.symbol(symbol, section, value);
    }

    fn global(&mut self, name: &str, kind: SymbolKind, section: SectionId, value: u64) {
        let symbol = NewSymbol {
            name: name.into(),
            kind,
            ..NewSymbol::default()
        };
        self.symbol(symbol, section, value);
    }

    /// Returns the ends of a table. For a section, defines entries of zeros at both ends; the table
    /// is between them.
    fn ends(
        &mut self,
        table: &EntryTable<'_>,
        layout: offload_entry::EntryLayout,
    ) -> Result<(Address, Address), RegistrationError> {
        let (section, entries) = match *table {
            EntryTable::StartStop { section, entries } => (section, entries),
            EntryTable::SectionRange { section, .. } => {
                return Err(RegistrationError::Name {
                    name: section.to_owned(),
                });
            }
            EntryTable::Symbol { symbol, size } => {
                check_name(symbol)?;
                let symbol = self.undefined(symbol);
                return Ok(((symbol, 0), (symbol, size)));
            }
        };
        check_name(section)?;
        if section.starts_with('/') {
            // A longer name would be in the string table.
            return Err(RegistrationError::Name {
                name: section.to_owned(),
            });
        }
        let stride = layout.stride();
        let zeros = vec![0; stride as usize];
        let [first, last] = ["$OA", "$OZ"].map(|letter| {
            let id = self.section(&format!("{section}{letter}"), READ_ONLY, 8);
            self.object.append(id, &zeros, 8);
            self.object.section_symbol(id)
        });
        for entry in entries {
            check_name(entry)?;
            let symbol = self.undefined(entry);
            self.kept.push(symbol);
        }
        Ok(((first, stride), (last, 0)))
    }

    /// Refers to everything that must stay in the program, at the end of a section that stays
    /// itself.
    fn keep(&mut self, section: SectionId) {
        for symbol in std::mem::take(&mut self.kept) {
            let at = self.object.append(section, &[0; 4], 4);
            let typ = pe::IMAGE_REL_AMD64_ADDR32NB;
            self.relocate(section, at, typ, (symbol, 0));
        }
    }

    fn startup(&mut self, text: &StartupCode) -> SectionId {
        let startup = self.section(".text.startup", CODE, 1);
        self.object.append(startup, text.bytes, 16);
        for function in text.functions {
            let symbol = NewSymbol {
                name: function.name.into(),
                kind: SymbolKind::Text,
                is_local: true,
                ..NewSymbol::default()
            };
            self.symbol(symbol, startup, function.offset);
        }
        startup
    }

    /// Links `startup` to the symbols of its operands, makes its first function a constructor, and
    /// adds its unwind information.
    fn constructor(
        &mut self,
        startup: SectionId,
        text: &StartupCode,
        abi: WindowsAbi,
        data: &[(Operand, SymbolId, i64)],
    ) -> Result<(), RegistrationError> {
        let own = self.object.section_symbol(startup);
        let mut operands = data.to_vec();
        operands.push((Operand::Startup, own, 0));
        for name in text.library_functions() {
            let symbol = self.undefined(name);
            operands.push((Operand::Runtime(name), symbol, 0));
        }
        text.relocate(&mut self.object, startup, &operands);
        self.hook(abi, own);

        let xdata = self.section(".xdata", READ_ONLY, 4);
        self.object.append(xdata, text.unwind, 4);
        let xdata = self.object.section_symbol(xdata);
        let pdata = self.section(".pdata", READ_ONLY, 4);
        for ((unwind, start), function) in text.unwind_fixups.iter().zip(text.functions) {
            let at = self.object.append(pdata, &[0; 12], 4);
            let end = start + function.size;
            for (field, symbol, offset) in [(0, own, *start), (4, own, end), (8, xdata, *unwind)] {
                let typ = pe::IMAGE_REL_AMD64_ADDR32NB;
                self.relocate(pdata, at + field, typ, (symbol, offset));
            }
        }
        Ok(())
    }

    /// Adds a function to the constructors.
    fn hook(&mut self, abi: WindowsAbi, function: SymbolId) {
        let hook = match abi {
            WindowsAbi::Msvc => self.section(".CRT$XCA00101", READ_ONLY, 8),
            // 65535 minus the priority: the last of the list runs first.
            WindowsAbi::Gnu => self.section(".ctors.65434", READ_WRITE, 8),
        };
        self.object.append(hook, &[0; 8], 8);
        self.address(hook, 0, function, 0);
    }

    fn undefined(&mut self, name: &str) -> SymbolId {
        self.object.add_symbol(NewSymbol {
            name: name.into(),
            ..NewSymbol::default()
        })
    }

    fn address(&mut self, section: SectionId, offset: u64, symbol: SymbolId, addend: u64) {
        let typ = pe::IMAGE_REL_AMD64_ADDR64;
        self.relocate(section, offset, typ, (symbol, addend));
    }

    fn relocate(
        &mut self,
        section: SectionId,
        offset: u64,
        typ: pe::RelocationType,
        (symbol, addend): Address,
    ) {
        let relocation = NewRelocation {
            offset,
            symbol,
            addend: addend as i64,
            relocation_type: typ.0.into(),
        };
        self.object.relocate(section, relocation);
    }

    fn finish(self) -> Result<Vec<Piece>, RegistrationError> {
        self.object.to_coff().map_err(RegistrationError::Object)
    }

    /// Defines the additional symbols; `bytes` is the section of embedded bytes.
    fn globals(
        &mut self,
        globals: &[Global<'_>],
        bytes: SectionId,
    ) -> Result<(), RegistrationError> {
        let available = self.object.size(bytes);
        let text = self.section(".text", CODE, 1);
        for global in globals {
            check_name(global.name())?;
            match *global {
                Global::Bytes { name, offset, size } => {
                    let end = offset.saturating_add(size);
                    if end > available {
                        return Err(RegistrationError::Range {
                            what: format!("symbol `{name}`"),
                            end,
                            size: available,
                        });
                    }
                    self.global(name, SymbolKind::Data, bytes, offset);
                }
                // `ret`.
                Global::Anchor { name } => {
                    let at = self.object.append(text, &[0xc3], 16);
                    self.global(name, SymbolKind::Text, text, at);
                }
                // `ret`, too: constructors call it. Several objects of a program may define it, and linkers keep one.
                Global::Marker { name } => {
                    let own = self.section(".text", CODE | pe::IMAGE_SCN_LNK_COMDAT, 1);
                    self.object.append(own, &[0xc3], 16);
                    // The symbol of a COMDAT section comes first.
                    self.object.section_symbol(own);
                    self.global(name, SymbolKind::Text, own, 0);
                }
            }
        }
        Ok(())
    }
}
