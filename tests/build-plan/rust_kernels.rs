//! Kernels in Rust, compiled by a real rustc: symbols, instructions, rebuilds, and messages of rustc.

use crate::support;

use object::{Object, ObjectSection, ObjectSymbol};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;
use support::comgr::comgr;
use support::cuda_package::cuda;
use support::package::{OUT, Package, text};
use support::run;

/// As in a target folder of Cargo, the folder of the package.
const TARGETS: [&str; 4] = ["gfx90a", "gfx1100", "sm_80", "sm_90"];
pub(crate) const KERNELS: [&str; 3] = ["matmul", "reduce", "saxpy"];
pub(crate) const HARD: [&str; 14] = [
    "adds_signed",
    "adds_unsigned",
    "atomics",
    "calls",
    "compares",
    "divides",
    "doubles",
    "draws",
    "lines",
    "recurses",
    "rows",
    "singles",
    "sorts",
    "texts",
];

/// Signatures of some kernels, in images for each target.
const SIGNATURES: [(&str, &str); 8] = [
    (
        "calls",
        "ABI 1: &Item<_, 3>, &[f32], Global<f32>; threads = 64; shared = 0",
    ),
    (
        "draws",
        "ABI 1: &Item<_, 3>, u64, u32, Global<u64>; shared = 0",
    ),
    (
        "matmul",
        "ABI 1: &Item<_, 3>, u32, &[f32], &[f32], Global<f32>; threads = 256; shared = 2048",
    ),
    (
        "reduce",
        "ABI 1: &Item<_, 3>, &[f32], Global<f32>; threads = 256; shared = 1024",
    ),
    (
        "rows",
        "ABI 1: &Item<_, 1>, &[u32], &[u32], &[u32], Global<u32>; shared = 0",
    ),
    (
        "saxpy",
        "ABI 1: &Item<_, 3>, f32, &[f32], Global<f32>; shared = 0",
    ),
    (
        "sorts",
        "ABI 1: &Item<_, 3>, &[u32], Global<64 bytes of alignment 4>; shared = 0",
    ),
    (
        "total",
        "ABI 1: &Item<_, 1>, &[u32], Global<u32>; shared = 0",
    ),
];

pub(crate) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().unwrap()
}

/// A package with copies of the kernels of the example and of the hard ones, and a Cargo that counts its starts.
pub(crate) fn package() -> Option<Package> {
    support::tool("rustweb", &["lib.rs"])?;
    support::tool("llvm22", &["clang-22", "clang"])?;
    let package = Package::new("")?;
    support::sysroots::share_in(package.folder.root());
    for (from, to) in [
        ("examples/rust-kernels/kernels", "kernels"),
        ("tests/kernels_rust", "hard"),
    ] {
        let from = root().join(from);
        let source = fs::read_to_string(from.join("src/lib.rs")).unwrap();
        package.put(&format!("{to}/src/lib.rs"), &source);
        let manifest = fs::read_to_string(from.join("Cargo.toml")).unwrap();
        let manifest = manifest.replace("../../../offload-device", "../../offload-device");
        let device = root().join("offload-device").display().to_string();
        let manifest = manifest.replace("../../offload-device", &device);
        let alone = manifest.replace("\n[workspace]\n", "") + "\n[workspace]\n";
        package.put(&format!("{to}/Cargo.toml"), &alone);
    }
    declare(&package, &TARGETS, "");
    let cargo = format!(
        "#!/bin/sh\necho \"$@\" >> '{}'\nexec '{}' \"$@\"\n",
        package.at("starts").display(),
        env!("CARGO")
    );
    package.put("cargo", &cargo);
    Some(package)
}

/// Declares both crates, and `keys` for the first.
pub(crate) fn declare(package: &Package, targets: &[&str], keys: &str) {
    let manifest = format!(
        "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\nlanguage = \"rust\"\ntargets = {targets:?}\n\
         [[package.metadata.offload.module]]\nname = \"kernels\"\ncrate = \"kernels\"\n{keys}\
         [[package.metadata.offload.module]]\nname = \"hard\"\ncrate = \"hard\"\n"
    );
    package.put("Cargo.toml", &manifest);
}

pub(crate) fn script(package: &Package, cuda: &Path) -> Command {
    let mut script = package.script();
    script
        .env_remove("OFFLOAD_COMPILER")
        .env("CUDA_PATH", cuda)
        .env("CARGO", package.at("cargo"))
        // What the outer build is told is not for kernels.
        .env("CARGO_ENCODED_RUSTFLAGS", "--cfg=outer")
        .env("RUSTC_WORKSPACE_WRAPPER", "/nonexistent");
    for name in ["HOME", "CARGO_HOME", "RUSTUP_HOME"] {
        if let Some(value) = std::env::var_os(name) {
            script.env(name, value);
        }
    }
    script
}

