//! What is made again when something changes, and nothing else: counted by a compiler that writes down its starts.

use crate::support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use support::package::{OUT, Package, text};

pub(crate) const MANIFEST: &str =
    "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\n";
const BARE: &str = "flags = [\"-nogpulib\", \"-nogpuinc\"]\n";
/// Each pass includes a header of its own, and one target another.
const HEADER: &str = "#define __global__ __attribute__((global))\n#define __device__ __attribute__((device))\n\
    #if defined(__HIP_DEVICE_COMPILE__) || defined(__CUDA_ARCH__) || defined(__AMDGCN__) || defined(__NVPTX__)\n\
    #include \"device.h\"\n\
    #if defined(__gfx1100__) || __CUDA_ARCH__ == 900\n#include \"one.h\"\n#endif\n\
    #else\n#include \"host.h\"\n#endif\n#ifndef ONE\n#define ONE 1\n#endif\n#ifndef TWO\n#define TWO 2\n#endif\n";
const KERNEL: &str = "#include \"k.h\"\n__device__ int twice(int);\n\
    extern \"C\" __global__ void scale(int *x) { *x = twice(*x) + ONE; }\n";
const HELPER: &str = "#include \"k.h\"\n__device__ int twice(int x) { return TWO * x; }\n";
const OPENMP: &str = "#include \"k.h\"\nint run(int x) {\n#pragma omp target map(tofrom : x)\n  x += ONE;\n  return x;\n}\n";

/// A language, its keys and the targets in them; the second reads `one.h`.
pub(crate) struct Case {
    keys: &'static str,
    pub(crate) targets: [&'static str; 2],
    /// Sources, each compiled for each target.
    sources: usize,
    /// Programs named `clang` that a device link starts.
    links: usize,
}

pub(crate) const HIP: Case = Case {
    keys: "language = \"hip\"\nsources = [\"kernels/*.hip\"]\ntargets = [\"gfx90a\", \"gfx1100\"]\n",
    targets: ["gfx90a", "gfx1100"],
    sources: 2,
    links: 1,
};
pub(crate) const CUDA: Case = Case {
    keys: "language = \"cuda\"\nsources = [\"kernels/*.cu\"]\ntargets = [\"sm_80\", \"sm_90\"]\n",
    targets: ["sm_80", "sm_90"],
    sources: 2,
    links: 1,
};

impl Case {
    pub(crate) fn package(&self) -> Option<Package> {
        let package = Package::new("")?;
        if self.targets[0].starts_with("sm_") {
            support::tool("cuda", &["ptxas"])?;
        }
        package.put("kernels/k.h", HEADER);
        for name in ["device.h", "one.h", "host.h"] {
            package.put(&format!("kernels/{name}"), "");
        }
        for extension in ["hip", "cu"] {
            package.put(&format!("kernels/k.{extension}"), KERNEL);
            package.put(&format!("kernels/helper.{extension}"), HELPER);
        }
        package.put("kernels/k.c", OPENMP);
        self.declare(&package, "");
        Some(package)
    }

    pub(crate) fn declare(&self, package: &Package, more: &str) {
        package.put(
            "Cargo.toml",
            &format!("{MANIFEST}{}{BARE}{more}", self.keys),
        );
    }

