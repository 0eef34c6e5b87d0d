//! Any bytes as what a device linker made, for any processor: no panic, and what is packed holds the image.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use offload_build::tools::{check, spirv};
use offload_formats::container::fatbin::{FatbinImage, compressed_cuda_fatbin, cuda_fatbin};
use offload_formats::container::kernels::kernels;
use offload_formats::format::fatbin::{self, FatbinCompressor, FatbinUnpacker};
use offload_formats::format::pieces;
use offload_formats::names::elf_flags::processor_of;
use offload_formats::names::{TargetId, Triple};

const TARGETS: [(&str, &str); 8] = [
    ("nvptx64-nvidia-cuda", "sm_80"),
    ("nvptx64-nvidia-cuda", "sm_100a"),
    ("nvptx64-nvidia-cuda", "sm_103f"),
    ("amdgcn-amd-amdhsa", "gfx90a:sramecc+:xnack-"),
    ("amdgcn-amd-amdhsa", "gfx9-generic"),
    ("x86_64-unknown-linux-gnu", ""),
    ("aarch64-unknown-linux-gnu", ""),
    ("spirv64-intel", ""),
];

/// Behind the first three bytes an ELF file of 64 bits, so that a fuzzer need not find its first words.
const START: &[u8] = b"\x7fELF\x02\x01\x01";

fuzz_target!(|data: &[u8]| {
    let [choice, machine, cut, rest @ ..] = data else {
        return;
    };
    let (triple, processor) = TARGETS[usize::from(*choice) % TARGETS.len()];
    let mut image = match cut {
        0 => rest.to_vec(),
        _ => [START, rest].concat(),
    };
    if let (Some(place), Some(machine)) = (
        image.get_mut(18),
        [190, 224, 62, 183].get(usize::from(*machine)),
    ) {
        *place = *machine;
    }
    let parsed = (
        Triple::parse(triple).expect("a triple"),
        TargetId::parse(processor).expect("a target ID"),
    );
    let names = BTreeSet::from(["kernel".to_owned()]);
    for names in [&BTreeSet::new(), &names] {
        let _ = check(&image[..], &parsed.0, &parsed.1, names).map_err(|error| error.to_string());
    }
    for word in image.chunks_exact(4) {
        let flags = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        for abi_version in [7, 8] {
            let _ = (
                processor_of(190, flags, abi_version),
                processor_of(224, flags, abi_version),
            );
        }
    }
    let _ = kernels(&image).map_err(|error| error.to_string());
    let one = FatbinImage {
        processor,
        image: &image[..],
    };
    for images in [&[one][..], &[one, one]] {
        if let Ok(fatbin) = cuda_fatbin(images).map_err(|error| error.to_string()) {
            let inputs = [&image[..], &image[..]];
            let fatbin = pieces::to_bytes(&fatbin.pieces, &inputs).expect("pieces of the images");
            assert_eq!(fatbin.len() % 8, 0);
            let size = u64::from_le_bytes(fatbin[8..16].try_into().expect("eight bytes"));
            assert_eq!(size + 16, fatbin.len() as u64);
            let padded = image.len().next_multiple_of(8);
            let last = fatbin.len() - padded;
            assert_eq!(&fatbin[last..last + image.len()], &image[..]);
            for compressor in [
                FatbinCompressor::Lz4,
                FatbinCompressor::Zstd { level: None },
            ] {
                let packed = compressed_cuda_fatbin(images, compressor).expect("plain, it is one");
                let packed =
                    pieces::to_bytes(&packed.pieces, &inputs).expect("pieces of the images");
                let entries =
                    fatbin::parse(&packed[..], 0..packed.len() as u64).expect("written here");
                let mut unpacker = FatbinUnpacker::new(&packed[..], u64::MAX);
                for entry in &entries {
                    let unpacked = unpacker.image(entry).expect("packed here");
                    assert!(unpacked.starts_with(&image));
                }
            }
        }
    }
    if let Ok(wrapped) = spirv::openmp_image(&image[..], "-a", processor) {
        let wrapped = pieces::to_bytes(&wrapped, &[&image]).expect("pieces of the module");
        assert!(object_parses(&wrapped));
    }
});

fn object_parses(bytes: &[u8]) -> bool {
    offload_formats::container::elf::Elf::parse(bytes, 0..bytes.len() as u64).is_ok()
}
