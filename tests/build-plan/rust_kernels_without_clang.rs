//! Kernels in Rust for AMD GPUs where no clang reads the bitcode of rustc: linked by lld.

use crate::support;

use crate::rust_kernels::{HARD, KERNELS, declare, image, package, root, script};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::comgr::comgr;
use support::package::{Package, text};
use support::{run, tool};

const TARGETS: [&str; 3] = ["gfx90a", "gfx1100", "gfx90a:sramecc-:xnack+"];

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

/// A toolchain as rustup installs it: Debian's rustc, with an lld.
fn toolchain(package: &Package, lld: &Path) -> PathBuf {
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let root = package.at("toolchain");
    let bin = root.join("lib/rustlib").join(host).join("bin");
    fs::create_dir_all(&bin).unwrap();
    symlink(lld, bin.join("rust-lld")).unwrap();
    symlink("/usr/lib/rustlib/src", root.join("lib/rustlib/src")).unwrap();
    let rustc = format!(
        "#!/bin/sh\ncase \"$*\" in\n'--print sysroot --print target-list') echo '{}'; exec /usr/bin/rustc --print target-list ;;\n\
         *) exec /usr/bin/rustc \"$@\" ;;\nesac\n",
        root.display()
    );
    package.put("toolchain/bin/rustc", &rustc);
    let path = package.at("toolchain/bin/rustc");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Lld's images are those of clang, so that all that is checked of these holds for them: symbols, kernels, instructions, limits.
#[test]
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
    for level in ["1", "\"s\"", "3"] {
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
        println!("skipped: no rust-lld of LLVM 22 or newer");
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
    build(&package, &none, Some(&toolchain(&package, &lld)));
    let path = image(&package, "kernels", "gfx90a");
    assert!(kept != fs::read(&path).unwrap());
    let after = described(&path);
    assert_eq!(names(&after), before);
    let symbols = run(Command::new("llvm-readelf-22").arg("-sW").arg(&path));
    assert!(!symbols.contains("__offload_"), "{symbols}");
}

/// LLVM 19 makes it, so that every release from 19 on reads it. `UPDATE_GOLDENS=1` writes it.
#[test]
fn has_the_bitcode_of_its_functions() {
    let Some(assembler) = tool("llvm19", &["llvm-as"]) else {
        return;
    };
    let folder = root().join("offload-build/rust");
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
        "offload-build/rust/amdgpu.bc was made of another text than amdgpu.ll, or not by llvm-as 19.1.7: UPDATE_GOLDENS=1 writes \
         it with {version}"
    );
}
