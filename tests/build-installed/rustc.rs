//! The rustc and the clang of a crate of kernels: scripts in place of rustc, and dry runs.

use crate::support;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use support::package::Package;

const KEYS: &str =
    "language = \"rust\"\ncrate = \"kernels\"\ntargets = [\"gfx90a\", \"compute_80\"]\n";

/// A package with a crate of kernels, and the clangs of these releases.
fn package(keys: &str, releases: &[&str]) -> Option<Package> {
    support::tool("llvm22", &["clang-22", "clang"])?;
    let package = Package::new("")?;
    package.declare(keys);
    package.put("kernels/Cargo.toml", "[package]\nname = \"my-kernels\"\n");
    package.put("kernels/src/lib.rs", "#![no_std]\n");
    fs::create_dir_all(package.at("bin")).unwrap();
    for release in releases {
        let real = format!("/usr/lib/llvm-{release}/bin/clang");
        symlink(real, package.at("bin").join(format!("clang-{release}"))).unwrap();
    }
    Some(package)
}

/// Puts a script that answers as the rustc of a release; its sysroot is the folder beside it.
fn rustc(package: &Package, name: &str, release: &str, targets: &str, has_sources: bool) {
    let root = package.at(&format!("{name}-root"));
    let script = format!(
        "#!/bin/sh\ncase $1 in\n-vV) printf 'rustc {release} (x)\\nhost: {HOST}\\nrelease: {release}\\nLLVM version: 22.1.8\\n' ;;\n\
         *) printf '%s\\n' '{}' {targets} ;;\nesac\n",
        root.display()
    );
    package.put(name, &script);
    if has_sources {
        package.put(
            &format!("{name}-root/lib/rustlib/src/rust/library/core/src/lib.rs"),
            "",
        );
    }
}

const HOST: &str = "x86_64-unknown-linux-gnu";

const BOTH: &str = "amdgcn-amd-amdhsa nvptx64-nvidia-cuda";

/// A dry run.
fn script(package: &Package) -> Command {
    let mut script = package.script();
    script
        .env("OFFLOAD_DRY_RUN", "1")
        .env_remove("OFFLOAD_COMPILER")
        .env("PATH", package.at("bin"));
    script
}

fn plan(script: &mut Command) -> String {
    String::from_utf8(script.output().unwrap().stderr).unwrap()
}

#[test]
fn says_why_a_rustc_compiles_no_kernels() {
    let Some(package) = package(KEYS, &["22"]) else {
        return;
    };
    rustc(&package, "old/rustc", "1.95.0", BOTH, true);
    rustc(&package, "amd/rustc", "1.96.0", "amdgcn-amd-amdhsa", true);
    rustc(&package, "bare/rustc", "1.96.0", BOTH, false);
    rustc(&package, "toolchains/bare/rustc", "1.96.0", BOTH, false);
    package.put("other/rustc", "#!/bin/sh\necho hello\n");
    package.put("broken/rustc", "#!/bin/sh\nexit 3\n");
    let missing = |root: &str| {
        format!(
            "has no library sources: `{root}-root/lib/rustlib/src/rust/library/core` is missing"
        )
    };
    let rows = [
        (
            "old/rustc",
            "is Rust 1.95.0: kernels need 1.96 or newer, because older releases can miscompile barriers".to_owned(),
        ),
        (
            "amd/rustc",
            "does not know the target `nvptx64-nvidia-cuda`".to_owned(),
        ),
        (
            "bare/rustc",
            missing("bare/rustc") + " (Debian, Ubuntu: `apt install rust-src`, `rust-web-src` or `rust-1.97-src`, as the rustc)",
        ),
        (
            "toolchains/bare/rustc",
            missing("toolchains/bare/rustc") + " (`rustup component add rust-src` adds them)",
        ),
        ("other/rustc", "is not a rustc: its version is `hello`".to_owned()),
        (
            "broken/rustc",
            "does not print its version: `broken/rustc` failed (exit status: 3)".to_owned(),
        ),
        ("absent/rustc", String::new()),
    ];
    let tail = " [OFF608]\nhint: install Rust 1.96 or newer with the sources of its library (Debian, Ubuntu: `apt install rustc rust-src`; \
         Debian 12, 13: `apt install rustc-web rust-web-src`; Ubuntu 24.04, 26.04: `apt install rustc-1.97 rust-1.97-src`; rustup: `rustup update stable && rustup component add rust-src`; Arch: `pacman -S rust rust-src`); or name another rustc with \
         `compiler` or OFFLOAD_RUSTC; or build without device code: OFFLOAD_MISSING=stub";
    let start = "module `kernels`: no rustc for its kernels: ";
    for (name, reason) in rows {
        let error = package.fails(script(&package).env("OFFLOAD_RUSTC", package.at(name)));
        let reason = match reason.as_str() {
            "" => "(OFFLOAD_RUSTC) is not an executable file".to_owned(),
            reason => format!("(OFFLOAD_RUSTC) {reason}"),
        };
        assert_eq!(error, format!("{start}`{name}` {reason}{tail}"));
        package.declare(&format!("{KEYS}compiler = \"{name}\"\n"));
        let error = package.fails(&mut script(&package));
        let reason = reason.replace("(OFFLOAD_RUSTC)", "(Cargo.toml:8:1: `compiler`)");
        assert_eq!(error, format!("{start}`{name}` {reason}{tail}"));
        package.declare(KEYS);
    }
}

