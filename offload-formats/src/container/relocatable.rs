//! Objects for linkers, written from nothing: sections, symbols and relocations. Embedded images are pieces.
//!
//! | part        | ELF (64 bits, little-endian)                          | COFF (x86-64)                                  |
//! |-------------|-------------------------------------------------------|------------------------------------------------|
//! | header      | 64 bytes                                              | 20 bytes, then 40 for each section             |
//! | contents    | aligned like their sections, at most to 4096          | at multiples of 4, each before its relocations |
//! | symbols     | local ones first                                      | in the order of definition                     |
//! | strings     | all names of symbols                                  | names of more than 8 bytes                     |
//! | relocations | with addends; one section for each section            | the addend is in the content                   |
//! | headers     | at the end, after the names of sections               |                                                |
//!
//! Specification: the gABI's chapters 4 "Object Files", "Symbol Table" and "Relocation"; Microsoft's "PE Format".

mod coff;
mod elf;
mod file_fields;

use std::borrow::Cow;
use std::fmt;

use object::SymbolKind;
use object::elf::{STV_DEFAULT, SymbolVisibility};

use crate::format::pieces::Embedded;

/// Reason why an object cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DataObjectError {
    /// The content, or a number that depends on its size, does not fit in the format.
    TooLarge {
        /// That number: usually the size of the content in bytes.
        size: u64,
    },
    /// The alignment is not a power of two that the format can express.
    Alignment {
        /// Alignment in bytes.
        alignment: u64,
    },
}

impl fmt::Display for DataObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { size } => write!(f, "{size:#x} bytes are too large for this object"),
            Self::Alignment { alignment } => write!(
                f,
                "alignment {alignment:#x} is not a power of two that the object can have"
            ),
        }
    }
}

impl std::error::Error for DataObjectError {}

/// A section of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SectionId(usize);

/// A symbol of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SymbolId(usize);

/// An object file under construction.
#[derive(Debug, Default)]
pub(crate) struct RelocatableObject<'a> {
    sections: Vec<RelocatableSection<'a>>,
    symbols: Vec<NewSymbol>,
}

#[derive(Debug)]
struct RelocatableSection<'a> {
    name: String,
    /// `sh_type`; 0 for COFF.
    section_type: u32,
    /// `sh_flags`, or COFF's characteristics without the alignment.
    flags: u64,
    /// A power of two, in bytes.
    alignment: u64,
    data: Cow<'a, [u8]>,
    /// Parts of the content after `data`, which no relocation changes.
    embedded: Vec<Embedded<'a>>,
    /// Size of a section without content in bytes.
    zeros: u64,
    relocations: Vec<NewRelocation>,
    symbol: Option<SymbolId>,
}

/// A symbol to define; without a section it is one of another object.
#[derive(Clone, Debug)]
pub(crate) struct NewSymbol {
    /// Empty for the symbol of a section.
    pub(crate) name: String,
    pub(crate) kind: SymbolKind,
    pub(crate) is_local: bool,
    pub(crate) is_weak: bool,
    /// ELF: visibility to other linked files.
    pub(crate) visibility: SymbolVisibility,
    pub(crate) section: Option<SectionId>,
    /// Offset in the section in bytes.
    pub(crate) value: u64,
    /// ELF: size in bytes.
    pub(crate) size: u64,
}

/// A place in a section whose value the linker computes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewRelocation {
    /// Offset in the section in bytes.
    pub(crate) offset: u64,
    pub(crate) symbol: SymbolId,
    pub(crate) addend: i64,
    /// Number of the type: ELF's for the machine, or COFF's.
    pub(crate) relocation_type: u32,
}

impl Default for NewSymbol {
    fn default() -> Self {
        Self {
            name: String::new(),
            kind: SymbolKind::Unknown,
            is_local: false,
            is_weak: false,
            visibility: STV_DEFAULT,
            section: None,
            value: 0,
            size: 0,
        }
    }
}

impl<'a> RelocatableObject<'a> {
    /// Adds an empty section. `section_type` is ELF's.
    pub(crate) fn add_section(
        &mut self,
        name: &str,
        section_type: u32,
        flags: u64,
        alignment: u64,
    ) -> SectionId {
        self.sections.push(RelocatableSection {
            name: name.to_owned(),
            section_type,
            flags,
            alignment,
            data: Cow::default(),
            embedded: Vec::new(),
            zeros: 0,
            relocations: Vec::new(),
            symbol: None,
        });
        SectionId(self.sections.len() - 1)
    }

