//! Pointers to units: relocations, wrappers, symbols.
//!
//! | pointer | x86-64, AArch64 | changed |
//! |---|---|---|
//! | relative relocation | 8 and 37, 1027 and 1032 | the addend, and the word if it is equal |
//! | relocation against a symbol | 1, 257; others refer to the symbol's own address | the addend |
//! | packed relative relocation (`DT_RELR`) | – | the word |
//! | wrapper without a relocation | – | the word |
//! | symbol | – | the value |
//!
//! A symbol inside of a unit is a pointer, because code may use it at any offset. Those are none by which `offload-build` names
//! images, in `.symtab` of position-independent code for x86-64: its generated files use them by relocations alone. Such a symbol
//! follows its image. If the image is gone, or at no address of its own, it becomes an empty symbol at the start of the unit. An
//! instruction that refers to it is an error.
//!
//! A wrapper is a record of 24 bytes in `.hipFatBinSegment` or `.nvFatBinSegment`: magic, version (4 bytes each), and
//! two pointers, of which the first is to a unit.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use object::elf;

use super::address_uses::{AddressUses, MovedUnit, Unreadable, search};
use super::elf_headers::{ElfHeaders, SectionHeader64, Symbol64, records};
use super::error::PruneProblem;
use crate::container::elf::relocations::{Relocation64, RelocationKind, packed_addresses};
use crate::container::large::LARGE_SECTION;
use crate::format::bytes::{Cursor, ReadAt};

/// Types of sections of packed relocations that are not read: Android's, and LLVM's CREL.
const PACKED: [u32; 4] = [0x6000_0001, 0x6000_0002, 0x6fff_ff00, 0x4000_0014];
/// Sections of wrappers.
const WRAPPERS: [&str; 2] = [".hipFatBinSegment", ".nvFatBinSegment"];
/// Magics of wrappers: HIP, CUDA.
const WRAPPER_MAGICS: [u32; 2] = [0x4849_5046, 0x4662_43b1];
const WRAPPER_SIZE: u64 = 24;

/// New addresses of units.
#[derive(Clone, Debug, Default)]
pub(super) struct AddressMap {
    /// Addresses of the sections of units.
    pub sections: Vec<Range<u64>>,
    /// Old and new address of each unit, and its old and new size.
    pub units: BTreeMap<u64, MovedUnit>,
    /// Old and new address of each image that stays.
    pub images: BTreeMap<u64, u64>,
    /// Addresses of the sections whose images `tables.rs` finds; they are among `sections`.
    pub tables: Vec<Range<u64>>,
    /// Addresses of the words that point to these images; `tables.rs` changes them.
    pub table_words: BTreeSet<u64>,
}

impl AddressMap {
    /// Returns the new address for a pointer to a unit; `None` for other pointers.
    fn target(&self, what: &'static str, address: u64) -> Result<Option<u64>, PruneProblem> {
        if !self.sections.iter().any(|range| range.contains(&address)) {
            return Ok(None);
        }
        if self.tables.iter().any(|range| range.start == address) {
            // The end of what is before the section, such as a table of offload entries.
            return Ok(None);
        }
        if self.is_in_table(address) {
            return Err(PruneProblem::Inside { what, address });
        }
        match self.units.get(&address) {
            Some(unit) => Ok(Some(unit.address)),
            None => Err(PruneProblem::Inside { what, address }),
        }
    }

    /// Returns the units that `is_wanted` chooses by their old address.
    fn units_outside_of_tables(
        &self,
        is_wanted: impl Fn(u64, &MovedUnit) -> bool,
    ) -> BTreeMap<u64, MovedUnit> {
        let units = self.units.iter();
        let units = units.filter(|(old, unit)| is_wanted(**old, unit) && !self.is_in_table(**old));
        units.map(|(old, unit)| (*old, *unit)).collect()
    }

    /// Returns the unit that contains an address.
    fn unit_around(&self, address: u64) -> Option<&MovedUnit> {
        let (start, unit) = self.units.range(..=address).next_back()?;
        (address - start < unit.old_size).then_some(unit)
    }

    fn is_in_table(&self, address: u64) -> bool {
        self.tables.iter().any(|range| range.contains(&address))
    }
}

