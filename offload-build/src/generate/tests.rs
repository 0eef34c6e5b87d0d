//! The generated file, compiled by rustc as crates include it.

use super::*;
use crate::generate::file::Number;
use offload_formats::container::kernels::{Argument, ArgumentKind, Kernel};
use std::process::Command;

fn image(symbol: &str) -> Image {
    Image {
        target: "gfx90a:xnack-".into(),
        source: String::new(),
        kind: "object",
        compiler: "clang \"19\"".into(),
        place: match symbol {
            "" => Place::Nowhere,
            symbol => Place::Symbol(symbol.into(), 3),
        },
    }
}

/// Compiles the file as a crate of `edition` includes it, warnings denied, and runs `main`.
fn run(name: &str, edition: &str, content: Content, extra: &str, main: &str) -> String {
    let file = HostFile {
        module: "kernels".into(),
        kernels: vec!["k".into()],
        described: Vec::new(),
        skipped: Vec::new(),
        content,
        sources: Vec::new(),
    };
    run_file(name, edition, &file, extra, main)
}

fn run_file(name: &str, edition: &str, file: &HostFile, extra: &str, main: &str) -> String {
    let folder = std::env::temp_dir().join(format!(
        "offload-host-file-{name}-{edition}-{}",
        std::process::id()
    ));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("kernels.rs"), file.to_string()).unwrap();
    std::fs::write(folder.join("images"), [9, 1, 2]).unwrap();
    let program =
        format!("mod kernels {{ include!(\"kernels.rs\"); }}\n{extra}\nfn main() {{ {main} }}\n");
    std::fs::write(folder.join("main.rs"), program).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    // Crates that forbid unsafe code take the file if nothing in it is linked.
    let unsafe_code = if file.is_safe() { "-F" } else { "-D" };
    let built = Command::new(rustc)
        .args([
            "-Dwarnings",
            "-Dunreachable_pub",
            unsafe_code,
            "unsafe_code",
        ])
        .args(["--edition", edition, "main.rs", "-o", "main"])
        .env("OUT_DIR", &folder)
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    let output = Command::new(folder.join("main")).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn compiles_without_images_in_every_edition() {
    for edition in ["2021", "2024"] {
        let content = Content::NotBuilt("no \"clang\"".into());
        let main = "println!(\"{} {}\", kernels::image().unwrap_err(), kernels::images().len());";
        let printed = run("stub", edition, content, "", main);
        assert_eq!(printed, "device code was not built: no \"clang\" 0\n");
    }
}

#[test]
fn gives_the_bytes_behind_the_symbols() {
    for edition in ["2021", "2024"] {
        let content = Content::Linked {
            anchor: Some("k_anchor".into()),
            container: ("k_container".into(), 4),
            is_container: true,
            images: vec![image("k_image_0")],
        };
        // What the module's static library defines.
        let library = "#[allow(unsafe_code)] mod library { \
             #[unsafe(no_mangle)] extern \"C\" fn k_anchor() { println!(\"anchor\") } \
             #[unsafe(no_mangle)] #[allow(non_upper_case_globals)] static k_container: [u8; 4] = [9, 1, 2, 3]; \
             #[unsafe(no_mangle)] #[allow(non_upper_case_globals)] static k_image_0: [u8; 3] = [1, 2, 3]; }";
        let main = "println!(\"{:?}\", kernels::image()); let i = kernels::images()[0]; \
                    println!(\"{} {} {:?} {} {:?}\", i.target, i.kind, i.bytes, i.compiler, kernels::KERNELS);";
        let printed = run("linked", edition, content, library, main);
        let image = "gfx90a:xnack- object [1, 2, 3] clang \"19\" [\"k\"]";
        assert_eq!(
            printed,
            format!("anchor\nOk([9, 1, 2, 3])\nanchor\n{image}\n")
        );
    }
}

