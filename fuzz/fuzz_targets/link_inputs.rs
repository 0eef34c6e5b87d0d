//! Any bytes as an input of the linker wrapper: no panic, whatever is found lies inside of them, and the same
//! is found where the file is a member at another offset.
#![no_main]

use std::ops::Range;

use libfuzzer_sys::fuzz_target;
use offload_formats::container::bundled::Unpacking;
use offload_formats::container::elf::{Elf, SymbolTable};
use offload_formats::container::object_bundle::bundle_sections;
use offload_formats::container::{FoundImage, archive::Archive, coff, link_inputs, symbols};
use offload_formats::format::bitcode;
use offload_formats::format::bytes::Window;
use offload_formats::format::magic::Magic;

/// What a link asks of one object.
fn look(data: &[u8], range: Range<u64>) -> Vec<FoundImage> {
    let found = link_inputs(
        Window::new(data, range.clone()),
        &mut Unpacking::in_memory(1 << 20),
    )
    .unwrap_or_default();
    let content = &data[range.start as usize..range.end as usize];
    for found in &found {
        let image = &found.entry.image;
        let size = found.content(content).map(|image| image.len() as u64);
        assert_eq!(size, Some(image.end - image.start));
    }
    for section in bundle_sections(data, range.clone()).unwrap_or_default() {
        let content = section.content;
        let inside = range.start <= content.start
            && content.start <= content.end
            && content.end <= range.end;
        assert!(inside || content.is_empty());
    }
    let _ = symbols(data, range.clone());
    let _ = bitcode::section_names(data, range.clone());
    let _ = bitcode::release(data, range.clone());
    let _ = coff::sections(data, range.clone());
    if let Ok(elf) = Elf::parse(data, range.clone()) {
        let names = elf.names();
        for section in elf.sections() {
            let _ = names.map(|names| names.of(&section).map(<[u8]>::len));
            if let Ok(content) = elf.content(&section) {
                assert!(content.len() as u64 <= range.end - range.start);
            }
        }
        let _ = elf.symbols(SymbolTable::All);
    }
    found
}

fuzz_target!(|data: &[u8]| {
    let size = data.len() as u64;
    let found = look(data, 0..size);
    if let Magic::Archive | Magic::ThinArchive = Magic::of(data) {
        for member in Archive::parse(data, 0..size)
            .map(|archive| archive.members)
            .into_iter()
            .flatten()
        {
            if let Some(content) = member.content {
                look(data, content);
            }
        }
    }
    let moved = [b"0123456", data, b"behind it"].concat();
    assert_eq!(look(&moved, 7..7 + size), found);
});
