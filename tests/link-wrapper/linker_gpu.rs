//! Real programs with HIP and CUDA code, linked by LLVM's linker wrapper and by ours in each position:
//! the runtime is told the same by all.
//!
//! The runtimes are stand-ins that print each call of a registration, and the kernel of each launch.

use crate::linker_support as support;
use crate::support::WITHOUT_LIBLLVM;
use crate::support::folder::Folder;

use crate::runtimes;

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use object::{Object, ObjectSection};
use runtimes::{HIP, RUNTIME, SYCL_RUNTIME};
use support::{found, linkers, other, region, text, tool};

const TOOL: &str = env!("CARGO_BIN_EXE_offload-link");

const TOOLKIT_HEADERS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../offload-build/include/offload/toolkit"
);
/// Directory of `<offload/gpu.h>`, as an option.
const INCLUDE: &str = concat!(
    "-I",
    env!("CARGO_MANIFEST_DIR"),
    "/../offload-build/include"
);
const CUDA: &str = "#include \"cuda_runtime.h\"\n#include <stdio.h>\n#define MANAGED\n";

/// Three files, of which each uses device code of another, and a file for a library.
const APART: [(&str, &str); 4] = [
    (
        "main",
        "__device__ int twice(int);
         extern __device__ int number;
         __global__ void first(int *p) { *p = twice(*p) + number; }
         MANAGED
         extern \"C\" int second_launch(), third_launch(), library_launch();
         int main() {
           first<<<1, 64>>>(nullptr);
           puts(\"main\");
           return second_launch() + third_launch() + library_launch();
         }",
    ),
    (
        "second",
        "__device__ int number = 3;
         __constant__ int table[4] = {1, 2, 3, 4};
         __device__ int twice(int x) { return x + table[x & 3]; }
         __global__ void second(int *p) { *p = twice(*p); }
         extern \"C\" int second_launch() { second<<<1, 1>>>(nullptr); return 0; }",
    ),
    (
        "third",
        "__device__ int twice(int);
         __global__ void third(long *p, int x) { *p = twice(x); }
         extern \"C\" int third_launch() { third<<<1, 1>>>(nullptr, 1); return 0; }",
    ),
    (
        "library",
        "__device__ int in_library = 4;
         __global__ void in_the_library(int *p) { *p = in_library; }
         extern \"C\" int library_launch() { in_the_library<<<2, 2>>>(nullptr); return 0; }",
    ),
];

/// Without -fgpu-rdc no file sees device code of another.
const ALONE: [(&str, &str); 4] = [
    (
        "main",
        "__device__ int number = 3;
         __global__ void first(int *p) { *p = number; }
         extern \"C\" int second_launch(), third_launch(), library_launch();
         int main() {
           first<<<1, 64>>>(nullptr);
           puts(\"main\");
           return second_launch() + third_launch() + library_launch();
         }",
    ),
    (
        "second",
        "__constant__ int table[4] = {1, 2, 3, 4};
         __global__ void second(int *p) { *p = table[*p & 3]; }
         extern \"C\" int second_launch() { second<<<1, 1>>>(nullptr); return 0; }",
    ),
    (
        "third",
        "__global__ void third(long *p, int x) { *p = x; }
         extern \"C\" int third_launch() { third<<<1, 1>>>(nullptr, 1); return 0; }",
    ),
    APART[3],
];

/// A language whose programs have a runtime.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Hip,
    Cuda,
    Sycl,
}

/// Who runs the host link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// clang with its own linker wrapper.
    Stock,
    /// clang with ours, under LLVM's name.
    Replaced,
    /// Ours, in front of the system's compiler.
    Driver,
}

const OURS: [Way; 2] = [Way::Replaced, Way::Driver];

/// Our tool in both positions, or in one of them in each turn: in turn 0 as the driver.
fn ways(turn: usize) -> impl Iterator<Item = Way> {
    crate::support::share(OURS, (turn + 1) % 2, 2)
}

struct Place {
    dir: Folder,
    release: &'static str,
    clang: PathBuf,
    language: Language,
    /// NVIDIA's files.
    cuda: Option<PathBuf>,
    /// True if `main` includes NVIDIA's headers, which take most of a compile.
    with_headers: bool,
}

impl Deref for Place {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.dir
    }
}

impl Place {
    fn hip(release: &'static str) -> Option<Self> {
        Self::new(release, Language::Hip, None)
    }

    fn cuda(release: &'static str) -> Option<Self> {
        let given = std::env::var_os("CUDA_PATH").map(PathBuf::from);
        let given = given.filter(|root| root.join("bin/nvlink").is_file());
        let root = given.or_else(|| {
            let nvlink = other("cuda", &["nvlink"])?;
            Some(nvlink.parent()?.parent()?.to_owned())
        })?;
        Self::new(release, Language::Cuda, Some(root))
    }