    /// Compiles and device links of these targets.
    pub(crate) fn all(&self, targets: &[&str]) -> (usize, BTreeSet<String>) {
        let count = targets.len() * (self.sources + self.links);
        (count, targets.iter().map(ToString::to_string).collect())
    }
}

/// The build script with NVIDIA's tools, where there are any.
pub(crate) fn script(package: &Package) -> Command {
    let mut script = package.script();
    if let Some(ptxas) = support::tool("cuda", &["ptxas"]) {
        script.env("CUDA_PATH", ptxas.ancestors().nth(2).unwrap());
    }
    script
}

/// Builds, and says how often a compiler was started to make something, and for which targets.
pub(crate) fn made(package: &Package, script: &mut Command) -> (usize, BTreeSet<String>) {
    let _ = fs::remove_file(package.at("starts"));
    text(&script.output().unwrap());
    let starts = fs::read_to_string(package.at("starts")).unwrap_or_default();
    let lines: Vec<&str> = starts.lines().filter(|line| *line != "--version").collect();
    let options = ["--offload-arch=", "-mcpu=", "-march="];
    let words = lines.iter().flat_map(|line| line.split(' '));
    let targets =
        words.filter_map(|word| options.iter().find_map(|option| word.strip_prefix(option)));
    (lines.len(), targets.map(str::to_owned).collect())
}

pub(crate) fn nothing() -> (usize, BTreeSet<String>) {
    (0, BTreeSet::new())
}

pub(crate) fn image(package: &Package, target: &str) -> Vec<u8> {
    fs::read(package.image(target)).unwrap()
}

#[test]
fn makes_the_images_again_whose_pass_reads_a_header() {
    for case in support::share([HIP, CUDA], 0, 2) {
        let Some(package) = case.package() else {
            return;
        };
        let [first, second] = case.targets;
        let mut script = script(&package);
        let everything = made(&package, &mut script);
        assert_eq!(everything, case.all(&case.targets));
        assert_eq!(made(&package, &mut script), nothing());
        let images = || [first, second].map(|target| image(&package, target));
        let before = images();

        package.put("kernels/one.h", "#define ONE 3\n");
        assert_eq!(made(&package, &mut script), case.all(&[second]));
        let after = images();
        assert!(after[0] == before[0] && after[1] != before[1], "{second}");
        package.put("kernels/device.h", "#define TWO 4\n");
        assert_eq!(made(&package, &mut script), case.all(&case.targets));
        let last = images();
        assert!(last[0] != after[0] && last[1] != after[1]);
        // No pass over these sources for the host is made.
        package.put("kernels/host.h", "#define ONE 5\n");
        assert_eq!(made(&package, &mut script), nothing());
        assert!(images() == last);
    }
}

#[test]
fn makes_an_openmp_image_again_for_what_only_the_device_includes() {
    let keys = "sources = [\"kernels/k.c\"]\ntargets = [\"x86_64-pc-linux-gnu\", \"gfx90a\"]\n";
    let (Some(package), Some(openmp)) = (HIP.package(), Package::new("")) else {
        return;
    };
    drop(openmp);
    package.put(
        "Cargo.toml",
        &format!("{MANIFEST}language = \"openmp\"\n{keys}"),
    );
    let mut script = script(&package);
    made(&package, &mut script);
    assert_eq!(made(&package, &mut script), nothing());
    package.put("kernels/device.h", "#define ONE 3\n");
    // A compile and a device link; then the object that registers all is joined again.
    assert_eq!(
        made(&package, &mut script),
        (3, ["gfx90a".to_owned()].into())
    );
    package.put("kernels/host.h", "#define ONE 4\n");
    // The host's object and the image for its processor, and the latter's link.
    assert_eq!(made(&package, &mut script), (4, BTreeSet::new()));
}

#[test]
fn makes_again_what_depends_on_a_setting() {
    for case in support::share([HIP, CUDA], 1, 2) {
        let Some(package) = case.package() else {
            return;
        };
        let [first, second] = case.targets;
        let mut plain = script(&package);
        made(&package, &mut plain);
        let all = case.all(&case.targets);
        // A definition and a flag for one target, a flag for all.
        let of_one = format!("[package.metadata.offload.target.{second}]\n");
        case.declare(&package, &format!("{of_one}define = {{ ONE = 7 }}\n"));
        assert_eq!(made(&package, &mut plain), case.all(&[second]));
        case.declare(
            &package,
            &format!("{of_one}define = {{ ONE = 7 }}\nflags = [\"-DTWO=9\"]\n"),
        );
        assert_eq!(made(&package, &mut plain), case.all(&[second]));
        case.declare(&package, "define = { ONE = 8 }\n");
        assert_eq!(made(&package, &mut plain), all);
        let flags = "-nogpulib;-nogpuinc;-ffast-math";
        let fast = made(&package, script(&package).env("OFFLOAD_FLAGS", flags));
        // Device links are started where bitcode differs, which is clang's to say.
        assert!(fast.0 >= 4 && fast.1 == all.1, "{fast:?}");
        assert_eq!(
            made(&package, script(&package).env("OFFLOAD_FLAGS", flags)),
            nothing()
        );
        made(&package, &mut plain);
        // What the compiler reads besides.
        let nowhere = package.at("nowhere").display().to_string();
        for (name, value) in [("CPATH", &*nowhere), ("SOURCE_DATE_EPOCH", "86400")] {
            let compiles = made(&package, script(&package).env(name, value)).0;
            assert!(compiles >= 4, "{name}: {compiles}");
            made(&package, &mut plain);
        }
        // Targets that go and come: what was made of them is still good.
        for targets in [first, second] {
            let mut fewer = script(&package);
            assert_eq!(
                made(&package, fewer.env("OFFLOAD_TARGETS", targets)),
                nothing()
            );
        }
        let more = if first.starts_with("gfx") {
            "gfx942"
        } else {
            "sm_89"
        };
        let mut script = script(&package);
        script.env("OFFLOAD_TARGETS", format!("{first};{more};{second}"));
        assert_eq!(made(&package, &mut script), case.all(&[more]));
        // The compiler.
        let shim = fs::read_to_string(package.at("llvm/bin/clang")).unwrap();
        package.put("llvm/bin/clang", &format!("{shim}\n"));
        assert_eq!(made(&package, &mut plain), all);
        assert_eq!(made(&package, &mut plain), nothing());
    }
}

#[test]
fn reads_headers_that_the_build_script_makes() {
    for case in support::share([HIP, CUDA], 0, 2) {
        let Some(package) = case.package() else {
            return;
        };
        let header = format!("{OUT}/made/made.h");
        package.put(&header, "#define ONE 3\n");
        package.put("kernels/device.h", "#include \"made.h\"\n");
        case.declare(&package, &format!("include = [\"{OUT}/made\"]\n"));
        let mut script = script(&package);
        made(&package, &mut script);
        assert_eq!(made(&package, &mut script), nothing());
        let before = image(&package, case.targets[0]);
        package.put(&header, "#define ONE 4\n");
        // One of two sources uses it: the bitcode of the other is the same.
        assert_eq!(made(&package, &mut script), case.all(&case.targets));
        assert!(image(&package, case.targets[0]) != before);
    }
}

/// The vendor's library and a file of options are in no dependency file.
#[test]
fn makes_an_image_again_for_what_the_compiler_reads_besides_sources() {
    let clang = support::tool("llvm22", &["clang-22", "clang"]);
    let ptxas = support::tool("cuda", &["ptxas"]);
    let (Some(clang), Some(ptxas), Some(package)) = (clang, ptxas, Package::new("")) else {
        return;
    };
    // NVIDIA's toolkit with a library of our own.
    for entry in fs::read_dir(ptxas.ancestors().nth(2).unwrap()).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() != "nvvm" {
            let link = package.folder.root().join("cuda").join(entry.file_name());
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(entry.path(), link).unwrap();
        }
    }
    if !support::has_cuda_headers(Path::new(&package.at("cuda"))) {
        return;
    }
    package.put("cuda/nvvm/libdevice/made", "");
    let library = |value: &str| {
        package.put(
            "library.c",
            &format!("float __nv_erff(float x) {{ return {value}; }}\n"),
        );
        let mut command = Command::new(&clang);
        command.args([
            "--target=nvptx64-nvidia-cuda",
            "-nogpulib",
            "-O1",
            "-emit-llvm",
            "-c",
            "library.c",
            "-o",
        ]);
        support::run(
            command
                .arg("cuda/nvvm/libdevice/libdevice.10.bc")
                .current_dir(package.folder.root()),
        );
    };
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put(
        "kernels/k.cu",
        "#include <cuda_runtime.h>\nextern \"C\" __global__ void k(float *x) { *x = erff(*x) + ONE; }\n",
    );
    let keys = "language = \"cuda\"\nsources = [\"kernels/*.cu\"]\ntargets = [\"sm_80\"]\nflags = [\"@options\"]\n";
    package.put("Cargo.toml", &format!("{MANIFEST}{keys}"));
    let mut made = Vec::new();
    for (value, options) in [
        ("1", "-DONE=1"),
        ("2", "-DONE=1"),
        ("2", "-DONE=2"),
        ("1", "-DONE=1"),
    ] {
        library(value);
        // A file of options may name another one.
        package.put("options", "@inner");
        package.put("inner", options);
        let mut script = package.script();
        let script = script
            .env("CUDA_PATH", package.at("cuda"))
            .env("OFFLOAD_COMPILER", &clang);
        let told = text(&script.output().unwrap());
        for watched in ["cuda/nvvm/libdevice/libdevice.10.bc", "options", "inner"] {
            let line = format!("rerun-if-changed={}\n", package.at(watched).display());
            assert!(told.contains(&line), "{line}{told}");
        }
        made.push(image(&package, "sm_80"));
    }
    assert!(made[0] != made[1] && made[1] != made[2] && made[0] == made[3]);
}

