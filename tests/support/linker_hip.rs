//! A folder with HIP kernels, and a runtime that records what programs register.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(
    unreachable_pub,
    reason = "a module of several crates, none of which exports it"
)]

use crate::support as tools;

use crate::support::folder::Folder;

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub use tools::{run, tool};

/// Declared here, as HIP's headers need ROCm.
pub const DECLARED: &str = r#"
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
typedef struct { unsigned x, y, z; } dim3;
extern "C" int __hipPushCallConfiguration(dim3, dim3, unsigned long, void *);
extern "C" int __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, void **);
extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
"#;

/// Prints each call; the fat binary's first bytes, too.
const RUNTIME: &str = r#"
#include <stdio.h>
struct wrapper { unsigned magic, version; const char *image; void *unused; };
static void *handle;
void **__hipRegisterFatBinary(struct wrapper *w) {
  printf("fat binary %.24s at %lu\n", w->image, (unsigned long)w->image % 4096);
  return &handle;
}
int __hipRegisterFunction(void **h, const void *a, char *n, const char *m) {
  printf("function %s\n", n);
  return 0;
}
void __hipRegisterVar(void **h, void *a, char *n, char *m, int e, unsigned long s) {
  printf("variable %s %lu\n", n, s);
}
void __hipRegisterManagedVar(void) {}
void __hipRegisterSurface(void) {}
void __hipRegisterTexture(void) {}
void __hipUnregisterFatBinary(void **h) {}
int __hipPushCallConfiguration(void) { return 0; }
int __hipPopCallConfiguration(void) { return 0; }
int hipLaunchKernel(void) { return 0; }
"#;

pub struct Place {
    folder: Folder,
    pub release: &'static str,
    pub clang: PathBuf,
}

impl Deref for Place {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.folder
    }
}

impl Place {
    pub fn new(release: &'static str) -> Option<Self> {
        let clang = tool(release, &["clang++"])?;
        if release == "llvm16" {
            tool("llvm22", &["llvm-objcopy"])?;
        }
        let folder = Folder::new();
        let place = Self {
            folder,
            release,
            clang,
        };
        place.write("runtime.c", RUNTIME);
        place.write("main.c", "int main(void) { return 0; }");
        place.cc(&["-shared", "-fPIC", "runtime.c", "-o", "libamdhip64.so"]);
        place.cc(&["-c", "main.c"]);
        Some(place)
    }

