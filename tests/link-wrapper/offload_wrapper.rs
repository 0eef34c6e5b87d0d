//! The offload wrapper, beside LLVM's where both do the same. What the registrations do in programs,
//! `registration_runtimes.rs` and `linker_registration.rs` know.

use crate::support;

use std::collections::BTreeMap;
use std::process::Command;

use object::{Object, ObjectSection, ObjectSymbol};
use support::tool_folder::ToolFolder;
use support::{run, tool};

const NAME: &str = "llvm-offload-wrapper";
const TRIPLE: &str = "--triple=x86_64-pc-linux-gnu";

fn wrapper() -> ToolFolder {
    let folder = ToolFolder::with_tool(env!("CARGO_BIN_EXE_offload-link"), NAME);
    folder.write("image", b"a device image, long enough for an alignment");
    folder
}

/// Sections with content and symbols with a meaning: names and sizes, but not those of code.
fn summary(bytes: &[u8]) -> BTreeMap<String, u64> {
    let file = object::File::parse(bytes).unwrap();
    let mut seen = BTreeMap::new();
    for section in file.sections() {
        let name = section.name().unwrap();
        let data = ["fatbin", "FatBin", "offload", "array"]
            .iter()
            .any(|part| name.contains(part));
        if data && !name.starts_with(".rela") {
            seen.insert(format!("section {name}"), section.size());
        }
    }
    for symbol in file.symbols() {
        let name = symbol.name().unwrap();
        let code = symbol.kind() == object::SymbolKind::Text;
        let own = name.ends_with(".entry_tables") || name.is_empty() || name.starts_with(".L");
        if symbol.kind() != object::SymbolKind::Section && !own {
            seen.insert(
                format!("symbol {name}"),
                if code { 0 } else { symbol.size() },
            );
        }
    }
    seen
}

#[test]
fn makes_the_object_that_clang_makes_of_llvms_module() {
    let folder = wrapper();
    let (Some(llvm), Some(clang)) = (
        tool("llvm22", &["llvm-offload-wrapper"]),
        tool("llvm22", &["clang"]),
    ) else {
        return;
    };
    for kind in ["openmp", "cuda", "hip"] {
        let kind = format!("--kind={kind}");
        let dir = folder.root();
        let theirs = ["image", "-o", "llvm.bc", TRIPLE, &kind];
        run(Command::new(&llvm).args(theirs).current_dir(dir));
        let compile = |module: &str, object: &str| {
            let args = ["-c", "-O0", "-fPIC", module, "-o", object];
            run(Command::new(&clang).args(args).current_dir(dir));
            summary(&folder.read(object))
        };
        let mut expected = compile("llvm.bc", "llvm.o");
        folder.done(&["image", "-o", "ours.o", TRIPLE, &kind]);
        folder.done(&["image", "-o", "ours.bc", TRIPLE, &kind]);
        let object = summary(&folder.read("ours.o"));
        let mut module = compile("ours.bc", "module.o");
        // A page at least: HIP's runtime reads as much.
        if let Some(size) = expected.get_mut("section .hip_fatbin") {
            *size = 4096;
            let symbol = "symbol .fatbin_image".to_owned();
            assert_eq!(module.insert(symbol, 44), Some(4096));
        }
        assert_eq!(object, expected, "{kind}");
        // There is a walk for each table, here one.
        let walk = module.keys().find(|name| name.ends_with(".globals_reg.0"));
        if let Some(walk) = walk.cloned() {
            let size = module.remove(&walk).unwrap();
            module.insert(walk.trim_end_matches(".0").to_owned(), size);
        }
        assert_eq!(module, expected, "{kind}");
    }
}

#[test]
fn says_what_llvms_tool_says() {
    let folder = wrapper();
    let Some(llvm) = tool("llvm22", &["llvm-offload-wrapper"]) else {
        return;
    };
    for args in [
        &["--kind=openmp", "missing", "-o", "o.bc"][..],
        &["--kind=metal", "image", "-o", "o.bc"],
        &["--kind=hip", "image", "image", "-o", "o.bc"],
        &["image", "-o", "o.bc"],
        &["--kind=openmp", "-o", "o.bc"],
    ] {
        let theirs = Command::new(&llvm)
            .args(args)
            .current_dir(folder.root())
            .output()
            .unwrap();
        let name = llvm.to_string_lossy();
        let base = llvm.file_name().unwrap().to_string_lossy();
        let ours = folder.tool.to_string_lossy();
        let expected = String::from_utf8(theirs.stderr).unwrap();
        let expected = expected.replace(&*name, &ours);
        let expected = match &*base == NAME {
            true => expected,
            false => expected.replace(&*base, NAME),
        };
        let done = folder.run(args);
        assert_eq!(
            (done.status, done.err),
            (theirs.status.code(), expected),
            "{args:?}"
        );
        assert!(!folder.exists("o.bc"), "{args:?}");
    }
}

