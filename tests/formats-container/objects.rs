//! Bundles in object files: the same bytes as LLVM's `llvm-objcopy`, read by its bundler, and
//! linked by every linker.

use crate::support;

use crate::support::folder::Folder;

use std::cell::Cell;
use std::fmt::Write as _;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use offload_formats::container::object_bundle::{
    BUNDLE_SECTION, NewObjectEntry, ObjectKind, bundle_sections, embed_bundle, host_part,
};
use offload_formats::container::{coff, elf};
use offload_formats::format::pieces::{Piece, to_bytes};
use support::{Random, program, tool};

const HOST_ID: &str = "host-x86_64-unknown-linux-gnu-";
const DEVICE_ID: &str = "hip-amdgcn-amd-amdhsa--gfx906";
const DEVICE: &[u8] = b"Content of device file 1\n";

const TARGETS: [&str; 16] = [
    "x86_64-linux-gnu",
    "i386-linux-gnu",
    "aarch64-linux-gnu",
    "aarch64_be-linux-gnu",
    "armv7-linux-gnueabihf",
    "riscv64-linux-gnu",
    "riscv32-unknown-elf",
    "powerpc64le-linux-gnu",
    "powerpc64-linux-gnu",
    "powerpc-linux-gnu",
    "s390x-linux-gnu",
    "mips64el-linux-gnuabi64",
    "mips64-linux-gnuabi64",
    "mipsel-linux-gnu",
    "loongarch64-linux-gnu",
    "sparcv9-linux-gnu",
];

const WINDOWS: [&str; 5] = [
    "x86_64-pc-windows-msvc",
    "i686-pc-windows-msvc",
    "aarch64-pc-windows-msvc",
    "thumbv7-pc-windows-msvc",
    "x86_64-w64-mingw32",
];

const OPTIONS: [&[&str]; 5] = [
    &["-O0"],
    &["-O2", "-g"],
    &[
        "-O1",
        "-ffunction-sections",
        "-fdata-sections",
        "-gz",
        "-g3",
    ],
    &["-O2", "-fno-addrsig", "-fPIC"],
    &[
        "-Os",
        "-fno-integrated-cc1",
        "-fno-asynchronous-unwind-tables",
    ],
];

/// Groups, thread-local storage, large alignments, constructors, merged strings.
const CPP: &str = r#"
template<class T> __attribute__((noinline)) T f(T x) { static T n = x; return n++ + x; }
inline int g(int x) { static int k; return k += x; }
thread_local int tls = 4; thread_local int zero;
alignas(4096) char big[100]; alignas(256) int aligned[4] = {1, 2};
static char bss[1000];
extern int elsewhere; extern "C" void callee(void *);
namespace { struct S { ~S() { callee(this); } } s; }
const char *strings[] = {"abc", "xabc", "hello"};
struct V { virtual ~V(); virtual int h() { return 1; } }; V::~V() {}
int start() { callee(bss); return f(1) + f(2.0) + g(elsewhere) + tls + zero + aligned[0] + big[3]; }
"#;

const C: &str = "int x = 3; static int y; int z[10]; int *p = &x; extern int q;\n\
    __attribute__((weak)) int w(void) { return y + q; }\n\
    void a_function_with_a_long_name(void) { y++; w(); }\n";

const PROGRAM: &str = "#include <stdio.h>\n__thread int t = 3; static int many[4096];\n\
    int main(void) { printf(\"host %d\\n\", t + many[7]); return 0; }\n";

/// Programs of LLVM, and a folder to run them in.
struct Lab {
    folder: Folder,
    objcopies: Vec<PathBuf>,
    compared: Cell<usize>,
    refused: Cell<usize>,
}

impl Deref for Lab {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.folder
    }
}

impl Lab {
    /// With `llvm-objcopy` of those releases; none if one is missing.
    fn new(words: &[&str]) -> Option<Self> {
        let objcopy = |word: &&str| tool(word, &["llvm-objcopy"]);
        let objcopies: Option<Vec<PathBuf>> = words.iter().map(objcopy).collect();
        Some(Self {
            folder: Folder::new(),
            objcopies: objcopies?,
            compared: Cell::new(0),
            refused: Cell::new(0),
        })
    }

