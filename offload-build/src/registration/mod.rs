//! Floor 4: the host object that gives images to a runtime.
//!
//! A program registers its device code in a constructor. The objects that hold that constructor,
//! the images and the tables between them are written here, without a compiler:
//!
//! | module       | object                                                                  |
//! |--------------|-------------------------------------------------------------------------|
//! | [`openmp`]   | images in a binary descriptor, registered with libomptarget             |
//! | [`deferred`] | images not linked yet, for the last link to find; a stock linker refuses |
//!
//! The machine code is a table per instruction set (`machine.rs`), so an object costs no process.

pub mod deferred;
mod machine;
pub mod openmp;

use std::fmt;

use object::elf;
use object::write::{
    Object, Relocation, SectionId, StandardSegment, Symbol, SymbolId, SymbolSection,
};
use object::{
    BinaryFormat, Endianness, FileFlags, RelocationFlags, SectionFlags, SectionKind, SymbolFlags,
    SymbolKind, SymbolScope,
};

use crate::container::elf::Machine;
use machine::Code;

/// The symbol that a deferred object needs and that only `offload-link` defines.
pub const NEEDS_OFFLOAD_LINK: &str = "__offload_needs_offload_link";

/// A symbol that the object defines for others; the name must be unique in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Global<'a> {
    /// Part of the embedded bytes: how a program reads its own images.
    Bytes {
        /// Symbol name.
        name: &'a str,
        /// Bytes from the start of the embedded bytes.
        offset: u64,
        /// Bytes.
        size: u64,
    },
    /// A function that returns at once. Calling it pulls the object out of its archive.
    Anchor {
        /// Symbol name.
        name: &'a str,
    },
    /// Satisfies references to a name that has no meaning of its own: weak, hidden.
    Marker {
        /// Symbol name.
        name: &'a str,
    },
}

impl<'a> Global<'a> {
    fn name(&self) -> &'a str {
        match *self {
            Self::Bytes { name, .. } | Self::Anchor { name } | Self::Marker { name } => name,
        }
    }
}

/// Why an object cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// There is no machine code for this host.
    Machine {
        /// `e_machine`.
        machine: u16,
    },
    /// A part is said to end after the bytes that hold it.
    Range {
        /// What the part is: `image 2`, `symbol`.
        what: String,
        /// First byte after the part.
        end: u64,
        /// Size of the bytes that hold it.
        size: u64,
    },
    /// A symbol or section name that no symbol table can hold.
    Name {
        /// The name.
        name: String,
    },
    /// The number of images does not fit the descriptor.
    Images {
        /// Number of images.
        count: usize,
    },
    /// A field of the object file cannot hold its value.
    Object(object::write::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine { machine } => write!(
                f,
                "registration for host machine {machine:#x} is not supported \
                 (x86_64, 0x3e, and aarch64, 0xb7, are)"
            ),
            Self::Range { what, end, size } => {
                write!(f, "{what} ends at {end:#x}, after the end at {size:#x}")
            }
            Self::Name { name } => write!(f, "`{name}` cannot be the name of a symbol or section"),
            Self::Images { count } => write!(f, "{count} images do not fit a binary descriptor"),
            Self::Object(_) => f.write_str("the registration object cannot be written"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Object(source) => Some(source),
            _ => None,
        }
    }
}

impl From<object::write::Error> for Error {
    fn from(error: object::write::Error) -> Self {
        Self::Object(error)
    }
}

/// An ELF object under construction: `object`'s writer, with every type and flag said outright.
struct Writer<'a> {
    object: Object<'a>,
    code: &'static Code,
}

impl<'a> Writer<'a> {
    fn new(host: Machine) -> Result<Self, Error> {
        let code = Code::of(host.number).ok_or(Error::Machine {
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
    fn claim_gnu_abi(&mut self) {
        if let FileFlags::Elf { os_abi, .. } = &mut self.object.flags {
            *os_abi = elf::ELFOSABI_GNU;
        }
    }

    fn section(
        &mut self,
        name: &str,
        sh_type: elf::SectionType,
        sh_flags: elf::SectionFlags,
        align: u64,
    ) -> Result<SectionId, Error> {
        check_name(name)?;
        let segment = self.object.segment_name(StandardSegment::Data).to_vec();
        let id = self
            .object
            .add_section(segment, name.into(), SectionKind::Data);
        let section = self.object.section_mut(id);
        section.flags = SectionFlags::Elf { sh_type, sh_flags };
        section.append_data(&[], align);
        Ok(id)
    }

    fn local(
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

    fn undefined(&mut self, name: &str, visibility: elf::SymbolVisibility) -> SymbolId {
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
    fn globals(
        &mut self,
        globals: &[Global<'_>],
        bytes: SectionId,
        text: SectionId,
    ) -> Result<(), Error> {
        let available = self.object.section(bytes).data().len() as u64;
        for global in globals {
            check_name(global.name())?;
            let (section, value, size, kind, scope) = match *global {
                Global::Bytes { offset, size, .. } => {
                    let end = offset.saturating_add(size);
                    if end > available {
                        return Err(Error::Range {
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

    fn relocate(
        &mut self,
        section: SectionId,
        offset: u64,
        r_type: elf::RelocationType,
        symbol: SymbolId,
        addend: u64,
    ) -> Result<(), Error> {
        let addend = i64::try_from(addend).map_err(|_| Error::Range {
            what: "an offset in the embedded bytes".into(),
            end: addend,
            size: i64::MAX as u64,
        })?;
        self.relocate_by(section, offset, r_type, symbol, addend)
    }

    fn relocate_by(
        &mut self,
        section: SectionId,
        offset: u64,
        r_type: elf::RelocationType,
        symbol: SymbolId,
        addend: i64,
    ) -> Result<(), Error> {
        let flags = RelocationFlags::Elf { r_type };
        let relocation = Relocation {
            offset,
            symbol,
            addend,
            flags,
        };
        Ok(self.object.add_relocation(section, relocation)?)
    }

    /// Says that no executable stack is needed, without which bfd warns.
    fn finish(mut self) -> Result<Vec<u8>, Error> {
        self.section(
            ".note.GNU-stack",
            elf::SHT_PROGBITS,
            elf::SectionFlags(0),
            1,
        )?;
        Ok(self.object.write()?)
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.contains('\0') {
        return Err(Error::Name { name: name.into() });
    }
    Ok(())
}
