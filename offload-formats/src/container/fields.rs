//! Little-endian fields of objects, and ELF's headers.

use object::elf;

use super::elf::Machine;

/// Little-endian fields.
#[derive(Default)]
pub(super) struct Fields(pub(super) Vec<u8>);

/// A section header of ELF: name, type, flags, offset and size, link and info, alignment and size of a record.
type SectionHeader = (u32, u32, u64, [u64; 2], [u32; 2], [u64; 2]);

/// Returns the header of an ELF object whose `sections` headers are at that offset; the last one is of their names.
pub(super) fn elf_header(
    machine: Machine,
    os_abi: u8,
    section_headers: u64,
    sections: u16,
) -> Vec<u8> {
    let mut before = Fields::default();
    // Class 64, little-endian, version 1.
    before.bytes(&[0x7f, b'E', b'L', b'F', 2, 1, 1, os_abi]);
    before.zeros(8);
    before.half(elf::ET_REL.0);
    before.half(machine.number);
    before.word(1);
    before.long(0);
    before.long(0);
    before.long(section_headers);
    before.word(machine.flags);
    for half in [64, 0, 0, 64, sections, sections.saturating_sub(1)] {
        before.half(half);
    }
    before.0
}

impl Fields {
    pub(super) fn section_header(&mut self, row: SectionHeader) {
        let (name, kind, flags, place, [link, info], last) = row;
        self.word(name);
        self.word(kind);
        self.long(flags);
        self.long(0);
        place.into_iter().for_each(|field| self.long(field));
        self.word(link);
        self.word(info);
        last.into_iter().for_each(|field| self.long(field));
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn zeros(&mut self, count: u64) {
        self.0.resize(self.0.len() + count as usize, 0);
    }

    pub(super) fn half(&mut self, number: u16) {
        self.bytes(&number.to_le_bytes());
    }

    pub(super) fn word(&mut self, number: u32) {
        self.bytes(&number.to_le_bytes());
    }

    pub(super) fn long(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    /// Writes a name of at most eight bytes, padded with zeros.
    pub(super) fn name(&mut self, name: &str) {
        self.bytes(name.as_bytes());
        self.zeros(8_u64.saturating_sub(name.len() as u64));
    }
}