pub(crate) fn image(package: &Package, module: &str, target: &str) -> PathBuf {
    package
        .at(OUT)
        .join("offload")
        .join(module)
        .join(target)
        .join("image")
}

/// Starts of Cargo that compile a crate.
fn compiles(package: &Package) -> usize {
    let starts = fs::read_to_string(package.at("starts")).unwrap_or_default();
    starts
        .lines()
        .filter(|line| line.starts_with("rustc "))
        .count()
}

/// Instructions of a function, in the assembly of AMD's or in PTX.
fn instructions(assembly: &str, start: &str, end: &str) -> Vec<String> {
    let (_, body) = assembly
        .split_once(start)
        .unwrap_or_else(|| panic!("{assembly}"));
    let (body, _) = body.split_once(end).unwrap_or((body, ""));
    let code = |line: &str| {
        line.split("//")
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let is_code = |line: &String| {
        let is_other = line.starts_with(['.', '{', '}', '(', ')', '$', '<']);
        !line.is_empty() && !line.ends_with(':') && !is_other
    };
    body.lines().map(code).filter(is_code).collect()
}

/// Instructions between the first two barriers.
pub(crate) fn between_barriers(instructions: &[String]) -> usize {
    let is_barrier = |line: &String| line.starts_with("s_barrier") || line.starts_with("bar.");
    let mut barriers = instructions
        .iter()
        .enumerate()
        .filter(|(_, line)| is_barrier(line));
    let mut next = || barriers.next().expect("there are two barriers").0;
    let first = next();
    next() - first - 1
}

fn amd_code(image: &Path, kernel: &str) -> Vec<String> {
    let mut dump = Command::new("llvm-objdump-22");
    dump.args(["-d", "--no-show-raw-insn"]);
    dump.arg(format!("--disassemble-symbols={kernel}"));
    instructions(&run(dump.arg(image)), &format!("<{kernel}>:"), "\n\n")
}

pub(crate) fn nvidia_matmul(ptx: &Path) -> Vec<String> {
    let text = fs::read_to_string(ptx).unwrap();
    let (_, text) = text.split_once(".entry matmul").unwrap();
    instructions(text, "{", "\n}")
}

/// Expects an image whose only symbols of offload-device are the signatures of its kernels, where the loader finds them.
pub(crate) fn expect_signatures(image: &Path, kernels: &[&str]) {
    let mut readelf = Command::new("llvm-readelf-22");
    let symbols = run(readelf.args(["-W", "--symbols"]).arg(image));
    let names = symbols.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [.., kind, bind, _, _, name] = words[..] else {
            return None;
        };
        let is_visible = (kind, bind) == ("OBJECT", "GLOBAL");
        (is_visible && name.contains("__offload_")).then_some(name)
    });
    let names: BTreeSet<&str> = names.collect();
    let expected = kernels
        .iter()
        .map(|name| format!("__offload_signature${name}"));
    assert_eq!(
        names,
        expected
            .collect::<BTreeSet<_>>()
            .iter()
            .map(|name| &**name)
            .collect(),
        "{symbols}"
    );
    let all = symbols.matches("__offload_").count();
    assert_eq!(
        all,
        symbols.matches("__offload_signature$").count(),
        "{symbols}"
    );
    let bytes = fs::read(image).unwrap();
    for (kernel, expected) in SIGNATURES {
        if kernels.contains(&kernel) {
            let found = signature(&bytes, kernel);
            assert_eq!(String::from_utf8_lossy(&found), expected, "{kernel}");
        }
    }
}

/// Returns the signature of a kernel in an image, as a loader finds it: in the dynamic symbols of a code object, or in the symbols of
/// a cubin, which has no others.
fn signature(image: &[u8], kernel: &str) -> Vec<u8> {
    let file = object::File::parse(image).unwrap();
    let name = format!("__offload_signature${kernel}");
    let is_it = |symbol: &object::Symbol<'_, '_>| symbol.name() == Ok(&name);
    let symbol = match file.dynamic_symbol_table() {
        Some(_) => file.dynamic_symbols().find(is_it),
        None => file.symbols().find(is_it),
    };
    let symbol = symbol.unwrap_or_else(|| panic!("{name}"));
    let section = file.section_by_index(symbol.section_index().unwrap());
    let bytes = section.unwrap().data_range(symbol.address(), symbol.size());
    bytes.unwrap().unwrap().to_vec()
}