    fn new(release: &'static str, language: Language, cuda: Option<PathBuf>) -> Option<Self> {
        let word = format!("llvm{release}");
        let clang = tool(&word, "clang++")?;
        tool(&word, "clang-linker-wrapper")?;
        let dir = Folder::new();
        for folder in ["tmp", "llvm"] {
            fs::create_dir(dir.path(folder)).unwrap();
        }
        symlink(TOOL, dir.path("llvm/clang-linker-wrapper")).unwrap();
        let place = Self {
            dir,
            release,
            clang,
            language,
            cuda,
            with_headers: false,
        };
        place.write(
            "runtime.c",
            match language {
                Language::Hip | Language::Cuda => RUNTIME,
                Language::Sycl => SYCL_RUNTIME,
            },
        );
        let (prefix, library) = match language {
            Language::Hip => ("-DPREFIX=hip", "libamdhip64.so"),
            Language::Cuda => ("-DPREFIX=cuda", "libcudart.so"),
            Language::Sycl => ("-DPREFIX=sycl", "libsycl.so"),
        };
        let shared = ["-shared", "-fPIC", "-w", prefix, "runtime.c", "-o", library];
        place.done(place.command("cc").args(shared));
        Some(place)
    }

    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        // Behind the others: clang's helper looks for `nvlink` nowhere else, nor clang for its linker of SYCL.
        folders.extend(self.cuda.iter().map(|root| root.join("bin")));
        if self.language == Language::Sycl {
            let clang = self.clang.canonicalize().unwrap();
            folders.extend(clang.parent().map(Path::to_owned));
        }
        command
            .current_dir(self.root())
            .env("PATH", std::env::join_paths(folders).unwrap())
            .env("TMPDIR", self.path("tmp"))
            .env_remove("OFFLOAD_LINK_REPORT")
            .env_remove("OFFLOAD_LINK_ACTIVE")
            .env_remove("OFFLOAD_LLVM")
            .env_remove("CUDA_PATH")
            .env_remove("CC");
        command
    }

    fn done(&self, command: &mut Command) -> Output {
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{command:?}: {}",
            text(&output.stderr)
        );
        output
    }

    /// Compiles a source to an object.
    fn compile_to(&self, object: &str, source: &str, flags: &[&str]) {
        let without_headers = HIP.replace("hip", "cuda") + "#undef MANAGED\n#define MANAGED\n";
        let with_headers = self.with_headers && object == "main.o";
        let (start, language, targets) = match (self.language, with_headers) {
            (Language::Hip, _) => (HIP, "hip", "--offload-arch=gfx90a,gfx1100"),
            (Language::Cuda, false) => (&*without_headers, "cuda", "--offload-arch=sm_80,sm_90"),
            (Language::Cuda, true) => (CUDA, "cuda", "--offload-arch=sm_80,sm_90"),
            (Language::Sycl, _) => unreachable!("images of SYCL are packed"),
        };
        let file = object.replace(".o", ".cu");
        self.write(&file, format!("{start}{source}"));
        let mut clang = self.command(&self.clang);
        clang.args([
            "-x", language, targets, "-O1", "-fPIC", "-c", &file, "-o", object,
        ]);
        match &self.cuda {
            Some(root) => clang
                .arg(format!("--cuda-path={}", root.display()))
                // Headers that NVIDIA's wheels lack.
                .args(["-idirafter", TOOLKIT_HEADERS]),
            None => clang.args(["-nogpulib", "-nogpuinc"]),
        };
        if self.language == Language::Cuda && !with_headers {
            // What clang asks the headers.
            let version = ["-Xclang", "-target-sdk-version=12.3"];
            clang.args(["-nocudainc", "-nocudalib"]).args(version);
            clang.arg("--cuda-feature=+ptx78");
        }
        clang.args(["--offload-new-driver", "-Wno-unknown-cuda-version"]);
        self.done(clang.args(flags));
    }

    /// Compiles what `APART` or `ALONE` has; the last one goes into a static library.
    fn compile(&self, sources: &[(&str, &str); 4], flags: &[&str]) {
        for (name, source) in sources {
            self.compile_to(&format!("{name}.o"), source, flags);
        }
        let _ = fs::remove_file(self.path("liblibrary.a"));
        self.done(
            self.command("ar")
                .args(["rcs", "liblibrary.a", "library.o"]),
        );
    }

    /// A link of `args`, by clang or by our tool; `linker` is the one that is run last.
    fn link(&self, way: Way, linker: &Path, args: &[&str]) -> Command {
        let mut command = match way {
            Way::Stock | Way::Replaced => {
                let mut command = self.command(&self.clang);
                command.arg("--offload-link");
                command.arg(format!("--ld-path={}", linker.display()));
                if way == Way::Replaced {
                    command.arg(format!("-B{}", self.path("llvm").display()));
                }
                if self.language == Language::Hip {
                    command.arg("-no-hip-rt");
                }
                if let Some(root) = &self.cuda {
                    command.arg(format!("--cuda-path={}", root.display()));
                }
                command
            }
            Way::Driver => {
                // gcc knows linkers by a word, and looks for them in the folders of -B.
                let name = linker.file_name().unwrap().to_string_lossy().into_owned();
                let word = ["lld", "gold", "bfd"]
                    .into_iter()
                    .find(|word| name.contains(word));
                let word = word.unwrap();
                let folder = self.path(linker.display().to_string().replace('/', "-"));
                fs::create_dir_all(&folder).unwrap();
                let file = folder.join(format!("ld.{word}"));
                if !file.exists() {
                    symlink(linker, file).unwrap();
                }
                let mut command = self.command(TOOL);
                command
                    .env("OFFLOAD_CC", "cc")
                    .arg(format!("-B{}", folder.display()));
                command.arg(format!("-fuse-ld={word}"));
                if let Some(root) = &self.cuda {
                    command.env("CUDA_PATH", root);
                }
                command
            }
        };
        if way != Way::Stock {
            // LLVM's tool loses the entries here, with lld.
            command.arg("-Wl,--gc-sections");
        }
        let runtime = match self.language {
            Language::Hip => "-lamdhip64",
            Language::Cuda => "-lcudart",
            Language::Sycl => "-lsycl",
        };
        command
            .args(args)
            .args(["-L.", runtime, "-Wl,-rpath,$ORIGIN"]);
        command
    }

    /// Links silently and without leaving files.
    fn linked(&self, way: Way, linker: &Path, args: &[&str]) {
        let output = self.done(&mut self.link(way, linker, args));
        if way == Way::Stock {
            // Its linker for SYCL leaves a file.
            fs::remove_dir_all(self.path("tmp")).unwrap();
            fs::create_dir(self.path("tmp")).unwrap();
            return;
        }
        assert_eq!(text(&output.stderr), "", "{way:?} {args:?}");
        let left = fs::read_dir(self.path("tmp")).unwrap().count();
        assert_eq!(left, 0, "{way:?} {args:?}");
    }

    /// What `program` tells its runtime, sorted.
    fn calls(&self, program: &str) -> Vec<String> {
        let output = self.done(&mut self.command(self.path(program)));
        let said = text(&output.stdout);
        let mut calls: Vec<String> = said.lines().map(str::to_owned).collect();
        calls.sort();
        calls
    }

    /// What a program linked with LLVM's tool tells it.
    fn stock(&self, args: &[&str]) -> Vec<String> {
        let bfd = found("ld.bfd").unwrap();
        self.linked(Way::Stock, &bfd, &[args, &["-o", "stock"]].concat());
        self.calls("stock")
    }

    /// Links with every linker, and compares with LLVM's tool.
    fn compare(&self, args: &[&str]) -> Vec<String> {
        let expected = self.stock(args);
        let linkers = linkers();
        for (index, (name, linker)) in linkers.iter().enumerate() {
            for way in ways(linkers.len() - 1 - index) {
                self.linked(way, linker, &[args, &["-o", "ours"]].concat());
                assert_eq!(self.calls("ours"), expected, "{way:?} {name} {args:?}");
            }
        }
        expected
    }

    /// The bytes of a section.
    fn section(&self, program: &str, section: &str) -> (u64, Vec<u8>) {
        let bytes = fs::read(self.path(program)).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let section = file.section_by_name(section).unwrap();
        (section.address(), section.data().unwrap().to_vec())
    }
}

