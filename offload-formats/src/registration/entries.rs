//! Where the offload entries of the host are, as the object that registers them sees it.

use object::write::SymbolId;
use object::{SymbolKind, elf};

use super::error::{RegistrationError, check_name};
use super::writer::Writer;

/// How the object names the offload entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryTable<'a> {
    /// Everything in `section` of the linked output, by the linker's `__start_` and `__stop_`.
    StartStop {
        /// Section name; a C identifier.
        section: &'a str,
        /// COFF: symbols at entries of other objects, which linkers that collect garbage would leave out, as nothing
        /// else refers to them.
        entries: &'a [&'a str],
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
    /// One entry, or several in a row, where another object defines a symbol: nothing depends on what linkers
    /// do with sections.
    Symbol {
        /// Symbol name.
        symbol: &'a str,
        /// Bytes from there on.
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
    /// The section must exist even when no object has entries, or its ends would be undefined.
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
