//! Reads host objects beyond their section headers, once the link has device code.

use offload_formats::container::elf::{Elf, ElfError, SymbolPlace, SymbolTable};
use offload_formats::container::{self, coff};
use offload_formats::format::bitcode;
use offload_formats::format::bytes::{Cursor, ReadAt};
use offload_formats::format::offload_entry::{EntryLayout, OffloadEntry};
use offload_formats::names::{LlvmRelease, OffloadKind};
use offload_formats::registration::NEEDS_OFFLOAD_LINK;
use std::collections::BTreeSet;
use std::ops::Range;

use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::inputs::blocks::Blocks;
use crate::linker_wrapper::inputs::file::{Inputs, Unit, UnitKind};
use crate::linker_wrapper::inputs::symbols::Names;

/// Returns the symbols of a unit; `None` if they cannot be read.
pub(crate) fn symbols(blocks: &Blocks, unit: &Unit) -> Option<Names> {
    if unit.kind == UnitKind::Other {
        return None;
    }
    let data = blocks.apart();
    let symbols = container::symbols(&data, unit.data.clone()).ok()?;
    Some(Names::of(&symbols))
}

/// Returns the symbols of a shared library; `None` if they cannot be read.
pub(crate) fn shared_symbols(blocks: &Blocks) -> Option<Names> {
    let data = blocks.apart();
    let symbols = container::dynamic_symbols(&data, 0..blocks.size()).ok()?;
    Some(Names::of(&symbols))
}

/// Tells whether a unit calls a runtime's registration: then its images are linked already.
pub(crate) fn registers(blocks: &Blocks, unit: &Unit) -> bool {
    let symbols = symbols(blocks, unit).unwrap_or_default();
    let symbols = symbols.symbols();
    let mut names = symbols.undefined.iter().chain(&symbols.defined);
    names.any(|name| is_registration(name))
}

/// Tells whether a symbol is a runtime's registration function.
pub(crate) fn is_registration(name: &[u8]) -> bool {
    const CALLS: [&str; 4] = [
        "__tgt_register_lib",
        "__cudaRegisterFatBinary",
        "__hipRegisterFatBinary",
        "__sycl_register_lib",
    ];
    CALLS.iter().any(|call| name == call.as_bytes())
}

/// A section of offload entries in a host object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntrySection {
    pub name: &'static str,
    /// Size in bytes; 0 if the object does not exist yet.
    pub size: u64,
    pub flags: u64,
    pub alignment: u64,
    /// Distinct sizes of its entries.
    pub strides: Vec<u64>,
    /// Kinds whose entries it can contain.
    pub kinds: Vec<OffloadKind>,
    /// COFF: symbols of its entries.
    pub symbols: Vec<String>,
}

/// Records of the compiler in a host object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostSide {
    pub entries: Vec<EntrySection>,
    /// Names of the entries, where an ELF object has a section of them.
    pub names: BTreeSet<Vec<u8>>,
    /// Release of clang in `.comment`.
    pub clang: Option<u32>,
    /// Set if it needs the registration by this tool.
    pub deferred: bool,
    /// Names of HIP's fat binary and its handle, and whether the object defines them.
    pub hip: Vec<(String, bool)>,
}

/// Prefixes of the symbols for HIP's fat binary and its handle in objects of clang's older driver.
pub(crate) const HIP_NAMES: [&str; 2] = ["__hip_fatbin", "__hip_gpubin_handle"];

/// Section with the names of entries, which compilers write since LLVM 20.
pub(crate) const NAMES_SINCE_20: &str = ".llvm.rodata.offloading";

/// Returns the names in such a section.
pub(crate) fn entry_names(section: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let names = section.split(|byte| *byte == 0);
    names.filter(|name| !name.is_empty()).map(<[u8]>::to_vec)
}