/// The same in C++, by clang 22 without contraction of products and sums.
pub(crate) fn cpp(package: &Package, target: &str) -> PathBuf {
    let output = package.at(&format!("{target}.cpp.out"));
    let mut clang = Command::new("clang-22");
    clang.args(["-O3", "-ffp-contract=off", "-nogpuinc", "-nogpulib", "-o"]);
    clang.arg(&output).arg(format!("--offload-arch={target}"));
    match target.starts_with("gfx") {
        true => clang.args([
            "-x",
            "hip",
            "-c",
            "--offload-device-only",
            "--no-gpu-bundle-output",
        ]),
        false => clang.args([
            "-x",
            "cuda",
            "-S",
            "--offload-device-only",
            "-Xclang",
            "-target-feature",
            "-Xclang",
            "+ptx78",
        ]),
    };
    run(clang.arg(root().join("tests/build-plan/rust_kernels/matmul.cpp")));
    output
}

#[test]
#[ignore = "`make test-all`: `rust_kernels_without_clang` makes images of the same kernels"]
fn makes_images_without_a_trace_of_its_functions() {
    let (Some(cuda), Some(package)) = (cuda(), package()) else {
        return;
    };
    // One of each vendor, or two.
    let targets: Vec<&str> = support::share(TARGETS, 0, 2).collect();
    declare(&package, &targets, "");
    let told = text(&script(&package, &cuda).output().unwrap());
    assert!(!told.contains("cargo::error"), "{told}");
    let first = 2 * targets.len();
    assert_eq!(compiles(&package), first);

    for &target in &targets {
        for (module, kernels) in [("kernels", &KERNELS[..]), ("hard", &HARD[..])] {
            let image = image(&package, module, target);
            let mut readelf = Command::new("llvm-readelf-22");
            let symbols = run(readelf.arg("-sW").arg(&image));
            expect_signatures(&image, kernels);
            let names: Vec<&str> = symbols
                .lines()
                .filter(|line| line.contains(" FUNC ") && line.contains(" GLOBAL "))
                .filter_map(|line| line.split_whitespace().last())
                .collect();
            for kernel in kernels {
                assert!(names.contains(kernel), "{target} {kernel}: {symbols}");
            }
            if target.starts_with("gfx") {
                // rustc generated no code of its own: it would lack the device's functions.
                let library = package.at(&format!(
                    "{OUT}/offload/{module}/{target}/{module}-src-lib.rs.rust.cargo/amdgcn-amd-amdhsa/release/lib{}.a",
                    if module == "hard" { "hard_kernels" } else { "kernels" },
                ));
                let mut members = Command::new("llvm-ar-22");
                let members = members.arg("p").arg(library).output().unwrap().stdout;
                assert_eq!(members.get(..4), Some(&b"BC\xC0\xDE"[..]), "{target}");
                let mut expected: Vec<String> =
                    kernels.iter().map(|name| format!("{name}.kd")).collect();
                expected.sort();
                if let Some(told) = comgr(&package, &image) {
                    let mut told: Vec<&str> = told.lines().collect();
                    told.sort_unstable();
                    assert_eq!(told, expected);
                }
            }
        }
    }

    // Its loop is not longer than that of C++, and no access asks at run time which memory a pointer leads to.
    for &target in &targets {
        let image = image(&package, "kernels", target);
        let (own, theirs) = match target.starts_with("gfx") {
            true => (
                amd_code(&image, "matmul"),
                amd_code(&cpp(&package, target), "matmul"),
            ),
            false => (
                nvidia_matmul(&image.with_extension("s")),
                nvidia_matmul(&cpp(&package, target)),
            ),
        };
        let counts = [&own, &theirs].map(|code| between_barriers(code));
        assert!(counts[0] <= counts[1], "{target}: {counts:?}\n{own:#?}");
        assert!(counts[0] > 40, "{target}: {counts:?}\n{own:#?}");
        let spaces = [
            "ld.param",
            "ld.global",
            "ld.shared",
            "ld.relaxed.gpu.global",
        ];
        let is_generic = |line: &&String| {
            line.starts_with("flat_")
                || line.starts_with("ld.") && !spaces.iter().any(|start| line.starts_with(start))
        };
        assert_eq!(own.iter().find(is_generic), None, "{target}");
    }

    // The index in a grid of three dimensions: the product of two 32-bit numbers, and that of 64 and 32 bits.
    let saxpy = amd_code(&image(&package, "kernels", "gfx90a"), "saxpy");
    let products = saxpy
        .iter()
        .filter(|line| line.starts_with("v_mad_u64_u32 "));
    assert_eq!(products.count(), 3, "{saxpy:#?}");
    // In a grid of one dimension: without such products, and without the other parts of the work-item's place.
    let lines = amd_code(&image(&package, "hard", "gfx90a"), "lines");
    let is_of_others =
        |line: &String| line.starts_with("v_mad_u64_u32 ") || line.starts_with("v_bfe_u32 ");
    assert!(!lines.iter().any(is_of_others), "{lines:#?}");

    // Limits of work-items.
    let mut notes = Command::new("llvm-readelf-22");
    let notes = run(notes
        .arg("--notes")
        .arg(image(&package, "kernels", "gfx90a")));
    let limits: Vec<&str> = notes
        .lines()
        .filter_map(|line| line.trim().strip_prefix(".max_flat_workgroup_size: "))
        .collect();
    assert_eq!(limits, ["256", "256", "1024"]);
    let ptx = fs::read_to_string(image(&package, "kernels", "sm_80").with_extension("s")).unwrap();
    assert_eq!(ptx.matches(".maxntid 256").count(), 2);
    // Slices are read through the cache for what nothing writes.
    let loads = ptx.lines().map(str::trim);
    let loads: Vec<&str> = loads
        .filter(|line| line.starts_with("ld.global."))
        .collect();
    let through_cache = loads
        .iter()
        .filter(|line| line.starts_with("ld.global.nc."));
    assert!(
        loads.len() > 2 && through_cache.count() == loads.len(),
        "{loads:#?}"
    );

    // Nothing changed: nothing is compiled. An edit of one crate compiles that crate.
    text(&script(&package, &cuda).output().unwrap());
    assert_eq!(compiles(&package), first);
    // Two targets are enough from here on.
    let declare = |keys: &str| declare(&package, &["gfx90a", "sm_80"], keys);
    declare("");
    let source = fs::read_to_string(package.at("kernels/src/lib.rs")).unwrap();
    package.put(
        "kernels/src/lib.rs",
        &source.replace("sum = 0.0", "sum = 1.0"),
    );
    let before = fs::read(image(&package, "kernels", "sm_80")).unwrap();
    text(&script(&package, &cuda).output().unwrap());
    assert_eq!(compiles(&package), first + 2);
    assert!(before != fs::read(image(&package, "kernels", "sm_80")).unwrap());
    // Back to what Cargo has built before, it is built again; features that come and go are kept apart.
    package.put("kernels/src/lib.rs", &source);
    text(&script(&package, &cuda).output().unwrap());
    assert!(before == fs::read(image(&package, "kernels", "sm_80")).unwrap());

    let manifest = fs::read_to_string(package.at("kernels/Cargo.toml")).unwrap();
    let featured = manifest.replace("[dependencies]", "[features]\ntwice = []\n[dependencies]");
    package.put("kernels/Cargo.toml", &featured);
    let factor = source.replace(
        "a * x[i]",
        "if cfg!(feature = \"twice\") { 2.0 } else { 1.0 } * a * x[i]",
    );
    package.put("kernels/src/lib.rs", &factor);
    let mut made = Vec::new();
    for keys in ["", "features = [\"twice\"]\n", ""] {
        declare(keys);
        text(&script(&package, &cuda).output().unwrap());
        made.push(fs::read(image(&package, "kernels", "sm_80")).unwrap());
    }
    assert!(made[0] == made[2] && made[0] != made[1]);
    // So are those of the manifest, which name no other file: Cargo still has what it made before.
    let by_default = featured.replace("twice = []", "default = [\"twice\"]\ntwice = []");
    for (manifest, expected) in [(&by_default, &made[1]), (&featured, &made[0])] {
        package.put("kernels/Cargo.toml", manifest);
        text(&script(&package, &cuda).output().unwrap());
        let image = fs::read(image(&package, "kernels", "sm_80")).unwrap();
        assert!(image == *expected, "{manifest}");
    }

    shows_messages_of_rustc(&package, &cuda, &source);
}