#[test]
fn makes_again_what_names_another_file() {
    let Some(package) = HIP.package() else {
        return;
    };
    let keys = "language = \"openmp\"\nsources = [\"kernels/k.c\"]\n";
    package.put("Cargo.toml", &format!("{MANIFEST}{keys}"));
    package.put("kernels/device.h", "");
    let kernel =
        "static int more(int x) {\n#pragma omp target map(tofrom : x)\n  x += 2;\n  return x;\n}\n";
    package.put("kernels/more.h", kernel);
    let source = "#include \"more.h\"\nint both(int x) { return more(x); }\n";
    package.put("kernels/k.c", &format!("{OPENMP}{source}"));
    let build = |targets: &str| made(&package, script(&package).env("OFFLOAD_TARGETS", targets));
    build("x86_64-pc-linux-gnu");
    for name in ["kernels/k.c", "kernels/more.h"] {
        package.replace(name);
        // The host's object must name its kernels as the new image does.
        let (_, targets) = build("x86_64-pc-linux-gnu;gfx90a");
        assert!(targets.contains("gfx90a"), "{name}");
        assert_eq!(build("x86_64-pc-linux-gnu;gfx90a"), nothing());
        fs::remove_dir_all(package.at(OUT).join("offload/kernels/gfx90a")).unwrap();
        build("x86_64-pc-linux-gnu");
    }
    // No kernel is named by this one.
    package.replace("kernels/k.h");
    assert_eq!(build("x86_64-pc-linux-gnu"), nothing());
}

