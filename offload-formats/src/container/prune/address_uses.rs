//! Uses of device code by its address, beside the pointers that can be changed.
//!
//! | file | use |
//! |---|---|
//! | x86-64 | `lea` relative to the instruction |
//! | x86-64, medium and large code models | `movabs` of the distance from the global offset table |
//! | AArch64 | `adr`, and `adrp` with the `add` after it |
//! | at a fixed address, x86-64 | `mov`, `movabs`, `cmp`, `push`, `add` or `sub` of the address |
//! | at a fixed address | an aligned word of data with the address |
//!
//! In `.lrodata`, which only code of the medium and large models reaches, `movabs` may have an address inside of a unit, too,
//! and at a fixed address read memory there.
//!
//! A unit that stays where it is, and becomes smaller, may be used by its address alone. Code that has its size, too, would read
//! what follows it. Code with an address inside of it would read other bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use object::elf;

use super::elf_headers::{DynamicEntry, ElfHeaders, SectionHeader64, records};
use crate::container::large::LARGE_SECTION;
use crate::format::bytes::ReadAt;

/// A unit's new place.
#[derive(Clone, Copy, Debug)]
pub(super) struct MovedUnit {
    pub address: u64,
    pub old_size: u64,
    pub size: u64,
    /// Offset in the old file.
    pub offset: u64,
}

/// Types of sections with code and data of the program.
const HAS_POINTERS: [u32; 4] = [
    elf::SHT_PROGBITS.0,
    elf::SHT_INIT_ARRAY.0,
    elf::SHT_FINI_ARRAY.0,
    elf::SHT_PREINIT_ARRAY.0,
];

/// Bytes that are read at once.
const PART: u64 = 1 << 20;
/// Bytes of a part that the next one has again; more than the instructions that are read together.
const OVERLAP: u64 = 64;
/// Instructions between `adrp` and its `add`.
const NEAR: usize = 8;

/// The search in a file.
#[derive(Clone, Copy)]
pub(super) struct AddressUses<'a, R> {
    pub data: R,
    pub headers: &'a ElfHeaders,
    /// Addresses of the sections of units.
    pub own: &'a [Range<u64>],
    /// Tells the offsets of words that are changed.
    pub known: &'a dyn Fn(u64) -> bool,
}

