//! Names that try to drive a terminal or forge lines, in what `offload-link` and `cargo offload inspect` print.

use crate::support::bad_archives;

use crate::support::folder::Folder;
use crate::support::shim_clang::OBJECT;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use bad_archives::{archive, bundle};

const LINKER: &str = env!("CARGO_BIN_EXE_offload-link");
const PACKAGER: &str = env!("CARGO_BIN_EXE_offload-packager");
const CARGO_OFFLOAD: &str = env!("CARGO_BIN_EXE_cargo-offload");

/// Sets the title of a window.
const TITLE: &str = "\u{1b}]0;a\u{7}";

struct Place(Folder);

impl Place {
    fn new() -> Self {
        let folder = Folder::new();
        symlink(LINKER, folder.path("offload-ld")).unwrap();
        Self(folder)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        self.0.write(name, bytes);
    }

    /// Runs a tool; gives everything that it printed, which no terminal acts on, and in which no line is forged.
    fn run(&self, tool: &str, args: &[&str]) -> String {
        let output = self
            .0
            .command(tool)
            .args(args)
            .env_remove("OFFLOAD_LINK_REPORT")
            .env_remove("CLICOLOR_FORCE")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let active = text.find(|c: char| c.is_control() && c != '\n');
        assert_eq!(active, None, "{args:?}: {text:?}");
        assert!(!text.contains("\nforged"), "{args:?}: {text:?}");
        text
    }

    fn link(&self, inputs: &[&str]) -> String {
        let tool = self.0.path("offload-ld");
        let line = [
            "--linker-path=/bin/true",
            "-o",
            "out",
            "--report=text",
            "--whole-archive",
        ];
        self.run(tool.to_str().unwrap(), &[&line, inputs].concat())
    }

    fn inspect(&self, file: &str) -> String {
        self.run(CARGO_OFFLOAD, &["offload", "inspect", file])
    }
}

#[test]
fn prints_member_names_escaped() {
    let folder = Place::new();
    let name = format!("m{TITLE}.o");
    folder.write("k.a", &archive(&[(&name, OBJECT)]));
    for text in [folder.link(&["k.a"]), folder.inspect("k.a")] {
        assert!(text.contains("m\\x1b]0;a\\x07.o"), "{text}");
    }
    folder.write(
        "cut.a",
        &archive(&[(&name, &OBJECT[..100]), ("whole.o", OBJECT)]),
    );
    let text = folder.link(&["cut.a"]);
    assert!(text.contains("error: cut.a(m\\x1b]0;a\\x07.o): "), "{text}");
}

#[test]
fn prints_paths_escaped() {
    let folder = Place::new();
    let name = format!("in\nforged: {TITLE}\u{9b}1m.o");
    folder.write(&name, &OBJECT[..100]);
    folder.write("whole.o", OBJECT);
    let shown = "in\\nforged: \\x1b]0;a\\x07\\u{9b}1m.o";
    let warned = folder.link(&[&name]);
    assert!(warned.contains(&format!("warning: {shown}: ")), "{warned}");
    let refused = folder.link(&[&name, "whole.o"]);
    assert!(refused.contains(&format!("error: {shown}: ")), "{refused}");
    let inspected = folder.inspect(&name);
    assert!(
        inspected.contains(&format!("error: {shown}: ")),
        "{inspected}"
    );
}

#[test]
fn prints_entry_ids_escaped() {
    let folder = Place::new();
    let id = format!("hip-amdgcn-amd-amdhsa--gfx\nforged: {TITLE}");
    folder.write(
        "b.bc",
        &bundle(&[("none-forged\nforged: \u{1b}[2J", b"\0"), (&id, b"\0")]),
    );
    folder.write("whole.o", OBJECT);
    let text = folder.link(&["b.bc", "whole.o"]);
    assert!(text.contains("\\nforged: \\x1b"), "{text}");
}

#[test]
fn prints_target_strings_escaped() {
    let folder = Place::new();
    folder.write("image", b"image");
    let image =
        format!("--image=file=image,triple=amdgcn\nforged: {TITLE},arch=gfx\u{1b}[2J,kind=hip");
    let packed = Command::new(PACKAGER)
        .args(["-o", "k.bin", &image])
        .current_dir(folder.0.root())
        .status();
    assert!(packed.unwrap().success());
    for text in [folder.link(&["k.bin"]), folder.inspect("k.bin")] {
        assert!(
            text.contains("amdgcn\\nforged: \\x1b]0;a\\x07 gfx\\x1b[2J"),
            "{text}"
        );
    }
}
