//! What the linker's tests share: programs that may be missing, and projects to link.

#![allow(dead_code, unreachable_pub)] // each test takes what it needs

use crate::support::folder::Folder;

use std::ffi::OsStr;
use std::fs;
use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support as tools;

pub const DEFAULT_SIGNALS: &str = tools::DEFAULT_SIGNALS;

/// A program of an LLVM release, by `word` (`llvm19`).
pub fn tool(word: &str, name: &str) -> Option<PathBuf> {
    let release = word.trim_start_matches("llvm");
    tools::tool(word, &[&format!("{name}-{release}"), name])
}

/// A program by `word`, under any of its names.
pub fn other(word: &str, names: &[&str]) -> Option<PathBuf> {
    tools::tool(word, names)
}

/// A program of `PATH`, of every development machine.
pub fn found(name: &str) -> Option<PathBuf> {
    tools::program(name)
}

/// Linkers that are here: a name for messages and the path.
pub fn linkers() -> Vec<(&'static str, PathBuf)> {
    let all = [
        ("bfd", found("ld.bfd")),
        ("gold", found("ld.gold")),
        ("lld 19", tool("llvm19", "ld.lld")),
        ("lld 22", tool("llvm22", "ld.lld")),
    ];
    let here = all
        .into_iter()
        .filter_map(|(name, path)| Some((name, path?)));
    let here: Vec<_> = here.collect();
    assert!(!here.is_empty(), "no linker is here");
    here
}

/// `on_host()` is 1 on the host and 0 on a device, without any header.
pub const ON_HOST: &str = "
static int on_host(void) { return 1; }
#pragma omp begin declare variant match(device = {kind(nohost)})
static int on_host(void) { return 0; }
#pragma omp end declare variant
";

/// A C file that defines `int name(void)`: 0 when its region ran on the device.
pub fn region(name: &str) -> String {
    format!(
        "{ON_HOST}
#ifdef __cplusplus
extern \"C\"
#endif
int {name}(void);
int {name}(void) {{
  int host = -1;
#pragma omp target map(from : host)
  host = on_host();
  return host;
}}
"
    )
}

/// A C file whose `main` prints the sum of what `names` return, and returns it.
pub fn program(names: &[&str]) -> String {
    let declared: String = names
        .iter()
        .map(|name| format!("int {name}(void);\n"))
        .collect();
    let sum: String = names.iter().map(|name| format!(" + {name}()")).collect();
    format!(
        "int printf(const char *, ...);\n{declared}\
         int main(void) {{ int sum = 0{sum}; printf(\"sum=%d\\n\", sum); return sum; }}\n"
    )
}

/// A folder with our tool for clang's `-B`.
pub struct Project {
    folder: Folder,
    pub clang: PathBuf,
    pub runtime: PathBuf,
    /// Where clang finds its linker wrapper: `llvm`, our tool under LLVM's name and with its rules,
    /// or `ours`, where that name starts `offload-link`.
    pub wrapper: &'static str,
}

impl Deref for Project {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.folder
    }
}

impl Project {
    /// With LLVM 19, whose runtime Debian has. Nothing when that is not installed.
    pub fn new() -> Option<Self> {
        let clang = tool("llvm19", "clang")?;
        let runtime = tools::tool("omptarget19", &["libomptarget.so"])?;
        let runtime = runtime.parent()?.to_owned();
        let folder = Folder::new();
        for name in ["bin", "llvm", "ours", "tmp"] {
            fs::create_dir(folder.path(name)).unwrap();
        }
        let tool = env!("CARGO_BIN_EXE_offload-link");
        for name in [
            "bin/clang-linker-wrapper",
            "bin/offload-ld",
            "llvm/clang-linker-wrapper",
        ] {
            symlink(tool, folder.path(name)).unwrap();
        }
        let project = Self {
            folder,
            clang,
            runtime,
            wrapper: "llvm",
        };
        project.script("ours/clang-linker-wrapper", &format!("exec {tool} \"$@\""));
        Some(project)
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Runs a program in the folder; temporary files go to `tmp` in it.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.root())
            .env("TMPDIR", self.path("tmp"))
            .env_remove("OFFLOAD_LINK_REPORT")
            .env_remove("OFFLOAD_LINK_ACTIVE")
            .env_remove("CC");
        command
    }

    /// Compiles with device code for the CPU.
    pub fn compile(&self, source: &str, content: &str, args: &[&str]) {
        self.write(source, content);
        let stem = Path::new(source).file_stem().unwrap().to_str().unwrap();
        let output = self
            .command(&self.clang)
            .args(OPENMP)
            .args(["-O1", "-fPIC", "-c", source, "-o", &format!("{stem}.o")])
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    pub fn archive(&self, name: &str, members: &[&str]) {
        let status = self.command("ar").args(["rc", name]).args(members).status();
        assert!(status.unwrap().success());
    }

    /// Links through clang with our tool as its linker wrapper.
    pub fn clang(&self, args: &[&str]) -> Command {
        let mut command = self.command(&self.clang);
        command
            .arg(format!("-B{}", self.path(self.wrapper).display()))
            .args(OPENMP)
            .arg(format!("-L{}", self.runtime.display()))
            .arg(tools::WITHOUT_LIBLLVM)
            .args(args);
        command
    }

    /// Links, expects silence, runs the result on the device, and expects that it returns 0.
    pub fn link_and_run(&self, args: &[&str]) {
        let link = self.clang(args).output().unwrap();
        assert!(link.status.success(), "{args:?}: {link:?}");
        assert_eq!(String::from_utf8_lossy(&link.stderr), "", "{args:?}");
        let run = self.run("a.out");
        assert!(run.status.success(), "{args:?}: {run:?}");
        assert_eq!(self.leftovers(), Vec::<PathBuf>::new(), "{args:?}");
    }

    /// Runs a program of the folder, which must use a device.
    pub fn run(&self, name: &str) -> Output {
        self.command(self.path(name))
            .env("OMP_TARGET_OFFLOAD", "MANDATORY")
            .env("LD_LIBRARY_PATH", &self.runtime)
            .output()
            .unwrap()
    }

    /// Temporary files that nobody removed.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.path("tmp")).unwrap();
        files.map(|file| file.unwrap().path()).collect()
    }
}

/// The command on a machine without NVIDIA's tools.
pub fn without_ptxas(mut command: Command) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| !folder.join("ptxas").exists());
    let path = std::env::join_paths(folders).unwrap();
    command.env("PATH", path).env_remove("CUDA_PATH");
    command
}

pub const OPENMP: [&str; 2] = ["-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu"];

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