const OBJECTS: [&str; 4] = ["main.o", "second.o", "third.o", "liblibrary.a"];

/// Names of C++, as `int *` is the parameter of most.
fn kernels(calls: &[String], call: &str) -> Vec<String> {
    let names = calls.iter().filter_map(|line| line.strip_prefix(call));
    names
        .map(|line| line.trim().split(' ').next().unwrap().to_owned())
        .collect()
}

const KERNELS: [&str; 4] = [
    "_Z14in_the_libraryPi",
    "_Z5firstPi",
    "_Z5thirdPli",
    "_Z6secondPi",
];

/// Offset and ID of the entries of a bundle (`docs/spec/bundler.md` §2.1).
fn entries(bundle: &[u8]) -> Vec<(u64, u64, String)> {
    assert_eq!(&bundle[..24], b"__CLANG_OFFLOAD_BUNDLE__");
    let number = |at: usize| u64::from_le_bytes(bundle[at..at + 8].try_into().unwrap());
    let mut at = 32;
    let mut entries = Vec::new();
    for _ in 0..number(24) {
        let len = usize::try_from(number(at + 16)).unwrap();
        let id = text(&bundle[at + 24..at + 24 + len]);
        entries.push((number(at), number(at + 8), id));
        at += 24 + len;
    }
    entries
}

#[test]
fn registers_hip_programs_as_llvm_does() {
    for release in crate::support::share(["22", "19"], 0, 2) {
        let Some(place) = Place::hip(release) else {
            return;
        };
        place.compile(&APART, &["-fgpu-rdc"]);
        let calls = place.compare(&OBJECTS);
        assert_eq!(kernels(&calls, "Function"), KERNELS);
        assert_eq!(kernels(&calls, "launch"), KERNELS);
        assert_eq!(kernels(&calls, "Var"), ["in_library", "number", "table"]);
        // LLVM 19 registers none.
        let managed: &[&str] = if release == "22" { &["managed"] } else { &[] };
        assert_eq!(kernels(&calls, "ManagedVar"), managed);

        // The last one is of our tool in front of the system's compiler.
        let (address, bundle) = place.section("ours", ".hip_fatbin");
        assert_eq!(address % 4096, 0);
        fs::write(place.path("bundle"), &bundle).unwrap();
        let bundler = tool(&format!("llvm{release}"), "clang-offload-bundler").unwrap();
        let list = ["-list", "-type=o", "-input=bundle"];
        let listed = place.done(place.command(bundler).args(list));
        let mut listed: Vec<String> = text(&listed.stdout).lines().map(str::to_owned).collect();
        let entries = entries(&bundle);
        let mut ids: Vec<String> = entries.iter().map(|(_, _, id)| id.clone()).collect();
        assert_eq!(ids.len(), 3, "{ids:?}");
        ids.sort();
        listed.sort();
        assert_eq!(listed, ids);
        for (offset, size, id) in &entries {
            assert_eq!(offset % 4096, 0, "{id}");
            let is_elf = bundle[usize::try_from(*offset).unwrap()..].starts_with(b"\x7fELF");
            assert!(is_elf && *size > 0 || id.starts_with("host-"), "{id}");
        }
        for arch in ["gfx90a", "gfx1100"] {
            let entry = format!("hipv4-amdgcn-amd-amdhsa--{arch}");
            assert!(ids.contains(&entry), "{ids:?}");
        }
    }
}

