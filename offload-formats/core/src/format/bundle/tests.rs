use super::*;

const HOST: &str = "host-x86_64-unknown-linux-gnu-";
const GFX906: &str = "hip-amdgcn-amd-amdhsa--gfx906";

/// `clang-offload-bundler` 22.1.8 and 19.1.7, the same bytes of both:
/// `printf H > h`, `printf GG > g`, then `-type=bc -input=h -input=g`
/// `-targets=host-x86_64-unknown-linux-gnu,hip-amdgcn-amd-amdhsa--gfx906`.
const LLVM: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__\x02\0\0\0\0\0\0\0\
    \x8b\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x1e\0\0\0\0\0\0\0host-x86_64-unknown-linux-gnu-\
    \x8c\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x1d\0\0\0\0\0\0\0hip-amdgcn-amd-amdhsa--gfx906\
    HGG";

/// `clang-offload-bundler` 22.1.8; commands in `tests/golden/README.md`.
const THREE: &[u8] = include_bytes!("../../../../../tests/golden/22.1.8/three-images.bundle");
const ALIGNED: &[u8] = include_bytes!("../../../../../tests/golden/22.1.8/aligned.bundle");

fn align(value: u64) -> NonZeroU64 {
    NonZeroU64::new(value).unwrap()
}

fn parse(bytes: &[u8]) -> Result<Bundle, BundleError> {
    Bundle::parse(bytes, 0, bytes.len() as u64)
}

fn images<'a>(bytes: &'a [u8], bundle: &'a Bundle) -> Vec<(&'a str, &'a [u8])> {
    let image = |range: &Range<u64>| &bytes[range.start as usize..range.end as usize];
    let entries = bundle.entries.iter();
    entries
        .map(|entry| (entry.id.as_str(), image(&entry.image)))
        .collect()
}

fn bundle<'a>(
    images: &[(&'a str, &'a [u8])],
    align: NonZeroU64,
) -> Result<Vec<u8>, BundleWriteError> {
    let image = |(id, image): &(&'a str, &'a [u8])| BundleImage { id, image };
    to_bytes(&images.iter().map(image).collect::<Vec<_>>(), align)
}

fn changed(offset: usize, change: &[u8]) -> Vec<u8> {
    let mut bytes = LLVM.to_vec();
    bytes[offset..offset + change.len()].copy_from_slice(change);
    bytes
}

const FILES: [&[u8]; 2] = [b"Content of device file 1\n", b"Content of device file 2\n"];

#[test]
fn writes_the_bytes_llvm_writes() {
    let two: &[(&str, &[u8])] = &[(HOST, b"H"), (GFX906, b"GG")];
    assert_eq!(bundle(two, align(1)).unwrap(), LLVM);
    let gfx90a = "hip-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-";
    let three: &[(&str, &[u8])] = &[(HOST, b"HOSTDATA"), (GFX906, FILES[0]), (gfx90a, FILES[1])];
    assert_eq!(bundle(three, align(1)).unwrap(), THREE);
    let gfx1030 = "hip-amdgcn-amd-amdhsa--gfx1030";
    let aligned: &[(&str, &[u8])] = &[(HOST, b""), (GFX906, FILES[0]), (gfx1030, FILES[1])];
    assert_eq!(bundle(aligned, align(64)).unwrap(), ALIGNED);
}

#[test]
fn reads_what_llvm_writes() {
    let found = parse(LLVM).unwrap();
    assert_eq!(images(LLVM, &found), [(HOST, &b"H"[..]), (GFX906, b"GG")]);
    assert_eq!((found.offset, found.size), (0, LLVM.len() as u64));
    let found = parse(ALIGNED).unwrap();
    assert_eq!(found.entries[0].image, 0x100..0x100);
    assert_eq!(images(ALIGNED, &found)[1], (GFX906, FILES[0]));
    assert_eq!(images(ALIGNED, &found)[2].1, FILES[1]);
}

#[test]
fn gives_offsets_from_the_start_of_the_file() {
    let bytes = [b"12345", LLVM, b"rest"].concat();
    let found = Bundle::parse(&bytes[..], 5, bytes.len() as u64).unwrap();
    assert_eq!(found.range(), 5..5 + LLVM.len() as u64);
    assert_eq!(images(&bytes, &found), [(HOST, &b"H"[..]), (GFX906, b"GG")]);
}

