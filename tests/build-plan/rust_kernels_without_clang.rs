//! Kernels in Rust where no clang reads the bitcode of rustc: linked by lld for AMD GPUs, by LLVM's tools for NVIDIA GPUs.

use crate::support;

use crate::rust_kernels::{
    HARD, KERNELS, between_barriers, cpp, declare, expect_signatures, image, nvidia_matmul,
    package, root, script,
};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::comgr::comgr;
use support::cuda_package::cuda;
use support::package::{Package, text};
use support::{run, tool};

const TARGETS: [&str; 3] = ["gfx90a", "gfx1100", "gfx908:sramecc-:xnack+"];

/// Returns the images of a module in the order of [`TARGETS`].
fn images(package: &Package, module: &str) -> [PathBuf; 3] {
    TARGETS.map(|target| image(package, module, &target.replace(':', "-")))
}

/// Returns what AMD's runtime reads of an image: symbols with their places and sizes, and each kernel's arguments, limits,
/// registers and memory.
fn described(image: &Path) -> String {
    let mut readelf = Command::new("llvm-readelf-22");
    run(readelf.args(["--notes", "--dyn-syms"]).arg(image))
}

/// Returns how the kernels of a PTX file, its functions and their parameters are declared.
fn declared(ptx: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(ptx).unwrap();
    let declares = |line: &&str| {
        let words = [".visible ", ".func ", ".param ", ".maxntid ", ".shared "];
        words.iter().any(|word| line.starts_with(word))
    };
    let lines = text.lines().map(str::trim).filter(declares);
    // A function may be declared before its definition, where a parenthesis follows. Comments name what is beside it.
    let lines = lines.map(|line| line.split("//").next().unwrap_or(line).trim());
    lines
        .map(|line| line.trim_end_matches('(').to_owned())
        .collect()
}

/// A folder for `PATH` without clang: the host's linker, for Cargo, and what `links` name.
fn tools(package: &Package, name: &str, links: &[(&str, &str)]) -> PathBuf {
    let folder = package.at(name);
    fs::create_dir_all(&folder).unwrap();
    let host = ["cc", "ld", "as"].map(|tool| (tool, format!("/usr/bin/{tool}")));
    let host = host.iter().map(|(name, path)| (*name, path.as_str()));
    for (name, path) in host.chain(links.iter().copied()) {
        symlink(path, folder.join(name)).unwrap();
    }
    folder
}

/// Builds with programs of one folder.
fn build(package: &Package, path: &Path, rustc: Option<&Path>) {
    let mut script = script(package, Path::new("/nonexistent"));
    script.env("PATH", path);
    if let Some(rustc) = rustc {
        script.env("OFFLOAD_RUSTC", rustc);
    }
    let told = text(&script.output().unwrap());
    assert!(!told.contains("cargo::warning"), "{told}");
}

/// Returns the lld of a Rust toolchain that reads the bitcode of Debian's rustc. It finds its LLVM beside itself.
fn rust_lld() -> Option<PathBuf> {
    let rustc = Path::new(env!("CARGO")).with_file_name("rustc");
    let version = run(Command::new(&rustc).arg("-vV"));
    let value = |name: &str| version.lines().find_map(|line| line.strip_prefix(name));
    let llvm: u32 = value("LLVM version: ")?.split('.').next()?.parse().ok()?;
    let sysroot = run(Command::new(&rustc).args(["--print", "sysroot"]));
    let bin = format!("lib/rustlib/{}/bin/rust-lld", value("host: ")?);
    let lld = Path::new(sysroot.trim()).join(bin);
    (llvm >= 22 && lld.is_file()).then_some(lld)
}

/// A toolchain as rustup installs it: Debian's rustc, with programs of LLVM.
fn toolchain(package: &Package, programs: &[(&str, &Path)]) -> PathBuf {
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let root = package.at("toolchain");
    let bin = root.join("lib/rustlib").join(host).join("bin");
    fs::create_dir_all(&bin).unwrap();
    for (name, program) in programs {
        symlink(program, bin.join(name)).unwrap();
    }
    symlink("/usr/lib/rustlib/src", root.join("lib/rustlib/src")).unwrap();
    let rustc = format!(
        "#!/bin/sh\ncase \"$*\" in\n'--print sysroot --print target-list') echo '{}'; exec /usr/bin/rustc --print target-list ;;\n\
         *) exec /usr/bin/rustc \"$@\" ;;\nesac\n",
        root.display()
    );
    package.put("toolchain/bin/rustc", &rustc);
    package.at("toolchain/bin/rustc")
}