    /// The same, for a program of LLVM that starts others: of release 16 only clang's package is here.
    pub fn llvm(&self, program: impl AsRef<Path>) -> Command {
        let mut command = self.command(program.as_ref());
        let objcopy = self.tool("llvm-objcopy");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path);
        let folders = folders.chain(objcopy.parent().map(PathBuf::from));
        command.env("PATH", std::env::join_paths(folders).unwrap());
        command
    }

    pub fn cc(&self, args: &[&str]) {
        run(self.command("cc").args(args));
    }

    /// A kernel `name` that calls `helper`, and a variable.
    pub fn kernel(&self, name: &str, driver: &str) {
        self.kernel_with(name, &[driver, "-c"]);
    }

    /// The same, compiled with these arguments.
    pub fn kernel_with(&self, name: &str, args: &[&str]) {
        let source = format!(
            "{DECLARED}
            extern __device__ int helper(int);
            __device__ int {name}_data = 3;
            __global__ void {name}(int *p) {{ *p = helper({name}_data); }}"
        );
        self.compile(name, &source, args);
    }

    pub fn helper(&self, name: &str, args: &[&str]) {
        let source = format!("{DECLARED}__device__ int helper(int x) {{ return x + 1; }}");
        self.compile(name, &source, args);
    }

    pub fn compile(&self, name: &str, source: &str, args: &[&str]) {
        self.write(format!("{name}.hip"), source);
        let hip = ["-x", "hip", "-nogpulib", "-nogpuinc", "-fgpu-rdc"];
        let mut command = self.llvm(&self.clang);
        command.args(hip).args(["--offload-arch=gfx906,gfx90a"]);
        command.args(args).arg(format!("{name}.hip"));
        command.arg("-o").arg(format!("{name}.o"));
        run(&mut command);
    }

    pub fn archive(&self, name: &str, members: &[&str]) {
        let _ = fs::remove_file(self.path(name));
        run(self.command("ar").args(["rcD", name]).args(members));
    }

    pub fn link(&self, inputs: &[&str]) -> Output {
        let mut command = self.command(env!("CARGO_BIN_EXE_offload-link"));
        command.env_remove("OFFLOAD_LINK_ACTIVE").env_remove("CC");
        command.args(["main.o", "-o", "x", "--report=text:report"]);
        command.args(inputs).args(["-L.", "-lamdhip64"]);
        command.output().unwrap()
    }

    /// Links, expects silence, and gives what the program registers, in alphabetical order.
    pub fn registered(&self, inputs: &[&str]) -> Vec<String> {
        let link = self.link(inputs);
        assert!(link.status.success(), "{inputs:?}: {link:?}");
        assert_eq!(String::from_utf8_lossy(&link.stderr), "", "{inputs:?}");
        let mut program = self.command(self.path("x"));
        let printed = run(program.env("LD_LIBRARY_PATH", self.root()));
        let mut lines: Vec<String> = printed.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    pub fn report(&self) -> String {
        fs::read_to_string(self.path("report")).unwrap()
    }

    /// The entries of the program's fat binary, as LLVM's own tool lists them.
    pub fn entries(&self) -> Vec<String> {
        let objcopy = self.tool("llvm-objcopy");
        run(self
            .command(objcopy)
            .args(["--dump-section", ".hip_fatbin=f.hipfb", "x"]));
        let mut list = self.command(self.tool("clang-offload-bundler"));
        let listed = run(list.args(["-list", "-type=o", "-input=f.hipfb"]));
        let mut entries: Vec<String> = listed.lines().map(str::to_owned).collect();
        entries.sort();
        entries
    }

    /// The symbols that the program's image for a processor defines, by LLVM's own tools.
    pub fn symbols(&self, processor: &str) -> Vec<String> {
        let ids = self.entries();
        let id = ids.iter().find(|id| id.ends_with(processor)).unwrap();
        let mut unbundle = self.command(self.tool("clang-offload-bundler"));
        unbundle.args(["-unbundle", "-type=o", "-input=f.hipfb", "-output=f.img"]);
        run(unbundle.arg(format!("-targets={id}")));
        let mut nm = self.command(self.tool("llvm-nm"));
        let listed = run(nm.args(["--defined-only", "-j", "-D", "f.img"]));
        listed.lines().map(str::to_owned).collect()
    }

    /// A bundle of files by LLVM's own tool: each an entry ID and the file.
    pub fn bundle(&self, kind: &str, entries: &[(&str, &str)], output: &str, more: &[&str]) {
        let ids: Vec<&str> = entries.iter().map(|(id, _)| *id).collect();
        let mut bundle = self.llvm(self.tool("clang-offload-bundler"));
        bundle
            .arg(format!("-type={kind}"))
            .arg(format!("-targets={}", ids.join(",")));
        bundle.args(entries.iter().map(|(_, file)| format!("-input={file}")));
        run(bundle.arg(format!("-output={output}")).args(more));
    }

    /// A program of the release; of 16 what is not clang's is 22's.
    pub fn tool(&self, name: &str) -> PathBuf {
        let release = match name.starts_with("clang") {
            false if self.release == "llvm16" => "llvm22",
            _ => self.release,
        };
        tool(release, &[name]).unwrap_or_else(|| panic!("no {name} of {release}"))
    }
}

/// What a program with one kernel registers.
pub fn one_kernel(name: &str) -> Vec<String> {
    vec![
        "fat binary __CLANG_OFFLOAD_BUNDLE__ at 0".to_owned(),
        format!("function _Z{}{name}Pi", name.len()),
        format!("variable {name}_data 4"),
    ]
}

pub const ENTRIES: [&str; 3] = [
    "hipv4-amdgcn-amd-amdhsa--gfx906",
    "hipv4-amdgcn-amd-amdhsa--gfx90a",
    "host-x86_64-unknown-linux-gnu-",
];
