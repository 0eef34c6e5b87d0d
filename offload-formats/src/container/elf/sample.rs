//! Small ELF files for tests.

/// A section of a small ELF file.
pub(in crate::container) struct SampleSection<'a> {
    pub(in crate::container) kind: u32,
    pub(in crate::container) flags: u64,
    pub(in crate::container) address: u64,
    pub(in crate::container) link: u32,
    pub(in crate::container) content: &'a [u8],
}

/// Returns a 64-bit little-endian file with sections from 2 on, which have no names. Section 1 is the string table.
pub(in crate::container) fn elf_file(
    file_type: u16,
    machine: u16,
    strings: &[u8],
    sections: &[SampleSection<'_>],
) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(64, 0);
    let mut headers = vec![0; 64];
    let table = SampleSection {
        kind: 3,
        flags: 0,
        address: 0,
        link: 0,
        content: strings,
    };
    for section in [&table].into_iter().chain(sections) {
        file.resize(file.len().next_multiple_of(8), 0);
        let (offset, size) = (file.len() as u64, section.content.len() as u64);
        file.extend(section.content);
        headers.extend([0; 4]);
        headers.extend(section.kind.to_le_bytes());
        for word in [section.flags, section.address, offset, size] {
            headers.extend(word.to_le_bytes());
        }
        headers.extend(section.link.to_le_bytes());
        headers.extend([0; 4]);
        headers.extend([4_u64, 0].map(u64::to_le_bytes).concat());
    }
    file.resize(file.len().next_multiple_of(8), 0);
    let (start, count) = (file.len() as u64, headers.len() / 64);
    file.extend(headers);
    file[16..24].copy_from_slice(&[file_type, machine, 1, 0].map(u16::to_le_bytes).concat());
    file[40..48].copy_from_slice(&start.to_le_bytes());
    let sizes = [64, 0, 0, 64, count as u16, 1];
    file[52..64].copy_from_slice(&sizes.map(u16::to_le_bytes).concat());
    file
}

/// Returns a table of the null symbol and global objects: the offset of each name, and its section.
pub(in crate::container) fn symbol_table(symbols: &[(u32, u16)]) -> Vec<u8> {
    let mut table = vec![0; 24];
    for (name, section) in symbols {
        table.extend(name.to_le_bytes());
        table.extend([0x11, 0]);
        table.extend(section.to_le_bytes());
        table.extend([0; 16]);
    }
    table
}
