use super::*;

use crate::container::archive::{self, NewMember};
use crate::container::elf::{Elf, ElfSection};
use crate::container::test_objects::object_around;
use crate::format::bundle::{self, BundleImage};
use crate::format::offload_binary::{
    self, Method, NewBinaryEntry, OffloadBinary, OffloadBinaryVersion,
};
use crate::format::pieces::to_bytes;
use crate::names::LlvmRelease;
use ::object::elf;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::ops::Range;

/// Written by `fatbinary` of CUDA 13.5: `sm_80` and `sm_100a`.
const FATBIN: &[u8] = include_bytes!("../../../../tests/golden/cuda-13.5/two-images.fatbin");

const LIMIT: DecompressionLimit = DecompressionLimit::of(1 << 20);

fn keep(names: &[&str]) -> PruneChoice {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    PruneChoice::keep(names, PtxChoice::Keep)
}

fn bytes(file: &[u8], choice: &PruneChoice) -> Vec<u8> {
    let scratch = Scratch::in_memory();
    let pruned = prune(file, choice, LIMIT, &scratch).unwrap();
    let new = scratch.all();
    let new = new.read(&(0..new.size())).unwrap();
    let bytes = to_bytes(&pruned.pieces, &[file, &new]).unwrap();
    assert_eq!(bytes.len() as u64, pruned.size);
    for (old, new) in &pruned.copied {
        let part = |bytes: &[u8], range: &Range<u64>| {
            bytes[range.start as usize..range.end as usize].to_vec()
        };
        assert_eq!(part(file, old), part(&bytes, new));
    }
    bytes
}

#[test]
fn writes_the_bundle_that_a_bundler_would_write() {
    let entry = |id, image| BundleImage { id, image };
    let all = [
        entry("host-x86_64-unknown-linux-gnu-", &b""[..]),
        entry("hip-amdgcn-amd-amdhsa--gfx906", b"one"),
        entry("hip-amdgcn-amd-amdhsa--gfx1100", b"three"),
    ];
    let page = NonZeroU64::new(4096).unwrap();
    let file = bundle::to_bytes(&all, page).unwrap();
    let kept = bundle::to_bytes(&[all[0], all[2]], page).unwrap();
    assert!(bytes(&file, &keep(&["gfx1100"])) == kept);
    assert!(bytes(&file, &keep(&["gfx1100", "gfx906"])) == file);
}

#[test]
fn keeps_headers_and_images_of_fat_binaries() {
    // Offsets: those of the test of `format/fatbin.rs`; the first image's header starts after that of the file.
    let mut expected = FATBIN[..0xbf8].to_vec();
    expected[8..16].copy_from_slice(&(0xbf8_u64 - 16).to_le_bytes());
    assert!(bytes(FATBIN, &keep(&["sm_80"])) == expected);
    // `sm_90` can use neither.
    let pruned = prune(FATBIN, &keep(&["sm_90"]), LIMIT, &Scratch::in_memory()).unwrap();
    assert!(pruned.counts.kept.is_empty());
    assert_eq!(pruned.counts.empty, 1);
    assert_eq!(pruned.size, 16);
    // Nothing is lost with a file that has no symbols but those of sections, as of a source without kernels.
    let magic = expected.windows(4).position(|bytes| bytes == b"\x7fELF");
    let image = magic.unwrap();
    let counts = |file: &[u8]| {
        let pruned = prune(file, &keep(&["sm_90"]), LIMIT, &Scratch::in_memory());
        let counts = pruned.unwrap().counts;
        (counts.removed.len(), counts.empty)
    };
    let elf = Elf::parse(&expected[..], image as u64..expected.len() as u64).unwrap();
    let is_table = |section: &ElfSection| section.section_type == elf::SHT_SYMTAB.0;
    let table = elf.check(&elf.sections().find(is_table).unwrap()).unwrap();
    for symbol in table.step_by(24) {
        expected[symbol as usize + 4] = elf::STT_SECTION.0;
    }
    assert_eq!(counts(&expected), (1, 0));
    // Without sections.
    for (offset, size) in [(0x28, 8), (0x3c, 2), (0x3e, 2)] {
        expected[image + offset..image + offset + size].fill(0);
    }
    assert_eq!(counts(&expected), (1, 0));
}

const GFX906: &[(&[u8], &[u8])] = &[(b"arch", b"gfx906")];
const GFX908: &[(&[u8], &[u8])] = &[(b"arch", b"gfx908")];
const SM_75: &[(&[u8], &[u8])] = &[(b"arch", b"sm_75")];
const SM_80: &[(&[u8], &[u8])] = &[(b"arch", b"sm_80")];

