use super::*;
use crate::container::Standing;
use crate::container::archive::{self, NewMember};
use crate::container::data_object::{DataHost, DataObject};
use crate::container::elf::Machine;
use crate::container::embed::{Flavor, Host, elf_object, embed_bytes};
use crate::container::large::ImagePlacement;
use crate::container::macho::universal;
use crate::container::test_objects::object_around;
use crate::format::bundle::{self, BundleImage};
use crate::format::compressed_bundle;
use crate::format::offload_binary::{
    self, BinaryImage, Method, NewBinaryEntry, OffloadBinaryVersion,
};
use crate::format::pieces::{self, Piece};
use crate::names::{ImageKind, LlvmRelease, OffloadKind, Triple};
use std::num::NonZeroU64;

/// Written by `fatbinary` of CUDA 13.5: `sm_80` and `sm_100a`.
const FATBIN: &[u8] = include_bytes!("../../../../tests/golden/cuda-13.5/two-images.fatbin");
/// Written by `nvcc` of CUDA 13.5 for `sm_90`.
const CUBIN: &[u8] = include_bytes!("../../../../tests/golden/cuda-13.5/kernels.cubin");
/// Registered by `clang-linker-wrapper` of LLVM 22.1.8 for Intel's GPUs.
const INTEL: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/intel-openmp.elf");
/// Written by `llvm-as` 22.1.8 for AMD's GPUs.
const SPIRV_BITCODE: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/spirv64.bc");
/// Written by clang 22.1.8 for the CPU, with embedded offload binaries.
const EMBEDDED: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/embedded.bc");
/// Written by `llvm-offload-binary` 22.1.8.
const TWO: &[u8] = include_bytes!("../../../../tests/golden/22.1.8/two-images.offload-binary");
const PTX: &[u8] = b"// a comment\n.version 8.0\n.target sm_90a\n.address_size 64\n";

fn find(bytes: &[u8]) -> Inventory {
    inventory(bytes, &mut Unpacking::in_memory(1 << 20))
}

/// Returns target, form and offset of every image.
fn images(bytes: &[u8]) -> Vec<(String, Option<ImageForm>, u64)> {
    let found = find(bytes);
    assert!(found.problems.is_empty(), "{}", found.problems[0]);
    let images = found.images().into_iter();
    let images = images.map(|placed| {
        let image = placed.image;
        (image.target.to_string(), image.form, image.range.start)
    });
    images.collect()
}

fn bundled(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let images: Vec<BundleImage<'_>> = entries
        .iter()
        .map(|(id, image)| BundleImage { id, image })
        .collect();
    bundle::to_bytes(&images, NonZeroU64::MIN).unwrap()
}

fn binary(arch: &str, kind: OffloadKind, image: &[u8]) -> Vec<u8> {
    let binary = BinaryImage {
        image_kind: ImageKind::OBJECT,
        offload_kind: kind,
        strings: &[("triple", "nvptx64-nvidia-cuda"), ("arch", arch)],
        image,
        ..BinaryImage::default()
    };
    binary.to_bytes(LlvmRelease::V22).unwrap()
}

#[test]
fn finds_images_without_a_container() {
    let text = |target: &str| format!("nvptx64-nvidia-cuda {target}");
    assert_eq!(images(CUBIN), [(text("sm_90"), Some(ImageForm::Cubin), 0)]);
    assert_eq!(
        images(PTX),
        [(text("compute_90a"), Some(ImageForm::Ptx), 0)]
    );
    // In both byte orders.
    for magic in [0x0723_0203_u32.to_le_bytes(), 0x0723_0203_u32.to_be_bytes()] {
        let spirv = [&magic[..], &[0; 16]].concat();
        assert_eq!(images(&spirv), [(String::new(), Some(ImageForm::SpirV), 0)]);
    }
    let bitcode = [("spirv64-amd-amdhsa".to_owned(), Some(ImageForm::Bitcode), 0)];
    assert_eq!(images(SPIRV_BITCODE), bitcode);
    let intel = [("spirv64-intel".to_owned(), Some(ImageForm::SpirVElf), 0)];
    assert_eq!(images(INTEL), intel);
    // Native code for the same machine has other sections.
    let mut native = INTEL.to_vec();
    let name = b"__openmp_offload_spirv_0";
    let at = native.windows(name.len()).position(|bytes| bytes == name);
    native[at.unwrap()] = b'x';
    assert_eq!(images(&native), []);
    for other in [&b"plain text"[..], b"", b"\x7fEL", b"//.version"] {
        assert_eq!(images(other), [], "{other:?}");
    }
}

