use super::*;
use crate::container::edit::{NewContent, NewSection};
use crate::container::test_objects::{DEVICE, SECTIONS, bytes};
use crate::format::pieces::{Piece, to_bytes};

const HOST: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/bundle-host.obj");
const FAT: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/bundle-in-object.obj");
const AGAIN: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/bundle-host-again.obj");
const IMAGE: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/image.exe");

fn add(host: &[u8]) -> Result<Vec<Piece>, CoffError> {
    add_sections(host, 0..host.len() as u64, &SECTIONS)
}

fn remove(file: &[u8], prefix: &[u8]) -> Result<Vec<Piece>, CoffError> {
    let matches = |name: &[u8]| name.starts_with(prefix);
    remove_sections(file, 0..file.len() as u64, matches)
}

fn names(file: &[u8]) -> Vec<String> {
    let sections = sections(file, 0..file.len() as u64).unwrap();
    let name = |section: &CoffSection<'_>| String::from_utf8_lossy(section.name).into_owned();
    sections.iter().map(name).collect()
}

#[test]
fn adds_and_removes_sections_with_the_bytes_of_llvm() {
    assert_eq!(bytes(&add(HOST).unwrap(), HOST).unwrap(), FAT);
    let pieces = remove(FAT, b"__CLANG_OFFLOAD_BUNDLE__").unwrap();
    assert_eq!(bytes(&pieces, FAT).unwrap(), AGAIN);
}

#[test]
fn reads_objects_at_any_place() {
    let file = [b"xx", HOST, b"yy"].concat();
    let range = 2..2 + HOST.len() as u64;
    let pieces = add_sections(&file[..], range, &SECTIONS).unwrap();
    assert_eq!(to_bytes(&pieces, &[&file, b"", DEVICE]).unwrap(), FAT);
}

#[test]
fn finds_sections_with_long_names() {
    // As `llvm-readobj --sections` prints them.
    let found = names(FAT);
    assert_eq!(found[..3], [".text", ".data", ".bss"]);
    assert_eq!(
        found[found.len() - 2..],
        SECTIONS.map(|section| String::from_utf8_lossy(section.name).into_owned())
    );
    let found = sections(FAT, 0..u64::MAX).unwrap().pop().unwrap();
    let content = found.content.start as usize..found.content.end as usize;
    assert_eq!(&FAT[content], DEVICE);
    assert_eq!(names(IMAGE), [".text", ".rdata", ".data", ".reloc"]);
}

#[test]
fn survives_every_truncation_and_every_single_byte_change() {
    for (file, changed) in [(HOST, HOST.len()), (FAT, FAT.len()), (IMAGE, 0x420)] {
        for len in 0..file.len() {
            // Of an object only the end of the string table may be gone.
            let pieces = add(&file[..len]);
            let _ = pieces.map(|pieces| bytes(&pieces, &file[..len]).unwrap());
            let _ = remove(&file[..len], b"_");
        }
        for place in 0..changed {
            for change in [0x01, 0x80, 0xfe] {
                let mut changed = file.to_vec();
                changed[place] ^= change;
                if let Some(written) = add(&changed).ok().and_then(|it| bytes(&it, &changed)) {
                    // A byte can make an image of an object, and the other way around.
                    let name = String::from_utf8_lossy(SECTIONS[1].name);
                    assert!(names(&written).contains(&name.into_owned()), "{place:#x}");
                }
                let pieces = remove(&changed, b".");
                let _ = pieces.map(|pieces| bytes(&pieces, &changed));
            }
        }
    }
}

/// The file with other bytes at some places.
fn patched(file: &[u8], patches: &[(usize, &[u8])]) -> Vec<u8> {
    let mut file = file.to_vec();
    for (place, bytes) in patches {
        file[*place..place + bytes.len()].copy_from_slice(bytes);
    }
    file
}

/// Returns the offset of a section header in `HOST`.
const fn header(index: usize) -> usize {
    20 + 40 * index
}