#[test]
fn registers_the_image_inside_an_offload_binary() {
    let folder = wrapper();
    let Some(packager) = tool("llvm22", &["llvm-offload-binary"]) else {
        return;
    };
    for (name, images) in [("one", 1), ("two", 2)] {
        let mut pack = Command::new(&packager);
        pack.args(["-o", name]).current_dir(folder.root());
        let image = |kind| format!("--image=file=image,triple=t,arch=a,kind={kind}");
        pack.args((0..images).map(|_| image("sycl,symbols=kernel")));
        run(&mut pack);
    }
    folder.done(&["one", "-o", "o.o", TRIPLE, "--kind=openmp"]);
    let object = folder.read("o.o");
    let file = object::File::parse(&*object).unwrap();
    let data = file.section_by_name(".data.rel.ro").unwrap();
    let addends: Vec<i64> = data.relocations().map(|(_, it)| it.addend()).collect();
    assert_eq!(addends[1] - addends[0], 44, "{addends:?}");

    let done = folder.run(&["two", "-o", "o.o", TRIPLE, "--kind=openmp"]);
    let text = "two: 2 images, but one file can register only one";
    assert!(done.err.contains(text), "{}", done.err);

    folder.done(&["two", "one", "-o", "s.o", TRIPLE, "--kind=sycl"]);
    let object = folder.read("s.o");
    let file = object::File::parse(&*object).unwrap();
    let names: Vec<&str> = file
        .symbols()
        .filter_map(|symbol| symbol.name().ok())
        .collect();
    assert!(names.contains(&".sycl_offloading.2.data"), "{names:?}");
    let done = folder.run(&["image", "-o", "s.o", TRIPLE, "--kind=sycl"]);
    assert_eq!(done.status, Some(1));
    assert!(done.err.contains("error: image: "), "{}", done.err);
}

#[test]
fn chooses_the_form_by_the_name_of_the_output() {
    let folder = wrapper();
    let hip = ["image", "--kind=hip"];
    let with = |more: &[&str]| folder.run(&[&hip[..], more].concat());
    let windows = "--triple=x86_64-pc-windows-msvc";
    let done = with(&["-o", "o.obj", "--triple=aarch64-pc-windows-msvc"]);
    assert_eq!(done.status, Some(1));
    let text = "objects are written for ELF hosts of x86_64 and aarch64 and for Windows on x86_64, \
                and `aarch64-pc-windows-msvc` is none\nhint: name the output .c or .ll";
    assert!(done.err.contains(text), "{}", done.err);
    let done = with(&[]);
    assert!(done.err.contains("no output file\nhint: "), "{}", done.err);
    let done = with(&["-o", "mac.ll", "--triple=arm64-apple-macosx"]);
    assert!(
        done.err.contains("LLVM IR is not supported for host"),
        "{}",
        done.err
    );

    let sections = |name: &str| {
        let object = folder.read(name);
        let file = object::File::parse(&*object).unwrap();
        let names = file
            .sections()
            .map(|section| section.name().unwrap().to_owned());
        names.collect::<Vec<String>>()
    };
    folder.done(&[
        "image",
        "--kind=openmp",
        "-o",
        "r.o",
        TRIPLE,
        "--relocatable",
    ]);
    assert!(sections("r.o").contains(&".offloading.images".to_owned()));
    folder.done(&["image", "--kind=hip", "-o", "19.o", TRIPLE, "--llvm=19"]);
    assert!(sections("19.o").contains(&"hip_offloading_entries".to_owned()));
    for (triple, hook) in [
        (windows, ".CRT$XCA00101"),
        ("--triple=x86_64-pc-windows-gnu", ".ctors.65434"),
    ] {
        for kind in ["--kind=openmp", "--kind=cuda", "--kind=hip"] {
            folder.done(&["image", kind, "-o", "w.obj", triple]);
            assert!(
                sections("w.obj").contains(&hook.to_owned()),
                "{kind} {triple}"
            );
        }
    }
    let Some(clang) = tool("llvm22", &["clang"]) else {
        return;
    };
    for (output, triple) in [
        ("o.ll", windows),
        ("o.bc", windows),
        ("o.c", windows),
        ("o.c", TRIPLE),
    ] {
        folder.done(&["image", "--kind=hip", "-o", output, triple]);
        let mut compile = Command::new(&clang);
        // Elsewhere: the image's name is whole.
        compile
            .arg(triple.replace("triple", "target"))
            .arg("-c")
            .arg(folder.path(output));
        run(compile
            .args(["-o"])
            .arg(folder.path("o.o"))
            .current_dir("/"));
        if triple == windows {
            for letter in ["A", "Z"] {
                let wanted = format!("llvm_offload_entries$O{letter}");
                assert!(
                    sections("o.o").contains(&wanted),
                    "{output}: {:?}",
                    sections("o.o")
                );
            }
        }
    }
}

#[test]
fn prints_help_and_version() {
    let folder = wrapper();
    let help = folder.done(&["--help"]);
    for part in [
        "USAGE: llvm-offload-wrapper [options] <image>...",
        "--kind=<value>",
        "--triple=<string>",
    ] {
        assert!(help.out.contains(part), "{}", help.out);
    }
    let version = folder.done(&["--version"]);
    assert!(
        version.out.starts_with("LLVM version 22.1 (offload-link "),
        "{}",
        version.out
    );
}
