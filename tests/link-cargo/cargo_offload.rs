//! `cargo offload inspect` and `build`, on files and packages made here.

use offload_formats::container::archive::{self, NewMember};
use offload_formats::container::elf::Machine;
use offload_formats::container::embed::elf_object;
use offload_formats::format::offload_binary::BinaryImage;
use offload_formats::names::{ImageKind, LlvmRelease, OffloadKind};
use std::path::Path;
use std::process::{Command, Output};

fn inspect(folder: &Path, files: &[&str]) -> Output {
    offload(folder, &[&["inspect"], files].concat())
}

fn offload(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-offload"));
    let command = command.arg("offload").args(args).current_dir(folder);
    command.output().unwrap()
}

/// Two offload binaries: an object of five bytes, bitcode of one.
fn binaries() -> Vec<u8> {
    let binary = |kind, strings: &[(&str, &str)], image: &[u8]| {
        let binary = BinaryImage {
            image_kind: kind,
            offload_kind: OffloadKind::OPENMP,
            flags: 0,
            strings,
            image,
        };
        binary.to_bytes(LlvmRelease::default()).unwrap()
    };
    let cpu = [("triple", "x86_64-pc-linux-gnu"), ("arch", "")];
    let amd = [("triple", "amdgcn-amd-amdhsa"), ("arch", "gfx90a:xnack+")];
    [
        binary(ImageKind::OBJECT, &cpu, b"12345"),
        binary(ImageKind::BITCODE, &amd, b"1"),
    ]
    .concat()
}