    fn output(&self, program: &Path, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.root());
        command.output().unwrap()
    }

    /// Compiles; none if the compiler does not know the target.
    fn compile(&self, compiler: &Path, arguments: &[&str], source: &str) -> Option<Vec<u8>> {
        let arguments = [arguments, &["-c", source, "-o", "host.o"]].concat();
        let output = self.output(compiler, &arguments);
        output.status.success().then(|| self.read("host.o"))
    }

    /// Bundles and unbundles as LLVM does it and as we do, and compares the bytes. Gives ours, if
    /// LLVM does not refuse.
    fn compare(&self, host: &[u8], what: &str) -> Option<Vec<u8>> {
        self.write("host.o", host);
        self.write("nul", "\0");
        self.write("device", DEVICE);
        let mut ours = None;
        for objcopy in &self.objcopies {
            let mut arguments = Vec::new();
            for (id, file) in [(HOST_ID, "nul"), (DEVICE_ID, "device")] {
                let name = format!("{BUNDLE_SECTION}{id}");
                arguments.push(format!("--add-section={name}={file}"));
                arguments.push(format!("--set-section-flags={name}=readonly,exclude"));
            }
            arguments.extend(["--", "host.o", "fat.o"].map(str::to_owned));
            let arguments: Vec<&str> = arguments.iter().map(|word| &word[..]).collect();
            if !self.output(objcopy, &arguments).status.success() {
                self.refused.set(self.refused.get() + 1);
                return None;
            }
            let fat = embed(host);
            self.same(
                &fat,
                "fat.o",
                &format!("{what}, bundled by {}", objcopy.display()),
            );
            let all = format!("--remove-section={BUNDLE_SECTION}.*");
            self.run(objcopy, ["--regex", &all, "--", "fat.o", "back.o"]);
            let back = host_of(&fat);
            self.same(
                &back,
                "back.o",
                &format!("{what}, unbundled by {}", objcopy.display()),
            );
            ours = Some(fat);
        }
        ours
    }

    /// Removes sections as LLVM and as we do it; both may refuse.
    fn compare_removal(&self, file: &[u8], prefix: &str, what: &str) {
        self.write("whole.o", file);
        let sections = format!("--remove-section={}.*", prefix.replace('.', "[.]"));
        let objcopy = &self.objcopies[0];
        let output = self.output(objcopy, &["--regex", &sections, "--", "whole.o", "less.o"]);
        let matches = |name: &[u8]| name.starts_with(prefix.as_bytes());
        let (data, range) = (file, 0..file.len() as u64);
        let removed = if file.starts_with(b"\x7fELF") {
            elf::remove_sections(data, range, matches).map_err(|error| error.to_string())
        } else {
            coff::remove_sections(data, range, matches).map_err(|error| error.to_string())
        };
        let what = format!("{what} without {prefix}");
        match (output.status.success(), removed) {
            (true, Ok(pieces)) => self.same(&whole(&pieces, &[file]), "less.o", &what),
            (false, Err(_)) => self.refused.set(self.refused.get() + 1),
            // A group whose symbol is gone: LLVM writes the index of some other symbol.
            (true, Err(error)) if error.starts_with("symbol ") => {
                self.refused.set(self.refused.get() + 1);
            }
            (_, removed) => panic!(
                "{what}: {:?}, and {}",
                removed.map(|_| "removed"),
                String::from_utf8_lossy(&output.stderr)
            ),
        }
    }

    fn same(&self, ours: &[u8], name: &str, what: &str) {
        let theirs = self.read(name);
        let differs = ours
            .iter()
            .zip(&theirs)
            .position(|(ours, theirs)| ours != theirs);
        assert!(
            differs.is_none() && ours.len() == theirs.len(),
            "{what}: at {differs:x?}, sizes {:#x} and {:#x}",
            ours.len(),
            theirs.len()
        );
        self.compared.set(self.compared.get() + 1);
    }

    /// Says how much was compared, which is not less than expected.
    fn finish(&self, least: usize) {
        let (compared, refused) = (self.compared.get(), self.refused.get());
        println!("{compared} files compared, {refused} refused");
        assert!(compared >= least, "{compared}");
    }
}

fn whole(pieces: &[Piece], inputs: &[&[u8]]) -> Vec<u8> {
    to_bytes(pieces, inputs).unwrap()
}