#[test]
fn needs_a_clang_that_reads_the_bitcode_of_the_rustc() {
    let Some(package) = package(KEYS, &["19"]) else {
        return;
    };
    rustc(&package, "new/rustc", "1.97.1", BOTH, true);
    let mut script = script(&package);
    let error = package.fails(script.env("OFFLOAD_RUSTC", package.at("new/rustc")));
    let expected = "module `kernels`: no clang reads the bitcode of `new/rustc`, Rust 1.97.1 with LLVM 22: found `bin/clang-19` \
                    (LLVM 19); no lld reads it: found none in PATH or in the Rust toolchain; no `llc` with `opt` and `llvm-link` reads it: found \
                    none in PATH or in the Rust toolchains [OFF610]\nhint: install clang (Debian, Ubuntu: `apt install clang-22 lld-22 llvm-22`; ";
    assert!(error.starts_with(expected), "{error}");
    fs::remove_file(package.at("bin/clang-19")).unwrap();
    let error = package.fails(&mut script);
    assert!(
        error.contains("with LLVM 22: found none in PATH; no lld reads it: "),
        "{error}"
    );
}

/// Puts a script that answers as an lld, or as another linker.
fn linker(package: &Package, name: &str, answer: &str) {
    package.put(name, &format!("#!/bin/sh\necho '{answer}'\n"));
}

/// The clangs, and linkers with their answers; then the linker of the images for AMD GPUs, or the reason why there is none.
#[test]
fn links_for_amd_by_lld_where_no_clang_reads_the_bitcode() {
    const OWN: &str = "new/rustc-root/lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld";
    let old = (
        "bin/ld.lld-21",
        "Debian LLD 21.1.0 (compatible with GNU linkers)",
    );
    let new = ("bin/ld.lld", "LLD 22.1.8 (compatible with GNU linkers)");
    let newer = ("bin/ld.lld-23", "LLD 23.1.0 (compatible with GNU linkers)");
    let own = (
        OWN,
        "LLD 22.1.2 (/checkout/llvm 1cb4e38) (compatible with GNU linkers)",
    );
    let mold = ("bin/ld.lld", "mold 2.40.0 (compatible with GNU ld)");
    type Row<'a> = (
        &'a [&'a str],
        &'a [(&'a str, &'a str)],
        Result<&'a str, &'a str>,
    );
    let rows: [Row<'_>; 8] = [
        // clang of a fitting release comes first.
        (&["22"], &[own, new], Ok("bin/clang-22 ")),
        // Then the lld of the Rust toolchain, then the newest.
        (&["19"], &[own, newer], Ok("rust-lld -flavor gnu -shared ")),
        (&[], &[own], Ok("rust-lld -flavor gnu -shared ")),
        (&[], &[old, new, newer], Ok("bin/ld.lld-23 -shared ")),
        (&["19"], &[old, new], Ok("bin/ld.lld -shared ")),
        (
            &[],
            &[],
            Err("found none in PATH; no lld reads it: found none in PATH or in the Rust toolchain"),
        ),
        (
            &["19"],
            &[old],
            Err("found `bin/clang-19` (LLVM 19); no lld reads it: found `bin/ld.lld-21` (LLVM 21)"),
        ),
        (
            &[],
            &[mold],
            Err(
                "found none in PATH; no lld reads it: found `bin/ld.lld` (says `mold 2.40.0 (compatible with GNU ld)`)",
            ),
        ),
    ];
    for (clangs, linkers, expected) in rows {
        let Some(package) = package(&KEYS.replace(", \"compute_80\"", ""), clangs) else {
            return;
        };
        rustc(&package, "new/rustc", "1.97.1", BOTH, true);
        for (name, answer) in linkers {
            linker(&package, name, answer);
        }
        let mut script = script(&package);
        script.env("OFFLOAD_RUSTC", package.at("new/rustc"));
        match expected {
            Ok(program) => {
                let plan = plan(&mut script);
                // The copy, the join and the link.
                let lines = plan.lines().filter(|line| line.contains(program));
                assert_eq!(
                    lines.count(),
                    if program.contains("clang") { 4 } else { 3 },
                    "{plan}"
                );
                let has_clang = plan.lines().any(|line| line.contains("bin/clang-"));
                assert_eq!(has_clang, program.contains("clang"), "{plan}");
            }
            Err(reason) => {
                let error = package.fails(&mut script);
                let start = "module `kernels`: no clang reads the bitcode of `new/rustc`, Rust 1.97.1 with LLVM 22: ";
                let hint = " [OFF610]\nhint: install clang (Debian, Ubuntu: `apt install clang-22 lld-22 llvm-22`; ";
                assert!(
                    error.starts_with(&format!("{start}{reason}{hint}")),
                    "{error}"
                );
                let end = "; for AMD GPUs alone, install an lld of that LLVM or newer (Debian, Ubuntu: `apt install lld-22`; \
                           Fedora: `dnf install lld`; Arch: `pacman -S lld`; conda-forge: `conda install lld`; rustup: \
                           `rustup toolchain install stable`); or name another clang with OFFLOAD_COMPILER; \
                           or build without device code: OFFLOAD_MISSING=stub";
                assert!(error.ends_with(end), "{error}");
            }
        }
    }
}

