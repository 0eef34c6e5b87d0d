use super::*;

use std::io::Cursor;
use std::num::NonZeroU64;

use crate::container::data_object::{DataHost, DataObject};
use crate::container::elf::Machine;
use crate::container::inventory::inventory;
use crate::container::large::ImagePlacement;
use crate::format::bundle::{self, BundleImage};
use crate::format::compressed_bundle::{CompressedBundleVersion, Compression, compress};
use crate::format::offload_binary::BinaryImage;
use crate::format::pieces::{Piece, to_bytes};
use crate::names::elf_flags::amd_machine;
use crate::names::{ImageKind, LlvmRelease, OffloadKind};

/// Written by `fatbinary` of CUDA 13.5: `sm_80` and `sm_100a`.
const FATBIN: &[u8] = include_bytes!("../../../../tests/golden/cuda-13.5/two-images.fatbin");
const HOST: &str = "host-x86_64-unknown-linux-gnu-";

fn settings() -> VerifySettings {
    VerifySettings {
        runtime: None,
        limit: DecompressionLimit::default(),
        scratch: Scratch::in_memory(),
    }
}

fn findings(file: &[u8], settings: VerifySettings) -> Vec<Finding> {
    let found = inventory(file, &mut Unpacking::in_memory(1 << 20));
    let open = || ReadCache::new(Cursor::new(file.to_vec()));
    verify(open, &found, settings).unwrap()
}

/// Returns the codes, without the note that an image has no kernels: those of these tests have none.
fn codes(file: &[u8]) -> Vec<&'static str> {
    let findings = findings(file, settings()).into_iter();
    let codes = findings.map(|finding| finding.code);
    let codes = codes.filter(|code| *code != FindingCode::NoKernels);
    codes.map(FindingCode::code).collect()
}

/// A linked ELF file without sections: header of 64 bytes, ABI version 4 of code object version 6.
fn code_object(processor: &str) -> Vec<u8> {
    let mut image = b"\x7fELF\x02\x01\x01\x40\x04".to_vec();
    image.resize(64, 0);
    let mut put = |offset: usize, bytes: &[u8]| {
        image[offset..offset + bytes.len()].copy_from_slice(bytes);
    };
    // ET_DYN, EM_AMDGPU, version; sizes of the headers.
    put(16, &[3, 0, 224, 0, 1]);
    put(48, &amd_machine(processor).unwrap().to_le_bytes());
    put(52, &[64, 0, 56, 0, 0, 0, 64, 0]);
    image
}

fn bundle_at(align: u64, entries: &[(&str, &[u8])]) -> Vec<u8> {
    let images = entries.iter().map(|(id, image)| BundleImage { id, image });
    let images: Vec<BundleImage<'_>> = images.collect();
    bundle::to_bytes(&images, NonZeroU64::new(align).unwrap()).unwrap()
}

fn bundle(ids: &[&str]) -> Vec<u8> {
    let images: Vec<Vec<u8>> = ids
        .iter()
        .map(|id| match id.rsplit_once("gfx") {
            Some((_, rest)) => code_object(&format!("gfx{}", rest.split(':').next().unwrap())),
            None => Vec::new(),
        })
        .collect();
    let entries = ids.iter().zip(&images);
    let entries: Vec<(&str, &[u8])> = entries.map(|(id, image)| (*id, &image[..])).collect();
    bundle_at(4096, &entries)
}

#[test]
fn finds_nothing_in_valid_bundles() {
    let file = bundle(&[
        HOST,
        "hipv4-amdgcn-amd-amdhsa--gfx906",
        "hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-",
        "hip-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack+",
    ]);
    assert_eq!(codes(&file), [""; 0]);
    let packed = compress(&file, Compression::default()).unwrap();
    assert_eq!(codes(&packed), [""; 0]);
    assert_eq!(codes(FATBIN), [""; 0]);
}