#[test]
fn finds_the_images_of_every_container() {
    let plain = bundled(&[
        ("host-x86_64-unknown-linux-gnu-", b""),
        ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+", b"0123"),
    ]);
    // Header 32, two entry headers of 24, IDs of 30 and 38 bytes.
    let expected = |form, offset| [("amdgcn-amd-amdhsa gfx90a:xnack+".to_owned(), form, offset)];
    assert_eq!(images(&plain), expected(Some(ImageForm::Unknown), 148));
    let packed = compressed_bundle::compress(&plain, Default::default()).unwrap();
    assert_eq!(images(&packed), expected(None, 148));
    let found = find(&packed);
    let compression = found.containers[0].compression.unwrap();
    assert_eq!(compression.uncompressed_size, plain.len() as u64);
    // LLVM compresses bundles of text, too.
    let text = b"\n# __CLANG_OFFLOAD_BUNDLE____START__ hip-amdgcn-amd-amdhsa--gfx90a\ntext\n\
        # __CLANG_OFFLOAD_BUNDLE____END__ hip-amdgcn-amd-amdhsa--gfx90a\n";
    let packed = compressed_bundle::compress(text, Default::default()).unwrap();
    let found = find(&packed);
    assert!(found.problems.is_empty(), "{}", found.problems[0]);
    let container = &found.containers[0];
    let image = &container.images[0];
    assert_eq!(container.format, ContainerFormat::TextBundle);
    assert_eq!(
        (image.target.to_string(), image.range.clone()),
        ("amdgcn-amd-amdhsa gfx90a".to_owned(), 67..71)
    );

    let cuda = |name: &str, form, offset| (format!("nvptx64-nvidia-cuda {name}"), form, offset);
    // The offsets are those of the golden test of `format/fatbin.rs`.
    let expected = [
        cuda("sm_80", Some(ImageForm::Cubin), 0x50),
        cuda("sm_100a", Some(ImageForm::Cubin), 0xc70),
    ];
    assert_eq!(images(FATBIN), expected);
}

#[test]
fn finds_containers_in_images() {
    let file = binary("sm_80", OffloadKind::CUDA, FATBIN);
    let found = find(&file);
    let images = found.images();
    assert_eq!(images.len(), 2);
    assert_eq!(images[1].image.target.processor, "sm_100a");
    assert_eq!(images[1].container().format, ContainerFormat::Fatbin);
    assert_eq!(images[1].outermost().format, ContainerFormat::OffloadBinary);
    // Ranges of containers in images are from the start of the file, too.
    let start = found.containers[0].images[0].range.start;
    assert_eq!(images[0].image.range.start, start + 0x50);
}

#[test]
fn finds_containers_in_sections_and_members() {
    let binary = binary("sm_80", OffloadKind::OPENMP, CUBIN);
    let object = elf_object(Machine::X86_64, &binary).unwrap();
    let member = |name, bytes| NewMember {
        name,
        bytes,
        symbols: &[],
    };
    let file = archive::write(&[member("k.o", &object), member("c.cubin", CUBIN)]);
    let found = find(&file);
    assert!(found.problems.is_empty());
    let [one, two] = &found.containers[..] else {
        panic!("{:?}", found.containers);
    };
    assert_eq!(one.members, [b"k.o"]);
    assert_eq!(one.section.as_deref(), Some(&b".llvm.offloading"[..]));
    assert_eq!(one.standing, Some(Standing::Excluded));
    assert_eq!(one.images[0].target.kind, OffloadKind::OPENMP);
    assert_eq!(one.images[0].own_target_id.as_deref(), Some("sm_90"));
    assert_eq!(
        (&two.members[..], two.section.as_ref()),
        (&[b"c.cubin".to_vec()][..], None)
    );
    assert_eq!(two.format, ContainerFormat::Image);
}

/// Git makes such files with `core.autocrlf`.
#[test]
fn finds_text_bundles_with_the_line_ends_of_windows() {
    let comment = "; __CLANG_OFFLOAD_BUNDLE____";
    let id = "hip-amdgcn-amd-amdhsa--gfx906";
    let text = format!("\r\n{comment}START__ {id}\r\n; device\r\n\r\n{comment}END__ {id}\r\n");
    let found = find(text.as_bytes());
    assert!(found.problems.is_empty(), "{}", found.problems[0]);
    assert_eq!(found.containers[0].format, ContainerFormat::TextBundle);
    let targets = found.images().into_iter();
    let targets: Vec<String> = targets
        .map(|placed| placed.image.target.to_string())
        .collect();
    assert_eq!(targets, ["amdgcn-amd-amdhsa gfx906"]);
}