fn embed(host: &[u8]) -> Vec<u8> {
    let size = Some(DEVICE.len() as u64);
    let entries =
        [(HOST_ID, None), (DEVICE_ID, size)].map(|(id, size)| NewObjectEntry { id, size });
    let pieces = embed_bundle(host, 0..host.len() as u64, &entries).unwrap();
    whole(&pieces, &[host, b"", DEVICE])
}

fn host_of(fat: &[u8]) -> Vec<u8> {
    whole(&host_part(fat, 0..fat.len() as u64).unwrap(), &[fat])
}

#[test]
fn writes_the_bytes_llvm_writes_for_every_target() {
    let (Some(lab), Some(new), Some(old)) = (
        Lab::new(&["llvm22", "llvm19"]),
        tool("llvm22", &["clang"]),
        tool("llvm19", &["clang"]),
    ) else {
        return;
    };
    lab.write("a.cpp", CPP);
    lab.write("b.c", C);
    lab.write("empty.c", "");
    let mut identical = 0;
    for (index, target) in TARGETS.iter().enumerate() {
        let triple = format!("--target={target}");
        for (turn, source) in ["a.cpp", "b.c", "empty.c"].into_iter().enumerate() {
            // Each target with each source, or one of them; compilers and options in turn.
            if !support::tests_all() && turn != index % 3 {
                continue;
            }
            let clang = [&new, &old][(index + turn) % 2];
            let arguments = [&[&triple[..]], OPTIONS[(index + turn) % OPTIONS.len()]].concat();
            let Some(host) = lab.compile(clang, &arguments, source) else {
                println!("{target}: not compiled");
                continue;
            };
            let what = format!("{target} {source} {arguments:?}");
            let fat = lab.compare(&host, &what).unwrap();
            identical += usize::from(host_of(&fat) == host);
        }
    }
    // Most objects of clang have the layout that LLVM writes; some have empty sections elsewhere.
    println!("{identical} hosts are what they were");
    assert!(identical >= support::cases(7, 20), "{identical}");
    lab.finish(support::cases(60, 150));
}

#[test]
fn writes_the_bytes_llvm_writes_for_coff() {
    let (Some(lab), Some(clang)) = (Lab::new(&["llvm22"]), tool("llvm22", &["clang"])) else {
        return;
    };
    lab.write("a.cpp", CPP);
    lab.write("b.c", C);
    lab.write("empty.c", "");
    for (index, target) in WINDOWS.into_iter().enumerate() {
        let triple = format!("--target={target}");
        for source in ["a.cpp", "b.c", "empty.c"] {
            // Compilers are slow: each target with three of five, or with one.
            let count = support::cases(1, 3);
            for options in OPTIONS.into_iter().cycle().skip(index).take(count) {
                let arguments = [&[&triple[..]], options].concat();
                if let Some(host) = lab.compile(&clang, &arguments, source) {
                    let what = format!("{target} {source} {options:?}");
                    let fat = lab.compare(&host, &what).unwrap();
                    for prefix in [".debug", ".text", ".rdata", ".xdata"] {
                        lab.compare_removal(&fat, prefix, &what);
                    }
                }
            }
        }
    }
    // The form for many sections, with few and with too many for the other; and more relocations
    // of a section than its header counts.
    let big = ["--target=x86_64-w64-mingw32", "-Wa,-mbig-obj"];
    let host = lab.compile(&clang, &big, "a.cpp").unwrap();
    lab.compare(&host, "large form").unwrap();
    for (sections, relocations) in [(66_000, 10), (10, 70_000)] {
        let mut source = ".data\n".to_owned() + &".quad f1\n".repeat(relocations);
        for index in 0..sections {
            let _ = writeln!(source, ".section .text$f{index},\"xr\"\nf{index}: ret");
        }
        lab.write("many.s", source);
        let host = lab.compile(&clang, &big, "many.s").unwrap();
        let what = format!("{sections} sections, {relocations} relocations");
        lab.compare(&host, &what).unwrap();
    }
    lab.finish(support::cases(60, 150));
}

