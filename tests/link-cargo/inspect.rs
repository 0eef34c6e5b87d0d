//! `cargo offload inspect` beside NVIDIA's and LLVM's tools, on what compilers write.

use crate::support::folder::Folder;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::Path;
use std::process::{Command, Stdio};

use offload_formats::format::bundle::{self, BundleImage};
use offload_formats::format::compressed_bundle;
use serde_json::Value;

use crate::support::{program, run, tool};

const INSPECT: [&str; 2] = ["offload", "inspect"];

fn cargo_offload(folder: &Folder) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-offload"));
    command.current_dir(folder.root()).args(INSPECT);
    command
}

fn inspect(folder: &Folder, file: &str) -> Value {
    let text = run(cargo_offload(folder).args(["--json", file]));
    serde_json::from_str(&text).unwrap()
}

/// Returns the images in a list of containers, those in images too: target ID, form and size.
fn images(containers: &Value, found: &mut Vec<(String, String, u64)>) {
    for container in containers.as_array().unwrap() {
        for image in container["images"].as_array().unwrap() {
            if !image["number"].is_null() {
                found.push((
                    image["processor"].as_str().unwrap().to_owned(),
                    image["form"].as_str().unwrap_or_default().to_owned(),
                    image["size"].as_u64().unwrap(),
                ));
            }
            images(&image["containers"], found);
        }
    }
}

fn images_of(folder: &Folder, file: &str) -> Vec<(String, String, u64)> {
    let inspected = inspect(folder, file);
    assert_eq!(inspected["schema"], 1);
    let file = &inspected["files"][0];
    assert_eq!(file["problems"], Value::Array(Vec::new()));
    let mut found = Vec::new();
    images(&file["containers"], &mut found);
    found
}

fn counts(images: impl IntoIterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for name in images {
        *counts.entry(name).or_default() += 1;
    }
    counts
}

const HIP: &str = "
#include <offload/gpu.h>
__global__ void scale(float *x) { x[threadIdx.x] *= 2; }
";

/// Compiles a HIP object with clang of that release, with images for gfx90a:xnack+ and gfx1100.
fn hip_object(folder: &Folder, clang: &Path, name: &str, flags: &[&str]) {
    hip_object_of(folder, clang, HIP, name, flags);
}

fn hip_object_of(folder: &Folder, clang: &Path, source: &str, name: &str, flags: &[&str]) {
    folder.write("k.hip", source);
    let mut command = Command::new(clang);
    command
        .args([
            "-x",
            "hip",
            "-nogpuinc",
            "-nogpulib",
            "-c",
            "k.hip",
            "-o",
            name,
        ])
        .arg(concat!(
            "-I",
            env!("CARGO_MANIFEST_DIR"),
            "/../offload-build/include"
        ))
        .args(["--offload-arch=gfx90a:xnack+", "--offload-arch=gfx1100"])
        .args(flags)
        .current_dir(folder.root());
    run(&mut command);
}

#[test]
fn finds_the_images_of_every_form_of_hip_object() {
    let folder = Folder::new();
    let clangs = [("llvm19", "clang-19"), ("llvm22", "clang-22")];
    for (word, name) in clangs {
        let Some(clang) = tool(word, &[name]) else {
            continue;
        };
        for flags in [
            &["--no-offload-new-driver"][..],
            &["--no-offload-new-driver", "--offload-compress"],
            &["--offload-new-driver", "-fgpu-rdc"],
            &["--offload-new-driver", "-fno-gpu-rdc"],
            &["--no-offload-new-driver", "-fgpu-rdc"],
        ] {
            hip_object(&folder, &clang, "k.o", flags);
            let found = images_of(&folder, "k.o");
            let targets = counts(found.iter().map(|(target, ..)| target.clone()));
            let both = ["gfx1100", "gfx90a:xnack+"].map(|name| (name.to_owned(), 1));
            assert_eq!(targets, BTreeMap::from(both), "{name} {flags:?}: {found:?}");
            // With relocatable device code, clang embeds bitcode.
            let expected = match flags.contains(&"-fgpu-rdc") {
                true => "bitcode",
                false => "code object",
            };
            for (target, form, size) in &found {
                assert_eq!(form, expected, "{name} {flags:?}: {target}");
                assert!(*size > 500, "{name} {flags:?}: {target} {size}");
            }
        }
    }
}

