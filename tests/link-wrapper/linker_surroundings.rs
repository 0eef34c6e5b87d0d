//! The linker wrapper among programs that fail, lie or are not there.

use crate::linker_support::text;
use crate::support;

use crate::support::folder::Folder;
use crate::support::shim_clang;

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const TOOL: &str = env!("CARGO_BIN_EXE_offload-link");
/// Images for sm_70 and gfx90a.
const BINARY: &[u8] = include_bytes!("../golden/22.1.8/two-images.offload-binary");

/// A folder in which the tool has a clang of ours beside it, and a linker of ours.
struct Place {
    folder: Folder,
}

impl Deref for Place {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.folder
    }
}

impl Place {
    /// In the body of `clang` `$o` is the output, `$cpu` the processor.
    fn new(clang: &str) -> Self {
        let place = Self {
            folder: Folder::new(),
        };
        for folder in ["bin", "tmp", "cuda"] {
            fs::create_dir(place.path(folder)).unwrap();
        }
        for name in ["clang-linker-wrapper", "offload-ld"] {
            symlink(TOOL, place.path("bin").join(name)).unwrap();
        }
        shim_clang::put(&place, clang);
        place.script("ld", "echo linked >> ran; echo program > output");
        place.write("in.bc", shim_clang::bundle());
        let images = [("gfx906", 0x2f), ("gfx90a:sramecc+:xnack-", 0xe3f)];
        shim_clang::put_images(&place, &images);
        place
    }

    fn command(&self, name: &str) -> Command {
        self.command_by(self.path("bin").join(name))
    }

    fn command_by(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.root())
            .env("TMPDIR", self.path("tmp"))
            .env("CUDA_PATH", self.path("cuda"))
            .env_remove("OFFLOAD_LINK_REPORT")
            .env_remove("OFFLOAD_LINK_ACTIVE")
            .env_remove("OFFLOAD_LLVM")
            .stdin(Stdio::null());
        command
    }

    fn link(&self, name: &str, args: &[&str]) -> Output {
        let mut command = self.command(name);
        command.args(["--linker-path=./ld", "-o", "output"]);
        command.args(args).output().unwrap()
    }

    /// The error of a link that must fail, without a host link, an output or a file left.
    fn error(&self, name: &str, args: &[&str]) -> String {
        let output = self.link(name, args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert!(!self.path("ran").exists(), "{name}: {said}");
        assert!(!self.path("output").exists(), "{name}: {said}");
        assert_eq!(self.left(), 0, "{name}: {said}");
        let (_, error) = said.split_once(": error: ").unwrap();
        // Under LLVM's name no error of this kind has a code.
        let code = " [OFF810]";
        let is_llvm = name == "clang-linker-wrapper";
        assert_eq!(
            error.matches(code).count(),
            usize::from(!is_llvm),
            "{name}: {said}"
        );
        let error = error.replace(code, "");
        let folder = self.root().canonicalize().unwrap();
        error.replace(&*folder.to_string_lossy(), "FOLDER")
    }

    fn left(&self) -> usize {
        fs::read_dir(self.path("tmp")).unwrap().count()
    }
}

const NAMES: [&str; 2] = ["clang-linker-wrapper", "offload-ld"];

#[test]
fn takes_what_a_device_compiler_makes_for_the_target() {
    for name in NAMES {
        let place = Place::new(shim_clang::COPY);
        let output = place.link(name, &["in.bc"]);
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        assert_eq!(fs::read(place.path("output")).unwrap(), b"program\n");
        assert_eq!(place.left(), 0);
    }
}