#[test]
fn makes_images_again_for_variables_and_settings() {
    let Some(package) = package() else { return };
    // A dependency may tell where the crate is.
    let manifest = "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\nlanguage = \"rust\"\n\
        crate = \"${DEP_PACK_ROOT}/kernels\"\ntargets = [\"gfx90a\"]\n";
    package.put("Cargo.toml", manifest);
    package.put(
        "kernels/src/lib.rs",
        "#![no_std]\nuse offload_device::{Global, Item, kernel};\n#[kernel]\n\
         pub fn put(item: &Item, y: Global<u32>) {\n\
         y.set(item, if option_env!(\"FACTOR\").is_some() { 2 } else { env!(\"SHIFTED\").len() as u32 });\n}\n",
    );
    package.put(
        "kernels/build.rs",
        "fn main() {\n    println!(\"cargo::rerun-if-env-changed=SHIFT\");\n    \
         println!(\"cargo::rustc-env=SHIFTED={}\", std::env::var(\"SHIFT\").unwrap_or_default());\n}\n",
    );
    let build = |variables: &[(&str, &str)]| {
        let mut script = script(&package, Path::new("/nonexistent"));
        script.env("DEP_PACK_ROOT", package.at(""));
        let told = text(&script.envs(variables.iter().copied()).output().unwrap());
        for name in ["FACTOR", "SHIFT"] {
            let line = format!("cargo::rerun-if-env-changed={name}\n");
            assert!(told.contains(&line), "{told}");
        }
        assert!(!told.contains("rerun-if-env-changed=CARGO_PKG"), "{told}");
        // Cargo would run the build script again for what it wrote itself, such as the sysroot.
        assert!(!told.contains("compiler_builtins"), "{told}");
        (
            told,
            fs::read(image(&package, "kernels", "gfx90a")).unwrap(),
        )
    };
    let (_, plain) = build(&[]);
    let count = compiles(&package);
    assert!(build(&[]).1 == plain);
    assert_eq!(compiles(&package), count);
    let (_, doubled) = build(&[("FACTOR", "1")]);
    let (_, shifted) = build(&[("SHIFT", "abc")]);
    assert!(doubled != plain && shifted != plain && doubled != shifted);
    assert!(build(&[]).1 == plain);

    // What Cargo's folder of intermediate files is, the build scripts' Cargo does not share.
    package.put(
        ".cargo/config.toml",
        "[profile.release]\noverflow-checks = true\n[build]\nbuild-dir = \"shared\"\n",
    );
    let count = compiles(&package);
    let (told, _) = build(&[]);
    let line = format!(
        "cargo::rerun-if-changed={}\n",
        package.at(".cargo/config.toml").display()
    );
    assert!(told.contains(&line), "{told}");
    assert_eq!(compiles(&package), count + 1);
    assert!(!package.at("shared").exists());

    // Wrappers and flags of the user's settings are for hosts, as is debug information.
    let (_, checked) = build(&[]);
    package.put(
        ".cargo/config.toml",
        "[profile.release]\noverflow-checks = true\n[profile.release.package.\"*\"]\ndebug = true\n[build]\nrustc-workspace-wrapper = \"/nonexistent\"\n\
         [target.'cfg(all())']\nrustflags = [\"-Ctarget-feature=+nothing\", \"--cfg=host\", \"-Cnothing\"]\n",
    );
    assert!(build(&[]).1 == checked);
}