/// `docs/spec/linker-wrapper.md` §1.1: the images are in the objects, which register themselves.
#[test]
fn leaves_hip_and_cuda_objects_alone_that_are_complete() {
    // Each language once, or HIP by two releases.
    let places = [("hip", "22"), ("cuda", "22"), ("hip", "19")];
    for (language, release) in &places[..crate::support::cases(2, 3)] {
        let place = match *language {
            "hip" => Place::hip(release),
            _ => Place::cuda(release),
        };
        let Some(place) = place else {
            continue;
        };
        place.compile(&ALONE, &[]);
        let calls = place.compare(&OBJECTS);
        assert_eq!(kernels(&calls, "launch"), KERNELS);
        assert_eq!(kernels(&calls, "FatBinary").len(), 4, "{calls:?}");
    }
}

#[test]
fn registers_cuda_programs_as_llvm_does() {
    let Some(mut place) = Place::cuda("22") else {
        return;
    };
    place.with_headers = true;
    place.compile(&APART, &["-fgpu-rdc"]);
    let calls = place.compare(&OBJECTS);
    assert_eq!(kernels(&calls, "Function"), KERNELS);
    assert_eq!(kernels(&calls, "launch"), KERNELS);
    assert_eq!(kernels(&calls, "Var"), ["in_library", "number", "table"]);
    let cuobjdump = place.cuda.as_ref().unwrap().join("bin/cuobjdump");
    let list = |program: &str| {
        let listed = place.done(place.command(&cuobjdump).args(["--list-elf", program]));
        text(&listed.stdout).replace(program, "program")
    };
    assert_eq!(list("ours"), list("stock"));
    assert!(list("ours").contains("sm_80") && list("ours").contains("sm_90"));
}

/// LLVM's tool of that release calls `fatbinary` as CUDA 13 does not know it.
#[test]
fn links_cuda_of_clang_19_with_a_newer_cuda() {
    let (Some(old), Some(new)) = (Place::cuda("19"), Place::cuda("22")) else {
        return;
    };
    for place in [&old, &new] {
        place.compile(&APART, &["-fgpu-rdc"]);
    }
    let expected = new.stock(&OBJECTS);
    for (turn, (name, linker)) in linkers().into_iter().enumerate() {
        for way in ways(turn) {
            old.linked(way, &linker, &[&OBJECTS[..], &["-o", "ours"]].concat());
            assert_eq!(old.calls("ours"), expected, "{way:?} {name}");
        }
    }
}

