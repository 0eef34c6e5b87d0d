//! Tools among files that the system does not let them read.
//!
//! Each test runs a tool once to count its system calls on files below a folder, and then once for each call, which fails.
//! The tool may then fail, too, or do without what it did not get: a result that differs from the first is an error.

#![cfg(target_os = "linux")]

use crate::linker::text;
use crate::support::folder::Folder;
use crate::support::shim_clang;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const LINKER: &str = env!("CARGO_BIN_EXE_offload-link");
const BUNDLER: &str = env!("CARGO_BIN_EXE_offload-bundler");
const PACKAGER: &str = env!("CARGO_BIN_EXE_offload-packager");
const CARGO_OFFLOAD: &str = env!("CARGO_BIN_EXE_cargo-offload");

/// `EIO`, `EMFILE`, `ENOMEM`, `EACCES`.
const ERRORS: [i32; 4] = [5, 24, 12, 13];

/// A folder with inputs, and beside it what other programs need.
struct Place {
    dir: Folder,
    library: PathBuf,
}

impl Deref for Place {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.dir
    }
}

impl Place {
    fn new() -> Self {
        let dir = Folder::new();
        let place = Self {
            library: dir.path("fail_call.so"),
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
        self.dir.root().canonicalize().unwrap().join(name)
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
        let mut command = self.command(tool);
        self.fail_call_of(command.args(args), at, errno)
    }

    /// The same for a command.
    fn fail_call_of(&self, command: &mut Command, at: usize, errno: i32) -> (Output, String) {
        let log = self.path("log");
        let _ = fs::remove_file(&log);
        let real = Path::new(command.get_program()).canonicalize().unwrap();
        command
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
        let (mut wrong, mut failed) = (Vec::new(), 0);
        for at in 1..=calls {
            for errno in ERRORS {
                let (output, log) = self.fail(tool, args, at, errno);
                let made = self.made(&output);
                let call = log.lines().find(|line| line.ends_with("FAILS"));
                // Threads may change the order of the last calls.
                let Some(call) = call else { continue };
                failed += 1;
                let said = text(&output.stderr);
                match output.status.code() {
                    Some(0) if made == expected => {}
                    Some(1) if said.contains("error: ") => {}
                    code => wrong.push(format!("{call}, error {errno}: {code:?}\n{said}")),
                }
            }
        }
        assert!(wrong.is_empty(), "{args:?}\n{}", wrong.join("\n"));
        assert!(
            failed * 2 > calls * ERRORS.len(),
            "{args:?}: only {failed} of {calls} calls failed"
        );
    }
}

/// A place for links: its device linker makes AMD's images, its host linker puts together what registers them.
fn linker() -> (Place, PathBuf) {
    let place = Place::new();
    symlink(LINKER, place.path("bin/offload-ld")).unwrap();
    shim_clang::put(&place, shim_clang::COPY);
    place.script(
        "ld",
        "cat $(printf '%s\\n' \"$@\" | grep wrapper.o) /dev/null > in/out/program",
    );
    let images = [
        ("gfx906", 0x2f),
        ("gfx90a:sramecc+:xnack-", 0xe3f),
        ("gfx90a", 0x53f),
    ];
    shim_clang::put_images(&place, &images);
    place.write("in/bundle.bc", shim_clang::bundle());
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

/// The part of a build script that a test checks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Planning; nothing is built.
    Plan,
    /// Packing of images that exist.
    Pack,
    /// Compiles and links: files in `OUT_DIR`, and calls that write and start programs, count as well.
    Compile,
}

/// Numbers of the calls that fail, one at a time: all, or those that are not like another one.
fn chosen(log: &str) -> Vec<usize> {
    let mut done = BTreeSet::new();
    let mut is_chosen = |line: &str| {
        let mut words = line.splitn(3, ' ').skip(1);
        let (call, file) = (words.next().unwrap(), words.next().unwrap());
        // Later reads of an open file are like the first one.
        if call == "open" {
            done.retain(|(_, other)| *other != file);
        }
        // So are the headers of kernels, which are written one after the other.
        let is_one_of_many = file.contains("/kernel-headers/offload/gpu/");
        let is_new = done.insert((call.to_owned(), file.to_owned()));
        crate::support::tests_all() || is_new && !is_one_of_many
    };
    let lines = log.lines().enumerate();
    let chosen = lines.filter(|(_, line)| is_chosen(line));
    chosen.map(|(index, _)| index + 1).collect()
}

/// Runs a build script with each call failing: it does the same, or it fails and names the file.
fn check_script(place: &Place, part: Part, manifest: &str) {
    let start = "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\n";
    place.write("in/Cargo.toml", format!("{start}{manifest}"));
    let out = match part {
        Part::Compile => place.path("in").join("target/out"),
        Part::Plan | Part::Pack => place.path("out"),
    };
    let errors = match part {
        // Each run starts compilers: an error that is taken as it is, and one that has a meaning to the system's users.
        Part::Compile => &[ERRORS[0], ERRORS[3]][..crate::support::cases(1, 2)],
        Part::Plan | Part::Pack => &ERRORS[..],
    };
    let run = |at, errno| {
        let _ = fs::remove_dir_all(&out);
        fs::create_dir_all(&out).unwrap();
        let tests = std::env::current_exe().unwrap();
        let examples = tests.ancestors().nth(2).unwrap().join("examples");
        let mut script = Command::new(examples.join("build_script"));
        script
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("CARGO_MANIFEST_DIR", place.path("in"))
            .env("CARGO_PKG_NAME", "pack")
            .env("CARGO_PKG_VERSION", "1.2.3")
            .env("OUT_DIR", &out)
            .env("TARGET", "x86_64-unknown-linux-gnu")
            .env("HOST", "x86_64-unknown-linux-gnu")
            .env("OPT_LEVEL", "1")
            .env("PROFILE", "debug")
            .env("NUM_JOBS", "1")
            .env("LIBRARY_PATH", place.path("in/lib"))
            .current_dir(place.path("in"));
        match part {
            Part::Plan => drop(script.env("OFFLOAD_DRY_RUN", "1")),
            Part::Pack => {}
            Part::Compile => drop(script.env("FAIL_WRITES", "1")),
        }
        let (output, log) = place.fail_call_of(&mut script, at, errno);
        let images = fs::read(out.join("offload/kernels/images")).unwrap_or_default();
        let included = fs::read(out.join("kernels.rs")).unwrap_or_default();
        let (code, said) = (output.status.code(), text(&output.stderr));
        ((code, text(&output.stdout), said, images, included), log)
    };
    let (good, log) = run(0, 0);
    match part {
        Part::Plan => assert!(good.2.contains("clang"), "{}", good.2),
        Part::Pack | Part::Compile => assert!(!good.3.is_empty(), "{}", good.2),
    }
    let calls = log.lines().count();
    assert!(calls > 5, "{log}");
    let (mut wrong, mut failed) = (Vec::new(), 0);
    // Without `OFFLOAD_TEST_ALL=1` every fourth one if each run compiles.
    let count = if part == Part::Compile { 4 } else { 1 };
    for at in crate::support::share(chosen(&log), 0, count) {
        for &errno in errors {
            let (found, log) = run(at, errno);
            let Some(call) = log.lines().find(|line| line.ends_with("FAILS")) else {
                continue;
            };
            failed += 1;
            let file = call.trim_end_matches(" FAILS").rsplit('/').next().unwrap();
            // An output is written beside its place.
            let file = file.trim_end_matches(".part");
            let (code, said) = (found.0, &found.2);
            let names = said.contains("rror: ") && said.contains(file);
            if found != good && !(code == Some(1) && names) {
                wrong.push(format!("{call}, error {errno}: {code:?}\n{said}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
    assert!(failed > 0, "no call failed");
}

#[test]
fn takes_all_prebuilt_images_or_fails() {
    let (place, _) = linker();
    let ptx = "//\n.version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\nret;\n}\n";
    place.write("in/own.ptx", ptx);
    // What sm_90 can use, too: it takes the place of an image that was not read.
    place.write("in/z.ptx", ptx.replace("sm_80", "sm_70"));
    place.write("other.ptx", ptx.replace("sm_80", "sm_75"));
    let image = "--image=file=other.ptx,triple=nvptx64-nvidia-cuda,arch=sm_75,kind=cuda";
    let args = ["--llvm=main", "--compress", "-o", "in/packed.bin", image];
    place.run(PACKAGER, &args);
    let sources = "language = \"prebuilt\"\nsources = [\"*.ptx\", \"packed.bin\"]\n";
    let targets = "targets = [\"compute_80\", \"compute_70\"]\n";
    check_script(&place, Part::Pack, &format!("{sources}{targets}"));
}

/// The second image serves the target, too: it takes the place of the first if that is not read.
#[test]
fn takes_the_targets_own_prebuilt_image_or_fails() {
    let Some(clang) = crate::support::tool("llvm22", &["clang"]) else {
        return;
    };
    let (place, _) = linker();
    let clang = clang.to_str().unwrap();
    let kernel = "__attribute__((global)) void k(int *p) { *p = 1; }\n";
    place.write("k.hip", kernel);
    for (processor, output) in [("gfx90a:xnack+", "in/own.co"), ("gfx90a", "in/any.co")] {
        let arch = format!("--offload-arch={processor}");
        let device = ["--offload-device-only", "--no-gpu-bundle-output", &arch];
        let without = ["-nogpulib", "-nogpuinc", "k.hip", "-o", output];
        place.run(clang, &[&device[..], &without].concat());
    }
    let keys = "language = \"prebuilt\"\nsources = [\"*.co\"]\ntargets = [\"gfx90a:xnack+\"]\n";
    check_script(&place, Part::Pack, keys);
}

#[test]
fn plans_all_sources_and_libraries_or_fails() {
    let Some(clang) = crate::support::tool("llvm22", &["clang"]) else {
        return;
    };
    let (place, _) = linker();
    for folder in ["in/kernels/deep", "in/lib/libdevice"] {
        fs::create_dir_all(place.path(folder)).unwrap();
    }
    let source = "__attribute__((device)) int f(int x) { return x; }\n";
    for name in ["a.hip", "b.hip", "deep/c.hip", "deep/d.hip"] {
        place.write(format!("in/kernels/{name}"), source);
    }
    place.write("helper.c", "int helper(int x) { return x + 1; }\n");
    let compile = |output: &str| {
        let args = ["--target=amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-nogpulib"];
        let output = ["-emit-llvm", "-c", "helper.c", "-o", output];
        place.run(clang.to_str().unwrap(), &[&args[..], &output].concat());
    };
    compile("helper.bc");
    // The first has the name for the target, the second is what a search takes without it.
    place.run(
        "ar",
        &["rcS", "in/lib/libhelper-amdgcn-gfx90a.a", "helper.bc"],
    );
    compile("second.bc");
    let targets = "-targets=hip-amdgcn-amd-amdhsa--gfx90a";
    let args = ["-type=bc", targets, "-input=second.bc", "-output=both.bc"];
    place.run(BUNDLER, &args);
    place.run("ar", &["rcS", "in/lib/libhelper.a", "both.bc"]);
    let keys = format!(
        "language = \"hip\"\nsources = [\"kernels/**/*.hip\"]\ntargets = [\"gfx90a\"]\nlink = [\"helper\"]\n\
         compiler = {clang:?}\nflags = [\"-nogpulib\", \"-nogpuinc\"]\n"
    );
    check_script(&place, Part::Plan, &keys);
}

/// Sources, what compilers make of them, keys of tasks, and the compilers themselves.
#[test]
fn compiles_all_sources_or_fails() {
    let Some(clang) = crate::support::tool("llvm22", &["clang"]) else {
        return;
    };
    let (place, _) = linker();
    fs::create_dir_all(place.path("in/kernels")).unwrap();
    let kernel = "__attribute__((global)) void kernel(int *p) { *p = 1; }\n";
    place.write("in/kernels/kernel.hip", kernel);
    let keys = format!(
        "language = \"hip\"\nsources = [\"kernels/*.hip\"]\ntargets = [\"gfx90a\"]\nrdc = false\n\
         compiler = {clang:?}\nflags = [\"-nogpulib\", \"-nogpuinc\"]\n"
    );
    check_script(&place, Part::Compile, &keys);
}
