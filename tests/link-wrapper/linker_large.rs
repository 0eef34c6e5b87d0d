//! Images in sections of large data (`--large-images`), with every linker: what programs contain, what their runtimes
//! get, what our readers find, and which links are refused. `docs/spec/large-images.md` has the same with gigabytes.

use crate::linker_support::{linkers, other, text};
use crate::support;
use crate::support::folder::Folder;

use std::fs;
use std::ops::Deref;
use std::path::Path;
use std::process::{Command, Output};

use object::{Object, ObjectSection, SectionFlags};
use offload_formats::format::fatbin::{self, FatbinCompression, FatbinUnpacker};

/// Runtimes of HIP, CUDA and OpenMP. Each says where it finds the bytes of the file of its kind.
const RUNTIME: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void find(const char *kind, const char *start, size_t size) {
  static char bytes[1 << 20];
  FILE *file = fopen(kind, "rb");
  if (!file) abort();
  size_t count = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  const char *at = memmem(start, size, bytes, count);
  printf("%s: %s at %zu of 8\n", kind, at ? "found" : "missing", at ? (size_t)at % 8 : 99);
}
struct image { const char *start, *end; const void *first, *last; };
struct descriptor { int count; const struct image *images; };
void __tgt_register_lib(const struct descriptor *d) {
  for (int i = 0; i < d->count; i++) find("openmp", d->images[i].start, d->images[i].end - d->images[i].start);
}
void __tgt_unregister_lib(const struct descriptor *d) {}
struct wrapper { unsigned magic, version; const char *image; };
void **__hipRegisterFatBinary(const struct wrapper *w) {
  static void *handle;
  size_t count, entry[3], end = 0;
  const char *at = w->image + 32;
  memcpy(&count, w->image + 24, 8);
  for (; count--; at += 24 + entry[2]) {
    memcpy(entry, at, 24);
    if (entry[0] + entry[1] > end) end = entry[0] + entry[1];
  }
  if ((size_t)w->image % 4096) puts("hip: not at a page");
  find("hip", w->image, end);
  return &handle;
}
void __hipUnregisterFatBinary(void **h) {}
int __hipRegisterFunction(void) { return 0; }
void __hipRegisterVar(void) {}
void __hipRegisterManagedVar(void) {}
void __hipRegisterSurface(void) {}
void __hipRegisterTexture(void) {}
void **__cudaRegisterFatBinary(const struct wrapper *w) {
  static void *handle;
  size_t size;
  memcpy(&size, w->image + 8, 8);
  find("cuda", w->image, size + 16);
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void **h) {}
void __cudaUnregisterFatBinary(void **h) {}
int __cudaRegisterFunction(void) { return 0; }
void __cudaRegisterVar(void) {}
void __cudaRegisterManagedVar(void) {}
"#;

/// Catches an exception, whose tables the linker must reach.
const MAIN: &str = r#"
#include <stdio.h>
#include <stdexcept>
static const char *const words[] = {"caught", "thrown"};
extern "C" int enter(int count) {
  try {
    if (count) throw std::runtime_error(words[0]);
  } catch (std::exception &error) {
    puts(error.what());
    return 0;
  }
  return 1;
}
"#;

/// Kinds, with `e_machine`, `e_flags`, and EI_OSABI and EI_ABIVERSION of their images.
const KINDS: [(&str, u16, u32, [u8; 2]); 3] = [
    ("hip", 0xe0, 0x53f, [0x40, 4]),
    ("cuda", 190, 0x0050_0550, [0x33, 7]),
    ("openmp", 0xe0, 0x53f, [0x40, 4]),
];

struct Place(Folder);

impl Deref for Place {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.0
    }
}

