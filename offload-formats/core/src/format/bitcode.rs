//! LLVM bitcode, as far as archives, links and extraction need it: global symbols and embedded
//! objects.
//!
//! | offset | size | field                                                             |
//! |-------:|-----:|-------------------------------------------------------------------|
//! | `0x00` |    4 | magic, `BC C0 DE`                                                 |
//! |        |      | then blocks: identification (13), module (8), symbols (25), strings (23) |
//!
//! A wrapper, `DE C0 17 0B`, may enclose it: five words, of which the third and fourth hold offset
//! and size of the bitcode.
//!
//! Compilers write a symbol table for linkers after the module. It is complete: it includes the
//! names that inline assembly defines. If it is missing, the module's records of functions and
//! variables are used instead, without inline assembly. Both refer to the strings, which are the
//! next block.
//!
//! Specification: <https://llvm.org/docs/BitCodeFormat.html>; the table of symbols:
//! `llvm/include/llvm/Object/IRSymtab.h` of LLVM 22.

mod bitstream;
mod embedded;
mod empty_functions;
mod error;
mod ordering_atomics;
mod rename;
#[cfg(feature = "tools")]
mod sections;

use std::ops::Range;

use super::bytes::{Cursor, OutOfBounds, ReadAt, record};
use super::global_symbol::GlobalSymbol;
use super::magic::Magic;
use bitstream::{BitcodeRecord, BlockInfo, BlockItem, Keep, blocks};

pub use embedded::embedded_objects;
pub use empty_functions::empty_functions;
pub use error::{BitcodeError, EmbeddedProblem};
pub use ordering_atomics::{AtomicKind, OrderingAtomic, functions_with_ordering_atomics};
pub use rename::rename_function;
#[cfg(feature = "tools")]
pub use sections::section_names;

record! {
    pub(crate) struct Wrapper, "bitcode wrapper", 20 bytes {
        0x00 magic: [u8; 4],
        0x04 version: u32,
        0x08 offset: u32,
        0x0c size: u32,
        0x10 processor: u32,
    }
}

record! {
    pub(crate) struct TableHeader, "symbol table", 44 bytes {
        0x00 version: u32,
        0x04 producer_offset: u32,
        0x08 producer_size: u32,
        0x0c modules_offset: u32,
        0x10 module_count: u32,
        0x14 comdats_offset: u32,
        0x18 comdat_count: u32,
        0x1c symbols_offset: u32,
        0x20 symbol_count: u32,
        0x24 uncommons_offset: u32,
        0x28 uncommon_count: u32,
    }
}

record! {
    pub(crate) struct TableSymbol, "symbol", 24 bytes {
        0x00 name_offset: u32,
        0x04 name_size: u32,
        0x08 ir_name_offset: u32,
        0x0c ir_name_size: u32,
        0x10 comdat: u32,
        0x14 flags: u32,
    }
}

const WRAPPED: [u8; 4] = [0xde, 0xc0, 0x17, 0x0b];

/// Newest supported version of the symbol table, which LLVM 19 to 22 write.
const TABLE_VERSION: u32 = 3;

/// Flags of a symbol in the table. The two lowest bits hold the visibility.
const VISIBILITY: u32 = 3;
const HIDDEN: u32 = 1;
const UNDEFINED: u32 = 1 << 3;
const WEAK: u32 = 1 << 4;
const COMMON: u32 = 1 << 5;
const GLOBAL: u32 = 1 << 10;
const FORMAT_SPECIFIC: u32 = 1 << 11;

/// Reads the global symbols of the bitcode in a range of `data`. They have LLVM's order: functions,
/// variables, aliases, indirect functions, then those of inline assembly.
///
/// Accepts any input: this does not panic, and allocates at most a small multiple of what it reads.
///
/// # Errors
///
/// Fails if the range is not bitcode, or a block, record or name exceeds its container.
pub fn symbols<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<GlobalSymbol<'d>>, BitcodeError> {
    let range = unwrap(data, range)?;
    let blocks = blocks(data, range)?;
    let mut table = None;
    for block in blocks.iter().filter(|block| block.id == SYMTAB) {
        block.records(data, &mut |record| table = table.or(record.blob))?;
    }
    let table = table.map(Table::parse).transpose()?.flatten();
    let (mut modules, mut symbols) = (Vec::new(), Vec::new());
    // A string table belongs to the modules before it, and to the first symbol table.
    for block in &blocks {
        match block.id {
            MODULE if table.is_none() => {
                let mut module = BitcodeModule::default();
                block.records(data, &mut |record| module.add(&record))?;
                modules.push(module);
            }
            STRTAB => {
                let mut strings = None;
                block.records(data, &mut |record| strings = strings.or(record.blob))?;
                let strings = strings.ok_or(BitcodeError::Strings)?;
                if let Some(table) = table {
                    return table.symbols(strings);
                }
                for module in modules.drain(..) {
                    module.symbols(strings, &mut symbols)?;
                }
            }
            _ => {}
        }
    }
    if table.is_some() || !modules.is_empty() {
        return Err(BitcodeError::Strings);
    }
    Ok(symbols)
}