#[test]
fn writes_the_bytes_llvm_writes_for_images() {
    let (Some(lab), Some(clang), Some(link)) = (
        Lab::new(&["llvm22"]),
        tool("llvm22", &["clang"]),
        tool("llvm22", &["lld-link"]),
    ) else {
        return;
    };
    lab.write(
        "a.c",
        "int data = 4; int bss[1000]; const char *s = \"hi there\";\n\
         int g(int x) { return x + data; } int start(void) { return g(bss[1]) + s[0]; }\n",
    );
    for arch in ["x86_64", "i686", "aarch64"] {
        for (environment, options) in [
            ("pc-windows-msvc", &[][..]),
            ("pc-windows-msvc", &["/debug"]),
            ("pc-windows-msvc", &["/dll", "/export:g", "/debug"]),
            ("pc-windows-gnu", &["-lldmingw", "/debug:symtab,dwarf"]),
        ] {
            let target = format!("--target={arch}-{environment}");
            lab.compile(&clang, &[&target, "-O1", "-g"], "a.c").unwrap();
            let entry = ["/nodefaultlib", "/entry:start", "/subsystem:console"];
            let files = ["host.o", "/out:image"];
            lab.run(&link, [options, &entry, &files].concat());
            let image = lab.read("image");
            assert_eq!(kind(&image), Some(ObjectKind::Image));
            let what = format!("{arch} {options:?}");
            let fat = lab.compare(&image, &what).unwrap();
            for prefix in [".reloc", ".data", ".debug", ".rdata"] {
                lab.compare_removal(&fat, prefix, &what);
            }
        }
    }
    lab.finish(50);
}

fn kind(file: &[u8]) -> Option<ObjectKind> {
    ObjectKind::of(file, 0..file.len() as u64)
}

#[test]
fn writes_the_bytes_llvm_writes_for_other_compilers_and_linkers() {
    let (Some(lab), Some(gcc)) = (Lab::new(&["llvm22"]), program("gcc")) else {
        return;
    };
    lab.write("a.cpp", CPP);
    lab.write("b.c", C);
    lab.write("m.c", PROGRAM);
    for options in [
        &["-O0"][..],
        &["-O2", "-g3", "-ffunction-sections", "-fdata-sections"],
        &["-O2", "-flto", "-ffat-lto-objects"],
        &["-m32", "-fPIC"],
        &["-g", "-gz=zlib"],
    ] {
        for source in ["a.cpp", "b.c"] {
            let Some(host) = lab.compile(&gcc, options, source) else {
                println!("gcc {options:?}: not compiled");
                continue;
            };
            let what = format!("gcc {options:?} {source}");
            let fat = lab.compare(&host, &what).unwrap();
            for prefix in [".debug", ".text", ".bss", ".group", ".comment", ".eh_frame"] {
                lab.compare_removal(&fat, prefix, &what);
            }
        }
    }
    let lld = tool("llvm22", &["ld.lld"]);
    let bfd = program("ld.bfd");
    for linker in [&lld, &bfd].into_iter().flatten() {
        lab.compile(&gcc, &["-O2", "-g", "-ffunction-sections"], "a.cpp")
            .unwrap();
        lab.run(linker, ["-r", "host.o", "-o", "r.o"]);
        lab.compare(&lab.read("r.o"), &format!("{} -r", linker.display()))
            .unwrap();
    }
    if let Some(rustc) = program("rustc") {
        lab.write(
            "r.rs",
            "pub fn f(x: &str) -> Vec<String> { x.lines().map(str::to_owned).collect() }",
        );
        let arguments = ["--emit=obj", "--crate-type=lib", "-g", "r.rs", "-o", "r.o"];
        lab.run(&rustc, arguments);
        lab.compare(&lab.read("r.o"), "rustc").unwrap();
    }
    for (linker, found) in [("bfd", bfd), ("gold", program("ld.gold")), ("lld", lld)] {
        let Some(path) = found else { continue };
        // Where gcc looks for it, under the name that it looks for.
        fs::create_dir_all(lab.path(linker)).unwrap();
        let link = lab.path(linker).join(format!("ld.{linker}"));
        let _ = std::os::unix::fs::symlink(&path, link);
        let (choice, place) = (format!("-fuse-ld={linker}"), format!("-B{linker}"));
        for options in [
            &["-g"][..],
            &["-s"],
            &["-no-pie", "-g"],
            &["-shared", "-fPIC"],
            &["-Wl,-z,noseparate-code"],
            &["-Wl,--emit-relocs"],
            &["-Wl,--gc-sections", "-Wl,-z,relro,-z,now"],
            &["-static"],
        ] {
            let arguments = [options, &[&choice, &place, "m.c", "-o", "linked"]].concat();
            let output = lab.output(&gcc, &arguments);
            if output.status.success() {
                lab.compare(&lab.read("linked"), &format!("{linker} {options:?}"));
            }
        }
    }
    lab.finish(100);
}

