//! The global symbols of a file, for links and for indices of archives.

use object::pe::{
    IMAGE_SYM_CLASS_EXTERNAL, IMAGE_SYM_CLASS_WEAK_EXTERNAL, IMAGE_SYM_UNDEFINED,
    IMAGE_WEAK_EXTERN_SEARCH_ALIAS, ImageAuxSymbolWeak,
};
use object::read::FileKind;
use object::read::coff::{CoffBigFile, CoffFile, CoffHeader, Symbol, SymbolTable};
use std::fmt;
use std::ops::Range;

use super::elf::{self, Binding, Elf, ElfError, ElfSymbol, SymbolPlace};
use super::gnu_lto;
use crate::format::bitcode;
use object::ReadRef;

use crate::container::view::View;
use crate::format::bytes::{ReadAt, SourceError, unless_unread};
use crate::format::global_symbol::GlobalSymbol;
use crate::format::magic::Magic;

/// Lists the names that the object or bitcode in a range of `data` defines for others, in the order
/// of its symbols: those that `llvm-ar` of LLVM 22 writes to an index. Files that are neither ELF, COFF
/// nor bitcode define none.
///
/// # Errors
///
/// Fails as [`symbols`] does.
pub fn definitions<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<&'d [u8]>, SymbolsError> {
    let symbols = symbols(data, range)?;
    let defined = symbols.into_iter().filter(|symbol| symbol.defined);
    Ok(defined.map(|symbol| symbol.name).collect())
}

/// Lists the global symbols of the object or bitcode in a range of `data`, in file order. Files of
/// other formats have none.
///
/// # Errors
///
/// Fails if the file is damaged, its names are far longer than the file, or `data` cannot be read.
pub fn symbols<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<GlobalSymbol<'d>>, SymbolsError> {
    unless_unread(data, all_symbols(data, range), SymbolsError::Read)
}

fn all_symbols<'d, R: ReadAt<'d>>(
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
        .map_err(|error| SymbolsError::Coff {
            cause: error.to_string(),
        })?,
    };
    // Names may share their ends, and a hostile file could share one long name.
    let size: usize = symbols.iter().map(|symbol| symbol.name.len()).sum();
    let limit = window.len().unwrap_or(0).saturating_mul(16);
    if size as u64 > limit {
        return Err(SymbolsError::Names { size: size as u64 });
    }
    Ok(symbols)
}

/// `SHN_COMMON`.
const COMMON: u16 = 0xfff2;

fn of_elf<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<GlobalSymbol<'d>>, ElfError> {
    let elf = Elf::parse(data, range)?;
    let symbols = elf.symbols(elf::SymbolTable::All)?;
    let symbols = symbols.iter().filter_map(global);
    Ok(symbols.chain(gnu_lto::symbols(&elf)?).collect())
}

/// Lists the global symbols that the ELF file in a range of `data` has for the dynamic linker, as a shared library does.
/// Definitions of versions that are not the default, to which no linker leads plain references, are not among them.
///
/// # Errors
///
/// Fails if the file is damaged or cannot be read.
#[cfg(feature = "tools")]
pub fn dynamic_symbols<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<GlobalSymbol<'d>>, SymbolsError> {
    let symbols = Elf::parse(data, range).and_then(|elf| {
        let versions = elf.hidden_versions()?;
        let versions = versions.into_iter().chain(std::iter::repeat(false));
        let symbols = elf.symbols(elf::SymbolTable::Dynamic)?;
        let symbols = symbols.iter().zip(versions);
        let found = symbols.filter_map(|(symbol, hidden)| {
            let symbol = global(symbol)?;
            (!symbol.defined || !hidden).then_some(symbol)
        });
        Ok(found.collect())
    });
    unless_unread(data, symbols.map_err(SymbolsError::Elf), SymbolsError::Read)
}

/// Returns a symbol of an ELF file, if other files see it.
fn global<'d>(symbol: &ElfSymbol<'d>) -> Option<GlobalSymbol<'d>> {
    if symbol.binding == Binding::Local {
        return None;
    }
    let mut found = GlobalSymbol::undefined(symbol.name);
    found.defined = symbol.place != SymbolPlace::Undefined;
    found.weak = symbol.binding == Binding::Weak;
    found.hidden = symbol.hidden;
    found.common = symbol.place == SymbolPlace::Other(COMMON);
    Some(found)
}

fn of_coff<'d, R: ReadRef<'d>, H: CoffHeader>(
    table: &SymbolTable<'d, R, H>,
) -> object::read::Result<Vec<GlobalSymbol<'d>>> {
    let mut symbols = Vec::new();
    for (index, symbol) in table.iter() {
        let class = symbol.storage_class();
        let weak = class == IMAGE_SYM_CLASS_WEAK_EXTERNAL;
        let defined = if weak {
            // An alias of another symbol is a definition; a default for an undefined symbol is not.
            let weak = table.get::<ImageAuxSymbolWeak>(index, 1);
            let search = weak.map(|weak| weak.weak_search_type.get(object::LittleEndian));
            !symbol.has_aux_weak_external() || search == Ok(IMAGE_WEAK_EXTERN_SEARCH_ALIAS)
        } else if class == IMAGE_SYM_CLASS_EXTERNAL {
            // An undefined symbol with a value is common storage of that size.
            symbol.section_number() != IMAGE_SYM_UNDEFINED || symbol.value() != 0
        } else {
            continue;
        };
        let mut found = GlobalSymbol::undefined(symbol.name(table.strings())?);
        (found.defined, found.weak) = (defined, weak);
        found.common = defined && !weak && symbol.section_number() == IMAGE_SYM_UNDEFINED;
        symbols.push(found);
    }
    Ok(symbols)
}

/// Reason why the symbols of a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SymbolsError {
    /// A part of the file cannot be read.
    Read(SourceError),
    /// Damage in an ELF file.
    Elf(ElfError),
    /// Damage in bitcode.
    Bitcode(bitcode::BitcodeError),
    /// Damage in a COFF object.
    Coff {
        /// Description of the damage.
        cause: String,
    },
    /// The names together are far longer than the file.
    Names {
        /// Size of all names in bytes.
        size: u64,
    },
}

impl fmt::Display for SymbolsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(problem) => problem.fmt(f),
            Self::Elf(problem) => problem.fmt(f),
            Self::Bitcode(problem) => problem.fmt(f),
            Self::Coff { cause } => write!(f, "COFF object: {cause}"),
            Self::Names { size } => {
                write!(
                    f,
                    "symbol names of {size:#x} bytes are too long for the file: they share bytes"
                )
            }
        }
    }
}

impl std::error::Error for SymbolsError {}
