//! The registration objects of CUDA and HIP in programs: what their runtimes are told.
//!
//! The runtimes are stand-ins that print each call. The calls are compared with those of programs
//! that have LLVM's object in the place of ours.

#![allow(clippy::unwrap_used)] // a test fails by panicking

#[path = "linker_support.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use object::{Object, ObjectSection, ObjectSymbol};
use offload_build::container::elf::Machine;
use offload_build::format::offload_entry::EntryTable as Layout;
use offload_build::registration::Global;
use offload_build::registration::fat_binary::{EntryTable, FatBinary, HostTable, Runtime};
use offload_build::registration::hip_symbols::{HipFatBinary, HipSymbols};
use offload_build::target::Triple;
use support::{linkers, text, tool};
use tempfile::TempDir;

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

fn prefix(runtime: Runtime) -> &'static str {
    match runtime {
        Runtime::Cuda => "cuda",
        Runtime::Hip => "hip",
    }
}

fn start_stop(layout: Layout, runtime: Runtime) -> HostTable<'static> {
    let section = layout.section(runtime.kind()).unwrap();
    let table = EntryTable::StartStop { section };
    HostTable { layout, table }
}

/// A folder with the runtime's stand-in.
struct Case {
    dir: TempDir,
    runtime: Runtime,
    clang: PathBuf,
}

