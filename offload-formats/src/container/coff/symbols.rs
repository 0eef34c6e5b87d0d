//! The symbols of a COFF file.

use object::read::coff::{CoffHeader, Symbol as _, SymbolTable};
use object::{LittleEndian as LE, SymbolIndex, pe};

use super::error::CoffError;

/// A symbol with its auxiliary records.
#[derive(Clone, Debug)]
pub(super) struct EditedCoffSymbol<'d> {
    /// Index in the old file, with auxiliary records counted.
    pub(super) old_index: usize,
    pub(super) name: &'d [u8],
    pub(super) value: u32,
    /// Number of the section, from 1; 0 and negative numbers have special meanings.
    pub(super) section: i32,
    pub(super) kind: u16,
    pub(super) class: pe::SymbolClass,
    pub(super) auxiliary: Auxiliary<'d>,
    /// Number of the section that the symbol's section is associated with.
    pub(super) associate: Option<i32>,
    /// Index of a weak external's default symbol.
    pub(super) default: Option<u32>,
    pub(super) kept: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Auxiliary<'d> {
    /// The name of a source file, in one or more records.
    FileName(&'d [u8]),
    Records(Vec<&'d [u8]>),
}

/// Size of an auxiliary record. Large objects have padding after it.
pub(super) const RECORD_SIZE: usize = pe::IMAGE_SIZEOF_SYMBOL;

/// Reads all symbols of a file with `section_count` sections.
pub(super) fn read_symbols<'d, H: CoffHeader, R: object::ReadRef<'d>>(
    table: &SymbolTable<'d, R, H>,
    section_count: usize,
) -> Result<Vec<EditedCoffSymbol<'d>>, CoffError> {
    let (mut symbols, mut index) = (Vec::new(), 0);
    while index < table.len() {
        let wrong = CoffError::Symbol { index };
        let symbol = table.symbol(SymbolIndex(index)).map_err(|_| wrong)?;
        let name = symbol.name(table.strings()).map_err(|_| wrong)?;
        let section = symbol.section_number().0;
        let is_section = |number| {
            usize::try_from(number).is_ok_and(|number| (1..=section_count).contains(&number))
        };
        if section > 0 && !is_section(section) {
            return Err(wrong);
        }
        let mut records = Vec::new();
        let mut joined: Option<&[u8]> = None;
        let count = symbol.number_of_aux_symbols();
        if symbol.has_aux_file_name() {
            let name = table.aux_file_name(SymbolIndex(index), count);
            joined = Some(name.map_err(|_| wrong)?);
        } else {
            for record in 1..=usize::from(count) {
                let record = table.get::<[u8; RECORD_SIZE]>(SymbolIndex(index), record);
                records.push(&record.map_err(|_| wrong)?[..]);
            }
        }
        let first = records.first().copied().unwrap_or_default();
        let associate = associate::<H>(symbol, first).map(i32::try_from);
        let associate = associate.transpose().map_err(|_| wrong)?;
        if associate.is_some_and(|number| !is_section(number)) {
            return Err(wrong);
        }
        symbols.push(EditedCoffSymbol {
            old_index: index,
            name,
            value: symbol.value(),
            section,
            kind: symbol.typ().0,
            class: symbol.storage_class(),
            auxiliary: match joined {
                Some(name) => Auxiliary::FileName(name),
                None => Auxiliary::Records(records),
            },
            associate,
            default: default::<H>(symbol, first),
            kept: true,
        });
        index += 1 + usize::from(count);
    }
    Ok(symbols)
}

impl EditedCoffSymbol<'_> {
    /// Returns the number of records of `size` bytes that the symbol needs, with itself.
    pub(super) fn count(&self, size: usize) -> usize {
        1 + match &self.auxiliary {
            Auxiliary::FileName(name) => name.len().div_ceil(size),
            Auxiliary::Records(records) => records.len(),
        }
    }
}

/// Returns the number of the section that a symbol's section is associated with. `record` is the symbol's first
/// auxiliary record; empty if it has none.
fn associate<H: CoffHeader>(symbol: &H::Symbol, record: &[u8]) -> Option<u32> {
    let class = symbol.storage_class();
    // In C++/CLI, absolute symbols have such a record, too.
    let of_section = class == pe::IMAGE_SYM_CLASS_STATIC
        || class == pe::IMAGE_SYM_CLASS_EXTERNAL
            && symbol.section_number() == pe::IMAGE_SYM_ABSOLUTE;
    let (definition, _) = object::pod::from_bytes::<pe::ImageAuxSymbolSection>(record).ok()?;
    if !of_section || definition.selection != pe::IMAGE_COMDAT_SELECT_ASSOCIATIVE {
        return None;
    }
    let low = u32::from(definition.number.get(LE));
    let high = u32::from(definition.high_number.get(LE));
    // Ordinary objects have no upper half: its bytes are undefined.
    Some(if H::is_type_bigobj() {
        high << 16 | low
    } else {
        low
    })
}

/// Returns the index of a weak external's default symbol.
fn default<H: CoffHeader>(symbol: &H::Symbol, record: &[u8]) -> Option<u32> {
    let (weak, _) = object::pod::from_bytes::<pe::ImageAuxSymbolWeak>(record).ok()?;
    let is_weak = symbol.storage_class() == pe::IMAGE_SYM_CLASS_WEAK_EXTERNAL;
    is_weak.then(|| weak.weak_default_sym_index.get(LE))
}