impl Place {
    fn new() -> Option<Self> {
        support::program("c++")?;
        let folder = Folder::new();
        for (kind, machine, flags, abi) in KINDS {
            folder.write(kind, image(kind, machine, flags, abi));
        }
        folder.write("runtime.c", RUNTIME);
        folder.write("main.cpp", MAIN);
        folder.write(
            "start.c",
            "int enter(int); int main(int count) { return enter(count); }\n",
        );
        let library = ["-shared", "-fPIC", "runtime.c", "-o", "libruntime.so"];
        folder.run("cc", library);
        for name in ["amdhip64", "cudart", "omptarget", "omp"] {
            std::os::unix::fs::symlink("libruntime.so", folder.path(format!("lib{name}.so")))
                .unwrap();
        }
        folder.run("c++", ["-c", "-fPIC", "-ffunction-sections", "main.cpp"]);
        folder.run("cc", ["-c", "-fPIC", "start.c"]);
        Some(Self(folder))
    }

    /// A link of images of these kinds, in the place of a compiler driver.
    fn link(&self, kinds: &[&str], arguments: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_offload-link"));
        for name in [
            "OFFLOAD_LINK_ACTIVE",
            "OFFLOAD_LINK_REPORT",
            "OFFLOAD_LARGE_IMAGES",
        ] {
            command.env_remove(name);
        }
        command.env("OFFLOAD_CC", "clang-22").arg("main.o");
        let images = kinds
            .iter()
            .map(|kind| format!("--override-image={kind}={kind}"));
        command.args(images).args(arguments);
        if !arguments.contains(&"-r") {
            command.args(["-L.", "-Wl,-rpath,$ORIGIN", "-lruntime", "-lstdc++"]);
        }
        command
    }

    fn linked(&self, kinds: &[&str], arguments: &[&str]) {
        assert_eq!(support::run(&mut self.link(kinds, arguments)), "");
    }

    /// Runs a program, and returns its lines in alphabetical order.
    fn lines(&self, program: &str) -> Vec<String> {
        let printed = support::run(&mut self.command(self.path(program)));
        let mut lines: Vec<String> = printed.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    fn tool(&self, arguments: &[&str]) -> Output {
        let mut tool = self.command(env!("CARGO_BIN_EXE_cargo-offload"));
        tool.arg("offload").args(arguments).output().unwrap()
    }
}

/// An ELF file with these fields in its header, and some kilobytes that differ between kinds.
fn image(kind: &str, machine: u16, flags: u32, abi: [u8; 2]) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    bytes[7..9].copy_from_slice(&abi);
    bytes[16..18].copy_from_slice(&3_u16.to_le_bytes());
    bytes[18..20].copy_from_slice(&machine.to_le_bytes());
    bytes[20] = 1;
    bytes[48..52].copy_from_slice(&flags.to_le_bytes());
    for (at, value) in [(52, 64_u8), (54, 56), (58, 64)] {
        bytes[at] = value;
    }
    while bytes.len() < 9000 {
        bytes.extend_from_slice(format!("{kind} {}\n", bytes.len()).as_bytes());
    }
    bytes
}

fn linker(path: &Path) -> String {
    format!("--ld-path={}", path.display())
}

/// `sh_flags`, address and content of a section.
fn section(file: &Path, name: &str) -> Option<(u64, u64, Vec<u8>)> {
    let bytes = fs::read(file).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let section = file.section_by_name(name)?;
    let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
        panic!("{name}");
    };
    Some((
        sh_flags.0,
        section.address(),
        section.data().unwrap().to_vec(),
    ))
}

/// `SHF_ALLOC` and `SHF_X86_64_LARGE`.
const LARGE: u64 = 0x1000_0002;

const FOUND: [&str; 4] = [
    "caught",
    "cuda: found at 0 of 8",
    "hip: found at 0 of 8",
    "openmp: found at 0 of 8",
];