#[test]
fn registers_shared_libraries_apart_and_relocatable_objects_once() {
    let places = [Place::hip("22"), Place::hip("19"), Place::cuda("22")];
    for (number, place) in crate::support::share(places, 0, 2).enumerate() {
        let Some(place) = place else {
            continue;
        };
        let main = "__global__ void first(int *p) { *p = 1; }
            extern \"C\" int library_launch();
            int main() { first<<<1, 1>>>(nullptr); puts(\"main\"); return library_launch(); }";
        place.compile_to("main.o", main, &["-fgpu-rdc"]);
        place.compile_to("library.o", APART[3].1, &["-fgpu-rdc"]);
        let bfd = found("ld.bfd").unwrap();
        let step = |way: Way, linker: &Path, args: &[&str]| place.linked(way, linker, args);
        let shared = ["-shared", "library.o", "-o", "libshared.so"];
        let program = ["main.o", "-lshared", "-o", "program"];
        step(Way::Stock, &bfd, &shared);
        step(Way::Stock, &bfd, &program);
        let expected = place.calls("program");
        assert_eq!(kernels(&expected, "FatBinary").len(), 2);
        assert_eq!(
            kernels(&expected, "launch"),
            ["_Z14in_the_libraryPi", "_Z5firstPi"]
        );
        for (turn, (name, linker)) in linkers().into_iter().enumerate() {
            for (index, way) in OURS.into_iter().enumerate() {
                // One way with each second linker, the other way and the other linkers in the next place.
                if !crate::support::tests_all() && (number + turn + 2 * index) % 4 != 0 {
                    continue;
                }
                step(way, &linker, &shared);
                step(way, &linker, &program);
                assert_eq!(place.calls("program"), expected, "{way:?} {name} shared");
                if name != "gold" {
                    // Only symbols of the start and the end lead to the entries.
                    let collect = ["-Wl,-z,start-stop-gc"];
                    step(way, &linker, &[&program[..], &collect].concat());
                    assert_eq!(place.calls("program"), expected, "{way:?} {name} collected");
                    let lost = [
                        "-r",
                        "-nostdlib",
                        "-Wl,-e,library_launch",
                        "library.o",
                        "-o",
                        "lost.o",
                    ];
                    let lost = place.link(Way::Driver, &linker, &lost);
                    let mut lost = without(lost, &["-lamdhip64", "-lcudart"]);
                    let lost = lost.output().unwrap();
                    let said = String::from_utf8_lossy(&lost.stderr);
                    assert!(
                        !lost.status.success() && !place.path("lost.o").exists(),
                        "{said}"
                    );
                    assert!(
                        said.contains(
                            "--gc-sections: a relocatable link removes the offload entries"
                        ),
                        "{said}"
                    );
                }
                // The same of an object that a relocatable link made: it registers its own.
                let mut relocatable = place.link(way, &linker, &["-r", "library.o", "-o", "r.o"]);
                if way == Way::Driver {
                    relocatable.arg("-nostdlib");
                }
                let mut relocatable = without(
                    relocatable,
                    &["-Wl,--gc-sections", "-lamdhip64", "-lcudart"],
                );
                place.done(&mut relocatable);
                let sections = place.done(place.command("readelf").args(["-SW", "r.o"]));
                let sections = text(&sections.stdout);
                // Linkers refuse one name for the registered images and for others, which have another type.
                assert!(!sections.contains(" .llvm.offloading "), "{sections}");
                step(way, &linker, &["main.o", "r.o", "-o", "program"]);
                assert_eq!(place.calls("program"), expected, "{way:?} {name} -r");
            }
        }
    }
}

/// The same command without some of its arguments.
fn without(command: Command, dropped: &[&str]) -> Command {
    let mut less = Command::new(command.get_program());
    less.current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => less.env(name, value),
            None => less.env_remove(name),
        };
    }
    let kept = command
        .get_args()
        .filter(|arg| !dropped.iter().any(|it| arg == it));
    less.args(kept);
    less
}

#[test]
fn links_host_bitcode_response_files_and_compressed_images() {
    let Some(place) = Place::hip("22") else {
        return;
    };
    place.compile(&APART, &["-fgpu-rdc"]);
    let expected = place.stock(&OBJECTS);
    let bfd = found("ld.bfd").unwrap();
    place.write("args", OBJECTS.join(" "));
    for way in OURS {
        place.linked(way, &bfd, &["@args", "-o", "ours"]);
        assert_eq!(place.calls("ours"), expected, "{way:?}");
    }
    let compressed = ["--offload-compress", "-o", "ours"];
    place.linked(Way::Replaced, &bfd, &[&OBJECTS[..], &compressed].concat());
    place.linked(
        Way::Driver,
        &bfd,
        &[&OBJECTS[..], &["-Wl,--compress", "-o", "driver"]].concat(),
    );
    // Under LLVM's name the version of clang's release, under ours what every runtime reads; sizes have 8 and 4 bytes.
    for (program, version, size_bytes) in [("ours", 3, 8), ("driver", 2, 4)] {
        let calls = place.calls(program);
        let with = |calls: &[String]| calls.join("\n").replace("43434f42", "5f5f434c");
        assert_ne!(calls, expected, "not compressed");
        assert_eq!(with(&calls), with(&expected));
        let (address, bundle) = place.section(program, ".hip_fatbin");
        assert_eq!(address % 4096, 0);
        assert!(bundle.starts_with(&[b'C', b'C', b'O', b'B', version, 0]));
        // The section has a page at least; the size of all is in the header.
        let mut size = [0; 8];
        size[..size_bytes].copy_from_slice(&bundle[8..8 + size_bytes]);
        let bundle = &bundle[..usize::try_from(u64::from_le_bytes(size)).unwrap()];
        fs::write(place.path("bundle"), bundle).unwrap();
        let bundler = tool("llvm22", "clang-offload-bundler").unwrap();
        let list = ["-list", "-type=o", "-input=bundle"];
        let listed = text(&place.done(place.command(bundler).args(list)).stdout);
        assert_eq!(listed.lines().count(), 3, "{listed}");
    }

    place.compile(&APART, &["-fgpu-rdc", "-flto"]);
    let lld = tool("llvm22", "ld.lld").unwrap();
    place.linked(
        Way::Replaced,
        &lld,
        &[&OBJECTS[..], &["-flto", "-o", "ours"]].concat(),
    );
    assert_eq!(place.calls("ours"), expected);
}

