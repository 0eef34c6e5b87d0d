//! The offload entries of the host, as seen from the object that registers them.

use object::{SymbolKind, elf};

use super::error::{RegistrationError, check_name};
use super::writer::Writer;
use crate::container::relocatable::SymbolId;

/// The symbols or section by which the object finds the offload entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryTable<'a> {
    /// Everything in `section` of the linked output, by the linker's `__start_` and `__stop_`.
    StartStop {
        /// Section name; a C identifier.
        section: &'a str,
        /// COFF: symbols at entries of other objects. Linkers that collect garbage would drop these
        /// entries, because nothing else refers to them.
        entries: &'a [&'a str],
    },
    /// The first `size` bytes of a section after a relocatable link. The link joins this object's
    /// (empty) `section` with those of the objects after it.
    SectionRange {
        /// Section name.
        section: &'a str,
        /// Number of bytes of all offload entries.
        size: u64,
        /// `sh_flags` of that section in the host's objects.
        flags: u64,
        /// `sh_addralign` of that section in the host's objects.
        alignment: u64,
    },
    /// One or more consecutive entries at a symbol of another object, independent of the order of
    /// sections.
    Symbol {
        /// Symbol name.
        symbol: &'a str,
        /// Number of bytes from the symbol on.
        size: u64,
    },
}

/// The ends of a table: a symbol and an offset from it.
#[derive(Clone, Copy)]
pub(super) struct TableEnds {
    pub(super) first: (SymbolId, u64),
    pub(super) last: (SymbolId, u64),
}

impl EntryTable<'_> {
    /// Returns the ends of the table. Defines the section, because without entries its ends would
    /// be undefined.
    pub(super) fn ends(&self, writer: &mut Writer<'_>) -> Result<TableEnds, RegistrationError> {
        match *self {
            Self::StartStop { section, .. } => {
                writer.claim_gnu_abi();
                let flags = elf::SHF_ALLOC | elf::SHF_GNU_RETAIN;
                let id = writer.section(section, elf::SHT_PROGBITS, flags, 8)?;
                let dummy = format!("__dummy.{section}");
                writer.local(&dummy, SymbolKind::Data, id, 0, 0);
                let first = writer.undefined(&format!("__start_{section}"), elf::STV_HIDDEN);
                let last = writer.undefined(&format!("__stop_{section}"), elf::STV_HIDDEN);
                Ok(TableEnds {
                    first: (first, 0),
                    last: (last, 0),
                })
            }
            Self::SectionRange {
                section,
                size,
                flags,
                alignment,
            } => {
                let flags = elf::SectionFlags(flags);
                let id = writer.section(section, elf::SHT_PROGBITS, flags, alignment)?;
                let symbol = writer.object.section_symbol(id);
                Ok(TableEnds {
                    first: (symbol, 0),
                    last: (symbol, size),
                })
            }
            Self::Symbol { symbol, size } => {
                check_name(symbol)?;
                let symbol = writer.undefined(symbol, elf::STV_HIDDEN);
                Ok(TableEnds {
                    first: (symbol, 0),
                    last: (symbol, size),
                })
            }
        }
    }
}