#[test]
fn writes_the_bytes_llvm_writes_for_any_sections() {
    let (Some(lab), Some(yaml2obj)) = (
        Lab::new(&["llvm22", "llvm19"]),
        tool("llvm22", &["yaml2obj"]),
    ) else {
        return;
    };
    let mut random = Random::dealt();
    for _ in 0..support::cases(24, 60) {
        let yaml = random_yaml(&mut random);
        lab.write("host.yaml", &yaml);
        lab.run(&yaml2obj, ["host.yaml", "-o", "random.o"]);
        let host = lab.read("random.o");
        if let Some(fat) = lab.compare(&host, &yaml) {
            lab.compare_removal(&fat, ".text", &yaml);
        }
    }
    lab.finish(support::cases(80, 200));
}

/// An ELF file of any class and byte order, some with segments.
fn random_yaml(random: &mut Random) -> String {
    const SUFFIXES: [&str; 6] = ["text", "xt", "data.rel", "rel", "a", "data"];
    let (class, machine) = *random.pick(&[
        ("ELFCLASS64", "EM_X86_64"),
        ("ELFCLASS64", "EM_PPC64"),
        ("ELFCLASS64", "EM_MIPS"),
        ("ELFCLASS32", "EM_386"),
        ("ELFCLASS32", "EM_MIPS"),
    ]);
    let order = random.pick(&["ELFDATA2LSB", "ELFDATA2MSB"]);
    let shared = random.below(3) == 0;
    let file_type = if shared { "ET_DYN" } else { "ET_REL" };
    let mut yaml = format!(
        "--- !ELF\nFileHeader: {{Class: {class}, Data: {order}, Type: {file_type}, \
         Machine: {machine}}}\n"
    );
    let count = 1 + random.below(12);
    let mut sections = String::new();
    let mut names = Vec::new();
    for index in 0..count {
        // yaml2obj drops what is in brackets, so that names may be the same.
        let name = format!(".{} ({index})", random.pick(&SUFFIXES));
        let align = random.pick(&[0_u64, 1, 2, 4, 8, 16, 64, 4096]);
        let flags = if shared || random.below(2) == 0 {
            "SHF_ALLOC"
        } else {
            ""
        };
        let bytes = random.bytes(40);
        let content: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let body = match random.below(5) {
            0 => format!("Type: SHT_NOBITS, Size: {}", random.below(100)),
            1 => format!("Type: SHT_NOTE, Content: \"{content}\""),
            _ => format!("Type: SHT_PROGBITS, Content: \"{content}\""),
        };
        let address = if shared {
            format!(", Address: {:#x}", 0x10000 * (index + 1))
        } else {
            String::new()
        };
        let _ = writeln!(
            sections,
            "  - {{Name: \"{name}\", {body}, Flags: [{flags}], AddressAlign: {align}{address}}}"
        );
        names.push(name);
    }
    if shared {
        yaml += "ProgramHeaders:\n";
        for _ in 0..random.below(4) {
            let first = random.below(count);
            let last = first + random.below(count - first);
            let kind = random.pick(&["PT_LOAD", "PT_NOTE", "PT_GNU_RELRO"]);
            let align = random.pick(&[0, 1, 8, 4096]);
            let (first, last) = (&names[first as usize], &names[last as usize]);
            let _ = writeln!(
                yaml,
                "  - {{Type: {kind}, FirstSec: \"{first}\", LastSec: \"{last}\", Align: {align}}}"
            );
        }
    }
    let symbol_count = random.below(9);
    let mut symbols = String::new();
    for index in 0..symbol_count {
        let name = format!("s{}.{}", random.below(3), random.pick(&SUFFIXES));
        let binding = random.pick(&["STB_LOCAL", "STB_GLOBAL", "STB_WEAK"]);
        let place = match random.below(4) {
            0 => String::new(),
            1 => ", Index: SHN_ABS".to_owned(),
            _ => format!(", Section: \"{}\"", random.pick(&names)),
        };
        let _ = writeln!(
            symbols,
            "  - {{Name: \"{name} [{index}]\", Binding: {binding}{place}, Value: {index}}}"
        );
        if !shared && random.below(2) == 0 {
            let (kind, addend) = *random.pick(&[("SHT_REL", ""), ("SHT_RELA", ", Addend: 3")]);
            let target = random.pick(&names);
            let _ = writeln!(
                sections,
                "  - {{Name: \".rel.a ({})\", Type: {kind}, Info: \"{target}\", Relocations: \
                 [{{Offset: 1, Symbol: \"{name} [{index}]\", Type: 1{addend}}}]}}",
                count + index
            );
        }
        if !shared && random.below(4) == 0 {
            let member = random.pick(&names);
            let _ = writeln!(
                sections,
                "  - {{Name: \".group ({})\", Type: SHT_GROUP, Info: \"{name} [{index}]\", \
                 Members: [{{SectionOrType: GRP_COMDAT}}, {{SectionOrType: \"{member}\"}}]}}",
                count + symbol_count + index
            );
        }
    }
    let _ = write!(yaml, "Sections:\n{sections}");
    if symbol_count > 0 {
        let _ = write!(yaml, "Symbols:\n{symbols}");
    }
    yaml
}

