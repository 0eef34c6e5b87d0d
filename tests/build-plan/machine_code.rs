//! Modules of HIP whose sources are compiled to machine code each by itself: what is compiled again, and that the image is
//! what one compile of everything would make.

use crate::support;

use offload_formats::container::code_object::{
    CodeObjectError, join_static_names, joined_notes, share_descriptors,
};
use offload_formats::container::kernels;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use support::comgr::comgr;
use support::package::{Package, text};
use support::run;

const OUT: &str = "target/build/pack-0123/out/offload/kernels";
const MANIFEST: &str = "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\n";
const HIP: &str = "language = \"hip\"\nsources = [\"kernels/*.hip\"]\nflags = [\"-nogpulib\", \"-nogpuinc\"]\n\
    rdc = false\nstd = \"c++17\"\n";
const TARGETS: [&str; 3] = ["gfx90a:xnack-", "gfx90a:xnack+", "gfx1100"];
/// What each source may have: kernels and variables of a header, which are one in the image, and a function, which is not.
const HEADER: &str = "#define __global__ __attribute__((global))\n#define __device__ __attribute__((device))\n\
    template <class T> __global__ void fill(T *x) { *x = 7; }\ntemplate __global__ void fill(int *);\n\
    inline __device__ int bias = 5;\n\
    inline __device__ __attribute__((noinline)) int twice(int x) { return 2 * x + bias; }\n";
const SCALE: &str = "#include \"k.h\"\n__device__ int count;\nstatic __device__ int own = 1;\n\
    __device__ __attribute__((noinline)) int helper(int x) { return 3 * x; }\n\
    extern \"C\" __global__ void scale(int *x) { *x = twice(*x) + helper(x[1]) + count + own++; }\n";
const SHRINK: &str = "#include \"k.h\"\nextern __device__ int count;\nstatic __device__ int own = 2;\n\
    __device__ __attribute__((noinline)) int helper(int x) { return 5 * x; }\n\
    extern \"C\" __global__ void shrink(int *x, int y) { *x = twice(*x) - helper(y) + count + own++; }\n";
/// The kernels of both.
const KERNELS: [&str; 3] = ["_Z4fillIiEvPT_", "scale", "shrink"];

fn package(keys: &str) -> Option<Package> {
    let package = Package::new("")?;
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put("kernels/k.h", HEADER);
    package.put("kernels/scale.hip", SCALE);
    package.put("kernels/shrink.hip", SHRINK);
    let targets = format!("targets = {TARGETS:?}\n");
    package.put("Cargo.toml", &format!("{MANIFEST}{HIP}{targets}{keys}"));
    Some(package)
}

/// The image for each target, and where it is.
fn images(package: &Package) -> Vec<(PathBuf, Vec<u8>)> {
    let folders = fs::read_dir(package.at(OUT)).unwrap().flatten();
    let mut paths: Vec<PathBuf> = folders.map(|entry| entry.path().join("image")).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    let with_bytes = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap();
        (path, bytes)
    };
    paths.into_iter().map(with_bytes).collect()
}

/// The script with the clang of a release, and a linker for it.
fn script(package: &Package, release: &str) -> Option<Command> {
    let clang = support::tool(release, &["clang"])?;
    let mut script = package.script();
    script.env("OFFLOAD_COMPILER", clang).env(
        "PATH",
        format!("/usr/bin:/bin:{}", package.at("llvm/bin").display()),
    );
    Some(script)
}

