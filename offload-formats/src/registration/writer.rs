//! An ELF object under construction, with the common parts of all registration objects.

#[cfg(feature = "tools")]
mod destructor;

use object::{SymbolKind, elf};

use super::blob_section::BlobSection;
use super::elf_host::ElfHost;
use super::error::{RegistrationError, check_alignment, check_name};
use super::global::Global;
use super::machine::{Code, Operand, StartupCode};
use crate::container::elf::SHT_LLVM_OFFLOADING;
use crate::container::large::ImagePlacement;
use crate::container::relocatable::{
    NewRelocation, NewSymbol, RelocatableObject, SectionId, SymbolId,
};
use crate::format::pieces::Piece;

/// Priority of constructors for CUDA, HIP and OpenMP: LLVM's since 19.
pub(super) const PRIORITY: u16 = 101;

/// An object for an ELF host.
pub(super) struct Writer<'a> {
    pub(super) object: RelocatableObject<'a>,
    host: ElfHost,
    os_abi: elf::OsAbi,
    pub(super) code: &'static Code,
}

impl<'a> Writer<'a> {
    pub(super) fn new(host: impl Into<ElfHost>) -> Result<Self, RegistrationError> {
        let host = host.into();
        let machine = host.machine.number;
        let code = Code::of(machine).ok_or(RegistrationError::Machine { machine })?;
        Ok(Self {
            object: RelocatableObject::default(),
            host,
            os_abi: elf::ELFOSABI_NONE,
            code,
        })
    }

    /// Claims the GNU ABI, which `SHF_GNU_RETAIN` requires.
    pub(super) fn claim_gnu_abi(&mut self) {
        self.os_abi = elf::ELFOSABI_GNU;
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
        Ok(self.object.add_section(name, sh_type.0, sh_flags.0, align))
    }

    /// Reserves `size` bytes of `.bss`, which are zero when the program starts.
    pub(super) fn zeroed(&mut self, size: u64, align: u64) -> SectionId {
        let (nobits, flags) = (elf::SHT_NOBITS.0, elf::SHF_WRITE | elf::SHF_ALLOC);
        let id = self.object.add_section(".bss", nobits, flags.0, align);
        self.object.set_zeros(id, size);
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
        self.object.add_symbol(NewSymbol {
            name: name.into(),
            value,
            size,
            kind,
            is_local: true,
            section: Some(section),
            ..NewSymbol::default()
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
        self.object.add_symbol(NewSymbol {
            name: name.into(),
            size,
            kind,
            section: Some(section),
            visibility,
            ..NewSymbol::default()
        });
    }

    pub(super) fn undefined(&mut self, name: &str, visibility: elf::SymbolVisibility) -> SymbolId {
        self.object.add_symbol(NewSymbol {
            name: name.into(),
            visibility,
            ..NewSymbol::default()
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
        let available = self.object.size(bytes);
        for global in globals {
            check_name(global.name())?;
            let (section, value, size, kind, visibility) = match *global {
                Global::Bytes { offset, size, .. } => {
                    let end = offset.saturating_add(size);
                    if end > available {
                        return Err(RegistrationError::Range {
                            what: format!("symbol `{}`", global.name()),
                            end,
                            size: available,
                        });
                    }
                    (bytes, offset, size, SymbolKind::Data, elf::STV_DEFAULT)
                }
                Global::Anchor { .. } => {
                    let size = self.code.empty_function.len() as u64;
                    let at = self.object.append(text, self.code.empty_function, 4);
                    (text, at, size, SymbolKind::Text, elf::STV_DEFAULT)
                }
                Global::Marker { .. } => (text, 0, 0, SymbolKind::Data, elf::STV_HIDDEN),
            };
            self.object.add_symbol(NewSymbol {
                name: global.name().into(),
                value,
                size,
                kind,
                is_weak: matches!(global, Global::Marker { .. }),
                visibility,
                section: Some(section),
                ..NewSymbol::default()
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
        let relocation = NewRelocation {
            offset,
            symbol,
            addend,
            relocation_type: r_type.0,
        };
        self.object.relocate(section, relocation);
        Ok(())
    }

    /// Writes the functions of `text` to `.text.startup`, without relocations.
    pub(super) fn startup(&mut self, text: &StartupCode) -> Result<SectionId, RegistrationError> {
        let flags = elf::SHF_ALLOC | elf::SHF_EXECINSTR;
        let startup = self.section(".text.startup", elf::SHT_PROGBITS, flags, 16)?;
        self.object.append(startup, text.bytes, 16);
        self.object.add_file_symbol("offload.wrapper.module");
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
        text.relocate(&mut self.object, startup, &operands);
        let (name, flags) = (
            format!(".init_array.{priority}"),
            elf::SHF_WRITE | elf::SHF_ALLOC,
        );
        let init = self.section(&name, elf::SHT_INIT_ARRAY, flags, 8)?;
        self.object.append(init, &[0; 8], 8);
        let absolute = self.code.absolute;
        self.relocate(init, 0, absolute, startup_symbol, 0)?;

        let unwind = self.section(".eh_frame", self.code.unwind_type, elf::SHF_ALLOC, 8)?;
        self.object.append(unwind, text.unwind, 8);
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
        let sh_type = match (section, self.host.placement) {
            (BlobSection::Finished, _) | (_, ImagePlacement::Large) => elf::SHT_PROGBITS,
            (BlobSection::Offloading, _) => elf::SectionType(SHT_LLVM_OFFLOADING),
        };
        self.image_section(section.name(), sh_type, 8)
    }

    /// Creates a section of images that is usually called `name`, still empty.
    pub(super) fn image_section(
        &mut self,
        name: &str,
        sh_type: elf::SectionType,
        align: u64,
    ) -> Result<SectionId, RegistrationError> {
        let placement = self.host.placement;
        self.section(&placement.section(name), sh_type, placement.flags(), align)
    }

    /// Declares that the stack is not executable; otherwise bfd warns.
    pub(super) fn finish(mut self) -> Result<Vec<Piece>, RegistrationError> {
        self.section(
            ".note.GNU-stack",
            elf::SHT_PROGBITS,
            elf::SectionFlags(0),
            1,
        )?;
        let file = self.object.to_elf(self.host.machine, self.os_abi.0);
        file.map_err(RegistrationError::Object)
    }
}