#[test]
fn leaves_nothing_of_a_device_compiler_that_a_signal_ends() {
    for (name, number) in [("-INT", 2), ("-QUIT", 3), ("-TERM", 15)] {
        let place = Place::new("echo > \"${TMPDIR:-/tmp}/left\"; echo $$ > started; exec sleep 60");
        let mut link = place
            .command_by("env")
            .arg(support::DEFAULT_SIGNALS)
            .arg(place.path("bin/offload-ld"))
            .args(["--linker-path=./ld", "-o", "output", "in.bc"])
            .spawn()
            .unwrap();
        let since = Instant::now();
        let started = || fs::read_to_string(place.path("started")).unwrap_or_default();
        while !started().ends_with('\n') {
            assert!(
                since.elapsed() < Duration::from_secs(20),
                "the compiler did not start"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        let compiler = format!("/proc/{}/stat", started().trim());
        let kill = Command::new("kill")
            .args([name, &link.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
        assert_eq!(link.wait().unwrap().signal(), Some(number), "{name}");
        let stat = fs::read_to_string(compiler).unwrap_or_default();
        assert!(
            stat.is_empty() || stat.contains(") Z"),
            "{name}: the compiler goes on"
        );
        assert_eq!(place.left(), 0, "{name}");
        assert!(!place.path("output").exists(), "{name}");
    }
}

/// The ID of the host in HIP's bundle, by which LLVM 19 and later releases differ.
fn host_id(place: &Place, args: &[&str]) -> String {
    let said = place.link("clang-linker-wrapper", &[&["--dry-run"], args].concat());
    let said = text(&said.stderr);
    let (_, rest) = said
        .split_once("-targets=")
        .unwrap_or_else(|| panic!("{said}"));
    rest.split(',').next().unwrap().to_owned()
}

#[test]
fn has_the_rules_of_the_clang_that_starts_it_from_any_folder() {
    let place = Place::new(shim_clang::COPY);
    // The second of the two offload binaries, for gfx90a.
    place.write("hip.bin", &BINARY[0x98..]);
    let images = ".section .llvm.offloading,\"e\",@0x6fff4c0b\n.incbin \"hip.bin\"\n";
    // An entry has 32 bytes up to LLVM 19, and 56 later.
    let entry = |size| {
        format!(
            ".section omp_offloading_entries,\"aw\"\n.type .offloading.entry.k,@object\n\
             .size .offloading.entry.k,{size}\n.globl .offloading.entry.k\n.offloading.entry.k: .fill {size}\n"
        )
    };
    for (name, text) in [
        ("19", ".ident \"clang version 19.1.7\"\n".to_owned()),
        ("22", ".ident \"clang version 22.1.8\"\n".to_owned()),
        ("none", String::new()),
        ("old", entry(32)),
        ("new", entry(56)),
    ] {
        place.write("host.s", format!("{text}{images}"));
        let object = format!("{name}.o");
        let mut cc = Command::new("cc");
        cc.args(["-c", "host.s", "-o", &object])
            .current_dir(place.root());
        assert!(cc.status().unwrap().success());
    }
    let (until_19, later) = ("host-x86_64-unknown-linux", "host-x86_64-unknown-linux-gnu");
    for (args, expected) in [
        (&["19.o"][..], until_19),
        (&["22.o"], later),
        (&["none.o"], later),
        (&["old.o"], until_19),
        (&["new.o"], later),
        // Options that clang 19 passes, and those that came later.
        (&["none.o", "--opt-level=O2"], until_19),
        (&["22.o", "--device-debug"], until_19),
        (&["19.o", "--device-compiler=-O2"], later),
        // Whoever names a release is believed.
        (&["19.o", "--llvm=22"], later),
        (&["22.o", "--llvm=19"], until_19),
    ] {
        assert_eq!(host_id(&place, args), expected, "{args:?}");
    }
}

#[test]
fn refuses_what_is_no_image_for_the_target() {
    let amd = "device link for amdgcn-amd-amdhsa gfx906: ";
    for (clang, problem) in [
        ("exit 0", "it made no valid image: cannot read `"),
        (
            ": > \"$o\"",
            "it made no valid image: it is empty\ncommand: ",
        ),
        (
            "echo garbage > \"$o\"",
            "it made no valid image: it is not an ELF file\ncommand: ",
        ),
        (
            "printf '\\177ELF' > \"$o\"",
            "it made no valid image: image is not an ELF file: ",
        ),
        (
            "cp bin/x86 \"$o\"",
            "it made no valid image: image has e_machine 0x3e, expected 0xe0\ncommand: ",
        ),
        (
            "cp 'image-gfx90a:sramecc+:xnack-' \"$o\"",
            "it made no valid image: image has e_flags 0xe3f, expected gfx906 (0x2f in bits 0-7)\ncommand: ",
        ),
        ("kill -SEGV $$", "`"),
        ("kill -KILL $$", "`"),
        ("cp \"image-$cpu\" \"$o\"; echo no more >&2; exit 3", "`"),
    ] {
        for name in NAMES {
            let place = Place::new(clang);
            place.write("bin/x86", shim_clang::OBJECT);
            let error = place.error(name, &["in.bc"]);
            let start = format!("{amd}{problem}");
            assert!(error.contains(&start), "{name}: {clang}: {error}");
            if problem == "`" {
                let how = [
                    "signal: 11 (SIGSEGV)",
                    "signal: 9 (SIGKILL)",
                    "exit status: 3",
                ];
                // A shell may leave a core behind, which the status says.
                let found = how
                    .iter()
                    .find(|how| error.contains(&format!("failed ({how}")));
                assert!(found.is_some(), "{name}: {clang}: {error}");
            }
        }
    }
}

#[test]
fn says_which_program_is_missing_and_how_to_get_it() {
    let hint = "install NVIDIA's compilers (Debian's non-free, Ubuntu: `apt install nvidia-cuda-toolkit`; Fedora, of NVIDIA's \
                repository: `dnf install cuda-toolkit`; Arch: `pacman -S cuda`; conda-forge: `conda install cuda-nvcc`; \
                PyPI: `pip install nvidia-cuda-nvcc`; PyPI, CUDA 12: `pip install nvidia-cuda-nvcc-cu12`), and set CUDA_PATH to its root";
    let place = Place::new(shim_clang::COPY);
    // The first of the two offload binaries, for sm_70.
    let mut cuda = BINARY.to_vec();
    cuda.truncate(0x98);
    place.write("cuda.bin", &cuda);
    let error = place
        .command("offload-ld")
        .env("PATH", place.path("cuda"))
        .env("CUDA_HOME", "/none/home")
        .env("CUDA_ROOT", "")
        .env("CUDA_TOOLKIT_ROOT_DIR", "/none/other")
        .args(["--linker-path=./ld", "-o", "output", "cuda.bin"])
        .output()
        .unwrap();
    let said = text(&error.stderr);
    let cuda = place.path("cuda").display().to_string();
    let missing = format!(
        "nvptx64-nvidia-cuda sm_70: left out: `nvlink` not found (searched: /none/home/bin, {cuda}/bin, /none/other/bin, \
         /usr/local/cuda/bin, PATH) [OFF605]\nhint: {hint}\n"
    );
    assert!(
        said.contains(&format!(
            "error: none of the device code that was found can be linked [OFF806]\n{missing}"
        )),
        "{said}"
    );
    assert_eq!(error.status.code(), Some(1));
    assert!(!place.path("ran").exists() && place.left() == 0);

    // What one installation lacks, another has: that its linker reads none of this says which it was.
    fs::remove_file(place.path("bin/ld.lld")).unwrap();
    if support::tool("llvm22", &["ld.lld"]).is_some() {
        let error = place.error("offload-ld", &["in.bc"]);
        assert_eq!(error.matches("device link for ").count(), 2, "{error}");
        assert!(!error.contains("FOLDER/bin/clang "), "{error}");
    }
    place.write("bin/ld.lld", "");

    for (name, linker) in [("clang-linker-wrapper", "./none"), ("offload-ld", "none")] {
        let output = place
            .command(name)
            .args([&format!("--linker-path={linker}"), "in.bc", "-o", "output"])
            .output()
            .unwrap();
        let said = text(&output.stderr);
        let expected =
            format!(": error: cannot start the host linker `{linker}`: not found [OFF803]\nhint: ");
        assert!(said.contains(&expected), "{said}");
        assert_eq!((output.status.code(), place.left()), (Some(1), 0), "{said}");
    }
}

#[test]
fn leaves_the_old_output_when_no_new_one_comes() {
    for name in NAMES {
        let place = Place::new("exit 1");
        place.write("output", "old");
        let output = place.link(name, &["--emit-fatbin-only", "in.bc"]);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(fs::read(place.path("output")).unwrap(), b"old");
        place.script("bin/clang", "echo garbage > output");
        let place = Place::new(shim_clang::COPY);
        fs::create_dir(place.path("output")).unwrap();
        let output = place.link(name, &["--emit-fatbin-only", "in.bc"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(": error: cannot write `output`: "), "{said}");
        let beside = fs::read_dir(place.root()).unwrap();
        let names: Vec<_> = beside.map(|file| file.unwrap().file_name()).collect();
        assert_eq!(names.len(), 8, "{names:?}");
        assert_eq!(place.left(), 0);
    }
}

#[test]
fn reads_response_files_that_are_none_or_their_own() {
    let place = Place::new(shim_clang::COPY);
    place.script("ld", "printf '%s\\n' \"$@\" > ran");
    for name in NAMES {
        for (file, content) in [("own", "a @own"), ("one", "@two"), ("two", "-x @one @one")] {
            place.write(file, content);
            let output = place.link(name, &[&format!("@{file}")]);
            let said = text(&output.stderr);
            assert!(
                said.contains(": more than 2000 nested response files"),
                "{said}"
            );
            assert_eq!(output.status.code(), Some(1));
            assert!(!place.path("ran").exists());
            // Read by the next.
            place.write("one", "@two");
            place.write("two", "-x @one @one");
        }
        // Not there, a folder, empty, and one that ends inside of quotes, which is passed on as it is.
        place.write("none", "");
        place.write("cut", "'in.bc -x");
        let output = place.link(name, &["@missing", "@bin", "@none", "@cut"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let given = fs::read_to_string(place.path("ran")).unwrap();
        assert!(given.ends_with("@missing\n@bin\n@cut\n"), "{given}");
        fs::remove_file(place.path("ran")).unwrap();
    }
}

#[test]
fn links_twice_at_once_and_keeps_the_steps_of_both() {
    let place = Place::new(shim_clang::COPY);
    place.script(
        "ld",
        "while [ \"$1\" != -o ]; do shift; done; echo program > \"$2\"",
    );
    let links: Vec<_> = ["one", "two", "three"]
        .map(|output| {
            let mut link = place.command("offload-ld");
            link.args(["--linker-path=./ld", "--save-temps", "-o", output, "in.bc"]);
            link.spawn().unwrap()
        })
        .into_iter()
        .collect();
    for mut link in links {
        assert!(link.wait().unwrap().success());
    }
    for output in ["one", "two", "three"] {
        for step in ["amdgcn-amd-amdhsa.gfx906.img", "hip.image.wrapper.o"] {
            let file = place.path(format!("{output}.{step}"));
            assert!(file.exists(), "{}", file.display());
        }
    }
    assert_eq!(place.left(), 0);
}

#[test]
fn ends_as_usual_when_nobody_can_be_told() {
    let place = Place::new("echo said >&2; cp \"image-$cpu\" \"$o\"");
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    let status = |name: &str, args: &[&str]| {
        let mut command = place.command(name);
        command.args(args).stderr(full()).stdout(full());
        command.status().unwrap().code()
    };
    for name in NAMES {
        let linker = "--linker-path=./ld";
        for (args, code) in [
            (&[linker, "--dry-run", "in.bc"][..], 0),
            (&[linker, "--wrapper-verbose", "in.bc"], 0),
            (&[linker, "--print-wrapped-module", "--dry-run", "in.bc"], 0),
            (&[linker, "--device-linker"], 1),
        ] {
            assert_eq!(status(name, args), Some(code), "{name} {args:?}");
        }
    }
    let mut answer = place.command(NAMES[0]);
    let said = answer.arg("--help").stdout(full()).output().unwrap();
    let said = String::from_utf8(said.stderr).unwrap();
    assert_eq!(
        said,
        "error: cannot write to standard output: No space left on device (os error 28)\n"
    );
    // The host linker, which would print its version, too, does not run.
    assert_eq!(status(NAMES[1], &["--version"]), Some(1));
    // As LLVM's 22: an answer that does not arrive is a failure. Not for a reader that has gone, `--help | true`.
    let name = "clang-linker-wrapper";
    assert_eq!(status(name, &["--help"]), Some(1));
    let mut help = place.command(name);
    let mut help = help.arg("--help").stdout(Stdio::piped()).spawn().unwrap();
    drop(help.stdout.take());
    assert_eq!(help.wait().unwrap().code(), Some(0));
}