#[test]
fn takes_changed_images_and_leaves_others_alone() {
    let Some(package) = HIP.package() else {
        return;
    };
    made(&package, &mut script(&package));
    for target in HIP.targets {
        fs::write(
            package.at(&format!("{target}.hsaco")),
            image(&package, target),
        )
        .unwrap();
    }
    let keys =
        "language = \"prebuilt\"\nsources = [\"*.hsaco\"]\ntargets = [\"gfx90a\", \"gfx1100\"]\n";
    package.put("Cargo.toml", &format!("{MANIFEST}{keys}"));
    let mut prebuilt = script(&package);
    prebuilt.env("OFFLOAD_COMPILER", "").env("PATH", "/nowhere");
    assert_eq!(made(&package, &mut prebuilt), nothing());
    let container = package.at(OUT).join("offload/kernels/images");
    let seen = || {
        (
            fs::metadata(&container).unwrap().modified().unwrap(),
            fs::read(&container).unwrap(),
        )
    };
    let before = seen();
    assert_eq!(made(&package, &mut prebuilt), nothing());
    assert!(seen() == before, "written again");
    // Another image for one of them.
    HIP.declare(&package, "define = { ONE = 9 }\n");
    let first = image(&package, "gfx90a");
    assert!(made(&package, &mut script(&package)).0 > 0);
    assert!(image(&package, "gfx90a") != first);
    fs::write(package.at("gfx90a.hsaco"), image(&package, "gfx90a")).unwrap();
    package.put("Cargo.toml", &format!("{MANIFEST}{keys}"));
    made(&package, &mut prebuilt);
    assert!(image(&package, "gfx90a") != first && seen().1 != before.1);
    // A source without an image for a target of today may get one.
    prebuilt.env("OFFLOAD_TARGETS", "gfx90a");
    let told = text(&prebuilt.output().unwrap());
    for target in HIP.targets {
        let source = package.at(&format!("{target}.hsaco"));
        let line = format!("cargo::rerun-if-changed={}\n", source.display());
        assert!(told.contains(&line), "{line}{told}");
    }
}

#[test]
fn makes_again_what_another_build_script_makes() {
    let Some(package) = HIP.package() else {
        return;
    };
    // A copy, as Cargo makes one when `offload-build` has changed.
    let before = script(&package);
    let build = |name: &str| {
        let program = package.at(name);
        fs::copy(before.get_program(), &program).unwrap();
        let mut script = Command::new(program);
        script.env_clear().current_dir(package.folder.root());
        let variables = before.get_envs();
        script.envs(variables.filter_map(|(name, value)| Some((name, value?))));
        text(&script.output().unwrap());
    };
    // What this process packs, and the key beside it.
    let file = package.at("target/build/pack-0123/out/kernels.rs");
    let keys = || {
        let keys = package.files().into_iter();
        let keys = keys.filter(|file| file.ends_with(".key"));
        keys.map(|file| fs::read_to_string(file).unwrap())
            .collect::<Vec<_>>()
    };
    build("one");
    assert!(file.is_file());
    let of_one = keys();
    build("two");
    let of_two = keys();
    assert_eq!(of_one.len(), of_two.len());
    // Those of compiles and links stay: an `offload-build` of another version makes these again.
    let changed = of_one.iter().zip(&of_two).filter(|(one, two)| one != two);
    assert_eq!(changed.count(), 1);
}

