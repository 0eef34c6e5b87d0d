//! CUDA modules that NVIDIA's own compiler compiles: their images beside those that it makes by itself.

use crate::support;

use offload_formats::container::kernels::kernels;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::package::{OUT, Package, text};

const KEYS: &str = "language = \"cuda\"\ncompiler = \"nvcc\"\nsources = [\"kernels/*.cu\"]\n";
const TARGETS: &str = "targets = [\"sm_90\", \"sm_80\"]\n";
const KERNEL: &str = "#include \"k.h\"\n\
    extern \"C\" __global__ void scale(int *x, double by) { *x = twice(*x) + (int)(by * FACTOR); }\n\
    __global__ void __launch_bounds__(128) fill(float *x) { x[threadIdx.x] *= blockDim.x; }\n";
const HELPER: &str = "#include \"k.h\"\n__device__ int twice(int x) { return TIMES * x; }\n";
const HEADER: &str = "__device__ int twice(int x);\n#ifdef __CUDA_ARCH__\n#include \"device.h\"\n#else\n\
    #define TIMES 0\n#define FACTOR 0\n#endif\n";

/// A toolkit whose nvcc counts how often it is started, at `root` in the package.
fn toolkit(package: &Package, root: &str) -> Option<PathBuf> {
    let real = support::tool("cuda", &["nvcc"])?;
    let bin = real.parent().unwrap();
    fs::create_dir_all(package.at(root).join("bin")).unwrap();
    for name in ["nvlink", "ptxas", "fatbinary"] {
        symlink(bin.join(name), package.at(root).join("bin").join(name)).unwrap();
    }
    let tree = bin.parent().unwrap();
    symlink(tree.join("lib64"), package.at(root).join("lib64")).unwrap();
    fs::create_dir_all(package.at(root).join("nvvm/bin")).unwrap();
    let cicc = package.at(root).join("nvvm/bin/cicc");
    symlink(tree.join("nvvm/bin/cicc"), cicc).unwrap();
    let (log, shim) = (package.at("starts"), format!("{root}/bin/nvcc"));
    let (log, real) = (log.display(), real.display());
    package.put(
        &shim,
        &format!("#!/bin/sh\necho \"$@\" >> '{log}'\nexec '{real}' \"$@\"\n"),
    );
    Some(bin.to_owned())
}

/// A package whose sources NVIDIA's headers are enough for, and where NVIDIA's programs are.
fn package(keys: &str) -> Option<(Package, PathBuf)> {
    let package = Package::new("")?;
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put("kernels/k.h", HEADER);
    package.put("kernels/device.h", "#define TIMES 2\n#define FACTOR 3\n");
    package.put("kernels/k.cu", KERNEL);
    package.put("kernels/helper.cu", HELPER);
    package.declare(keys);
    let bin = toolkit(&package, "cuda")?;
    Some((package, bin))
}

/// The build script, which finds the toolkit by its usual variable.
fn script(package: &Package) -> Command {
    let mut script = package.script();
    script
        .env_remove("OFFLOAD_COMPILER")
        .env("CUDA_PATH", package.at("cuda"));
    script
}

/// What cuobjdump says of the kernels and device functions of an image.
fn resources(bin: &Path, image: &Path) -> Vec<String> {
    let mut command = Command::new(bin.join("cuobjdump"));
    let printed = support::run(command.arg("--dump-resource-usage").arg(image));
    let lines: Vec<&str> = printed.lines().map(str::trim).collect();
    // A line that names one, and a line of what it uses.
    let is_function = |pair: &&[&str]| pair[0].starts_with("Function ");
    let pairs = lines.windows(2).filter(is_function).map(<[&str]>::concat);
    let mut pairs: Vec<String> = pairs.collect();
    pairs.sort();
    pairs
}