#[test]
fn gives_the_parts_of_an_included_file() {
    let part = |target: &str, range| Image {
        target: target.into(),
        source: String::new(),
        kind: "object",
        compiler: "clang".into(),
        place: Place::Part(range),
    };
    let main = "match kernels::image() { Ok(image) => println!(\"{image:?} {}\", image.as_ptr() as usize % 4096), \
                Err(error) => println!(\"{error}\") } \
                for i in kernels::images() { println!(\"{} {:?}\", i.target, i.bytes); }";
    for (is_container, first, expected) in [
        (true, 1..2, "[9, 1, 2] 0\na [1]\nb [2]\n"),
        (
            false,
            1..3,
            "device code was not built: the images are in no container: `images` has each\na [1, 2]\nb [2]\n",
        ),
    ] {
        let content = Content::Included {
            file: "images".into(),
            size: 3,
            is_container,
            images: vec![part("a", first), part("b", 2..3)],
        };
        assert_eq!(run("included", "2021", content, "", main), expected);
    }
}

#[test]
fn has_a_constant_for_each_kernel_that_has_a_name_in_rust() {
    let described = |name: &str| Described {
        name: name.into(),
        arguments: vec![
            Argument::new(0, 8, Some(ArgumentKind::Pointer)),
            Argument::new(8, 4, None),
        ],
        images: vec![
            (
                "gfx90a".into(),
                kernel_with(|kernel| {
                    kernel.arguments_size = 16;
                    kernel.max_threads = Some(256);
                    kernel.required_threads = Some([8, 8, 4]);
                }),
            ),
            ("gfx942".into(), Kernel::default()),
        ],
        stub: None,
    };
    let names = ["_Z5scalePf", "match", "self", "None", "a.b", "ALL", "scale"];
    let file = HostFile {
        module: "kernels".into(),
        kernels: Vec::new(),
        described: names.map(described).into(),
        skipped: Vec::new(),
        content: Content::NotBuilt("no".into()),
        sources: Vec::new(),
    };
    let main = "let k = kernels::kernel::scale; println!(\"{} {:?} {}\", k.name, k.arguments[0].kind, k.arguments[1].size); \
                println!(\"{:?} {:?}\", k.images[0].required_threads, k.images[1]); \
                println!(\"{} {}\", kernels::kernel::_Z5scalePf.name, kernels::kernel::r#match.name); \
                for k in kernels::kernel::ALL { print!(\"{} \", kernels::find_kernel(k.name).unwrap().name); } \
                println!(\"{}\", kernels::find_kernel(\"none\").is_none());";
    for edition in ["2021", "2024"] {
        let printed = run_file("kernels", edition, &file, "", main);
        let expected = "scale Some(Pointer) 4\nSome([8, 8, 4]) KernelImage { target: \"gfx942\", arguments_size: 0, \
            max_threads: None, required_threads: None, shared_size: 0, private_size: 0, registers: None, \
            scalar_registers: None, wavefront: None }\n_Z5scalePf match\n_Z5scalePf match self None a.b ALL scale true\n";
        assert_eq!(printed, expected);
    }
}

/// The size of the file, and rustc's time, are those of its lists: templates make thousands of kernels.
#[test]
fn writes_a_list_once() {
    let argument = |size| Argument::new(0, size, None);
    let mut file = with_kernels(&["a", "b", "ARGUMENTS_0", "IMAGES_0"]);
    for (kernel, size) in file.described.iter_mut().zip([4, 8, 4, 4]) {
        kernel.arguments = vec![argument(size)];
        let image = kernel_with(|kernel| {
            kernel.shared_size = size * 10;
        });
        kernel.images = vec![("gfx90a".into(), image)];
    }
    let text = file.to_string();
    assert_eq!(text.matches("Argument { offset").count(), 2);
    assert_eq!(text.matches("KernelImage { target").count(), 2);
    let main = "for k in kernels::kernel::ALL { print!(\"{} {} {} \", k.name, k.arguments[0].size, k.images[0].shared_size) }";
    assert_eq!(
        run_file("lists", "2024", &file, "", main),
        "a 4 40 b 8 80 ARGUMENTS_0 4 40 IMAGES_0 4 40 "
    );
}