    /// Replaces the content of a section and its alignment.
    pub(crate) fn set_data(
        &mut self,
        section: SectionId,
        data: impl Into<Cow<'a, [u8]>>,
        alignment: u64,
    ) {
        let section = self.section_mut(section);
        (section.data, section.alignment) = (data.into(), alignment);
    }

    /// Appends `content` to a section at a multiple of `alignment`, and returns its offset in bytes. Nothing but
    /// such parts comes after it.
    pub(crate) fn embed(
        &mut self,
        section: SectionId,
        content: Embedded<'a>,
        alignment: u64,
    ) -> u64 {
        let section = self.section_mut(section);
        section.alignment = section.alignment.max(alignment);
        let size = section.size();
        let offset = size.next_multiple_of(alignment);
        section.embedded.push(Embedded::Zeros(offset - size));
        section.embedded.push(content);
        offset
    }

    /// Appends to the content of a section, and returns the offset of `data` in bytes.
    pub(crate) fn append(&mut self, section: SectionId, data: &[u8], alignment: u64) -> u64 {
        let section = self.section_mut(section);
        section.alignment = section.alignment.max(alignment);
        let content = section.data.to_mut();
        content.resize(content.len().next_multiple_of(alignment as usize), 0);
        let offset = content.len();
        content.extend_from_slice(data);
        offset as u64
    }

    /// Makes `section` one of zeros, without content in the file.
    pub(crate) fn set_zeros(&mut self, section: SectionId, size: u64) {
        self.section_mut(section).zeros = size;
    }

    /// Returns the size of a section in bytes.
    pub(crate) fn size(&self, section: SectionId) -> u64 {
        self.section(section).size()
    }

    pub(crate) fn add_symbol(&mut self, symbol: NewSymbol) -> SymbolId {
        self.symbols.push(symbol);
        SymbolId(self.symbols.len() - 1)
    }

    /// Names the source of the symbols after it.
    pub(crate) fn add_file_symbol(&mut self, name: &str) {
        self.add_symbol(NewSymbol {
            name: name.to_owned(),
            kind: SymbolKind::File,
            is_local: true,
            ..NewSymbol::default()
        });
    }

    /// Returns the symbol of a section, which is defined when it is first asked for.
    pub(crate) fn section_symbol(&mut self, section: SectionId) -> SymbolId {
        if let Some(symbol) = self.section(section).symbol {
            return symbol;
        }
        let symbol = self.add_symbol(NewSymbol {
            kind: SymbolKind::Section,
            is_local: true,
            section: Some(section),
            ..NewSymbol::default()
        });
        self.section_mut(section).symbol = Some(symbol);
        symbol
    }

    pub(crate) fn relocate(&mut self, section: SectionId, relocation: NewRelocation) {
        self.section_mut(section).relocations.push(relocation);
    }

    fn section(&self, id: SectionId) -> &RelocatableSection<'a> {
        let section = self.sections.get(id.0);
        section.expect("an ID is one of its object")
    }

    fn section_mut(&mut self, id: SectionId) -> &mut RelocatableSection<'a> {
        let section = self.sections.get_mut(id.0);
        section.expect("an ID is one of its object")
    }
}

impl RelocatableSection<'_> {
    fn size(&self) -> u64 {
        match self.zeros {
            0 => {
                let embedded = self.embedded.iter().map(|part| part.size());
                self.data.len() as u64 + embedded.sum::<u64>()
            }
            zeros => zeros,
        }
    }
}

