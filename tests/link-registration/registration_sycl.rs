//! The registration object of SYCL: what a runtime is told, by ours and by LLVM's.

use crate::linker_support as support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use offload_formats::container::elf::Machine;
use offload_formats::format::pieces::Embedded;
use offload_formats::names::{ImageKind, Triple};
use offload_formats::registration::openmp::BlobSection;
use offload_formats::registration::sycl::{Sycl, SyclImage};
use support::{linkers, text, tool};

const RUNTIME: &str = r#"
#include <stdint.h>
#include <stdio.h>
struct entry { uint64_t reserved; uint16_t version, kind; uint32_t flags; void *address; char *name; uint64_t size, data; void *aux; };
struct image { uint16_t version; uint8_t kind, format; char *triple, *compile, *link, *start, *end; struct entry *first, *last; void *p, *q; };
struct descriptor { uint16_t version, count; struct image *images; void *first, *last; };
static void print(const char *what, struct descriptor *d) {
  printf("%s %d images %d entries %p %p\n", what, d->version, d->count, d->first, d->last);
  for (struct image *i = d->images; i != d->images + d->count; i++) {
    printf("image %d %d %d [%s] [%s] [%s] [%.*s] %p %p\n", i->version, i->kind, i->format, i->triple,
           i->compile, i->link, (int)(i->end - i->start), i->start, i->p, i->q);
    for (struct entry *e = i->first; e != i->last; e++)
      printf("entry %ld %d %d %u %p %s %ld %ld %p\n", (long)e->reserved, e->version, e->kind, e->flags,
             e->address, e->name, (long)e->size, (long)e->data, e->aux);
  }
  fflush(stdout);
}
void __sycl_register_lib(struct descriptor *d) { print("register", d); }
void __sycl_unregister_lib(struct descriptor *d) { print("unregister", d); }
"#;

const MAIN: &str = r#"
#include <stdio.h>
__attribute__((constructor)) static void up(void) { puts("constructor"); }
__attribute__((destructor)) static void down(void) { puts("destructor"); }
int main(void) { puts("main"); return 0; }
"#;

fn succeed(dir: &Path, command: &mut Command) -> Output {
    let output = command.current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

/// LLVM's object for two images, in a folder: its device link is what a script says.
fn llvm(dir: &Path) -> Option<()> {
    let wrapper = tool("llvm22", "clang-linker-wrapper")?;
    let packager = tool("llvm22", "llvm-offload-binary")?;
    let clang = tool("llvm22", "clang")?;
    for (image, content, symbols) in [
        ("a", "first image", "kernel_a\nkernel_b"),
        ("b", "second", "\nkernel_a\n\nkernel_d\n"),
    ] {
        fs::write(dir.join(format!("{image}.spv")), content).unwrap();
        let image = format!(
            "--image=file={image}.spv,triple=spirv64-unknown-unknown,arch={image},kind=sycl,symbols={symbols}"
        );
        let name = image.split(['=', '.']).nth(2).unwrap().to_owned() + ".ob";
        let mut pack = Command::new(&packager);
        succeed(dir, pack.args(["-o", &name, &image]));
    }
    let binaries = [
        fs::read(dir.join("a.ob")).unwrap(),
        fs::read(dir.join("b.ob")).unwrap(),
    ];
    fs::write(dir.join("linked"), binaries.concat()).unwrap();
    let mut compile = Command::new(clang);
    compile.args([
        "-c",
        "main.c",
        "-o",
        "host.o",
        "-Xclang",
        "-fembed-offload-object=a.ob",
    ]);
    succeed(dir, &mut compile);
    // It starts the clang beside it.
    fs::copy(
        wrapper.canonicalize().unwrap(),
        dir.join("clang-linker-wrapper"),
    )
    .unwrap();
    let script =
        "#!/bin/sh\nwhile [ $# -gt 0 ]; do\n[ \"$1\" = -o ] && cp linked \"$2\"\nshift\ndone\n";
    fs::write(dir.join("clang"), script).unwrap();
    fs::set_permissions(dir.join("clang"), fs::Permissions::from_mode(0o755)).unwrap();
    let nothing = support::found("true").expect("every system has `true`");
    let mut link = Command::new(dir.join("clang-linker-wrapper"));
    link.arg(format!("--linker-path={}", nothing.display()))
        .args([
            "--host-triple=x86_64-pc-linux-gnu",
            "--save-temps",
            "-o",
            "l",
            "host.o",
        ]);
    succeed(dir, &mut link);
    fs::rename(dir.join("l.sycl.image.wrapper.o"), dir.join("llvm.o")).unwrap();
    Some(())
}

#[test]
fn tells_the_runtime_what_llvm_tells_it() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("main.c"), MAIN).unwrap();
    fs::write(dir.join("runtime.c"), RUNTIME).unwrap();
    if llvm(dir).is_none() {
        return;
    }
    let clang = tool("llvm22", "clang").unwrap();
    let mut library = Command::new(&clang);
    library.args(["-shared", "-fPIC", "runtime.c", "-o", "runtime.so"]);
    succeed(dir, &mut library);
    let run = |object: &str, linker: &str| {
        let mut link = Command::new(&clang);
        link.args([
            "main.c",
            object,
            "runtime.so",
            "-Wl,-rpath,$ORIGIN",
            "-o",
            "p",
        ])
        .args(["-Wl,--gc-sections", &format!("--ld-path={linker}")]);
        let link = succeed(dir, &mut link);
        assert_eq!(text(&link.stderr), "");
        text(&succeed(dir, &mut Command::new(dir.join("p"))).stdout)
    };
    // The second one's names are separated as on LLVM's main branch.
    let image = |bytes, symbols| SyclImage {
        bytes: Embedded::Bytes(bytes),
        kind: ImageKind::from_raw(0),
        triple: "spirv64-unknown-unknown",
        symbols,
        compile_options: b"",
        link_options: b"",
    };
    for section in [BlobSection::Offloading, BlobSection::Finished] {
        let ours = Sycl {
            images: &[
                image(&b"first image"[..], &b"kernel_a\nkernel_b"[..]),
                image(b"second", b"kernel_a\0kernel_d\0"),
            ],
            section,
            globals: &[],
        };
        fs::write(dir.join("ours.o"), ours.to_object(Machine::X86_64).unwrap()).unwrap();
        for (name, linker) in linkers() {
            let linker = linker.display().to_string();
            let expected = run("llvm.o", &linker);
            assert_eq!(expected.lines().count(), 17, "{expected}");
            assert_eq!(run("ours.o", &linker), expected, "{name}");
        }
        let host = Triple::parse("x86_64-pc-linux-gnu").unwrap();
        fs::write(dir.join("ours.bc"), ours.to_ir(&host).unwrap()).unwrap();
        let mut compile = Command::new(&clang);
        succeed(dir, compile.args(["-c", "-fPIC", "ours.bc", "-o", "c.o"]));
        let linker = linkers()[0].1.display().to_string();
        assert_eq!(run("c.o", &linker), run("llvm.o", &linker));
        let files = ["a.spv", "b.spv"].map(Path::new);
        fs::write(dir.join("ours.c"), ours.to_c(&files).unwrap()).unwrap();
        for compiler in [Some(clang.clone()), support::found("gcc")]
            .into_iter()
            .flatten()
        {
            let mut compile = Command::new(compiler);
            compile.args([
                "-c", "-fPIC", "-Wall", "-Wextra", "-Werror", "ours.c", "-o", "c.o",
            ]);
            succeed(dir, &mut compile);
            for (name, linker) in linkers() {
                let linker = linker.display().to_string();
                assert_eq!(run("c.o", &linker), run("llvm.o", &linker), "{name}");
            }
        }
    }
}