#[test]
fn finds_entries_that_the_runtime_does_not() {
    for (id, expected) in [
        ("openmp-amdgcn-amd-amdhsa--gfx906", &["OFF201"][..]),
        ("hip-amdgcn-amd-amdhsa-gfx906", &["OFF202"]),
        ("hipv4-amdgcn-amd-amdhsa-unknown-gfx906", &["OFF203"]),
        (
            "hipv4-amdgcn-amd-amdhsa--gfx906:xnack+:sramecc+",
            &["OFF204"],
        ),
        ("hipv4-spirv64-amd-amdhsa-unknown-amdgcnspirv", &["OFF104"]),
    ] {
        // The second entry tells that the file is HIP's.
        let file = bundle(&[id, "hipv4-amdgcn-amd-amdhsa--gfx1100"]);
        assert_eq!(codes(&file), expected, "{id}");
    }
    // comgr finds the environment `unknown` in compressed bundles.
    let file = bundle(&["hipv4-amdgcn-amd-amdhsa-unknown-gfx906"]);
    let packed = compress(&file, Compression::default()).unwrap();
    assert_eq!(codes(&packed), [""; 0]);
}

#[test]
fn finds_duplicates_conflicts_and_wrong_targets() {
    let ids = [
        "hip-amdgcn-amd-amdhsa--gfx906",
        "hipv4-amdgcn-amd-amdhsa--gfx906",
    ];
    assert_eq!(codes(&bundle(&ids)), ["OFF111"]);
    let ids = [
        "hip-amdgcn-amd-amdhsa--gfx90a",
        "hip-amdgcn-amd-amdhsa--gfx90a:xnack+",
    ];
    assert_eq!(codes(&bundle(&ids)), ["OFF112"]);
    let image = code_object("gfx1100");
    let file = bundle_at(4096, &[("hipv4-amdgcn-amd-amdhsa--gfx1101", &image)]);
    let found = findings(&file, settings());
    let wrong = found
        .iter()
        .find(|finding| finding.code == FindingCode::WrongTarget);
    assert_eq!(wrong.unwrap().message, "the image is for `gfx1100`");
    assert_eq!(
        wrong.unwrap().place.to_string(),
        "offset 0x0, entry 0 `hipv4-amdgcn-amd-amdhsa--gfx1101`"
    );
}

#[test]
fn compares_ptx_with_the_processor_that_compiles_it() {
    let ptx = b".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n\0";
    for (arch, expected) in [("sm_80", &[][..]), ("sm_90a", &[]), ("sm_75", &["OFF113"])] {
        let image = BinaryImage {
            image_kind: ImageKind::PTX,
            offload_kind: OffloadKind::CUDA,
            strings: &[("triple", "nvptx64-nvidia-cuda"), ("arch", arch)],
            image: ptx,
            ..BinaryImage::default()
        };
        let file = image.to_bytes(LlvmRelease::V22).unwrap();
        assert_eq!(codes(&file), expected, "{arch}");
    }
}

#[test]
fn finds_bad_layout() {
    let image = code_object("gfx906");
    let entry = ("hipv4-amdgcn-amd-amdhsa--gfx906", &image[..]);
    assert_eq!(codes(&bundle_at(8, &[entry])), ["OFF122"]);
    // 32 bytes, then 24 and the ID for each entry: 67 entries end at 4150, 66 at 4088 and 4094 (docs/spec/hip-runtime.md).
    let ids: Vec<String> = (0..67)
        .map(|number| format!("hipv4-amdgcn-amd-amdhsa--gfx9{number:02}:xnack+"))
        .collect();
    let entries: Vec<(&str, &[u8])> = ids.iter().map(|id| (id.as_str(), &b""[..])).collect();
    assert!(codes(&bundle_at(4096, &entries)).contains(&"OFF205"));
    let fits = 4096_usize.saturating_sub(32) / (24 + ids[0].len());
    assert!(!codes(&bundle_at(4096, &entries[..fits])).contains(&"OFF205"));
    assert!(codes(&bundle_at(4096, &entries[..fits + 1])).contains(&"OFF205"));
    // 32 + 7 * (24 + 38) + 66 * (24 + 31) = 4096: the last one that the runtime reads.
    let ids: Vec<String> = (0..73)
        .map(|number| {
            let features = if number < 7 { ":xnack+" } else { "" };
            format!("hipv4-amdgcn-amd-amdhsa--gfx9{number:02}{features}")
        })
        .collect();
    let entries: Vec<(&str, &[u8])> = ids.iter().map(|id| (id.as_str(), &b""[..])).collect();
    assert!(!codes(&bundle_at(4096, &entries)).contains(&"OFF205"));
    // The runtime gets no bundle of an object that is not linked.
    let object = DataObject {
        section: ".hip_fatbin",
        placement: ImagePlacement::Usual,
        alignment: 4096,
        symbols: &[],
    };
    let content = [Piece::Bytes(bundle_at(8, &[entry]))];
    let object = object.to_pieces(DataHost::Elf(Machine::X86_64), &content);
    let object = to_bytes(&object.unwrap(), &[]).unwrap();
    assert_eq!(codes(&object), [""; 0]);
    // The offset of the second image, in its record after that of the first, becomes that of the first.
    let entries = [
        ("hip-amdgcn-amd-amdhsa--gfx906", &image[..]),
        ("hip-amdgcn-amd-amdhsa--gfx906:xnack+", &image),
    ];
    let mut file = bundle_at(4096, &entries);
    let (first, second) = (32, 32 + 24 + entries[0].0.len());
    let offsets = [first, second].map(|place| file[place..place + 8].to_vec());
    file[first..first + 8].copy_from_slice(&offsets[1]);
    file[second..second + 8].copy_from_slice(&offsets[0]);
    assert!(codes(&file).contains(&"OFF206"));
}