/// Words of 8 bytes to write, by their offsets in the old file.
pub(super) type Words = BTreeMap<u64, u64>;

/// Finds all pointers to units, and returns the words to change.
pub(super) fn pointers<'d, R: ReadAt<'d>>(
    data: R,
    headers: &ElfHeaders,
    map: &AddressMap,
) -> Result<Words, PruneProblem> {
    let mut finder = PointerFinder {
        data,
        headers,
        map,
        words: Words::new(),
        found: BTreeSet::new(),
        relocated: BTreeSet::new(),
        with_length: None,
        in_got: BTreeSet::new(),
        inside: Vec::new(),
    };
    for section in &headers.sections {
        match elf::SectionType(section.kind) {
            elf::SHT_RELA if section.is_allocated() => finder.relocations(section)?,
            elf::SHT_RELR if section.is_allocated() => finder.packed(section)?,
            elf::SHT_SYMTAB | elf::SHT_DYNSYM => finder.symbols(section)?,
            _ if section.is_allocated() && PACKED.contains(&section.kind) => {
                return Err(PruneProblem::PackedRelocations { kind: section.kind });
            }
            _ => {}
        }
    }
    finder.wrappers()?;
    let units = map.units.iter();
    let units = units.filter(|(address, _)| !map.is_in_table(**address));
    let alone: Vec<(u64, MovedUnit)> = units
        .filter(|(address, _)| !finder.found.contains(address))
        .map(|(address, unit)| (*address, *unit))
        .collect();
    if let Some(unit) = finder.in_use(&alone) {
        return Err(PruneProblem::Unregistered {
            offset: unit.offset,
        });
    }
    let moved = map.units_outside_of_tables(|old, unit| unit.address != old);
    let resized =
        map.units_outside_of_tables(|old, unit| unit.address == old && unit.size != unit.old_size);
    let table_words = map.table_words.iter();
    let table_words: BTreeSet<u64> = table_words
        .filter_map(|address| headers.offset_of(*address))
        .collect();
    let known = |offset| finder.words.contains_key(&offset) || table_words.contains(&offset);
    let uses = AddressUses {
        data,
        headers,
        own: &map.sections,
        known: &known,
    };
    let by_address = || {
        let by_size = || uses.first_with_size(resized, &finder.in_got);
        uses.first(&moved)
            .or_else(by_size)
            .or_else(|| finder.used_inside())
    };
    match finder.with_length.or_else(by_address) {
        Some(unit) => Err(PruneProblem::UsedByAddress {
            offset: unit.offset,
        }),
        None => Ok(finder.words),
    }
}

struct PointerFinder<'a, R> {
    data: R,
    headers: &'a ElfHeaders,
    map: &'a AddressMap,
    words: Words,
    /// Old addresses of units that something points to.
    found: BTreeSet<u64>,
    /// Addresses of words that relocations write.
    relocated: BTreeSet<u64>,
    /// The first unit whose size changes and whose old size follows a pointer to it: a slice.
    with_length: Option<MovedUnit>,
    /// Old addresses of units to which the global offset table points: code uses them.
    in_got: BTreeSet<u64>,
    /// Addresses inside of units that only symbols have, with the units.
    inside: Vec<(u64, MovedUnit)>,
}

/// Offset of the addend in a relocation.
pub(super) const ADDEND: u64 = 16;

/// Lists the addresses of words in a section of packed relative relocations.
pub(super) fn packed_words<'d, R: ReadAt<'d>>(
    data: R,
    section: &SectionHeader64,
) -> Result<impl Iterator<Item = u64> + use<'d, R>, PruneProblem> {
    let read = |cursor: &mut Cursor<'d, &'d [u8]>| crate::format::bytes::field(cursor, "word");
    let words = records(data, section, 8, read)?.into_iter();
    Ok(packed_addresses(words.map(|(_, word)| word)))
}

/// Bytes of the longest name of an image.
const LONGEST_NAME: u64 = 512;