#[test]
fn names_the_entry_and_the_place() {
    let huge = &[0xff; 8];
    let cases: [(usize, &[u8], &str); 12] = [
        (
            0,
            b"X",
            "expected the magic `__CLANG_OFFLOAD_BUNDLE__` at offset 0x0, \
             found `X_CLANG_OFFLOAD_BUNDLE__`",
        ),
        (
            0x18,
            b"\x03", // LLVM 22.1.8 crashes on this one.
            "entry 2: image_offset of entry header at offset 0x8b with size 0x8 \
             runs past the end at 0x8e",
        ),
        (
            0x1f,
            b"\x80", // And on this.
            "entry 2: image_offset of entry header at offset 0x8b with size 0x8 \
             runs past the end at 0x8e",
        ),
        (
            0x20,
            b"\0",
            "entry 0: expected an image offset after the headers of the bundle at 0x0, found 0",
        ),
        (
            0x20,
            b"\x8e",
            "entry 0: image at offset 0x8e with size 0x1 runs past the end at 0x8e",
        ),
        (
            0x20,
            huge,
            "entry 0: image at offset 0xffffffffffffffff with size 0x1 runs past the end at 0x8e",
        ),
        (
            0x28,
            b"\x04",
            "entry 0: image at offset 0x8b with size 0x4 runs past the end at 0x8e",
        ),
        (
            0x28,
            huge, // LLVM reads before its memory.
            "entry 0: image at offset 0x8b with size 0xffffffffffffffff runs past the end at 0x8e",
        ),
        (
            0x30,
            b"\x57",
            "entry 0: entry ID at offset 0x38 with size 0x57 runs past the end at 0x8e",
        ),
        (
            0x30,
            huge,
            "entry 0: entry ID at offset 0x38 with size 0xffffffffffffffff \
             runs past the end at 0x8e",
        ),
        (
            0x66,
            b"\x21",
            "entry 1: entry ID at offset 0x6e with size 0x21 runs past the end at 0x8e",
        ),
        (
            0x38,
            b"\xff",
            "entry 0: entry ID at offset 0x38 is not UTF-8",
        ),
    ];
    for (offset, change, expected) in cases {
        let found = parse(&changed(offset, change)).unwrap_err().to_string();
        assert_eq!(found, format!("bundle 0: {expected}"), "{offset:#x}");
    }
}

/// LLVM sees no bundle at all, and exits with status 0.
#[test]
fn rejects_damage_to_the_first_entry() {
    let texts = [
        (
            0,
            "magic of header at offset 0x0 with size 0x18 runs past the end at 0x0",
        ),
        (
            23,
            "magic of header at offset 0x0 with size 0x18 runs past the end at 0x17",
        ),
        (
            24,
            "entry_count of header at offset 0x18 with size 0x8 runs past the end at 0x18",
        ),
        (
            31,
            "entry_count of header at offset 0x18 with size 0x8 runs past the end at 0x1f",
        ),
        (
            32,
            "entry 0: image_offset of entry header at offset 0x20 with size 0x8 \
             runs past the end at 0x20",
        ),
        (
            40,
            "entry 0: image_size of entry header at offset 0x28 with size 0x8 \
             runs past the end at 0x28",
        ),
        (
            48,
            "entry 0: id_len of entry header at offset 0x30 with size 0x8 runs past the end at 0x30",
        ),
        (
            56,
            "entry 0: entry ID at offset 0x38 with size 0x1e runs past the end at 0x38",
        ),
    ];
    for (len, expected) in texts {
        let found = parse(&LLVM[..len]).unwrap_err().to_string();
        assert_eq!(found, format!("bundle 0: {expected}"));
    }
    parse(&[b"x", LLVM].concat()).unwrap_err();
}

