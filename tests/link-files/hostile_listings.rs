//! Names in files that drive a terminal or forge lines: every listing and message of the tools shows them escaped.

use crate::support::folder::Folder;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::num::NonZeroU64;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use offload_formats::format::bundle::{self, BundleImage};
use offload_formats::format::offload_binary::BinaryImage;
use offload_formats::names::{ImageKind, LlvmRelease, OffloadKind};

const BUNDLER: &str = env!("CARGO_BIN_EXE_offload-bundler");
const PACKAGER: &str = env!("CARGO_BIN_EXE_offload-packager");
const CARGO: &str = env!("CARGO_BIN_EXE_cargo-offload");

/// Sets the title, clears the screen, turns the direction, and begins a line.
const HOSTILE: &str = "\x1b]0;x\x07\x1b[2J\u{9b}1m\u{202e}\rx\nforged-line-of-some-kind";
const SHOWN: &str = "\\x1b]0;x\\x07\\x1b[2J\\u{9b}1m\\u{202e}\\rx\\nforged-line-of-some-kind";

fn run(folder: &Folder, tool: &str, args: &[&str]) -> Output {
    let mut command = Command::new(tool);
    command.args(args).current_dir(folder.root());
    command.env_remove("CLICOLOR_FORCE");
    command.stdin(Stdio::null()).output().unwrap()
}

/// No line is forged, no control character is written, and the name is there.
fn check(what: &str, done: &Output) {
    for text in [&done.stdout, &done.stderr] {
        let text = std::str::from_utf8(text).unwrap();
        let raw = text.chars().find(|char| {
            char.is_control() && *char != '\n' || ('\u{202a}'..='\u{202e}').contains(char)
        });
        assert_eq!(raw, None, "{what}: {text:?}");
        let forged = text.lines().find(|line| line.starts_with("forged"));
        assert_eq!(forged, None, "{what}: {text:?}");
    }
    let both = [&done.stdout[..], &done.stderr].concat();
    let both = String::from_utf8(both).unwrap();
    assert!(both.contains(SHOWN), "{what}: {both:?}");
}

fn bundled(id: &str, image: &[u8]) -> Vec<u8> {
    bundle::to_bytes(&[BundleImage { id, image }], NonZeroU64::MIN).unwrap()
}

/// An archive of that member, whose name is in the table of long names.
fn archive(path: &Path, name: &str, content: &[u8]) {
    // Names end with a slash and a line feed: one with a line feed is told by its length, as BSD does.
    let mut bytes = b"!<arch>\n".to_vec();
    let size = name.len() + content.len();
    let name_field = format!("#1/{}", name.len());
    bytes.extend(
        format!(
            "{name_field:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n",
            0, 0, 0, 644
        )
        .bytes(),
    );
    bytes.extend(name.as_bytes());
    bytes.extend(content);
    fs::write(path, bytes).unwrap();
}