/// Tells whether a name is `<package>_<module>_<eight hexadecimal digits>_image_<number>`, as `offload-build` writes it
/// (`run/unique.rs`, `steps/register.rs`).
fn is_image_name(name: &[u8]) -> bool {
    let Some((start, number)) = std::str::from_utf8(name)
        .ok()
        .and_then(|name| name.rsplit_once("_image_"))
    else {
        return false;
    };
    let is_hash = |hash: &str| hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let hash = start.rsplit_once('_').map(|(_, hash)| hash);
    hash.is_some_and(is_hash)
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Lists the values of the symbols to which the relocations of a section refer.
pub(super) fn symbol_values<'d, R: ReadAt<'d>>(
    data: R,
    headers: &ElfHeaders,
    relocations: &SectionHeader64,
) -> Result<Vec<u64>, PruneProblem> {
    let symbols = usize::try_from(relocations.link).ok();
    let symbols = symbols.and_then(|index| headers.sections.get(index));
    let Some(symbols) = symbols.filter(|symbols| symbols.has_content()) else {
        return Ok(Vec::new());
    };
    let symbols = records(data, symbols, Symbol64::LEN, Symbol64::read)?.into_iter();
    Ok(symbols.map(|(_, symbol)| symbol.value).collect())
}

/// Returns the unit to which an instruction of x86-64 refers; `code` is at the address `start`. A displacement of 4 bytes follows a
/// ModRM byte of mode 0 with register 5, and counts from the end of the instruction, which has up to 4 more bytes.
fn referred_unit(code: &[u8], start: u64, units: &[(u64, MovedUnit)]) -> Option<MovedUnit> {
    let places = (start..).zip(code.windows(5));
    let mut targets = places.filter_map(|(address, bytes)| {
        let (mode, displacement) = bytes.split_first()?;
        let displacement = i32::from_le_bytes(displacement.try_into().ok()?);
        let end = address.wrapping_add(5);
        (mode & 0xc7 == 5).then_some(end.wrapping_add_signed(displacement.into()))
    });
    targets.find_map(|target| {
        let mut units = units.iter();
        let found = units.find(|(address, _)| address.wrapping_sub(target) <= 4);
        found.map(|(_, unit)| *unit)
    })
}

impl<'d, R: ReadAt<'d>> PointerFinder<'_, R> {
    fn relocations(&mut self, section: &SectionHeader64) -> Result<(), PruneProblem> {
        let all = records(self.data, section, Relocation64::LEN, Relocation64::read)?;
        let symbols = symbol_values(self.data, self.headers, section)?;
        for (offset, relocation) in all {
            let Relocation64 {
                address,
                info,
                addend,
            } = relocation;
            if self.map.table_words.contains(&address) {
                continue;
            }
            // The lower half is the type.
            let kind = info as u32;
            let symbol = usize::try_from(info >> 32).ok();
            let value = symbol.and_then(|index| symbols.get(index));
            let value = value.copied().unwrap_or(0);
            match RelocationKind::of(self.headers.file.machine, kind) {
                RelocationKind::Relative => {
                    if let Some(new) = self.map.target("relocation", addend)? {
                        self.found.insert(addend);
                        self.relocated.insert(address);
                        self.look_for_length(address, addend);
                        self.words.insert(offset + ADDEND, new);
                        self.change_word(address, addend, new);
                    }
                }
                RelocationKind::Absolute => {
                    let target = value.wrapping_add(addend);
                    let new = self.map.target("relocation", target)?;
                    let new_value = self.map.target("symbol", value)?;
                    if let Some(new) = new {
                        self.found.insert(target);
                        self.relocated.insert(address);
                        self.look_for_length(address, target);
                        let addend = new.wrapping_sub(new_value.unwrap_or(value));
                        self.words.insert(offset + ADDEND, addend);
                    }
                }
                RelocationKind::Symbol => {
                    if self.map.target("relocation", value)?.is_some() {
                        self.found.insert(value);
                        self.look_for_length(address, value);
                    }
                }
                RelocationKind::Other => {
                    let target = value.wrapping_add(addend);
                    let mut sections = self.map.sections.iter();
                    if sections.any(|range| range.contains(&target) || range.contains(&value)) {
                        return Err(PruneProblem::Relocation { kind, address });
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the first of `units` that the program may use, although no pointer leads there. In a shared library or
    /// position-independent program for x86-64, only an instruction can. Other files are not searched, nor is large data, which
    /// code reaches by several instructions.
    fn in_use(&self, units: &[(u64, MovedUnit)]) -> Option<MovedUnit> {
        let (_, first) = units.first()?;
        let large = self.headers.addresses_of(LARGE_SECTION);
        let mut all = units.iter();
        if let Some((_, unit)) = all.find(|(address, _)| large.contains(address)) {
            return Some(*unit);
        }
        match self.is_searched() {
            true => self.referred(units, *first),
            false => Some(*first),
        }
    }

    /// Returns the first unit with a symbol inside to which an instruction refers.
    fn used_inside(&self) -> Option<MovedUnit> {
        let (_, first) = self.inside.first()?;
        self.referred(&self.inside, *first)
    }

    /// Tells whether the file is position-independent code for x86-64, whose instructions are searched.
    fn is_searched(&self) -> bool {
        let file = &self.headers.file;
        (file.machine, file.file_type) == (elf::EM_X86_64.0, elf::ET_DYN.0)
    }

    /// Returns the first of `units` to which an instruction of x86-64 refers; `first` if the code cannot be read.
    fn referred(&self, units: &[(u64, MovedUnit)], first: MovedUnit) -> Option<MovedUnit> {
        let code = self.headers.sections.iter();
        let code = code.filter(|section| section.is_code() && section.has_content());
        for section in code {
            let look = |code: &[u8], start| referred_unit(code, start, units);
            match search(self.data, section, look) {
                Err(Unreadable) => return Some(first),
                Ok(Some(unit)) => return Some(unit),
                Ok(None) => {}
            }
        }
        None
    }

    /// Looks where a pointer to the unit at `address` is, and at the words around it.
    fn look_for_length(&mut self, pointer: u64, address: u64) {
        let Some(unit) = self.map.units.get(&address) else {
            return;
        };
        let got = self
            .headers
            .find(".got")
            .map(|index| self.headers.section(index));
        if got.is_some_and(|got| got.addresses().contains(&pointer)) {
            self.in_got.insert(address);
        }
        let words = [pointer.checked_sub(8), pointer.checked_add(8)];
        let offsets = words.into_iter().flatten();
        let mut offsets = offsets.filter_map(|word| self.headers.offset_of(word));
        let is_length = offsets.any(|offset| self.word(offset) == Some(unit.old_size));
        if is_length && unit.size != unit.old_size {
            self.with_length.get_or_insert(*unit);
        }
    }

    /// Changes a word in the file if it has the old value: some linkers write it beside the relocation.
    fn change_word(&mut self, address: u64, old: u64, new: u64) {
        let Some(offset) = self.headers.offset_of(address) else {
            return;
        };
        if self.word(offset) == Some(old) {
            self.words.insert(offset, new);
        }
    }

    fn word(&self, offset: u64) -> Option<u64> {
        let bytes = self.data.read_at(offset, 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    fn packed(&mut self, section: &SectionHeader64) -> Result<(), PruneProblem> {
        for address in packed_words(self.data, section)? {
            if !self.map.table_words.contains(&address) {
                self.relocated.insert(address);
                self.pointer("relocation", address)?;
            }
        }
        Ok(())
    }

    /// Changes the word at an address if it points to a unit.
    fn pointer(&mut self, what: &'static str, address: u64) -> Result<(), PruneProblem> {
        let Some(offset) = self.headers.offset_of(address) else {
            return Ok(());
        };
        let Some(old) = self.word(offset) else {
            return Ok(());
        };
        if let Some(new) = self.map.target(what, old)? {
            self.found.insert(old);
            self.words.insert(offset, new);
            self.look_for_length(address, old);
        }
        Ok(())
    }

    fn wrappers(&mut self) -> Result<(), PruneProblem> {
        for name in WRAPPERS {
            let Some(section) = self.headers.find(name) else {
                continue;
            };
            let section = self.headers.section(section);
            for place in (0..section.size / WRAPPER_SIZE).map(|index| index * WRAPPER_SIZE) {
                let magic = self.data.read_at(section.offset + place, 4);
                let magic =
                    magic.and_then(|bytes| Some(u32::from_le_bytes(bytes.try_into().ok()?)));
                let address = section.address + place + 8;
                let is_wrapper = magic.is_some_and(|magic| WRAPPER_MAGICS.contains(&magic));
                if is_wrapper && !self.relocated.contains(&address) {
                    self.pointer("wrapper", address)?;
                }
            }
        }
        Ok(())
    }

    fn symbols(&mut self, section: &SectionHeader64) -> Result<(), PruneProblem> {
        /// Offsets of value and size in a symbol.
        const VALUE: u64 = 8;
        const SIZE: u64 = 16;
        for (offset, symbol) in records(self.data, section, Symbol64::LEN, Symbol64::read)? {
            // Absolute and common symbols have no address.
            let is_defined = (1..elf::SHN_LORESERVE).contains(&symbol.section);
            let starts = |range: &Range<u64>| range.start == symbol.value;
            let ends = |range: &Range<u64>| range.end == symbol.value;
            if !is_defined || self.map.sections.iter().any(ends) {
                continue;
            }
            let unit = self.map.units.get(&symbol.value);
            match unit {
                Some(unit) => {
                    self.words.insert(offset + VALUE, unit.address);
                    if symbol.size == unit.old_size {
                        self.words.insert(offset + SIZE, unit.size);
                    }
                }
                None if self.map.sections.iter().any(starts) => {}
                // On AArch64 GNU ld places symbols of `.eh_frame` before that section, where images may end. Only
                // debuggers read them.
                None if section.kind == elf::SHT_SYMTAB.0 && !self.has_units(symbol.section) => {}
                None => match self.map.unit_around(symbol.value) {
                    Some(unit) if self.names_image(section, symbol.name) => {
                        self.inside.push((symbol.value, *unit));
                        let new = self.map.images.get(&symbol.value);
                        self.words
                            .insert(offset + VALUE, *new.unwrap_or(&unit.address));
                        if new.is_none() {
                            self.words.insert(offset + SIZE, 0);
                        }
                    }
                    _ => {
                        self.map.target("symbol", symbol.value)?;
                    }
                },
            }
        }
        Ok(())
    }

    /// Tells whether a symbol of a section is one by which `offload-build` names an image, which only relocations use.
    fn names_image(&self, symbols: &SectionHeader64, name: u32) -> bool {
        if symbols.kind != elf::SHT_SYMTAB.0 || !self.is_searched() {
            return false;
        }
        let names = usize::try_from(symbols.link).ok();
        let Some(names) = names.and_then(|index| self.headers.sections.get(index)) else {
            return false;
        };
        let rest = names.size.saturating_sub(name.into()).min(LONGEST_NAME);
        let mut text = vec![0; rest as usize];
        let read = self
            .data
            .read_once(&mut text, names.offset.saturating_add(name.into()));
        let end = text.iter().position(|byte| *byte == 0);
        read.is_some()
            && end
                .and_then(|end| text.get(..end))
                .is_some_and(is_image_name)
    }

    /// Returns whether the section of that number is one of units.
    fn has_units(&self, section: u16) -> bool {
        let section = self.headers.sections.get(usize::from(section));
        let start = section.map(|section| section.address);
        let mut sections = self.map.sections.iter();
        sections.any(|range| Some(range.start) == start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_unit_to_which_an_instruction_refers() {
        let unit = MovedUnit {
            address: 0,
            old_size: 16,
            size: 16,
            offset: 0x300,
        };
        let refers = |code: &[u8]| referred_unit(code, 0x1000, &[(0x2000, unit)]).is_some();
        // `lea rax, [rip + 0xff9]`, `cmp dword [rip + 0xff6], 1`, `mov rdi, [rip + 0xff8]` after a `nop`.
        assert!(refers(b"\x48\x8d\x05\xf9\x0f\0\0"));
        assert!(refers(b"\x81\x3d\xf6\x0f\0\0\x01\0\0\0"));
        assert!(refers(b"\x90\x48\x8b\x3d\xf8\x0f\0\0"));
        // To the byte before and the byte after; relative to another register; not whole.
        assert!(!refers(b"\x48\x8d\x05\xfa\x0f\0\0"));
        assert!(!refers(b"\x48\x8d\x05\xf4\x0f\0\0"));
        assert!(!refers(b"\x48\x8d\x83\xf9\x0f\0\0"));
        assert!(!refers(b"\x48\x8d\x05\xf9\x0f\0"));
    }
}
