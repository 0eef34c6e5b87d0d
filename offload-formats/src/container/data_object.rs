//! Writes objects that contain one section of data with symbols, for linkers.
//!
//! ELF (64 bits, little-endian): allocated, read-only content, large on request; global, hidden objects with sizes. COFF
//! (x86-64): initialized, read-only data; external symbols. The content may be large: the caller copies it.

use object::{SymbolKind, elf, pe};

use super::large::ImagePlacement;
pub use super::relocatable::DataObjectError;
use super::relocatable::{NewSymbol, RelocatableObject};
use crate::format::pieces::{self, Embedded, Piece};

#[doc(inline)]
pub use offload_formats_core::names::host::DataHost;

/// A section of data and its symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataObject<'a> {
    /// Usual name of the section.
    pub section: &'a str,
    /// Placement by the linker; COFF has usual sections only.
    pub placement: ImagePlacement,
    /// Alignment of the section in bytes, a power of two; COFF allows at most 8192.
    pub alignment: u64,
    /// Symbols in the section.
    pub symbols: &'a [DataSymbol],
}

/// A symbol of the section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSymbol {
    /// The name.
    pub name: String,
    /// Offset from the start of the section in bytes.
    pub offset: u64,
    /// Size in bytes; COFF has no sizes.
    pub size: u64,
}

impl DataObject<'_> {
    /// Returns the object for `host` with `content`, whose inputs keep their numbers.
    ///
    /// # Errors
    ///
    /// Fails if the content is too large for the format, or the alignment is invalid.
    pub fn to_pieces(
        &self,
        host: DataHost,
        content: &[Piece],
    ) -> Result<Vec<Piece>, DataObjectError> {
        /// Larger sizes could exceed 64 bits with what the object has around them.
        const LARGEST: u64 = u64::MAX / 2;
        let alignment = self.alignment;
        if !alignment.is_power_of_two() {
            return Err(DataObjectError::Alignment { alignment });
        }
        let size = pieces::size(content);
        if size > LARGEST {
            return Err(DataObjectError::TooLarge { size });
        }
        let read_only = pe::IMAGE_SCN_CNT_INITIALIZED_DATA | pe::IMAGE_SCN_MEM_READ;
        let mut object = RelocatableObject::default();
        let section = match host {
            DataHost::Elf(_) => {
                let name = self.placement.section(self.section);
                let flags = self.placement.flags().0;
                object.add_section(&name, elf::SHT_PROGBITS.0, flags, alignment)
            }
            DataHost::Coff => object.add_section(self.section, 0, read_only.0.into(), alignment),
        };
        object.embed(section, Embedded::Pieces(content), 1);
        for symbol in self.symbols {
            object.add_symbol(NewSymbol {
                name: symbol.name.clone(),
                kind: SymbolKind::Data,
                visibility: elf::STV_HIDDEN,
                section: Some(section),
                value: symbol.offset,
                size: symbol.size,
                ..NewSymbol::default()
            });
        }
        match host {
            DataHost::Elf(machine) => {
                // Without it, linkers make the stack executable.
                object.add_section(".note.GNU-stack", elf::SHT_PROGBITS.0, 0, 1);
                object.to_elf(machine, elf::ELFOSABI_NONE.0)
            }
            DataHost::Coff => object.to_coff(),
        }
    }
}

