//! The instructions of an object's functions, and the places in them that a linker fills in.

use object::{RelocationFlags, elf, pe};

/// The functions of a registration object, in `.text.startup`; the constructor is the first.
pub(in crate::registration) struct StartupCode {
    pub(in crate::registration) bytes: &'static [u8],
    pub(in crate::registration) functions: &'static [Function],
    pub(in crate::registration) fixups: &'static [Fixup],
    /// `.eh_frame`; for Windows `.xdata`.
    pub(in crate::registration) unwind: &'static [u8],
    /// Offset in `unwind`, offset in `bytes`, of each function's address.
    pub(in crate::registration) unwind_fixups: &'static [(u64, u64)],
}

/// A local symbol.
pub(in crate::registration) struct Function {
    pub(in crate::registration) name: &'static str,
    /// In the text's bytes.
    pub(in crate::registration) offset: u64,
    pub(in crate::registration) size: u64,
}

/// A place in the text that the linker fills in.
pub(in crate::registration) struct Fixup {
    pub(in crate::registration) offset: u64,
    pub(in crate::registration) flags: RelocationFlags,
    pub(in crate::registration) to: Operand,
    pub(in crate::registration) addend: i64,
}

/// What an instruction names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::registration) enum Operand {
    /// The binary descriptor.
    Descriptor,
    /// The text itself.
    Startup,
    /// The fatbin wrapper.
    Record,
    /// What the runtime calls the fat binary.
    Handle,
    /// The list of tables of offload entries.
    Tables,
    /// A function of a library.
    Runtime(&'static str),
}

pub(super) const fn elf_fixup(
    offset: u64,
    r_type: elf::RelocationType,
    to: Operand,
    addend: i64,
) -> Fixup {
    Fixup {
        offset,
        flags: RelocationFlags::Elf { r_type },
        to,
        addend,
    }
}

pub(super) const fn coff_fixup(
    offset: u64,
    typ: pe::RelocationType,
    to: Operand,
    addend: i64,
) -> Fixup {
    Fixup {
        offset,
        flags: RelocationFlags::Coff { typ },
        to,
        addend,
    }
}

pub(super) const fn function(name: &'static str, offset: u64, size: u64) -> Function {
    Function { name, offset, size }
}