/// Cargo compares times, and its build scripts may read folders and write sources.
#[test]
fn makes_images_again_for_what_cargo_reads_besides_the_crate() {
    let Some(package) = package() else { return };
    let manifest = "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\nlanguage = \"rust\"\n\
        crate = \"kernels\"\ntargets = [\"gfx90a\"]\n";
    package.put("Cargo.toml", manifest);
    let helper = "\n[dependencies.helper]\npath = \"../helper\"\n";
    let kernels = fs::read_to_string(package.at("kernels/Cargo.toml")).unwrap();
    package.put("kernels/Cargo.toml", &format!("{kernels}{helper}"));
    package.put(
        "kernels/src/lib.rs",
        "#![no_std]\nuse offload_device::{Global, Item, kernel};\n#[kernel]\n\
         pub fn put(item: &Item, y: Global<u32>) { y.set(item, y.get(item) + helper::value() + MADE); }\n\
         include!(concat!(env!(\"OUT_DIR\"), \"/made.rs\"));\n",
    );
    package.put(
        "kernels/build.rs",
        "fn main() {\n    println!(\"cargo::rerun-if-changed=data\");\n    \
         let value = std::fs::read_to_string(\"data/d/value\").unwrap();\n    \
         let path = std::path::Path::new(&std::env::var_os(\"OUT_DIR\").unwrap()).join(\"made.rs\");\n    \
         std::fs::write(path, format!(\"const MADE: u32 = {value};\")).unwrap();\n}\n",
    );
    package.put("kernels/data/d/value", "5");
    package.put(
        "helper/Cargo.toml",
        "[package]\nname = \"helper\"\nedition = \"2024\"\n[workspace]\n",
    );
    let helper = |value: u32| format!("#![no_std]\npub fn value() -> u32 {{ {value} }}\n");
    package.put("old.rs", &helper(2222));
    package.put("helper/src/lib.rs", &helper(1111));
    // Cargo finds the crates that it has fetched.
    let home = package.at("home");
    fs::create_dir(&home).unwrap();
    let user = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let user = user.unwrap_or_else(|| Path::new(&std::env::var_os("HOME").unwrap()).join(".cargo"));
    let registry = user.join("registry");
    if registry.exists() {
        std::os::unix::fs::symlink(registry, home.join("registry")).unwrap();
    }
    let build = || {
        let mut script = script(&package, Path::new("/nonexistent"));
        let told = text(&script.env("CARGO_HOME", &home).output().unwrap());
        let image = image(&package, "kernels", "gfx90a");
        let image = fs::read(image).unwrap_or_else(|_| panic!("{told}"));
        (compiles(&package), image, told)
    };
    // The first build fails, and so does the next: what it depends on compiles again only for an older file in the place of one.
    let source = fs::read_to_string(package.at("kernels/src/lib.rs")).unwrap();
    let fail = || {
        package.put("kernels/src/lib.rs", "invalid");
        package.fails(&mut script(&package, Path::new("/nonexistent")));
        package.put("kernels/src/lib.rs", &source);
        time_of_helper(&package)
    };
    fs::rename(package.at("helper/src/lib.rs"), package.at("first.rs")).unwrap();
    package.put("helper/src/lib.rs", &helper(0));
    let failed = fail();
    assert_eq!(fail(), failed);
    fs::rename(package.at("first.rs"), package.at("helper/src/lib.rs")).unwrap();
    let (count, first, _) = build();
    assert!(time_of_helper(&package) != failed);
    assert_eq!(build().0, count);

    // An older file in the place of one, also if a build failed meanwhile.
    fail();
    fs::rename(package.at("old.rs"), package.at("helper/src/lib.rs")).unwrap();
    let (count, older, _) = build();
    assert!(older != first);
    assert_eq!(build().0, count);

    // A file in a folder that a build script names.
    package.put("kernels/data/d/value", "7");
    let (count, other, _) = build();
    assert!(other != older);
    assert_eq!(build().0, count);

    // The settings of the user.
    package.put("home/config.toml", "include = [\"more.toml\"]\n");
    package.put("home/more.toml", "");
    let (_, same, told) = build();
    assert!(told.contains("home/more.toml\n"), "{told}");
    assert!(same == other);
    package.put(
        "home/more.toml",
        "[profile.release]\noverflow-checks = true\n",
    );
    assert!(build().1 != other);

    // A build script that Cargo finds.
    let source = "#![no_std]\npub fn value() -> u32 { if cfg!(more) { 3 } else { 4 } }\n";
    package.put("helper/src/lib.rs", source);
    let (_, before, _) = build();
    package.put(
        "helper/build.rs",
        "fn main() { println!(\"cargo::rustc-cfg=more\"); }\n",
    );
    assert!(build().1 != before);
}

