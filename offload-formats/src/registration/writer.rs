//! An ELF object under construction, with the common parts of all registration objects.

#[cfg(feature = "tools")]
mod destructor;

use object::elf;
use object::write::{
    Object, Relocation, SectionId, StandardSegment, Symbol, SymbolId, SymbolSection,
};
use object::{
    BinaryFormat, Endianness, FileFlags, RelocationFlags, SectionFlags, SectionKind, SymbolFlags,
    SymbolKind, SymbolScope,
};

use super::blob_section::BlobSection;
use super::error::{RegistrationError, check_alignment, check_name};
use super::global::Global;
use super::machine::{Code, Operand, StartupCode};
use crate::container::elf::{Machine, SHT_LLVM_OFFLOADING};

/// Priority of constructors for CUDA, HIP and OpenMP: LLVM's since 19.
pub(super) const PRIORITY: u16 = 101;

/// The writer of the crate `object`; every type and flag is explicit.
pub(super) struct Writer<'a> {
    pub(super) object: Object<'a>,
    pub(super) code: &'static Code,
}

impl<'a> Writer<'a> {
    pub(super) fn new(host: Machine) -> Result<Self, RegistrationError> {
        let code = Code::of(host.number).ok_or(RegistrationError::Machine {
            machine: host.number,
        })?;
        let mut object = Object::new(BinaryFormat::Elf, code.architecture, Endianness::Little);
        object.flags = FileFlags::Elf {
            os_abi: elf::ELFOSABI_NONE,
            abi_version: 0,
            e_flags: elf::FileFlags(host.flags),
        };
        Ok(Self { object, code })
    }

    /// Claims the GNU ABI, which `SHF_GNU_RETAIN` requires.
    pub(super) fn claim_gnu_abi(&mut self) {
        if let FileFlags::Elf { os_abi, .. } = &mut self.object.flags {
            *os_abi = elf::ELFOSABI_GNU;
        }
    }

    pub(super) fn section(
        &mut self,
        name: &str,
        sh_type: elf::SectionType,
        sh_flags: elf::SectionFlags,
        align: u64,
    ) -> Result<SectionId, RegistrationError> {
        check_name(name)?;
        let align = check_alignment(name, align)?;
        let segment = self.object.segment_name(StandardSegment::Data).to_vec();
        let id = self
            .object
            .add_section(segment, name.into(), SectionKind::Data);
        let section = self.object.section_mut(id);
        section.flags = SectionFlags::Elf { sh_type, sh_flags };
        section.append_data(&[], align);
        Ok(id)
    }

    /// Reserves `size` bytes of `.bss`, which are zero when the program starts.
    pub(super) fn zeroed(&mut self, size: u64, align: u64) -> SectionId {
        let flags = SectionFlags::Elf {
            sh_type: elf::SHT_NOBITS,
            sh_flags: elf::SHF_WRITE | elf::SHF_ALLOC,
        };
        let segment = self.object.segment_name(StandardSegment::Data).to_vec();
        let kind = SectionKind::UninitializedData;
        let id = self.object.add_section(segment, b".bss".to_vec(), kind);
        self.object.section_mut(id).flags = flags;
        self.object.append_section_bss(id, size, align);
        id
    }

    pub(super) fn local(
        &mut self,
        name: &str,
        kind: SymbolKind,
        section: SectionId,
        value: u64,
        size: u64,
    ) -> SymbolId {
        self.object.add_symbol(Symbol {
            name: name.into(),
            value,
            size,
            kind,
            scope: SymbolScope::Compilation,
            weak: false,
            section: SymbolSection::Section(section),
            flags: SymbolFlags::None,
        })
    }

    /// Defines a symbol at the start of `section` with a visibility of ELF.
    pub(super) fn global(
        &mut self,
        name: &str,
        kind: SymbolKind,
        section: SectionId,
        size: u64,
        visibility: elf::SymbolVisibility,
    ) {
        let st_info = elf::STB_GLOBAL
            | match kind {
                SymbolKind::Text => elf::STT_FUNC,
                _ => elf::STT_OBJECT,
            };
        self.object.add_symbol(Symbol {
            name: name.into(),
            value: 0,
            size,
            kind,
            scope: SymbolScope::Dynamic,
            weak: false,
            section: SymbolSection::Section(section),
            flags: SymbolFlags::Elf {
                st_info,
                st_other: visibility.into(),
            },
        });
    }

    pub(super) fn undefined(&mut self, name: &str, visibility: elf::SymbolVisibility) -> SymbolId {
        self.object.add_symbol(Symbol {
            name: name.into(),
            value: 0,
            size: 0,
            kind: SymbolKind::Unknown,
            scope: SymbolScope::Unknown,
            weak: false,
            section: SymbolSection::Undefined,
            flags: SymbolFlags::Elf {
                st_info: elf::STB_GLOBAL | elf::STT_NOTYPE,
                st_other: visibility.into(),
            },
        })
    }