#[test]
fn gives_large_images_to_their_runtimes_with_every_linker() {
    let Some(place) = Place::new() else { return };
    for (name, path) in linkers() {
        let linker = linker(&path);
        for mode in [
            &["-pie"][..],
            &["-no-pie"],
            &["-Wl,--gc-sections"],
            &["-shared"],
        ] {
            let what = format!("{name} {mode:?}");
            let is_library = mode == ["-shared"];
            let output = if is_library { "libx.so" } else { "x" };
            for large in [false, true] {
                let _ = fs::remove_file(place.path("x"));
                let mut arguments = vec![&*linker, "-o", output];
                arguments.extend(mode);
                arguments.extend((!is_library).then_some("start.o"));
                arguments.extend(large.then_some("--large-images=0"));
                place.linked(&["hip", "cuda", "openmp"], &arguments);
                if is_library {
                    let start = ["start.o", "-L.", "-lx", "-Wl,-rpath,$ORIGIN", "-o", "x"];
                    place.run("cc", start);
                }
                assert_eq!(place.lines("x"), FOUND, "{what} {large}");
                let file = place.path(output);
                let section = |name| section(&file, name);
                let usual = [".hip_fatbin", ".nv_fatbin", ".llvm.offloading"];
                for usual in usual {
                    assert_eq!(section(usual).is_some(), !large, "{what} {usual}");
                }
                let Some((flags, address, content)) = section(".lrodata") else {
                    assert!(!large, "{what}");
                    continue;
                };
                assert!(large, "{what}");
                assert_eq!(flags, LARGE, "{what}");
                // Neither the program's code nor its data is on the other side.
                for before in [".text", ".rodata", ".eh_frame", ".data", ".bss"] {
                    let (_, start, _) = section(before).unwrap();
                    assert!(start < address, "{what}: {before}");
                }
                assert!(content.len() > 3 * 9000, "{what}");
            }
        }
    }
}

/// A host without sections of large data: code and its tables for exceptions come first, whatever the linker.
#[test]
fn places_large_images_of_aarch64_after_the_data() {
    let (Some(qemu), Some(compiler)) = (
        other("qemu", &["qemu-aarch64"]),
        other("qemu", &["aarch64-linux-gnu-gcc"]),
    ) else {
        return;
    };
    let Some(place) = Place::new() else { return };
    let main = "#include <stdio.h>\nstatic int count = 1, more; int main(void) { puts(count + more ? \"caught\" : \"\"); }\n";
    place.write("main.c", main);
    place.run(&compiler, ["-c", "-fPIC", "-g0", "main.c"]);
    let library = ["-shared", "-fPIC", "runtime.c", "-o", "libruntime.so"];
    place.run(&compiler, library);
    let (_, machine, _, abi) = KINDS[0];
    place.write("other", image("other", machine, 0x041, abi));
    for (name, path) in linkers() {
        let linker = match name {
            "bfd" | "gold" => format!("-fuse-ld={name}"),
            _ => format!("-B{} -fuse-ld=lld", path.parent().unwrap().display()),
        };
        for mode in ["-pie", "-no-pie", "-static"] {
            for large in [false, true] {
                let mut link = place.command(env!("CARGO_BIN_EXE_offload-link"));
                link.env("OFFLOAD_CC", &compiler);
                let images = KINDS.map(|(kind, ..)| format!("--override-image={kind}={kind}"));
                link.args(images)
                    .arg("--override-image=hip=other")
                    .args(linker.split(' '));
                link.args([mode, "main.o", "-o", "x"]);
                match mode {
                    "-static" => link.arg("runtime.c"),
                    _ => link.args(["-L.", "-Wl,-rpath,$ORIGIN", "-lruntime"]),
                };
                link.args(large.then_some("--large-images=0"));
                assert_eq!(support::run(&mut link), "");
                let what = format!("{name} {mode} {large}");
                let pruned = place.tool(&["prune", "--keep=gfx90a,sm_80", "x", "-o", "y"]);
                assert!(pruned.status.success(), "{what}: {pruned:?}");
                for program in ["./x", "./y"] {
                    let mut emulator = place.command(&qemu);
                    emulator.args(["-L", "/usr/aarch64-linux-gnu", program]);
                    let printed = support::run(&mut emulator);
                    let mut lines: Vec<&str> = printed.lines().collect();
                    lines.sort_unstable();
                    assert_eq!(lines, FOUND, "{what} {program}");
                }
                let other = place.read("other");
                let is_other = |bytes: &[u8]| bytes == &other[4096..4160];
                let has_other = |file| place.read(file).windows(64).any(is_other);
                assert!(has_other("x") && !has_other("y"), "{what}");
                for images in [".hip_fatbin", ".nv_fatbin", ".llvm.offloading"] {
                    let at = |name| section(&place.path("x"), name).expect(name);
                    let (flags, address, _) = at(images);
                    // `SHF_ALLOC`, and `SHF_WRITE`.
                    assert_eq!(flags, if large { 3 } else { 2 }, "{what} {images}");
                    for before in [".text", ".eh_frame", ".data"] {
                        assert!(!large || at(before).1 < address, "{what} {images} {before}");
                    }
                    assert!(!large || address < at(".bss").1, "{what} {images}");
                }
            }
        }
    }
}