#[test]
fn lists_the_images_of_any_file() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let object = elf_object(Machine::X86_64, &binaries()).unwrap();
    write("k.bin", &binaries());
    write("k.o", &object);
    write(
        "libk.a",
        &archive::write(&[NewMember {
            name: "k.o",
            bytes: &object,
            symbols: &[],
        }]),
    );
    write("plain.txt", b"no device code\n");
    let output = inspect(folder.path(), &["k.bin", "k.o", "libk.a", "plain.txt"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    // Header and entry are 72 bytes, two pairs 32, the strings 33: the image is at 137, rounded up to 8. The second
    // binary's strings have 42 bytes, so that its image is at 146, rounded up to 8.
    for line in [
        "k.bin: 2 device images, file size 312 B\n",
        "    offload binary, 152 B, offset 0x0\n",
        "      0  x86_64-pc-linux-gnu  openmp  unknown  5 B  offset 0x90\n",
        "    offload binary, 160 B, offset 0x98\n",
        "      1  gfx90a:xnack+  openmp  unknown  1 B  offset 0x130\n",
        "k.o: 2 device images, file size ",
        "  section .llvm.offloading\n    offload binary, 152 B, offset 0x",
        ", to be linked\n      0  x86_64-pc-linux-gnu  openmp  ",
        "libk.a: 2 device images, file size ",
        "  k.o, section .llvm.offloading\n",
        "plain.txt: no device images\n",
        "total\n  gfx90a:xnack+        3 images   3 B  17 %\n  x86_64-pc-linux-gnu  3 images  15 B  83 %\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn names_the_file_and_the_place_of_what_is_broken() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = binaries();
    std::fs::write(folder.path().join("cut.bin"), &bytes[..bytes.len() - 1]).unwrap();
    let fails = |args: &[&str]| {
        let output = offload(folder.path(), args);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let cut = fails(&["inspect", "cut.bin"]);
    assert!(
        cut.starts_with("error: cut.bin: offload binary 1: "),
        "{cut}"
    );
    assert!(cut.contains(" runs past the end at 0x"), "{cut}");
    let none = fails(&["inspect", "none.bin"]);
    assert!(none.starts_with("error: none.bin: No such file or directory"));
    assert_eq!(
        fails(&["archive", "list", "cut.bin"]),
        "error: cut.bin: expected an archive at offset 0x0\n\
         hint: `cargo offload inspect` lists the images of programs and objects, too\n"
    );
}

#[test]
fn follows_thin_archives_and_names_what_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    write(
        "sub/k.o",
        &elf_object(Machine::X86_64, &binaries()).unwrap(),
    );
    write("sub/w.o", b"\0asm\x01\0\0\0");
    let header = |name: &str| {
        format!(
            "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
            0, 0, 0, 644, 10_000
        )
    };
    // As `llvm-ar --thin` writes it: members name files.
    let thin = |names: [&str; 2]| format!("!<thin>\n{}", names.map(header).concat());
    write("sub/thin.a", thin(["k.o/", "w.o/"]).as_bytes());
    let output = inspect(folder.path(), &["sub/thin.a"]);
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(
        out.starts_with("sub/thin.a: 2 device images, file size "),
        "{out}"
    );
    assert!(out.contains("  k.o, section .llvm.offloading\n"), "{out}");
    assert!(
        out.contains("  member `w.o`: device images in Wasm files are not supported\n"),
        "{out}"
    );

    write("sub/thin.a", thin(["thin.a/", "k.o/"]).as_bytes());
    let output = inspect(folder.path(), &["sub/thin.a"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(
        error.contains("the thin archive `sub/thin.a` contains itself"),
        "{error}"
    );
    write("sub/thin.a", thin(["gone/", "k.o/"]).as_bytes());
    let output = inspect(folder.path(), &["sub/thin.a"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("sub/thin.a: member `sub/gone`: No such file"),
        "{error}"
    );
}

/// A workspace of packages whose build scripts leave these libraries, without offload-build.
fn packages(libraries: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "Cargo.toml",
        "[workspace]\nmembers = [\"p*\"]\nresolver = \"3\"\n",
    );
    for (package, library) in libraries {
        let manifest =
            format!("[package]\nname = \"{package}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n");
        write(&format!("{package}/Cargo.toml"), &manifest);
        write(&format!("{package}/src/lib.rs"), "");
        let make = match *library {
            "" => String::new(),
            name => format!(
                "let folder = std::env::var(\"OUT_DIR\").unwrap() + \"/offload/artifacts\";\n\
                 std::fs::create_dir_all(&folder).unwrap();\n\
                 std::fs::write(folder + \"/{name}\", \"{package}\").unwrap();\n"
            ),
        };
        write(
            &format!("{package}/build.rs"),
            &format!("fn main() {{\n{make}}}\n"),
        );
    }
    folder
}

fn build(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-offload"));
    command
        .args(["offload", "build"])
        .args(arguments)
        .env("CARGO", env!("CARGO"))
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env("CARGO_TERM_COLOR", "never")
        .current_dir(folder);
    command.output().unwrap()
}

#[test]
fn installs_the_libraries_of_every_package() {
    let folder = packages(&[("pa", "liba.a"), ("pb", "libb.a"), ("pc", "")]);
    let output = build(folder.path(), &["--out", "made/here"]);
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed, "made/here/liba.a\nmade/here/libb.a\n");
    let read =
        |name: &str| std::fs::read_to_string(folder.path().join("made/here").join(name)).unwrap();
    assert_eq!(
        (read("liba.a"), read("libb.a")),
        ("pa".to_owned(), "pb".to_owned())
    );
    // Cargo's options choose; nothing is installed without a folder.
    let output = build(folder.path(), &["-p", "pb"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 1, "{printed}");
    assert!(
        lines[0].ends_with("/out/offload/artifacts/libb.a"),
        "{printed}"
    );
    let files = std::fs::read_dir(folder.path().join("made/here")).unwrap();
    assert_eq!(files.count(), 2);
}

#[test]
fn installs_the_library_of_a_package_that_is_built_twice() {
    let folder = packages(&[("pa", "liba.a"), ("pb", "")]);
    let manifest = folder.path().join("pb/Cargo.toml");
    let mut text = std::fs::read_to_string(&manifest).unwrap();
    for section in ["dependencies", "build-dependencies"] {
        text += &format!("[{section}]\npa.path = \"../pa\"\n");
    }
    std::fs::write(manifest, text).unwrap();
    let output = build(folder.path(), &["--out", "made", "-p", "pb", "--release"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, b"made/liba.a\n");
    // Cargo keeps the two apart.
    let built = std::fs::read_dir(folder.path().join("target/release/build")).unwrap();
    let built = built.filter(|entry| {
        let path = entry.as_ref().unwrap().path();
        path.join("out/offload/artifacts/liba.a").is_file()
    });
    assert_eq!(built.count(), 2);
    // They differ: that of the program is in a folder of its host.
    let script = folder.path().join("pa/build.rs");
    let text = std::fs::read_to_string(&script).unwrap();
    let text = text.replace("\"pa\"", "std::env::var(\"OPT_LEVEL\").unwrap()");
    std::fs::write(script, text).unwrap();
    let line = ["--out", "made", "-p", "pb", "--release"];
    let output = build(folder.path(), &line);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{said}");
    assert!(
        said.contains(
            "pa#0.1.0 is built with two settings, and makes two libraries `liba.a`\nhint: "
        ),
        "{said}"
    );
    let host = ["--target", "x86_64-unknown-linux-gnu"];
    let output = build(folder.path(), &[&line[..], &host].concat());
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        std::fs::read(folder.path().join("made/liba.a")).unwrap(),
        b"3"
    );
}

#[test]
fn says_why_no_library_is_installed() {
    let fails = |folder: &Path, arguments: &[&str]| {
        let output = build(folder, arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(output.stdout, b"");
        assert!(!folder.join("made").exists());
        String::from_utf8(output.stderr).unwrap()
    };
    let none = packages(&[("pa", "")]);
    let said = fails(none.path(), &["--out=made"]);
    assert!(
        said.contains("build: no package has libraries to install\nhint: `artifact = "),
        "{said}"
    );
    let same = packages(&[("pa", "libx.a"), ("pb", "libx.a")]);
    let said = fails(same.path(), &["--out=made"]);
    assert!(
        said.contains("build: two packages make a library `libx.a`: "),
        "{said}"
    );
    // Cargo ends as usual, whatever its build scripts left.
    assert!(!said.contains("Broken pipe"), "{said}");
    for package in ["/pa#0.1.0", "/pb#0.1.0", "hint: the key `name`"] {
        assert!(said.contains(package), "{said}");
    }
    let said = fails(same.path(), &["--out"]);
    assert!(said.contains("`--out` needs a value"), "{said}");
    std::fs::write(same.path().join("pa/src/lib.rs"), "not rust").unwrap();
    let output = build(same.path(), &["-p", "pa", "--out=made"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("could not compile `pa`"), "{said}");
    assert_eq!(output.status.code(), Some(101), "Cargo's own: {said}");
}