/// Modules with `container = "raw"`, of several crates in one program.
#[test]
fn finds_each_image_of_a_section_without_containers() {
    let mut section = PTX.to_vec();
    for image in [CUBIN, PTX, CUBIN] {
        section.resize(section.len().next_multiple_of(4096), 0);
        section.extend(image);
    }
    let object = |host, placement| {
        let object = DataObject {
            section: ".device_images",
            placement,
            alignment: 4096,
            symbols: &[],
        };
        let content = [Piece::Bytes(section.clone())];
        pieces::to_bytes(&object.to_pieces(host, &content).unwrap(), &[]).unwrap()
    };
    let elf = DataHost::Elf(Machine::X86_64);
    for (host, placement) in [
        (elf, ImagePlacement::Usual),
        (elf, ImagePlacement::Large),
        (DataHost::Coff, ImagePlacement::Usual),
    ] {
        let found = images(&object(host, placement));
        let names: Vec<&str> = found.iter().map(|(name, ..)| &**name).collect();
        let expected = ["compute_90a", "sm_90", "compute_90a", "sm_90"];
        let expected = expected.map(|name| format!("nvptx64-nvidia-cuda {name}"));
        assert_eq!(names, expected, "{host:?}");
    }
}

#[test]
fn reports_damage_and_finds_the_other_images() {
    let good = binary("sm_80", OffloadKind::OPENMP, CUBIN);
    let good = elf_object(Machine::X86_64, &good).unwrap();
    let mut bad = good.clone();
    let magic = bad
        .windows(4)
        .position(|bytes| bytes == b"\x10\xff\x10\xad");
    // The version.
    bad[magic.unwrap() + 4] = 9;
    let member = |name, bytes| NewMember {
        name,
        bytes,
        symbols: &[],
    };
    let file = archive::write(&[member("bad.o", &bad), member("good.o", &good)]);
    let found = find(&file);
    assert_eq!(found.images().len(), 1);
    let problems: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 1);
    let start = "member `bad.o`: section `.llvm.offloading`: offload binary 0: ";
    assert!(problems[0].starts_with(start), "{}", problems[0]);
}

#[test]
fn respects_the_limit_on_unpacked_bytes() {
    let plain = bundled(&[("hip-amdgcn-amd-amdhsa--gfx90a", &[7; 4096])]);
    let packed = compressed_bundle::compress(&plain, Default::default()).unwrap();
    let limited = |limit| inventory(&packed[..], &mut Unpacking::in_memory(limit));
    let size = plain.len() as u64;
    assert_eq!(limited(size).images().len(), 1);
    let found = limited(size - 1);
    assert!(found.images().is_empty());
    assert!(found.problems[0].is_limit);

    // What is kept unpacked counts together: bundles of text, and offload binaries.
    let text = b"\n# __CLANG_OFFLOAD_BUNDLE____START__ hip-amdgcn-amd-amdhsa--gfx90a\ntext\n\
        # __CLANG_OFFLOAD_BUNDLE____END__ hip-amdgcn-amd-amdhsa--gfx90a\n";
    let text_bundle = compressed_bundle::compress(text, Default::default()).unwrap();
    let entry = NewBinaryEntry {
        image_size: 4096,
        ..NewBinaryEntry::default()
    };
    let version = OffloadBinaryVersion::from_raw(3).unwrap();
    let plain = offload_binary::layout(&[entry], version, LlvmRelease::V22).unwrap();
    let plain = pieces::to_bytes(&plain, &[&[7; 4096]]).unwrap();
    let mut binary = offload_binary::compress(&plain, Method::Zlib, None).unwrap();
    binary.resize(binary.len().next_multiple_of(8), 0);
    for (packed, size) in [
        (text_bundle, text.len() as u64),
        (binary, plain.len() as u64),
    ] {
        let two = [&packed[..], &packed].concat();
        let limited = |limit| inventory(&two[..], &mut Unpacking::in_memory(limit));
        assert_eq!(limited(2 * size).images().len(), 2);
        let found = limited(2 * size - 1);
        assert_eq!(found.images().len(), 1);
        assert!(found.problems[0].is_limit);
    }
}