/// Reads the LLVM release that wrote the bitcode in a range of `data`, such as 22.
///
/// The identification block has the release (`LLVM22.1.8`, perhaps with a vendor's suffix). Returns
/// `None` if the block is missing or names another producer.
///
/// # Errors
///
/// Fails if the range is not bitcode, or a block or record exceeds its container.
pub fn release<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Result<Option<u32>, BitcodeError> {
    let mut release = None;
    for block in blocks(data, unwrap(data, range)?)? {
        if block.id == IDENTIFICATION {
            block.records(data, &mut |record| {
                if record.code == PRODUCER {
                    // If the file has several modules, the newest release counts.
                    release = release.max(release_of(&record.fields));
                }
            })?;
        }
    }
    Ok(release)
}

/// Reads the target triple of the bitcode in a range of `data`, such as `amdgcn-amd-amdhsa`.
///
/// If the file has several modules, the first one counts. Returns `None` if it has no triple.
///
/// # Errors
///
/// Fails if the range is not bitcode, or a block or record exceeds its container.
pub fn triple<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Option<String>, BitcodeError> {
    let mut blocks = blocks(data, unwrap(data, range)?)?.into_iter();
    let Some(module) = blocks.find(|block| block.id == MODULE) else {
        return Ok(None);
    };
    let mut items = module.open(data)?;
    let none = BlockInfo::default();
    while let Some(item) = items.next(&none, Keep::Bytes)? {
        match item {
            BlockItem::Record(record) if record.code == TRIPLE => {
                return Ok(String::from_utf8(record.bytes).ok());
            }
            _ => {}
        }
    }
    Ok(None)
}

/// Returns the end of the bitcode at the start of a range of `data`, which other data follows. Returns `None` if the range
/// does not start with a module.
#[cfg(feature = "tools")]
#[doc(hidden)]
pub fn end<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Option<u64> {
    let blocks = unwrap(data, range.clone()).ok()?;
    let is_wrapped = blocks.start != range.start.saturating_add(4);
    let wrapped_end = is_wrapped.then_some(blocks.end);
    let (mut end, mut has_module) = (None, false);
    let mut cursor = Cursor::new(data, blocks);
    // What follows may look like a block of another kind.
    while let Ok(Some(block)) = bitstream::next_block(&mut cursor) {
        if !matches!(block.id, IDENTIFICATION | MODULE | STRTAB | SYMTAB) {
            break;
        }
        has_module |= block.id == MODULE;
        end = Some(cursor.position());
    }
    wrapped_end.or(end).filter(|_| has_module)
}

fn release_of(producer: &[u64]) -> Option<u32> {
    let chars = producer.iter();
    let text: String = chars
        .map_while(|char| char::from_u32(u32::try_from(*char).ok()?))
        .collect();
    text.strip_prefix("LLVM")?.split('.').next()?.parse().ok()
}

const IDENTIFICATION: u64 = 13;
/// Record of the identification block that names the producer.
const PRODUCER: u64 = 1;
const MODULE: u64 = 8;
/// Record of the module block with the triple, a byte in each field.
const TRIPLE: u64 = 2;
const STRTAB: u64 = 23;
const SYMTAB: u64 = 25;

/// Returns the range of the blocks.
fn unwrap<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Result<Range<u64>, BitcodeError> {
    let mut cursor = Cursor::new(data, range.clone());
    let mut range = range.start..cursor.end();
    if Magic::at(data, range.clone()) != Magic::Bitcode {
        return Err(BitcodeError::Magic {
            offset: range.start,
        });
    }
    if cursor
        .clone()
        .read(4, "magic")
        .map_err(BitcodeError::Outside)?
        == WRAPPED
    {
        let wrapper = Wrapper::read(&mut cursor).map_err(BitcodeError::Outside)?;
        let start = range.start.saturating_add(wrapper.offset.into());
        let inner = OutOfBounds::check("wrapped bitcode", start, wrapper.size.into(), range.end);
        range = inner.map_err(BitcodeError::Outside)?;
    }
    // The magic has the size of one word.
    range.start = range.start.saturating_add(4);
    Ok(range)
}

/// The symbol table for linkers.
struct Table<'d>(&'d [u8], TableHeader);

impl<'d> Table<'d> {
    /// Returns `None` if the version is not supported.
    fn parse(bytes: &'d [u8]) -> Result<Option<Self>, BitcodeError> {
        let header = TableHeader::read(&mut Cursor::new(bytes, 0..bytes.len() as u64));
        let header = header.map_err(BitcodeError::Table)?;
        let known = (1..=TABLE_VERSION).contains(&header.version);
        Ok(known.then_some(Self(bytes, header)))
    }