#[test]
fn reports_and_keeps_what_it_did() {
    let Some(place) = Place::hip("22") else {
        return;
    };
    place.compile(&APART, &["-fgpu-rdc"]);
    // Nobody calls it.
    place.compile_to(
        "unused.o",
        "__global__ void unused(int *p) { *p = 1; }",
        &["-fgpu-rdc"],
    );
    place.done(place.command("ar").args(["rs", "liblibrary.a", "unused.o"]));
    let bfd = found("ld.bfd").unwrap();
    for (way, kept, amd) in [
        (Way::Replaced, "replaced", "amdgcn"),
        (Way::Driver, "driver", "amdgcn-amd-amdhsa"),
    ] {
        let line = [
            &OBJECTS[..],
            &["-Wl,--report=json:report", "-Wl,--save-temps", "-o", kept],
        ]
        .concat();
        place.done(&mut place.link(way, &bfd, &line));
        let report: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(place.path("report")).unwrap()).unwrap();
        let images = report["images"]
            .as_array()
            .unwrap_or_else(|| panic!("{report}"));
        assert_eq!(images.len(), 10, "{report}");
        let said = report.to_string();
        for arch in ["gfx90a", "gfx1100"] {
            assert!(
                place.path(format!("{kept}.{amd}.{arch}.img")).exists(),
                "{way:?}"
            );
            assert!(said.contains(arch), "{said}");
        }
        for file in ["hip.image.wrapper.o", "hipfb"] {
            let file = format!("{kept}.{file}");
            assert!(place.path(&file).exists(), "{way:?} {file}");
        }
    }
    // What nothing of the host wants is not dropped: that is for what was wanted and cannot be linked.
    let strict = [&OBJECTS[..], &["-Wl,-Werror=dropped-image", "-o", "strict"]].concat();
    place.linked(Way::Driver, &bfd, &strict);
    let expected = place.stock(&["main.o", "second.o", "third.o", "library.o"]);
    assert_eq!(place.calls("strict"), expected);
}

#[test]
fn links_objects_of_two_releases_into_one_image() {
    let (Some(old), Some(place)) = (Place::hip("19"), Place::hip("22")) else {
        return;
    };
    // One version of code objects, as the device's linker wants it.
    let flags = ["-fgpu-rdc", "-mcode-object-version=5"];
    place.compile(&APART, &flags);
    let expected = place.stock(&OBJECTS);
    for (name, source) in [APART[1], APART[3]] {
        let object = format!("{name}.o");
        old.compile_to(&object, source, &flags);
        fs::copy(old.path(&object), place.path(&object)).unwrap();
    }
    place.done(
        place
            .command("ar")
            .args(["rcs", "liblibrary.a", "library.o"]),
    );
    // LLVM 22 does not register the older entries, and takes the older images for others.
    for (turn, (name, linker)) in linkers().into_iter().enumerate() {
        for way in ways(turn) {
            place.linked(way, &linker, &[&OBJECTS[..], &["-o", "ours"]].concat());
            assert_eq!(place.calls("ours"), expected, "{way:?} {name}");
        }
    }
}

/// LTO leaves nothing of device functions without a kernel, and clang 19's linker then writes "any" for every feature.
#[test]
fn links_device_functions_without_a_kernel_for_a_target_id_with_features() {
    let (Some(place), Some(bfd)) = (Place::hip("19"), found("ld.bfd")) else {
        return;
    };
    let source = "__device__ int helper(int x) { return x + 1; }\nint main() { return 0; }";
    for id in ["gfx90a:xnack-", "gfx90a:xnack+", "gfx908:sramecc+"] {
        let target = format!("--offload-arch={id}");
        let flags = ["-fgpu-rdc", "--no-offload-arch=all", &target];
        place.compile_to("main.o", source, &flags);
        let expected = place.stock(&["main.o"]);
        for way in OURS {
            place.linked(way, &bfd, &["main.o", "-o", "ours"]);
            assert_eq!(place.calls("ours"), expected, "{way:?} {id}");
            let (_, bundle) = place.section("ours", ".hip_fatbin");
            let ids: Vec<_> = entries(&bundle).into_iter().map(|entry| entry.2).collect();
            let device = ids.iter().find(|found| found.ends_with(id));
            assert!(device.is_some(), "{way:?} {id}: {ids:?}");
        }
    }
}