#[test]
fn writes_the_bytes_llvm_writes_for_more_sections_than_16_bits_count() {
    let (Some(lab), Some(clang)) = (Lab::new(&["llvm22"]), tool("llvm22", &["clang"])) else {
        return;
    };
    let mut source = ".text\n.globl start\nstart: ret\n".to_owned();
    // With the tables of the object just below and just above the limit.
    let counts = [(65_270, 70), (65_275, 70), (65_400, 65_390)];
    for (count, used) in support::share(counts, 2, 3) {
        for index in 0..count {
            let _ = writeln!(
                source,
                ".section .text.f{index},\"ax\",@progbits\nf{index}: ret"
            );
        }
        let _ = writeln!(source, ".data\n.quad f{used}\n.quad f3");
        lab.write("many.s", &source);
        let host = lab
            .compile(&clang, &["--target=x86_64-linux-gnu"], "many.s")
            .unwrap();
        lab.compare(&host, &format!("{count} sections")).unwrap();
        source.truncate(".text\n.globl start\nstart: ret\n".len());
    }
    lab.finish(support::cases(2, 6));
}

#[test]
fn bundler_of_llvm_and_ours_read_each_other() {
    let (Some(lab), Some(bundler), Some(clang)) = (
        Lab::new(&["llvm22"]),
        tool("llvm22", &["clang-offload-bundler"]),
        tool("llvm22", &["clang"]),
    ) else {
        return;
    };
    lab.write("b.c", C);
    let second = "hip-amdgcn-amd-amdhsa--gfx90a";
    let targets = format!("-targets={HOST_ID},{DEVICE_ID},{second}");
    for target in [
        "x86_64-linux-gnu",
        "powerpc64-linux-gnu",
        "i686-pc-windows-msvc",
    ] {
        let target = format!("--target={target}");
        let host = lab.compile(&clang, &[&target], "b.c").unwrap();
        lab.write("device", DEVICE);
        lab.write("second", host.repeat(3));
        let inputs = ["-input=host.o", "-input=device", "-input=second"];
        let arguments = [&["-type=o", &targets, "-output=theirs.o"], &inputs[..]].concat();
        lab.run(&bundler, &arguments);
        let size = |bytes: &[u8]| Some(bytes.len() as u64);
        let entries = [
            (HOST_ID, None),
            (DEVICE_ID, size(DEVICE)),
            (second, size(&host.repeat(3))),
        ];
        let entries = entries.map(|(id, size)| NewObjectEntry { id, size });
        let pieces = embed_bundle(&host[..], 0..host.len() as u64, &entries).unwrap();
        let ours = whole(&pieces, &[&host, b"", DEVICE, &host.repeat(3)]);
        lab.same(&ours, "theirs.o", &target);

        let found = bundle_sections(&ours[..], 0..ours.len() as u64).unwrap();
        let ids: Vec<&str> = found.iter().map(|entry| &entry.id[..]).collect();
        assert_eq!(ids, [HOST_ID, DEVICE_ID, second]);
        lab.write("ours.o", &ours);
        let mut listed: Vec<String> = lab
            .run(&bundler, ["-type=o", "-list", "-input=ours.o"])
            .lines()
            .map(str::to_owned)
            .collect();
        listed.sort();
        let mut ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        ids.sort();
        assert_eq!(listed, ids);
        let outputs = ["-output=h", "-output=d", "-output=s"];
        let arguments = [
            &["-type=o", "-unbundle", &targets, "-input=ours.o"],
            &outputs[..],
        ];
        lab.run(&bundler, arguments.concat());
        assert_eq!(
            (lab.read("d"), lab.read("s")),
            (DEVICE.to_vec(), host.repeat(3))
        );
        lab.same(&host_of(&ours), "h", &target);
    }
    lab.finish(6);
}

