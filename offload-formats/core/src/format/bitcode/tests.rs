use super::*;

const TABLE: &[u8] = include_bytes!("../../../../../tests/golden/22.1.8/symbols.bc");
const BARE: &[u8] = include_bytes!("../../../../../tests/golden/22.1.8/bare.bc");

const ATOMICS: &[u8] = include_bytes!("../../../../../tests/golden/22.1.8/atomics.bc");

/// Printed by `llvm-nm-22 --print-armap` for the index that `llvm-ar-22` makes of both.
const NAMES: [&[u8]; 4] = [b"function", b"variable", b"alias", b"assembled"];

fn read(bytes: &[u8]) -> Result<Vec<&[u8]>, BitcodeError> {
    definitions(bytes, 0..bytes.len() as u64)
}

fn definitions(bytes: &[u8], range: Range<u64>) -> Result<Vec<&[u8]>, BitcodeError> {
    let symbols = symbols(bytes, range)?;
    let defined = symbols.into_iter().filter(|symbol| symbol.defined);
    Ok(defined.map(|symbol| symbol.name).collect())
}

#[test]
fn reads_the_table_and_without_it_the_records() {
    assert_eq!(read(TABLE).unwrap(), NAMES);
    // Only LLVM can tell what inline assembly defines.
    assert_eq!(read(BARE).unwrap(), NAMES[..3]);
}

#[test]
fn reads_the_release_that_wrote_it() {
    // `llvm-bcanalyzer-22 --dump` shows `LLVM22.1.8`.
    for bytes in [TABLE, BARE] {
        assert_eq!(release(bytes, 0..bytes.len() as u64), Ok(Some(22)));
    }
    // Nothing but the magic: no block tells.
    assert_eq!(release(b"BC\xc0\xde".as_slice(), 0..4), Ok(None));
}

#[test]
fn finds_atomic_operations_that_order_others() {
    let found = |bytes: &'static [u8], kind, is_small| {
        let wanted = OrderingAtomic { kind, is_small };
        let range = 0..bytes.len() as u64;
        functions_with_ordering_atomics(bytes, range, |atomic| atomic == wanted).unwrap()
    };
    let rows: [(_, _, &[&[u8]]); 7] = [
        (
            AtomicKind::Other,
            false,
            &[b"acq_rel", b"seq_cst", b"defined_later"],
        ),
        (AtomicKind::Other, true, &[b"byte"]),
        (
            AtomicKind::Bitwise,
            true,
            &[b"byte_or", b"half_and", b"byte_xor"],
        ),
        (AtomicKind::Bitwise, false, &[]),
        (AtomicKind::Nand, false, &[b"nand"]),
        (
            AtomicKind::CompareExchange,
            false,
            &[b"exchange", b"exchange_failed"],
        ),
        (AtomicKind::CompareExchange, true, &[b"exchange_byte"]),
    ];
    for (kind, is_small, expected) in rows {
        assert_eq!(found(ATOMICS, kind, is_small), expected);
        assert_eq!(found(TABLE, kind, is_small), [b""; 0]);
    }
}

#[test]
fn renames_a_function_and_invalidates_the_table() {
    let renamed = |bytes: &[u8], from, to| {
        let mut bytes = bytes.to_vec();
        rename_function(&mut bytes, from, to).unwrap();
        bytes
    };
    for bytes in [TABLE, BARE] {
        let made = renamed(bytes, b"function", b"a.b.c.de");
        let expected = [b"a.b.c.de", NAMES[1], NAMES[2]];
        assert_eq!(read(&made).unwrap(), expected);
        // Of the table, at 0x818, the version alone is another.
        let changes = renamed(&made, b"a.b.c.de", b"function");
        let changes = changes.iter().zip(bytes).filter(|(a, b)| a != b);
        assert_eq!(changes.count(), usize::from(bytes == TABLE));
        // A variable, and part of a name.
        for other in [b"variable", b"unctionv"] {
            assert!(renamed(bytes, other, b"a.b.c.de") == bytes);
        }
    }
    let mut cut = TABLE[..0x974].to_vec();
    let problem = rename_function(&mut cut, b"function", b"a.b.c.de");
    assert_eq!(problem, Err(BitcodeError::Strings));
}

