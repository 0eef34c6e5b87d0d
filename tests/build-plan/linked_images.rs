//! Images that Rust gets by the linker: their object, and programs with it of every kind and linker.

use crate::support;

use object::{
    Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionFlags,
};

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::package::{OUT, Package, text};

const HIP: &str = "language = \"hip\"\nsources = [\"kernels/*.hip\"]\nflags = [\"-nogpulib\", \"-nogpuinc\"]\n\
    targets = [\"gfx90a\", \"gfx1100\"]\n";
const KERNEL: &str =
    "extern \"C\" __attribute__((global)) void scale(int *x, int y) { *x *= y; }\n";
/// Prints a number that depends on each byte, and the alignment.
const USE: &str = "let image = kernels::image().unwrap();\n\
    let sum = image.iter().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));\n\
    let sizes: Vec<_> = kernels::images().iter().map(|image| (image.target, image.bytes.len())).collect();\n\
    println!(\"{sum} {} {} {sizes:?}\", image.len(), image.as_ptr() as usize % 4096);";

fn package(keys: &str) -> Option<Package> {
    let package = Package::new("")?;
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put("kernels/k.hip", KERNEL);
    package.declare(keys);
    Some(package)
}

/// Writes a crate that uses the images.
fn put_main(package: &Package, attributes: &str) {
    package.put(
        "main.rs",
        &format!(
            "{attributes}\nmod kernels {{ include!(concat!(env!(\"OUT_DIR\"), \"/kernels.rs\")); }}\n\
             #[unsafe(no_mangle)] pub extern \"C\" fn use_images() {{ {USE} }}\n\
             #[allow(dead_code)] fn main() {{ use_images() }}\n#[cfg(test)] #[test] fn uses() {{ use_images() }}\n"
        ),
    );
}

fn rustc(package: &Package, arguments: &[&str]) -> Command {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc
        .args(["-Dwarnings", "--edition=2024", "main.rs"])
        .args(arguments)
        .env("OUT_DIR", package.at(OUT))
        .current_dir(package.folder.root());
    package.link_images(&mut rustc);
    rustc
}

fn library(package: &Package) -> Option<PathBuf> {
    let mut files = fs::read_dir(package.at(OUT)).unwrap();
    files.find_map(|file| {
        let path = file.unwrap().path();
        path.extension()
            .is_some_and(|end| end == "a")
            .then_some(path)
    })
}

/// Returns the bytes of a section, by another reader.
fn section(file: &Path, name: &str) -> Vec<u8> {
    let copy = file.with_extension("section");
    let dump = format!("{name}={}", copy.display());
    let mut objcopy = Command::new("objcopy");
    support::run(
        objcopy
            .args(["-O", "binary", "--dump-section", &dump])
            .arg(file)
            .arg(file.with_extension("rest")),
    );
    fs::read(copy).unwrap()
}

#[test]
fn gives_the_same_images_linked_and_included() {
    let Some(package) = package(HIP) else { return };
    let mut printed = Vec::new();
    for embed in ["link", "include"] {
        package.declare(&format!("{HIP}embed = \"{embed}\"\n"));
        let _ = fs::remove_dir_all(package.at(OUT));
        let told = package.builds();
        let links = told.contains("cargo::rustc-link-lib=static=pack_kernels_");
        assert_eq!(links, embed == "link", "{told}");
        assert_eq!(library(&package).is_some(), embed == "link");
        put_main(&package, "");
        support::run(&mut rustc(&package, &["-o", "main"]));
        printed.push(support::run(&mut Command::new(package.at("main"))));
        if embed == "link" {
            let images = fs::read(package.at(OUT).join("offload/kernels/images")).unwrap();
            assert_eq!(section(&package.at("main"), ".hip_fatbin"), images);
        }
    }
    assert_eq!(printed[0], printed[1]);
    assert!(printed[0].contains(" 0 [(\"gfx90a\", "), "{}", printed[0]);
}