/// Debian's packages of LLVM 22 have no device runtime, so LLVM 19 compiles OpenMP, and LLVM 22 HIP.
#[test]
fn links_openmp_and_hip_of_two_releases_for_one_gpu() {
    let (Some(old), Some(new)) = (tool("llvm19", "clang"), tool("llvm22", "clang")) else {
        return;
    };
    let Some(project) = support::Project::new() else {
        return;
    };
    project.write(
        "region.c",
        "#pragma omp declare target\nint helper(void);\n#pragma omp end declare target\n\
         void region(int *x) {\n#pragma omp target map(tofrom : x[0 : 1])\n  x[0] = helper();\n}\n",
    );
    for name in ["kernel", "older"] {
        let source = format!(
            "#include <offload/gpu.h>\nextern \"C\" __device__ int helper(void);\n\
             __global__ void {name}(int *x) {{ *x = helper(); }}\n"
        );
        project.write(format!("{name}.hip"), source);
    }
    project.write("helper.c", "int helper(void) { return 1; }\n");
    let gpu = ["-O1", "-fPIC", "--offload-arch=gfx90a", "-nogpulib", "-c"];
    let hip = ["-fgpu-rdc", "-nogpuinc", "--offload-new-driver", INCLUDE];
    let hip = [&gpu[..], &hip, &["-mcode-object-version=5"]].concat();
    let device = ["--target=amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-nogpulib"];
    let device = [&device[..], &["-emit-llvm", "-O1", "-c"]].concat();
    for (clang, arguments, rest) in [
        (&old, &gpu[..], &["-fopenmp", "region.c"][..]),
        (&new, &hip, &["kernel.hip"]),
        (&old, &hip, &["older.hip"]),
        (&old, &device, &["helper.c", "-o", "helper.bc"]),
    ] {
        let mut compile = project.command(clang);
        let compiled = compile.args(arguments).args(rest).output().unwrap();
        assert!(compiled.status.success(), "{compiled:?}");
    }
    // A helper of no kind, for both.
    let image = "--image=file=helper.bc,triple=amdgcn-amd-amdhsa,arch=gfx90a";
    project.write("empty.c", "");
    let embed = ["-fembed-offload-object=helper.bin", "-c", "empty.c"];
    for command in [
        project
            .command(env!("CARGO_BIN_EXE_offload-packager"))
            .args(["-o", "helper.bin", image]),
        project
            .command(&old)
            .args(["-Xclang", embed[0], "-o", "helper.o"])
            .args(&embed[1..]),
    ] {
        assert!(command.status().unwrap().success(), "{command:?}");
    }
    let line = ["-shared", "region.o", "kernel.o", "older.o", "helper.o"];
    let link = |more: &[&str]| {
        let mut link = project.command(env!("CARGO_BIN_EXE_offload-link"));
        link.args(line).args(["-o", "both.so"]).args(more);
        let linked = link.output().unwrap();
        assert!(linked.status.success(), "{linked:?}");
        support::text(&linked.stderr)
    };
    link(&["-Werror=dropped-image"]);
    let mut inspect = project.command(env!("CARGO_BIN_EXE_cargo-offload"));
    let listed = inspect
        .args(["offload", "inspect", "--kernels", "both.so"])
        .output();
    let listed = support::text(&listed.unwrap().stdout);
    for part in [
        "gfx90a  openmp  code object",
        "_region_l",
        "gfx90a  hip  code object",
        "kernel(int*)",
        "older(int*)",
    ] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    // Both links run at once, so that each needs its own copy of a library.
    let library = |kind| format!("--bitcode-library={kind}-amdgcn-amd-amdhsa-gfx90a=helper.bc");
    let [openmp, hip] = ["openmp", "hip"].map(library);
    let plan = link(&["--dry-run", &openmp, &hip]);
    let copies = plan.lines().filter(|line| line.starts_with("cp "));
    let copies: Vec<&str> = copies.filter_map(|line| line.rsplit(' ').next()).collect();
    assert!(copies.len() == 2 && copies[0] != copies[1], "{plan}");
}

#[test]
fn keeps_the_fat_binary_that_nvidias_tool_makes() {
    let (Some(place), Some(bfd)) = (Place::cuda("22"), found("ld.bfd")) else {
        return;
    };
    place.compile_to("library.o", APART[3].1, &["-fgpu-rdc"]);
    let line = [
        "-shared",
        "library.o",
        "-o",
        "libshared.so",
        "-Wl,--save-temps",
    ];
    place.done(&mut place.link(Way::Replaced, &bfd, &line));
    let files = fs::read_dir(place.root()).unwrap();
    let mut paths = files.map(|file| file.unwrap().path());
    let kept = paths.find(|path| path.extension().is_some_and(|end| end == "fatbin"));
    let kept = fs::read(kept.expect("a file `….fatbin` is kept")).unwrap();
    assert!(
        kept.starts_with(&0xba55_ed50_u32.to_le_bytes()),
        "{}",
        kept.len()
    );
    let library = fs::read(place.path("libshared.so")).unwrap();
    assert!(library.windows(kept.len()).any(|part| part == kept));
}