#[test]
fn reads_bitcode_inside_a_file_and_in_its_wrapper() {
    for bytes in [TABLE, BARE] {
        let file = [b"more", bytes, b"more"].concat();
        let names = definitions(&file[..], 4..4 + bytes.len() as u64);
        assert_eq!(names, read(bytes));
        let size = bytes.len() as u32;
        let words = [0x0b17_c0de, 0, 24, size, 0, 0].map(u32::to_le_bytes);
        let mut wrapped = [words.as_flattened(), bytes, &[0; 12]].concat();
        assert_eq!(read(&wrapped), read(bytes));
        wrapped[12] ^= 0xff;
        let problem = read(&wrapped).map_err(|error| error.to_string());
        assert!(problem.is_err() || wrapped[12] < size as u8, "{problem:?}");
    }
}

#[test]
fn reads_binaries_that_were_joined() {
    // Each module has the strings that follow it; the magic of the second is no block.
    let joined = [BARE, &BARE[4..]].concat();
    assert_eq!(read(&joined).unwrap(), [&NAMES[..3], &NAMES[..3]].concat());
}

#[test]
fn names_the_problem_and_its_place() {
    let message = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert_eq!(message(b"BC"), "expected bitcode at offset 0x0");
    // Blocks: identification at 0x4, module at 0x20, symbols at 0x818, strings at 0x974.
    assert_eq!(
        message(&TABLE[..TABLE.len() - 4]),
        "bitcode: block at offset 0x97c with size 0x8c runs past the end at 0xa04"
    );
    assert_eq!(message(&TABLE[..0x974]), "bitcode: missing string table");
    assert_eq!(message(&BARE[..0x6b0]), "bitcode: missing string table");
    let change = |bytes: &[u8], offset: usize, value: &[u8]| {
        let mut bytes = bytes.to_vec();
        bytes[offset..offset + value.len()].copy_from_slice(value);
        message(&bytes)
    };
    // The table is at 0x828, the first symbol in it at 0x58.
    assert_eq!(
        change(TABLE, 0x828 + 0x20, &[0xff]),
        "bitcode: symbol table: symbols at offset 0x58 with size 0x17e8 runs past the end at \
         0x148"
    );
    assert_eq!(
        change(TABLE, 0x828 + 0x58 + 4, &[0xff]),
        "bitcode: symbol table: name at offset 0x22 with size 0xff runs past the end at 0x7d"
    );
    // Abbreviation ID 4 before it is defined.
    assert_eq!(
        change(TABLE, 0x820, &[0x14]),
        "bitcode: invalid abbreviation at offset 0x820"
    );
    // Abbreviation IDs of 40 bits.
    assert_eq!(
        change(TABLE, 0x818, &[0x65, 0x60, 0x01]),
        "bitcode: number at offset 0x818 is too large"
    );
    assert_eq!(
        change(BARE, 0x28, &[0x0b, 0x82, 0x00]),
        "bitcode: expected module version 2, found 1"
    );
}

#[test]
fn rejects_every_truncation_of_a_block() {
    for bytes in [TABLE, BARE] {
        let whole = read(bytes).unwrap();
        for len in 0..bytes.len() {
            assert_ne!(read(&bytes[..len]).ok().as_ref(), Some(&whole), "{len:#x}");
        }
    }
}

#[test]
fn survives_every_single_bit_change() {
    for bytes in [TABLE, BARE] {
        let mut bytes = bytes.to_vec();
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let _ = read(&bytes);
            let _ = rename_function(&mut bytes.clone(), b"function", b"a.b.c.de");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
