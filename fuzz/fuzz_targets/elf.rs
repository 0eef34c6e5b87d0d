//! Any bytes: no panic, and what is accepted lies where it says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use offload_formats::container::code_object::{
    CodeObjectError, join_static_names, joined_notes, share_descriptors,
};
use offload_formats::container::elf::{Elf, SHT_LLVM_OFFLOADING, SymbolTable, rename_section, separate_symbols};
use std::collections::BTreeMap;
use offload_formats::format::pieces;

fuzz_target!(|data: &[u8]| {
    let Ok(elf) = Elf::parse(data, 0..data.len() as u64) else {
        return;
    };
    for section in elf.sections() {
        let is_offloading = section.section_type == SHT_LLVM_OFFLOADING;
        if let (true, Ok(bytes)) = (is_offloading, elf.content(&section)) {
            assert_eq!(bytes.len() as u64, section.size);
        }
    }
    for edit in [share_descriptors, join_static_names, join_notes] {
        let mut edited = data.to_vec();
        let _ = edit(&mut edited);
    }
    let _ = elf.symbols(SymbolTable::All);
    let _ = elf.symbols(SymbolTable::Dynamic);
    for section in elf.sections() {
        let _ = elf.relocations(&section);
    }
    let _ = elf.comdat_groups();
    let names = BTreeMap::from([(2, "own".to_owned())]);
    if let Ok(pieces) = separate_symbols(data, 0..data.len() as u64, &names) {
        let separated = pieces::to_bytes(&pieces, &[data]).expect("pieces of the file");
        assert!(Elf::parse(&separated[..], 0..separated.len() as u64).is_ok());
    }
    let renamed = rename_section(data, 0..data.len() as u64, ".text", ".other");
    if let Ok(pieces) = renamed {
        let renamed = pieces::to_bytes(&pieces, &[data]).expect("pieces of the file");
        assert!(Elf::parse(&renamed[..], 0..renamed.len() as u64).is_ok());
    }
});

/// Joins the notes of an image in memory.
fn join_notes(image: &mut [u8]) -> Result<(), CodeObjectError> {
    for (offset, bytes) in joined_notes(&*image)? {
        let start = offset as usize;
        image[start..start + bytes.len()].copy_from_slice(&bytes);
    }
    Ok(())
}