#[test]
fn links_images_into_crates_of_every_kind_with_every_linker() {
    let Some(package) = package(HIP) else { return };
    package.builds();
    put_main(&package, "");
    support::run(&mut rustc(&package, &["-o", "main"]));
    let expected = support::run(&mut Command::new(package.at("main")));
    let images = fs::read(package.at(OUT).join("offload/kernels/images")).unwrap();
    package.put(
        "use.c",
        "void use_images(void);\nint main(void) { use_images(); return 0; }\n",
    );
    for (number, linker) in ["bfd", "gold", "lld"].into_iter().enumerate() {
        let linker = format!("-Clink-arg=-fuse-ld={linker}");
        let options: [&[&str]; 4] = [
            &["-Clink-arg=-Wl,--gc-sections"],
            &["-Copt-level=2", "-Clto=fat"],
            &["-Cprefer-dynamic=no", "-Crelocation-model=static"],
            &["--test"],
        ];
        // Each linker with two of them, or with all.
        for options in support::share(options, number % 2, 2) {
            let program = package.at("program");
            let _ = fs::remove_file(&program);
            support::run(
                rustc(&package, &["-o", "program", &linker])
                    .args(["-A", "dead_code"])
                    .args(options),
            );
            let mut command = Command::new(&program);
            if options == ["--test"] {
                command.arg("--nocapture");
            }
            let printed = support::run(&mut command);
            assert!(
                printed.contains(&expected),
                "{linker} {options:?} {printed}"
            );
            assert_eq!(section(&program, ".hip_fatbin"), images);
        }
        for kind in ["cdylib", "staticlib"] {
            let name = if kind == "cdylib" {
                "libk.so"
            } else {
                "libk.a"
            };
            support::run(&mut rustc(
                &package,
                &["--crate-type", kind, "-o", name, &linker],
            ));
            let mut cc = Command::new("cc");
            cc.args([
                "use.c",
                name,
                "-o",
                "used",
                "-Wl,-rpath,.",
                "-lm",
                "-ldl",
                "-lpthread",
            ]);
            support::run(cc.arg("-L.").current_dir(package.folder.root()));
            let mut used = Command::new(package.at("used"));
            let printed = support::run(used.current_dir(package.folder.root()));
            assert_eq!(printed, expected, "{linker} {kind}");
        }
    }
    // Nothing refers to them, and nothing keeps them.
    package.put(
        "main.rs",
        "#[allow(dead_code)] mod kernels { include!(concat!(env!(\"OUT_DIR\"), \"/kernels.rs\")); }\nfn main() {}\n",
    );
    support::run(&mut rustc(&package, &["-o", "unused", "-Copt-level=2"]));
    let headers = Command::new("readelf")
        .args(["-SW"])
        .arg(package.at("unused"))
        .output();
    let headers = String::from_utf8(headers.unwrap().stdout).unwrap();
    assert!(headers.contains(".rodata") && !headers.contains(".hip_fatbin"));
}

/// With a limit of 0, which has the effect of images of more than 1 GiB.
#[test]
fn links_large_images_with_every_linker() {
    let Some(package) = package(HIP) else { return };
    let builds = |variable: Option<&str>| {
        let mut script = package.script();
        script.envs(variable.map(|size| ("OFFLOAD_LARGE_IMAGES", size)));
        text(&script.output().unwrap())
    };
    builds(None);
    put_main(&package, "");
    support::run(&mut rustc(&package, &["-o", "main"]));
    let expected = support::run(&mut Command::new(package.at("main")));
    let usual = fs::read(library(&package).unwrap()).unwrap();
    let images = fs::read(package.at(OUT).join("offload/kernels/images")).unwrap();
    let told = builds(Some(&images.len().to_string()));
    assert!(
        told.contains("cargo::rerun-if-env-changed=OFFLOAD_LARGE_IMAGES"),
        "{told}"
    );
    assert_eq!(fs::read(library(&package).unwrap()).unwrap(), usual);
    builds(Some(&(images.len() - 1).to_string()));
    let member = support::run(
        Command::new("readelf")
            .arg("-SW")
            .arg(library(&package).unwrap()),
    );
    let row = member
        .lines()
        .find(|line| line.contains(" .lrodata.hip_fatbin "));
    // GNU's letters for SHF_ALLOC and SHF_X86_64_LARGE.
    assert!(row.is_some_and(|row| row.contains(" Al ")), "{member}");
    package.put(
        "use.c",
        "void use_images(void);\nint main(void) { use_images(); return 0; }\n",
    );
    let linkers = ["bfd", "gold", "lld"].map(|linker| format!("-Clink-arg=-fuse-ld={linker}"));
    let options: [&[&str]; 2] = [
        &["-Copt-level=2", "-Clink-arg=-Wl,--gc-sections"],
        &["--crate-type=cdylib", "-olibk.so"],
    ];
    for linker in &linkers {
        for options in options {
            let program = package.at("program");
            let _ = fs::remove_file(&program);
            let mut command = rustc(&package, &["-A", "dead_code", linker]);
            let is_library = options.contains(&"--crate-type=cdylib");
            command
                .args((!is_library).then_some("-oprogram"))
                .args(options);
            support::run(&mut command);
            if is_library {
                let mut cc = Command::new("cc");
                cc.args(["use.c", "-o", "program", "-L.", "-lk", "-Wl,-rpath,."]);
                support::run(cc.current_dir(package.folder.root()));
            }
            let mut command = Command::new(&program);
            let printed = support::run(command.current_dir(package.folder.root()));
            assert_eq!(printed, expected, "{linker} {options:?}");
            let file = if is_library {
                package.at("libk.so")
            } else {
                program
            };
            let large = section(&file, ".lrodata");
            let found = large.windows(images.len()).any(|bytes| bytes == images);
            assert!(found, "{linker} {options:?}");
        }
    }
}

