//! Compressed images of CUDA: what NVIDIA's tools read of those that are packed here, and what is read here of those that
//! nvcc packs.

use crate::support;

use object::{Object, ObjectSection};
use offload_formats::format::fatbin::{self, FatbinCompression, FatbinKind};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use support::cuda_package::{CUDA, cuda, images, package, program, script, targets};
use support::launches::HEADER;
use support::package::{OUT, Package, text};

const LZ4: Option<FatbinCompression> = Some(FatbinCompression::Lz4);
const ZSTD: Option<FatbinCompression> = Some(FatbinCompression::Zstd);

/// Kernels that are large enough to be compressed; nvcc and clang compile them.
const KERNELS: &str = "
#ifndef __NVCC__
#include \"launch.h\"
#endif
template <class T> __device__ T many(T *x) {
  T sum = 0;
  for (int i = 0; i < 40; ++i) sum += x[i * 3] * x[i + 5] / (x[i] + 1);
  return sum;
}
extern \"C\" __global__ void first(float *x) { *x = many(x); }
extern \"C\" __global__ void second(double *x, int n) { *x = many(x) + n; }
";

/// Returns kind, processor and method of each image.
fn methods(fatbin: &[u8]) -> Vec<(FatbinKind, String, Option<FatbinCompression>)> {
    let entries = fatbin::parse(fatbin, 0..fatbin.len() as u64).unwrap();
    let of = |entry: fatbin::FatbinEntry| (entry.kind, entry.processor, entry.compression);
    entries.into_iter().map(of).collect()
}

/// Returns the fat binary in an object that registers it.
fn registered(object: &Path) -> Vec<u8> {
    let object = fs::read(object).unwrap();
    let file = object::File::parse(&*object).unwrap();
    let section = file.section_by_name(".nv_fatbin").unwrap();
    section.data().unwrap().to_vec()
}

/// Returns what `cuobjdump` extracts, by the names of the targets, without the zeros that end it.
fn extracted(cuda: &Path, package: &Package, packed: &Path) -> BTreeMap<String, Vec<u8>> {
    let folder = package.at("extracted");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    let mut command = Command::new(cuda.join("bin/cuobjdump"));
    command.args(["-xelf", "all", "-xptx", "all"]).arg(packed);
    support::run(command.current_dir(&folder));
    let image = |file: std::io::Result<fs::DirEntry>| {
        let path = file.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let (_, number) = stem.rsplit_once("sm_").unwrap();
        let kind = match path.extension().unwrap().to_str().unwrap() {
            "ptx" => "compute",
            _ => "sm",
        };
        (
            format!("{kind}_{number}"),
            trimmed(fs::read(&path).unwrap()),
        )
    };
    fs::read_dir(folder).unwrap().map(image).collect()
}

fn trimmed(mut image: Vec<u8>) -> Vec<u8> {
    let end = image.iter().rposition(|byte| *byte != 0);
    image.truncate(end.map_or(0, |end| end + 1));
    image
}

#[test]
fn compresses_fat_binaries_as_nvidias_tools_read_them() {
    let names = ["sm_90", "sm_80", "compute_80"];
    let (Some(cuda), Some(package)) = (cuda(), package(&format!("{CUDA}{}", targets(&names))))
    else {
        return;
    };
    text(&script(&package, &cuda).output().unwrap());
    let plain = extracted(
        &cuda,
        &package,
        &package.at(OUT).join("offload/kernels/images"),
    );
    assert_eq!(
        plain.keys().collect::<Vec<_>>(),
        ["compute_80", "sm_80", "sm_90"]
    );
    let size = images(&package).len();
    let main = "println!(\"{}\", kernels::image().unwrap().len()); \
                println!(\"{}\", kernels::images().iter().all(|image| image.bytes.is_empty()));";
    for (compress, method) in [
        ("lz4", LZ4),
        ("zstd:19", ZSTD),
        ("zstd", ZSTD),
        ("none", None),
    ] {
        let mut script = script(&package, &cuda);
        text(&script.env("OFFLOAD_COMPRESS", compress).output().unwrap());
        let packed = images(&package);
        let expected = [
            (FatbinKind::Cubin, "sm_90".to_owned(), method),
            (FatbinKind::Cubin, "sm_80".to_owned(), method),
            (FatbinKind::Ptx, "sm_80".to_owned(), method),
        ];
        assert_eq!(methods(&packed), expected);
        let file = package.at(OUT).join("offload/kernels/images");
        assert_eq!(extracted(&cuda, &package, &file), plain, "{compress}");
        if method.is_some() {
            assert!(
                packed.len() * 2 < size,
                "{compress}: {} of {size}",
                packed.len()
            );
        }
        let has_bytes = method.is_none();
        let seen = format!("{}\n{}\n", packed.len(), !has_bytes);
        assert_eq!(program(&package, main), seen, "{compress}");
    }
    // The files of the images are as they were.
    let cubin = trimmed(fs::read(package.image("sm_90")).unwrap());
    assert_eq!(cubin, plain["sm_90"]);
    // What is registered, too.
    let host = format!("{CUDA}host = true\ncompress = \"lz4\"\n{}", targets(&names));
    package.declare(&host);
    package.put("kernels/launch.h", HEADER);
    package.put("kernels/k.cu", KERNELS);
    text(&script(&package, &cuda).output().unwrap());
    let module = registered(&package.at(OUT).join("offload/kernels/module.o"));
    assert!(methods(&module).iter().all(|(.., method)| *method == LZ4));
}