#[test]
fn tells_what_is_damaged() {
    let symbols = u32::from_le_bytes(HOST[8..12].try_into().unwrap()) as usize;
    let image = u32::from_le_bytes(IMAGE[0x3c..0x40].try_into().unwrap()) as usize;
    for (file, patches, expected) in [
        (
            HOST,
            &[(2, &[0xff, 0xfe][..])][..],
            "section table at offset 0x14 with size 0x27d7d8 runs past the end at 0x269",
        ),
        (
            HOST,
            &[(12, &[0xff, 0xff])],
            "symbol table at offset 0x137 with size 0x11ffee runs past the end at 0x269",
        ),
        (
            HOST,
            &[(header(0) + 16, &[0, 0, 1])],
            "section 1: content at offset 0xdc with size 0x10000 runs past the end at 0x269",
        ),
        (
            HOST,
            &[(header(0) + 32, &[0, 1])],
            "section 1: relocations at offset 0xe9 with size 0xa00 runs past the end at 0x269",
        ),
        (
            HOST,
            &[(header(0), b"/999999\0")],
            "section 1: its name is missing",
        ),
        (
            HOST,
            &[(symbols + 12, &[99])],
            "symbol 0: its name, section or auxiliary records are missing",
        ),
        (
            HOST,
            &[(0xe9 + 4, &[99])],
            "symbol 99 is needed, but removed or missing",
        ),
        (
            IMAGE,
            &[(image, b"NE")],
            "expected a PE signature at offset 0x78",
        ),
        (
            IMAGE,
            &[(image + 24, &[0])],
            "optional header at offset 0x90 with size 0xf0 is too short or of an unknown kind",
        ),
        (
            IMAGE,
            &[(image + 24 + 112 + 48, &[0xff, 0xff])],
            "the debug directory is not inside a section",
        ),
        // At zeros, 0x100 bytes before the end of the section, with a byte more.
        (
            IMAGE,
            &[(image + 24 + 112 + 48, &[0, 0x21, 0, 0, 1, 1])],
            "the debug directory is not inside a section",
        ),
        (
            HOST,
            &[(0, &[0, 0, 0xff, 0xff])],
            "expected a COFF object, found an import library member or code for link-time optimization",
        ),
    ] {
        let error = add(&patched(file, patches)).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let error = add(b"MZ").unwrap_err().to_string();
    assert_eq!(
        error,
        "file header at offset 0x0 with size 0x4 runs past the end at 0x2"
    );
}

#[test]
fn removes_nothing_that_is_needed() {
    // `llvm-objcopy` 22.1: `relocation target 'z' (10) not found`.
    let error = remove(HOST, b".data").unwrap_err().to_string();
    assert!(
        error.ends_with("is needed, but removed or missing"),
        "{error}"
    );
}

#[test]
fn keeps_names_that_look_like_places_of_names() {
    // `llvm-objcopy` 22.1 writes `/4` into the header, which is a place in the string table.
    let new = NewSection {
        name: b"/4",
        content: NewContent::Bytes(b"x"),
    };
    let pieces = add_sections(HOST, 0..HOST.len() as u64, &[new]).unwrap();
    let written = bytes(&pieces, HOST).unwrap();
    assert_eq!(names(&written).last().unwrap(), "/4");
}

#[test]
fn makes_no_large_file_of_a_small_one() {
    // Code without bytes in the file, and relocations in the same place as others.
    let size: &[u8] = &[0, 0, 0, 0x20];
    let error = |patches| add(&patched(HOST, patches)).unwrap_err();
    let code: &[(usize, &[u8])] = &[(header(0) + 16, size), (header(0) + 20, &[0; 4])];
    assert_eq!(error(code), CoffError::TooLarge { value: 0x2000_0000 });
    let place = 0xe9_u32.to_le_bytes();
    let relocations: &[(usize, &[u8])] = &[
        (header(0) + 32, &[32]),
        (header(1) + 24, &place),
        (header(1) + 32, &[32]),
    ];
    assert_eq!(error(relocations), CoffError::TooLarge { value: 640 });
}

#[test]
fn gives_sections_and_symbols_other_names() {
    use object::{Object as _, ObjectSection, ObjectSymbol};
    let read = |file: &[u8]| {
        let file = object::File::parse(file).unwrap();
        let symbol = |symbol: object::Symbol<'_, '_>| {
            let section = symbol.section_index().map(|index| index.0);
            (symbol.name().unwrap().to_owned(), section, symbol.address())
        };
        let sections = file.sections().map(|section| {
            let targets = section.relocations().map(|(at, it)| (at, it.target()));
            let content = section.data().unwrap().to_owned();
            (
                section.name().unwrap().to_owned(),
                targets.collect::<Vec<_>>(),
                content,
            )
        });
        let sections: Vec<_> = sections.collect();
        (sections, file.symbols().map(symbol).collect::<Vec<_>>())
    };
    let (mut sections, mut symbols) = read(HOST);
    let (long, name) = (".data$of_many_letters", "a_name_of_many_letters");
    let mut object = Object::read(HOST, 0..HOST.len() as u64).unwrap();
    let index = |symbol: &str| {
        let found = object.symbols().find(|it| it.name == symbol.as_bytes());
        found.unwrap().index
    };
    let (z, y) = (index("z"), index("y"));
    // `llvm-readobj -r`: `f` reads both variables.
    let referred: Vec<usize> = object.referred(1).collect();
    assert!(referred.contains(&z) && referred.contains(&y));
    object.rename_section(2, long);
    object.rename_symbol(z, name);
    object.rename_section(99, "none");
    object.rename_symbol(99, "none");
    let written = to_bytes(&object.write().unwrap(), &[HOST]).unwrap();
    sections[1].0 = long.to_owned();
    for (symbol, ..) in &mut symbols {
        match symbol.as_str() {
            ".data" => *symbol = long.to_owned(),
            "z" => *symbol = name.to_owned(),
            _ => {}
        }
    }
    assert_eq!(read(&written), (sections, symbols));
    let error = Object::read(IMAGE, 0..IMAGE.len() as u64).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected a COFF object, found a PE image"
    );
}