/// LLVM's tool lists offload binaries.
#[test]
fn finds_the_images_that_llvm_objdump_lists() {
    let (Some(clang), Some(objdump)) = (
        tool("llvm22", &["clang-22"]),
        tool("llvm22", &["llvm-objdump-22"]),
    ) else {
        return;
    };
    let folder = Folder::new();
    hip_object(
        &folder,
        &clang,
        "k.o",
        &["--offload-new-driver", "-fgpu-rdc"],
    );
    let listed = run(Command::new(objdump)
        .args(["--offloading", "k.o"])
        .current_dir(folder.root()));
    let expected = listed
        .lines()
        .filter_map(|line| line.strip_prefix("arch            "));
    let expected = counts(expected.map(str::to_owned));
    assert_eq!(expected.values().sum::<usize>(), 2, "{listed}");
    let found = images_of(&folder, "k.o");
    assert_eq!(
        counts(found.into_iter().map(|(target, ..)| target)),
        expected
    );
}

/// NVIDIA's tool lists fat binaries, compressed or not.
#[test]
fn finds_the_images_that_cuobjdump_lists() {
    let Some(nvcc) = program("nvcc").filter(|_| tool("cuda", &["cuobjdump"]).is_some()) else {
        return;
    };
    let cuobjdump = nvcc.with_file_name("cuobjdump");
    let folder = Folder::new();
    let source = "__global__ void scale(float *x) { x[threadIdx.x] *= 2; }\n";
    folder.write("k.cu", source);
    for flags in [&[][..], &["-rdc=true"], &["--no-compress"]] {
        run(Command::new(&nvcc)
            .args([
                "-c",
                "k.cu",
                "-o",
                "k.o",
                "-gencode=arch=compute_80,code=sm_80",
            ])
            .args(["-gencode=arch=compute_90,code=[sm_90,compute_90]"])
            .args(flags)
            .current_dir(folder.root()));
        let list = |option: &str| {
            let listed = run(Command::new(&cuobjdump)
                .args([option, "k.o"])
                .current_dir(folder.root()));
            let words = listed.split(['.', '\n']);
            let words = words.filter(|word| word.starts_with("sm_"));
            words.map(str::to_owned).collect::<Vec<_>>()
        };
        let ptx = list("--list-ptx").into_iter();
        let ptx = ptx.map(|name| name.replace("sm_", "compute_"));
        let expected = counts(list("--list-elf").into_iter().chain(ptx));
        assert_eq!(
            expected.values().sum::<usize>(),
            3,
            "{flags:?}: {expected:?}"
        );
        let found = images_of(&folder, "k.o");
        let forms = counts(found.iter().map(|(_, form, _)| form.clone()));
        assert_eq!(forms["cubin"], 2, "{flags:?}");
        assert_eq!(
            counts(found.into_iter().map(|(target, ..)| target)),
            expected,
            "{flags:?}"
        );
    }
}

