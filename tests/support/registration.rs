//! Programs with the registration of a fat binary, and the stand-in of a runtime that prints each
//! call.

#![allow(dead_code, unreachable_pub)] // each test takes what it needs

use crate::linker_support as support;

use crate::support::folder::Folder;

use std::fs;
use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Command, Output};

use object::{Object, ObjectSection};
use offload_formats::container::elf::Machine;
use offload_formats::format::offload_entry::EntryLayout;
use offload_formats::format::pieces::Embedded;
use offload_formats::registration::fat_binary::{EntryTable, FatBinary, HostTable, Runtime};
use offload_formats::registration::hip_symbols::HipSymbols;
use support::{linkers, text, tool};

/// A library with the functions of a runtime. A pointer is printed as the symbol that it points at.
const RUNTIME: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#define NAME2(prefix, name) ABI __##prefix##name
#define NAME1(prefix, name) NAME2(prefix, name)
#define NAME(name) NAME1(PREFIX, name)
#ifndef ABI
#define ABI
#else
#include <stdlib.h>
typedef ABI void leave(void);
static leave *last;
static void at_exit(void) { last(); }
ABI int windows_atexit(leave *f) { last = f; return atexit(at_exit); }
#endif
struct wrapper { unsigned magic, version; const char *image; void *unused; };
static const char *images[9];
static int count, handles[9];
static const char *name(void *p) {
  Dl_info info;
  if (!p) return "null";
  return dladdr(p, &info) && info.dli_saddr == p ? info.dli_sname : "local";
}
static int number(void *handle) { return (int)((int *)handle - handles); }
void **NAME(RegisterFatBinary)(struct wrapper *w) {
  int image = 0;
  while (images[image] && images[image] != w->image) image++;
  images[image] = w->image;
  printf("FatBinary %x %u image %d %.5s %p -> %d\n", w->magic, w->version, image, w->image, w->unused, count);
  return (void **)&handles[count++];
}
void NAME(RegisterFatBinaryEnd)(void *h) { printf("End %d\n", number(h)); }
void NAME(UnregisterFatBinary)(void *h) { printf("Unregister %d\n", number(h)); fflush(stdout); }
int NAME(RegisterFunction)(void *h, void *a, char *b, char *c, int limit, void *t, void *u, void *v, void *w, int *x) {
  printf("Function %d %s %s %s %d %p %p %p %p %p\n", number(h), name(a), b, c, limit, t, u, v, w, (void *)x);
  return 0;
}
void NAME(RegisterVar)(void *h, void *a, char *b, char *c, int external, size_t size, int constant, int global) {
  printf("Var %d %s %s %s extern %d size %zu constant %d global %d\n", number(h), name(a), b, c, external, size, constant, global);
}
void NAME(RegisterManagedVar)(void *h, void *p, void *a, char *b, size_t size, unsigned align) {
  printf("ManagedVar %d %s %s %s size %zu align %u\n", number(h), name(p), name(a), b, size, align);
}
void NAME(RegisterSurface)(void *h, void *a, char *b, char *c, int type, int external) {
  printf("Surface %d %s %s %s type %d extern %d\n", number(h), name(a), b, c, type, external);
}
void NAME(RegisterTexture)(void *h, void *a, char *b, char *c, int type, int normalized, int external) {
  printf("Texture %d %s %s %s type %d normalized %d extern %d\n", number(h), name(a), b, c, type, normalized, external);
}
__attribute__((destructor)) static void down(void) { puts("runtime down"); }
"#;

/// The other functions are those of launches, of which there are none.
const MAIN: &str = r#"
#include <stdio.h>
int main(void) { puts("main"); return 0; }
int cudaSetupArgument(void) { return 0; }
int cudaLaunch(void) { return 0; }
int hipLaunchKernel(void) { return 0; }
int __hipPopCallConfiguration(void) { return 0; }
"#;

/// For CUDA and HIP; `N(x)` makes names that differ between the objects of a program.
const SOURCE: &str = r#"
#define G __attribute__((global))
#define D __attribute__((device))
#define NAME2(prefix, name) prefix##name
#define NAME1(prefix, name) NAME2(prefix, name)
#define N(name) NAME1(PREFIX, name)
typedef __SIZE_TYPE__ size_t;
struct dim3 { unsigned x, y, z; };
extern "C" {
int __hipPushCallConfiguration(dim3, dim3, size_t, void *);
int __hipPopCallConfiguration(dim3 *, dim3 *, size_t *, void *);
int hipLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);
int cudaConfigureCall(dim3, dim3, size_t = 0, void * = 0);
}
template <class T, int d> struct __attribute__((device_builtin_surface_type)) surface;
template <int d> struct __attribute__((device_builtin_surface_type)) surface<void, d> { int a; };
template <class T, int d, int m> struct __attribute__((device_builtin_texture_type)) texture { int a; };
G void N(kernel)(int *p) { *p = 1; }
D int N(variable) = 3;
__attribute__((constant)) int N(constant)[4];
surface<void, 2> N(surface);
texture<float, 2, 1> N(texture);
#ifdef __HIP__
__attribute__((managed)) int N(managed) = 5;
#endif
"#;