#[test]
fn keeps_usual_sections_up_to_the_limit() {
    let Some(place) = Place::new() else { return };
    let program = |arguments: &[&str]| {
        place.linked(
            &["hip", "openmp"],
            &[&["start.o", "-o", "x"], arguments].concat(),
        );
        place.read("x")
    };
    let usual = program(&[]);
    let size = |name| section(&place.path("x"), name).unwrap().2.len();
    let total = size(".hip_fatbin") + size(".llvm.offloading");
    assert_eq!(program(&["--large-images=1G"]), usual);
    assert_eq!(program(&[&format!("--large-images={total}")]), usual);
    assert_ne!(program(&[&format!("--large-images={}", total - 1)]), usual);
    assert!(section(&place.path("x"), ".lrodata").is_some());
    // The variable, and the option before it.
    for (option, is_large) in [(&[][..], true), (&["--large-images=1M"], false)] {
        let mut link = place.link(&["hip"], &[&["start.o", "-o", "x"], option].concat());
        support::run(link.env("OFFLOAD_LARGE_IMAGES", "0"));
        let large = section(&place.path("x"), ".lrodata");
        assert_eq!(large.is_some(), is_large, "{option:?}");
    }
    let wrong = place
        .link(&["hip"], &["start.o", "--large-images=much"])
        .output()
        .unwrap();
    let expected = "--large-images: `much` is not a size; expected bytes, or a number with K, M, G or T [OFF808]\n";
    assert!(text(&wrong.stderr).ends_with(expected), "{wrong:?}");
}

/// A linker that answers like another one, and links like GNU ld.
fn stand_in(place: &Place, name: &str, answer: &str) -> String {
    let body =
        format!("case \"$*\" in *--version*) echo '{answer}';; *) exec ld.bfd \"$@\";; esac");
    linker(&place.script(name, &body))
}

#[test]
fn refuses_linkers_that_place_large_images_wrongly() {
    let Some(place) = Place::new() else { return };
    support::run(place.command("cc").args(["-c", "runtime.c"]));
    place.run("ar", ["rc", "libruntime.a", "runtime.o"]);
    let by_name = stand_in(&place, "ld.mold", "");
    let by_answer = stand_in(&place, "ld", "mold 1.10.1 (compatible with GNU ld)");
    let mold = "and mold places them between code and its tables for exceptions, which then abort [OFF813]\n\
                hint: link with GNU ld, gold or lld (`-fuse-ld=lld`), or make the images smaller: `--compress`, fewer targets\n";
    let fixed = "and GNU ld and lld cannot link the static C library with them [OFF813]\n\
                 hint: link the C library dynamically, link with gold (`-fuse-ld=gold`), or make the images smaller: `--compress`, fewer targets\n";
    let from_c = "and C has no sections for them [OFF813]\nhint: omit `--emit-wrapper=c`\n";
    let path = |wanted: &str| {
        let mut linkers = linkers().into_iter();
        linkers
            .find(|(name, _)| *name == wanted)
            .map(|(_, path)| linker(&path))
    };
    let (Some(bfd), Some(gold), Some(lld)) = (path("bfd"), path("gold"), path("lld 22")) else {
        return;
    };
    for (arguments, expected) in [
        (&[&*by_name][..], Some(mold)),
        (&[&by_answer], Some(mold)),
        (&[&by_name, "-r", "-nostdlib"], None),
        (&[&bfd, "-static"], Some(fixed)),
        (&[&lld, "-static"], Some(fixed)),
        (&[&lld, "-static-pie"], Some(fixed)),
        (&[&gold, "-static"], None),
        (&[&bfd, "--emit-wrapper=c"], Some(from_c)),
        (&[&bfd], None),
    ] {
        for large in [false, true] {
            let _ = fs::remove_file(place.path("x"));
            let is_relocatable = arguments.contains(&"-r");
            let mut all = vec!["-o", "x"];
            all.extend((!is_relocatable).then_some("start.o"));
            all.extend(arguments);
            all.extend(large.then_some("--large-images=0"));
            let link = place.link(&["hip"], &all).output().unwrap();
            let problem = text(&link.stderr);
            match expected.filter(|_| large) {
                Some(expected) => {
                    assert!(!link.status.success(), "{all:?}");
                    let start = "offload-link: error: the images have 0x332b bytes, ";
                    assert!(problem.contains(start), "{all:?}: {problem}");
                    assert!(problem.ends_with(expected), "{all:?}: {problem}");
                    assert!(!place.exists("x"), "{all:?}");
                }
                None => {
                    assert!(link.status.success(), "{all:?}: {problem}");
                    if !is_relocatable && expected.is_none() {
                        assert_eq!(place.lines("x"), [FOUND[0], FOUND[2]], "{all:?}");
                    }
                }
            }
        }
    }
}