/// Lld's images are those of clang, so that all that is checked of these holds for them: symbols, kernels, instructions, limits.
#[test]
#[ignore = "`make test-all`: seven builds; `makes_the_images_of_clang_for_nvidia` is shorter"]
fn makes_the_images_of_clang() {
    let Some(package) = package() else { return };
    let Some(lld) = tool("llvm22", &["ld.lld"]) else {
        return;
    };
    let lld = lld.canonicalize().unwrap().display().to_string();
    let clang = fs::canonicalize("/usr/lib/llvm-22/bin/clang").unwrap();
    let clang = clang.display().to_string();
    let lld_alone = tools(&package, "lld", &[("ld.lld", &lld)]);
    let both = tools(&package, "both", &[("ld.lld", &lld), ("clang-22", &clang)]);
    let none = tools(&package, "none", &[]);
    let read = |module| images(&package, module).map(|path| fs::read(path).unwrap());
    // At 1 nothing is inlined but what must be; `s` is no number.
    for level in ["1", "3", "\"s\""] {
        declare(&package, &TARGETS, &format!("opt-level = {level}\n"));
        build(&package, &both, None);
        let (kernels, hard) = (
            read("kernels"),
            images(&package, "hard").map(|path| described(&path)),
        );
        build(&package, &lld_alone, None);
        for (target, (own, clangs)) in TARGETS.iter().zip(read("kernels").iter().zip(&kernels)) {
            assert!(own == clangs, "{level} {target}");
        }
        // LTO has functions and uses in another order. With many of them, some registers have other numbers.
        assert_eq!(images(&package, "hard").map(|path| described(&path)), hard);
    }
    for (module, kernels) in [("kernels", &KERNELS[..]), ("hard", &HARD[..])] {
        for target in ["gfx90a", "gfx1100"] {
            let mut expected: Vec<String> =
                kernels.iter().map(|name| format!("{name}.kd")).collect();
            expected.sort();
            if let Some(told) = comgr(&package, &image(&package, module, target)) {
                let mut told: Vec<&str> = told.lines().collect();
                told.sort_unstable();
                assert_eq!(told, expected);
            }
        }
    }

    // rustup's lld is of another LLVM than clang: a section names it, and instructions may differ. Its images have the
    // same kernels, and no trace of our functions.
    let Some(lld) = rust_lld() else {
        support::skip("rustlld", "rust-lld of LLVM 22 or newer");
        return;
    };
    let names = |text: &str| {
        let is_name = |line: &&str| {
            line.contains(".symbol:")
                || line.contains(".value_kind:")
                || line.contains("workgroup_size:")
        };
        let lines = text.lines().map(str::trim).filter(is_name);
        lines.map(str::to_owned).collect::<Vec<String>>()
    };
    let before = names(&described(&image(&package, "kernels", "gfx90a")));
    let kept = fs::read(image(&package, "kernels", "gfx90a")).unwrap();
    build(
        &package,
        &none,
        Some(&toolchain(&package, &[("rust-lld", &lld)])),
    );
    let path = image(&package, "kernels", "gfx90a");
    assert!(kept != fs::read(&path).unwrap());
    let after = described(&path);
    assert_eq!(names(&after), before);
    expect_signatures(&path, &KERNELS);
}

/// Kernels whose work-items all take the same branches. Each index has a check, and its panic is a trap.
const UNIFORM: &str = "#![no_std]
use offload_device::{Global, Item, kernel};

#[kernel]
pub fn total(_item: &Item<(), 1>, x: &[u32], y: Global<u32>) {
    y.atomic_store(0, x[0] + x[1]);
}

#[kernel]
pub fn rows(item: &Item<(), 1>, starts: &[u32], columns: &[u32], x: &[u32], y: Global<u32>) {
    let row = item.group_id(0);
    let mut sum = 0;
    for i in starts[row] as usize..starts[row + 1] as usize {
        sum += x[columns[i] as usize];
    }
    y.atomic_store(row, sum);
}
";