#[test]
fn reads_what_nvcc_compresses() {
    let Some(nvcc) = support::tool("cuda", &["nvcc"]) else {
        return;
    };
    let keys = "language = \"cuda\"\nhost = true\nsources = [\"kernels/k.cu\"]\n";
    let Some(package) = package(keys) else {
        return;
    };
    package.put("kernels/k.cu", KERNELS);
    let cubin = |method| (FatbinKind::Cubin, "sm_80".to_owned(), method);
    let ptx = |method| (FatbinKind::Ptx, "sm_80".to_owned(), method);
    // PTX is not linked.
    let one = (&["sm_80", "compute_80"][..], "");
    let linked = (&["sm_80"][..], "rdc = true\n");
    let debugged = (&["sm_80"][..], "flags = [\"-G\"]\n");
    let only_ptx = (&["compute_80"][..], "");
    let cases = [
        (one, "", vec![ptx(LZ4), cubin(None)]),
        (one, "none", vec![ptx(None), cubin(None)]),
        (one, "lz4", vec![ptx(LZ4), cubin(LZ4)]),
        (one, "zstd", vec![ptx(ZSTD), cubin(ZSTD)]),
        (linked, "", vec![cubin(None)]),
        (linked, "zstd", vec![cubin(ZSTD)]),
        (debugged, "", vec![cubin(LZ4)]),
        (only_ptx, "", vec![ptx(LZ4)]),
    ];
    for ((names, more), compress, expected) in support::share(cases, 0, 2) {
        let compress = match compress {
            "" => String::new(),
            compress => format!("compress = \"{compress}\"\n"),
        };
        package.declare(&format!("{keys}{}{compress}{more}", targets(names)));
        let mut script = package.script();
        script
            .env("OFFLOAD_COMPILER", &nvcc)
            .env("PATH", std::env::var_os("PATH").unwrap());
        text(&script.output().unwrap());
        let object = match more.starts_with("rdc") {
            true => "offload/kernels/images.o",
            false => "offload/kernels/host/kernels-k.cu.o",
        };
        let object = package.at(OUT).join(object);
        assert_eq!(methods(&registered(&object)), expected, "{compress}{more}");
        // What the images say of their kernels.
        let described = fs::read_to_string(package.at(OUT).join("kernels.rs")).unwrap();
        for kernel in ["first", "second"] {
            let expected = format!("pub const {kernel}: Kernel");
            assert!(described.contains(&expected), "{compress}{more}{described}");
        }
    }
}

/// A release of nvcc that has no mode for Zstandard.
#[test]
fn says_which_nvcc_zstd_needs() {
    let Some(nvcc) = support::tool("cuda", &["nvcc"]) else {
        return;
    };
    let keys =
        "language = \"cuda\"\nhost = true\nsources = [\"kernels/k.cu\"]\ncompress = \"zstd\"\n";
    let Some(package) = package(&format!("{keys}{}", targets(&["sm_80"]))) else {
        return;
    };
    let line = "Cuda compilation tools, release 12.6, V12.6.85";
    let front = format!(
        "#!/bin/sh\ncase \"$*\" in *--version*) echo '{line}';; *) exec {} \"$@\";; esac\n",
        nvcc.display()
    );
    package.put("tools/nvcc", &front);
    let front = package.at("tools/nvcc");
    let mut script = package.script();
    script.env("OFFLOAD_COMPILER", &front);
    let error = package.fails(script.env("PATH", std::env::var_os("PATH").unwrap()));
    assert_eq!(
        error,
        format!(
            "module `kernels`: `compress = \"zstd\"` needs nvcc of CUDA 12.8 or later, found {line}\n\
             hint: `lz4` works with this one"
        )
    );
}

#[test]
fn says_which_methods_a_container_takes() {
    let Some(package) = package("") else {
        return;
    };
    let cuda = format!("{CUDA}{}", targets(&["sm_80"]));
    let hip = "language = \"hip\"\nsources = [\"kernels/*.cu\"]\ntargets = [\"gfx90a\"]\n";
    let host = format!("{cuda}host = true\n");
    for (keys, compress, problem) in [
        (
            &*cuda,
            "zlib",
            "`zlib` in a `fatbin`: CUDA's driver reads `lz4` and `zstd`",
        ),
        (
            hip,
            "lz4",
            "`lz4` in a `bundle`: HIP's runtime reads `zlib` and `zstd`",
        ),
        (
            &format!("{cuda}container = \"raw\"\n"),
            "lz4",
            "`compress` needs the container `bundle` or `fatbin`, found `raw`",
        ),
        (
            &host,
            "zstd:19",
            "`zstd:19`: `nvcc` has no levels\nhint: write `zstd`",
        ),
        (
            &format!("{host}register = \"deferred\"\n"),
            "zstd",
            "the last link writes the container of a `deferred` module: pass `--compress` to `offload-link`",
        ),
        (
            &*cuda,
            "lz4:9",
            "`lz4:9` is not one of `none`, `lz4`, `zlib`, `zstd`, or one of the last two with a level: `zstd:19`",
        ),
    ] {
        let keys = format!("compress = {compress:?}\n{keys}");
        package.declare(&keys);
        let mut script = package.script();
        if problem.contains("nvcc") {
            script.env("OFFLOAD_COMPILER", "nvcc");
        }
        let error = package.fails(&mut script);
        assert_eq!(error, format!("Cargo.toml:5:1: {problem}"));
    }
}