impl<'d, R: ReadAt<'d>> AddressUses<'_, R> {
    /// Returns the first of `units` whose old address the program uses.
    pub(super) fn first(&self, units: &BTreeMap<u64, MovedUnit>) -> Option<MovedUnit> {
        let unit = units.values().next()?;
        let (data, headers) = (self.data, self.headers);
        let is_fixed = headers.file.file_type == elf::ET_EXEC.0;
        let find = |address: u64| units.get(&address).copied();
        let large = headers.addresses_of(LARGE_SECTION);
        let find_large = |address: u64| find(address).or_else(|| inside(units, &large, address));
        let bases = self.bases();
        for section in self.sections() {
            let found = match (section.is_code(), headers.file.machine) {
                (true, machine) if machine == elf::EM_AARCH64.0 => {
                    search(data, section, |code, start| in_aarch64(code, start, &find))
                }
                (true, _) => search(data, section, |code, start| {
                    let fixed = || in_fixed_x86(code, &find);
                    in_x86(code, start, &find)
                        .or_else(|| in_large_x86(code, &bases, &find_large))
                        .or_else(|| is_fixed.then(fixed).flatten())
                }),
                (false, _) if is_fixed => search(data, section, |words, start| {
                    let offset = section.offset + (start - section.address);
                    in_data(words, offset, &find, self.known)
                }),
                _ => Ok(None),
            };
            match found {
                Ok(None) => {}
                Ok(Some(unit)) => return Some(unit),
                Err(Unreadable) => return Some(*unit),
            }
        }
        None
    }

    /// Returns the addresses from which a `movabs` may count: the global offset table; 0 in a program at a fixed address.
    fn bases(&self) -> Vec<u64> {
        /// Dynamic entry with the address of the table.
        const TABLE: u64 = 3;
        let headers = self.headers;
        let sections = headers.sections.iter();
        let dynamic = sections.filter(|section| section.kind == elf::SHT_DYNAMIC.0);
        let entries = dynamic.filter_map(|section| {
            records(self.data, section, DynamicEntry::LEN, DynamicEntry::read).ok()
        });
        // A file has one. Each more would be another search of the code.
        let tables = entries
            .flatten()
            .filter(|(_, entry)| entry.tag == TABLE)
            .map(|(_, entry)| entry.value)
            .take(1);
        // Linkers count from `.got.plt` if there is one.
        let names = [".got.plt", ".got"].into_iter();
        let named = names.filter_map(|name| Some(headers.section(headers.find(name)?).address));
        let fixed = (headers.file.file_type == elf::ET_EXEC.0).then_some(0);
        let bases: BTreeSet<u64> = tables.chain(named).chain(fixed).collect();
        bases.into_iter().collect()
    }

    /// Returns the first of `units` in `.lrodata` that the program uses by an address inside: other bytes are there in a new unit,
    /// even if that one has the old address.
    fn first_inside(&self, units: &BTreeMap<u64, MovedUnit>) -> Option<MovedUnit> {
        let large = self.headers.addresses_of(LARGE_SECTION);
        let first = units.range(large.clone()).next().map(|(_, unit)| *unit)?;
        let bases = self.bases();
        let find = |address| match units.contains_key(&address) {
            true => None,
            false => inside(units, &large, address),
        };
        for section in self.sections().filter(|section| section.is_code()) {
            match search(self.data, section, |code, _| {
                in_large_x86(code, &bases, &find)
            }) {
                Ok(None) => {}
                Ok(found) => return found,
                Err(Unreadable) => return Some(first),
            }
        }
        None
    }

    /// Returns the first of `units`, which get another size, whose address and old size the program uses: those of a slice. The
    /// global offset table points to those at `in_got`.
    pub(super) fn first_with_size(
        &self,
        mut units: BTreeMap<u64, MovedUnit>,
        in_got: &BTreeSet<u64>,
    ) -> Option<MovedUnit> {
        if let Some(unit) = self.first_inside(&units) {
            return Some(unit);
        }
        let mut pointed = in_got.iter().filter_map(|address| units.get(address));
        if let Some(unit) = pointed.find(|unit| self.has_size(unit.old_size)) {
            return Some(*unit);
        }
        while let Some(unit) = self.first(&units) {
            if self.has_size(unit.old_size) {
                return Some(unit);
            }
            units.retain(|_, other| other.offset != unit.offset);
        }
        None
    }

    /// Tells whether the program has a number: in an instruction, or in an aligned word of data.
    fn has_size(&self, size: u64) -> bool {
        let machine = self.headers.file.machine;
        self.sections().any(|section| {
            let found = match (section.is_code(), machine) {
                (true, machine) if machine == elf::EM_AARCH64.0 => {
                    search(self.data, section, |code, _| number_in_aarch64(code, size))
                }
                (true, _) => search(self.data, section, |code, _| number_in_x86(code, size)),
                (false, _) => search(self.data, section, |words, _| number_in_data(words, size)),
            };
            !matches!(found, Ok(None))
        })
    }

    /// Returns the sections of the program's own code and data.
    fn sections(&self) -> impl Iterator<Item = &SectionHeader64> {
        self.headers.sections.iter().filter(|section| {
            let is_own = self
                .own
                .iter()
                .any(|range| range.contains(&section.address));
            section.is_allocated() && HAS_POINTERS.contains(&section.kind) && !is_own
        })
    }
}

/// Returns the one of `units` at old addresses, in `.lrodata` at the addresses `large`, that contains an address.
fn inside(units: &BTreeMap<u64, MovedUnit>, large: &Range<u64>, address: u64) -> Option<MovedUnit> {
    let (start, unit) = units.range(..=address).next_back()?;
    let is_inside = large.contains(&address) && address - start < unit.old_size;
    is_inside.then_some(*unit)
}

/// A part of the file that cannot be read.
pub(super) struct Unreadable;