impl Case {
    fn new(runtime: Runtime) -> Option<Self> {
        let clang = tool("llvm22", "clang")?;
        let dir = tempfile::tempdir().unwrap();
        let case = Self {
            dir,
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

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir(self.dir.path());
        command
    }

    fn clang(&self, args: &[&str]) -> Output {
        succeed(self.command(&self.clang).args(args))
    }

    /// The host's side of the source, as a release compiles it.
    fn compile(&self, release: &str, names: &str, more: &[&str]) -> Option<()> {
        let clang = tool(&format!("llvm{release}"), "clang++")?;
        let mut command = self.command(clang);
        match self.runtime {
            Runtime::Cuda => command.args(["-x", "cuda", "-nocudainc", "-nocudalib"]),
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
    fn compile20(&self, names: &str, object: &str) -> Option<()> {
        self.compile("22", names, &["-S", "-o", "20.s"])?;
        let assembler = fs::read_to_string(self.path("20.s")).unwrap();
        let section = Layout::V20.section(self.runtime.kind()).unwrap();
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
    fn llvm(&self, release: &str) -> Option<Vec<u8>> {
        let wrapper = tool(&format!("llvm{release}"), "clang-linker-wrapper")?;
        self.write("fatbinary", b"#!/bin/sh\nprintf 'fatbin' > \"$3\"\n");
        fs::create_dir_all(self.path("cuda/bin")).unwrap();
        fs::rename(self.path("fatbinary"), self.path("cuda/bin/fatbinary")).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(self.path("cuda/bin/fatbinary"), executable).unwrap();
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
        let object = fs::read(self.path(&format!("llvm.{kind}.image.wrapper.o"))).unwrap();
        self.write("llvm.o", &object);
        let file = object::File::parse(&*object).unwrap();
        let section = file.section_by_name(self.runtime.section()).unwrap();
        Some(section.data().unwrap().to_vec())
    }

    fn registration(&self, bytes: &[u8], tables: &[HostTable<'_>]) -> Vec<u8> {
        let object = FatBinary {
            runtime: self.runtime,
            bytes,
            tables,
            symbols: HipSymbols::default(),
            globals: &[],
        };
        object.to_object(Machine::X86_64).unwrap()
    }

    /// Links a program and gives what it prints.
    fn run(&self, linker: &str, objects: &[&str]) -> String {
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

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

fn bfd() -> String {
    let (_, path) = linkers().into_iter().next().expect("a linker");
    path.display().to_string()
}

#[test]
fn makes_the_calls_that_llvm_makes() {
    for runtime in [Runtime::Cuda, Runtime::Hip] {
        let Some(case) = Case::new(runtime) else {
            return;
        };
        for (release, layout) in [("19", Layout::V19), ("22", Layout::V21)] {
            let Some(bytes) = case.llvm(release) else {
                continue;
            };
            case.compile(release, "x_", &["-c", "-o", "x.o"]).unwrap();
            let expected = case.run(&bfd(), &["llvm.o", "x.o"]);
            println!("{expected}");
            let ours = case.registration(&bytes, &[start_stop(layout, runtime)]);
            case.write("ours.o", &ours);
            for (name, linker) in linkers() {
                let linker = linker.display().to_string();
                let seen = case.run(&linker, &["ours.o", "x.o"]);
                assert_eq!(seen, expected, "{runtime:?} {release} {name}");
            }
        }
    }
}

#[test]
fn registers_one_fat_binary_with_the_entries_of_every_release() {
    for runtime in [Runtime::Cuda, Runtime::Hip] {
        let Some(case) = Case::new(runtime) else {
            return;
        };
        if case.compile("19", "nn_", &["-c", "-o", "19.o"]).is_none() {
            return;
        }
        case.compile20("tt_", "20.o").unwrap();
        case.compile("22", "vv_", &["-c", "-o", "22.o"]).unwrap();
        let calls = |layout: Layout, object| {
            case.write(
                "one.o",
                &case.registration(b"image", &[start_stop(layout, runtime)]),
            );
            let printed = case.run(&bfd(), &["one.o", object]);
            let calls = printed
                .lines()
                .filter(|line| ["nn_", "tt_", "vv_"].iter().any(|name| line.contains(name)));
            calls.map(|line| format!("{line}\n")).collect::<String>()
        };
        let (new, middle) = (calls(Layout::V21, "22.o"), calls(Layout::V20, "20.o"));
        // The same source, in other words; what LLVM 22 does with it, another test knows.
        assert_eq!(middle.replace("tt_", "vv_"), new, "{runtime:?}");
        assert_eq!(
            new.lines().count(),
            if runtime == Runtime::Hip { 6 } else { 3 }
        );
        // An old section has entries of one size, so 19 and 20 do not meet in a program.
        for (old, layout) in [("19.o", Layout::V19), ("20.o", Layout::V20)] {
            let both = [layout, Layout::V21].map(|layout| start_stop(layout, runtime));
            case.write("both.o", &case.registration(b"image", &both));
            let magic = match runtime {
                Runtime::Cuda => "466243b1",
                Runtime::Hip => "48495046",
            };
            let first = format!("FatBinary {magic} 1 image 0 image (nil) -> 0\n");
            let end = match runtime {
                Runtime::Cuda => "End 0\n",
                Runtime::Hip => "",
            };
            let entries = calls(layout, old) + &new;
            let last = "main\nUnregister 0\nruntime down\n";
            for (name, linker) in linkers() {
                let seen = case.run(&linker.display().to_string(), &["22.o", old, "both.o"]);
                let expected = format!("{first}{entries}{end}{last}");
                assert_eq!(seen, expected, "{runtime:?} {old} {name}");
            }
        }
    }
}

#[test]
fn registers_without_entries() {
    let Some(case) = Case::new(Runtime::Hip) else {
        return;
    };
    for tables in [
        &[][..],
        &[Layout::V21, Layout::V19].map(|layout| start_stop(layout, Runtime::Hip)),
    ] {
        case.write("r.o", &case.registration(b"image", tables));
        for (name, linker) in linkers() {
            let seen = case.run(&linker.display().to_string(), &["r.o"]);
            let expected = "FatBinary 48495046 1 image 0 image (nil) -> 0\n\
                            main\nUnregister 0\nruntime down\n";
            assert_eq!(seen, expected, "{name}");
        }
    }
}

/// An entry in assembler: kind, flags, address and name, size, data, address of a managed pointer.
fn entry(layout: Layout, kind: u16, flags: u32, name: &str, size: u64, data: u32) -> String {
    match layout {
        Layout::V19 => format!(".quad {name}, name_{name}, {size}\n.long {flags}, {data}\n"),
        Layout::V20 | Layout::V21 => format!(
            ".quad 0\n.short 1, {kind}\n.long {flags}\n.quad {name}, name_{name}, {size}, {data}, aux\n"
        ),
    }
}

/// Every sort of entry; those that must be left alone are called `wrong`.
fn table(layout: Layout, runtime: Runtime) -> String {
    let section = layout.section(runtime.kind()).unwrap();
    let kind = match (runtime, layout) {
        (Runtime::Cuda, _) => 2,
        (Runtime::Hip, Layout::V21) => 4,
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
    if layout == Layout::V21 {
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

/// Specification: section 5.4 of what was measured on LLVM 19 to 22, and `OffloadWrapper.cpp`.
#[test]
fn tells_the_runtime_what_an_entry_says() {
    for runtime in [Runtime::Cuda, Runtime::Hip] {
        let Some(case) = Case::new(runtime) else {
            return;
        };
        for layout in Layout::ALL {
            case.write("table.s", table(layout, runtime).as_bytes());
            case.clang(&["-c", "table.s"]);
            let object = case.registration(b"image", &[start_stop(layout, runtime)]);
            case.write("r.o", &object);
            let mut expected = String::new();
            let mut call = |function: &str, name: &str, rest: &str| {
                let device = format!("on device: {name}");
                expected += &format!("{function} 0 {name} {device} {device} {rest}\n");
            };
            call("Function", "function", "-1 (nil) (nil) (nil) (nil) (nil)");
            for (name, external, size, constant) in [
                ("variable", 0, "4294967297", 0),
                ("external", 1, "4", 0),
                ("constant", 0, "8", 1),
                ("both", 1, "9", 1),
            ] {
                let rest = format!("extern {external} size {size} constant {constant} global 0");
                call("Var", name, &rest);
            }
            if layout != Layout::V19 {
                expected += "ManagedVar 0 aux managed on device: managed size 4 align 8\n";
            }
            if runtime == Runtime::Hip {
                expected += "Surface 0 surface on device: surface on device: surface type 3 extern 1\n\
                    Texture 0 texture on device: texture on device: texture type 2 normalized 1 extern 0\n\
                    Texture 0 other on device: other on device: other type 1 normalized 0 extern 1\n";
            }
            for (name, linker) in linkers() {
                let seen = case.run(&linker.display().to_string(), &["r.o", "table.o"]);
                let calls = seen.lines().filter(|line| line.contains("on device"));
                let calls: String = calls.map(|line| format!("{line}\n")).collect();
                assert_eq!(calls, expected, "{runtime:?} {layout:?} {name}");
            }
        }
    }
}

#[test]
fn keeps_its_own_tables_through_a_relocatable_link() {
    let Some(case) = Case::new(Runtime::Hip) else {
        return;
    };
    let sizes = |object: &str| {
        let bytes = fs::read(case.path(object)).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let section = file
            .sections()
            .find(|section| section.name().unwrap().ends_with("offload_entries"))
            .unwrap();
        (section.size(), section.align())
    };
    for (name, linker) in linkers() {
        for (names, whole) in [("aa_", "a.o"), ("bb_", "b.o")] {
            case.compile("22", names, &["-c", "-o", "x.o"]).unwrap();
            let (size, alignment) = sizes("x.o");
            let table = HostTable {
                layout: Layout::V21,
                table: EntryTable::SectionRange {
                    section: "llvm_offload_entries",
                    size,
                    flags: 3,
                    alignment,
                },
            };
            case.write("r.o", &case.registration(names.as_bytes(), &[table]));
            succeed(
                case.command(&linker)
                    .args(["-r", "r.o", "x.o", "-o", whole]),
            );
        }
        for (last, linker) in linkers() {
            let seen = case.run(&linker.display().to_string(), &["a.o", "b.o"]);
            let calls = |names: &str, handle: &str| {
                let rows = seen.lines().filter(|line| !line.starts_with("FatBinary"));
                let rows = rows.filter(|line| line.contains(names));
                rows.filter(|line| line.split(' ').nth(1) == Some(handle))
                    .count()
            };
            assert_eq!(
                (calls("aa_", "0"), calls("bb_", "1")),
                (6, 6),
                "{name} {last}: {seen}"
            );
            assert_eq!(
                (calls("aa_", "1"), calls("bb_", "0")),
                (0, 0),
                "{name} {last}: {seen}"
            );
        }
    }
}

/// Undefined symbols of an object that start so.
fn wanted(object: &[u8], start: &str) -> Vec<String> {
    let file = object::File::parse(object).unwrap();
    let names = file.symbols().filter(|symbol| symbol.is_undefined());
    let names = names.map(|symbol| symbol.name().unwrap().to_owned());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(start)).collect();
    names.sort();
    names
}

/// Objects of clang's old driver register themselves, and share one handle.
#[test]
fn gives_the_fat_binary_to_objects_that_register_themselves() {
    let Some(case) = Case::new(Runtime::Hip) else {
        return;
    };
    let old = ["-c", "--no-offload-new-driver"];
    for (release, names, object) in [("19", "ii_", "i.o"), ("22", "jj_", "j.o")] {
        let cuid = format!("-cuid={release}");
        let args = [&old[..], &[&cuid, "-o", object]].concat();
        if case.compile(release, names, &args).is_none() {
            return;
        }
    }
    case.compile("22", "kk_", &["-c", "-o", "k.o"]).unwrap();
    let all = |start: &str| {
        let objects = ["i.o", "j.o"].map(|name| fs::read(case.path(name)).unwrap());
        let names = objects.iter().flat_map(|object| wanted(object, start));
        names.collect::<Vec<String>>()
    };
    let (fat, handles) = (all("__hip_fatbin_"), all("__hip_gpubin_handle_"));
    assert_eq!((fat.len(), handles.len()), (2, 2), "{fat:?} {handles:?}");
    let fat: Vec<&str> = fat.iter().map(String::as_str).collect();
    let handles: Vec<&str> = handles.iter().map(String::as_str).collect();
    let symbols = HipSymbols {
        fat_binary: &fat,
        handle: &handles,
    };
    let bytes = b"image";
    let alone = HipFatBinary { bytes, symbols };
    case.write("alone.o", &alone.to_object(Machine::X86_64).unwrap());
    let both = FatBinary {
        runtime: Runtime::Hip,
        bytes,
        tables: &[start_stop(Layout::V21, Runtime::Hip)],
        symbols,
        globals: &[],
    };
    case.write("both.o", &both.to_object(Machine::X86_64).unwrap());
    for (name, linker) in linkers() {
        let linker = linker.display().to_string();
        let seen = case.run(&linker, &["i.o", "j.o", "alone.o"]);
        let count =
            |seen: &str, word: &str| seen.lines().filter(|line| line.contains(word)).count();
        // The handle is one: the first object registers, the second only its entries.
        assert_eq!(count(&seen, "FatBinary"), 1, "{name}: {seen}");
        assert_eq!(count(&seen, "image 0 image"), 1, "{name}: {seen}");
        assert_eq!(count(&seen, "ii_kernel"), 1, "{name}: {seen}");
        assert_eq!(count(&seen, "jj_kernel"), 1, "{name}: {seen}");

        let seen = case.run(&linker, &["i.o", "j.o", "k.o", "both.o"]);
        assert_eq!(count(&seen, "FatBinary"), 2, "{name}: {seen}");
        assert_eq!(count(&seen, "image 0 image"), 2, "one copy: {name}: {seen}");
        for kernel in ["ii_kernel", "jj_kernel", "kk_kernel"] {
            assert_eq!(count(&seen, kernel), 1, "{name}: {seen}");
        }
    }
}

#[test]
fn aligns_the_fat_binary_as_its_runtime_wants() {
    let object = |runtime, bytes| {
        let object = FatBinary {
            runtime,
            bytes,
            tables: &[],
            symbols: HipSymbols::default(),
            globals: &[],
        };
        object.to_object(Machine::AARCH64).unwrap()
    };
    // A page can be read, and a whole bundle follows at a multiple of it: hip_fatbin.cpp of ROCm.
    let small = object(Runtime::Hip, b"CCOB");
    let large = object(Runtime::Hip, &[1; 5000]);
    let cuda = object(Runtime::Cuda, b"fatbin");
    for (bytes, section, alignment, size, image) in [
        (&small, ".hip_fatbin", 4096, 4096, 4),
        (&large, ".hip_fatbin", 4096, 5000, 5000),
        (&cuda, ".nv_fatbin", 16, 6, 6),
    ] {
        let file = object::File::parse(&**bytes).unwrap();
        let section = file.section_by_name(section).unwrap();
        assert_eq!((section.align(), section.size()), (alignment, size));
        let symbol = file.symbol_by_name(".fatbin_image").unwrap();
        assert_eq!(symbol.size(), image);
    }
}

#[test]
fn links_for_aarch64() {
    let (Some(lld), Some(objdump)) = (tool("llvm22", "ld.lld"), tool("llvm22", "llvm-objdump"))
    else {
        return;
    };
    for (runtime, functions) in [
        (
            Runtime::Hip,
            &["Function", "Var", "ManagedVar", "Surface", "Texture"][..],
        ),
        (
            Runtime::Cuda,
            &["FatBinaryEnd", "Function", "Var", "ManagedVar"],
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let tables = [Layout::V19, Layout::V21].map(|layout| start_stop(layout, runtime));
        let object = FatBinary {
            runtime,
            bytes: b"image",
            tables: &tables,
            symbols: HipSymbols::default(),
            globals: &[],
        };
        let object = object.to_object(Machine::AARCH64).unwrap();
        fs::write(dir.path().join("r.o"), object).unwrap();
        let mut link = Command::new(&lld);
        link.args(["-shared", "r.o", "-o", "r.so", "--eh-frame-hdr"]);
        succeed(link.current_dir(dir.path()));
        let mut dump = Command::new(&objdump);
        dump.args(["-d", "--no-show-raw-insn", "--no-leading-addr", "r.so"]);
        let dump = text(&succeed(dump.current_dir(dir.path())).stdout);
        let name = prefix(runtime);
        for function in functions {
            let call = format!("<__{name}Register{function}@plt>");
            assert!(dump.contains(&call), "{call} not in {dump}");
        }
        for function in ["atexit@plt", &format!(".{name}.globals_reg")] {
            let call = format!("<{function}>");
            assert!(dump.contains(&call), "{call} not in {dump}");
        }
        assert!(!dump.contains("unknown"), "{dump}");
    }
}

/// Compilers of C for this host: gcc, which is `cc`, and clang.
fn compilers() -> Vec<PathBuf> {
    let clang = ["19", "22"].map(|release| tool(&format!("llvm{release}"), "clang"));
    let all = clang.into_iter().chain([support::found("gcc")]);
    all.flatten().collect()
}

#[test]
fn says_the_same_in_c_and_in_ir() {
    for runtime in [Runtime::Cuda, Runtime::Hip] {
        let Some(case) = Case::new(runtime) else {
            return;
        };
        for (index, layout) in Layout::ALL.into_iter().enumerate() {
            case.write(&format!("{index}.s"), table(layout, runtime).as_bytes());
            case.clang(&["-c", &format!("{index}.s")]);
        }
        // Names that mean something to the assembler, to C, or to neither.
        let image = "a \"b\" %s\\t ?\u{e4}??).o";
        case.write(image, b"image");
        for layouts in [&[Layout::V19, Layout::V21][..], &[Layout::V20], &[]] {
            let tables: Vec<HostTable<'_>> = layouts
                .iter()
                .map(|layout| start_stop(*layout, runtime))
                .collect();
            let registration = FatBinary {
                runtime,
                bytes: b"image",
                tables: &tables,
                symbols: HipSymbols::default(),
                globals: &[Global::Bytes {
                    name: "image_itself",
                    offset: 0,
                    size: 5,
                }],
            };
            let object = registration.to_object(Machine::X86_64).unwrap();
            case.write("r.o", &object);
            let source = registration.to_c(Path::new(image)).unwrap();
            case.write("r.c", source.as_bytes());
            let linker = bfd();
            // One table at a time: names of theirs are the same.
            let objects: &[&str] = match layouts {
                [Layout::V19, _] => &["2.o"],
                [Layout::V20] => &["1.o"],
                _ => &[],
            };
            let expected = case.run(&linker, &[&["r.o"], objects].concat());
            let host = Triple::parse("x86_64-pc-linux-gnu").unwrap();
            let module = registration.to_ir(&host).unwrap();
            // Text, under the name that clang expects of bitcode.
            case.write("r.bc", module.as_bytes());
            for release in ["19", "22"] {
                for option in ["-O0", "-O2"] {
                    let clang = tool(&format!("llvm{release}"), "clang").unwrap();
                    let args = ["-c", "-fPIC", option, "r.bc", "-o", "c.o"];
                    succeed(case.command(clang).args(args));
                    let seen = case.run(&linker, &[&["c.o"], objects].concat());
                    assert_eq!(seen, expected, "module, {release} {option} {layouts:?}");
                }
            }
            for compiler in compilers() {
                for option in ["-O0", "-O2"] {
                    let mut compile = case.command(&compiler);
                    compile
                        .args(["-c", "-fPIC", "-Wall", "-Wextra", "-Werror", "-std=c99"])
                        .args([option, "-ffunction-sections", "-fdata-sections"])
                        .args(["r.c", "-o", "c.o"]);
                    succeed(&mut compile);
                    let few = if option == "-O2" { 4 } else { 1 };
                    for (name, linker) in linkers().into_iter().take(few) {
                        let linker = linker.display().to_string();
                        let seen = case.run(&linker, &[&["c.o"], objects].concat());
                        assert_eq!(seen, expected, "{compiler:?} {option} {name} {layouts:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn gives_the_fat_binary_to_objects_that_register_themselves_in_c() {
    let Some(case) = Case::new(Runtime::Hip) else {
        return;
    };
    case.write("image", b"image");
    case.write(
        "use.c",
        b"#include <stdio.h>\nextern char __hip_fatbin_a[], __hip_fatbin_b[];\n\
          extern void *__hip_gpubin_handle_a, *__hip_gpubin_handle_b;\n\
          __attribute__((constructor)) static void show(void) {\n\
          char *volatile a = __hip_fatbin_a, *volatile b = __hip_fatbin_b;\n\
          void **volatile c = &__hip_gpubin_handle_a, **volatile d = &__hip_gpubin_handle_b;\n\
          printf(\"%.5s %d %d\\n\", a, a == b, c == d && !*c); }\n",
    );
    case.clang(&["-c", "-fPIC", "use.c"]);
    let symbols = HipSymbols {
        fat_binary: &["__hip_fatbin_a", "__hip_fatbin_b"],
        handle: &["__hip_gpubin_handle_a", "__hip_gpubin_handle_b"],
    };
    let bytes = b"image";
    let alone = HipFatBinary { bytes, symbols };
    let object = alone.to_object(Machine::X86_64).unwrap();
    case.write("alone.o", &object);
    case.write(
        "alone.c",
        alone.to_c(Path::new("image")).unwrap().as_bytes(),
    );
    let mut objects = vec!["alone.o".to_owned()];
    for (index, compiler) in compilers().iter().enumerate() {
        let name = format!("alone{index}.o");
        succeed(
            case.command(compiler)
                .args(["-c", "-Wall", "-Werror", "alone.c", "-o", &name]),
        );
        objects.push(name);
    }
    for object in objects {
        for (name, linker) in linkers() {
            let seen = case.run(&linker.display().to_string(), &["use.o", &object]);
            assert_eq!(seen, "image 1 1\nmain\nruntime down\n", "{object} {name}");
        }
    }
}

/// The code for Windows runs here, with a runtime that is called as those of Windows are.
#[test]
fn tells_the_runtime_of_windows_what_an_entry_says() {
    for runtime in [Runtime::Cuda, Runtime::Hip] {
        let Some(case) = Case::new(runtime) else {
            return;
        };
        let name = prefix(runtime);
        for layout in Layout::ALL {
            case.write("table.s", table(layout, runtime).as_bytes());
            case.clang(&["-c", "table.s"]);
            let tables = [start_stop(layout, runtime)];
            case.write("r.o", &case.registration(b"image", &tables));
            let expected = case.run(&bfd(), &["r.o", "table.o"]);

            let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
            let machine = folder.join("../offload-build/src/registration/machine");
            let code = fs::read_to_string(machine.join("windows_x86_64.s")).unwrap();
            let section = layout.section(runtime.kind()).unwrap();
            let (stride, kinds, magic) = match (runtime, layout) {
                (Runtime::Cuda, _) => (layout.stride(), "2, 2", "0x466243b1"),
                (Runtime::Hip, Layout::V21) => (layout.stride(), "4, 4", "0x48495046"),
                (Runtime::Hip, _) => (layout.stride(), "3, 4", "0x48495046"),
            };
            let data = format!(
                "
        .data
.{name}.entry_tables:
        .quad __start_{section}, __stop_{section}
        .long {stride}
        .short {kinds}
        .zero 24
.fatbin_wrapper:
        .long {magic}, 1
        .quad image, 0
.{name}.binary_handle:
        .quad 0
image:  .asciz \"image\"
        .section .init_array.101,\"aw\",@init_array
        .quad .{name}.fatbin_reg
        .section .note.GNU-stack,\"\",@progbits
"
            );
            case.write("w.s", (code + &data).as_bytes());
            let define = format!("-D{}", name.to_uppercase());
            let args = [
                "-c",
                "-x",
                "assembler-with-cpp",
                "-DELF",
                "-Datexit=windows_atexit",
            ];
            case.clang(&[&args[..], &[&define, "w.s"]].concat());
            let abi = "-DABI=__attribute__((ms_abi))";
            let prefix = format!("-DPREFIX={name}");
            let library = ["-shared", "-fPIC", "-O2", abi, &prefix, "runtime.c"];
            case.clang(&[&library[..], &["-o", "windows.so"]].concat());
            let link = case.clang(&[
                "-o",
                "w",
                "-rdynamic",
                "-Wl,-rpath,$ORIGIN",
                "main.o",
                "w.o",
                "table.o",
                "windows.so",
            ]);
            assert_eq!(text(&link.stderr), "");
            let seen = text(&succeed(&mut case.command(case.path("w"))).stdout);
            assert_eq!(seen, expected, "{runtime:?} {layout:?}");
        }
    }
}

/// A program without a C library: the runtime of [`RUNTIME`], less talkative.
const BARE: &str = r#"
typedef unsigned long size;
static long call(long number, long a, long b, long c) {
#ifdef __aarch64__
  register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  return x0;
#else
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
#endif
}
#ifdef __aarch64__
enum { WRITE = 64, EXIT = 93 };
#else
enum { WRITE = 1, EXIT = 60 };
#endif
extern char function[], __hip_handle[8];
char __hip_handle[8];
static void text(const char *s) { long n = 0; while (s[n]) n++; call(WRITE, 1, (long)s, n); }
static void number(long n) {
  char s[24], *p = s + 23;
  *p = 0;
  unsigned long u = n < 0 ? -(unsigned long)n : (unsigned long)n;
  do *--p = '0' + u % 10; while (u /= 10);
  if (n < 0) *--p = '-';
  *--p = ' ';
  text(p);
}
/* Variables are 8 bytes each, in the order in which the table names them. */
static void address(void *a) { if (a) number((char *)a - function); else text(" null"); }
static void start(const char *what, void *h) { text(what); number((char *)h - __hip_handle); }
static void end(void) { text("\n"); }
static void names(char *a, char *b) { text(" "); text(a); text(" "); text(b); }
struct wrapper { unsigned magic, version; const char *image; void *unused; };
void **__hipRegisterFatBinary(struct wrapper *w) {
  text("FatBinary"); number(w->magic); number(w->version); text(w->image); address(w->unused); end();
  return (void **)__hip_handle;
}
void __hipUnregisterFatBinary(void *h) { start("Unregister", h); end(); }
int __hipRegisterFunction(void *h, void *a, char *b, char *c, int n, void *t, void *u, void *v, void *w, int *x) {
  start("Function", h); address(a); names(b, c); number(n); address(t); address(u); address(v); address(w); address(x); end();
  return 0;
}
void __hipRegisterVar(void *h, void *a, char *b, char *c, int x, size s, int k, int g) {
  start("Var", h); address(a); names(b, c); number(x); number(s); number(k); number(g); end();
}
void __hipRegisterManagedVar(void *h, void *p, void *a, char *b, size s, unsigned n) {
  start("ManagedVar", h); address(p); address(a); names(b, b); number(s); number(n); end();
}
void __hipRegisterSurface(void *h, void *a, char *b, char *c, int t, int x) {
  start("Surface", h); address(a); names(b, c); number(t); number(x); end();
}
void __hipRegisterTexture(void *h, void *a, char *b, char *c, int t, int n, int x) {
  start("Texture", h); address(a); names(b, c); number(t); number(n); number(x); end();
}
static void (*last)(void);
int atexit(void (*f)(void)) { last = f; return 0; }
extern void (*__init_array_start[])(void), (*__init_array_end[])(void);
__attribute__((used)) static void run(void) {
  for (void (**f)(void) = __init_array_start; f != __init_array_end; f++) (*f)();
  text("main\n");
  last();
  call(EXIT, 0, 0, 0);
}
#ifdef __aarch64__
__asm__(".globl _start\n_start: bl run\n");
#else
__asm__(".globl _start\n_start: andq $-16, %rsp\ncall run\n");
#endif
"#;

#[test]
fn makes_the_same_calls_on_aarch64() {
    let (Some(lld), Some(qemu)) = (
        tool("llvm22", "ld.lld"),
        support::other("qemu", &["qemu-aarch64", "qemu-aarch64-static"]),
    ) else {
        return;
    };
    let Some(case) = Case::new(Runtime::Hip) else {
        return;
    };
    case.write("bare.c", BARE.as_bytes());
    for layout in Layout::ALL {
        case.write("table.s", table(layout, Runtime::Hip).as_bytes());
        let printed =
            [("x86_64", Machine::X86_64), ("aarch64", Machine::AARCH64)].map(|(arch, machine)| {
                let target = format!("--target={arch}-linux-gnu");
                let options = [
                    "-c",
                    "-ffreestanding",
                    "-fno-stack-protector",
                    "-O1",
                    "-fno-pic",
                ];
                case.clang(&[&options[..], &[&target, "bare.c"]].concat());
                case.clang(&["-c", &target, "table.s"]);
                let registration = FatBinary {
                    runtime: Runtime::Hip,
                    bytes: b"image\0",
                    tables: &[start_stop(layout, Runtime::Hip)],
                    symbols: HipSymbols::default(),
                    globals: &[],
                };
                case.write("r.o", &registration.to_object(machine).unwrap());
                let mut link = case.command(&lld);
                link.args(["-static", "bare.o", "table.o", "r.o", "-o", "bare"]);
                succeed(&mut link);
                let mut run = match arch {
                    "aarch64" => case.command(&qemu),
                    _ => case.command("env"),
                };
                text(&succeed(run.arg("./bare")).stdout)
            });
        let [x86_64, aarch64] = printed;
        let calls = if layout == Layout::V19 { 8 } else { 9 };
        assert_eq!(x86_64.lines().count(), calls + 3, "{x86_64}");
        assert_eq!(aarch64, x86_64, "{layout:?}");
    }
}