/// Puts scripts that answer as the tools of an LLVM which knows `sm_80` alone; the name of `llc` may have a suffix.
fn llvm_tools(package: &Package, llc: &str, version: &str, back_end: &str) {
    let script = format!(
        "#!/bin/sh\ncase $1 in\n--version) printf 'LLVM (http://llvm.org/):\\n  {version}\\n  Registered Targets:\\n    {back_end} - x\\n' ;;\n\
         -march=nvptx64) printf 'Available CPUs for this target:\\n\\n  sm_80 - Select the sm_80 processor.\\n' ;;\nesac\n"
    );
    let (folder, name) = llc.rsplit_once('/').unwrap();
    let suffix = name.strip_prefix("llc").unwrap();
    for (name, text) in [
        ("llc", script.as_str()),
        ("opt", "#!/bin/sh\n"),
        ("llvm-link", "#!/bin/sh\n"),
    ] {
        let path = format!("{folder}/{name}{suffix}");
        package.put(&path, text);
    }
}

/// Each row has the releases of clang, LLVM's tools, and the `llc` that is used or the reason why none is.
#[test]
fn links_for_nvidia_by_llvms_tools_where_no_clang_reads_the_bitcode() {
    const OWN: &str = "toolchains/new-root/lib/rustlib/x86_64-unknown-linux-gnu/bin/llc";
    const A: &str = "toolchains/a/lib/rustlib/x86_64-unknown-linux-gnu/bin/llc";
    const B: &str = "toolchains/b/lib/rustlib/x86_64-unknown-linux-gnu/bin/llc";
    const C: &str = "toolchains/c/lib/rustlib/x86_64-unknown-linux-gnu/bin/llc";
    let rust = |llc, number| (llc, format!("LLVM version {number}-rust-1.98.0-stable"));
    let debian = |llc, number| (llc, format!("Debian LLVM version {number}"));
    let none = "found none in PATH; no `llc` with `opt` and `llvm-link` reads it: found ";
    type Row<'a> = (
        &'a [&'a str],
        &'a [(&'a str, String)],
        Result<&'a str, String>,
    );
    let rows: [Row<'_>; 9] = [
        // A clang comes first, then the tools of the rustc's own toolchain, of the newest other one, and the newest of PATH.
        (&["22"], &[rust(OWN, "22.1.8")], Ok("clang")),
        (
            &["19"],
            &[
                rust(OWN, "22.1.2"),
                rust(A, "22.1.8"),
                debian("bin/llc-23", "23.1.0"),
            ],
            Ok(OWN),
        ),
        (
            &[],
            &[
                rust(A, "22.1.6"),
                rust(B, "22.1.10"),
                rust(C, "22.1.8"),
                debian("bin/llc-23", "23.1.0"),
            ],
            Ok(B),
        ),
        (
            &[],
            &[rust(A, "21.1.2"), debian("bin/llc-22", "22.1.8")],
            Ok("bin/llc-22"),
        ),
        (
            &[],
            &[debian("bin/llc", "22.1.8"), debian("bin/llc-23", "23.1.0")],
            Ok("bin/llc-23"),
        ),
        (&[], &[debian("bin/llc", "22.1.8")], Ok("bin/llc")),
        (
            &[],
            &[],
            Err(format!("{none}none in PATH or in the Rust toolchains")),
        ),
        (
            &[],
            &[rust(A, "21.1.2"), debian("bin/llc-21", "21.1.8")],
            Err(format!("{none}`{A}` (LLVM 21), `bin/llc-21` (LLVM 21)")),
        ),
        (
            &[],
            &[("bin/llc", "a compiler of something else".to_owned())],
            Err(format!("{none}`bin/llc` (says `LLVM (http://llvm.org/):`)")),
        ),
    ];
    for (clangs, tools, expected) in rows {
        let Some(package) = package(&KEYS.replace("\"gfx90a\", ", ""), clangs) else {
            return;
        };
        rustc(&package, "toolchains/new", "1.97.1", BOTH, true);
        for (llc, version) in tools {
            llvm_tools(&package, llc, version, "nvptx64");
        }
        check_nvidia(&package, expected);
    }
    // Tools that lack a part.
    let Some(package) = package(&KEYS.replace("\"gfx90a\", ", ""), &[]) else {
        return;
    };
    rustc(&package, "toolchains/new", "1.97.1", BOTH, true);
    llvm_tools(&package, "bin/llc-22", "LLVM version 22.1.8", "x86-64");
    let found = |problem: &str| Err(format!("{none}`bin/llc-22` ({problem})"));
    check_nvidia(&package, found("has no back end for `nvptx64`"));
    llvm_tools(&package, "bin/llc-22", "LLVM version 22.1.8", "nvptx64");
    fs::remove_file(package.at("bin/opt-22")).unwrap();
    check_nvidia(&package, found("has no `opt-22` beside it"));
}