/// The arguments that clang passes for a static program, and for dynamic ones with a static library.
#[test]
fn recognizes_static_programs_in_the_place_of_a_linker() {
    let Some(place) = Place::new() else { return };
    for (arguments, is_static) in [
        (&["-static"][..], true),
        (&["-static", "-pie", "--no-dynamic-linker"], true),
        (
            &["-dynamic-linker", "/lib64/ld-linux-x86-64.so.2", "-static"],
            false,
        ),
        (&["-shared", "-Bstatic"], false),
    ] {
        let mut link = place.command(env!("CARGO_BIN_EXE_offload-link"));
        link.args([
            "--linker-path=/usr/bin/ld.bfd",
            "--override-image=hip=hip",
            "--large-images=0",
        ]);
        link.args(["main.o", "-o", "x", "-L.", "-lruntime"])
            .args(arguments);
        let problem = text(&link.output().unwrap().stderr);
        assert_eq!(
            problem.contains("[OFF813]"),
            is_static,
            "{arguments:?}: {problem}"
        );
    }
}

#[test]
fn keeps_large_sections_in_relocatable_links() {
    let Some(place) = Place::new() else { return };
    for (name, path) in linkers() {
        let linker = linker(&path);
        let _ = fs::remove_file(place.path("r.o"));
        let arguments = [&*linker, "-r", "-nostdlib", "--large-images=0", "-o", "r.o"];
        place.linked(&["hip", "openmp"], &arguments);
        for section_name in [".lrodata.hip_fatbin", ".lrodata.offloading.images"] {
            let (flags, ..) = section(&place.path("r.o"), section_name).expect(name);
            assert_eq!(flags, LARGE, "{name} {section_name}");
        }
        // Later links see finished code, and need no tool of ours.
        for tool in [env!("CARGO_BIN_EXE_offload-link"), "clang-22"] {
            let mut link = place.command(tool);
            link.env("OFFLOAD_CC", "clang-22")
                .args(["r.o", "start.o", "-o", "x"]);
            support::run(link.args([
                &linker,
                "-L.",
                "-lruntime",
                "-lstdc++",
                "-Wl,-rpath,$ORIGIN",
            ]));
            assert_eq!(
                place.lines("x"),
                [FOUND[0], FOUND[2], FOUND[3]],
                "{name} {tool}"
            );
        }
    }
}