/// Every truncation and change gives images or problems, never a panic, and ranges inside the file.
#[test]
fn survives_truncations_and_changes() {
    let bundle = bundled(&[("hip-amdgcn-amd-amdhsa--gfx90a", b"0123"), ("hip-x", PTX)]);
    let packed = compressed_bundle::compress(&bundle, Default::default()).unwrap();
    let nested = binary("sm_80", OffloadKind::CUDA, &FATBIN[..0x200]);
    let object = elf_object(Machine::X86_64, &binary("sm_80", OffloadKind::CUDA, FATBIN)).unwrap();
    for file in [&bundle[..], &packed, &nested, &object, FATBIN, PTX] {
        let check = |bytes: &[u8]| {
            for container in find(bytes).containers {
                assert!(container.range.end <= bytes.len() as u64);
            }
        };
        for len in 0..file.len().min(600) {
            check(&file[..len]);
        }
        let mut changed = file.to_vec();
        for index in 0..file.len().min(600) {
            for byte in [0, 1, 0x7f, 0xff] {
                let before = std::mem::replace(&mut changed[index], byte);
                check(&changed);
                changed[index] = before;
            }
        }
    }
}

#[test]
fn reads_the_slices_of_universal_files_once() {
    let host = Host::of(&Triple::parse("x86_64-apple-macos").unwrap()).unwrap();
    let macho = embed_bytes(host, Flavor::Excluded, TWO).unwrap();
    let size = macho.len() as u32;
    let arches = |found: &Inventory| {
        let images = found.images().into_iter();
        let images = images.map(|placed| placed.image.target.processor.clone());
        images.collect::<Vec<_>>()
    };
    let found = find(&universal(&[[7, 48, size], [7, 48, size]], &macho));
    assert_eq!(arches(&found), ["sm_70", "gfx90a"]);
    assert_eq!(found.problems[0].problem.to_string(), "slices overlap");

    let bitcode = find(&universal(&[[7, 28, EMBEDDED.len() as u32]], EMBEDDED));
    // The file embeds the two images twice (`tests/golden/README.md`).
    assert_eq!(arches(&bitcode), ["sm_70", "gfx90a", "sm_70", "gfx90a"]);
    assert_eq!(bitcode.containers[0].members, [b"i386"]);
}

/// A zip file with a member that is not compressed.
fn zip(content: &[u8]) -> Vec<u8> {
    let size = (content.len() as u32).to_le_bytes();
    // Version, flags, method, time, date; checksum; both sizes; sizes of the name and of extra fields.
    let record = [&[20, 0][..], &[0; 12], &size, &size, &[1, 0, 0, 0]].concat();
    let local = [b"PK\x03\x04", &record[..], b"m", content].concat();
    // With the version of the writer before, and the size of the comment, attributes and the offset after it.
    let central = [b"PK\x01\x02\x14\0", &record[..], &[0; 14], b"m"].concat();
    let places = [central.len() as u32, local.len() as u32].map(u32::to_le_bytes);
    let end = [
        b"PK\x05\x06\0\0\0\0\x01\0\x01\0",
        places.as_flattened(),
        &[0; 2],
    ]
    .concat();
    [local, central, end].concat()
}

#[test]
fn limits_the_nesting_of_zip_files() {
    let mut file = CUBIN.to_vec();
    for _ in 0..16 {
        file = zip(&file);
    }
    let found = find(&file);
    assert!(found.problems.is_empty(), "{}", found.problems[0]);
    assert_eq!(found.containers[0].members, [b"m"; 16]);
    let found = find(&zip(&file));
    assert_eq!(found.images().len(), 0);
    let problem = found.problems[0].problem.to_string();
    assert_eq!(problem, "archives are nested more than 16 deep");
}

#[test]
fn finds_native_libraries_of_rlibs_and_limits_their_nesting() {
    let nested = |depth: usize, count: u16| {
        let mut bytes = CUBIN.to_vec();
        for _ in 0..depth {
            let member = NewMember {
                name: "m",
                bytes: &bytes,
                symbols: &[],
            };
            bytes = object_around(&archive::write(&[member]), count);
        }
        bytes
    };
    let found = find(&nested(3, 1));
    assert!(found.problems.is_empty(), "{}", found.problems[0]);
    assert_eq!(found.containers[0].members, [b"m"; 3]);
    assert_eq!(found.images().len(), 1);
    let problem = |bytes: &[u8]| find(bytes).problems[0].to_string();
    let deep = problem(&nested(18, 1));
    assert!(deep.contains("nested more than 16 deep"), "{deep}");
    // 200 to the power of 12 images.
    let many = problem(&nested(12, 200));
    assert!(many.contains("sections overlap too often"), "{many}");
}
