//! What a file defines for others: the symbols that the index of an archive lists.

use std::fmt;
use std::ops::Range;

use object::ReadRef;
use object::pe::{
    IMAGE_SYM_CLASS_EXTERNAL, IMAGE_SYM_CLASS_WEAK_EXTERNAL, IMAGE_SYM_UNDEFINED,
    IMAGE_WEAK_EXTERN_SEARCH_ALIAS, ImageAuxSymbolWeak,
};
use object::read::FileKind;
use object::read::coff::{CoffBigFile, CoffFile, CoffHeader, Symbol, SymbolTable};

use super::elf::{self, Binding, Elf, ElfError, Place};
use crate::format::bitcode;
use crate::format::bytes::Window;
use crate::format::magic::Magic;

/// The names that the object or the bitcode in a range of `data` defines for others, in the order
/// of its symbols: what `llvm-ar` of LLVM 22 puts into an index. Files that are neither ELF, COFF
/// nor bitcode define none.
///
/// # Errors
///
/// When the file is invalid, or its names are far longer than it is.
pub fn definitions<'d, R: ReadRef<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<&'d [u8]>, SymbolsError> {
    let window = Window::new(data, range.clone());
    let names = match Magic::at(data, range.clone()) {
        Magic::Elf => of_elf(data, range).map_err(SymbolsError::Elf)?,
        Magic::Bitcode => bitcode::definitions(data, range).map_err(SymbolsError::Bitcode)?,
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
    let size: usize = names.iter().map(|name| name.len()).sum();
    let limit = window.len().unwrap_or(0).saturating_mul(16);
    if size as u64 > limit {
        return Err(SymbolsError::Names { size: size as u64 });
    }
    Ok(names)
}

fn of_elf<'d, R: ReadRef<'d>>(data: R, range: Range<u64>) -> Result<Vec<&'d [u8]>, ElfError> {
    let symbols = Elf::parse(data, range)?.symbols(elf::SymbolTable::All)?;
    let defined = symbols
        .iter()
        .filter(|symbol| symbol.binding != Binding::Local && symbol.place != Place::Undefined);
    Ok(defined.map(|symbol| symbol.name).collect())
}

fn of_coff<'d, R: ReadRef<'d>, H: CoffHeader>(
    table: &SymbolTable<'d, R, H>,
) -> object::read::Result<Vec<&'d [u8]>> {
    let mut names = Vec::new();
    for (index, symbol) in table.iter() {
        let class = symbol.storage_class();
        let undefined = if class == IMAGE_SYM_CLASS_WEAK_EXTERNAL {
            // Another name for a symbol, or what to take when nobody defines this one.
            let weak = table.get::<ImageAuxSymbolWeak>(index, 1);
            let search = weak.map(|weak| weak.weak_search_type.get(object::LittleEndian));
            symbol.has_aux_weak_external() && search != Ok(IMAGE_WEAK_EXTERN_SEARCH_ALIAS)
        } else if class == IMAGE_SYM_CLASS_EXTERNAL {
            // With a value it is common storage, of that size.
            symbol.section_number() == IMAGE_SYM_UNDEFINED && symbol.value() == 0
        } else {
            continue;
        };
        if !undefined {
            names.push(symbol.name(table.strings())?);
        }
    }
    Ok(names)
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