/// Reads the host side of a unit; `None` if it cannot be read.
pub(crate) fn host_side(blocks: &Blocks, unit: &Unit) -> Option<HostSide> {
    let range = unit.data.clone();
    let data = blocks.apart();
    let blocks = &data;
    match unit.kind {
        UnitKind::Elf => of_elf(blocks, range).ok(),
        UnitKind::Coff => {
            let object = coff::Object::read(blocks, range).ok()?;
            Some(of_coff(&object))
        }
        UnitKind::Bitcode => {
            let names = bitcode::section_names(blocks, range.clone()).ok()?;
            // Other bitcode may be Rust's.
            let clang = match unit.has_device_code() {
                true => bitcode::release(blocks, range.clone()).ok().flatten(),
                false => None,
            };
            Some(HostSide {
                clang,
                deferred: demands(blocks, range),
                ..of_names(names.iter().map(Vec::as_slice).collect())
            })
        }
        UnitKind::Other => None,
    }
}

/// Returns the release of clang that made the first host object with device code: from `.comment`, else from the
/// layout of its offload entries.
pub(crate) fn release(inputs: &Inputs) -> Result<Option<LlvmRelease>, LinkError> {
    for (file, unit) in inputs.units().filter(|(_, unit)| unit.has_device_code()) {
        let blocks = file.blocks(unit);
        let blocks =
            blocks.map_err(|problem| LinkError::unopened(unit.path(&file.path), &problem))?;
        let release = host_side(&blocks, unit).and_then(|side| side.release());
        if release.is_some() {
            return Ok(release);
        }
    }
    Ok(None)
}

impl HostSide {
    fn release(&self) -> Option<LlvmRelease> {
        match self.clang {
            Some(..=19) => return Some(LlvmRelease::V19),
            Some(release) => return Some(release.to_string().parse().unwrap_or(LlvmRelease::Main)),
            None => {}
        }
        let tables = self.entries.iter().filter_map(|section| {
            let stride = section.strides.first()?;
            EntryLayout::find(section.name, *stride)
        });
        // The layout of LLVM 21 has not changed since.
        let old = [LlvmRelease::V19, LlvmRelease::V20].into_iter();
        let mut old = old.map(|release| (EntryLayout::of(release), release));
        let table = tables.into_iter().next()?;
        old.find_map(|(of, release)| (of == table).then_some(release))
    }
}

/// Tells whether a unit needs a linker that registers its images.
fn demands<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> bool {
    let symbols = container::symbols(data, range).unwrap_or_default();
    let demand = |name: &[u8]| name == NEEDS_OFFLOAD_LINK.as_bytes();
    symbols.iter().any(|symbol| demand(symbol.name))
}

/// Returns the kinds whose entries a section with this name contains.
pub(crate) fn kinds_of(section: &str) -> Vec<OffloadKind> {
    let here = |kind: &OffloadKind| {
        let mut layouts = EntryLayout::ALL.into_iter();
        layouts.any(|layout| layout.section(*kind) == Some(section))
    };
    KINDS.into_iter().filter(here).collect()
}

/// Kinds that have entries and a runtime, in LLVM's order.
pub(crate) const KINDS: [OffloadKind; 4] = [
    OffloadKind::OPENMP,
    OffloadKind::CUDA,
    OffloadKind::HIP,
    OffloadKind::SYCL,
];