#[test]
fn reads_large_images_like_others() {
    let Some(place) = Place::new() else { return };
    let listed = |file: &str| {
        let output = place.tool(&["inspect", "--json", file]);
        assert!(output.status.success(), "{output:?}");
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let containers = value["files"][0]["containers"].as_array().unwrap();
        let mut containers: Vec<(String, String, String)> = containers
            .iter()
            .map(|container| {
                let field = |name: &str| container[name].as_str().unwrap_or_default().to_owned();
                let images = &container["images"];
                let sizes = images
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|image| image["size"].to_string());
                (
                    field("format"),
                    field("section"),
                    sizes.collect::<Vec<_>>().join(" "),
                )
            })
            .collect();
        containers.sort();
        containers
    };
    for (name, path) in linkers() {
        let linker = linker(&path);
        for (output, mode) in [
            ("usual", &["start.o"][..]),
            ("large", &["start.o", "--large-images=0"]),
        ] {
            let arguments = [&[&*linker, "-o", output], mode].concat();
            place.linked(&["hip", "cuda", "openmp"], &arguments);
        }
        let (usual, large) = (listed("usual"), listed("large"));
        assert_eq!(large.len(), 3, "{name} {large:?}");
        for (usual, large) in usual.iter().zip(&large) {
            assert_eq!((&usual.0, &usual.2), (&large.0, &large.2), "{name}");
            assert_eq!(large.1, ".lrodata", "{name}");
        }
        let verified = |file: &str| {
            let output = place.tool(&["verify", file]);
            text(&output.stdout).replace(file, "FILE")
        };
        let codes = |text: String| -> Vec<String> {
            let words = text.split(|c: char| !c.is_ascii_alphanumeric());
            words
                .filter(|word| word.starts_with("OFF"))
                .map(str::to_owned)
                .collect()
        };
        assert_eq!(codes(verified("usual")), codes(verified("large")), "{name}");
        for (file, out) in [("usual", "of_usual"), ("large", "of_large")] {
            let output = place.tool(&["extract", file, "-o", out]);
            assert!(output.status.success(), "{name} {output:?}");
        }
        let files = |folder: &str| {
            let files = fs::read_dir(place.path(folder)).unwrap();
            let mut files: Vec<_> = files
                .map(|file| fs::read(file.unwrap().path()).unwrap())
                .collect();
            files.sort();
            files
        };
        let extracted = files("of_large");
        assert_eq!(extracted, files("of_usual"), "{name}");
        for (kind, ..) in KINDS {
            assert!(
                extracted
                    .iter()
                    .any(|file| file.starts_with(&place.read(kind))),
                "{name} {kind}"
            );
        }
        for folder in ["of_usual", "of_large"] {
            fs::remove_dir_all(place.path(folder)).unwrap();
        }
        let mut list = place.command(env!("CARGO_BIN_EXE_offload-bundler"));
        let list = support::run(list.args(["-list", "-type=o", "-input=large"]));
        assert!(
            list.contains("hipv4-amdgcn-amd-amdhsa--gfx90a"),
            "{name}: {list}"
        );
        let refused = place.tool(&[
            "prune",
            "--keep=gfx906",
            "--allow-empty",
            "large",
            "-o",
            "small",
        ]);
        let problem = text(&refused.stderr);
        let expected = "section `.lrodata`: bundles or CUDA fat binaries share the section with the other data at offset 0x";
        assert!(problem.contains(expected), "{name}: {problem}");
    }
}