#[test]
fn links_ir_again_for_what_changed() {
    let Some(package) = HIP.package() else {
        return;
    };
    let Some(clang) = support::tool("llvm19", &["clang"]) else {
        return;
    };
    let compile = |name: &str, more: &str| {
        let mut command = Command::new(&clang);
        command
            .current_dir(package.folder.root())
            .args([
                "-x",
                "hip",
                "--offload-device-only",
                "--offload-arch=gfx90a",
                "-fgpu-rdc",
                "-S",
            ])
            .args([
                "-nogpulib",
                "-nogpuinc",
                "-emit-llvm",
                "--no-gpu-bundle-output",
                &format!("-cuid={name}"),
                more,
            ])
            .args([
                format!("kernels/{name}.hip"),
                "-o".to_owned(),
                format!("ir/{name}.ll"),
            ]);
        support::run(&mut command);
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    fs::create_dir(package.at("ir")).unwrap();
    for name in ["k", "helper"] {
        compile(name, "-DONE=1");
    }
    let keys = "language = \"bitcode\"\nsources = [\"ir/*.ll\"]\ntargets = [\"gfx90a\"]\n";
    package.put("Cargo.toml", &format!("{MANIFEST}{keys}"));
    let mut script = script(&package);
    // Two sources and a device link.
    assert_eq!(made(&package, &mut script).0, 3);
    assert_eq!(made(&package, &mut script), nothing());
    compile("k", "-DONE=6");
    assert_eq!(made(&package, &mut script).0, 2);
    let mut level = self::script(&package);
    // Of IR only the device link has a level.
    assert_eq!(made(&package, level.env("OFFLOAD_OPT_LEVEL", "2")).0, 1);
    assert_eq!(made(&package, &mut level), nothing());
    let shim = package.at("llvm/bin/clang");
    let text = fs::read_to_string(&shim).unwrap();
    package.put("llvm/bin/clang", &format!("{text}\n"));
    assert!(fs::metadata(&shim).unwrap().permissions().mode() & 0o111 != 0);
    assert_eq!(made(&package, &mut level).0, 3);
}

/// A module whose host code launches its kernels, with a header that takes long to read.
fn launching(name: &str) -> Option<Package> {
    let package = Package::new("")?;
    let keys = format!(
        "language = \"hip\"\nhost = true\nsources = [\"kernels/*.hip\"]\ntargets = [\"gfx90a\"]\n{name}"
    );
    package.put("Cargo.toml", &format!("{MANIFEST}{keys}"));
    for number in 0..2 {
        let source = format!(
            "#include <offload/gpu.h>\n#include \"k.h\"\n\
             extern \"C\" __global__ void scale{number}(int *x) {{ *x = *x * ONE + {number}; }}\n\
             extern \"C\" void run{number}(int *x) {{ scale{number}<<<1, 1>>>(x); }}\n"
        );
        package.put(&format!("kernels/{number}.hip"), &source);
    }
    package.put("kernels/k.h", &header(1));
    Some(package)
}

const HEADER_SIZE: usize = 1 << 20;

fn header(value: u8) -> String {
    let text = format!("#define ONE {value}\n//");
    let rest = "x".repeat(HEADER_SIZE - text.len());
    text + &rest
}

/// Everything that a build wrote but for keys, by name.
fn results(package: &Package) -> Vec<(String, Vec<u8>)> {
    let files = package.files().into_iter();
    let kept = |path: &String| {
        ![".key", ".txt", ".d"].iter().any(|end| path.ends_with(end)) && !path.contains("/answers")
    };
    let files = files.filter(kept);
    files
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect()
}

#[test]
fn reads_no_file_again_that_has_not_changed() {
    let Some(package) = launching("") else {
        return;
    };
    let read = || {
        let script = script(&package);
        let mut counted = Command::new("/bin/sh");
        let count = "\"$0\" > out && while read -r name count; do \
            [ $name = rchar: ] && echo $count; done < /proc/$$/io; true";
        counted
            .current_dir(package.folder.root())
            .args(["-c", count])
            .arg(script.get_program())
            .env_clear();
        let variables = script.get_envs();
        counted.envs(variables.filter_map(|(name, value)| Some((name, value?))));
        let bytes = text(&counted.output().unwrap());
        bytes.trim().parse::<usize>().unwrap()
    };
    assert!(read() > HEADER_SIZE);
    let first = results(&package);
    // Files that were new then are read once more.
    read();
    let bytes = read();
    assert!(bytes < HEADER_SIZE, "{bytes}");
    assert!(results(&package) == first);
}

#[test]
fn gives_the_bytes_of_a_build_from_nothing_after_any_change() {
    let Some(package) = launching("") else {
        return;
    };
    let build = || made(&package, &mut script(&package)).0;
    let path = package.at("kernels/k.h");
    let good = [1, 2].map(|value| {
        let _ = fs::remove_dir_all(package.at("target"));
        package.put("kernels/k.h", &header(value));
        assert!(build() > 0);
        assert_eq!(build(), 0);
        results(&package)
    });
    assert!(good[0] != good[1]);
    // The same size and time of the last write, in place and by another file.
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    let write = |name: &str, value| {
        package.put(name, &header(value));
        let file = fs::File::options().append(true).open(package.at(name));
        file.unwrap().set_modified(before).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(60));
    };
    write("kernels/k.h", 1);
    assert!(build() > 0 && results(&package) == good[0]);
    write("other", 2);
    fs::rename(package.at("other"), &path).unwrap();
    assert!(build() > 0 && results(&package) == good[1]);
    assert_eq!(build(), 0);
    // Outputs that are gone or others, alone, and together with another header.
    for value in support::share([2, 1], 1, 2) {
        for (name, _) in &good[0] {
            write("kernels/k.h", value);
            fs::remove_file(name).unwrap();
            build();
            assert!(results(&package) == good[usize::from(value) - 1], "{name}");
        }
    }
    for (name, bytes) in &good[0] {
        if Path::new(name).with_extension("o") != Path::new(name) {
            continue;
        }
        let file = fs::metadata(name).unwrap().modified().unwrap();
        fs::write(name, vec![0; bytes.len()]).unwrap();
        let written = fs::File::options().append(true).open(name).unwrap();
        written.set_modified(file).unwrap();
        build();
        assert!(results(&package) == good[0], "{name}");
    }
    assert_eq!(build(), 0);
    // Host code that has the images of its source.
    package.put("kernels/k.h", "");
    let manifest = fs::read_to_string(package.at("Cargo.toml")).unwrap();
    let [first, second] = [3, 4].map(|value| {
        let table = "[package.metadata.offload.target.gfx90a]\n";
        let own = format!("{table}define = {{ ONE = {value} }}\n");
        let keys = format!("images = \"source\"\ndefine = {{ ONE = 1 }}\n{own}");
        package.put("Cargo.toml", &format!("{manifest}{keys}"));
        build();
        fs::read(package.at(OUT).join("offload/kernels/module.o")).unwrap()
    });
    assert!(first != second);
}