#[test]
fn searches_folders_and_reads_standard_input() {
    let folder = Folder::new();
    let write = |name: &str, bytes: &[u8]| folder.write(name, bytes);
    let ptx = b".version 8.0\n.target sm_90\n.address_size 64\n";
    std::fs::create_dir_all(folder.path("tree/sub")).unwrap();
    write("tree/sub/k.ptx", ptx);
    write("tree/plain.txt", b"text");
    write("tree/cut.bin", b"\x10\xff\x10\xad\x01");
    let output = cargo_offload(&folder).arg("tree").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        said,
        "error: tree: is a folder\nhint: pass -r to search it\n"
    );

    // The damaged file does not hide the one after it.
    let output = cargo_offload(&folder)
        .args(["-r", "tree"])
        .output()
        .unwrap();
    let (out, said) = (output.stdout, String::from_utf8(output.stderr).unwrap());
    let out = String::from_utf8(out).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.starts_with("error: tree/cut.bin: offload binary 0: "),
        "{said}"
    );
    assert!(
        out.contains("tree/sub/k.ptx: 1 device image, file size 44 B\n"),
        "{out}"
    );
    assert!(
        out.contains("      0  compute_90  PTX  44 B  offset 0x0\n"),
        "{out}"
    );
    assert!(out.ends_with("1 file without device images\n"), "{out}");

    let mut child = cargo_offload(&folder)
        .args(["--json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), ptx).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let inspected: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(inspected["files"][0]["file"], "-");
    assert_eq!(inspected["totals"][0]["processor"], "compute_90");
}

#[test]
fn uses_color_only_where_it_is_wanted() {
    let folder = Folder::new();
    let ptx = b".version 8.0\n.target sm_90\n";
    folder.write("k.ptx", ptx);
    let escapes = |arguments: &[&str], variable: &str| {
        let mut command = cargo_offload(&folder);
        command.args(arguments).env("CARGO_TERM_COLOR", variable);
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        run(command.arg("k.ptx")).contains('\x1b')
    };
    assert!(!escapes(&[], "auto"));
    assert!(escapes(&[], "always"));
    assert!(escapes(&["--color=always"], "never"));
    assert!(!escapes(&["--color=never"], "always"));
}

const KERNELS: &str = "
#include <offload/gpu.h>
namespace ns {
template <typename T> __global__ void scale(T *x, T factor, int count) {
  __shared__ T part[64];
  part[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < count) x[threadIdx.x] = part[63 - threadIdx.x] * factor;
}
template __global__ void scale<float>(float *, float, int);
}
extern \"C\" __global__ __launch_bounds__(128) void fill(int *x) { x[threadIdx.x] = 1; }
";

/// Returns each kernel of the first file's images: target ID and JSON, in file order.
fn kernels_of(folder: &Folder, file: &str) -> Vec<(String, Value)> {
    let text = run(cargo_offload(folder).args(["--json", "--kernels", file]));
    let document: Value = serde_json::from_str(&text).unwrap();
    let mut found = Vec::new();
    for container in document["files"][0]["containers"].as_array().unwrap() {
        for image in container["images"].as_array().unwrap() {
            let target = image["processor"].as_str().unwrap();
            let kernels = image["kernels"].as_array().into_iter().flatten();
            found.extend(kernels.map(|kernel| (target.to_owned(), kernel.clone())));
        }
    }
    found
}

/// The notes of an image as LLVM prints them: for each kernel its symbol and the values of these keys.
fn noted(readobj: &Path, image: &Path, keys: &[&str]) -> Vec<(String, Vec<u64>)> {
    let notes = run(Command::new(readobj)
        .args(["--notes", "--elf-output-style=GNU"])
        .arg(image));
    let [start, end] = ["amdhsa.kernels:", "\namdhsa.target:"].map(|key| notes.find(key).unwrap());
    // A kernel's keys are indented by four blanks, those of its arguments by more.
    let kernels = notes[start..end].split("\n  - ").skip(1);
    let kernels = kernels.map(|kernel| {
        let lines: BTreeMap<&str, &str> = kernel
            .lines()
            .filter(|line| line.starts_with("    ."))
            .filter_map(|line| line.trim().split_once(':'))
            .map(|(key, value)| (key, value.trim()))
            .collect();
        let values = keys.iter().map(|key| lines[key].parse().unwrap());
        (lines[".name"].to_owned(), values.collect())
    });
    let mut kernels: Vec<_> = kernels.collect();
    kernels.sort();
    kernels
}

#[test]
fn lists_the_kernels_that_llvm_readobj_lists() {
    let (Some(clang), Some(readobj)) = (
        tool("llvm22", &["clang-22"]),
        tool("llvm22", &["llvm-readobj-22"]),
    ) else {
        return;
    };
    let folder = Folder::new();
    let plain = ["--no-offload-new-driver", "-O2"];
    hip_object_of(&folder, &clang, KERNELS, "plain.o", &plain);
    let packed = ["--no-offload-new-driver", "-O2", "--offload-compress"];
    hip_object_of(&folder, &clang, KERNELS, "packed.o", &packed);
    let ours = kernels_of(&folder, "plain.o");
    assert_eq!(ours, kernels_of(&folder, "packed.o"));

    let extract = ["offload", "extract", "plain.o", "--out", "images"];
    let images = run(Command::new(env!("CARGO_BIN_EXE_cargo-offload"))
        .current_dir(folder.root())
        .args(extract));
    let keys = [
        (".vgpr_count", "registers"),
        (".sgpr_count", "scalar_registers"),
        (".group_segment_fixed_size", "shared_size"),
        (".private_segment_fixed_size", "private_size"),
        (".kernarg_segment_size", "arguments_size"),
        (".max_flat_workgroup_size", "max_threads"),
        (".vgpr_spill_count", "spilled_registers"),
        (".wavefront_size", "wavefront"),
    ];
    let [theirs, names] = [keys.map(|(key, _)| key), keys.map(|(_, name)| name)];
    let expected: Vec<_> = images
        .lines()
        .flat_map(|image| noted(&readobj, &folder.path(image), &theirs))
        .collect();
    let found = ours.iter().map(|(_, kernel)| {
        let values = names.map(|name| kernel[name].as_u64().unwrap());
        (
            kernel["symbol"].as_str().unwrap().to_owned(),
            values.to_vec(),
        )
    });
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert_eq!(expected.len(), 4);

    let names: Vec<_> = ours.iter().map(|(_, kernel)| &kernel["name"]).collect();
    let scale = "void ns::scale<float>(float*, float, int)";
    assert_eq!(names, [scale, "fill", scale, "fill"]);
    let text = run(cargo_offload(&folder).args(["--kernels", "plain.o"]));
    assert!(text.contains(&format!("\n            {scale}\n")), "{text}");
    assert!(text.contains(", LDS 256 B, "), "{text}");
    assert!(text.contains(", at most 128 threads, "), "{text}");
    assert!(text.ends_with("\n4 kernels\n"), "{text}");
}

/// The first name is an example of RFC 2603; the second has the hash of rustc's older scheme.
#[test]
fn demangles_kernels_of_rust() {
    let folder = Folder::new();
    let names = ["_RNvC6_123foo3bar", "_ZN4test3foo17h05af221e174051e9E"];
    let entries = names.map(|name| format!(".visible .entry {name}(.param .u64 x) {{ ret; }}\n"));
    let head = ".version 7.0\n.target sm_80\n.address_size 64\n";
    let ptx = format!("{head}{}", entries.concat());
    folder.write("k.ptx", ptx);
    let kernels = kernels_of(&folder, "k.ptx");
    let shown: Vec<_> = kernels.iter().map(|(_, kernel)| &kernel["name"]).collect();
    assert_eq!(shown, ["123foo::bar", "test::foo"]);
    assert_eq!(kernels[0].1["symbol"], names[0]);
}

#[test]
fn shows_other_images_if_the_kernels_of_one_are_damaged() {
    let Some(clang) = tool("llvm22", &["clang-22"]) else {
        return;
    };
    let folder = Folder::new();
    let plain = ["--no-offload-new-driver", "-O2"];
    hip_object_of(&folder, &clang, KERNELS, "plain.o", &plain);
    let path = folder.path("plain.o");
    let mut bytes = std::fs::read(&path).unwrap();
    let key = b"amdhsa.kernels";
    let place = bytes.windows(key.len()).position(|at| at == key).unwrap();
    // No type of MessagePack starts with this byte.
    bytes[place + key.len()] = 0xc1;
    std::fs::write(&path, bytes).unwrap();
    let output = cargo_offload(&folder)
        .args(["--kernels", "plain.o"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let [out, error] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(error.contains("plain.o: image 0 (gfx1100): "), "{error}");
    assert!(
        out.contains("gfx1100")
            && out.ends_with("\n2 kernels, without those of 1 image (code object)\n"),
        "{out}"
    );
}

/// LTO IR lists no kernels, so it need not be unpacked, which may be impossible.
#[test]
fn lists_kernels_beside_lto_ir_of_an_unknown_method() {
    let folder = Folder::new();
    let mut fatbin = include_bytes!("../golden/cuda-13.5/lz4.fatbin").to_vec();
    // The header of the second image is at 0x410: its kind, and the third byte of its flags.
    (fatbin[0x410], fatbin[0x43a]) = (8, 1);
    folder.write("k", &fatbin);
    let output = cargo_offload(&folder).args(["--kernels", "k"]).output();
    let output = output.unwrap();
    let [out, error] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!((output.status.code(), &*error), (Some(0), ""));
    assert!(
        out.ends_with(" kernels, without those of 1 image (LTO IR)\n"),
        "{out}"
    );
}

/// A compressed bundle with PTX and bytes of no form.
fn packed() -> Vec<u8> {
    let entry = |id, image| BundleImage { id, image };
    let images = [
        entry(
            "cuda-nvptx64-nvidia-cuda--sm_80",
            &b".version 7.0\n.target sm_80\n"[..],
        ),
        entry("hip-amdgcn-amd-amdhsa--gfx1100", b"image"),
    ];
    let plain = bundle::to_bytes(&images, NonZeroU64::MIN).unwrap();
    compressed_bundle::compress(&plain, Default::default()).unwrap()
}

#[test]
fn shows_forms_in_compressed_bundles() {
    let folder = Folder::new();
    let bytes = packed();
    folder.write("k.hipfb", &bytes);
    let forms = images_of(&folder, "k.hipfb").into_iter();
    let forms: Vec<String> = forms.map(|(_, form, _)| form).collect();
    assert_eq!(forms, ["PTX", "unknown"]);
    // Damage after the headers.
    let mut damaged = bytes;
    let last = damaged.len() - 1;
    damaged[last] ^= 0xff;
    folder.write("k.hipfb", damaged);
    let output = cargo_offload(&folder).arg("k.hipfb").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn names_sections_of_mach_o() {
    let Some(clang) = tool("llvm22", &["clang"]) else {
        return;
    };
    let folder = Folder::new();
    let write = |name: &str, bytes: &[u8]| folder.write(name, bytes);
    write("k.hipfb", &packed());
    write(
        "k.s",
        b".section __DATA,__hip_fatbin\n.p2align 3\n.incbin \"k.hipfb\"\n",
    );
    run(Command::new(clang)
        .args(["-c", "-target", "arm64-apple-macos13", "k.s", "-o", "k.o"])
        .current_dir(folder.root()));
    let inspected = inspect(&folder, "k.o");
    let section = &inspected["files"][0]["containers"][0]["section"];
    assert_eq!(section, "__DATA,__hip_fatbin");
}

#[test]
fn lists_the_static_kernels_of_nvcc() {
    let Some(nvcc) = tool("cuda", &["nvcc"]) else {
        return;
    };
    let folder = Folder::new();
    let source = "template <int N> static __global__ void scale(int *x) { *x *= N; }\n\
        namespace { __global__ void inner(int *x, long y) { *x += y; } }\n\
        extern \"C\" int launch(int *x) { scale<2><<<1, 1>>>(x); inner<<<1, 1>>>(x, 2); return 0; }\n";
    folder.write("k.cu", source);
    run(folder
        .command(nvcc)
        .args(["-arch=sm_80", "-c", "k.cu", "-o", "k.o"]));
    let text = run(cargo_offload(&folder).args(["--kernels", "k.o"]));
    for kernel in ["scale<2>(int*)", "::inner(int*, long)"] {
        let lines: Vec<&str> = text.lines().collect();
        let places = (0..lines.len()).filter(|line| lines[*line].ends_with(kernel));
        let facts: Vec<&str> = places.map(|line| lines[line + 1].trim()).collect();
        // The cubin and PTX.
        assert_eq!(facts.len(), 2, "{text}");
        assert!(facts.iter().all(|facts| facts.contains("static")), "{text}");
    }
    assert!(text.ends_with("4 kernels\n"), "{text}");
}