/// Returns when the crate `helper` was compiled.
fn time_of_helper(package: &Package) -> SystemTime {
    let folder = "kernels-src-lib.rs.rust.cargo/amdgcn-amd-amdhsa/release/deps";
    let image = image(package, "kernels", "gfx90a");
    let made = fs::read_dir(image.with_file_name(folder)).unwrap();
    let mut made = made.map(|entry| entry.unwrap().path());
    let is_helper = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("libhelper-") && name.ends_with(".rlib")
    };
    let library = made.find(is_helper).unwrap();
    fs::metadata(library).unwrap().modified().unwrap()
}

/// Puts a kernel `count` with operations of memory, in a package with keys for its module.
fn put_operations(package: &Package, keys: &str, operations: &str) {
    let package_keys = "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\nlanguage = \"rust\"\n\
        crate = \"kernels\"";
    package.put("Cargo.toml", &format!("{package_keys}\n{keys}\n"));
    let start = "#![no_std]\nuse core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::*, compiler_fence, fence};\n\
        use offload_device::{Global, Item, kernel};\nstatic DONE: AtomicU32 = AtomicU32::new(0);\n\
        static LOCK: AtomicBool = AtomicBool::new(false);\nstatic BITS: AtomicU8 = AtomicU8::new(0);\n\
        #[kernel]\npub fn count(item: &Item, y: Global<u32>) {\n";
    package.put(
        "kernels/src/lib.rs",
        &format!("{start}y.set(item, 1);\n{operations}\n}}\n"),
    );
}

/// The back end of LLVM stops with a stack dump.
#[test]
fn hints_at_fences_that_nvidia_gpus_lack() {
    let Some(package) = package() else { return };
    let keys = "targets = [\"compute_80\"]";
    put_operations(&package, keys, "compiler_fence(Release); y.set(item, 2);");
    let mut script = script(&package, Path::new("/nonexistent"));
    // clang writes a report there.
    let error = package.fails(script.env("TMPDIR", package.folder.root()));
    let hint = "hint: LLVM has no `compiler_fence` (C++: `std::atomic_signal_fence`) for NVIDIA GPUs: remove it, or write `fence`\n";
    assert!(error.contains(hint), "{error}");
}