#[test]
fn links_for_aarch64_with_options() {
    let (Some(lld), Some(objdump)) = (tool("llvm22", "ld.lld"), tool("llvm22", "llvm-objdump"))
    else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let object = Sycl {
        images: &[SyclImage {
            bytes: Embedded::Bytes(b"image"),
            kind: ImageKind::from_raw(1),
            triple: "spirv64",
            symbols: b"",
            compile_options: b"-O3",
            link_options: b"-fast",
        }],
        section: BlobSection::Finished,
        globals: &[],
    };
    let object = object.to_object(Machine::AARCH64).unwrap();
    fs::write(dir.path().join("r.o"), object).unwrap();
    let mut link = Command::new(lld);
    succeed(
        dir.path(),
        link.args(["-shared", "r.o", "-o", "r.so", "--eh-frame-hdr"]),
    );
    let mut dump = Command::new(objdump);
    dump.args(["-ds", "--no-show-raw-insn", "r.so"]);
    let dump = text(&succeed(dir.path(), &mut dump).stdout);
    for part in [
        "<__sycl_register_lib@plt>",
        "<__sycl_unregister_lib@plt>",
        "spirv64.-O3.",
    ] {
        assert!(dump.contains(part), "{part} not in {dump}");
    }
}

#[test]
fn rejects_what_no_descriptor_can_hold() {
    let image = SyclImage {
        bytes: Embedded::Bytes(b""),
        kind: ImageKind::from_raw(256),
        triple: "spirv64",
        symbols: b"",
        compile_options: b"",
        link_options: b"",
    };
    let errors = |image| {
        let sycl = Sycl {
            images: &[image],
            section: BlobSection::Finished,
            globals: &[],
        };
        let host = Triple::parse("x86_64-pc-linux-gnu").unwrap();
        [
            sycl.to_object(Machine::X86_64).unwrap_err(),
            sycl.to_c(&[Path::new("image")]).unwrap_err(),
            sycl.to_ir(&host).unwrap_err(),
        ]
        .map(|error| error.to_string())
    };
    assert_eq!(
        errors(image),
        ["image 0: expected a kind up to 255, found 256"; 3]
    );
    let kind = ImageKind::from_raw(0);
    let triple = "a\0b";
    let image = SyclImage { kind, ..image };
    assert_eq!(
        errors(SyclImage { triple, ..image }),
        ["`a\\0b` cannot be the name of a symbol or section"; 3]
    );
    let link_options = b"-O\0";
    assert_eq!(
        errors(SyclImage {
            link_options,
            ..image
        }),
        ["`-O\\0` cannot be the name of a symbol or section"; 3]
    );
}