/// LLVM 22 fails at such kernels for gfx1100 to gfx1103 and gfx11-generic, unless the trap is in a function of its own.
#[test]
fn makes_images_of_kernels_with_several_traps() {
    let Some(package) = package() else { return };
    let Some(lld) = tool("llvm22", &["ld.lld"]) else {
        return;
    };
    let lld = lld.canonicalize().unwrap().display().to_string();
    let clang = fs::canonicalize("/usr/lib/llvm-22/bin/clang").unwrap();
    let clang = clang.display().to_string();
    let with_clang = tools(&package, "both", &[("ld.lld", &lld), ("clang-22", &clang)]);
    let lld_alone = tools(&package, "lld", &[("ld.lld", &lld)]);
    package.put("kernels/src/lib.rs", UNIFORM);
    for level in ["0", "3"] {
        let manifest = "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\nlanguage = \"rust\"\ncrate = \"kernels\"\n\
            targets = [\"gfx90a\", \"gfx1100\", \"gfx11-generic\"]\n";
        package.put("Cargo.toml", &format!("{manifest}opt-level = {level}\n"));
        for path in [&with_clang, &lld_alone] {
            build(&package, path, None);
            for target in ["gfx1100", "gfx11-generic", "gfx90a"] {
                let mut objdump = Command::new("llvm-objdump-22");
                let code = run(objdump.arg("-d").arg(image(&package, "kernels", target)));
                // The trap stops the work-item, and each kernel has a way there.
                let [traps, halts] = ["s_trap", "s_sethalt"].map(|word| code.matches(word).count());
                match target {
                    "gfx90a" => assert!(traps >= 2 && !code.contains("offl.trap"), "{code}"),
                    _ => assert_eq!((traps, halts), (1, 1), "{target}: {code}"),
                }
                let calls = code.matches("s_swappc_b64").count();
                assert!(target == "gfx90a" || calls >= 2, "{target}: {code}");
                let path = image(&package, "kernels", target);
                expect_signatures(&path, &["rows", "total"]);
                // The call needs no memory that the runtime would have to guess.
                let notes = described(&image(&package, "kernels", target));
                let [stacks, unknown] = [": false", ": true"].map(|value| {
                    notes
                        .matches(&format!(".uses_dynamic_stack{value}"))
                        .count()
                });
                assert_eq!((stacks, unknown), (2, 0), "{target}: {notes}");
            }
        }
    }
}

/// Builds for NVIDIA GPUs with programs of one folder; returns what the script says.
fn build_for_nvidia(package: &Package, cuda: &Path, path: &Path, rustc: &Path) -> String {
    let mut script = script(package, cuda);
    script.env("PATH", path).env("OFFLOAD_RUSTC", rustc);
    text(&script.output().unwrap())
}

/// Returns the folder of rustup's newest toolchain with the component `llvm-tools` of LLVM 22 or newer.
fn rustup_tools() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO")).ancestors().nth(2)?;
    let toolchains = fs::read_dir(root.parent()?).ok()?;
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let bin = |entry: fs::DirEntry| entry.path().join("lib/rustlib").join(&host).join("bin");
    let reads = |bin: &PathBuf| {
        let llc = bin.join("llc");
        llc.is_file() && run(Command::new(llc).arg("--version")).contains("LLVM version 22.")
    };
    toolchains.flatten().map(bin).filter(reads).max()
}

const PROGRAMS: [&str; 3] = ["llc", "opt", "llvm-link"];

/// The images are those of clang of the same release, byte by byte, so that all that is checked of these holds for them: symbols,
/// kernels, instructions, limits. In PTX of many functions these have another order.
#[test]
fn makes_the_images_of_clang_for_nvidia() {
    let (Some(cuda), Some(package)) = (cuda(), package()) else {
        return;
    };
    let rustc = Path::new("/usr/bin/rustc");
    let mut links = Vec::new();
    for program in PROGRAMS {
        let Some(path) = tool("llvm22", &[program]) else {
            return;
        };
        let path = path.canonicalize().unwrap().display().to_string();
        links.push((format!("{program}-22"), path));
    }
    let links = links.iter().map(|(name, path)| (&**name, &**path));
    let links: Vec<(&str, &str)> = links.collect();
    let clang = fs::canonicalize("/usr/lib/llvm-22/bin/clang").unwrap();
    let clang = clang.display().to_string();
    let alone = tools(&package, "alone", &links);
    let both = tools(
        &package,
        "both",
        &[&links[..], &[("clang-22", &clang)]].concat(),
    );
    let targets = ["sm_80", "compute_80"];
    // `s` is no number.
    for level in support::share(["\"s\"", "3"], 1, 2) {
        declare(&package, &targets, &format!("opt-level = {level}\n"));
        let read = || targets.map(|target| fs::read(image(&package, "kernels", target)).unwrap());
        let hard = || declared(&image(&package, "hard", "compute_80"));
        build_for_nvidia(&package, &cuda, &both, rustc);
        let theirs = (read(), hard());
        let told = build_for_nvidia(&package, &cuda, &alone, rustc);
        assert!(!told.contains("cargo::error"), "{told}");
        for (target, (own, theirs)) in targets.iter().zip(read().iter().zip(&theirs.0)) {
            assert!(own == theirs, "{level} {target}");
        }
        // The order of functions differs, and with it that of a few instructions.
        assert_eq!(hard(), theirs.1, "{level}");
    }
}