/// The objects of modules with host code: sections of large data, to which only 64-bit words point.
#[test]
fn registers_large_images_by_64_bit_pointers() {
    let Some(package) = package(HIP) else { return };
    let flags = "flags = [\"-nogpulib\", \"-nogpuinc\"]\n";
    let header = support::launches::HEADER;
    package.put("kernels/launch.h", header);
    let launched = "#include \"launch.h\"\n__global__ void scale(int *x) { *x *= 2; }\n\
                    extern \"C\" int launch(int *x) { scale<<<1, 1>>>(x); return 0; }\n";
    package.put("kernels/k.hip", launched);
    package.put("kernels/k.c", support::package::KERNEL);
    for (keys, usual) in [
        (
            format!("language = \"hip\"\nhost = true\nrdc = true\nsources = [\"kernels/*.hip\"]\ntargets = [\"gfx90a\"]\n{flags}"),
            ".hip_fatbin",
        ),
        (
            "language = \"openmp\"\nsources = [\"kernels/*.c\"]\ntargets = [\"x86_64-pc-linux-gnu\"]\n".to_owned(),
            ".offloading.images",
        ),
    ] {
        package.declare(&keys);
        for limit in ["1G", "0"] {
            let _ = fs::remove_dir_all(package.at(OUT));
            let mut script = package.script();
            text(&script.env("OFFLOAD_LARGE_IMAGES", limit).output().unwrap());
            let bytes = fs::read(package.at(OUT).join("offload/kernels/module.o")).unwrap();
            let file = object::File::parse(&*bytes).unwrap();
            let name = match limit {
                "0" => format!(".lrodata{usual}"),
                _ => usual.to_owned(),
            };
            let images = file.section_by_name(&name).unwrap_or_else(|| panic!("{name}"));
            let SectionFlags::Elf { sh_flags, .. } = images.flags() else {
                panic!("{name}");
            };
            let large = if limit == "0" { 0x1000_0000 } else { 0 };
            assert_eq!(sh_flags.0, 2 | large, "{name}");
            let mut pointers = 0;
            for section in file.sections() {
                for (_, relocation) in section.relocations() {
                    let RelocationTarget::Symbol(symbol) = relocation.target() else {
                        continue;
                    };
                    let symbol = file.symbol_by_index(symbol).unwrap();
                    if symbol.section_index() == Some(images.index()) {
                        // R_X86_64_64
                        let r_type = RelocationFlags::Elf { r_type: object::elf::R_X86_64_64 };
                        assert_eq!(relocation.flags(), r_type, "{name}");
                        pointers += 1;
                    }
                }
            }
            assert!(pointers > 0, "{name}");
        }
    }
}

