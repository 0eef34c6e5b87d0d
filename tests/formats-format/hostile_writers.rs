//! Names in generated C and LLVM IR: whatever they are, a compiler reads them back byte by byte, and nothing else.

use crate::support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use offload_formats::escape::{c_string, llvm_ir_string};
use offload_formats::format::pieces::Embedded;
use offload_formats::names::{ImageKind, Triple};
use offload_formats::registration::Global;
use offload_formats::registration::openmp::{BlobSection, EntryTable, OpenMp};
use offload_formats::registration::sycl::{Sycl, SyclImage};
use support::{Random, program, run, tool};

/// Ends of strings, comments and lines, escapes that eat what follows, trigraphs, and bytes at random.
fn hostile() -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = [
        "\"; int pwned(void) { return 1; } //",
        "\\\"; int pwned;",
        "k\n int pwned;",
        "*/ int pwned; /*",
        "??/\" int pwned",
        "\\",
        "\\1237",
        "\x011",
        "\\22\n}",
        "}\ndefine void @pwned() {\nret void }",
        "@DEFINITIONS@",
        "\n@IMAGES@\n",
    ]
    .map(|name| name.as_bytes().to_vec())
    .to_vec();
    names.push((1..=255).collect());
    let mut random = Random::new();
    names.extend((0..100).map(|_| random.bytes(40)));
    names.retain(|name| !name.is_empty());
    names
}

/// A registration of no image that has these symbols.
fn defining<'a>(globals: &'a [Global<'a>]) -> OpenMp<'a> {
    OpenMp {
        images: &[],
        table: EntryTable::StartStop {
            section: "entries",
            entries: &[],
        },
        section: BlobSection::Offloading,
        globals,
    }
}

#[test]
fn writes_names_that_c_reads_back() {
    let Some(cc) = program("cc") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let names = hostile();
    let mut source = String::from("#include <stdio.h>\nint main(void) {\n");
    for name in &names {
        let text = c_string(name);
        source += &format!("  fwrite({text}, 1, sizeof {text} - 1, stdout);\n");
    }
    fs::write(path("k.c"), source + "}\n").unwrap();
    let mut compile = Command::new(&cc);
    compile.args(["-std=c99", "-trigraphs", "-w", "k.c", "-o", "k"]);
    run(compile.current_dir(folder.path()));
    let printed = Command::new(path("k")).output().unwrap().stdout;
    assert!(printed == names.concat());

    // A registration with such strings defines what it defines without them.
    let defined = |text: &str, kernels: &[u8]| {
        fs::write(path("image"), b"image").unwrap();
        let images = [SyclImage {
            bytes: Embedded::Bytes(b"image"),
            kind: ImageKind::SPIRV,
            triple: text,
            symbols: kernels,
            compile_options: text.as_bytes(),
            link_options: text.as_bytes(),
        }];
        let sycl = Sycl {
            images: &images,
            section: BlobSection::Offloading,
            globals: &[],
        };
        fs::write(path("r.c"), sycl.to_c(&[Path::new("image")]).unwrap()).unwrap();
        let mut compile = Command::new(&cc);
        compile.args(["-c", "-w", "r.c", "-o", "r.o"]);
        run(compile.current_dir(folder.path()));
        let bytes = fs::read(path("r.o")).unwrap();
        let object = object::File::parse(&bytes[..]).unwrap();
        let names = object
            .symbols()
            .map(|symbol| symbol.name().unwrap().to_owned());
        let names = names.filter(|name| !name.starts_with(".L"));
        let rest = object
            .sections()
            .map(|section| section.data().unwrap().to_vec());
        (names.collect::<Vec<_>>(), rest.collect::<Vec<_>>().concat())
    };
    let (plain, _) = defined("text", b"kernel\n");
    for name in names.iter().take(12) {
        let text = std::str::from_utf8(name).unwrap();
        let (found, bytes) = defined(text, &[&name[..], b"\n"].concat());
        assert_eq!(found, plain, "{text:?}");
        let written = [&name[..], b"\0"].concat();
        assert!(
            bytes.windows(written.len()).any(|part| part == written),
            "{text:?}"
        );
    }
}

/// C quotes the name once, and its assembler again.
#[test]
fn writes_file_names_that_the_assembler_reads_back() {
    let Some(cc) = program("cc") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut names = hostile();
    names.retain(|name| name.len() < 200 && !name.contains(&b'/') && !name.contains(&0));
    assert!(names.len() > 20, "{}", names.len());
    for (index, name) in names.iter().take(40).enumerate() {
        let content = format!("the image of name {index}");
        let file = Path::new(OsStr::from_bytes(name));
        fs::write(folder.path().join(file), &content).unwrap();
        let sycl = Sycl {
            images: &[SyclImage {
                bytes: Embedded::Bytes(content.as_bytes()),
                kind: ImageKind::SPIRV,
                triple: "spirv64",
                symbols: b"",
                compile_options: b"",
                link_options: b"",
            }],
            section: BlobSection::Offloading,
            globals: &[],
        };
        fs::write(path("r.c"), sycl.to_c(&[file]).unwrap()).unwrap();
        let mut compile = Command::new(&cc);
        compile.args(["-c", "-w", "r.c", "-o", "r.o"]);
        run(compile.current_dir(folder.path()));
        let object = fs::read(path("r.o")).unwrap();
        let found = object.windows(content.len());
        let shown = file.display();
        assert!(
            found.into_iter().any(|part| part == content.as_bytes()),
            "{shown}"
        );
    }
}

#[test]
fn refuses_symbols_that_c_cannot_write() {
    for name in ["a b", "a\"", "a\n", "a;b", "a\\", ""] {
        let globals = [Global::Anchor { name }];
        let openmp = defining(&globals);
        let problem = openmp.to_c(&[]).unwrap_err().to_string();
        assert!(!problem.contains('\n'), "{problem:?}");
    }
}

#[test]
fn writes_names_that_llvm_reads_back() {
    let Some(clang) = tool("llvm22", &["clang"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut names = hostile();
    names.sort();
    names.dedup();
    let mut source = String::new();
    for (index, name) in names.iter().enumerate() {
        let (len, text) = (name.len(), llvm_ir_string(name));
        source +=
            &format!("@s{index} = constant [{len} x i8] c{text}, section \"names\", align 1\n");
    }
    // Symbols as the registration writes them, also of names that need quotes.
    let texts = names
        .iter()
        .filter_map(|name| std::str::from_utf8(name).ok());
    let texts: Vec<&str> = texts
        .filter(|name| !name.contains(['\0', '\u{1}']))
        .collect();
    let globals: Vec<Global<'_>> = texts.iter().map(|name| Global::Marker { name }).collect();
    let openmp = defining(&globals);
    let host = Triple::parse("x86_64-unknown-linux-gnu").unwrap();
    let module = openmp.to_ir(&host).unwrap();
    fs::write(path("k.ll"), module + &source).unwrap();
    let mut compile = Command::new(clang);
    compile.args(["--target=x86_64-linux-gnu", "-Wno-override-module", "-c"]);
    run(compile
        .args(["k.ll", "-o", "k.o"])
        .current_dir(folder.path()));
    let bytes = fs::read(path("k.o")).unwrap();
    let object = object::File::parse(&bytes[..]).unwrap();
    let section = object.section_by_name("names").unwrap();
    assert!(section.data().unwrap() == names.concat());
    let symbols: Vec<&str> = object
        .symbols()
        .map(|symbol| symbol.name().unwrap())
        .collect();
    for text in texts {
        assert!(symbols.contains(&text), "{text:?}");
    }
    assert!(!symbols.contains(&"pwned"));
}
