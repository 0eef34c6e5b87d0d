//! `static` variables that clang names twice.

use std::collections::BTreeMap;

use super::CodeObjectError;
use super::symbols::{SYMBOL_SIZE, start_of_symbols};
use crate::container::elf::{Binding, Elf, SymbolPlace, SymbolTable};

/// Text between the name of a `static` variable and a digest of its source, where the host uses the variable. Source: clang 16 to
/// 22, `CodeGenModule::printPostfixForExternalizedDecl`.
const SUFFIX: &[u8] = b".static.";

/// Gives the uses of `static` variables the names of their definitions. clang compiles a function when it has read it; if the host uses
/// a `static` variable further down, the definition gets a suffix that the function lacks.
///
/// # Errors
///
/// Fails if `object` is not an ELF file, or its symbols cannot be read.
pub fn join_static_names(object: &mut [u8]) -> Result<(), CodeObjectError> {
    let elf = Elf::parse(&*object, 0..object.len() as u64)?;
    let Some(start) = start_of_symbols(&elf)? else {
        return Ok(());
    };
    let symbols = elf.symbols(SymbolTable::All)?;
    let mut definitions = BTreeMap::new();
    for (index, symbol) in symbols.iter().enumerate() {
        let is_seen = symbol.binding != Binding::Local && symbol.place != SymbolPlace::Undefined;
        if let Some(name) = without_suffix(symbol.name).filter(|_| is_seen) {
            definitions.insert(name, index);
        }
    }
    let mut uses = Vec::new();
    for (index, symbol) in symbols.iter().enumerate() {
        let definition = definitions.get(symbol.name);
        if let Some(definition) = definition.filter(|_| symbol.place == SymbolPlace::Undefined) {
            uses.push((index, *definition));
        }
    }
    let name_of = |index: usize| {
        let place = start.checked_add(index.checked_mul(SYMBOL_SIZE)?)?;
        Some(place..place.checked_add(ST_NAME_SIZE)?)
    };
    for (index, definition) in uses {
        let (to, from) = name_of(index)
            .zip(name_of(definition))
            .ok_or(CodeObjectError::Symbols)?;
        if to.end > object.len() || from.end > object.len() {
            return Err(CodeObjectError::Symbols);
        }
        object.copy_within(from, to.start);
    }
    Ok(())
}

/// Returns the name before the suffix; nothing for another name, as `x.static.12ab.managed`.
fn without_suffix(name: &[u8]) -> Option<&[u8]> {
    let end = name.windows(SUFFIX.len()).position(|part| part == SUFFIX)?;
    let digest = name.get(end + SUFFIX.len()..)?;
    let is_digest = !digest.is_empty() && digest.iter().all(u8::is_ascii_hexdigit);
    name.get(..end).filter(|_| is_digest)
}

/// Size of `st_name`, the first field of a symbol.
const ST_NAME_SIZE: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_suffixes() {
        // As clang 22 names variables.
        let name = |text: &'static str| without_suffix(text.as_bytes());
        assert_eq!(
            name("_ZL3own.static.97f304c2b64ffc4d"),
            Some(&b"_ZL3own"[..])
        );
        for other in [
            "_ZL3own",
            "_ZL3own.static.97f3.managed",
            "_ZL3own.static.",
            "_ZL1kPi.intern.97f3",
        ] {
            assert_eq!(name(other), None, "{other}");
        }
    }
}
