//! What is unpacked from CUDA's fat binaries, against what `cuobjdump` extracts from the same file.

use crate::support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use offload_formats::format::bytes::ReadCache;
use offload_formats::format::fatbin::{FatbinCompression, FatbinKind, FatbinUnpacker, walk};
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
    let folder = tempfile::tempdir().unwrap();
    for (processor, version) in PROCESSORS {
        let head = format!(".version {version}\n.target sm_{processor}\n.address_size 64\n");
        let (text, cubin) = (
            file(&folder, processor, "ptx"),
            file(&folder, processor, "elf"),
        );
        fs::write(&text, head + KERNELS).unwrap();
        let mut command = Command::new(&ptxas);
        command.arg(format!("-arch=sm_{processor}")).arg(&text);
        support::run(command.arg("-o").arg(&cubin));
    }
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