/// Plans a build, and checks which `llc` it uses or why it fails.
fn check_nvidia(package: &Package, expected: Result<&str, String>) {
    let mut script = script(package);
    script.env("OFFLOAD_RUSTC", package.at("toolchains/new"));
    match expected {
        Ok(program) => {
            let plan =
                plan(&mut script).replace(&format!("{}/", package.folder.root().display()), "");
            let starts = |program: &str| {
                let start = format!("{program} ");
                plan.lines().filter(|line| line.starts_with(&start)).count()
            };
            let has_clang = plan.lines().any(|line| line.starts_with("bin/clang-"));
            assert_eq!(has_clang, program == "clang", "{plan}");
            if !has_clang {
                // The copy and the join; the join and the image; the image.
                let counts = ["llvm-link", "opt", "llc"]
                    .map(|name| starts(&program.replacen("/llc", &format!("/{name}"), 1)));
                assert_eq!(counts, [2, 2, 1], "{plan}");
            }
        }
        Err(reason) => {
            let error = package.fails(&mut script);
            let start = "module `kernels`: no clang reads the bitcode of `toolchains/new`, Rust 1.97.1 with LLVM 22: ";
            let hint = " [OFF610]\nhint: install clang (Debian, Ubuntu: `apt install clang-22 lld-22 llvm-22`; ";
            assert!(
                error.starts_with(&format!("{start}{reason}{hint}")),
                "{error}"
            );
            let end = "; for NVIDIA GPUs alone, install the tools of that LLVM or newer (Debian, Ubuntu: `apt install llvm-22`; \
                       Fedora: `dnf install llvm`; Arch: `pacman -S llvm`; conda-forge: `conda install llvm-tools`; rustup: \
                       `rustup component add llvm-tools`); or name another clang with OFFLOAD_COMPILER; \
                       or build without device code: OFFLOAD_MISSING=stub";
            assert!(error.ends_with(end), "{error}");
        }
    }
}