#[test]
fn makes_images_with_the_kernels_of_all_sources() {
    let Some(readelf) = support::tool("llvm22", &["llvm-readelf"]) else {
        return;
    };
    for release in ["llvm16", "llvm19", "llvm22"] {
        let Some(package) = package("") else { return };
        let Some(mut script) = script(&package, release) else {
            return;
        };
        let told = text(&script.output().unwrap());
        assert!(!told.contains("cargo::warning"), "{told}");
        let images = images(&package);
        assert_eq!(images.len(), TARGETS.len());
        for (path, image) in &images {
            let shown = run(Command::new(&readelf)
                .args(["-h", "--notes", "--symbols"])
                .arg(path));
            assert_eq!(shown.matches("(AMDGPU Metadata)").count(), 1, "{shown}");
            for kernel in KERNELS {
                let row = format!(".symbol:         {kernel}.kd\n");
                assert_eq!(
                    shown.matches(&row).count(),
                    1,
                    "{release} {kernel}\n{shown}"
                );
            }
            // A source's functions are its own, variables are the image's.
            let seen = |name: &str| {
                let rows = shown
                    .lines()
                    .filter(|line| line.ends_with(&format!(" {name}")));
                rows.filter(|line| !line.contains(" LOCAL ")).count()
            };
            assert_eq!(seen("_Z6helperi"), 0, "{shown}");
            assert_eq!((seen("count"), seen("bias")), (2, 2), "{shown}");
            let names: Vec<String> = kernels::kernels(image)
                .unwrap()
                .into_iter()
                .map(|kernel| kernel.name)
                .collect();
            assert_eq!(names, KERNELS);
        }
        // Before that, assembly does not say what is shared.
        let is_object = |path: &String| path.ends_with("kernels-scale.hip.o");
        let objects = package
            .files()
            .iter()
            .filter(|path| is_object(path))
            .count();
        assert_eq!(
            objects,
            if release == "llvm16" { 0 } else { 3 },
            "{release}"
        );
        // It is three times as large as the object, and nothing reads it again.
        let is_assembly = |path: &String| path.ends_with(".s");
        assert!(!package.files().iter().any(is_assembly), "{release}");
        let flags = |index: usize| {
            let path: &PathBuf = &images.get(index).unwrap().0;
            run(Command::new(&readelf).arg("-h").arg(path))
        };
        assert!(flags(1).contains("gfx90a, xnack+"), "{}", flags(1));
        assert!(flags(2).contains("gfx90a, xnack-"), "{}", flags(2));
    }
}

/// Kernels use the variables before the host does, so that clang names each of them twice. Both sources have variables of the same
/// names.
#[test]
fn links_static_variables_that_the_host_uses() {
    let Some(readelf) = support::tool("llvm22", &["llvm-readelf"]) else {
        return;
    };
    let source = |kernel: &str| {
        format!(
            "#include <offload/gpu.h>\nstatic __device__ int own = 1;\nnamespace {{ __constant__ int table[2] = {{1, 2}}; }}\n\
             extern \"C\" __global__ void {kernel}(int *x) {{ *x = own++ + table[*x & 1]; }}\n\
             const void *own_of_{kernel}() {{ return &own; }}\nconst void *table_of_{kernel}() {{ return &table; }}\n"
        )
    };
    for release in ["llvm19", "llvm22"] {
        let Some(package) = package("host = true\n") else {
            return;
        };
        package.put("kernels/scale.hip", &source("scale"));
        package.put("kernels/shrink.hip", &source("shrink"));
        let Some(mut script) = script(&package, release) else {
            return;
        };
        text(&script.output().unwrap());
        for (path, _) in images(&package) {
            let shown = run(Command::new(&readelf).args(["-rW"]).arg(&path));
            // The addresses that kernels use, which the loader fills in.
            let of = |name: &str| -> Vec<String> {
                let rows = shown.lines().filter(|row| row.contains(" R_AMDGPU_ABS64 "));
                let words = rows.flat_map(str::split_whitespace);
                let start = format!("{name}.static.");
                let mut digests: Vec<String> = words
                    .filter_map(|word| word.strip_prefix(&start))
                    .map(str::to_owned)
                    .collect();
                digests.sort();
                digests
            };
            let digests = of("_ZL3own");
            assert_eq!(digests.len(), 2, "{shown}");
            assert_ne!(digests[0], digests[1], "{shown}");
            assert_eq!(of("_ZN12_GLOBAL__N_15tableE"), digests, "{shown}");
        }
    }
}