pub fn prefix(runtime: Runtime) -> &'static str {
    match runtime {
        Runtime::Cuda => "cuda",
        Runtime::Hip => "hip",
    }
}

pub fn start_stop(layout: EntryLayout, runtime: Runtime) -> HostTable<'static> {
    let section = layout.section(runtime.kind()).unwrap();
    let table = EntryTable::StartStop {
        section,
        entries: &[],
    };
    HostTable { layout, table }
}

/// A folder with the runtime's stand-in.
pub struct Case {
    folder: Folder,
    pub runtime: Runtime,
    pub clang: PathBuf,
}

impl Deref for Case {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.folder
    }
}

impl Case {
    pub fn new(runtime: Runtime) -> Option<Self> {
        let clang = tool("llvm22", "clang")?;
        let folder = Folder::new();
        let case = Self {
            folder,
            runtime,
            clang,
        };
        case.write("runtime.c", RUNTIME.as_bytes());
        case.write("main.c", MAIN.as_bytes());
        case.write("a.cu", SOURCE.as_bytes());
        let define = format!("-DPREFIX={}", prefix(runtime));
        case.clang(&["-shared", "-fPIC", &define, "runtime.c", "-o", "runtime.so"]);
        case.clang(&["-c", "main.c"]);
        Some(case)
    }

    pub fn clang(&self, args: &[&str]) -> Output {
        succeed(self.command(&self.clang).args(args))
    }

    /// The host's side of the source, as a release compiles it.
    pub fn compile(&self, release: &str, names: &str, more: &[&str]) -> Option<()> {
        let clang = tool(&format!("llvm{release}"), "clang++")?;
        let mut command = self.command(clang);
        match self.runtime {
            // What a launch calls depends on the release of CUDA, where one is found.
            Runtime::Cuda => command
                .args(["-x", "cuda", "-nocudainc", "-nocudalib"])
                .arg("--cuda-path=none"),
            Runtime::Hip => command.args(["-x", "hip", "-nogpuinc", "-nogpulib"]),
        };
        command
            .args([
                "--offload-host-only",
                "-fgpu-rdc",
                "-Wno-unknown-cuda-version",
                "a.cu",
            ])
            .args([&format!("-DPREFIX={names}"), "-fPIC"])
            .args(more);
        if !more.contains(&"--no-offload-new-driver") {
            command.arg("--offload-new-driver");
        }
        succeed(&mut command);
        Some(())
    }

    /// The same as LLVM 20 lays it out: what LLVM 22 makes, with the section, the alignment and
    /// the numbers of LLVM 20.
    pub fn compile20(&self, names: &str, object: &str) -> Option<()> {
        self.compile("22", names, &["-S", "-o", "20.s"])?;
        let assembler = fs::read_to_string(self.path("20.s")).unwrap();
        let section = EntryLayout::V20.section(self.runtime.kind()).unwrap();
        let mut changed = String::new();
        let mut entries = false;
        for line in assembler.lines() {
            let trimmed = line.trim_start();
            if trimmed.starts_with(".section") {
                entries = trimmed.contains("llvm_offload_entries");
            }
            if entries && trimmed.starts_with(".p2align") {
                continue;
            }
            let line = line.replace("llvm_offload_entries", section);
            let kind = entries && trimmed.starts_with(".short") && trimmed.contains("0x4");
            changed += &if kind { "\t.short 3".to_owned() } else { line };
            changed.push('\n');
        }
        self.write("20.s", changed.as_bytes());
        self.clang(&["-c", "20.s", "-o", object]);
        Some(())
    }