/// The lines stand for those of clang: functions joined with internal linkage, limits of work-items, passes twice, the PTX version.
#[test]
fn plans_links_for_nvidia_by_llvms_tools() {
    let keys = KEYS.replace("\"gfx90a\", \"compute_80\"", "\"sm_80\", \"compute_80\"");
    let Some(package) = package(&format!("{keys}opt-level = \"s\"\n"), &[]) else {
        return;
    };
    rustc(&package, "new/rustc", "1.97.1", BOTH, true);
    llvm_tools(&package, "bin/llc-22", "LLVM version 22.1.8", "nvptx64");
    package.put("bin/ptxas", "#!/bin/sh\n");
    let mut script = script(&package);
    script.env("OFFLOAD_RUSTC", package.at("new/rustc"));
    let planned = plan(&mut script);
    let planned = planned.replace(&format!("{}/", package.folder.root().display()), "");
    let out = "target/build/pack-0123/out/offload/kernels";
    let planned = planned
        .replace(out, "OUT")
        .replace("kernels-src-lib.rs", "K");
    let lines = planned.lines().filter(|line| line.starts_with("bin/"));
    let lines: Vec<&str> = lines.skip(1).collect();
    assert_eq!(
        lines,
        [
            "bin/llvm-link-22 --suppress-warnings --only-needed --internalize OUT/sm_80/K.rust.bc OUT/sm_80/K.ll -o OUT/sm_80/K.linked.bc",
            "bin/opt-22 -mcpu=sm_80 '--passes=forceattrs,default<Os>' --forceattrs-csv-path=OUT/sm_80/K.csv OUT/sm_80/K.linked.bc -o \
             OUT/sm_80/K.bc.part",
            "bin/opt-22 -mcpu=sm_80 '--passes=default<Os>' OUT/sm_80/K.bc -o OUT/sm_80/image.optimized.bc",
            "bin/llc-22 -O2 -mcpu=sm_80 -mattr=+ptx78 OUT/sm_80/image.optimized.bc -o OUT/sm_80/image.s",
            "bin/ptxas -m64 -O3 -arch sm_80 OUT/sm_80/image.s -o OUT/sm_80/image.part",
            "bin/opt-22 -mcpu=sm_80 '--passes=default<Os>' OUT/sm_80/K.bc -o OUT/compute_80/image.optimized.bc",
            "bin/llc-22 -O2 -mcpu=sm_80 -mattr=+ptx78 OUT/compute_80/image.optimized.bc -o OUT/compute_80/image.part",
        ],
        "{planned}"
    );
}