#[test]
fn builds_beside_each_other() {
    let Some(package) = launching("") else {
        return;
    };
    let folders = [
        "target/one/build/pack-0123/out",
        "target/two/build/pack-0123/out",
    ];
    let scripts = || {
        folders.map(|folder| {
            let mut script = script(&package);
            script.env("OUT_DIR", package.at(folder));
            script
        })
    };
    let read = |name: &str| folders.map(|folder| fs::read(package.at(folder).join(name)).unwrap());
    for value in [1, 2, 1] {
        package.put("kernels/k.h", &header(value));
        let started = scripts().map(|mut script| {
            let script = script.stdout(std::process::Stdio::null());
            script.spawn().unwrap()
        });
        for mut script in started {
            assert!(script.wait().unwrap().success());
        }
        for name in ["offload/kernels/gfx90a/image", "kernels.rs"] {
            let [one, two] = read(name);
            assert!(one == two, "{name}");
        }
        for mut script in scripts() {
            assert_eq!(made(&package, &mut script), nothing());
        }
    }
}

/// Package managers and images of systems may give all files one time.
#[test]
fn makes_everything_again_for_another_small_compiler_of_the_same_time() {
    let Some(package) = HIP.package() else {
        return;
    };
    let mut build = package.script();
    let everything = made(&package, &mut build);
    let clang = package.at("llvm/bin/clang");
    let time = fs::metadata(&clang).unwrap().modified().unwrap();
    let shim = fs::read_to_string(&clang).unwrap();
    package.put("llvm/bin/clang", &shim.replace("echo \"$@\"", "echo  $@ "));
    let file = fs::File::options().append(true).open(&clang).unwrap();
    file.set_modified(time).unwrap();
    drop(file);
    assert_eq!(made(&package, &mut build), everything);
}
