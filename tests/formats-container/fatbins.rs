//! What is unpacked from CUDA's fat binaries, against what `cuobjdump` extracts from the same file, and what it extracts from
//! those that are compressed here.

use crate::support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use offload_formats::container::fatbin::{FatbinImage, compressed_cuda_fatbin};
use offload_formats::format::bytes::ReadCache;
use offload_formats::format::fatbin::{
    FatbinCompression, FatbinCompressor, FatbinKind, FatbinUnpacker, walk,
};
use offload_formats::format::pieces;
use support::Random;

const KERNELS: &str = include_str!("../kernels_cuda/kernels.ptx");

/// Processors, and the version of PTX that has each.
const PROCESSORS: [(&str, &str); 8] = [
    ("75", "8.1"),
    ("80", "8.1"),
    ("86", "8.1"),
    ("90a", "8.1"),
    ("100", "8.6"),
    ("100a", "8.6"),
    ("120", "8.7"),
    ("121a", "8.8"),
];

/// An image by the name of its file: processor and extension.
type Images = BTreeMap<String, Vec<u8>>;

#[test]
fn unpacks_what_cuobjdump_extracts() {
    let Some([ptxas, fatbinary, cuobjdump]) = tools() else {
        return;
    };
    let folder = assembled(&ptxas);
    let mut random = Random::new();
    let mut methods = [0; 3];
    let mut groups = 0;
    for case in 0..24 {
        let place = folder.path().join(case.to_string());
        fs::create_dir(&place).unwrap();
        let packed = place.join("k.fatbin");
        let mut command = Command::new(&fatbinary);
        command.arg("-64").arg("--create").arg(&packed);
        let mode = ["none", "default", "speed", "balance", "size"][case % 5];
        command.arg(format!("--compress-mode={mode}"));
        if random.below(3) > 0 && mode != "none" {
            command.arg("--compress-all");
            if random.below(3) > 0 {
                command.arg("--concat");
            }
        }
        if random.below(2) == 0 {
            command.arg("--cmdline=-O3 --maxrregcount=32");
        }
        let mut count = 0;
        for (processor, _) in PROCESSORS {
            for kind in ["elf", "ptx"] {
                if random.below(2) == 0 || (count == 0 && processor == "121a") {
                    let path = file(&folder, processor, kind);
                    let path = path.display();
                    command.arg(format!("--image3=kind={kind},sm={processor},file={path}"));
                    count += 1;
                }
            }
        }
        support::run(&mut command);
        let ours = unpacked(&packed, &mut methods, &mut groups);
        assert_eq!(ours.len(), count, "{command:?}");
        assert_eq!(ours, extracted(&cuobjdump, &packed), "{command:?}");
    }
    println!("stored, lz4, zstd: {methods:?}; in groups: {groups}");
    assert!(methods.iter().all(|count| *count > 8) && groups > 8);
}

#[test]
fn compresses_as_nvidias_tool_does() {
    let Some([ptxas, fatbinary, cuobjdump]) = tools() else {
        return;
    };
    let folder = assembled(&ptxas);
    let images = PROCESSORS.iter().flat_map(|(processor, _)| {
        let read = |kind| fs::read(file(&folder, processor, kind)).unwrap();
        [
            (format!("sm_{processor}"), read("elf")),
            (format!("compute_{processor}"), read("ptx")),
        ]
    });
    let images: Vec<(String, Vec<u8>)> = images.collect();
    let contents: Vec<&[u8]> = images.iter().map(|(_, image)| &**image).collect();
    let zstd = |level| FatbinCompressor::Zstd { level };
    let cases = [
        ("speed", FatbinCompressor::Lz4, FatbinCompression::Lz4),
        ("balance", zstd(None), FatbinCompression::Zstd),
        ("size", zstd(Some(19)), FatbinCompression::Zstd),
    ];
    for (mode, compressor, method) in cases {
        let ours: Vec<FatbinImage<'_>> = images
            .iter()
            .map(|(processor, image)| FatbinImage {
                processor,
                image: &**image,
            })
            .collect();
        let ours = compressed_cuda_fatbin(&ours, compressor).unwrap();
        assert_eq!(ours.images, []);
        let ours = pieces::to_bytes(&ours.pieces, &contents).unwrap();
        let packed = folder.path().join(format!("{mode}.ours"));
        fs::write(&packed, &ours).unwrap();
        let (mut methods, mut groups) = ([0; 3], 0);
        let unpacked = unpacked(&packed, &mut methods, &mut groups);
        assert_eq!(unpacked, extracted(&cuobjdump, &packed), "{mode}");
        assert_eq!((unpacked.len(), groups), (images.len(), 0));
        let theirs = folder.path().join(format!("{mode}.theirs"));
        let mut command = Command::new(&fatbinary);
        command
            .args(["-64", "--compress-all", "--create"])
            .arg(&theirs);
        command.arg(format!("--compress-mode={mode}"));
        for (processor, _) in PROCESSORS {
            for kind in ["elf", "ptx"] {
                let path = file(&folder, processor, kind);
                let path = path.display();
                command.arg(format!("--image3=kind={kind},sm={processor},file={path}"));
            }
        }
        support::run(&mut command);
        let theirs = fs::read(&theirs).unwrap();
        println!("{mode}: {} bytes here, {} there", ours.len(), theirs.len());
        // All that is not compressed, and sizes that do not depend on how well it is.
        assert_eq!(described(&ours), described(&theirs), "{mode}");
        let compressed = described(&ours).into_iter();
        let compressed = compressed.map(|image| image.1).collect::<Vec<_>>();
        assert_eq!(compressed, vec![Some(method); images.len()], "{mode}");
        assert!(ours.len() * 10 < theirs.len() * 11, "{mode}");
    }
}