#[test]
fn says_nothing_of_debug_information() {
    let Some(package) = package("") else { return };
    // Of clang's own headers there is no checksum.
    let flags = "\nflags = [\"-nogpulib\", \"-nogpuinc\", \"-g\"]\n";
    let manifest = fs::read_to_string(package.at("Cargo.toml")).unwrap();
    let line = "\nflags = [\"-nogpulib\", \"-nogpuinc\"]\n";
    package.put("Cargo.toml", &manifest.replace(line, flags));
    package.put(
        "kernels/scale.hip",
        &format!("#line 1 \"other.h\"\nstatic inline __attribute__((device)) int one() {{ return 1; }}\n{SCALE}").replace("own++", "own++ + one()"),
    );
    for release in ["llvm19", "llvm22"] {
        let Some(mut script) = script(&package, release) else {
            return;
        };
        let told = text(&script.output().unwrap());
        assert!(!told.contains("cargo::warning"), "{told}");
    }
}

#[test]
fn compiles_and_links_what_an_edit_changes() {
    let Some(package) = package("") else { return };
    package.builds();
    // The version; two compiles and two starts of the assembler for each target, and a link.
    assert_eq!(package.starts(), 1 + 3 * (2 * 2 + 1));
    let starts = |package: &Package| {
        fs::remove_file(package.at("starts")).unwrap_or_default();
        package.builds();
        package.starts()
    };
    assert_eq!(starts(&package), 0);
    package.put("kernels/shrink.hip", &SHRINK.replace('5', "6"));
    assert_eq!(starts(&package), 3 * (2 + 1));
    // The machine code is the same: no link.
    package.put(
        "kernels/shrink.hip",
        &format!("{}\n", SHRINK.replace('5', "6")),
    );
    assert_eq!(starts(&package), 3 * 2);
    package.put("kernels/k.h", &HEADER.replace('7', "8"));
    assert_eq!(starts(&package), 3 * (2 * 2 + 1));
}

#[test]
fn generates_no_code_in_the_device_link() {
    let Some(package) = package("") else { return };
    let output = package
        .script()
        .env("OFFLOAD_DRY_RUN", "1")
        .output()
        .unwrap();
    let plan =
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    let links: Vec<&str> = plan
        .lines()
        .filter(|line| line.contains("image.part"))
        .collect();
    assert_eq!(links.len(), 3 * 3, "{plan}");
    let clang = package.at("llvm/bin/clang");
    let out = package.at(OUT).join("gfx1100");
    let (clang, out) = (clang.display(), out.display());
    let link = format!(
        "{clang} --no-default-config -o {out}/image.part --target=amdgcn-amd-amdhsa -mcpu=gfx1100 -O3 \
         -Wl,--no-undefined {out}/kernels-scale.hip.o {out}/kernels-shrink.hip.o\n\
         # notes of metadata joined, in this process: {out}/image.part\n"
    );
    assert!(plan.contains(&link), "{link}\n{plan}");
    let assemble = format!(
        "{clang} --no-default-config --target=amdgcn-amd-amdhsa -mcpu=gfx1100 -Wno-unused-command-line-argument \
         -Wa,--no-warn -c {out}/kernels-scale.hip.s -o {out}/kernels-scale.hip.o.part\n\
         # descriptors of shared kernels made weak, static variables named once, in this process: {out}/kernels-scale.hip.o.part\n"
    );
    assert!(plan.contains(&assemble), "{assemble}\n{plan}");
}

#[test]
fn gives_the_same_bytes_in_another_folder() {
    let (Some(one), Some(two)) = (package(""), package("")) else {
        return;
    };
    one.builds();
    // Debug information of the host's build is none of the device's.
    text(
        &two.script()
            .env("NUM_JOBS", "1")
            .env("DEBUG", "true")
            .output()
            .unwrap(),
    );
    let bytes = |package: &Package| fs::read(package.at(OUT).join("images")).unwrap();
    assert!(bytes(&one) == bytes(&two));
}