    fn symbols(&self, strings: &'d [u8]) -> Result<Vec<GlobalSymbol<'d>>, BitcodeError> {
        let Self(bytes, header) = self;
        let size = u64::from(header.symbol_count) * TableSymbol::LEN;
        let end = bytes.len() as u64;
        let symbols = OutOfBounds::check("symbols", header.symbols_offset.into(), size, end);
        let mut cursor = Cursor::new(*bytes, symbols.map_err(BitcodeError::Table)?);
        let mut symbols = Vec::new();
        while cursor.position() < cursor.end() {
            let symbol = TableSymbol::read(&mut cursor).map_err(BitcodeError::Table)?;
            let flags = symbol.flags;
            // Undefined symbols of inline assembly do not always have the flag `GLOBAL`.
            if flags & (GLOBAL | UNDEFINED) != 0 && flags & FORMAT_SPECIFIC == 0 {
                symbols.push(GlobalSymbol {
                    name: name(strings, symbol.name_offset.into(), symbol.name_size.into())?,
                    defined: flags & UNDEFINED == 0,
                    weak: flags & WEAK != 0,
                    hidden: flags & VISIBILITY == HIDDEN,
                    lto: true,
                    common: flags & COMMON != 0,
                });
            }
        }
        Ok(symbols)
    }
}

/// Symbols collected from the records of a module without a symbol table.
#[derive(Default)]
struct BitcodeModule {
    version: u64,
    /// Functions, variables, aliases, and indirect functions.
    globals: [Vec<BitcodeGlobal>; 4],
    /// Numbers (from 1) of sections that do not become sections of the object, sorted.
    metadata: Vec<u64>,
    section_count: u64,
}

/// A symbol of a module.
struct BitcodeGlobal {
    /// Offset of the name in the strings, and its length.
    name: (u64, u64),
    defined: bool,
    weak: bool,
    hidden: bool,
    common: bool,
}

/// Codes of a module's records.
const VERSION: u64 = 1;
const SECTION_NAME: u64 = 5;
const VARIABLE: u64 = 7;
const FUNCTION: u64 = 8;
const ALIAS: u64 = 14;
const IFUNC: u64 = 18;

impl BitcodeModule {
    /// Adds a record of module version 2 (LLVM 5 and newer). It starts with offset and length of
    /// the name; the fields of older versions follow.
    fn add(&mut self, record: &BitcodeRecord<'_>) {
        // Index of the visibility field, which also counts the name.
        let (kind, declared, visibility) = match record.code {
            FUNCTION => (0, record.field(4) != 0, 9),
            VARIABLE => (1, record.field(4) == 0, 8),
            ALIAS => (2, false, 6),
            IFUNC => (3, false, 6),
            SECTION_NAME => {
                self.section_count += 1;
                if record
                    .fields
                    .iter()
                    .eq(b"llvm.metadata".map(u64::from).iter())
                {
                    self.metadata.push(self.section_count);
                }
                return;
            }
            VERSION => {
                self.version = record.field(0);
                return;
            }
            _ => return,
        };
        let linkage = record.field(5);
        // Internal linkage, private linkage (three codes), and functions for inlining only.
        let foreign = matches!(linkage, 3 | 9 | 13 | 14 | 12)
            || (record.code == VARIABLE && self.metadata.binary_search(&record.field(7)).is_ok());
        if let (false, Some(globals)) = (foreign, self.globals.get_mut(kind)) {
            globals.push(BitcodeGlobal {
                name: (record.field(0), record.field(1)),
                defined: !declared,
                // Weak, link-once and weak-undefined linkage, in both numberings.
                weak: matches!(linkage, 1 | 4 | 7 | 10 | 11 | 16..=19),
                hidden: record.field(visibility) == 1,
                common: linkage == 8,
            });
        }
    }

    fn symbols<'d>(
        &self,
        strings: &'d [u8],
        symbols: &mut Vec<GlobalSymbol<'d>>,
    ) -> Result<(), BitcodeError> {
        if self.version != 2 {
            return Err(BitcodeError::Version {
                version: self.version,
            });
        }
        for global in self.globals.iter().flatten() {
            let (offset, size) = global.name;
            let name = name(strings, offset, size)?;
            // Skips LLVM's own symbols. The mark `\x01` protects any other name that starts with
            // `llvm.`.
            if !name.starts_with(b"llvm.") {
                symbols.push(GlobalSymbol {
                    name: name.strip_prefix(b"\x01").unwrap_or(name),
                    defined: global.defined,
                    weak: global.weak,
                    hidden: global.hidden,
                    lto: true,
                    common: global.common,
                });
            }
        }
        Ok(())
    }
}

fn name(strings: &[u8], offset: u64, size: u64) -> Result<&[u8], BitcodeError> {
    let range = OutOfBounds::check("name", offset, size, strings.len() as u64);
    Cursor::new(strings, range.map_err(BitcodeError::Table)?)
        .read(size, "name")
        .map_err(BitcodeError::Table)
}

#[cfg(test)]
mod tests;