/// LLVM 22 makes such operations relaxed for NVIDIA GPUs.
#[test]
fn refuses_atomic_operations_whose_order_is_lost() {
    let Some(package) = package() else { return };
    let put = |keys: &str, operations: &str| put_operations(&package, keys, operations);
    let script = || script(&package, Path::new("/nonexistent"));
    for (target, operation) in [
        ("compute_80", "DONE.fetch_add(1, AcqRel);"),
        ("compute_80", "while LOCK.fetch_or(true, Acquire) {}"),
        ("compute_80", "BITS.fetch_add(0, Release);"),
        ("compute_60", "while LOCK.swap(true, Acquire) {}"),
        (
            "compute_60",
            "let _ = DONE.compare_exchange(0, 1, AcqRel, Relaxed);",
        ),
        ("compute_60", "DONE.fetch_nand(1, SeqCst);"),
    ] {
        put(&format!("targets = [{target:?}]"), operation);
        let error = package.fails(&mut script());
        let parts = match target {
            "compute_80" => [
                "kernels/src/lib.rs for compute_80: LLVM 22 makes `fetch_add`, `swap` and similar operations of 32 and 64 bits, and \
                 `fetch_and`, `fetch_or` and `fetch_xor` of all sizes, relaxed for NVIDIA GPUs, but another order is asked for in `count`\n",
                "or install clang 23 or newer",
            ],
            _ => [
                "kernels/src/lib.rs for compute_60: LLVM makes `compare_exchange`, `fetch_add`, `swap` and similar operations relaxed for \
                 NVIDIA GPUs before `sm_70`, but another order is asked for in `count`\n",
                "or leave out targets before `sm_70`",
            ],
        };
        for part in parts
            .into_iter()
            .chain(["hint: write `fence(Release)` before"])
        {
            assert!(error.contains(part), "{operation}: {part}\n{error}");
        }
    }
    // A byte is exchanged by a loop, which has the order. Without optimization, rustc compiles operations for all orders.
    let operations = "fence(Release); DONE.fetch_add(1, Relaxed); fence(Acquire);\n\
        let _ = DONE.compare_exchange(0, 1, Relaxed, Relaxed);";
    for (keys, more, expected) in [
        (
            "targets = [\"compute_80\"]",
            "LOCK.swap(true, Acquire); BITS.fetch_add(1, AcqRel); DONE.fetch_nand(1, AcqRel);\n\
             let _ = DONE.compare_exchange(0, 1, AcqRel, Acquire);",
            "fence.acq_rel.sys;",
        ),
        (
            "targets = [\"compute_60\"]\nopt-level = 0",
            "let _ = LOCK.compare_exchange(false, true, AcqRel, Acquire);",
            "membar.sys;",
        ),
    ] {
        put(keys, &format!("{operations}\n{more}"));
        text(&script().output().unwrap());
        let target = keys.split('"').nth(1).unwrap();
        let ptx = fs::read_to_string(image(&package, "kernels", target)).unwrap();
        let mut words = ptx.split_whitespace();
        let is_order = |word: &&str| {
            ["fence.", "membar.", "atom."]
                .iter()
                .any(|start| word.starts_with(start))
        };
        let order: Vec<&str> = words.by_ref().filter(is_order).take(3).collect();
        assert_eq!(order, [expected, "atom.global.add.u32", expected]);
    }
}

/// Crates that one package compiled for a sysroot must fit the one that another package makes in its place.
#[test]
fn makes_one_sysroot_whatever_package_makes_it() {
    let Some(package) = package() else { return };
    declare(&package, &["gfx90a"], "");
    let mut plan = script(&package, Path::new("/nonexistent"));
    let plan = plan.env("OFFLOAD_DRY_RUN", "1").output().unwrap();
    let plan = String::from_utf8(plan.stderr).unwrap();
    let line = plan
        .lines()
        .find(|line| line.contains(" --crate-name core "));
    let (line, _) = line.unwrap().rsplit_once(' ').unwrap();
    // A crate that is compiled at once, in place of `core`, to a folder of its own.
    package.put("core.rs", "#![feature(no_core)]\n#![no_core]\n");
    let mut words = line.split(['=', ',', ' ']);
    let list = words.find(|word| word.ends_with(".part")).unwrap();
    let folder = Path::new(list).parent().unwrap().display().to_string();
    let made = package.at("made");
    let line = line.replace(&folder, &made.display().to_string());
    let line = format!("{line} {})", package.at("core.rs").display());
    fs::create_dir(&made).unwrap();
    let crates = ["", "kernels"].map(|name| {
        let mut shell = Command::new("sh");
        run(shell.args(["-c", &line]).current_dir(package.at(name)));
        fs::read(made.join("libcore-offload.rlib")).unwrap()
    });
    assert!(crates[0] == crates[1]);
}