/// Looks at the parts of a section, each with its address, until something is found.
pub(super) fn search<'d, R: ReadAt<'d>, T>(
    data: R,
    section: &SectionHeader64,
    look: impl Fn(&[u8], u64) -> Option<T>,
) -> Result<Option<T>, Unreadable> {
    let mut part = Vec::new();
    for place in (0..section.size).step_by(PART as usize) {
        part.resize((section.size - place).min(PART + OVERLAP) as usize, 0);
        let read = data.read_once(&mut part, section.offset + place);
        read.ok_or(Unreadable)?;
        if let Some(found) = look(&part, section.address.wrapping_add(place)) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn in_x86<T>(code: &[u8], start: u64, find: &impl Fn(u64) -> Option<T>) -> Option<T> {
    let mut places = (start..).zip(code.windows(7));
    places.find_map(|(address, bytes)| {
        let [0x48 | 0x4c, 0x8d, mode, displacement @ ..] = bytes else {
            return None;
        };
        let displacement = i32::from_le_bytes(displacement.try_into().ok()?);
        let end = address.wrapping_add(7);
        (mode & 0xc7 == 5)
            .then(|| find(end.wrapping_add_signed(displacement.into())))
            .flatten()
    })
}

/// Looks for `movabs`: a prefix, the opcode with the register, and 8 bytes, which count from one of `bases`; or the opcode of
/// a move from or to memory, and its address.
fn in_large_x86<T>(code: &[u8], bases: &[u64], find: &impl Fn(u64) -> Option<T>) -> Option<T> {
    let with_register = code.windows(10).find_map(|bytes| {
        let [0x48 | 0x49, 0xb8..=0xbf, distance @ ..] = bytes else {
            return None;
        };
        let distance = u64::from_le_bytes(distance.try_into().ok()?);
        let mut addresses = bases.iter().map(|base| base.wrapping_add(distance));
        addresses.find_map(find)
    });
    let with_memory = || {
        code.windows(9).find_map(|bytes| {
            let [0xa0..=0xa3, address @ ..] = bytes else {
                return None;
            };
            find(u64::from_le_bytes(address.try_into().ok()?))
        })
    };
    // Only code at a fixed address has whole addresses.
    let is_fixed = bases.contains(&0);
    with_register.or_else(|| is_fixed.then(with_memory).flatten())
}

/// Looks for immediate operands. Before them are the opcode, or the opcode `mov` or `cmp` and an operand in memory.
fn in_fixed_x86<T>(code: &[u8], find: &impl Fn(u64) -> Option<T>) -> Option<T> {
    let mut places = code.windows(4).enumerate();
    places.find_map(|(place, bytes)| {
        let found = find(u32::from_le_bytes(bytes.try_into().ok()?).into())?;
        let before = |distance: usize| code.get(place.checked_sub(distance)?).copied();
        let is_opcode = matches!(before(1), Some(0xb8..=0xbf | 0x68 | 0x05 | 0x2d | 0x3d));
        // A byte for the mode, perhaps another one, and a displacement of 0, 1 or 4 bytes.
        let mut distances = [2, 3, 4, 6, 7].into_iter();
        let with_memory = |distance| matches!(before(distance), Some(0xc7 | 0x81));
        (is_opcode || distances.any(with_memory)).then_some(found)
    })
}

fn number_in_x86(code: &[u8], number: u64) -> Option<()> {
    let number = u32::try_from(number).ok()?.to_le_bytes();
    code.windows(4).any(|bytes| bytes == number).then_some(())
}

fn number_in_data(words: &[u8], number: u64) -> Option<()> {
    let number = number.to_le_bytes();
    words
        .chunks_exact(8)
        .any(|word| word == number)
        .then_some(())
}

/// Looks for `movz` or `movk` of the lower half, with one of the upper half near it.
fn number_in_aarch64(code: &[u8], number: u64) -> Option<()> {
    let number = u32::try_from(number).ok()?;
    let half = |shift: u32| (number >> (16 * shift)) & 0xffff;
    // Both have a bit for the size of the register, `movk` has one more; the half and its number follow.
    let moves = |word: u32, shift: u32| {
        word & 0x5fe0_0000 == 0x5280_0000 | (shift << 21) && (word >> 5) & 0xffff == half(shift)
    };
    let words: Vec<u32> = code
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes(word.try_into().unwrap_or_default()))
        .collect();
    let has = |words: &[u32], shift: u32| {
        half(shift) == 0 || words.iter().any(|word| moves(*word, shift))
    };
    let count = words.len().clamp(1, NEAR);
    let found = words
        .windows(count)
        .any(|near| has(near, 0) && has(near, 1));
    (number != 0 && found).then_some(())
}

fn in_data<T>(
    words: &[u8],
    offset: u64,
    find: &impl Fn(u64) -> Option<T>,
    known: &dyn Fn(u64) -> bool,
) -> Option<T> {
    let mut places = (offset..).step_by(8).zip(words.chunks_exact(8));
    places.find_map(|(offset, bytes)| {
        let found = find(u64::from_le_bytes(bytes.try_into().ok()?));
        found.filter(|_| !known(offset))
    })
}

fn in_aarch64<T>(code: &[u8], start: u64, find: &impl Fn(u64) -> Option<T>) -> Option<T> {
    let words = code.chunks_exact(4);
    let words = words.filter_map(|bytes| Some(u32::from_le_bytes(bytes.try_into().ok()?)));
    let words: Vec<u32> = words.collect();
    let mut places = words.iter().enumerate().zip((start..).step_by(4));
    places.find_map(|((index, word), address)| {
        // The lower two bits of the distance are in bits 29 and 30, the others in bits 5 to 23.
        let distance = (word >> 5 & 0x7_ffff) << 2 | word >> 29 & 3;
        let distance = i64::from(distance) << 43 >> 43;
        match word & 0x9f00_0000 {
            0x1000_0000 => find(address.wrapping_add_signed(distance)),
            0x9000_0000 => {
                let page = (address & !0xfff).wrapping_add_signed(distance << 12);
                let mut after = words.iter().skip(index + 1).take(NEAR);
                after.find_map(|add| {
                    let is_add = add & 0xffc0_0000 == 0x9100_0000 && add >> 5 & 31 == word & 31;
                    let offset = u64::from(add >> 10 & 0xfff);
                    is_add.then(|| find(page.wrapping_add(offset))).flatten()
                })
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::prune::elf_headers::FileHeader64;
    use crate::format::bytes::Cursor;

    fn found(address: u64) -> Option<u64> {
        (address == 0x2_3000).then_some(address)
    }

    #[test]
    fn reads_the_instructions_that_make_an_address() {
        // `lea r9, [rip + 0x21ff9]`, `lea rax, [rip + 0x21ff8]` after a `nop`; another distance; another instruction.
        assert!(in_x86(b"\x4c\x8d\x0d\xf9\x1f\x02\0", 0x1000, &found).is_some());
        assert!(in_x86(b"\x90\x48\x8d\x05\xf8\x1f\x02\0", 0x1000, &found).is_some());
        assert!(in_x86(b"\x48\x8d\x05\xf8\x1f\x02\0", 0x1000, &found).is_none());
        assert!(in_x86(b"\x48\x8b\x05\xf9\x1f\x02\0", 0x1000, &found).is_none());
        // `mov edi, 0x23000` and `push 0x23000` after a `nop`, `mov r9, 0x23000`; `mov edi, 0x23100`; another instruction.
        let in_fixed = |code: &[u8]| in_fixed_x86(code, &found).is_some();
        assert!(in_fixed(b"\x90\xbf\0\x30\x02\0") && in_fixed(b"\x90\x68\0\x30\x02\0"));
        assert!(in_fixed(b"\x49\xc7\xc1\0\x30\x02\0"));
        // `mov qword ptr [rip + 0x100], 0x23000`, `cmp qword ptr [rsi], 0x23000`, `cmp rax, 0x23000`.
        assert!(in_fixed(b"\x48\xc7\x05\0\x01\0\0\0\x30\x02\0"));
        assert!(in_fixed(b"\x48\x81\x3e\0\x30\x02\0") && in_fixed(b"\x48\x3d\0\x30\x02\0"));
        assert!(!in_fixed(b"\x90\xbf\0\x31\x02\0") && !in_fixed(b"\x90\xa1\0\x30\x02\0"));
    }

    #[test]
    fn reads_the_addresses_of_large_code_models() {
        let is_found = |code: &[u8], bases: &[u64]| in_large_x86(code, bases, &found).is_some();
        // `movabs rax, 0x22000` and `movabs r10, -0x1000` after a `nop`; another register's move; not whole.
        let (above, below) = (
            b"\x48\xb8\0\x20\x02\0\0\0\0\0",
            b"\x90\x49\xba\0\xf0\xff\xff\xff\xff\xff\xff",
        );
        assert!(is_found(above, &[0x2000, 0x1000]) && is_found(below, &[0x2_4000]));
        assert!(!is_found(above, &[0x2000]) && !is_found(&above[..9], &[0x1000]));
        assert!(!is_found(b"\x48\xc8\0\x20\x02\0\0\0\0\0", &[0x1000]));
        assert!(is_found(b"\x48\xbf\0\x30\x02\0\0\0\0\0", &[0]));
        // `movabs al, [0x23000]` after a `nop`, `movabs [0x23000], rax`; not at a fixed address; another instruction.
        assert!(is_found(b"\x90\xa0\0\x30\x02\0\0\0\0\0", &[0]));
        assert!(is_found(b"\x48\xa3\0\x30\x02\0\0\0\0\0", &[0]));
        assert!(is_found(b"\xa1\0\x30\x02\0\0\0\0\0", &[0, 0x1000]));
        assert!(!is_found(b"\xa0\0\x20\x02\0\0\0\0\0", &[0x1000]));
        assert!(!is_found(b"\xa4\0\x30\x02\0\0\0\0\0", &[0]));
    }

    /// Each `movabs` counts from every base, so the file must not choose their number.
    #[test]
    fn reads_one_table_address_from_the_dynamic_entries() {
        let entries = [3_u64, 0x1000, 1, 0x2000, 3, 0x3000, 3, 0x4000];
        let data = entries.map(u64::to_le_bytes).concat();
        let mut file = vec![0; FileHeader64::LEN as usize];
        file[16] = elf::ET_EXEC.0 as u8;
        let mut cursor = Cursor::new(&file[..], 0..FileHeader64::LEN);
        let dynamic = SectionHeader64 {
            kind: elf::SHT_DYNAMIC.0,
            size: data.len() as u64,
            ..section_of(0)
        };
        let headers = ElfHeaders {
            file: FileHeader64::read(&mut cursor).unwrap(),
            segments: Vec::new(),
            sections: vec![dynamic, dynamic],
            names: vec![Vec::new(), Vec::new()],
            size: data.len() as u64,
        };
        let uses = AddressUses {
            data: &data[..],
            headers: &headers,
            own: &[],
            known: &|_| false,
        };
        assert_eq!(uses.bases(), [0, 0x1000]);
    }

    fn section_of(size: usize) -> SectionHeader64 {
        SectionHeader64 {
            name: 0,
            kind: elf::SHT_PROGBITS.0,
            flags: 0,
            address: 0x1000,
            offset: 0,
            size: size as u64,
            link: 0,
            info: 0,
            alignment: 1,
            entry_size: 0,
        }
    }

    #[test]
    fn finds_instructions_between_the_parts_that_are_read() {
        for start in [PART as usize - 7, PART as usize - 3, PART as usize] {
            // `lea rax, [rip + 0x100]`, which has 7 bytes.
            let mut code = vec![0x90; PART as usize + 16];
            code[start..start + 7].copy_from_slice(b"\x48\x8d\x05\0\x01\0\0");
            let used = 0x1000 + start as u64 + 7 + 0x100;
            let found = |address| (address == used).then_some(());
            let look = |code: &[u8], start| in_x86(code, start, &found);
            let result = search(&code[..], &section_of(code.len()), look);
            assert!(matches!(result, Ok(Some(()))), "{start:#x}");
        }
    }

    #[test]
    fn reads_pairs_of_instructions_of_aarch64() {
        let code = |words: &[u32]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        let in_code = |words: &[u32], start| in_aarch64(&code(words), start, &found).is_some();
        // `adrp x3, 0x22000` and `add x0, x3, #0`: of another page; `adrp x3, 0x23000` at 0x1000 and at 0x24000.
        let (add, other) = (0x9100_0060, 0x9100_0080);
        assert!(in_code(&[0xd000_0103, add], 0x1000));
        assert!(in_code(&[0xf0ff_ffe3, 0xd503_201f, add], 0x2_4000));
        assert!(!in_code(&[0xb000_0103, add], 0x1000));
        assert!(!in_code(&[0xd000_0103, other], 0x1000));
        assert!(!in_code(&[0xd000_0103], 0x1000));
        // `adr x0, #0x1000` and `adr x0, #-4`.
        assert!(in_code(&[0x1000_8000], 0x2_2000));
        assert!(in_code(&[0x10ff_ffe0], 0x2_3004));
        assert!(!in_code(&[0x1000_8000], 0x2_2004));
    }

    #[test]
    fn finds_words_that_no_pointer_explains() {
        let words = [1_u64, 0x2_3000, 3].map(u64::to_le_bytes).concat();
        let in_words = |known: u64| in_data(&words, 0x100, &found, &|offset| offset == known);
        assert!(in_words(0).is_some());
        assert!(in_words(0x108).is_none());
    }
}