/// LLVM accepts these, and they have a meaning.
#[test]
fn accepts_what_llvm_accepts() {
    // No entries, or fewer than there are.
    let none = parse(&changed(0x18, b"\0")).unwrap();
    assert_eq!((none.entries.len(), none.size), (0, 32));
    let one = changed(0x18, b"\x01");
    assert_eq!(images(&one, &parse(&one).unwrap()), [(HOST, &b"H"[..])]);
    // An image that is empty at the end, over another, in the header.
    let end = changed(0x20, b"\x8e\0\0\0\0\0\0\0\0");
    assert_eq!(parse(&end).unwrap().entries[0].image, 0x8e..0x8e);
    let over = changed(0x20, b"\x8c");
    assert_eq!(images(&over, &parse(&over).unwrap())[0].1, b"G");
    let inside = changed(0x20, b"\x02");
    assert_eq!(images(&inside, &parse(&inside).unwrap())[0].1, b"C");
    // The first image after the last: the bundle ends where it does.
    let mut outer = changed(0x28, b"\x03");
    outer[0x5e] = 1;
    assert_eq!(parse(&outer).unwrap().size, 0x8e);
    // One ID twice, and none.
    let (first, second) = (&b"1"[..], &b"2"[..]);
    let mut twice = bundle(&[("a-b", first), ("a-c", second)], align(1)).unwrap();
    let last = twice.len() - 3;
    twice[last] = b'b';
    assert_eq!(
        images(&twice, &parse(&twice).unwrap()),
        [("a-b", first), ("a-b", second)]
    );
    let empty = bundle(&[("", first)], align(1)).unwrap();
    assert_eq!(images(&empty, &parse(&empty).unwrap()), [("", first)]);
}

#[test]
fn rejects_every_truncation() {
    for whole in [LLVM, THREE, ALIGNED] {
        for len in 0..whole.len() {
            parse(&whole[..len]).unwrap_err();
        }
    }
}

#[test]
fn survives_every_single_byte_change() {
    for whole in [LLVM, ALIGNED] {
        let mut bytes = whole.to_vec();
        for offset in 0..bytes.len() {
            let before = bytes[offset];
            for value in 0..=255 {
                bytes[offset] = value;
                if let Ok(bundle) = parse(&bytes) {
                    // What is accepted can be used.
                    images(&bytes, &bundle);
                }
            }
            bytes[offset] = before;
        }
    }
}

#[test]
fn round_trips_at_every_alignment() {
    let contents: [&[u8]; 4] = [b"", b"abcdefg", b"", b"xyz"];
    let ids = [HOST, "", GFX906, "hipv4-x"];
    let written: Vec<(&str, &[u8])> = ids.into_iter().zip(contents).collect();
    for value in (1..70).chain([4096]) {
        let bytes = bundle(&written, align(value)).unwrap();
        let found = parse(&bytes).unwrap();
        assert_eq!(images(&bytes, &found), written);
        assert_eq!(found.size, bytes.len() as u64);
        assert!(
            found
                .entries
                .iter()
                .all(|entry| entry.image.start % value == 0)
        );
        let sizes = written.iter().map(|(id, image)| (*id, image.len() as u64));
        let layout = BundleLayout::new(sizes, align(value)).unwrap();
        assert_eq!(layout.size(), bytes.len() as u64);
        assert!(bytes.starts_with(&layout.head));
        let places: Vec<_> = found.entries.into_iter().map(|entry| entry.image).collect();
        assert_eq!(layout.images, places);
    }
    assert_eq!(BundleLayout::new([], align(1)).unwrap().size(), 32);
}

#[test]
fn rejects_what_could_not_be_read_back() {
    let twice = bundle(&[(HOST, b"1"), (GFX906, b"2"), (HOST, b"3")], align(1));
    let text = "two images for the entry ID \"host-x86_64-unknown-linux-gnu-\"";
    assert_eq!(twice.unwrap_err().to_string(), text);
    let sized = |size, align| BundleLayout::new([("a", size), ("b", 1)], align);
    let head = 32 + 25 + 25;
    let text = "the image for \"b\" does not fit into a bundle";
    assert_eq!(
        sized(u64::MAX - head, align(1)).unwrap_err().to_string(),
        text
    );
    assert_eq!(
        sized(u64::MAX - head - 1, align(1)).unwrap().size(),
        u64::MAX
    );
    assert_eq!(
        sized(u64::MAX - head - 1, align(8))
            .unwrap_err()
            .to_string(),
        "the image for \"a\" does not fit into a bundle"
    );
}