#[test]
fn explains_functions_that_no_crate_defines() {
    let Some(package) = package() else { return };
    package.put(
        "kernels/src/lib.rs",
        "#![no_std]\nuse offload_device::{Global, Item, kernel};\nunsafe extern \"C\" { safe fn lacking(x: u32) -> u32; }\n\
         #[kernel]\npub fn calls(item: &Item, y: Global<u32>) {\n    y.set(item, lacking(1));\n}\n",
    );
    for target in ["gfx90a", "compute_80"] {
        package.put(
            "Cargo.toml",
            &format!(
                "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\nlanguage = \"rust\"\ncrate = \"kernels\"\n\
                 targets = [\"{target}\"]\n"
            ),
        );
        let error = package.fails(&mut script(&package, Path::new("/nonexistent")));
        for part in [
            "lacking",
            "[OFF701]",
            "an `extern` block alone defines no function",
        ] {
            assert!(error.contains(part), "{part}\n{error}");
        }
    }
}

/// Errors in the crate of kernels: rustc's own words, and hints.
fn shows_messages_of_rustc(package: &Package, cuda: &Path, source: &str) {
    let rows = [
        (
            source.replace("let mut sum = 0.0;", "let mut sum = nothing;"),
            &[
                "crate kernels for gfx90a: `cargo` failed (exit status: 101)\nerror[E0425]: cannot find value `nothing` in this scope\n",
                "^^^^^^^ ",
                "also for sm_80\n",
                "command: RUSTC=/usr/bin/rustc RUSTC_WRAPPER='' ",
            ][..],
        ),
        (
            source.replace("#![no_std]", ""),
            &[
                "can't find crate for `std`",
                "hint: kernels have no `std`: write `#![no_std]` at the top of the crate",
            ],
        ),
        (
            source.replace("a: f32, x: &[f32]", "a: bool, x: &[f32]"),
            &[
                "`bool` cannot be an argument of a kernel",
                "pass a `bool` as `u8`",
            ],
        ),
        (
            source.replace("#![no_std]", "#![no_std]\nextern crate alloc;"),
            &[
                "can't find crate for `alloc`",
                "hint: kernels have no heap: use arrays",
            ],
        ),
        (
            source.replace("a: f32, x: &[f32]", "a: f32, x: &mut [f32]"),
            &["`&mut [f32]` cannot be an argument of a kernel"],
        ),
    ];
    for (text, expected) in support::share(rows, 0, 2) {
        package.put("kernels/src/lib.rs", &text);
        let error = package.fails(&mut script(package, cuda));
        for part in expected {
            assert!(error.contains(part), "{part}\n{error}");
        }
        // An invalid type is one error, of the whole type: the entry names the type more than once.
        let count = error.matches("cannot be an argument of a kernel").count();
        assert_eq!(
            count,
            usize::from(text.contains("a: bool") || text.contains("x: &mut [f32]")),
            "{error}"
        );
    }
    // In color if Cargo was asked for it. Both errors of the source come once for both targets.
    package.put(
        "kernels/src/lib.rs",
        &source.replace("let mut sum = 0.0;", "let mut sum = nothing;"),
    );
    let mut colored = script(package, cuda);
    let error = package.fails(colored.env("CARGO_TERM_COLOR", "always"));
    assert!(error.contains("\x1b["), "{error:?}");
    assert_eq!(error.matches("E0425]").count(), 2, "{error:?}");
    assert!(error.contains("also for sm_80\n"), "{error:?}");
    // A warning reaches Cargo, whole.
    let unused = source.replace("let place =", "let unused = 1;\n    let place =");
    package.put("kernels/src/lib.rs", &unused);
    let told = text(&script(package, cuda).output().unwrap());
    assert!(
        told.contains("cargo::warning=warning: unused variable: `unused`\n"),
        "{told}"
    );
    assert!(told.contains("let unused = 1;"), "{told}");
    assert!(!told.contains('\x1b'), "{told:?}");
    // Kept with the bitcode: another color setting compiles nothing again.
    package.put("kernels/src/lib.rs", &format!("{unused}\n"));
    let colored = text(
        &script(package, cuda)
            .env("CARGO_TERM_COLOR", "always")
            .output()
            .unwrap(),
    );
    assert!(colored.contains("\x1b["), "{colored:?}");
    let starts = compiles(package);
    let plain = text(&script(package, cuda).output().unwrap());
    assert!(
        plain.contains("cargo::warning=warning: unused variable: `unused`\n"),
        "{plain}"
    );
    assert!(!plain.contains('\x1b'), "{plain:?}");
    assert_eq!(compiles(package), starts);
}