/// Two targets for HIP, and nothing else in the section.
#[test]
fn prunes_large_images() {
    let Some(place) = Place::new() else { return };
    let (_, machine, _, abi) = KINDS[0];
    place.write("other", image("other", machine, 0x041, abi));
    for (name, path) in linkers() {
        let arguments = [
            &*linker(&path),
            "start.o",
            "--override-image=hip=other",
            "--large-images=0",
            "-o",
            "x",
        ];
        place.linked(&["hip"], &arguments);
        assert_eq!(place.lines("x"), [FOUND[0], FOUND[2]], "{name}");
        let pruned = place.tool(&["prune", "--keep=gfx90a", "x", "-o", "y"]);
        assert!(pruned.status.success(), "{name}: {pruned:?}");
        let size = |file: &str| fs::metadata(place.path(file)).unwrap().len();
        assert!(
            size("y") + 8192 <= size("x"),
            "{name}: {} {}",
            size("x"),
            size("y")
        );
        assert_eq!(place.lines("y"), [FOUND[0], FOUND[2]], "{name}");
        let left = fs::read(place.path("y")).unwrap();
        let other = place.read("other");
        assert!(
            !left.windows(64).any(|bytes| bytes == &other[4096..4160]),
            "{name}"
        );
        // The same for an object, whose sections have names of their own.
        let _ = fs::remove_file(place.path("r.o"));
        let arguments = [
            &*linker(&path),
            "-r",
            "-nostdlib",
            "--override-image=hip=other",
            "--large-images=0",
            "-o",
            "r.o",
        ];
        place.linked(&["hip"], &arguments);
        let pruned = place.tool(&["prune", "--keep=gfx90a", "r.o", "-o", "s.o"]);
        assert!(pruned.status.success(), "{name}: {pruned:?}");
        assert!(size("s.o") + 8192 <= size("r.o"), "{name}");
        let linker = linker(&path);
        let link = [
            "s.o",
            "start.o",
            "-o",
            "z",
            &linker,
            "-L.",
            "-lruntime",
            "-lstdc++",
        ];
        place.run("clang-22", link.into_iter().chain(["-Wl,-rpath,$ORIGIN"]));
        assert_eq!(place.lines("z"), [FOUND[0], FOUND[2]], "{name}");
    }
}

/// Under LLVM's name the release decides, as `clang-linker-wrapper` of that release does.
#[test]
fn compresses_for_every_runtime_that_reads_compressed_bundles() {
    let Some(place) = Place::new() else { return };
    let tool = env!("CARGO_BIN_EXE_offload-link");
    std::os::unix::fs::symlink(tool, place.path("clang-linker-wrapper")).unwrap();
    for (name, llvm, version) in [
        (tool, "--llvm=22", 2_u16),
        (tool, "--llvm=19", 2),
        ("./clang-linker-wrapper", "--llvm=19", 2),
        ("./clang-linker-wrapper", "--llvm=21", 2),
        ("./clang-linker-wrapper", "--llvm=22", 3),
    ] {
        let mut link = place.command(name);
        link.args(["--emit-fatbin-only", "--compress", llvm, "-o", "bundle"]);
        link.args(["--linker-path=/usr/bin/ld.bfd", "--override-image=hip=hip"]);
        support::run(link.arg("main.o"));
        let bundle = place.read("bundle");
        assert_eq!(&bundle[..4], b"CCOB", "{name} {llvm}");
        assert_eq!(bundle[4..6], version.to_le_bytes(), "{name} {llvm}");
    }
}

/// Drivers before CUDA 12.4 read LZ4 alone. LLVM's tool compresses bundles of HIP only.
#[test]
fn compresses_images_of_cuda_for_every_driver() {
    let Some(place) = Place::new() else { return };
    let cubin = include_bytes!("../golden/cuda-13.5/kernels.cubin");
    fs::write(place.path("k.cubin"), cubin).unwrap();
    let tool = env!("CARGO_BIN_EXE_offload-link");
    std::os::unix::fs::symlink(tool, place.path("clang-linker-wrapper")).unwrap();
    let lz4 = Some(FatbinCompression::Lz4);
    for (name, options, method) in [
        (tool, &["--compress", "--compression-level=9"][..], lz4),
        (tool, &[], None),
        ("./clang-linker-wrapper", &["--compress"], None),
    ] {
        let mut link = place.command(name);
        link.args(["--emit-fatbin-only", "-o", "fatbin"])
            .args(options);
        link.args([
            "--linker-path=/usr/bin/ld.bfd",
            "--override-image=cuda=k.cubin",
        ]);
        support::run(link.arg("main.o"));
        let packed = place.read("fatbin");
        let entries = fatbin::parse(&*packed, 0..packed.len() as u64).unwrap();
        let [entry] = &entries[..] else {
            panic!("{entries:?}");
        };
        assert_eq!(entry.to_string(), "cubin for sm_90");
        assert_eq!(entry.compression, method, "{name} {options:?}");
        let mut unpacker = FatbinUnpacker::new(&*packed, 1 << 20);
        assert!(unpacker.image(entry).unwrap().starts_with(cubin));
        assert_eq!(packed.len() * 2 < cubin.len(), method.is_some());
    }
}