#[cfg(test)]
mod tests {
    use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolFlags};

    use super::*;
    use crate::container::elf::Machine;
    use crate::format::pieces::to_bytes;

    fn symbols() -> Vec<DataSymbol> {
        let symbol = |name: &str, offset, size| DataSymbol {
            name: name.to_owned(),
            offset,
            size,
        };
        vec![symbol("short", 0, 11), symbol("a_longer_name", 3, 5)]
    }

    fn object(host: DataHost, section: &str) -> Vec<u8> {
        let object = DataObject {
            section,
            placement: ImagePlacement::Usual,
            alignment: 4096,
            symbols: &symbols(),
        };
        let content = Piece::Copy {
            input: 0,
            range: 0..11,
        };
        let pieces = object.to_pieces(host, &[content]).unwrap();
        to_bytes(&pieces, &[b"the content"]).unwrap()
    }

    /// The crate `object` reads what is written here.
    #[test]
    fn writes_objects_that_another_reader_reads() {
        for (host, name) in [
            (DataHost::Elf(Machine::X86_64), ".hip_fatbin"),
            (DataHost::Elf(Machine::RISCV64), ".x"),
            (DataHost::Coff, ".hip_fatbin"),
            (DataHost::Coff, ".x"),
        ] {
            let bytes = object(host, name);
            let file = object::File::parse(&*bytes).unwrap();
            let section = file.section_by_name(name).unwrap();
            assert_eq!(section.data().unwrap(), b"the content");
            assert_eq!(section.align(), 4096);
            match (host, section.flags()) {
                (DataHost::Elf(machine), SectionFlags::Elf { sh_flags, .. }) => {
                    assert_eq!(sh_flags, elf::SHF_ALLOC);
                    let flags = object::FileFlags::Elf {
                        os_abi: elf::ELFOSABI_NONE,
                        abi_version: 0,
                        e_flags: elf::FileFlags(machine.flags),
                    };
                    assert_eq!(file.flags(), flags);
                    assert!(file.section_by_name(".note.GNU-stack").is_some());
                }
                (DataHost::Coff, SectionFlags::Coff { characteristics }) => {
                    assert_eq!(characteristics.0, 0x40d0_0040);
                }
                (_, other) => panic!("{other:?}"),
            }
            let found: Vec<_> = file.symbols().collect();
            assert_eq!(found.len(), 2);
            for (found, symbol) in found.iter().zip(symbols()) {
                assert_eq!(found.name().unwrap(), symbol.name);
                assert_eq!(found.address(), symbol.offset);
                assert!(found.is_definition() && found.is_global());
                if let SymbolFlags::Elf { st_other, .. } = found.flags() {
                    assert_eq!(found.size(), symbol.size);
                    assert_eq!(st_other, elf::STV_HIDDEN.into());
                }
            }
        }
    }

    /// `SHF_X86_64_LARGE` is 0x10000000 in the x86-64 psABI.
    #[test]
    fn writes_sections_of_large_data() {
        let symbols = symbols();
        let object = |placement| {
            let object = DataObject {
                section: ".hip_fatbin",
                placement,
                alignment: 4096,
                symbols: &symbols,
            };
            let content = [Piece::Zeros(11)];
            let pieces = object.to_pieces(DataHost::Elf(Machine::X86_64), &content);
            to_bytes(&pieces.unwrap(), &[]).unwrap()
        };
        let large = object(ImagePlacement::Large);
        let file = object::File::parse(&*large).unwrap();
        let section = file.section_by_name(".lrodata.hip_fatbin").unwrap();
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
            panic!("{:?}", section.flags());
        };
        assert_eq!(sh_flags.0, 0x1000_0002);
        assert_eq!(section.align(), 4096);
        let usual = object(ImagePlacement::Usual);
        assert!(
            object::File::parse(&*usual)
                .unwrap()
                .section_by_name(".hip_fatbin")
                .is_some()
        );
    }

    #[test]
    fn rejects_what_the_format_cannot_express() {
        let object = |alignment| DataObject {
            section: ".x",
            placement: ImagePlacement::Usual,
            alignment,
            symbols: &[],
        };
        let error = |alignment, host, size| {
            let pieces = object(alignment).to_pieces(host, &[Piece::Zeros(size)]);
            pieces.unwrap_err().to_string()
        };
        let elf = DataHost::Elf(Machine::X86_64);
        assert_eq!(
            error(3, elf, 1),
            "alignment 0x3 is not a power of two that the object can have"
        );
        assert_eq!(
            error(1 << 14, DataHost::Coff, 1),
            "alignment 0x4000 is not a power of two that the object can have"
        );
        assert_eq!(
            error(1, DataHost::Coff, 1 << 32),
            "0x100000000 bytes are too large for this object"
        );
        assert_eq!(
            error(1, elf, u64::MAX),
            "0xffffffffffffffff bytes are too large for this object"
        );
    }
}