#[test]
fn linkers_leave_the_sections_out() {
    let (Some(lab), Some(gcc), Some(readelf)) =
        (Lab::new(&["llvm22"]), program("gcc"), program("readelf"))
    else {
        return;
    };
    lab.write("m.c", PROGRAM);
    let host = lab.compile(&gcc, &["-O1", "-g"], "m.c").unwrap();
    lab.write("fat.o", lab.compare(&host, "gcc").unwrap());
    assert!(lab.run(&readelf, ["-SW", "fat.o"]).contains(BUNDLE_SECTION));
    let linkers = [
        ("bfd", program("ld.bfd")),
        ("gold", program("ld.gold")),
        ("lld", tool("llvm22", &["ld.lld"])),
    ];
    for (linker, found) in linkers {
        let Some(path) = found else { continue };
        fs::create_dir_all(lab.path(linker)).unwrap();
        let link = lab.path(linker).join(format!("ld.{linker}"));
        std::os::unix::fs::symlink(&path, link).unwrap();
        let (choice, place) = (format!("-fuse-ld={linker}"), format!("-B{linker}"));
        lab.run(&gcc, ["fat.o", &choice, &place, "-o", "program"]);
        assert_eq!(
            lab.run(lab.path("program"), [""; 0]),
            "host 3\n",
            "{linker}"
        );
        let sections = lab.run(&readelf, ["-SW", "program"]);
        assert!(!sections.contains(BUNDLE_SECTION), "{linker}: {sections}");
    }
}

#[test]
fn programs_with_a_bundle_run() {
    let (Some(lab), Some(gcc)) = (Lab::new(&["llvm22"]), program("gcc")) else {
        return;
    };
    lab.write("m.c", PROGRAM);
    // LLVM refuses static programs of GNU ld: relocations without a symbol table of their own.
    for options in [&["-g"][..], &["-static"], &["-no-pie", "-s"]] {
        lab.run(&gcc, [options, &["m.c", "-o", "program"]].concat());
        let before = lab.read("program");
        let fat = embed(&before);
        fs::write(lab.path("program"), &fat).unwrap();
        assert_eq!(
            lab.run(lab.path("program"), [""; 0]),
            "host 3\n",
            "{options:?}"
        );
        fs::write(lab.path("program"), host_of(&fat)).unwrap();
        assert_eq!(
            lab.run(lab.path("program"), [""; 0]),
            "host 3\n",
            "{options:?}"
        );
    }
}

#[test]
fn linker_of_windows_leaves_the_sections_out() {
    let (Some(lab), Some(clang), Some(link), Some(readobj)) = (
        Lab::new(&["llvm22"]),
        tool("llvm22", &["clang"]),
        tool("llvm22", &["lld-link"]),
        tool("llvm22", &["llvm-readobj"]),
    ) else {
        return;
    };
    lab.write("a.c", "int data = 4; int start(void) { return data; }\n");
    let host = lab
        .compile(&clang, &["--target=x86_64-pc-windows-msvc"], "a.c")
        .unwrap();
    lab.write("fat.obj", lab.compare(&host, "clang").unwrap());
    let options = ["/nodefaultlib", "/entry:start", "/subsystem:console"];
    lab.run(&link, [&options[..], &["fat.obj", "/out:image"]].concat());
    let sections = lab.run(&readobj, ["--sections", "image"]);
    assert!(
        sections.contains(".text") && !sections.contains("__CLANG"),
        "{sections}"
    );
}
