//! Host code in modules for hosts of Windows, made here: COFF objects of clang for both ABIs, two versions of a package
//! in one program, linked with GNU's linker and with LLVM's, and started by Wine. The runtime is the recording stand-in
//! of `registration_matrix.rs`, as a DLL, and what it is told must be the same.

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::launches::{self, HEADER, HELPER, RUNTIME, SHARED, SOURCE};
use support::package::{OUT, Package, text};
use support::wine::Wine;
use tempfile::TempDir;

const GNU: &str = "x86_64-pc-windows-gnu";
const MSVC: &str = "x86_64-pc-windows-msvc";

/// Launches every kernel of both versions from C++, then one by the address that Rust has.
const MAIN: &str = r#"
void launch_1(int *); void launch_2(int *);
int NAME(const void *);
extern const void *const symbol_1[] __asm__(SYMBOL_1), *const symbol_2[] __asm__(SYMBOL_2);
int main(void) {
  launch_1(0); NAME(PLAIN_1);
  launch_2(0); NAME(PLAIN_2);
  return 0;
}
"#;

/// What Microsoft's C library does before and after `main`, as far as these programs need it.
const C_RUNTIME: &str = r#"
typedef void function(void);
__attribute__((section(".CRT$XCA"), used)) function *const first = 0;
__attribute__((section(".CRT$XCZ"), used)) function *const last = 0;
static function *at_exit[9];
static int count;
int atexit(function *f) { at_exit[count++] = f; return 0; }
__declspec(dllimport) void ExitProcess(unsigned);
int main(void);
void start(void) {
  for (function *const volatile *f = &first + 1; f < &last; f++) if (*f) (*f)();
  int code = main();
  while (count) at_exit[--count]();
  ExitProcess(code);
}
"#;

struct Tools {
    mingw: PathBuf,
    wine: Wine,
    clang: PathBuf,
    lld: PathBuf,
    folder: TempDir,
}

impl Tools {
    fn find() -> Option<Self> {
        Some(Self {
            mingw: support::tool("mingw", &["x86_64-w64-mingw32-gcc"])?,
            wine: Wine::start()?,
            clang: support::tool("llvm22", &["clang"])?,
            lld: support::tool("llvm22", &["lld-link"])?,
            folder: TempDir::new().unwrap(),
        })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.at(name), text).unwrap();
    }

    fn run(&self, command: &mut Command) -> String {
        support::run(command.current_dir(self.folder.path()))
    }

    /// The DLL of the runtime, and import libraries for both ABIs.
    fn runtime(&self, prefix: &str, dll: &str) {
        let alignment = if prefix == "hip" { 4096 } else { 8 };
        self.put("runtime.c", RUNTIME);
        let mut gcc = Command::new(&self.mingw);
        gcc.args(["-shared", "-w", "runtime.c", "-o"])
            .arg(format!("{dll}.dll"))
            .arg(format!("-DPREFIX={prefix}"))
            .arg(format!("-DALIGNMENT={alignment}"))
            .arg(format!("-Wl,--output-def,{dll}.def"))
            .arg(format!("-Wl,--out-implib,lib{dll}.dll.a"));
        self.run(&mut gcc);
        self.put(
            "kernel32.def",
            "LIBRARY kernel32.dll\nEXPORTS\nExitProcess\n",
        );
        // In a folder of their own, as MinGW has another `kernel32`.
        fs::create_dir(self.at(MSVC)).unwrap();
        for name in [dll, "kernel32"] {
            let mut dlltool = Command::new(self.lld.with_file_name("llvm-dlltool"));
            dlltool.args(["-m", "i386:x86-64", "-D", &format!("{name}.dll")]);
            dlltool.args(["-d", &format!("{name}.def")]);
            dlltool.args(["-l", &format!("{MSVC}/{name}.lib")]);
            self.run(&mut dlltool);
        }
    }

    /// What the runtime was told by a program.
    fn log(&self, program: &str) -> String {
        let _ = fs::remove_file(self.at("log"));
        let mut wine = self.wine.command(&self.at(program));
        let output = self.wine.output(wine.env("GPU_LOG", self.at("log")));
        assert!(output.status.success(), "{program}: {output:?}");
        fs::read_to_string(self.at("log")).unwrap()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Hip,
    Cuda,
}