#[test]
fn says_when_sources_need_each_other_or_have_the_same() {
    let Some(package) = package("") else { return };
    let hint = "hint: with `rdc = false` a source has only the device functions that are in it and in its headers; \
                if another source of the module defines the function, set `rdc = true`, else define or include it [OFF701]";
    for release in ["llvm19", "llvm22"] {
        let fails = |source: &str| {
            package.put("kernels/shrink.hip", source);
            package.fails(&mut script(&package, release).unwrap())
        };
        if script(&package, release).is_none() {
            return;
        }
        let error = fails(
            "#include \"k.h\"\n__device__ int helper(int);\n\
             extern \"C\" __global__ void shrink(int *x) { *x = helper(*x); }\n",
        );
        assert!(
            error.contains("undefined hidden symbol: helper(int)"),
            "{error}"
        );
        assert!(error.contains(hint), "{error}");
        // Alone it has no other source.
        let manifest = fs::read_to_string(package.at("Cargo.toml")).unwrap();
        package.put("Cargo.toml", &manifest.replace("*.hip", "shrink.hip"));
        let error = package.fails(&mut script(&package, release).unwrap());
        let only = "headers: check the name and the arguments of the call, or include the definition [OFF701]";
        assert!(error.contains(only), "{error}");
        assert!(!error.contains("rdc = true"), "{error}");
        package.put("Cargo.toml", &manifest);
        let error =
            fails("#include \"k.h\"\nextern \"C\" __global__ void scale(int *x) { *x = 1; }\n");
        assert!(error.contains("duplicate symbol: scale"), "{error}");
        assert!(!error.contains(hint), "{error}");
        // Each source may have one of its own, although the compiler puts them into groups of one name.
        let own = |value: u32| {
            format!(
                "#include \"k.h\"\nstatic __global__ void own_fill(int *x) {{ *x = {value}; }}\n"
            )
        };
        package.put("kernels/scale.hip", &own(1));
        package.put("kernels/shrink.hip", &own(2));
        text(&script(&package, release).unwrap().output().unwrap());
        let rust = fs::read_to_string(package.at(OUT).join("../../kernels.rs")).unwrap();
        assert_eq!(
            rust.matches("source_name: \"own_fill\"").count(),
            2,
            "{rust}"
        );
        package.put("kernels/scale.hip", SCALE);
    }
}

#[test]
fn links_libraries_and_archives_as_bitcode() {
    let Some(package) = package("artifact = [\"device-archive\"]\n") else {
        return;
    };
    package.builds();
    let files = package.files();
    let of = |extension: &str| {
        let end = format!("kernels-scale.hip.{extension}");
        files.iter().filter(|path| path.ends_with(&end)).count()
    };
    assert_eq!((of("bc"), of("o")), (3, 0), "{files:?}");
    assert_eq!(images(&package).len(), 3);
}

/// Two objects of clang 22, with formats of `printf` in both, and what `ld.lld` links of them.
fn linked(package: &Package) -> Option<PathBuf> {
    let clang = support::tool("llvm22", &["clang"])?;
    let lld = support::tool("llvm22", &["ld.lld"])?;
    for (name, kernel) in [
        ("one", "printf(\"one %d\\n\", *x)"),
        ("two", "printf(\"two %d\\n\", *x)"),
    ] {
        let source = format!(
            "{HEADER}extern \"C\" __device__ int printf(const char *, ...);\n\
             extern \"C\" __device__ __attribute__((used)) inline char *__printf_alloc(unsigned n) {{ return (char *)0; }}\n\
             extern \"C\" __global__ void {name}(int *x) {{ {kernel}; }}\n"
        );
        package.put(&format!("{name}.hip"), &source);
        let mut command = Command::new(&clang);
        command.args([
            "-x",
            "hip",
            "--offload-device-only",
            "--offload-arch=gfx90a",
            "-S",
            "-O1",
            "-std=c++17",
        ]);
        command.args(["-nogpulib", "-nogpuinc", "-mprintf-kind=buffered"]);
        command
            .arg(format!("-cuid={name}"))
            .arg(package.at(&format!("{name}.hip")));
        run(command.arg("-o").arg(package.at(&format!("{name}.s"))));
        let mut command = Command::new(&clang);
        command.args(["--target=amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-c"]);
        command.arg(package.at(&format!("{name}.s")));
        let object = package.at(&format!("{name}.o"));
        run(command.arg("-o").arg(&object));
        let mut bytes = fs::read(&object).unwrap();
        share_descriptors(&mut bytes).unwrap();
        fs::write(&object, bytes).unwrap();
    }
    let mut command = Command::new(lld);
    command
        .args(["-shared", "--no-undefined"])
        .args([package.at("one.o"), package.at("two.o")]);
    run(command.arg("-o").arg(package.at("linked")));
    Some(package.at("linked"))
}

