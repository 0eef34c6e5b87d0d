//! The instructions of an object's functions, and their relocations.

use object::{elf, pe};

use crate::container::relocatable::{NewRelocation, RelocatableObject, SectionId, SymbolId};

/// The functions of a registration object, in `.text.startup`; the constructor is the first.
pub(in crate::registration) struct StartupCode {
    pub(in crate::registration) bytes: &'static [u8],
    pub(in crate::registration) functions: &'static [Function],
    pub(in crate::registration) fixups: &'static [Fixup],
    /// `.eh_frame`; `.xdata` for Windows.
    pub(in crate::registration) unwind: &'static [u8],
    /// Offset in `unwind` and offset in `bytes` of each function's address.
    pub(in crate::registration) unwind_fixups: &'static [(u64, u64)],
}

impl StartupCode {
    /// Lists the library functions that the instructions call, each once, in the order of use.
    pub(in crate::registration) fn library_functions(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for fixup in self.fixups {
            match fixup.to {
                Operand::Runtime(name) if !names.contains(&name) => names.push(name),
                _ => {}
            }
        }
        names
    }

    /// Adds the relocations of the instructions, which are at the start of `section`. `operands`
    /// has the symbol and the offset of each operand.
    pub(in crate::registration) fn relocate(
        &self,
        object: &mut RelocatableObject<'_>,
        section: SectionId,
        operands: &[(Operand, SymbolId, i64)],
    ) {
        for fixup in self.fixups {
            let operand = operands.iter().find(|(known, ..)| *known == fixup.to);
            let (_, symbol, offset) = operand.expect("an object defines each operand of its code");
            let relocation = NewRelocation {
                offset: fixup.offset,
                symbol: *symbol,
                addend: offset + fixup.addend,
                relocation_type: fixup.relocation_type,
            };
            object.relocate(section, relocation);
        }
    }
}

/// A local symbol.
pub(in crate::registration) struct Function {
    pub(in crate::registration) name: &'static str,
    /// Offset in the text's bytes.
    pub(in crate::registration) offset: u64,
    pub(in crate::registration) size: u64,
}

/// A relocation in the text.
pub(in crate::registration) struct Fixup {
    pub(in crate::registration) offset: u64,
    /// Number of the relocation's type.
    pub(in crate::registration) relocation_type: u32,
    pub(in crate::registration) to: Operand,
    pub(in crate::registration) addend: i64,
}

/// The operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::registration) enum Operand {
    /// The binary descriptor.
    Descriptor,
    /// The text itself.
    Startup,
    /// The fatbin wrapper.
    Record,
    /// The runtime's handle of the fat binary.
    Handle,
    /// The list of tables of offload entries.
    Tables,
    /// A function of a library, by name.
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
        relocation_type: r_type.0,
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
        relocation_type: typ.0 as u32,
        to,
        addend,
    }
}

pub(super) const fn function(name: &'static str, offset: u64, size: u64) -> Function {
    Function { name, offset, size }
}