impl Language {
    fn prefix(self) -> &'static str {
        match self {
            Self::Hip => "hip",
            Self::Cuda => "cuda",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Complete,
    /// Each source has its own images.
    Apart,
    Deferred,
}

/// One version of a package, built for a host.
struct Version {
    package: Package,
    told: String,
}

impl Version {
    fn new(
        language: Language,
        mode: Mode,
        version: &str,
        host: &str,
        clang: &Path,
    ) -> Option<Self> {
        let package = Package::new("")?;
        let (extension, targets) = match language {
            Language::Hip => ("hip", "\"gfx90a\", \"gfx1100\""),
            Language::Cuda => ("cu", "\"sm_80\", \"sm_90\""),
        };
        fs::remove_file(package.at("kernels/k.c")).unwrap();
        // Where sources have images of their own, each has the function that one has otherwise.
        let (shared, helper, images) = match mode {
            Mode::Apart => {
                let (declaration, definition) =
                    ("int twice(int x);", "int twice(int x) { return 2 * x; }");
                let shared = SHARED.replace(declaration, definition);
                let helper = HELPER.replace(&format!("__device__ {definition}\n"), "");
                (shared, helper, "images = \"source\"")
            }
            Mode::Complete | Mode::Deferred => (SHARED.to_owned(), HELPER.to_owned(), "rdc = true"),
        };
        package.put("kernels/gpu.h", &format!("{HEADER}{shared}"));
        package.put(&format!("kernels/kernel.{extension}"), SOURCE);
        package.put(&format!("kernels/helper.{extension}"), &helper);
        let prefix = language.prefix();
        // Where all is linked together, all must have names of its own, as in C++.
        let (register, own) = match mode {
            Mode::Complete | Mode::Apart => ("complete", ""),
            Mode::Deferred => ("deferred", version),
        };
        package.put(
            "Cargo.toml",
            &format!(
                "[package]\nname = \"pack\"\n[workspace]\n[package.metadata.offload]\nlanguage = \"{prefix}\"\n\
                 host = true\nregister = \"{register}\"\nsources = [\"kernels/*.{extension}\"]\ntargets = [{targets}]\n\
                 flags = [\"-nogpulib\", \"-nogpuinc\"]\n{images}\ndefine = {{ LAUNCH = \"launch_{version}\", \
                 HELPER = \"helper_{version}\", FACTOR = \"factor{own}\", PLAIN = \"plain{own}\", \
                 TEMPLATE = \"scale{own}\", twice = \"twice{own}\" }}\n"
            ),
        );
        let mut script = package.script();
        script
            .env("TARGET", host)
            .env("CARGO_PKG_VERSION", version)
            .env("OFFLOAD_COMPILER", clang)
            .env("PATH", std::env::var_os("PATH").unwrap());
        let told = text(&script.output().unwrap());
        Some(Self { package, told })
    }

    fn library(&self) -> PathBuf {
        let start = "cargo::rustc-link-lib=static:+whole-archive=";
        let name = self.told.lines().find_map(|line| line.strip_prefix(start));
        let folder = self.package.at(OUT);
        let files = ["lib", ""].map(|start| format!("{start}{}", name.unwrap()));
        let files = [format!("{}.a", files[0]), format!("{}.lib", files[1])];
        let mut there = files.into_iter().map(|file| folder.join(file));
        there.find(|file| file.is_file()).unwrap()
    }