#[cfg(test)]
mod tests {
    use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionIndex, elf, pe};

    use super::*;
    use crate::container::elf::Machine;
    use crate::format::pieces::{self, Piece};

    const LONG: &str = ".a_long_section_name";

    /// Two sections of content and one of zeros; `main` refers to `data + 5` and to another object's `needed`.
    fn sample([code, data, zeros]: [(u32, u64); 3], types: [u32; 2]) -> RelocatableObject<'static> {
        let mut object = RelocatableObject::default();
        let text = object.add_section(".text", code.0, code.1, 16);
        object.add_file_symbol("a source with a long name");
        object.append(text, &[0; 9], 1);
        let bytes = object.add_section(LONG, data.0, data.1, 4);
        object.set_data(bytes, &b"0123456789"[..], 64);
        let bss = object.add_section(".bss", zeros.0, zeros.1, 32);
        object.set_zeros(bss, 77);
        object.add_symbol(NewSymbol {
            name: "main".into(),
            kind: SymbolKind::Text,
            section: Some(text),
            value: 3,
            size: 6,
            ..NewSymbol::default()
        });
        object.add_symbol(NewSymbol {
            name: "a_local_number".into(),
            kind: SymbolKind::Data,
            is_local: true,
            section: Some(bss),
            value: 8,
            size: 4,
            ..NewSymbol::default()
        });
        let needed = object.add_symbol(NewSymbol {
            name: "needed".into(),
            ..NewSymbol::default()
        });
        let offset = object.append(text, &[0; 8], 4);
        assert_eq!(offset, 12);
        let data = object.section_symbol(bytes);
        assert_eq!(object.section_symbol(bytes), data);
        for (offset, symbol, addend, relocation_type) in
            [(4, needed, -4, types[0]), (12, data, 5, types[1])]
        {
            object.relocate(
                text,
                NewRelocation {
                    offset,
                    symbol,
                    addend,
                    relocation_type,
                },
            );
        }
        object
    }

    fn elf_sample() -> RelocatableObject<'static> {
        let allocated = |kind: elf::SectionType| (kind.0, elf::SHF_ALLOC.0);
        let sections = [elf::SHT_PROGBITS, elf::SHT_PROGBITS, elf::SHT_NOBITS].map(allocated);
        sample(sections, [elf::R_X86_64_PLT32.0, elf::R_X86_64_64.0])
    }

    fn coff_sample() -> RelocatableObject<'static> {
        let data = pe::IMAGE_SCN_CNT_INITIALIZED_DATA.0.into();
        let zeros = pe::IMAGE_SCN_CNT_UNINITIALIZED_DATA.0.into();
        let types = [pe::IMAGE_REL_AMD64_REL32, pe::IMAGE_REL_AMD64_ADDR64];
        sample(
            [(0, data), (0, data), (0, zeros)],
            types.map(|kind| kind.0.into()),
        )
    }

    fn joined(object: &RelocatableObject<'_>) -> Vec<u8> {
        pieces::to_bytes(&object.to_coff().unwrap(), &[]).unwrap()
    }

    /// The crate `object` reads what is written here; `content` is that of `.text`.
    fn check(bytes: &[u8], content: &[u8]) {
        let file = object::File::parse(bytes).unwrap();
        let named = |name: &str| file.section_by_name(name).unwrap();
        let text = named(".text");
        assert_eq!((text.data().unwrap(), text.align()), (content, 16));
        assert_eq!(named(LONG).data().unwrap(), b"0123456789");
        assert_eq!(named(LONG).align(), 64);
        assert_eq!((named(".bss").size(), named(".bss").align()), (77, 32));
        let symbol = |name: &str| file.symbol_by_name(name).unwrap();
        let main = symbol("main");
        assert_eq!(
            (main.address(), main.section_index()),
            (3, Some(text.index()))
        );
        assert!(main.is_global() && main.kind() == SymbolKind::Text);
        let number = symbol("a_local_number");
        assert_eq!(number.section_index(), Some(named(".bss").index()));
        assert!(number.is_local() && number.address() == 8);
        assert!(symbol("needed").is_undefined());
        let sources = file
            .symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::File);
        let sources: Vec<_> = sources
            .map(|symbol| symbol.name().unwrap().to_owned())
            .collect();
        assert_eq!(sources, ["a source with a long name"]);
        let target = |target| match target {
            RelocationTarget::Symbol(index) => file.symbol_by_index(index).unwrap(),
            other => panic!("{other:?}"),
        };
        let relocations: Vec<_> = text.relocations().collect();
        let [(4, call), (12, address)] = &*relocations else {
            panic!("{relocations:?}");
        };
        assert_eq!(target(call.target()).name(), Ok("needed"));
        let data = target(address.target());
        assert_eq!(data.section_index(), Some(named(LONG).index()));
        assert_eq!(data.kind(), SymbolKind::Section);
    }

    #[test]
    fn writes_elf_that_another_reader_reads() {
        let machine = Machine {
            number: elf::EM_X86_64.0,
            flags: 5,
        };
        let bytes = elf_sample().to_elf(machine, elf::ELFOSABI_GNU.0).unwrap();
        let bytes = pieces::to_bytes(&bytes, &[]).unwrap();
        check(&bytes, &[0; 20]);
        let file = object::File::parse(&*bytes).unwrap();
        let flags = object::FileFlags::Elf {
            os_abi: elf::ELFOSABI_GNU,
            abi_version: 0,
            e_flags: elf::FileFlags(5),
        };
        assert_eq!(file.flags(), flags);
        let text = file.section_by_index(SectionIndex(1)).unwrap();
        let addends: Vec<_> = text
            .relocations()
            .map(|(_, place)| place.addend())
            .collect();
        assert_eq!(addends, [-4, 5]);
        assert_eq!(file.symbol_by_name("main").unwrap().size(), 6);
    }

    #[test]
    fn writes_coff_that_another_reader_reads() {
        let bytes = joined(&coff_sample());
        let mut content = [0; 20];
        content[12] = 5;
        check(&bytes, &content);
    }

    /// Embedded parts are where an object in memory has them, and are not read.
    #[test]
    fn embeds_pieces_like_bytes() {
        let image = b"an image";
        let copy = [Piece::Copy {
            input: 0,
            range: 0..image.len() as u64,
        }];
        let embedded = |content: [Embedded<'static>; 2]| {
            let mut object = elf_sample();
            let id = object.add_section(".images", elf::SHT_PROGBITS.0, 0, 8);
            let offsets = content.map(|part| object.embed(id, part, 64));
            assert_eq!(offsets, [0, 64]);
            assert_eq!(object.size(id), 72);
            object
        };
        let known = embedded([Embedded::Bytes(image); 2]);
        let copied = Embedded::Pieces(Box::leak(Box::new(copy)));
        let copied = embedded([copied; 2]);
        for write in [
            |object: &RelocatableObject<'_>| object.to_elf(Machine::X86_64, 0).unwrap(),
            |object: &RelocatableObject<'_>| object.to_coff().unwrap(),
        ] {
            let known = pieces::to_bytes(&write(&known), &[]).unwrap();
            let pieces = write(&copied);
            let copies = pieces
                .iter()
                .filter(|piece| matches!(piece, Piece::Copy { .. }));
            assert_eq!(copies.count(), 2);
            assert_eq!(pieces::to_bytes(&pieces, &[image]).unwrap(), known);
            let file = object::File::parse(&*known).unwrap();
            let section = file.section_by_name(".images").unwrap();
            let data = section.data().unwrap();
            assert!(data.starts_with(image) && data.ends_with(image));
        }
    }

    #[test]
    fn counts_many_relocations_of_coff() {
        let mut object = coff_sample();
        let text = SectionId(0);
        let symbol = object.section_symbol(text);
        for _ in 2..70_000 {
            let relocation = NewRelocation {
                offset: 0,
                symbol,
                addend: 0,
                relocation_type: pe::IMAGE_REL_AMD64_ADDR32NB.0.into(),
            };
            object.relocate(text, relocation);
        }
        let bytes = joined(&object);
        let file = object::File::parse(&*bytes).unwrap();
        let text = file.section_by_name(".text").unwrap();
        assert_eq!(text.relocations().count(), 70_000);
    }

    #[test]
    fn rejects_what_coff_cannot_express() {
        let error = |name: &str, alignment, zeros| {
            let mut object = RelocatableObject::default();
            let section = object.add_section(name, 0, 0, alignment);
            object.set_zeros(section, zeros);
            object.to_coff().unwrap_err().to_string()
        };
        assert_eq!(
            error(".x", 1 << 14, 0),
            "alignment 0x4000 is not a power of two that the object can have"
        );
        assert_eq!(
            error(".x", 1, 1 << 32),
            "0x100000000 bytes are too large for this object"
        );
        // The name of the section comes after a longer one that has more than seven digits of bytes.
        let mut object = RelocatableObject::default();
        object.add_section(".a_long_name", 0, 0, 1);
        object.add_symbol(NewSymbol {
            name: "z".repeat(10_000_000),
            ..NewSymbol::default()
        });
        let error = object.to_coff().unwrap_err().to_string();
        assert_eq!(error, "0x989685 bytes are too large for this object");
    }
}