/// Joins the notes of an image in memory.
fn join_notes(image: &mut [u8]) -> Result<(), CodeObjectError> {
    for (offset, bytes) in joined_notes(&*image)? {
        let start = usize::try_from(offset).unwrap();
        image[start..start + bytes.len()].copy_from_slice(&bytes);
    }
    Ok(())
}

#[test]
fn joins_notes_that_amds_runtime_would_drop() {
    let Some(package) = Package::new("") else {
        return;
    };
    let Some(path) = linked(&package) else { return };
    let mut image = fs::read(&path).unwrap();
    if let Some(told) = comgr(&package, &path) {
        assert!(!told.contains("two"), "{told}");
    }
    join_notes(&mut image).unwrap();
    let once = image.clone();
    join_notes(&mut image).unwrap();
    assert!(once == image);
    fs::write(&path, &image).unwrap();
    if let Some(readelf) = support::tool("llvm22", &["llvm-readelf"]) {
        let shown = run(Command::new(readelf).arg("--notes").arg(&path));
        assert_eq!(shown.matches("(AMDGPU Metadata)").count(), 1, "{shown}");
        assert!(
            shown.contains("amdhsa.target:   amdgcn-amd-amdhsa--gfx90a\n"),
            "{shown}"
        );
        assert!(shown.contains("amdhsa.version:\n  - 1\n  - 2\n"), "{shown}");
    }
    if let Some(told) = comgr(&package, &path) {
        let lines: Vec<&str> = told.lines().filter(|line| !line.is_empty()).collect();
        assert!(
            lines.starts_with(&["_Z4fillIiEvPT_.kd", "one.kd", "two.kd"]),
            "{told}"
        );
        let formats = lines.iter().filter(|line| line.starts_with("0:0:")).count();
        assert_eq!((formats, lines.len()), (2, 5), "{told}");
    }
}

#[test]
fn survives_images_that_are_cut_or_changed() {
    let Some(package) = Package::new("") else {
        return;
    };
    let Some(path) = linked(&package) else { return };
    for file in [path, package.at("one.o")] {
        let bytes = fs::read(file).unwrap();
        for len in 0..bytes.len() {
            let mut cut = bytes[..len].to_vec();
            let before = cut.clone();
            if join_notes(&mut cut).is_err() {
                assert!(cut == before, "{len}");
            }
            let _ = share_descriptors(&mut cut);
            let _ = join_static_names(&mut cut);
        }
        // The headers, and the notes with what is around them.
        let at = bytes
            .windows(6)
            .position(|bytes| bytes == b"AMDGPU")
            .unwrap();
        let headers = bytes.len() - 64 * 32..bytes.len();
        for place in (0..0x300).chain(at - 16..at + 0x300).chain(headers) {
            for value in [0, 1, 0x7f, 0x80, 0xff, bytes[place] ^ 4] {
                let mut changed = bytes.clone();
                changed[place] = value;
                let _ = join_notes(&mut changed);
                let _ = share_descriptors(&mut changed);
                let _ = join_static_names(&mut changed);
            }
        }
    }
}

#[test]
fn refuses_notes_that_do_not_agree() {
    let Some(package) = Package::new("") else {
        return;
    };
    let Some(path) = linked(&package) else { return };
    let bytes = fs::read(path).unwrap();
    let mut changed = bytes.clone();
    let target = b"amdgcn-amd-amdhsa--gfx90a";
    let at = bytes
        .windows(target.len())
        .rposition(|text| text == target)
        .unwrap();
    changed[at + target.len() - 1] = b'8';
    assert_eq!(
        join_notes(&mut changed).unwrap_err().to_string(),
        "notes NT_AMDGPU_METADATA have different values of `amdhsa.target`: their objects are for different targets"
    );
    let mut changed = bytes.clone();
    let at = bytes
        .windows(7)
        .position(|text| text == b".symbol")
        .unwrap();
    changed[at] = b'_';
    let error = join_notes(&mut changed).unwrap_err().to_string();
    assert!(error.ends_with(" has no `.symbol`"), "{error}");
}