#[test]
fn shows_hostile_entry_ids_escaped() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name);
    let id = format!("hip-amdgcn-amd-amdhsa--gfx906{HOSTILE}");
    fs::write(path("k.bc"), bundled(&id, b"image")).unwrap();
    let list = ["-type=bc", "-input=k.bc"];
    for listing in ["-list", "--list=long"] {
        let done = run(&folder, BUNDLER, &[&list[..], &[listing]].concat());
        assert!(done.status.success());
        check(listing, &done);
        let lines = String::from_utf8(done.stdout).unwrap().lines().count();
        assert_eq!(lines, if listing == "-list" { 1 } else { 2 });
    }
    // JSON has escapes of its own.
    let done = run(&folder, BUNDLER, &[&list[..], &["--list=json"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(json["bundles"][0]["entries"][0]["id"], id.as_str());
    assert!(!done.stdout.contains(&0x1b));

    let odd = format!("odd{HOSTILE}");
    fs::write(path("odd.bc"), bundled(&odd.replace('-', "."), b"image")).unwrap();
    let unbundle = [
        "-unbundle",
        "-type=bc",
        "-targets=hip-amdgcn-amd-amdhsa--gfx906",
        "-output=o",
    ];
    let done = run(
        &folder,
        BUNDLER,
        &[&unbundle[..], &["-input=odd.bc"]].concat(),
    );
    assert_eq!(done.status.code(), Some(1));
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.contains(&SHOWN.replace('-', ".")), "{said:?}");
    assert!(
        !said.contains('\x1b') && !said.contains("\nforged"),
        "{said:?}"
    );
    // A text that never ends.
    let text = format!(
        "\n# __CLANG_OFFLOAD_BUNDLE____START__ {}\n",
        HOSTILE.replace('\n', "\\n")
    );
    fs::write(path("k.s"), text).unwrap();
    check(
        "text",
        &run(&folder, BUNDLER, &["-list", "-type=s", "-input=k.s"]),
    );
    // Members, in an archive and in errors about it.
    archive(&path("libk.a"), HOSTILE, &bundled(&id, b"image"));
    let done = run(
        &folder,
        BUNDLER,
        &["--list=long", "-type=a", "-input=libk.a"],
    );
    check("members", &done);
    check(
        "archive list",
        &run(&folder, CARGO, &["archive", "list", "libk.a"]),
    );
    check(
        "archive check",
        &run(&folder, CARGO, &["archive", "check", "libk.a"]),
    );
    archive(&path("libbad.a"), HOSTILE, b"__CLANG_OFFLOAD_BUNDLE__\x09");
    let args = ["-list", "-type=a", "-input=libbad.a"];
    check("bad member", &run(&folder, BUNDLER, &args));
    let args = ["archive", "list", "libbad.a"];
    check("archive list of bad", &run(&folder, CARGO, &args));
}

#[test]
fn shows_hostile_strings_of_images_escaped() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name);
    let strings = [
        ("triple", HOSTILE),
        ("arch", HOSTILE),
        (HOSTILE, "value"),
        ("more", HOSTILE),
    ];
    let image = BinaryImage {
        image_kind: ImageKind::OBJECT,
        offload_kind: OffloadKind::OPENMP,
        flags: 0,
        strings: &strings,
        image: b"image",
    };
    let bytes = image.to_bytes(LlvmRelease::default()).unwrap();
    fs::write(path("k.bin"), &bytes).unwrap();
    archive(&path("libk.a"), HOSTILE, &bytes);
    archive(&path("libwasm.a"), HOSTILE, b"\0asm\x01\0\0\0");
    archive(&path("libbad.a"), HOSTILE, &bytes[..bytes.len() - 1]);
    for file in ["k.bin", "libk.a", "libwasm.a", "libbad.a"] {
        check(file, &run(&folder, PACKAGER, &["--list", file]));
        check(file, &run(&folder, CARGO, &["inspect", file]));
    }
    let listed = run(&folder, PACKAGER, &["--list", "k.bin"]).stdout;
    assert_eq!(String::from_utf8(listed).unwrap().lines().count(), 2);
    let json = run(&folder, PACKAGER, &["--list=json", "k.bin"]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let pairs = json["images"][0]["strings"].to_string();
    let pair = serde_json::json!(["triple", HOSTILE]).to_string();
    assert!(pairs.contains(&pair), "{pairs}");
    // The document is the same image again.
    let yaml = run(&folder, PACKAGER, &["--yaml", "k.bin"]).stdout;
    assert!(!yaml.contains(&0x1b) && !yaml.contains(&b'\r'));
    fs::write(path("k.yaml"), yaml).unwrap();
    let args = ["--from-yaml=k.yaml", "-o", "again.bin"];
    let done = run(&folder, PACKAGER, &args);
    assert!(done.status.success(), "{done:?}");
    assert_eq!(fs::read(path("again.bin")).unwrap(), bytes);
    // Nothing is written elsewhere.
    let done = run(&folder, PACKAGER, &["k.bin", "--llvm=23"]);
    assert!(done.status.success(), "{done:?}");
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(
        !said.contains('\x1b') && said.lines().count() == 1,
        "{said:?}"
    );
}

/// The standard library's formats take no width above 65,535.
#[test]
fn lists_names_of_any_length_and_of_any_bytes() {
    let folder = Folder::new();
    let arch = "g".repeat(70_000);
    let name = OsStr::from_bytes(b"n\xff");
    let strings = [("triple", "amdgcn-amd-amdhsa"), ("arch", &*arch)];
    let image = BinaryImage {
        image_kind: ImageKind::OBJECT,
        offload_kind: OffloadKind::HIP,
        flags: 0,
        strings: &strings,
        image: b"image",
    };
    let bytes = image.to_bytes(LlvmRelease::default()).unwrap();
    let packed = folder.path(OsStr::from_bytes(b"packed\xff"));
    fs::write(&packed, bytes).unwrap();
    let bundle = folder.path(name);
    fs::write(&bundle, bundled("hip-amdgcn-amd-amdhsa--gfx906", b"image")).unwrap();
    let mut input = OsString::from("-input=");
    input.push(&bundle);
    let printed = |tool: &str, args: &[&OsStr]| {
        let done = Command::new(tool).args(args).output().unwrap();
        assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    let table = printed(PACKAGER, &["--list".as_ref(), packed.as_ref()]);
    assert!(table.contains(&format!("  {arch}  ")), "{table}");
    for json in [
        printed(PACKAGER, &["--list=json".as_ref(), packed.as_ref()]),
        printed(
            BUNDLER,
            &["--list=json".as_ref(), "-type=bc".as_ref(), &input],
        ),
    ] {
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert!(
            json["file"].as_str().unwrap().ends_with('\u{fffd}'),
            "{json}"
        );
    }
}
