//! Tools among files that the system does not let them read.
//!
//! Each test runs a tool once to count its system calls on files below a folder, and then once for each call, which fails.
//! The tool may then fail, too, or do without what it did not get: a result that differs from the first is an error.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const LINKER: &str = env!("CARGO_BIN_EXE_offload-link");
const BUNDLER: &str = env!("CARGO_BIN_EXE_offload-bundler");
const PACKAGER: &str = env!("CARGO_BIN_EXE_offload-packager");
const CARGO_OFFLOAD: &str = env!("CARGO_BIN_EXE_cargo-offload");

/// An ELF file, of which AMD's are made here.
const OBJECT: &[u8] = include_bytes!("../golden/22.1.8/elf64le.o");
/// Images for gfx906 and `gfx90a:sramecc+:xnack-`.
const BUNDLE: &[u8] = include_bytes!("../golden/22.1.8/three-images.bundle");

/// `EIO`, `EMFILE`, `ENOMEM`, `EACCES`.
const ERRORS: [i32; 4] = [5, 24, 12, 13];

/// A folder with inputs, and beside it what other programs need.
struct Place {
    dir: TempDir,
    library: PathBuf,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let place = Self {
            library: dir.path().join("fail_call.so"),
            dir,
        };
        for folder in ["bin", "tmp", "cuda", "in", "in/out"] {
            fs::create_dir(place.path(folder)).unwrap();
        }
        place.cc(
            &[
                "-shared",
                "-fPIC",
                "-fno-delete-null-pointer-checks",
                "-o",
                "fail_call.so",
            ],
            "tests/support/fail_call.c",
        );
        place
    }

    /// The folder, without symbolic links, as the calls are compared with it.
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    fn script(&self, name: &str, body: &str) {
        self.write(name, format!("#!/bin/sh\n{body}\n"));
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run(&self, program: &str, args: &[&str]) {
        let output = self.command(program.as_ref()).args(args).output().unwrap();
        assert!(
            output.status.success(),
            "{program} {args:?}: {}",
            text(&output.stderr)
        );
    }

    fn cc(&self, args: &[&str], source: &str) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join(source);
        self.run("cc", &[args, &[source.to_str().unwrap()]].concat());
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path(""))
            .env("TMPDIR", self.path("tmp"))
            .env("CUDA_PATH", self.path("cuda"))
            .env_remove("OFFLOAD_LINK_REPORT")
            .env_remove("OFFLOAD_LINK_ACTIVE")
            .env_remove("OFFLOAD_LLVM")
            .stdin(Stdio::null());
        command
    }

    /// Everything in the folder for outputs, which it empties, and what was said on standard output.
    fn made(&self, output: &Output) -> BTreeMap<String, Vec<u8>> {
        let mut made = BTreeMap::from([("stdout".to_owned(), output.stdout.clone())]);
        for entry in fs::read_dir(self.path("in/out")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            made.insert(name, fs::read(&path).unwrap());
            fs::remove_file(path).unwrap();
        }
        made
    }

    /// Runs a tool with one call failing; gives what it did, and the log of its calls.
    fn fail(&self, tool: &Path, args: &[&str], at: usize, errno: i32) -> (Output, String) {
        let log = self.path("log");
        let _ = fs::remove_file(&log);
        let real = tool.canonicalize().unwrap();
        let mut command = self.command(tool);
        command
            .args(args)
            .env("LD_PRELOAD", &self.library)
            .env("FAIL_PROGRAM", real.file_name().unwrap())
            .env("FAIL_FOLDER", self.path("in"))
            .env("FAIL_LOG", &log)
            .env("FAIL_AT", at.to_string())
            .env("FAIL_ERRNO", errno.to_string());
        let output = command.output().unwrap();
        (output, fs::read_to_string(&log).unwrap_or_default())
    }

    /// # Panics
    ///
    /// When the tool ends well with another result because a call failed.
    fn check(&self, tool: &Path, args: &[&str]) {
        let (good, log) = self.fail(tool, args, 0, 0);
        assert!(good.status.success(), "{args:?}: {}", text(&good.stderr));
        let expected = self.made(&good);
        let size: usize = expected.values().map(Vec::len).sum();
        assert!(size > 0, "{args:?} makes nothing to compare");
        let calls = log.lines().count();
        assert!(calls > 2, "{args:?}: {log}");
        let mut wrong = Vec::new();
        for at in 1..=calls {
            for errno in ERRORS {
                let (output, log) = self.fail(tool, args, at, errno);
                let made = self.made(&output);
                let call = log.lines().find(|line| line.ends_with("FAILS"));
                // Threads may change the order of the last calls.
                let Some(call) = call else { continue };
                let said = text(&output.stderr);
                match output.status.code() {
                    Some(0) if made == expected => {}
                    Some(1) if said.contains("error: ") => {}
                    code => wrong.push(format!("{call}, error {errno}: {code:?}\n{said}")),
                }
            }
        }
        assert!(wrong.is_empty(), "{args:?}\n{}", wrong.join("\n"));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A place for links: its device linker makes AMD's images, its host linker puts together what registers them.
fn linker() -> (Place, PathBuf) {
    let place = Place::new();
    place.write("bin/ld.lld", "");
    symlink(LINKER, place.path("bin/offload-ld")).unwrap();
    let arguments = "for a; do case $a in -mcpu=*) cpu=${a#-mcpu=};; esac; [ \"$last\" = -o ] && o=$a; last=$a; done";
    place.script(
        "bin/clang",
        &format!("{arguments}\ncp \"image-$cpu\" \"$o\""),
    );
    place.script(
        "ld",
        "cat $(printf '%s\\n' \"$@\" | grep wrapper.o) /dev/null > in/out/program",
    );
    for (name, flags) in [
        ("gfx906", 0x2fu32),
        ("gfx90a:sramecc+:xnack-", 0xe3f),
        ("gfx90a", 0x53f),
    ] {
        let mut image = OBJECT.to_vec();
        image[0x12] = 224;
        image[0x30..0x34].copy_from_slice(&flags.to_le_bytes());
        place.write(&format!("image-{name}"), &image);
    }
    place.write("in/bundle.bc", bundle());
    let image = "--image=file=image-gfx90a,triple=amdgcn-amd-amdhsa,arch=gfx90a,kind=openmp";
    place.run(PACKAGER, &["-o", "in/image.bin", image]);
    place.write(
        "fat.s",
        ".globl used\nused: .byte 0\n.section .text.more\n.fill 20000\n.section .llvm.offloading,\"e\",@0x6fff4c0b\n.incbin \"in/image.bin\"\n\
         .section .note.GNU-stack,\"\",@progbits\n",
    );
    place.run("cc", &["-c", "fat.s", "-o", "in/fat.o"]);
    place.write(
        "main.c",
        "extern char used; int main(void) { return used; }",
    );
    place.run("cc", &["-c", "main.c", "-o", "in/main.o"]);
    let tool = place.path("bin/offload-ld");
    (place, tool)
}

/// Without a part for the host, with images that are no text.
fn bundle() -> Vec<u8> {
    let mut bundle = BUNDLE.to_vec();
    bundle[0x28..0x30].fill(0);
    for start in [216, 241] {
        bundle[start] = 0;
    }
    bundle
}

fn check_link(place: &Place, tool: &Path, inputs: &[&str]) {
    let args = ["--linker-path=./ld", "-o", "in/out/program", "in/main.o"];
    place.check(tool, &[&args, inputs].concat());
}

#[test]
fn links_all_device_code_of_an_object_or_fails() {
    let (place, tool) = linker();
    check_link(&place, &tool, &["in/fat.o"]);
}

#[test]
fn links_all_device_code_of_archives_or_fails() {
    let (place, tool) = linker();
    place.run("ar", &["rcs", "in/libfat.a", "in/fat.o"]);
    place.write("in/args", "-Lin -lfat");
    check_link(&place, &tool, &["@in/args"]);
    // The second folder has another library of that name, without device code.
    fs::create_dir(place.path("in/second")).unwrap();
    place.run("ar", &["rcs", "in/second/libfat.a", "in/main.o"]);
    check_link(&place, &tool, &["-Lin", "-Lin/second", "-lfat"]);
}

#[test]
fn links_all_device_code_of_thin_archives_or_fails() {
    let (place, tool) = linker();
    place.run("ar", &["rcsT", "in/libfat.a", "in/fat.o"]);
    check_link(&place, &tool, &["in/libfat.a"]);
}

#[test]
fn links_all_device_code_of_bundles_or_fails() {
    let (place, tool) = linker();
    check_link(&place, &tool, &["in/bundle.bc"]);
    place.run("ar", &["rcS", "in/libhda.a", "in/bundle.bc"]);
    check_link(&place, &tool, &["in/bundle.bc", "in/libhda.a"]);
}

#[test]
fn inspects_all_images_or_fails() {
    let (place, _) = linker();
    place.run("ar", &["rcsT", "in/thin.a", "in/fat.o", "in/image.bin"]);
    let tool = Path::new(CARGO_OFFLOAD);
    place.check(tool, &["offload", "inspect", "in/fat.o", "in/thin.a"]);
    place.run("ar", &["rcS", "in/hda.a", "in/bundle.bc"]);
    place.check(tool, &["offload", "archive", "list", "in/hda.a"]);
    place.check(
        tool,
        &["offload", "archive", "split", "--out", "in/out", "in/hda.a"],
    );
}

#[test]
fn bundles_and_unbundles_everything_or_fails() {
    let (place, _) = linker();
    let tool = Path::new(BUNDLER);
    let targets = "-targets=hip-amdgcn-amd-amdhsa--gfx906,hip-amdgcn-amd-amdhsa--gfx90a";
    let inputs = [
        "-type=o",
        targets,
        "-input=image-gfx906",
        "-input=in/image.bin",
    ];
    place.check(tool, &[&inputs[..], &["-output=in/out/bundle"]].concat());
    place.check(tool, &["-type=bc", "-list", "-input=in/bundle.bc"]);
    place.run(
        BUNDLER,
        &[&inputs[..], &["-compress", "-output=in/packed.bc"]].concat(),
    );
    for input in ["in/bundle.bc", "in/packed.bc"] {
        let input = format!("-input={input}");
        let targets = "-targets=hip-amdgcn-amd-amdhsa--gfx906";
        let args = [
            "-type=bc",
            "-unbundle",
            targets,
            &input,
            "-output=in/out/image",
        ];
        place.check(tool, &[&args[..], &["-allow-missing-bundles"]].concat());
    }
}

#[test]
fn packs_and_extracts_everything_or_fails() {
    let (place, _) = linker();
    let tool = Path::new(PACKAGER);
    let image = "--image=file=in/fat.o,triple=amdgcn-amd-amdhsa,arch=gfx90a,kind=openmp";
    place.check(tool, &["-o", "in/out/packed", image]);
    place.run("ar", &["rcsT", "in/thin.a", "in/fat.o"]);
    for input in ["in/fat.o", "in/thin.a"] {
        place.check(tool, &[input, "--list"]);
        place.check(tool, &[input, "--image=file=in/out/image,arch=gfx90a"]);
    }
}