    /// Defines the additional symbols; `bytes` is the section of embedded bytes, `text` an empty
    /// one.
    pub(super) fn globals(
        &mut self,
        globals: &[Global<'_>],
        bytes: SectionId,
        text: SectionId,
    ) -> Result<(), RegistrationError> {
        let available = self.object.section(bytes).data().len() as u64;
        for global in globals {
            check_name(global.name())?;
            let (section, value, size, kind, scope) = match *global {
                Global::Bytes { offset, size, .. } => {
                    let end = offset.saturating_add(size);
                    if end > available {
                        return Err(RegistrationError::Range {
                            what: format!("symbol `{}`", global.name()),
                            end,
                            size: available,
                        });
                    }
                    (bytes, offset, size, SymbolKind::Data, SymbolScope::Dynamic)
                }
                Global::Anchor { .. } => {
                    let size = self.code.empty_function.len() as u64;
                    let at = self
                        .object
                        .append_section_data(text, self.code.empty_function, 4);
                    (text, at, size, SymbolKind::Text, SymbolScope::Dynamic)
                }
                Global::Marker { .. } => (text, 0, 0, SymbolKind::Data, SymbolScope::Linkage),
            };
            self.object.add_symbol(Symbol {
                name: global.name().into(),
                value,
                size,
                kind,
                scope,
                weak: matches!(global, Global::Marker { .. }),
                section: SymbolSection::Section(section),
                flags: SymbolFlags::None,
            });
        }
        Ok(())
    }

    pub(super) fn relocate(
        &mut self,
        section: SectionId,
        offset: u64,
        r_type: elf::RelocationType,
        symbol: SymbolId,
        addend: u64,
    ) -> Result<(), RegistrationError> {
        let addend = i64::try_from(addend).map_err(|_| RegistrationError::Range {
            what: "an offset in the embedded bytes".into(),
            end: addend,
            size: i64::MAX as u64,
        })?;
        let flags = RelocationFlags::Elf { r_type };
        let relocation = Relocation {
            offset,
            symbol,
            addend,
            flags,
        };
        let added = self.object.add_relocation(section, relocation);
        added.map_err(RegistrationError::object)
    }

    /// Writes the functions of `text` to `.text.startup`, without relocations.
    pub(super) fn startup(&mut self, text: &StartupCode) -> Result<SectionId, RegistrationError> {
        let flags = elf::SHF_ALLOC | elf::SHF_EXECINSTR;
        let startup = self.section(".text.startup", elf::SHT_PROGBITS, flags, 16)?;
        self.object.append_section_data(startup, text.bytes, 16);
        self.object
            .add_file_symbol(b"offload.wrapper.module".to_vec());
        for function in text.functions {
            let (kind, at) = (SymbolKind::Text, function.offset);
            self.local(function.name, kind, startup, at, function.size);
        }
        Ok(startup)
    }

    /// Links `startup` to the operands of its instructions, makes its first function a constructor,
    /// and adds its unwind information. `data` contains the [`Operand`]s that are not functions: a
    /// section's symbol and an offset.
    pub(super) fn constructor(
        &mut self,
        startup: SectionId,
        text: &StartupCode,
        priority: u16,
        data: &[(Operand, SymbolId, i64)],
    ) -> Result<(), RegistrationError> {
        let startup_symbol = self.object.section_symbol(startup);
        let mut operands = data.to_vec();
        operands.push((Operand::Startup, startup_symbol, 0));
        for name in text.library_functions() {
            let symbol = self.undefined(name, elf::STV_DEFAULT);
            operands.push((Operand::Runtime(name), symbol, 0));
        }
        text.relocate(&mut self.object, startup, &operands)?;
        let (name, flags) = (
            format!(".init_array.{priority}"),
            elf::SHF_WRITE | elf::SHF_ALLOC,
        );
        let init = self.section(&name, elf::SHT_INIT_ARRAY, flags, 8)?;
        self.object.append_section_data(init, &[0; 8], 8);
        let absolute = self.code.absolute;
        self.relocate(init, 0, absolute, startup_symbol, 0)?;

        let unwind = self.section(".eh_frame", self.code.unwind_type, elf::SHF_ALLOC, 8)?;
        self.object.append_section_data(unwind, text.unwind, 8);
        let relocation = self.code.unwind_relocation;
        for (at, function) in text.unwind_fixups {
            self.relocate(unwind, *at, relocation, startup_symbol, *function)?;
        }
        Ok(())
    }

    /// Creates the section of images, still empty.
    pub(super) fn blob_section(
        &mut self,
        section: BlobSection,
    ) -> Result<SectionId, RegistrationError> {
        let sh_type = match section {
            BlobSection::Offloading => elf::SectionType(SHT_LLVM_OFFLOADING),
            BlobSection::Finished => elf::SHT_PROGBITS,
        };
        self.section(section.name(), sh_type, elf::SHF_ALLOC, 8)
    }

    /// Declares that the stack is not executable; otherwise bfd warns.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, RegistrationError> {
        self.section(
            ".note.GNU-stack",
            elf::SHT_PROGBITS,
            elf::SectionFlags(0),
            1,
        )?;
        self.object.write().map_err(RegistrationError::object)
    }
}