/// Two versions of one crate are two libraries with symbols of their own.
#[test]
fn links_two_versions_of_a_crate() {
    let (Some(first), Some(second)) = (package(HIP), package(HIP)) else {
        return;
    };
    second.put("kernels/k.hip", &KERNEL.replace("*=", "+="));
    let mut programs = Vec::new();
    for (package, version) in [(&first, "1.0.0"), (&second, "2.0.0")] {
        let mut script = package.script();
        text(&script.env("CARGO_PKG_VERSION", version).output().unwrap());
        put_main(package, "");
        let source = fs::read_to_string(package.at("main.rs")).unwrap();
        let name = format!("version{}", &version[..1]);
        package.put("main.rs", &source.replace("use_images", &name));
        let rlib = format!("lib{name}.rlib");
        support::run(&mut rustc(
            package,
            &["--crate-type=rlib", "--crate-name", &name, "-o", &rlib],
        ));
        programs.push(package.at(&rlib));
    }
    first.put(
        "both.rs",
        "fn main() { version1::version1(); version2::version2(); }\n",
    );
    let mut both = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    both.args(["--edition=2024", "both.rs", "-o", "both"]);
    for (name, rlib) in ["version1", "version2"].iter().zip(&programs) {
        both.arg(format!("--extern={name}={}", rlib.display()));
    }
    support::run(both.current_dir(first.folder.root()));
    let printed = support::run(&mut Command::new(first.at("both")));
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines.len() == 2 && lines[0] != lines[1], "{printed}");
    // In one section, each at a page of its own, in the linker's order.
    let found = section(&first.at("both"), ".hip_fatbin");
    let [one, other] = [&first, &second]
        .map(|package| fs::read(package.at(OUT).join("offload/kernels/images")).unwrap());
    let joined = |one: &[u8], other: &[u8]| {
        let mut whole = one.to_vec();
        whole.resize(whole.len().next_multiple_of(4096), 0);
        whole.extend(other);
        whole
    };
    assert!(found == joined(&one, &other) || found == joined(&other, &one));
}

#[test]
fn shows_cuda_images_to_nvidias_tool() {
    let (Some(cuobjdump), Some(package)) = (support::tool("cuda", &["cuobjdump"]), package(HIP))
    else {
        return;
    };
    package.put("kernels/k.cu", KERNEL);
    package.put("kernels/l.cu", &KERNEL.replace("scale", "other"));
    for (keys, count) in [("", 2), ("images = \"source\"\n", 4)] {
        package.declare(&format!(
                "language = \"cuda\"\nsources = [\"kernels/*.cu\"]\nflags = [\"-nogpulib\", \"-nogpuinc\"]\n\
                 targets = [\"sm_80\", \"sm_90\"]\n{keys}"
            ),
        );
        let mut script = package.script();
        script.env("CUDA_PATH", cuobjdump.ancestors().nth(2).unwrap());
        text(&script.output().unwrap());
        let uses = "for image in kernels::images() { println!(\"{} {}\", image.target, image.bytes.len()) }";
        package.put(
            "main.rs",
            &format!(
                "#[allow(dead_code)] mod kernels {{ include!(concat!(env!(\"OUT_DIR\"), \"/kernels.rs\")); }}\nfn main() {{ {uses} }}\n"
            ),
        );
        support::run(&mut rustc(&package, &["-o", "main"]));
        let printed = support::run(&mut Command::new(package.at("main")));
        assert_eq!(printed.lines().count(), count, "{printed}");
        let mut list = Command::new(&cuobjdump);
        let listed = support::run(list.arg("--list-elf").arg(package.at("main")));
        for target in ["sm_80", "sm_90"] {
            let found = listed.lines().filter(|line| line.contains(target)).count();
            assert_eq!(found, count / 2, "{listed}");
        }
    }
}

#[test]
fn includes_images_for_crates_that_forbid_unsafe_code() {
    let Some(package) = package(HIP) else { return };
    package.put("src/lib.rs", "#![forbid(unsafe_code)]\n");
    assert!(!package.builds().contains("rustc-link-lib"));
    put_main(&package, "#![forbid(unsafe_code)]");
    let safe = fs::read_to_string(package.at("main.rs")).unwrap();
    package.put("main.rs", &safe.replace("#[unsafe(no_mangle)]", ""));
    support::run(&mut rustc(&package, &["-o", "main"]));
    // What the package does not show, the compiler says: with the key.
    package.put("src/lib.rs", "");
    assert!(package.builds().contains("rustc-link-lib=static="));
    let output = rustc(&package, &["-o", "main"]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        error.contains("set `embed = \"include\"` in [package.metadata.offload]"),
        "{error}"
    );
}

#[test]
fn refuses_to_link_images_for_hosts_without_an_object_writer() {
    let Some(package) = package(&format!("{HIP}embed = \"link\"\n")) else {
        return;
    };
    let mut script = package.script();
    script.env("TARGET", "aarch64-apple-darwin");
    let error = package.fails(&mut script);
    assert!(
        error.contains("`embed = \"link\"` is not supported for `aarch64-apple-darwin` [OFF609]")
            && error.contains("hint: `embed = \"include\"` works for every host"),
        "{error}"
    );
    package.declare(HIP);
    let output = script.output().unwrap();
    let told = text(&output);
    assert!(!told.contains("rustc-link-lib"), "{told}");
}