/// Returns the kinds of the entries in a section, if they record them: an old runtime must not get an empty table of
/// a kind that it does not know.
fn kinds_in(content: &[u8], section: &str) -> Option<Vec<OffloadKind>> {
    let table = EntryLayout::V21;
    if table.sections().all(|new| new != section) {
        return None;
    }
    let mut cursor = Cursor::new(content, 0..u64::MAX);
    let mut kinds = Vec::new();
    while let Ok(entry) = OffloadEntry::read(&mut cursor, table) {
        let kind = entry.kind.filter(|kind| KINDS.contains(kind))?;
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    Some(kinds)
}

/// Reads the host side from the names of sections alone.
fn of_names(names: Vec<&[u8]>) -> HostSide {
    let since_20 = names.iter().any(|name| *name == NAMES_SINCE_20.as_bytes());
    let table = if since_20 {
        EntryLayout::V20
    } else {
        EntryLayout::V19
    };
    let sections = names
        .iter()
        .filter_map(|name| EntryLayout::section_named(name));
    let entries = sections.map(|name| EntrySection {
        name,
        size: 0,
        flags: 3, // SHF_WRITE | SHF_ALLOC, as clang has it
        alignment: 8,
        strides: match EntryLayout::V21.sections().any(|new| new == name) {
            true => vec![EntryLayout::V21.stride()],
            false => vec![table.stride()],
        },
        kinds: kinds_of(name),
        symbols: Vec::new(),
    });
    HostSide {
        entries: entries.collect(),
        ..HostSide::default()
    }
}

fn of_coff(object: &coff::Object<'_>) -> HostSide {
    let sections: Vec<&[u8]> = object.sections().map(|section| section.name).collect();
    let mut found = of_names(sections.clone());
    for symbol in object.symbols().filter(|symbol| symbol.is_external) {
        found.deferred |= symbol.name == NEEDS_OFFLOAD_LINK.as_bytes();
        let number = symbol.section.and_then(|number| number.checked_sub(1));
        let name = number.and_then(|index| sections.get(index));
        let Some(name) = name.and_then(|name| EntryLayout::section_named(name)) else {
            continue;
        };
        let section = found.entries.iter_mut().find(|known| known.name == name);
        if let (Some(section), Ok(symbol)) = (section, std::str::from_utf8(symbol.name)) {
            section.symbols.push(symbol.to_owned());
        }
    }
    found
}

fn of_elf<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Result<HostSide, ElfError> {
    let elf = Elf::parse(data, range)?;
    let names = elf.names()?;
    let mut found = HostSide::default();
    for section in elf.sections().skip(1) {
        match names.of(&section)? {
            b".comment" => found.clang = clang_release(elf.content(&section)?),
            name if name == NAMES_SINCE_20.as_bytes() => {
                found.names.extend(entry_names(elf.content(&section)?));
            }
            _ => {}
        }
    }
    let symbols = elf.symbols(SymbolTable::All)?;
    for symbol in &symbols {
        found.deferred |= symbol.name == NEEDS_OFFLOAD_LINK.as_bytes();
        if HIP_NAMES
            .iter()
            .any(|start| symbol.name.starts_with(start.as_bytes()))
        {
            let name = String::from_utf8_lossy(symbol.name).into_owned();
            found
                .hip
                .push((name, symbol.place != SymbolPlace::Undefined));
        }
    }
    for entries in elf.entry_sections(&symbols)? {
        let mut strides = Vec::new();
        for symbol in &entries.symbols {
            if !strides.contains(&symbol.size) {
                strides.push(symbol.size);
            }
        }
        found.entries.push(EntrySection {
            name: entries.name,
            size: entries.section.size,
            flags: entries.section.flags,
            alignment: entries.section.alignment,
            strides,
            kinds: kinds_in(entries.content, entries.name)
                .unwrap_or_else(|| kinds_of(entries.name)),
            symbols: Vec::new(),
        });
    }
    Ok(found)
}

/// Parses `clang version 19.1.7` in the strings of `.comment`.
fn clang_release(comment: &[u8]) -> Option<u32> {
    let text = String::from_utf8_lossy(comment);
    let (_, rest) = text.split_once("clang version ")?;
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    rest.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_whose_entries_are_in_a_section() {
        let mut entries = [0; 112];
        (entries[8], entries[10]) = (1, 4);
        (entries[64], entries[66]) = (1, 1);
        let (new, old) = ("llvm_offload_entries", "omp_offloading_entries");
        let both = vec![OffloadKind::HIP, OffloadKind::OPENMP];
        assert_eq!(kinds_in(&entries, new), Some(both));
        assert_eq!(kinds_in(&entries[..60], new), Some(vec![OffloadKind::HIP]));
        assert_eq!(kinds_in(&entries, old), None);
        // An unknown kind, as from a big-endian host.
        entries[10..12].copy_from_slice(&[0, 4]);
        assert_eq!(kinds_in(&entries, new), None);
        assert_eq!(kinds_of(new), KINDS);
        assert_eq!(kinds_of(old), [OffloadKind::OPENMP]);
    }

    #[test]
    fn finds_the_release_of_clang() {
        for (comment, expected) in [
            (&b"\0Debian clang version 19.1.7 (3)\0"[..], Some(19)),
            (
                b"GCC: (Debian 12) 12.2.0\0clang version 22.1.8\0rustc version 1.95.0",
                Some(22),
            ),
            (b"rustc version 1.95.0 (59807616e 2026-04-14)\0", None),
            (b"clang version ", None),
        ] {
            assert_eq!(clang_release(comment), expected);
        }
    }
}
