//! Forms of a registration that stand for the object for x86-64 Linux: C, LLVM IR, the code for
//! Windows and for aarch64. What they tell the runtime is what that object tells it.

use crate::registration_support as programs;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::linker_support::{self as support, linkers, text, tool};
use object::{
    Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionFlags,
};
use offload_formats::container::elf::Machine;
use offload_formats::container::large::ImagePlacement;
use offload_formats::format::offload_entry::EntryLayout;
use offload_formats::format::pieces::Embedded;
use offload_formats::names::{ImageKind, Triple};
use offload_formats::registration::fat_binary::{EntryTable, FatBinary, HostTable, Runtime};
use offload_formats::registration::hip_symbols::{HipFatBinary, HipSymbols};
use offload_formats::registration::openmp::{Blob, BlobSection, OpenMp};
use offload_formats::registration::sycl::{Sycl, SyclImage};
use offload_formats::registration::{ElfHost, Global};
use programs::{Case, bfd, prefix, start_stop, succeed, table};

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
        for (index, layout) in EntryLayout::ALL.into_iter().enumerate() {
            case.write(format!("{index}.s"), table(layout, runtime).as_bytes());
            case.clang(&["-c", &format!("{index}.s")]);
        }
        // Names that mean something to the assembler, to C, or to neither.
        let image = "a \"b\" %s\\t ?\u{e4}??).o";
        case.write(image, b"image");
        for layouts in [
            &[EntryLayout::V19, EntryLayout::V21][..],
            &[EntryLayout::V20],
            &[],
        ] {
            let tables: Vec<HostTable<'_>> = layouts
                .iter()
                .map(|layout| start_stop(*layout, runtime))
                .collect();
            let registration = FatBinary {
                runtime,
                bytes: Embedded::Bytes(b"image"),
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
                [EntryLayout::V19, _] => &["2.o"],
                [EntryLayout::V20] => &["1.o"],
                _ => &[],
            };
            let expected = case.run(&linker, &[&["r.o"], objects].concat());
            let host = Triple::parse("x86_64-pc-linux-gnu").unwrap();
            let module = registration.to_ir(&host).unwrap();
            // Text, under the name that clang expects of bitcode.
            case.write("r.bc", module.as_bytes());
            for (number, release) in ["19", "22"].into_iter().enumerate() {
                for option in crate::support::share(["-O0", "-O2"], number, 2) {
                    let clang = tool(&format!("llvm{release}"), "clang").unwrap();
                    let args = ["-c", "-fPIC", option, "r.bc", "-o", "c.o"];
                    succeed(case.command(clang).args(args));
                    let seen = case.run(&linker, &[&["c.o"], objects].concat());
                    assert_eq!(seen, expected, "module, {release} {option} {layouts:?}");
                }
            }
            for (number, compiler) in compilers().into_iter().enumerate() {
                // Each compiler with one of the options, or with both.
                for option in crate::support::share(["-O2", "-O0"], number % 2, 2) {
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
fn registers_entries_at_symbols_of_theirs() {
    let Some(case) = Case::new(Runtime::Hip) else {
        return;
    };
    case.compile("22", "aa_", &["-c", "-o", "x.o"]).unwrap();
    let object = fs::read(case.path("x.o")).unwrap();
    let object = object::File::parse(&*object).unwrap();
    let entries = object.symbols().filter_map(|symbol| {
        let name = symbol.name().unwrap();
        let is_entry = name.starts_with(".offloading.entry.");
        is_entry.then(|| (symbol.address(), name.to_owned()))
    });
    // In the order of the section.
    let entries: BTreeMap<u64, String> = entries.collect();
    let at = |symbol: &'_ String| HostTable {
        layout: EntryLayout::V21,
        table: EntryTable::Symbol {
            symbol: String::leak(symbol.clone()),
            size: EntryLayout::V21.stride(),
        },
    };
    let tables: Vec<HostTable<'_>> = entries.values().map(at).collect();
    case.write("image", b"image");
    let section = start_stop(EntryLayout::V21, Runtime::Hip);
    case.write("r.o", case.registration(b"image", &[section]));
    let expected = case.run(&bfd(), &["r.o", "x.o"]);
    let calls = expected.lines().filter(|line| line.contains("aa_"));
    assert_eq!(calls.count(), tables.len(), "{expected}");

    let registration = FatBinary {
        runtime: Runtime::Hip,
        bytes: Embedded::Bytes(b"image"),
        tables: &tables,
        symbols: HipSymbols::default(),
        globals: &[],
    };
    case.write("r.o", registration.to_object(Machine::X86_64).unwrap());
    let source = registration.to_c(Path::new("image")).unwrap();
    case.write("r.c", source.as_bytes());
    let host = Triple::parse("x86_64-pc-linux-gnu").unwrap();
    case.write("r.bc", registration.to_ir(&host).unwrap().as_bytes());
    case.clang(&["-c", "-fPIC", "r.bc", "-o", "ir.o"]);
    let mut objects = vec!["r.o".to_owned(), "ir.o".to_owned()];
    for (index, compiler) in compilers().iter().enumerate() {
        let name = format!("c{index}.o");
        let mut compile = case.command(compiler);
        compile.args(["-c", "-fPIC", "-Wall", "-Werror", "r.c", "-o", &name]);
        succeed(&mut compile);
        objects.push(name);
    }
    for object in objects {
        for (name, linker) in linkers() {
            let seen = case.run(&linker.display().to_string(), &[&object, "x.o"]);
            assert_eq!(seen, expected, "{object} {name}");
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
    let alone = HipFatBinary {
        bytes: Embedded::Bytes(bytes),
        symbols,
    };
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
        for layout in EntryLayout::ALL {
            case.write("table.s", table(layout, runtime).as_bytes());
            case.clang(&["-c", "table.s"]);
            let tables = [start_stop(layout, runtime)];
            case.write("r.o", case.registration(b"image", &tables));
            let expected = case.run(&bfd(), &["r.o", "table.o"]);

            let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
            let machine = folder.join("../offload-formats/src/registration/machine");
            let code = fs::read_to_string(machine.join("windows_x86_64.s")).unwrap();
            let section = layout.section(runtime.kind()).unwrap();
            let (stride, kinds, magic) = match (runtime, layout) {
                (Runtime::Cuda, _) => (layout.stride(), "2, 2", "0x466243b1"),
                (Runtime::Hip, EntryLayout::V21) => (layout.stride(), "4, 4", "0x48495046"),
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
    for layout in EntryLayout::ALL {
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
                    bytes: Embedded::Bytes(b"image\0"),
                    tables: &[start_stop(layout, Runtime::Hip)],
                    symbols: HipSymbols::default(),
                    globals: &[],
                };
                case.write("r.o", registration.to_object(machine).unwrap());
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
        let calls = if layout == EntryLayout::V19 { 8 } else { 9 };
        assert_eq!(x86_64.lines().count(), calls + 3, "{x86_64}");
        assert_eq!(aarch64, x86_64, "{layout:?}");
    }
}

/// Each registration with usual images and with large ones: only names, flags and the type of the section differ, and
/// only 64-bit words refer to it.
#[test]
fn refers_to_large_images_by_64_bit_pointers() {
    let bytes = Embedded::Bytes(b"image");
    let symbols = HipSymbols {
        fat_binary: &["__hip_fatbin_1"],
        handle: &[],
    };
    let fat_binary = |runtime, symbols| FatBinary {
        runtime,
        bytes,
        tables: &[],
        symbols,
        globals: &[],
    };
    let blob = || Blob { bytes, image: 0..5 };
    let openmp = |images, section| OpenMp {
        images,
        table: EntryTable::StartStop {
            section: "llvm_offload_entries",
            entries: &[],
        },
        section,
        globals: &[],
    };
    let sycl = Sycl {
        images: &[SyclImage {
            bytes,
            kind: ImageKind::OBJECT,
            triple: "spirv64",
            symbols: b"k",
            compile_options: b"",
            link_options: b"",
        }],
        section: BlobSection::Offloading,
        globals: &[],
    };
    let blobs = [blob(), blob()];
    let written = |placement| {
        let machine = Machine::X86_64;
        let host = ElfHost { machine, placement };
        let hip = HipFatBinary { bytes, symbols };
        [
            (
                ".nv_fatbin",
                fat_binary(Runtime::Cuda, HipSymbols::default()).to_object(host),
            ),
            (
                ".hip_fatbin",
                fat_binary(Runtime::Hip, symbols).to_object(host),
            ),
            (".hip_fatbin", hip.to_object(host)),
            (
                ".llvm.offloading",
                openmp(&blobs, BlobSection::Offloading).to_object(host),
            ),
            (
                ".offloading.images",
                openmp(&blobs, BlobSection::Finished).to_object(host),
            ),
            (".llvm.offloading", sycl.to_object(host)),
        ]
    };
    let (usual, large) = (
        written(ImagePlacement::Usual),
        written(ImagePlacement::Large),
    );
    for ((name, usual), (_, large)) in usual.into_iter().zip(large) {
        let (usual, large) = (usual.unwrap(), large.unwrap());
        let [usual, large] = [&usual, &large].map(|bytes| object::File::parse(&bytes[..]).unwrap());
        let images = large.section_by_name(&format!(".lrodata{name}")).unwrap();
        let SectionFlags::Elf { sh_flags, .. } = images.flags() else {
            panic!("{name}");
        };
        assert_eq!(sh_flags.0, 0x1000_0002, "{name}");
        assert_eq!(images.kind(), object::SectionKind::ReadOnlyData, "{name}");
        assert!(large.section_by_name(name).is_none());
        assert_eq!(usual.sections().count(), large.sections().count());
        for (usual, large) in usual.sections().zip(large.sections()) {
            let (usual_name, large_name) = (usual.name().unwrap(), large.name().unwrap());
            if usual_name != name {
                assert_eq!(usual_name, large_name, "{name}");
                assert_eq!(usual.flags(), large.flags(), "{name} {usual_name}");
            }
            if ![".shstrtab", ".strtab", ".symtab"].contains(&usual_name) {
                assert_eq!(usual.data(), large.data(), "{name} {usual_name}");
            }
        }
        for section in large.sections() {
            for (_, relocation) in section.relocations() {
                let RelocationTarget::Symbol(symbol) = relocation.target() else {
                    continue;
                };
                let symbol = large.symbol_by_index(symbol).unwrap();
                let r_type = RelocationFlags::Elf {
                    r_type: object::elf::R_X86_64_64,
                };
                if symbol.section_index() == Some(images.index()) {
                    assert_eq!(relocation.flags(), r_type, "{name}");
                }
            }
        }
    }
}