#[test]
fn writes_the_offload_binary_that_a_packager_would_write() {
    let entry = |strings, image_size| NewBinaryEntry {
        image_size,
        strings,
        ..Default::default()
    };
    let version = OffloadBinaryVersion::V2;
    let entries = [entry(GFX906, 3), entry(GFX908, 5)];
    let written = |entries: &[NewBinaryEntry<'_>], images: &[&[u8]]| {
        let pieces = offload_binary::layout(entries, version, LlvmRelease::V23).unwrap();
        to_bytes(&pieces, images).unwrap()
    };
    let file = written(&entries, &[b"one", b"three"]);
    let next = written(&entries[..1], &[b"one"]);
    let kept = written(&entries[1..], &[b"three"]);
    let file = [file, next].concat();
    assert!(bytes(&file, &keep(&["gfx908"])) == kept);
    let choice = keep(&["gfx908"]);
    let pruned = prune(&file[..], &choice, LIMIT, &Scratch::in_memory()).unwrap();
    assert_eq!(pruned.copied.len(), 1);
    // Drivers compile PTX for later processors. LLVM starts it with a comment, some compilers with a long one.
    let text = format!("//{}\n.version 8.0\n.target sm_80\n", "-".repeat(100));
    let (ptx, code) = (entry(SM_80, text.len() as u64), entry(SM_75, 4));
    let file = written(&[ptx, code], &[text.as_bytes(), b"code"]);
    let ptx = entry(SM_80, text.len() as u64);
    assert!(bytes(&file, &keep(&["sm_90"])) == written(&[ptx], &[text.as_bytes()]));
}

#[test]
fn reads_the_compressed_offload_binaries_that_it_writes() {
    let version = OffloadBinaryVersion::from_raw(3).unwrap();
    let mut paddings = BTreeSet::new();
    for size in 1..40 {
        let image: Vec<u8> = (0..size).map(|byte: u8| byte.wrapping_mul(37)).collect();
        let entry = |strings| NewBinaryEntry {
            image_size: image.len() as u64,
            strings,
            ..Default::default()
        };
        let entries = [entry(GFX906), entry(GFX908)];
        let plain = offload_binary::layout(&entries, version, LlvmRelease::V22).unwrap();
        let plain = to_bytes(&plain, &[&image, &image]).unwrap();
        let file = offload_binary::compress(&plain, Method::Zlib, None).unwrap();
        let pruned = bytes(&file, &keep(&["gfx906"]));
        let all = PruneChoice::drop(Vec::new(), PtxChoice::Keep);
        assert!(bytes(&pruned, &all) == pruned, "{size}");
        let again = prune(&pruned[..], &all, LIMIT, &Scratch::in_memory()).unwrap();
        let kept = BTreeMap::from([("gfx906".to_owned(), (1, image.len() as u64))]);
        let read = again.counts.kept.iter();
        let read = read.map(|(name, sizes)| (name.clone(), (sizes.images, sizes.unpacked)));
        assert_eq!(read.collect::<BTreeMap<_, _>>(), kept);
        let binary = OffloadBinary::parse(&pruned[..], 0, pruned.len() as u64).unwrap();
        paddings.insert(pruned.len() as u64 - binary.range().end);
    }
    // Each number of bytes after the compressed data was seen.
    assert_eq!(paddings, BTreeSet::from_iter(0..8));
}

#[test]
fn survives_truncations_and_changes() {
    let image = vec![7; 5000];
    let entry = |id| BundleImage { id, image: &image };
    let entries = [
        entry("hip-amdgcn-amd-amdhsa--gfx906"),
        entry("hip-amdgcn-amd-amdhsa--gfx1100"),
    ];
    let bundle = bundle::to_bytes(&entries, NonZeroU64::new(4096).unwrap()).unwrap();
    for file in [&bundle[..], FATBIN] {
        let check = |bytes: &[u8]| {
            let choice = keep(&["gfx906", "sm_80"]);
            if let Ok(pruned) = prune(bytes, &choice, LIMIT, &Scratch::in_memory()) {
                assert!(to_bytes(&pruned.pieces, &[bytes]).is_some());
            }
        };
        for len in 0..file.len().min(400) {
            check(&file[..len]);
        }
        let mut changed = file.to_vec();
        for index in 0..file.len().min(400) {
            for byte in [0, 1, 0x7f, 0xff] {
                let before = std::mem::replace(&mut changed[index], byte);
                check(&changed);
                changed[index] = before;
            }
        }
    }
}

/// Returns the problem of keeping `sm_80`.
fn problem(file: &[u8]) -> Option<PruneProblem> {
    let pruned = prune(file, &keep(&["sm_80"]), LIMIT, &Scratch::in_memory());
    pruned.err().map(|error| error.problem)
}

#[test]
fn refuses_native_libraries_that_rustc_does_not_write() {
    let library = |bytes: &[u8]| {
        archive::write(&[NewMember {
            name: "m",
            bytes,
            symbols: &[],
        }])
    };
    let nested = |depth: usize| {
        let mut bytes = FATBIN.to_vec();
        for _ in 0..depth {
            bytes = object_around(&library(&bytes), 1);
        }
        bytes
    };
    let library = library(FATBIN);
    let mut linked = object_around(&library, 1);
    linked[16] = elf::ET_DYN.0 as u8;
    // The size of program headers.
    linked[54] = 56;
    for (file, is_pruned) in [
        (object_around(&library, 1), true),
        (nested(17), true),
        (object_around(&library, 2), false),
        (nested(18), false),
        (linked, false),
    ] {
        let expected = (!is_pruned).then_some("NestedArchive");
        let found = problem(&file).map(|problem| format!("{problem:?}"));
        assert_eq!(found.as_deref(), expected);
    }
}
