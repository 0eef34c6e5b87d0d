//! An ELF object under construction, with what all registration objects have.

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

/// Of constructors of CUDA, HIP and OpenMP: LLVM's since 19.
pub(super) const PRIORITY: u16 = 101;

/// `object`'s writer, with every type and flag said outright.
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

    /// SHF_GNU_RETAIN means something only in objects that claim the GNU ABI.
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

    /// Takes `size` bytes of `.bss`, which are zero when the program starts.
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

    /// At the start of `section`; the visibility is of ELF's own.
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

    /// Defines what others ask for: `bytes` is the section of embedded bytes, `text` an empty one.
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

    /// The functions of `text`, not yet linked to anything, in `.text.startup`.
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

    /// Links `startup` to what its instructions name, makes its first function a constructor, and
    /// says how to unwind it. `data` holds what [`Operand`]s other than functions are: a section's
    /// symbol and an offset.
    pub(super) fn constructor(
        &mut self,
        startup: SectionId,
        text: &StartupCode,
        priority: u16,
        data: &[(Operand, SymbolId, i64)],
    ) -> Result<(), RegistrationError> {
        let startup_symbol = self.object.section_symbol(startup);
        let mut runtime: Vec<(&str, SymbolId)> = Vec::new();
        for fixup in text.fixups {
            let (symbol, base) = match fixup.to {
                Operand::Startup => (startup_symbol, 0),
                Operand::Runtime(name) => {
                    let known = runtime.iter().find(|(known, _)| *known == name);
                    let symbol = match known {
                        Some((_, symbol)) => *symbol,
                        None => {
                            let symbol = self.undefined(name, elf::STV_DEFAULT);
                            runtime.push((name, symbol));
                            symbol
                        }
                    };
                    (symbol, 0)
                }
                operand => data
                    .iter()
                    .find(|(known, ..)| *known == operand)
                    .map(|(_, symbol, offset)| (*symbol, *offset))
                    .expect("an object defines what its text names"),
            };
            let relocation = Relocation {
                offset: fixup.offset,
                symbol,
                addend: base + fixup.addend,
                flags: fixup.flags,
            };
            let added = self.object.add_relocation(startup, relocation);
            added.map_err(RegistrationError::object)?;
        }
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

    /// The section that holds images, still empty.
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

    /// Says that no executable stack is needed, without which bfd warns.
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