#[test]
fn makes_the_images_that_nvcc_makes() {
    let keys = format!("{KEYS}{TARGETS}opt-level = 3\ndefine = {{ UNUSED = \"1,2\" }}\n");
    let Some((package, bin)) = package(&keys) else {
        return;
    };
    let told = text(&script(&package).output().unwrap());
    for line in [
        "cargo::rerun-if-env-changed=NVCC_APPEND_FLAGS".to_owned(),
        "cargo::rerun-if-env-changed=PTXAS_FLAGS".to_owned(),
        "cargo::rustc-cfg=offload_target_sm_90".to_owned(),
        format!(
            "cargo::rerun-if-changed={}",
            package.at("cuda/bin/nvcc").display()
        ),
        format!(
            "cargo::rerun-if-changed={}",
            package.at("kernels/device.h").display()
        ),
    ] {
        assert!(told.contains(&format!("{line}\n")), "{line}\n{told}");
    }
    // Headers of the toolkit change with it.
    assert!(!told.contains("cuda_runtime.h"), "{told}");
    // All at once, by nvcc alone.
    for number in ["90", "80"] {
        let theirs = package.at("theirs.cubin");
        let mut command = Command::new(bin.join("nvcc"));
        command
            .current_dir(package.at("kernels"))
            .args(["-rdc=true", "-dlink", "-cubin"])
            .arg(format!("-arch=sm_{number}"))
            .args(["k.cu", "helper.cu", "-o"])
            .arg(&theirs);
        support::run(&mut command);
        let ours = package.image(&format!("sm_{number}"));
        let expected = resources(&bin, &theirs);
        assert_eq!(expected.len(), 3, "{expected:?}");
        assert_eq!(resources(&bin, &ours), expected);
        let kernels = kernels(&fs::read(ours).unwrap()).unwrap();
        let scale = kernels
            .iter()
            .find(|kernel| kernel.name == "scale")
            .unwrap();
        let places = scale
            .arguments
            .iter()
            .map(|argument| (argument.offset, argument.size));
        assert_eq!(places.collect::<Vec<_>>(), [(0, 8), (8, 8)]);
        let registers = format!("Function scale:REG:{} ", scale.registers.unwrap());
        assert!(
            expected[2].starts_with(&registers),
            "{registers}: {expected:?}"
        );
        let fill = kernels
            .iter()
            .find(|kernel| kernel.name == "_Z4fillPf")
            .unwrap();
        assert_eq!(fill.max_threads, Some(128));
    }
    // The fat binary holds both, and the constants say what the toolkit says.
    let images = package.at(OUT).join("offload/kernels/images");
    assert_eq!(resources(&bin, &images).len(), 6);
    let file = fs::read_to_string(package.at(OUT).join("kernels.rs")).unwrap();
    assert!(
        file.contains("KERNELS: &[&str] = &[\"_Z4fillPf\", \"scale\"];"),
        "{file}"
    );
    assert!(
        file.contains("compiler: \"Cuda compilation tools, release "),
        "{file}"
    );
    let record = fs::read_to_string(package.at(OUT).join("offload/manifest.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let module = &record["modules"][0];
    assert_eq!(
        module["compiler"],
        package.at("cuda/bin/nvcc").to_str().unwrap()
    );
    let version = support::run(Command::new(bin.join("nvcc")).arg("--version"));
    let release = module["compiler_version"].as_str().unwrap();
    assert!(
        release.contains("release 1") && version.contains(release),
        "{release}"
    );
}

#[test]
fn compiles_again_only_what_changed() {
    // Two targets, or one.
    let targets: Vec<&str> = support::share(["sm_80", "sm_90"], 0, 2).collect();
    let Some((package, _)) = package(&format!("{KEYS}targets = {targets:?}\n")) else {
        return;
    };
    let images = || -> Vec<Vec<u8>> {
        let images = targets.iter().map(|target| package.image(target));
        images.map(|image| fs::read(image).unwrap()).collect()
    };
    let builds = |variables: &[(&str, &str)]| {
        let before = package.starts();
        text(
            &script(&package)
                .envs(variables.iter().copied())
                .output()
                .unwrap(),
        );
        package.starts() - before
    };
    // The version, and two sources for each target.
    let both = 2 * targets.len();
    assert_eq!(builds(&[]), 1 + both);
    let first = images();
    assert_eq!(builds(&[]), 0);
    // A header that the device's side alone includes.
    package.put("kernels/device.h", "#define TIMES 3\n#define FACTOR 3\n");
    assert_eq!(builds(&[]), both);
    let second = images();
    assert!(
        first
            .iter()
            .zip(&second)
            .all(|(first, second)| first != second)
    );
    package.put("kernels/helper.cu", &format!("{HELPER}\n"));
    assert_eq!(builds(&[]), targets.len());
    // What nvcc reads besides.
    let flags = [("NVCC_APPEND_FLAGS", "-DTIMES=2 -UTIMES")];
    assert_eq!(builds(&flags), both);
    assert_eq!(builds(&flags), 0);
    assert_eq!(builds(&[("PTXAS_FLAGS", "-v")]), both);
    assert_eq!(builds(&[]), both);
    // The same sources, the same bytes.
    assert!(images() == second);
    // Programs that nvcc starts, and what its device links read.
    for name in ["bin/ptxas", "nvvm/bin/cicc", "lib64/libcudadevrt.a"] {
        let line = format!(
            "cargo::rerun-if-changed={}\n",
            package.at("cuda").join(name).display()
        );
        let told = text(&script(&package).output().unwrap());
        assert!(told.contains(&line), "{line}{told}");
    }
    for name in ["cuda/bin/ptxas", "cuda/nvvm/bin/cicc"] {
        let real = fs::canonicalize(package.at(name)).unwrap();
        fs::remove_file(package.at(name)).unwrap();
        let shim = format!("#!/bin/sh\nexec '{}' \"$@\"\n", real.display());
        package.put(name, &shim);
        assert_eq!(builds(&[]), both, "{name}");
        assert_eq!(builds(&[]), 0, "{name}");
    }
}

/// nvcc adds these to each command, and what they change must be known here.
#[test]
fn refuses_variables_of_nvcc_that_change_targets() {
    let Some((package, _)) = package(&format!("{KEYS}targets = [\"sm_90\"]\n")) else {
        return;
    };
    for (variable, flags, expected) in [
        (
            "NVCC_APPEND_FLAGS",
            "-O2 -arch=sm_80",
            "`-arch` names a processor: `targets` does that [OFF500]\nhint: if the variable is for other crates, unset it for this \
             build; CUDAARCHS or OFFLOAD_TARGETS choose its processors",
        ),
        (
            "NVCC_PREPEND_FLAGS",
            "-ptx",
            "`-ptx` changes what the compiler makes: `targets` does that: ",
        ),
        (
            "NVCC_APPEND_FLAGS",
            "-G",
            "`-G` reaches only some commands: OFFLOAD_FLAGS and `flags` do that",
        ),
    ] {
        let error = package.fails_with_codes(script(&package).env(variable, flags));
        assert!(
            error.starts_with(&format!("{variable}: {expected}")),
            "{error}"
        );
    }
    text(
        &script(&package)
            .env("NVCC_APPEND_FLAGS", "-Xptxas -O2")
            .output()
            .unwrap(),
    );
}

#[test]
fn makes_an_image_of_one_source_without_rdc() {
    let keys = format!("{KEYS}targets = [\"sm_90\"]\nrdc = false\n");
    let Some((package, bin)) = package(&keys) else {
        return;
    };
    let both = format!("{HELPER}{KERNEL}");
    package.put("kernels/k.cu", &both);
    fs::remove_file(package.at("kernels/helper.cu")).unwrap();
    text(&script(&package).env("DEBUG", "false").output().unwrap());
    let theirs = package.at("theirs.cubin");
    let mut command = Command::new(bin.join("nvcc"));
    command
        .current_dir(package.at("kernels"))
        .args(["-cubin", "-arch=sm_90", "-Xptxas=-O1", "k.cu", "-o"])
        .arg(&theirs);
    support::run(&mut command);
    let path = package
        .at(OUT)
        .join("offload/kernels/sm_90/kernels-k.cu.cubin");
    let expected = resources(&bin, &theirs);
    assert_eq!(expected.len(), 2, "{expected:?}");
    assert_eq!(resources(&bin, &path), expected);
    assert_eq!(
        resources(&bin, &package.at(OUT).join("offload/kernels/images")),
        expected
    );
}

/// nvcc only warns, and kernels of the other source read zeros.
#[test]
fn refuses_variables_of_other_sources_without_rdc() {
    let keys = format!("{KEYS}host = true\ntargets = [\"sm_80\"]\n");
    let Some((package, _)) = package(&keys) else {
        return;
    };
    package.put("kernels/k.h", "extern __constant__ float table[4];\n");
    let kernel = "__global__ void k(float *x) { *x = table[threadIdx.x]; }\n";
    package.put("kernels/k.cu", &format!("#include \"k.h\"\n{kernel}"));
    let definition = "__constant__ float table[4] = {1, 2, 3, 4};\n";
    package.put("kernels/helper.cu", definition);
    let hint = "hint: with `rdc = false` nvcc makes a variable of its own for each source that declares one `extern`: if it is a \
        `__device__` or `__constant__` variable of another source, set `rdc = true`, as cc does for several sources";
    let error = package.fails(&mut script(&package));
    let start =
        "kernels/k.cu for the host and all targets: `cuda/bin/nvcc` only warned of an error";
    assert!(error.starts_with(start), "{error}");
    assert!(
        error.contains("is treated as a static definition"),
        "{error}"
    );
    assert!(error.contains(hint), "{error}");

    let whole = format!("#include \"k.h\"\n{definition}");
    package.put("kernels/helper.cu", &whole);
    package.put("kernels/k.cu", &kernel.replace("table[threadIdx.x]", "1"));
    let error = package.fails(&mut script(&package));
    assert!(error.contains("redefinition of"), "{error}");
    assert!(error.contains(hint), "{error}");

    package.put("kernels/k.cu", &format!("#include \"k.h\"\n{kernel}"));
    package.declare(&format!("{keys}rdc = true\n"));
    text(&script(&package).output().unwrap());
}

#[test]
fn finds_nvcc_and_says_where_it_looked() {
    let Some((package, _)) = package(&format!("{KEYS}targets = [\"sm_90\"]\n")) else {
        return;
    };
    toolkit(&package, "other").unwrap();
    let compiler = |command: &mut Command| {
        text(&command.output().unwrap());
        package.recorded_compiler()
    };
    assert_eq!(compiler(&mut script(&package)), "cuda/bin/nvcc");
    // What is in PATH is nearer; what is declared nearest.
    let path = format!("{}:/usr/bin:/bin", package.at("other/bin").display());
    assert_eq!(
        compiler(script(&package).env("PATH", path)),
        "other/bin/nvcc"
    );
    let other = package.at("other/bin/nvcc");
    assert_eq!(
        compiler(script(&package).env("NVCC", &other)),
        "other/bin/nvcc"
    );
    assert_eq!(
        compiler(script(&package).env("OFFLOAD_COMPILER", &other)),
        "other/bin/nvcc"
    );
    package.declare(
        &KEYS
            .replace("\"nvcc\"", "\"other/bin/nvcc\"")
            .replace("language", "targets = [\"sm_90\"]\nlanguage"),
    );
    assert_eq!(
        compiler(script(&package).env_remove("CUDA_PATH")),
        "other/bin/nvcc"
    );

    package.declare(&format!("{KEYS}targets = [\"sm_90\"]\n"));
    let error = package.fails(script(&package).env("CUDA_PATH", "/nowhere"));
    let expected = "module `kernels`: `nvcc` not found (searched: PATH, /nowhere/bin, /usr/local/cuda/bin) [OFF605]\n\
        hint: install NVIDIA's CUDA toolkit and set CUDA_PATH to its root, or leave `compiler` out: clang compiles \
        CUDA too";
    if !Path::new("/usr/local/cuda/bin/nvcc").exists() {
        assert_eq!(error, expected);
    }
    let told = text(
        &script(&package)
            .env("CUDA_PATH", "/nowhere")
            .env("OFFLOAD_MISSING", "stub")
            .output()
            .unwrap(),
    );
    assert!(told.contains("cargo::rustc-cfg=offload_stub\n"), "{told}");
    // nvcc cannot do without.
    let error = package.fails(script(&package).env("NVCC_CCBIN", "g++-none"));
    assert!(
        error.starts_with("module `kernels`: `g++-none` not found (searched: PATH) [OFF605]\nhint: nvcc needs a C++ compiler of the host: "),
        "{error}"
    );
    let lines = || fs::read_to_string(package.at("starts")).unwrap();
    assert!(!lines().contains("-ccbin"), "{}", lines());
    text(
        &script(&package)
            .env("NVCC_CCBIN", "/usr/bin/g++")
            .output()
            .unwrap(),
    );
    // Not every release reads the variable.
    let lines = lines();
    let named = lines
        .lines()
        .filter(|line| line.contains("-ccbin=/usr/bin/g++"));
    assert_eq!(named.count(), 2, "{lines}");
}

#[test]
fn links_libraries_of_cubins_and_none_of_bitcode() {
    let keys = format!("{KEYS}targets = [\"sm_90\"]\nlink = [\"helper\"]\n");
    let (Some((package, bin)), Some(clang)) = (package(&keys), support::tool("llvm22", &["clang"]))
    else {
        return;
    };
    let archive = package.at("libbc-helper-nvptx64-sm_90.a");
    let pack = |member: &Path| {
        let _ = fs::remove_file(&archive);
        support::run(Command::new("ar").arg("rcs").arg(&archive).arg(member));
    };
    let cubin = package.at("helper.cubin");
    let mut command = Command::new(bin.join("nvcc"));
    command
        .args(["-rdc=true", "-cubin", "-arch=sm_90"])
        .arg(package.at("kernels/helper.cu"))
        .arg("-o")
        .arg(&cubin);
    support::run(&mut command);
    fs::remove_file(package.at("kernels/helper.cu")).unwrap();
    pack(&cubin);
    text(&script(&package).output().unwrap());
    let functions = resources(&bin, &package.image("sm_90"));
    assert!(
        functions.iter().any(|line| line.contains("_Z5twicei")),
        "{functions:?}"
    );
    // nvlink of CUDA 11 ignores cubins that are called `.o`.
    let files = package.files();
    let extracted = files
        .iter()
        .find(|name| name.ends_with("/library-0-0-helper.cubin"));
    assert!(extracted.is_some(), "{files:#?}");

    let bitcode = package.at("helper.bc");
    package.put("helper.c", "int twice(int x) { return 2 * x; }\n");
    let mut command = Command::new(clang);
    command
        .args([
            "--target=nvptx64-nvidia-cuda",
            "-march=sm_90",
            "-nogpulib",
            "-emit-llvm",
            "-c",
        ])
        .args([&package.at("helper.c"), Path::new("-o"), &bitcode]);
    support::run(&mut command);
    pack(&bitcode);
    assert_eq!(
        package.fails(&mut script(&package)),
        "module `kernels`: libraries for `sm_90` have bitcode, which `nvcc` does not link: remove `compiler` to \
         use clang"
    );
    for (key, how) in [
        ("rdc = false", "without `rdc`"),
        ("images = \"source\"", "with `images = \"source\"`"),
    ] {
        package.declare(&format!("{keys}{key}\n"));
        let error = package.fails(&mut script(&package));
        let problem = format!("{how}, `nvcc` links no libraries, but `link` names some");
        assert_eq!(error, format!("Cargo.toml:10:1: {problem}"));
    }
}

/// nvcc gives each of its programs to a shell.
#[test]
fn passes_macros_and_paths_as_they_are() {
    let keys = format!("{KEYS}targets = [\"compute_90\"]\nrdc = false\nimages = \"source\"\n");
    let define = r#"define = { TEXT = '"a\n$HOME`id`, b"', LETTER = "'\\\\'" }"#;
    let Some((package, _)) = package(&format!("{keys}{define}\n")) else {
        return;
    };
    fs::remove_file(package.at("kernels/helper.cu")).unwrap();
    let source = "extern \"C\" __device__ const char by_macro[] = TEXT;\n\
        extern \"C\" __device__ const char letter = LETTER;\n\
        extern \"C\" __global__ void k(char *x) { *x = by_macro[*x] + letter; }\n";
    package.put("kernels/k.cu", source);
    text(&script(&package).output().unwrap());
    let files = package.files();
    let texts = files
        .iter()
        .filter_map(|file| fs::read_to_string(file).ok());
    let ptx = texts
        .into_iter()
        .find(|text| text.contains(".visible .entry k("));
    let ptx = ptx.unwrap_or_else(|| panic!("{files:#?}"));
    let bytes = b"a\n$HOME`id`, b".map(|byte| byte.to_string());
    let expected = format!("by_macro[15] = {{{}", bytes.join(", "));
    assert!(ptx.contains(&expected), "{expected}\n{ptx}");
    assert!(ptx.contains("letter = 92;"), "{ptx}");

    package.put("a$b/k.cu", "#error \"other\"");
    package.declare(&keys.replace("kernels/*.cu", "a$b/*.cu"));
    let error = package.fails(&mut script(&package));
    let expected = "`a$b/k.cu`: nvcc passes paths to a shell, for which `$` is special";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn says_what_nvcc_does_not_do() {
    let Some((package, _)) = package(&format!("{KEYS}{TARGETS}")) else {
        return;
    };
    let fails = |keys: &str| {
        package.declare(keys);
        package.fails(&mut script(&package))
    };
    let other = |language: &str| {
        format!(
            "Cargo.toml:6:1: `nvcc` compiles `cuda`, not `{language}`\n\
             hint: remove `compiler` to use a clang, or set it only in modules of its language"
        )
    };
    for language in ["hip", "openmp", "bitcode"] {
        let target = if language == "hip" { "gfx90a" } else { "sm_90" };
        let keys = KEYS
            .replace("cuda", language)
            .replace("*.cu\"]", "*.cu\"]\nflags = [\"-xcu\"]");
        assert_eq!(
            fails(&format!("{keys}targets = [\"{target}\"]\n")),
            other(language)
        );
    }
    assert_eq!(
        fails(&format!("{KEYS}{TARGETS}artifact = [\"device-archive\"]\n")),
        "Cargo.toml:9:1: archives consist of bitcode, which `nvcc` does not produce: remove `compiler` to use clang"
    );
    assert_eq!(
        fails(&format!(
            "{KEYS}targets = [\"sm_90\", \"compute_90\"]\nhost = true\nrdc = true\n"
        )),
        "module `kernels`: no image for `compute_90`: `nvcc` does not link PTX: leave it out of `targets`, as nvcc's own device link \
         does, set `rdc = false`, or remove `compiler` to use clang, which links PTX\n\
         hint: OFFLOAD_TARGETS=sm_90 builds the other targets; OFFLOAD_MISSING=skip leaves out the targets that cannot be built"
    );
    let of_gencode = "\nhint: `code=sm_80` is `\"sm_80\"` in `targets`, an image; `code=compute_80` is `\"compute_80\"`, PTX for newer GPUs";
    for (flags, hint) in [
        ("-gencode=arch=compute_90,code=sm_90", of_gencode),
        ("-gencode\", \"arch=compute_90,code=sm_90", of_gencode),
        ("--generate-code=arch=compute_90,code=sm_90", of_gencode),
        (
            "--generate-code\", \"arch=compute_90,code=sm_90",
            of_gencode,
        ),
        ("--gpu-code\", \"sm_90", ""),
    ] {
        let name = flags.split(['=', '"']).next().unwrap();
        assert_eq!(
            fails(&format!("{KEYS}{TARGETS}flags = [\"{flags}\"]\n")),
            format!(
                "Cargo.toml:9:1: `{name}` in `flags` names a processor: `targets` does that{hint}"
            )
        );
    }
    assert_eq!(
        fails(&format!("{KEYS}{TARGETS}flags = [\"-arch=sm_90\"]\n")),
        "Cargo.toml:9:1: `-arch` in `flags` names a processor: `targets` does that\n\
         hint: nvcc's `-arch=sm_80` is `targets = [\"sm_80\", \"compute_80\"]`: an image, and PTX for newer GPUs"
    );
    assert_eq!(
        fails(&format!(
            "{KEYS}{TARGETS}[package.metadata.offload.target.\"sm_90\"]\nflags = [\"-gencode\", \"arch=compute_80,code=sm_80\"]\n"
        )),
        format!(
            "Cargo.toml:10:1: `-gencode` in `flags` names a processor: `targets` does that{of_gencode}"
        )
    );
    // It is ptxas's.
    let error = fails(&format!(
        "{KEYS}{TARGETS}flags = [\"-Xptxas\", \"-arch=sm_1\"]\n"
    ));
    assert!(error.contains("ptxas fatal"), "{error}");
    for flags in ["--cudart=static", "--cudart\", \"none"] {
        assert_eq!(
            fails(&format!("{KEYS}{TARGETS}flags = [\"{flags}\"]\n")),
            "Cargo.toml:9:1: `--cudart` in `flags` has no effect: the key `cudart` does that"
        );
    }
    assert_eq!(
        fails(&format!(
            "{KEYS}{TARGETS}flags = [\"--compress-mode=size\"]\n"
        )),
        "Cargo.toml:9:1: `--compress-mode` in `flags` has no effect: the key `compress` does that"
    );
    for flags in ["-Xfatbin=-compress-all", "-Xfatbin\", \"-compress-all"] {
        assert_eq!(
            fails(&format!("{KEYS}{TARGETS}flags = [\"{flags}\"]\n")),
            "Cargo.toml:9:1: `-Xfatbin` in `flags` has no effect: the key `compress` does that"
        );
    }
    let unknown = format!("{KEYS}targets = [\"sm_20\"]\n");
    let hint = "\nhint: each release of CUDA has its processors: ";
    let error = fails(&unknown);
    let start = "module `kernels`: no image for `sm_20`: unknown to `cuda/bin/ptxas` [OFF602]\n";
    assert!(error.starts_with(start) && error.contains(hint), "{error}");
    // The nvcc of a script has its ptxas elsewhere. Words of CUDA 11.8 and 12.4.
    fs::remove_file(package.at("cuda/bin/ptxas")).unwrap();
    let compiler = "\nhint: name an older compiler of the host";
    for (words, hint) in [
        (
            "nvcc fatal   : Value 'sm_20' is not defined for option 'gpu-architecture'",
            hint,
        ),
        (
            "host_config.h:132:2: error: #error -- unsupported GNU version! gcc versions later than 11 are not supported!",
            compiler,
        ),
    ] {
        let print = format!("{{ echo \"{words}\" >&2; exit 1; }}");
        let shim = format!("#!/bin/sh\n[ \"$1\" = --version ] || {print}\n");
        package.put("cuda/bin/nvcc", &shim);
        let error = fails(&unknown);
        assert!(error.contains(words) && error.contains(hint), "{error}");
    }
}

#[test]
fn compiles_for_debuggers() {
    let keys = "targets = [\"sm_80\"]\nflags = [\"-G\"]\n";
    let Some((package, bin)) = package(&format!("{KEYS}{keys}")) else {
        return;
    };
    text(&script(&package).output().unwrap());
    let image = package.at(OUT).join("offload/kernels/sm_80/image");
    let mut dump = Command::new(bin.join("cuobjdump"));
    let sections = text(&dump.arg("-elf").arg(&image).output().unwrap());
    assert!(sections.contains(".debug_info"), "{sections}");
    package.declare(&format!("{KEYS}{keys}host = true\nrdc = true\n"));
    text(&script(&package).output().unwrap());
}
