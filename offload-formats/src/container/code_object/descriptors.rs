//! Descriptors of kernels that several objects define.

use std::collections::BTreeSet;

use object::elf;

use super::CodeObjectError;
use super::symbols::{SYMBOL_SIZE, start_of_symbols};
use crate::container::elf::{Binding, Elf, SymbolPlace, SymbolTable};

/// Suffix of a descriptor's name, after the kernel's name.
const DESCRIPTOR: &[u8] = b".kd";
/// Offset in a symbol of the byte with its binding (upper half) and type.
const ST_INFO: usize = 4;

/// Makes the descriptors of kernels in section groups weak, because other objects may define them, too: templates
/// and `inline` kernels of a header. Kernels of one source (`static` or in an unnamed namespace) keep theirs: if two
/// sources have such kernels with one name, the linker must report the clash.
///
/// # Errors
///
/// Fails if `object` is not an ELF file, or its symbols cannot be read.
pub fn share_descriptors(object: &mut [u8]) -> Result<(), CodeObjectError> {
    let elf = Elf::parse(&*object, 0..object.len() as u64)?;
    // Sorted, as sections come in the order of their indices.
    let groups: Vec<u32> = elf
        .sections()
        .filter(|section| section.flags & elf::SHF_GROUP.0 != 0)
        .map(|section| section.index)
        .collect();
    let Some(start) = start_of_symbols(&elf)? else {
        return Ok(());
    };
    let symbols = elf.symbols(SymbolTable::All)?;
    let is_grouped = |place| matches!(place, SymbolPlace::Section(index) if groups.binary_search(&index).is_ok());
    let mut shared = BTreeSet::new();
    for symbol in &symbols {
        let is_candidate = symbol.binding != Binding::Local && is_grouped(symbol.place);
        if is_candidate && !is_of_one_source(symbol.name) {
            shared.insert(symbol.name);
        }
    }
    let mut places = Vec::new();
    for (index, symbol) in symbols.iter().enumerate() {
        let kernel = symbol.name.strip_suffix(DESCRIPTOR);
        let is_shared = kernel.is_some_and(|kernel| shared.contains(kernel));
        if is_shared && symbol.binding == Binding::Global {
            places.push(index);
        }
    }
    for index in places {
        let place = index
            .checked_mul(SYMBOL_SIZE)
            .and_then(|offset| start.checked_add(offset)?.checked_add(ST_INFO));
        let info = place.and_then(|place| object.get_mut(place));
        let info = info.ok_or(CodeObjectError::Symbols)?;
        *info = elf::STB_WEAK.0 << 4 | *info & 0xf;
    }
    Ok(())
}

/// Returns true if a mangled C++ name is `static` (prefix `L`) or in an unnamed namespace.
///
/// Specification: <https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangle.name>; the `L` is of GCC and clang.
fn is_of_one_source(name: &[u8]) -> bool {
    const UNNAMED: &[u8] = b"12_GLOBAL__N_1";
    let Some(rest) = name.strip_prefix(b"_Z") else {
        return false;
    };
    if rest.windows(UNNAMED.len()).any(|part| part == UNNAMED) {
        return true;
    }
    let mut rest = rest.strip_prefix(b"N").unwrap_or(rest);
    // Names with their length before them.
    loop {
        if let [b'L', b'0'..=b'9', ..] = rest {
            return true;
        }
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, name) = rest.split_at(count);
        let length = std::str::from_utf8(digits)
            .ok()
            .and_then(|text| text.parse::<usize>().ok());
        match length.and_then(|length| name.get(length..)) {
            Some(next) => rest = next,
            None => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_names_that_are_a_sources_own() {
        // As clang 22 mangles them.
        for own in [
            "_ZL2stPi",
            "_ZN2nsL2stEPi",
            "_ZL1tIiEvPT_",
            "_ZN12_GLOBAL__N_12anEPi",
            "_ZN2ns12_GLOBAL__N_12anEPi",
            "_Z1tIN12_GLOBAL__N_11AEEvPT_",
        ] {
            assert!(is_of_one_source(own.as_bytes()), "{own}");
        }
        for other in [
            "scale",
            "_Z2inPi",
            "_Z2tkIiEvPT_",
            "_ZN2ns2tkIiEEvPT_",
            "_Z4L1xyPi",
            "_Z",
            "_Z9",
            "_Z99999999999999999999x",
            "L1x",
        ] {
            assert!(!is_of_one_source(other.as_bytes()), "{other}");
        }
    }
}