/// Returns of each image its kind and processor, its method, its uncompressed size, and its header without the sizes of what
/// is compressed.
fn described(fatbin: &[u8]) -> Vec<(String, Option<FatbinCompression>, u64, Vec<u8>)> {
    const HEADER: usize = 64;
    let mut images = Vec::new();
    let mut start = 16;
    for found in walk(fatbin, 0..fatbin.len() as u64) {
        for entry in found.unwrap().entries {
            let mut header = fatbin[start..entry.image.start as usize].to_vec();
            assert!(header.len() >= HEADER);
            header[0x08..0x14].fill(0);
            let (name, size) = (entry.to_string(), entry.uncompressed_size);
            images.push((name, entry.compression, size, header));
            start = entry.image.end as usize;
        }
    }
    images
}

/// Makes a folder with the kernels for each processor, as PTX and assembled.
fn assembled(ptxas: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (processor, version) in PROCESSORS {
        let head = format!(".version {version}\n.target sm_{processor}\n.address_size 64\n");
        let (text, cubin) = (
            file(&folder, processor, "ptx"),
            file(&folder, processor, "elf"),
        );
        fs::write(&text, head + KERNELS).unwrap();
        let mut command = Command::new(ptxas);
        command.arg(format!("-arch=sm_{processor}")).arg(&text);
        support::run(command.arg("-o").arg(&cubin));
    }
    folder
}

fn tools() -> Option<[PathBuf; 3]> {
    let tool = |name| support::tool("cuda", &[name]);
    Some([tool("ptxas")?, tool("fatbinary")?, tool("cuobjdump")?])
}

fn file(folder: &tempfile::TempDir, processor: &str, kind: &str) -> PathBuf {
    folder.path().join(format!("{processor}.{kind}"))
}

/// Unpacks the images of a file, without the zeros that end them; counts methods and images in groups.
fn unpacked(path: &Path, methods: &mut [u32; 3], groups: &mut u32) -> Images {
    let size = fs::metadata(path).unwrap().len();
    let cache = ReadCache::new(fs::File::open(path).unwrap());
    let mut unpacker = FatbinUnpacker::new(&cache, 1 << 24);
    let mut images = Images::new();
    for found in walk(&cache, 0..size) {
        for entry in found.unwrap().entries {
            let method = match entry.compression {
                None => 0,
                Some(FatbinCompression::Lz4) => 1,
                Some(FatbinCompression::Zstd) => 2,
                other => panic!("{other:?}"),
            };
            methods[method] += 1;
            *groups += u32::from(entry.group.is_some());
            let extension = match entry.kind {
                FatbinKind::Cubin => "cubin",
                FatbinKind::Ptx => "ptx",
                other => panic!("{other:?}"),
            };
            let image = unpacker.image(&entry).unwrap();
            assert_eq!(image.len() as u64, entry.uncompressed_size);
            let name = format!("{}.{extension}", entry.processor);
            assert!(images.insert(name, without_padding(image)).is_none());
        }
    }
    images
}

/// Returns what `cuobjdump` extracts: files `k.<number>.<processor>.<extension>`.
fn extracted(cuobjdump: &Path, packed: &Path) -> Images {
    let folder = packed.with_extension("extracted");
    fs::create_dir(&folder).unwrap();
    let mut command = Command::new(cuobjdump);
    command.args(["-xelf", "all", "-xptx", "all"]).arg(packed);
    support::run(command.current_dir(&folder));
    let image = |file: std::io::Result<fs::DirEntry>| {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let (_, name) = name.split_once("sm_").unwrap();
        (
            format!("sm_{name}"),
            without_padding(&fs::read(&path).unwrap()),
        )
    };
    fs::read_dir(&folder).unwrap().map(image).collect()
}

fn without_padding(image: &[u8]) -> Vec<u8> {
    let end = image.iter().rposition(|byte| *byte != 0);
    image[..end.map_or(0, |end| end + 1)].to_vec()
}