    /// What is at the symbol that stands for `plain`: C code for its address.
    fn plain(&self, number: &str) -> (String, String) {
        let file = fs::read_to_string(self.package.at(OUT).join("kernels.rs")).unwrap();
        let mut named = file.split("link_name = \"").skip(1);
        let rest = named
            .find(|rest| rest.lines().next().unwrap().contains("plain"))
            .unwrap();
        let symbol = rest.split('"').next().unwrap().to_owned();
        let address = match file.split_once("Some(stub[") {
            Some((_, rest)) => format!("symbol_{number}[{}]", rest.split(']').next().unwrap()),
            None => format!("symbol_{number}"),
        };
        (symbol, address)
    }
}

fn programs(language: Language, mode: Mode) {
    let Some(tools) = Tools::find() else {
        return;
    };
    if language == Language::Cuda && support::tool("cuda", &["ptxas"]).is_none() {
        return;
    }
    let Some(clang_19) = support::tool("llvm19", &["clang"]) else {
        return;
    };
    let (prefix, dll) = match language {
        Language::Hip => ("hip", "amdhip64"),
        Language::Cuda => ("cuda", "cudart"),
    };
    tools.runtime(prefix, dll);
    // Each two have both hosts and both releases.
    let clangs = [
        (GNU, &clang_19),
        (MSVC, &clang_19),
        (MSVC, &tools.clang),
        (GNU, &tools.clang),
    ];
    let first = usize::from((language == Language::Hip) == (mode == Mode::Complete));
    for (host, clang) in support::share(clangs, first, 2) {
        // What the last mode adds does not depend on the release.
        if mode == Mode::Apart && clang == &clang_19 {
            continue;
        }
        let what = format!("{language:?} {mode:?} {host} {}", clang.display());
        let version = |version| Version::new(language, mode, version, host, clang);
        let versions = ["1", "2"].map(version);
        let [Some(one), Some(two)] = versions else {
            return;
        };
        let libraries = [&one, &two].map(Version::library);
        let [(symbol_1, plain_1), (symbol_2, plain_2)] = [one.plain("1"), two.plain("2")];
        let defines = [
            format!("-DSYMBOL_1=\"{symbol_1}\""),
            format!("-DSYMBOL_2=\"{symbol_2}\""),
            format!("-DPLAIN_1={plain_1}"),
            format!("-DPLAIN_2={plain_2}"),
            format!("-DNAME={prefix}LaunchKernel"),
        ];
        tools.put("main.c", MAIN);
        tools.put("start.c", C_RUNTIME);
        // Of Microsoft's there is one.
        let linkers = ["", "-fuse-ld=lld"];
        let count = if host == GNU { 2 } else { 1 };
        for linker in &linkers[..count] {
            let _ = fs::remove_file(tools.at("program.exe"));
            let linker_of_host = if host == GNU {
                &tools.mingw
            } else {
                &tools.lld
            };
            let mut link = match mode {
                Mode::Complete | Mode::Apart => Command::new(linker_of_host),
                Mode::Deferred => Command::new(env!("CARGO_BIN_EXE_offload-link")),
            };
            match (mode, host) {
                (Mode::Complete | Mode::Apart, _) => {}
                // It finds the driver by itself.
                (_, GNU) => drop(link.arg(format!("-Wl,--host-triple={GNU}"))),
                _ => drop(link.arg(format!("--linker-path={}", tools.lld.display()))),
            }
            if host == GNU {
                link.arg("-B").arg(tools.lld.parent().unwrap());
                link.args((!linker.is_empty()).then_some(linker));
                // As rustc does it.
                link.args(&defines)
                    .args(["main.c", "-w", "-o", "program.exe", "-Wl,--gc-sections"])
                    .arg("-Wl,--whole-archive")
                    .args(&libraries)
                    .args(["-Wl,--no-whole-archive", "-L.", &format!("-l{dll}")]);
            } else {
                for source in ["main.c", "start.c"] {
                    let mut compile = Command::new(&tools.clang);
                    compile.args(&defines).args(["-c", "-w", "-O1", source]);
                    tools.run(compile.arg(format!("--target={MSVC}")));
                }
                let whole = libraries
                    .iter()
                    .map(|library| format!("/wholearchive:{}", library.display()));
                link.args(["/nologo", "/nodefaultlib", "/entry:start", "/opt:ref"])
                    .args([
                        "/subsystem:console",
                        "/out:program.exe",
                        "main.o",
                        "start.o",
                    ])
                    .args(whole)
                    .args([dll, "kernel32"].map(|name| format!("{MSVC}/{name}.lib")));
            }
            tools.run(&mut link);
            let log = tools.log("program.exe");
            let what = format!("{what} {linker}");
            match mode {
                Mode::Apart => check_apart(&log, &what),
                _ => launches::check(&log, prefix, mode == Mode::Complete, &what),
            }
        }
    }
}

/// Checks what a runtime was told by two versions of a package whose sources register themselves.
#[track_caller]
fn check_apart(log: &str, what: &str) {
    let of = |word: &str| -> Vec<Vec<&str>> {
        let lines = log.lines().map(|line| line.split(' ').collect());
        lines.filter(|words: &Vec<&str>| words[0] == word).collect()
    };
    assert_eq!(of("register").len(), 4, "{what}: {log}");
    assert_eq!(of("unregister").len(), 4, "{what}: {log}");
    // Two kernels of each first source; the template is of both.
    assert_eq!(of("function").len(), 2 * (2 + 2), "{what}: {log}");
    assert_eq!(of("variable").len(), 2, "{what}: {log}");
    let launches = of("launch");
    assert_eq!(launches.len(), 2 * 4, "{what}: {log}");
    let is_known = launches.iter().all(|launch| launch.len() > 2);
    assert!(is_known, "{what}: {log}");
    // The version that a fat binary belongs to; constructors run in the order of the linker.
    let version = |binary: &str| binary.parse::<usize>().unwrap() / 2;
    let (of_one, of_two) = launches.split_at(4);
    assert_ne!(
        version(of_one[0][1]),
        version(of_two[0][1]),
        "{what}: {log}"
    );
    for of_version in [of_one, of_two] {
        for launch in of_version {
            // Whatever it is registered for is one kernel of one version.
            let is_same = |kernel: &[&str]| {
                kernel[1] == launch[2] && version(kernel[0]) == version(of_version[0][1])
            };
            assert!(launch[1..].chunks(2).all(is_same), "{what}: {log}");
        }
        assert!(of_version[3][2].contains("plain"), "{what}: {log}");
    }
}

#[test]
fn registers_hip_of_each_source() {
    programs(Language::Hip, Mode::Apart);
}

#[test]
#[ignore = "`make test-all`: `registers_hip_of_each_source` is shorter"]
fn registers_cuda_of_each_source() {
    programs(Language::Cuda, Mode::Apart);
}

#[test]
fn registers_hip_completely() {
    programs(Language::Hip, Mode::Complete);
}

#[test]
#[ignore = "`make test-all`: `registers_hip_completely` is shorter"]
fn registers_cuda_completely() {
    programs(Language::Cuda, Mode::Complete);
}

#[test]
fn registers_hip_at_the_last_link() {
    programs(Language::Hip, Mode::Deferred);
}

#[test]
#[ignore = "`make test-all`: `registers_hip_at_the_last_link` is shorter"]
fn registers_cuda_at_the_last_link() {
    programs(Language::Cuda, Mode::Deferred);
}