/// Targets of one vendor are built without the tools for the other, and without processors that the tools do not know.
#[test]
fn says_which_targets_cannot_be_linked_without_clang() {
    let Some(package) = package(KEYS, &["19"]) else {
        return;
    };
    rustc(&package, "new/rustc", "1.97.1", BOTH, true);
    let lld = "LLD 22.1.8 (compatible with GNU linkers)";
    linker(&package, "bin/ld.lld", lld);
    let mut script = script(&package);
    script.env("OFFLOAD_RUSTC", package.at("new/rustc"));
    let reason = "no clang reads the bitcode of `new/rustc`, Rust 1.97.1 with LLVM 22: found `bin/clang-19` (LLVM 19); no ";
    let start =
        |target: &str, reason: &str| format!("module `kernels`: no image for `{target}`: {reason}");
    let error = package.fails(&mut script);
    let expected = start("compute_80", reason)
        + "`llc` with `opt` and `llvm-link` reads it: found none in PATH or in the Rust toolchains [OFF610]\nhint: install clang \
           (Debian, Ubuntu: `apt install clang-22 lld-22 llvm-22`; ";
    assert!(error.starts_with(&expected), "{error}");
    for part in [
        "; rustup: `rustup component add llvm-tools`)\n",
        "hint: OFFLOAD_TARGETS=gfx90a builds the other targets; ",
    ] {
        assert!(error.contains(part), "{error}");
    }
    let skipping = plan(script.env("OFFLOAD_MISSING", "skip"));
    let amd = "bin/ld.lld -shared -plugin-opt=mcpu=gfx90a ";
    assert!(skipping.contains(amd), "{skipping}");
    assert!(!skipping.contains("nvptx64"), "{skipping}");
    // A clang that is named for all packages does not read it, either.
    script.env("OFFLOAD_COMPILER", package.at("bin/clang-19"));
    let named = plan(&mut script);
    assert!(named.contains("bin/ld.lld -shared "), "{named}");
    script
        .env_remove("OFFLOAD_COMPILER")
        .env_remove("OFFLOAD_MISSING");

    llvm_tools(&package, "bin/llc-22", "LLVM version 22.1.8", "nvptx64");
    let both = plan(&mut script);
    for program in [amd, "bin/llc-22 -O3 -mcpu=sm_80 "] {
        assert!(both.contains(program), "{both}");
    }
    script.env("OFFLOAD_TARGETS", "gfx90a,compute_80,compute_90");
    let error = package.fails(&mut script);
    let unknown = "`bin/llc-22` (LLVM 22) does not know `sm_90` [OFF602]\nhint: OFFLOAD_TARGETS=gfx90a,compute_80 builds the other";
    assert!(error.starts_with(&start("compute_90", unknown)), "{error}");
    script.env_remove("OFFLOAD_TARGETS");

    fs::remove_file(package.at("bin/ld.lld")).unwrap();
    let error = package.fails(&mut script);
    let expected = start("gfx90a", reason)
        + "lld reads it: found none in PATH or in the Rust toolchain [OFF610]\nhint: ";
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn plans_a_sysroot_and_the_crate_for_each_target() {
    let keys = format!(
        "{KEYS}features = [\"fast\", \"dep/x\"]\ndefault-features = false\nflags = [\"--cfg=a=\\\"b c\\\"\"]\nopt-level = \"s\"\n"
    );
    let Some(package) = package(&keys, &["22"]) else {
        return;
    };
    rustc(&package, "old/rustc", "1.96.0", BOTH, true);
    rustc(&package, "new/rustc", "1.97.0", BOTH, true);
    // What other packages are compiled with, and what Cargo says of this one, are not for it.
    let mut script = script(&package);
    script.env("OFFLOAD_RUSTC", package.at("old/rustc"));
    let old = plan(&mut script);
    let lines = |word: &str| old.lines().filter(|line| line.contains(word)).count();
    // Once for each family, and the crate for each target.
    assert_eq!(lines("--crate-name core "), 2, "{old}");
    assert_eq!(lines("--crate-name compiler_builtins "), 2, "{old}");
    assert_eq!(lines("cargo rustc "), 2, "{old}");
    assert_eq!(lines("-forceattrs-csv-path="), 2, "{old}");
    let cargo = old
        .lines()
        .find(|line| line.contains("cargo rustc "))
        .unwrap();
    for part in [
        "RUSTC_BOOTSTRAP=1 ",
        " --lib --crate-type=staticlib --release ",
        " --target=amdgcn-amd-amdhsa --no-default-features --features=fast,dep/x ",
        " --config 'profile.release.opt-level=\"s\"' ",
        " CARGO_ENCODED_RUSTFLAGS='--sysroot=",
        "'-Ctarget-cpu=gfx90a'",
        "'-Zmir-enable-passes=-JumpThreading'",
        r#"'--cfg=a="b c"' "#,
    ] {
        assert!(cargo.contains(part), "{part}\n{cargo}");
    }
    let new = plan(script.env("OFFLOAD_RUSTC", package.at("new/rustc")));
    assert!(new.contains("cargo rustc "), "{new}");
    assert!(!new.contains("JumpThreading"), "{new}");
}

#[test]
fn refuses_options_of_rustc_that_do_not_belong_in_flags() {
    let Some(package) = package(KEYS, &["22"]) else {
        return;
    };
    for (flag, why) in [
        (
            "-Ctarget-cpu=gfx1100",
            "`target-cpu` in `flags` names a processor: `targets` does that",
        ),
        (
            "@args.txt",
            "`@args.txt` in `flags` is a file of options, which Cargo does not watch: write its options into `flags`",
        ),
    ] {
        package.declare(&format!("{KEYS}flags = [\"--cfg=x\", \"{flag}\"]\n"));
        let error = package.fails(&mut script(&package));
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn has_the_features_of_the_dependency_on_the_crate() {
    let Some(package) = package(KEYS, &["22"]) else {
        return;
    };
    rustc(&package, "new/rustc", "1.97.0", BOTH, true);
    let name = fs::read_to_string(package.at("kernels/Cargo.toml")).unwrap();
    let name = name.split('"').nth(1).unwrap();
    let manifest = fs::read_to_string(package.at("Cargo.toml")).unwrap();
    let features = format!("[features]\nwide = [\"{name}/double\"]\n");
    let mut script = script(&package);
    script.env("OFFLOAD_RUSTC", package.at("new/rustc"));
    let mut features_of = |dependency: &str, keys: &str, on: bool| {
        let dependency = format!("[dependencies]\n{name} = {{ path = \"kernels\"{dependency} }}\n");
        package.put(
            "Cargo.toml",
            &format!("{manifest}{keys}{dependency}{features}"),
        );
        match on {
            true => script.env("CARGO_FEATURE_WIDE", "1"),
            false => script.env_remove("CARGO_FEATURE_WIDE"),
        };
        let plan = plan(&mut script);
        let cargo = plan.lines().find(|line| line.contains("cargo rustc "));
        let (_, options) = cargo
            .unwrap()
            .split_once(" --target=amdgcn-amd-amdhsa ")
            .unwrap();
        let (features, _) = options.split_once("--config").unwrap();
        features.trim().to_owned()
    };
    assert_eq!(features_of("", "", false), "");
    assert_eq!(features_of("", "", true), "--features=double");
    let more = ", features = [\"fast\"], default-features = false";
    assert_eq!(
        features_of(more, "", true),
        "--no-default-features --features=double,fast"
    );
    let keys = "features = []\ndefault-features = true\n";
    assert_eq!(features_of(more, keys, true), "");
}

#[test]
fn says_what_is_wrong_with_the_crate() {
    let Some(package) = package("", &["22"]) else {
        return;
    };
    package.put("no-library/Cargo.toml", "[package]\nname = \"n\"\n");
    package.put("workspace/Cargo.toml", "[workspace]\n");
    let rows = [
        (
            "",
            "module `kernels` has no `crate` [OFF508]\nhint: `crate = \"kernels\"` names the folder of a crate of kernels, relative to the package",
        ),
        (
            "crate = \"absent\"",
            "Cargo.toml:5:1: `absent`: expected the folder of a crate, found no Cargo.toml in it",
        ),
        (
            "crate = \"${CUDA}/kernels\"",
            "Cargo.toml:5:1: `${CUDA}/kernels`: unknown variable `${CUDA}` (expected one of `${OUT_DIR}`, `${CARGO_MANIFEST_DIR}`)",
        ),
        (
            "crate = \"${DEP_KERNELS_FOLDER}\"",
            "Cargo.toml:5:1: `${DEP_KERNELS_FOLDER}`: `DEP_KERNELS_FOLDER` is not set (no dependency has metadata)\n\
             hint: add the package that prints it to [dependencies]: Cargo sets DEP_<LINKS>_<KEY> for packages with the key `links`",
        ),
        (
            "crate = \".\"",
            "Cargo.toml:5:1: `.`: this is the package itself: kernels need a separate crate",
        ),
        (
            "crate = \"no-library\"",
            "Cargo.toml:5:1: `no-library`: expected a library, found no `src/lib.rs`",
        ),
        (
            "crate = \"workspace\"",
            "workspace/Cargo.toml:1:1: expected a package, found no `package.name`",
        ),
        (
            "crate = \"kernels\"\nflags = [\"-g\", \"-C\", \"target-cpu=gfx1100\"]",
            "Cargo.toml:6:1: `target-cpu` in `flags` names a processor: `targets` does that",
        ),
        (
            "crate = \"kernels\"\nflags = [\"-Copt-level=1\"]",
            "Cargo.toml:6:1: `opt-level` in `flags` has no effect: the key `opt-level` does that",
        ),
        (
            "crate = \"kernels\"\nflags = [\"--codegen=inline-threshold=9\", \"--emit=asm\"]",
            "Cargo.toml:6:1: `--emit` in `flags` changes what the compiler makes: remove it",
        ),
    ];
    for (line, expected) in rows {
        let keys = format!("{line}\nlanguage = \"rust\"\ntargets = [\"gfx90a\"]\n");
        package.declare(&keys);
        let error = package.fails(&mut script(&package));
        assert_eq!(error, expected, "{line}");
    }
    // As `cargo publish` packs a package, without the crate in it.
    package.put("Cargo.toml.orig", "");
    let [keys, known] = ["absent", "kernels"].map(|name| {
        format!("language = \"rust\"\ncrate = \"{name}\"\ntargets = [\"x86_64-pc-linux-gnu\"]\n")
    });
    package.declare(&keys);
    let error = package.fails(&mut script(&package));
    assert!(
        error.contains("hint: a published package has no other crate in it"),
        "{error}"
    );

    package.declare(&known);
    let error = package.fails(&mut script(&package));
    assert_eq!(
        error,
        "Cargo.toml:7:1: `x86_64-pc-linux-gnu` is not a valid target of `rust` [OFF503]\n\
         hint: `rust` is for AMD GPUs (`gfx90a`) and NVIDIA GPUs (`sm_80`)"
    );
}

#[test]
fn builds_a_stub_with_the_kernels_that_the_crate_shows() {
    let Some(package) = package(&format!("{KEYS}missing = \"stub\"\n"), &["22"]) else {
        return;
    };
    rustc(&package, "old/rustc", "1.95.0", BOTH, true);
    package.put(
        "kernels/src/more/sums.rs",
        "#[kernel(threads = 64)]\npub fn sum(item: &Item, x: &[f32]) {}\n",
    );
    let mut script = package.script();
    script.env("OFFLOAD_RUSTC", package.at("old/rustc"));
    let told = support::package::text(&script.output().unwrap());
    assert!(told.contains("cargo::rustc-cfg=offload_stub\n"), "{told}");
    assert!(
        told.contains("cargo::warning=module `kernels`: no rustc for its kernels: "),
        "{told}"
    );
    let file = package.at("target/build/pack-0123/out/kernels.rs");
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains("pub const sum: Kernel = "), "{text}");
}

#[test]
fn keeps_the_rustc_of_the_manifest_beside_a_clang_for_all_packages() {
    let keys = format!("{KEYS}compiler = \"new/rustc\"\n");
    let Some(package) = package(&keys, &["22"]) else {
        return;
    };
    rustc(&package, "new/rustc", "1.97.0", BOTH, true);
    rustc(&package, "other/rustc", "1.98.0", BOTH, true);
    // Of a release that reads the bitcode, and of one that does not.
    for release in ["22", "19"] {
        let link = package.at(&format!("llvm-{release}/clang"));
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(format!("/usr/lib/llvm-{release}/bin/clang"), link).unwrap();
    }
    let planned = |compiler: &str| {
        let mut script = script(&package);
        script.env("OFFLOAD_COMPILER", package.at(compiler));
        plan(&mut script).replace(&format!("{}/", package.folder.root().display()), "")
    };
    let has = |plan: &str, word: &str| plan.lines().any(|line| line.contains(word));

    let reader = planned("llvm-22/clang");
    assert!(has(&reader, "RUSTC=new/rustc "), "{reader}");
    assert!(
        has(&reader, "llvm-22/clang --no-default-config "),
        "{reader}"
    );
    assert!(!has(&reader, "bin/clang-22 "), "{reader}");

    let old = planned("llvm-19/clang");
    assert!(has(&old, "RUSTC=new/rustc "), "{old}");
    assert!(has(&old, "bin/clang-22 --no-default-config "), "{old}");
    assert!(!has(&old, "llvm-19/clang "), "{old}");

    // Neither clang nor rustc: only sources in other languages use it.
    let nvcc = planned("other/nvcc");
    assert!(has(&nvcc, "RUSTC=new/rustc "), "{nvcc}");

    let rustc = planned("other/rustc");
    assert!(has(&rustc, "RUSTC=other/rustc "), "{rustc}");
}

/// Packages and profiles of one target folder share the sysroot: each triple's `core` is compiled once, also if two build
/// scripts start at the same time. The crates themselves fail here: Cargo is no Cargo.
#[test]
fn compiles_core_once_for_all_packages() {
    let Some(package) = package(KEYS, &["22"]) else {
        return;
    };
    rustc(&package, "new/rustc", "1.97.0", BOTH, true);
    let answers = fs::read_to_string(package.at("new/rustc")).unwrap();
    let log = package.at("compiles");
    let compile = format!(
        "#!/bin/sh\nname= list=\nfor word in \"$@\"; do\n  case $word in --emit=*) list=${{word#*dep-info=}} ;; esac\n\
         [ \"$last\" = --crate-name ] && name=$word\n  last=$word\ndone\n\
         if [ \"$name\" ]; then\n  echo \"$name\" >> '{}'\n  sleep 0.5\n  echo \"$name:\" > \"$list\"\n  exit\nfi\n{}",
        log.display(),
        answers.trim_start_matches("#!/bin/sh\n")
    );
    package.put("new/rustc", &compile);
    package.put("cargo", "#!/bin/sh\nexit 9\n");
    let start = |out: &str| {
        let mut script = script(&package);
        script
            .env_remove("OFFLOAD_DRY_RUN")
            .env(
                "PATH",
                format!("{}:/usr/bin:/bin", package.at("bin").display()),
            )
            .env("OUT_DIR", package.at(out))
            .env("OFFLOAD_RUSTC", package.at("new/rustc"))
            .env("CARGO", package.at("cargo"))
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        script.spawn().unwrap()
    };
    let finish = |script: std::process::Child| {
        let output = script.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(
            text.contains("cargo` failed (exit status: 9)"),
            "{output:?}"
        );
    };
    let cores = || {
        let log = fs::read_to_string(&log).unwrap();
        log.lines().filter(|name| *name == "core").count()
    };
    // Without Cargo's mark each package has a sysroot of its own.
    finish(start("alone/debug/build/one-01/out"));
    finish(start("alone/debug/build/two-02/out"));
    assert_eq!(cores(), 4);
    for target in ["target", "other"] {
        package.put(&format!("{target}/CACHEDIR.TAG"), "");
    }
    let before = cores();
    let both = [
        "target/debug/build/one-01/out",
        "target/release/build/two-02/out",
    ];
    let both = both.map(start);
    both.into_iter().for_each(finish);
    finish(start(
        "target/x86_64-unknown-linux-gnu/debug/build/one-03/out",
    ));
    assert_eq!(cores(), before + 2);
    assert!(package.at("target/offload").is_dir());
    // Without the folder, as after `cargo clean`, it is made again.
    fs::remove_dir_all(package.at("target/offload")).unwrap();
    finish(start("target/debug/build/one-01/out"));
    assert_eq!(cores(), before + 4);
    finish(start("other/debug/build/one-01/out"));
    assert_eq!(cores(), before + 6);
}