/// A function for each kernel was half of rustc's time.
#[test]
fn has_one_function_for_the_stubs_of_all_kernels() {
    let symbol = |name: &str| format!("{name}.own");
    let entry = |name: &str| Stub::Entry {
        symbol: symbol(name),
        words: 3,
        address: 2,
    };
    let function = |name: &str| Stub::Function {
        symbol: symbol(name),
    };
    let stubs: [&dyn Fn(&str) -> Stub; 2] = [&entry, &function];
    let libraries = [
        "#[unsafe(export_name = \"a.own\")] static A: [usize; 3] = [0, 0, 16]; \
         #[unsafe(export_name = \"c.own\")] static C: [usize; 3] = [0, 0, 32];",
        "#[unsafe(export_name = \"a.own\")] pub(super) extern \"C\" fn a() { println!(\"a\") } \
         #[unsafe(export_name = \"c.own\")] pub(super) extern \"C\" fn c() { println!(\"c\") }",
    ];
    let mains = [
        "for k in kernels::kernel::ALL { print!(\"{:?} \", k.stub().map(|stub| stub as usize)) }",
        "let of = [Some(library::a as *const std::ffi::c_void), None, Some(library::c as *const std::ffi::c_void)]; \
         for (k, of) in kernels::kernel::ALL.iter().zip(of) { print!(\"{} \", k.stub() == of) }",
    ];
    let expected = ["Some(16) None Some(32) ", "true true true "];
    for (index, stub) in stubs.into_iter().enumerate() {
        let mut file = with_kernels(&["a", "b", "c"]);
        for kernel in &mut file.described {
            kernel.stub = (kernel.name != "b").then(|| stub(&kernel.name));
        }
        assert_eq!(file.to_string().matches("fn stub(index").count(), 1);
        let library = format!(
            "#[allow(unsafe_code)] mod library {{ {} }}",
            libraries[index]
        );
        for edition in ["2021", "2024"] {
            let printed = run_file("stubs", edition, &file, &library, mains[index]);
            assert_eq!(printed, expected[index]);
        }
    }
}

#[test]
fn says_that_images_are_linked_later() {
    let images = vec![image("")];
    let content = Content::Deferred {
        anchor: "k_anchor".into(),
        images,
    };
    let library =
        "#[allow(unsafe_code)] mod library { #[unsafe(no_mangle)] extern \"C\" fn k_anchor() {} }";
    let main = "println!(\"{} {:?}\", kernels::image().is_err(), kernels::images()[0].bytes);";
    assert_eq!(run("deferred", "2024", content, library, main), "true []\n");
}

fn kernel(name: &str) -> Described {
    Described {
        name: name.into(),
        arguments: Vec::new(),
        images: Vec::new(),
        stub: None,
    }
}

fn with_kernels(names: &[&str]) -> HostFile {
    HostFile {
        module: "kernels".into(),
        kernels: names.iter().map(|name| (*name).to_owned()).collect(),
        described: names.iter().map(|name| kernel(name)).collect(),
        skipped: Vec::new(),
        content: Content::NotBuilt("no".into()),
        sources: Vec::new(),
    }
}

fn source(module: &str, path: &str, kernels: &[&str], range: std::ops::Range<u64>) -> SourceFile {
    SourceFile {
        name: SourceName {
            module: module.into(),
            path: path.into(),
        },
        described: kernels.iter().map(|name| kernel(name)).collect(),
        content: Content::Included {
            file: "images".into(),
            size: 3,
            is_container: true,
            images: vec![Image {
                source: path.into(),
                place: Place::Part(range),
                ..image("")
            }],
        },
        ptx: vec![Ptx {
            target: "compute_80".into(),
            file: Some("main.rs".into()),
        }],
    }
}

#[test]
fn has_a_module_for_each_source_with_images_of_its_own() {
    let mut other = source(
        "r#match",
        "k/match.cu\n}",
        &["fill", "shared", "differs"],
        2..3,
    );
    other.described[2].arguments.push(Argument::new(0, 4, None));
    other.ptx.push(Ptx {
        target: "compute_90a".into(),
        file: None,
    });
    let affine = source(
        "affine",
        "k/affine.cu",
        &["scale", "shared", "differs"],
        1..2,
    );
    let file = HostFile::of_sources("kernels".into(), vec![affine, other], Vec::new());
    let main = "println!(\"{:?} {:?}\", kernels::affine::image(), kernels::affine::images()[0].bytes); \
        println!(\"{} {}\", kernels::image().unwrap_err(), kernels::KERNELS.join(\" \")); \
        for i in kernels::images() { println!(\"{:?} {:?}\", i.source, i.bytes); } \
        println!(\"{} {}\", kernels::affine::kernel::scale.name, kernels::r#match::kernel::ALL.len()); \
        println!(\"{} {}\", kernels::kernel::fill.name, kernels::find_kernel(\"differs\").is_none()); \
        println!(\"{} {} {}\", kernels::kernel::shared.name, kernels::affine::PTX.contains(\"fn main\"), \
            kernels::r#match::PTX_COMPUTE_80.len() + kernels::r#match::PTX_COMPUTE_90A.len() > 0);";
    let expected = "Ok([9, 1, 2]) [1]\n\
        device code was not built: each source has its own images, in its own Rust module \
        differs fill scale shared\n\"k/affine.cu\" [1]\n\"k/match.cu\\n}\" [2]\nscale 3\nfill true\n\
        shared true true\n";
    for edition in ["2021", "2024"] {
        assert_eq!(run_file("sources", edition, &file, "", main), expected);
    }
}