    /// LLVM's registration object, and the fat binary in it.
    pub fn llvm(&self, release: &str) -> Option<Vec<u8>> {
        let wrapper = tool(&format!("llvm{release}"), "clang-linker-wrapper")?;
        self.write("fatbinary", b"#!/bin/sh\nprintf 'fatbin' > \"$3\"\n");
        fs::create_dir_all(self.path("cuda/bin")).unwrap();
        fs::rename(self.path("fatbinary"), self.path("cuda/bin/fatbinary")).unwrap();
        let nothing = support::found("true").expect("every system has `true`");
        let cuda = self.path("cuda");
        let kind = prefix(self.runtime);
        succeed(
            self.command(wrapper)
                .arg(format!("--linker-path={}", nothing.display()))
                .arg(format!("--cuda-path={}", cuda.display()))
                // An image of any machine will do.
                .arg(format!("--override-image={kind}=main.o"))
                .args(["--host-triple=x86_64-pc-linux-gnu", "--save-temps"])
                .args(["-o", "llvm", "main.o"]),
        );
        let object = fs::read(self.path(format!("llvm.{kind}.image.wrapper.o"))).unwrap();
        self.write("llvm.o", &object);
        let file = object::File::parse(&*object).unwrap();
        let section = file.section_by_name(self.runtime.section()).unwrap();
        Some(section.data().unwrap().to_vec())
    }

    pub fn registration(&self, bytes: &[u8], tables: &[HostTable<'_>]) -> Vec<u8> {
        let object = FatBinary {
            runtime: self.runtime,
            bytes: Embedded::Bytes(bytes),
            tables,
            symbols: HipSymbols::default(),
            globals: &[],
        };
        object.to_object(Machine::X86_64).unwrap()
    }

    /// Links a program and gives what it prints.
    pub fn run(&self, linker: &str, objects: &[&str]) -> String {
        let keep = match linker.contains("lld") {
            true => &["-Wl,-z,nostart-stop-gc"][..],
            false => &[],
        };
        let link = succeed(
            self.command(&self.clang)
                .args([
                    "-o",
                    "a",
                    "-rdynamic",
                    "-Wl,--gc-sections",
                    "-Wl,-rpath,$ORIGIN",
                ])
                .args(["main.o", "runtime.so", &format!("--ld-path={linker}")])
                .args(keep)
                .args(objects),
        );
        assert_eq!(text(&link.stderr), "", "{linker} {objects:?}");
        text(&succeed(&mut self.command(self.path("a"))).stdout)
    }
}

pub fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

pub fn bfd() -> String {
    let (_, path) = linkers().into_iter().next().expect("a linker");
    path.display().to_string()
}

/// An entry in assembler: kind, flags, address and name, size, data, address of a managed pointer.
pub fn entry(
    layout: EntryLayout,
    kind: u16,
    flags: u32,
    name: &str,
    size: u64,
    data: u32,
) -> String {
    match layout {
        EntryLayout::V19 => format!(".quad {name}, name_{name}, {size}\n.long {flags}, {data}\n"),
        _ => format!(
            ".quad 0\n.short 1, {kind}\n.long {flags}\n.quad {name}, name_{name}, {size}, {data}, aux\n"
        ),
    }
}

/// Every sort of entry; those that must be left alone are called `wrong`.
pub fn table(layout: EntryLayout, runtime: Runtime) -> String {
    let section = layout.section(runtime.kind()).unwrap();
    let kind = match (runtime, layout) {
        (Runtime::Cuda, _) => 2,
        (Runtime::Hip, EntryLayout::V21) => 4,
        (Runtime::Hip, _) => 3,
    };
    let align = layout.alignment();
    let stride = layout.stride();
    let mut rows = format!(".balign {align}\n.zero {stride}\n");
    for (flags, name, size, data) in [
        (0, "function", 0, 0),
        (0, "variable", 0x1_0000_0001_u64, 7),
        (8 | 4096, "external", 4, 0),
        (16, "constant", 8, 0),
        (24, "both", 9, 0),
        (1, "managed", 4, 8),
        (2 | 8, "surface", 4, 3),
        (3 | 32, "texture", 4, 2),
        (3 | 8, "other", 4, 1),
        (4, "wrong", 4, 1),
        (7, "wrong", 4, 1),
    ] {
        rows += &entry(layout, kind, flags, name, size, data);
    }
    if layout == EntryLayout::V21 {
        // LLVM 19 and 20 have a section for each kind.
        for kind in [0, 1, 3, 8, 6 - kind] {
            rows += &entry(layout, kind, 0, "wrong", 0, 0);
        }
    }
    // What is left of a section with larger alignment.
    rows += &format!(".zero {stride}\n.zero 8\n");
    let names = "function variable external constant both managed surface texture other wrong aux";
    let names: String = names
        .split(' ')
        .map(|name| {
            format!(
                ".globl {name}\n.type {name},@object\n{name}: .zero 8\n.size {name}, 8\n\
                 name_{name}: .asciz \"on device: {name}\"\n"
            )
        })
        .collect();
    format!(
        ".section {section},\"aw\",@progbits\n{rows}\n.data\n{names}\n\
         .section .note.GNU-stack,\"\",@progbits\n"
    )
}