/// rustup's tools are of another LLVM than clang: instructions may differ. Their images have the same kernels, a loop not
/// longer than that of C++, and no trace of our functions.
#[test]
fn makes_the_kernels_of_clang_for_nvidia_with_rustups_tools() {
    let (Some(cuda), Some(package)) = (cuda(), package()) else {
        return;
    };
    let Some(folder) = rustup_tools() else {
        support::skip(
            "llvmtools",
            "llvm-tools of LLVM 22 in a toolchain of rustup",
        );
        return;
    };
    declare(&package, &["sm_80", "compute_80"], "opt-level = 3\n");
    let none = tools(&package, "none", &[]);
    let programs = PROGRAMS.map(|name| (name, folder.join(name)));
    let programs = programs.iter().map(|(name, path)| (*name, path.as_path()));
    let rustc = toolchain(&package, &programs.collect::<Vec<_>>());
    let told = build_for_nvidia(&package, &cuda, &none, &rustc);
    assert!(!told.contains("cargo::error"), "{told}");
    for (module, kernels) in [("kernels", &KERNELS[..]), ("hard", &HARD[..])] {
        let ptx = fs::read_to_string(image(&package, module, "compute_80")).unwrap();
        let visible = ptx
            .lines()
            .filter_map(|line| line.strip_prefix(".visible "));
        let visible = visible.map(|line| line.split('[').next().unwrap_or(line));
        let mut visible: Vec<&str> = visible.collect();
        visible.sort_unstable();
        let entries = kernels.iter().map(|name| format!(".entry {name}("));
        let signatures = kernels
            .iter()
            .map(|name| format!(".global .align 1 .b8 __offload_signature${name}"));
        assert_eq!(visible, entries.chain(signatures).collect::<Vec<_>>());
        assert_eq!(ptx.matches("__offload_").count(), kernels.len(), "{ptx}");
        expect_signatures(&image(&package, module, "sm_80"), kernels);
    }
    let ptx = image(&package, "kernels", "sm_80").with_extension("s");
    let counts = [&ptx, &cpp(&package, "sm_80")].map(|ptx| between_barriers(&nvidia_matmul(ptx)));
    assert!(counts[0] <= counts[1] && counts[0] > 40, "{counts:?}");
    let ptx = fs::read_to_string(&ptx).unwrap();
    assert_eq!(ptx.matches(".maxntid 256").count(), 2);
}

/// LLVM 19 makes it, so that every release from 19 on reads it. `UPDATE_GOLDENS=1` writes it.
#[test]
fn has_the_bitcode_of_its_functions() {
    let Some(assembler) = tool("llvm19", &["llvm-as"]) else {
        return;
    };
    let folder = root().join("offload-build/core/rust");
    let made = tempfile::NamedTempFile::new().unwrap();
    run(Command::new(&assembler)
        .current_dir(&folder)
        .args(["amdgpu.ll", "-o"])
        .arg(made.path()));
    let made = fs::read(made.path()).unwrap();
    let path = folder.join("amdgpu.bc");
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let version = run(Command::new(&assembler).arg("--version"));
    assert!(
        made == fs::read(path).unwrap(),
        "offload-build/core/rust/amdgpu.bc was made of another text than amdgpu.ll, or not by llvm-as 19.1.7: UPDATE_GOLDENS=1 writes \
         it with {version}"
    );
}

/// gfx90a has an instruction for every atomic operation; a loop of compare-exchange is what LLVM makes where the text does not say
/// that the memory is on the GPU.
#[test]
fn has_an_instruction_for_every_atomic_operation() {
    let Some(clang) = tool("llvm22", &["clang-22", "clang"]) else {
        return;
    };
    let code = run(Command::new(clang)
        .current_dir(root().join("offload-build/core/rust"))
        .args(["--target=amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-nogpulib"])
        .args(["-O2", "-S", "amdgpu.ll", "-o", "-"]));
    let atomics = code.lines().map(str::trim_start);
    let atomics: Vec<&str> = atomics
        .filter(|line| line.starts_with("global_atomic_"))
        .collect();
    let is_exchange = |line: &&&str| line.starts_with("global_atomic_cmpswap");
    // One of 4 bytes and one of 8, as the text has them.
    assert_eq!(atomics.iter().filter(is_exchange).count(), 2, "{code}");
    assert_eq!(atomics.len(), 28, "{code}");
}