#[test]
fn finds_damage() {
    let file = bundle(&["hipv4-amdgcn-amd-amdhsa--gfx906"]);
    assert!(codes(&file[..file.len() - 1]).contains(&"OFF101"));
    let mut packed = compress(&file, Compression::default()).unwrap();
    // The hash of version 3 is at offset 0x18.
    packed[0x18] ^= 1;
    assert_eq!(codes(&packed), ["OFF102"]);
    // One section header behind the end of the image.
    let mut image = code_object("gfx906");
    image[40] = 64;
    image[60] = 1;
    let file = bundle_at(4096, &[("hipv4-amdgcn-amd-amdhsa--gfx906", &image)]);
    assert!(codes(&file).contains(&"OFF103"));
    let file = bundle_at(4096, &[("hipv4-amdgcn-amd-amdhsa--gfx906", b"text")]);
    assert_eq!(codes(&file), ["OFF104"]);
}

#[test]
fn finds_compression_that_a_runtime_does_not_read() {
    let file = bundle(&["hipv4-amdgcn-amd-amdhsa--gfx906"]);
    let packed = |version| {
        let how = Compression {
            version,
            ..Compression::default()
        };
        compress(&file, how).unwrap()
    };
    let of = |version, runtime: Option<(u16, u16)>| -> Vec<&str> {
        let runtime = runtime.map(|(major, minor)| HipRuntime::new(major, minor));
        let found = findings(
            &packed(version),
            VerifySettings {
                runtime,
                ..settings()
            },
        );
        let codes = found.iter().map(|finding| finding.code.code());
        codes.filter(|code| code.starts_with("OFF2")).collect()
    };
    use CompressedBundleVersion::{V1, V2, V3};
    assert_eq!(of(V1, None), ["OFF208"]);
    assert_eq!(of(V2, None), [""; 0]);
    assert_eq!(of(V2, Some((6, 4))), [""; 0]);
    assert_eq!(of(V3, Some((6, 4))), ["OFF207"]);
    assert_eq!(of(V3, Some((7, 2))), [""; 0]);
    assert_eq!(of(V2, Some((6, 0))), ["OFF207"]);
}

#[test]
fn survives_truncations_and_changes() {
    let file = bundle(&[HOST, "hipv4-amdgcn-amd-amdhsa--gfx906"]);
    let packed = compress(&file, Compression::default()).unwrap();
    for file in [&file[..], &packed, FATBIN] {
        for len in 0..file.len().min(300) {
            findings(&file[..len], settings());
        }
        let mut changed = file.to_vec();
        for index in 0..file.len().min(300) {
            for byte in [0, 1, 0x7f, 0xff] {
                let before = std::mem::replace(&mut changed[index], byte);
                findings(&changed, settings());
                changed[index] = before;
            }
        }
    }
}