/// Libomptarget 19 does not know the entries of LLVM 22; those for HIP are none of its business.
#[test]
fn runs_openmp_beside_hip_of_either_release() {
    let Some(runtime) = other("omptarget19", &["libomptarget.so"]) else {
        return;
    };
    let runtime = runtime.parent().unwrap();
    let (Some(old), Some(new)) = (Place::hip("19"), Place::hip("22")) else {
        return;
    };
    let main = region("on_device")
        + "int puts(const char *);\nint library_launch(void);\n\
           int main(void) { puts(\"main\"); return on_device() + library_launch(); }\n";
    for (number, place) in [old, new].into_iter().enumerate() {
        place.compile_to("library.o", APART[3].1, &["-fgpu-rdc"]);
        place.write("main.c", &main);
        let clang = tool("llvm19", "clang").unwrap();
        place.done(
            place
                .command(&clang)
                .args(support::OPENMP)
                .args(["-O1", "-fPIC", "-c", "main.c"]),
        );
        let folder = format!("-L{}", runtime.display());
        let libraries = [&*folder, WITHOUT_LIBLLVM, "-lomptarget", "-lomp"];
        let through_clang = |linker: &Path, args: &[&str]| {
            let mut command = place.command(&clang);
            command
                .args(support::OPENMP)
                .arg(format!("-B{}", place.path("llvm").display()))
                .arg(format!("--ld-path={}", linker.display()))
                .args(args);
            command
        };
        let expected = "FatBinary 48495046 1 5f5f434c\n\
            Function _Z14in_the_libraryPi _Z14in_the_libraryPi -1\n\
            Var in_library in_library extern 0 size 4 constant 0 global 0\n\
            main\nlaunch _Z14in_the_libraryPi\nUnregister\n";
        // Each linker with one of the releases, or with both.
        for (name, linker) in crate::support::share(linkers(), number, 2) {
            let objects = ["main.o", "library.o"];
            let relocatable = [&objects[..], &["-r", "-o", "r.o"]].concat();
            place.done(&mut through_clang(&linker, &relocatable));
            for (way, objects) in [
                (Way::Replaced, &objects[..]),
                (Way::Driver, &objects[..]),
                // They have their registration.
                (Way::Replaced, &["r.o"]),
            ] {
                let args = [objects, &["-o", "both"], &libraries[..]].concat();
                let hip = [
                    "-Wl,--gc-sections",
                    "-L.",
                    "-lamdhip64",
                    "-Wl,-rpath,$ORIGIN",
                ];
                let mut command = match way {
                    Way::Driver => place.link(way, &linker, &args),
                    _ => through_clang(&linker, &[&args[..], &hip].concat()),
                };
                place.done(&mut command);
                let run = place
                    .command(place.path("both"))
                    .env("OMP_TARGET_OFFLOAD", "MANDATORY")
                    .env("LD_LIBRARY_PATH", runtime)
                    .output()
                    .unwrap();
                let what = format!("{} {way:?} {name} {objects:?}", place.release);
                assert!(run.status.success(), "{what}: {run:?}");
                assert_eq!(text(&run.stdout), expected, "{what}");
            }
        }
    }
}

#[test]
fn embeds_the_bitcode_that_llvm_embeds() {
    let Some(place) = Place::hip("19") else {
        return;
    };
    let Some(runtime) = other("omptarget19", &["libomptarget.so"]) else {
        return;
    };
    let (clang, objdump) = (
        tool("llvm19", "clang").unwrap(),
        tool("llvm19", "llvm-objdump").unwrap(),
    );
    place.write(
        "main.c",
        &(region("on_device") + "int main(void) { return on_device(); }"),
    );
    let compile = ["-foffload-lto", "-O1", "-fPIC", "-c", "main.c"];
    place.done(place.command(&clang).args(support::OPENMP).args(compile));
    let listed = |folder: Option<&str>| {
        let mut link = place.command(&clang);
        link.args(support::OPENMP)
            .args(folder.map(|folder| format!("-B{}", place.path(folder).display())));
        link.arg(format!("-L{}", runtime.parent().unwrap().display()));
        link.args([
            "-foffload-lto",
            "main.o",
            "-o",
            "program",
            "-Wl,--embed-bitcode",
        ]);
        place.done(&mut link);
        let list = place.done(place.command(&objdump).args(["--offloading", "program"]));
        text(&list.stdout)
    };
    let expected = listed(None);
    assert!(
        expected.contains("llvm ir") && expected.contains("openmp"),
        "{expected}"
    );
    assert_eq!(listed(Some("llvm")), expected);
}

#[test]
fn registers_sycl_programs_as_llvm_does() {
    let Some(place) = Place::new("22", Language::Sycl, None) else {
        return;
    };
    let packager = tool("llvm22", "llvm-offload-binary").unwrap();
    let assembler = tool("llvm22", "llvm-as").unwrap();
    for (name, host) in [
        ("main", "int f(void); int main(void) { return f(); }"),
        ("other", "int f(void) { return 0; }"),
    ] {
        place.write(
            format!("{name}.ll"),
            format!(
                "target triple = \"spirv64-unknown-unknown\"\n\
                 define spir_kernel void @{name}_first() #0 {{ ret void }}\n\
                 define spir_kernel void @{name}_second() #0 {{ ret void }}\n\
                 attributes #0 = {{ \"sycl-module-id\"=\"{name}\" }}\n"
            ),
        );
        let bitcode = format!("{name}.bc");
        place.done(
            place
                .command(&assembler)
                .args([&format!("{name}.ll"), "-o", &bitcode]),
        );
        let image =
            format!("--image=file={bitcode},kind=sycl,triple=spirv64-unknown-unknown,arch=");
        place.done(place.command(&packager).args(["-o", "images.bin", &image]));
        let source = format!("{name}.c");
        place.write(&source, host);
        let clang = tool("llvm22", "clang").unwrap();
        let embed = [
            "-fPIC",
            "-Xclang",
            "-fembed-offload-object=images.bin",
            "-c",
            &source,
        ];
        place.done(place.command(clang).args(embed));
    }
    let _ = fs::remove_file(place.path("libother.a"));
    place.done(place.command("ar").args(["rcs", "libother.a", "other.o"]));
    for objects in [["main.o", "other.o"], ["main.o", "libother.a"]] {
        let calls = place.compare(&objects);
        let kernels = ["main_first", "main_second", "other_first", "other_second"];
        let mut entries: Vec<_> = calls
            .iter()
            .filter_map(|call| call.strip_prefix("entry 1 8 "))
            .collect();
        entries.sort_unstable();
        assert_eq!(entries, kernels, "{calls:?}");
    }
}