/// A symbol is any string: `asm("…")` in a source, or a prebuilt image, names kernels so.
#[test]
fn keeps_hostile_names_inside_literals_and_comments() {
    let names = [
        "k\n    pub const fn pwned() {}\n    // ",
        "k\r    pub const fn pwned() {}\r",
        "\"; } pub const fn pwned() {} //",
        "*/ #![allow(x)] /*",
        "\\\u{0}\u{1b}[2J\u{202e}\u{2028}{}",
        "_ZN1a3b\ncE",
    ];
    let file = with_kernels(&names);
    let text = file.to_string();
    let mut lines = text.lines().flat_map(|line| line.split('\r'));
    assert_eq!(
        lines.find(|line| line.trim_start().starts_with("pub const fn")),
        None
    );
    // Read back by rustc, they are what they were.
    let main = "for k in kernels::kernel::ALL { println!(\"{:?}\", k.name.as_bytes()) } \
                println!(\"{}\", kernels::KERNELS.iter().eq(kernels::kernel::ALL.iter().map(|k| &k.name)))";
    let expected: String = names
        .iter()
        .map(|name| format!("{:?}\n", name.as_bytes()))
        .collect();
    assert_eq!(
        run_file("hostile", "2024", &file, "", main),
        expected + "true\n"
    );
}

#[test]
fn finds_kernels_by_the_names_of_the_source() {
    // `scale(float*, float)`, `ns::fill<float, 256>(float*)`, `run(int)` and `run(float)`, and C's `copy`.
    let names = [
        "_Z5scalePff",
        "_ZN2ns4fillIfLi256EEEvPT_",
        "_Z3runi",
        "_Z3runf",
        "copy",
    ];
    let file = with_kernels(&names);
    let main = "use kernels::{find_kernel, kernel}; \
        println!(\"{} {} {}\", kernel::scale.name, kernel::fill.source_name, kernel::copy.name); \
        for name in [\"scale\", \"ns::fill<float,256>\", \"ns::fill<float, 256>\", \"_Z3runi\", \"run\", \"fill\", \"copy\"] { \
        println!(\"{:?}\", find_kernel(name).map(|k| k.name)) }";
    let expected = "_Z5scalePff ns::fill<float, 256> copy\nSome(\"_Z5scalePff\")\nSome(\"_ZN2ns4fillIfLi256EEEvPT_\")\n\
        Some(\"_ZN2ns4fillIfLi256EEEvPT_\")\nSome(\"_Z3runi\")\nNone\nNone\nSome(\"copy\")\n";
    assert_eq!(run_file("names", "2021", &file, "", main), expected);
}

#[test]
fn shows_the_size_of_an_image_instead_of_its_bytes() {
    let content = Content::Included {
        file: "images".into(),
        size: 3,
        is_container: true,
        images: vec![Image {
            place: Place::Part(1..3),
            ..image("")
        }],
    };
    let main = "println!(\"{:?}\", kernels::images()[0]);";
    assert_eq!(
        run("debug", "2021", content, "", main),
        "Image { target: \"gfx90a:xnack-\", source: \"\", kind: \"object\", size: 2, compiler: \"clang \\\"19\\\"\" }\n"
    );
}

#[test]
fn writes_numbers_in_groups() {
    let shown = [0, 7, 999, 1000, 12_345_678].map(|number| Number(number).to_string());
    assert_eq!(shown, ["0", "7", "999", "1_000", "12_345_678"]);
}

/// Returns a kernel with these values and defaults.
fn kernel_with(set: impl FnOnce(&mut Kernel)) -> Kernel {
    let mut kernel = Kernel::default();
    set(&mut kernel);
    kernel
}
