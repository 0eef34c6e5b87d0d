//! The symbols of a file that other files see: what links are about, and indices of archives.

use object::pe::{
    IMAGE_SYM_CLASS_EXTERNAL, IMAGE_SYM_CLASS_WEAK_EXTERNAL, IMAGE_SYM_UNDEFINED,
    IMAGE_WEAK_EXTERN_SEARCH_ALIAS, ImageAuxSymbolWeak,
};
use object::read::FileKind;
use object::read::coff::{CoffBigFile, CoffFile, CoffHeader, Symbol, SymbolTable};
use std::fmt;
use std::ops::Range;

use super::elf::{self, Binding, Elf, ElfError, SymbolPlace};
use crate::format::bitcode;
use object::ReadRef;

use crate::format::bytes::{ReadAt, View};
use crate::format::global_symbol::GlobalSymbol;
use crate::format::magic::Magic;

/// The names that the object or the bitcode in a range of `data` defines for others, in the order
/// of its symbols: what `llvm-ar` of LLVM 22 puts into an index. Files that are neither ELF, COFF
/// nor bitcode define none.
///
/// # Errors
///
/// As [`symbols`].
pub fn definitions<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<&'d [u8]>, SymbolsError> {
    let symbols = symbols(data, range)?;
    let defined = symbols.into_iter().filter(|symbol| symbol.defined);
    Ok(defined.map(|symbol| symbol.name).collect())
}

/// The symbols that others see of the object or the bitcode in a range of `data`, in their order
/// there; none of other files.
///
/// # Errors
///
/// When the file is invalid, or its names are far longer than it is.
pub fn symbols<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<GlobalSymbol<'d>>, SymbolsError> {
    let window = View::new(data, range.clone());
    let symbols = match Magic::at(data, range.clone()) {
        Magic::Elf => of_elf(data, range).map_err(SymbolsError::Elf)?,
        Magic::Bitcode => bitcode::symbols(data, range).map_err(SymbolsError::Bitcode)?,
        _ => match FileKind::parse(window) {
            Ok(FileKind::Coff) => CoffFile::parse(window)
                .and_then(|file: CoffFile<'_, _>| of_coff(file.coff_symbol_table())),
            Ok(FileKind::CoffBig) => CoffBigFile::parse(window)
                .and_then(|file: CoffBigFile<'_, _>| of_coff(file.coff_symbol_table())),
            _ => Ok(Vec::new()),
        }
        .map_err(SymbolsError::Coff)?,
    };
    // Names may share their ends, and lies could share one long name.
    let size: usize = symbols.iter().map(|symbol| symbol.name.len()).sum();
    let limit = window.len().unwrap_or(0).saturating_mul(16);
    if size as u64 > limit {
        return Err(SymbolsError::Names { size: size as u64 });
    }
    Ok(symbols)
}

fn of_elf<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<GlobalSymbol<'d>>, ElfError> {
    let symbols = Elf::parse(data, range)?.symbols(elf::SymbolTable::All)?;
    let seen = symbols
        .iter()
        .filter(|symbol| symbol.binding != Binding::Local);
    let symbols = seen.map(|symbol| GlobalSymbol {
        name: symbol.name,
        defined: symbol.place != SymbolPlace::Undefined,
        weak: symbol.binding == Binding::Weak,
        hidden: symbol.hidden,
    });
    Ok(symbols.collect())
}

fn of_coff<'d, R: ReadRef<'d>, H: CoffHeader>(
    table: &SymbolTable<'d, R, H>,
) -> object::read::Result<Vec<GlobalSymbol<'d>>> {
    let mut symbols = Vec::new();
    for (index, symbol) in table.iter() {
        let class = symbol.storage_class();
        let weak = class == IMAGE_SYM_CLASS_WEAK_EXTERNAL;
        let defined = if weak {
            // Another name for a symbol, or what to take when nobody defines this one.
            let weak = table.get::<ImageAuxSymbolWeak>(index, 1);
            let search = weak.map(|weak| weak.weak_search_type.get(object::LittleEndian));
            !symbol.has_aux_weak_external() || search == Ok(IMAGE_WEAK_EXTERN_SEARCH_ALIAS)
        } else if class == IMAGE_SYM_CLASS_EXTERNAL {
            // With a value it is common storage, of that size.
            symbol.section_number() != IMAGE_SYM_UNDEFINED || symbol.value() != 0
        } else {
            continue;
        };
        symbols.push(GlobalSymbol {
            name: symbol.name(table.strings())?,
            defined,
            weak,
            hidden: false,
        });
    }
    Ok(symbols)
}

/// Why the symbols of a file cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SymbolsError {
    /// Of an ELF file.
    Elf(ElfError),
    /// Of bitcode.
    Bitcode(bitcode::Error),
    /// Of a COFF object.
    Coff(object::read::Error),
    /// All names together are far longer than the file.
    Names {
        /// How long, in bytes.
        size: u64,
    },
}

impl fmt::Display for SymbolsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elf(problem) => problem.fmt(f),
            Self::Bitcode(problem) => problem.fmt(f),
            Self::Coff(problem) => write!(f, "COFF object: {problem}"),
            Self::Names { size } => {
                write!(
                    f,
                    "the names of its symbols take {size:#x} bytes, most of them shared"
                )
            }
        }
    }
}

impl std::error::Error for SymbolsError {}
