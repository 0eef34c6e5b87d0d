//! `cargo offload prune` of objects, archives, offload binaries and folders: programs linked from the pruned files print
//! the kept images as before.

use crate::commands::cargo_offload;
use crate::support::folder::Folder;
use std::fs::File;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use crate::prune::{cc, folder, printed, prune, pruned, size, unit, without_others};
use crate::support::{program, run, tool};

fn read(folder: &Folder, name: &str) -> Vec<u8> {
    std::fs::read(folder.path(name)).unwrap()
}

/// Returns what the unpruned program prints of the kept images.
fn expected(folder: &Folder, compiler: &Path, run_it: &[&str]) -> String {
    cc(folder, compiler, &["main.c", "images.c", "-o", "k"]);
    let command = [run_it, &["./k"]].concat();
    let lines = without_others(&printed(folder, &command), &["gfx1100"]);
    assert_eq!(lines.lines().count(), 4, "{lines}");
    lines
}

#[test]
fn prunes_objects_before_they_are_linked() {
    let folder = folder();
    let cc_path = Path::new("cc");
    let expected = expected(&folder, cc_path, &[]);
    for flags in [
        &["-g"][..],
        &["-ffunction-sections", "-fdata-sections"],
        &["-fno-pic"],
    ] {
        cc(&folder, cc_path, &[&["-c", "images.c"], flags].concat());
        let old = size(&folder, "images.o");
        let text = pruned(&folder, &["--keep=gfx1100", "--in-place", "images.o"]);
        assert!(text.contains("kept     gfx1100        2 images"), "{text}");
        assert!(size(&folder, "images.o") + 4 * 300_000 - 8192 < old);
        // Twice, and joined with others.
        let once = read(&folder, "images.o");
        pruned(&folder, &["--keep=gfx1100", "images.o", "-o", "twice.o"]);
        assert!(once == read(&folder, "twice.o"));
        let no_pie: &[&str] = if flags == ["-fno-pic"] {
            &["-no-pie"]
        } else {
            &[]
        };
        cc(
            &folder,
            cc_path,
            &[&["main.c", "images.o", "-o", "k"], no_pie].concat(),
        );
        assert_eq!(printed(&folder, &["./k"]), expected, "{flags:?}");
    }
    // Joined by `ld -r`, with other data around.
    cc(&folder, cc_path, &["-c", "main.c", "images.c"]);
    run(Command::new("ld")
        .args(["-r", "main.o", "images.o", "-o", "joined.o"])
        .current_dir(folder.root()));
    pruned(&folder, &["--keep=gfx1100", "--in-place", "joined.o"]);
    cc(&folder, cc_path, &["joined.o", "-o", "k"]);
    assert_eq!(printed(&folder, &["./k"]), expected);
    run(Command::new("objcopy")
        .args(["-g", "joined.o"])
        .current_dir(folder.root()));
    cc(&folder, cc_path, &["joined.o", "-o", "k"]);
    assert_eq!(printed(&folder, &["./k"]), expected);
}

#[test]
fn prunes_objects_for_aarch64() {
    let (Some(qemu), Some(compiler)) = (
        tool("qemu", &["qemu-aarch64"]),
        tool("qemu", &["aarch64-linux-gnu-gcc"]),
    ) else {
        return;
    };
    let folder = folder();
    let run_it = [qemu.to_str().unwrap(), "-L", "/usr/aarch64-linux-gnu"];
    let expected = expected(&folder, &compiler, &run_it);
    cc(&folder, &compiler, &["-c", "images.c"]);
    pruned(&folder, &["--keep=gfx1100", "--in-place", "images.o"]);
    cc(&folder, &compiler, &["main.c", "images.o", "-o", "k"]);
    assert_eq!(
        printed(&folder, &[&run_it[..], &["./k"]].concat()),
        expected
    );
}

#[test]
fn prunes_archives_and_keeps_their_index_and_headers() {
    let folder = folder();
    let cc_path = Path::new("cc");
    let expected = expected(&folder, cc_path, &[]);
    std::fs::write(folder.path("other.c"), "int other;\n").unwrap();
    cc(&folder, cc_path, &["-c", "images.c", "main.c", "other.c"]);
    folder.write("a member with a long name", "text");
    folder.write("odd.hipfb", [unit(3), vec![0]].concat());
    let members = [
        "images.o",
        "a member with a long name",
        "odd.hipfb",
        "main.o",
        "other.o",
    ];
    let ar = |arguments: &[&str]| {
        run(Command::new("ar")
            .args(arguments)
            .current_dir(folder.root()))
    };
    let _ = std::fs::remove_file(folder.path("libk.a"));
    ar(&[&["rcsU", "libk.a"][..], &members].concat());
    let described = |name: &str, list: &str| {
        let lines = ar(&[list, name]);
        // Permissions, owner, time and name; not the size.
        let words = lines.lines().map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            [&words[..2], &words[3..]].concat().join(" ")
        });
        words.collect::<Vec<_>>()
    };
    pruned(&folder, &["--keep=gfx1100", "libk.a", "-o", "small.a"]);
    assert_eq!(described("small.a", "tv"), described("libk.a", "tv"));
    let index = |name: &str| {
        let text = run(Command::new("nm")
            .args(["-s", name])
            .current_dir(folder.root()));
        text.split("\n\n").next().unwrap().to_owned()
    };
    assert!(
        index("libk.a").contains("images in images.o"),
        "{}",
        index("libk.a")
    );
    assert_eq!(index("small.a"), index("libk.a"));
    for name in ["main.o", "a member with a long name"] {
        let member = |archive| {
            let mut ar = Command::new("ar");
            ar.args(["p", archive, name]).current_dir(folder.root());
            ar.output().unwrap().stdout
        };
        assert!(member("small.a") == member("libk.a"), "{name}");
        assert!(!member("small.a").is_empty());
    }
    // The linker finds the members by the index.
    cc(&folder, cc_path, &["small.a", "-o", "k"]);
    assert_eq!(printed(&folder, &["./k"]), expected);
    assert!(size(&folder, "small.a") + 6 * 300_000 - 16_384 < size(&folder, "libk.a"));
}

/// Of a library that is linked with `+whole-archive`, rustc puts the archive into an object of the rlib.
#[test]
fn finds_and_prunes_the_images_of_a_library_in_an_rlib() {
    let folder = folder();
    let expected = expected(&folder, Path::new("cc"), &[]);
    cc(&folder, Path::new("cc"), &["-c", "images.c"]);
    folder.write(
        "lib.rs",
        "extern \"C\" { fn images() -> i32; }\npub fn show() { unsafe { images() }; }\n",
    );
    folder.write("show.rs", "fn main() { images::show() }\n");
    run(Command::new("ar")
        .args(["rcs", "libk.a", "images.o"])
        .current_dir(folder.root()));
    let rustc = |arguments: &[&str]| {
        let mut command = Command::new("rustc");
        run(command.args(arguments).current_dir(folder.root()))
    };
    let library = ["--crate-type=rlib", "--crate-name=images", "-L.", "lib.rs"];
    rustc(&[&library[..], &["-lstatic:+whole-archive=k"]].concat());
    let name = "libimages.rlib";
    let offload = |arguments: &[&str]| {
        let output = cargo_offload(&folder, arguments);
        String::from_utf8(output.stdout).unwrap()
    };
    let told = offload(&["inspect", name]);
    assert!(
        told.contains("libk.a, images.o, section .hip_fatbin"),
        "{told}"
    );
    let told = offload(&["size", name]);
    assert!(told.contains("gfx1201        2 images"), "{told}");
    let told = offload(&["verify", name]);
    assert!(told.contains("6 device images"), "{told}");
    let told = offload(&["extract", name, "--out=images"]);
    assert_eq!(told.lines().count(), 6, "{told}");
    let old = size(&folder, name);
    let told = pruned(&folder, &["--keep=gfx1100", "--in-place", name]);
    assert!(told.contains("kept     gfx1100        2 images"), "{told}");
    assert!(size(&folder, name) + 4 * 300_000 - 8192 < old);
    rustc(&[
        "--edition=2021",
        "--extern=images=libimages.rlib",
        "-L.",
        "show.rs",
    ]);
    assert_eq!(printed(&folder, &["./show"]), expected);
    pruned(&folder, &["--keep=gfx1100", name, "-o", "twice.rlib"]);
    assert!(read(&folder, name) == read(&folder, "twice.rlib"));
    // An object that cannot be pruned.
    let source = String::from_utf8(read(&folder, "images.c")).unwrap();
    folder.write(
        "inside.c",
        format!("{source}const char *inside = unit_two + 8;\n"),
    );
    cc(&folder, Path::new("cc"), &["-c", "inside.c"]);
    run(Command::new("ar")
        .args(["rcs", "libi.a", "inside.o"])
        .current_dir(folder.root()));
    rustc(&[&library[..], &["-lstatic:+whole-archive=i"]].concat());
    let output = prune(&folder, &["--keep=gfx1100", "--in-place", name]);
    let told = String::from_utf8(output.stderr).unwrap();
    let start = format!("error: {name}: member `libi.a(inside.o)`: a relocation points to");
    assert!(told.starts_with(&start), "{told}");
}

#[test]
fn refuses_objects_and_archives_that_it_cannot_prune() {
    let folder = folder();
    let source = String::from_utf8(read(&folder, "images.c")).unwrap();
    let write = |name: &str, text: &str| folder.write(name, text);
    write(
        "inside.c",
        &format!("{source}const char *inside = unit_two + 8;\n"),
    );
    write(
        "relative.c",
        &format!("{source}__asm__(\".data\\n.long unit_two - .\\n\");\n"),
    );
    for (name, expected) in [
        ("inside", "a relocation points to address 0x"),
        ("relative", "the relocation at address 0x"),
    ] {
        let (from, object) = (format!("{name}.c"), format!("{name}.o"));
        cc(&folder, Path::new("cc"), &["-c", &from]);
        let before = read(&folder, &object);
        let output = prune(&folder, &["--keep=gfx1100", "--in-place", &object]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        let start = format!("error: {object}: ");
        assert!(said.starts_with(&start), "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(before == read(&folder, &object));
    }
    cc(&folder, Path::new("cc"), &["-c", "images.c"]);
    let ar = |arguments: &[&str]| {
        run(Command::new("ar")
            .args(arguments)
            .current_dir(folder.root()))
    };
    ar(&["rcsT", "thin.a", "images.o"]);
    ar(&["rcs", "inner.a", "images.o"]);
    ar(&["rcs", "outer.a", "inner.a"]);
    for (name, expected) in [
        (
            "thin.a",
            "thin.a: the members of a thin archive are other files\nhint: prune these",
        ),
        (
            "outer.a",
            "outer.a: member `inner.a`: archives in archives are not pruned",
        ),
    ] {
        let output = prune(&folder, &["--keep=gfx1100", "--in-place", name]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.starts_with(&format!("error: {expected}")), "{said}");
    }
}

/// Objects of clang's new driver, with offload binaries that a linker wrapper would link.
#[test]
fn prunes_offload_binaries_in_objects_and_files() {
    let (Some(packager), Some(objdump)) = (
        tool("llvm22", &["llvm-offload-binary", "clang-offload-packager"]),
        tool("llvm22", &["llvm-objdump"]),
    ) else {
        return;
    };
    let folder = Folder::new();
    let write = |name: &str, bytes: &[u8]| folder.write(name, bytes);
    write("one", &[b'1'; 5000]);
    write("two", &[b'2'; 3001]);
    write("ptx", b".version 7.0\n.target sm_80\n");
    let image = |file: &str, triple: &str, arch: &str| {
        format!("--image=file={file},triple={triple},arch={arch},kind=openmp")
    };
    let pack = |output: &str, images: &[String]| {
        let mut command = Command::new(&packager);
        command.args(["-o", output]).args(images);
        run(command.current_dir(folder.root()));
    };
    let amd = "amdgcn-amd-amdhsa";
    let one = image("one", amd, "gfx90a:xnack+");
    let two = image("two", amd, "gfx1100");
    let ptx = image("ptx", "nvptx64-nvidia-cuda", "sm_80");
    pack("all", &[one.clone(), two.clone(), ptx.clone()]);
    pack("expected", &[two, ptx]);
    pruned(&folder, &["--keep=gfx1100", "all", "-o", "small"]);
    assert!(read(&folder, "small") == read(&folder, "expected"));
    pruned(
        &folder,
        &["--keep=gfx90a", "--ptx=drop", "all", "-o", "small"],
    );
    pack("expected", &[one]);
    assert!(read(&folder, "small") == read(&folder, "expected"));
    // In an object, with its symbol for all of the section.
    write(
        "k.s",
        b".section .llvm.offloading,\"e\",@0x6fff4c0b\n.p2align 3\n.type embedded, @object\nembedded:\n\
          .incbin \"all\"\n.size embedded, .-embedded\n.data\nafter: .quad after\n",
    );
    let Some(clang) = tool("llvm22", &["clang"]) else {
        return;
    };
    cc(&folder, &clang, &["-c", "k.s"]);
    pruned(
        &folder,
        &["--keep=gfx90a", "--ptx=drop", "k.o", "-o", "small.o"],
    );
    let listed = run(Command::new(objdump)
        .args(["--offloading", "small.o"])
        .current_dir(folder.root()));
    assert_eq!(listed.matches("OFFLOADING IMAGE").count(), 1, "{listed}");
    assert!(listed.contains("gfx90a:xnack+"), "{listed}");
    run(Command::new("objcopy")
        .args([
            "-O",
            "binary",
            "--only-section=.llvm.offloading",
            "--set-section-flags",
        ])
        .args([".llvm.offloading=alloc", "small.o", "section"])
        .current_dir(folder.root()));
    assert!(read(&folder, "section") == read(&folder, "expected"));
    let symbols = run(Command::new("readelf")
        .args(["-sW", "small.o"])
        .current_dir(folder.root()));
    let expected = read(&folder, "expected").len().to_string();
    let line = symbols
        .lines()
        .find(|line| line.ends_with(" embedded"))
        .unwrap();
    assert!(line.contains(&format!(" {expected} OBJECT")), "{line}");
}

#[test]
fn prunes_objects_of_nvcc() {
    let (Some(nvcc), Some(cuobjdump)) = (program("nvcc"), tool("cuda", &["cuobjdump"])) else {
        return;
    };
    let folder = Folder::new();
    let source = "__device__ int v[70000] = {1};\n\
                  __global__ void scale(float *x) { x[threadIdx.x] *= v[threadIdx.x]; }\n";
    folder.write("k.cu", source);
    for rdc in ["-rdc=false", "-rdc=true"] {
        let targets = [
            "-gencode=arch=compute_80,code=sm_80",
            "-gencode=arch=compute_90,code=[sm_90,compute_90]",
        ];
        cc(
            &folder,
            &nvcc,
            &[&["--no-compress", "-c", "k.cu", rdc][..], &targets].concat(),
        );
        let list = |option: &str, file: &str| {
            run(Command::new(&cuobjdump)
                .args([option, file])
                .current_dir(folder.root()))
        };
        assert!(list("--list-elf", "k.o").contains("sm_90"));
        pruned(&folder, &["--keep=sm_80", "k.o", "-o", "small.o"]);
        let elf = list("--list-elf", "small.o");
        assert!(
            elf.contains("sm_80") && !elf.contains("sm_90"),
            "{rdc}: {elf}"
        );
        assert!(list("--list-ptx", "small.o").contains("sm_90"), "{rdc}");
        // nvcc links it again.
        if rdc == "-rdc=true" {
            let link = [
                "-dlink",
                "-cudadevrt=none",
                "-arch=sm_80",
                "small.o",
                "-o",
                "device.o",
            ];
            cc(&folder, &nvcc, &link);
            assert!(list("--list-elf", "device.o").contains("sm_80"));
        }
    }
}

#[test]
fn removes_all_images_on_request() {
    let folder = Folder::new();
    folder.write("one", [b'1'; 5000]);
    folder.write(
        "k.s",
        ".section .llvm.offloading,\"e\",@0x6fff4c0b\n.incbin \"all\"\n.data\n.globl after\nafter: .quad after\n",
    );
    let image = "--image=file=one,triple=amdgcn-amd-amdhsa,arch=gfx90a,kind=openmp";
    let here = |program: &str, arguments: &[&str]| {
        run(Command::new(program)
            .args(arguments)
            .current_dir(folder.root()))
    };
    let packager = env!("CARGO_BIN_EXE_offload-packager");
    here(packager, &["-o", "all", image]);
    cc(&folder, Path::new("cc"), &["-c", "k.s"]);
    here("ar", &["rcs", "libk.a", "k.o"]);
    let mut files = vec!["all", "k.o", "libk.a"];
    if let Some(python) = program("python3") {
        let zip = ["-m", "zipfile", "-c", "k.zip", "k.o", "k.s"];
        here(python.to_str().unwrap(), &zip);
        files.push("k.zip");
    }
    for file in files {
        let refused = prune(&folder, &["--drop=gfx90a", file, "-o", "none"]);
        assert_eq!(refused.status.code(), Some(1), "{file}");
        let all = ["--drop=gfx90a", "--allow-empty", file, "-o", "none"];
        let text = pruned(&folder, &all);
        assert!(text.contains("removed  gfx90a  1 image "), "{text}");
        let bytes = read(&folder, "none");
        assert!(!bytes.windows(6).any(|part| part == b"gfx90a"), "{file}");
        match file {
            "all" => assert!(bytes.is_empty()),
            "k.zip" => {}
            _ => assert!(here("nm", &["none"]).contains(" D after"), "{file}"),
        }
    }
}

#[test]
fn prunes_folders() {
    let folder = folder();
    let path = |name: &str| folder.path(name);
    cc(&folder, Path::new("cc"), &["main.c", "images.c", "-o", "k"]);
    let expected = expected(&folder, Path::new("cc"), &[]);
    std::fs::create_dir_all(path("tree/bin/empty")).unwrap();
    std::fs::rename(path("k"), path("tree/bin/k")).unwrap();
    std::fs::rename(path("one"), path("tree/one.hipfb")).unwrap();
    std::fs::write(path("tree/text"), "text").unwrap();
    std::fs::write(path("tree/script"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(path("tree/script"), PermissionsExt::from_mode(0o750)).unwrap();
    let time = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let script = File::options().write(true).open(path("tree/script"));
    script.unwrap().set_modified(time).unwrap();
    symlink("bin/k", path("tree/link")).unwrap();
    symlink("nowhere", path("tree/dangling")).unwrap();
    // An object for 32 bits.
    let mut small = b"\x7fELF\x01\x01\x01".to_vec();
    small.resize(52, 0);
    (small[16], small[18], small[20]) = (1, 3, 1);
    std::fs::write(path("tree/small.o"), small).unwrap();
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/22.1.8");
    std::fs::copy(format!("{golden}/elf32le.o"), path("tree/images.o")).unwrap();
    // A file that is an image: of it nothing can be removed, and nothing is said.
    let ptx = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n";
    std::fs::write(path("tree/alone.ptx"), ptx).unwrap();
    // Folders need `-r`.
    let output = prune(&folder, &["--keep=gfx1100", "tree", "-o", "small"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(!path("small").exists());
    // A folder that its owner may not write to: the new one gets files.
    let read_only = std::fs::Permissions::from_mode(0o555);
    std::fs::set_permissions(path("tree/bin"), read_only).unwrap();
    let output = prune(&folder, &["--keep=gfx1100", "-r", "tree", "-o", "small"]);
    std::fs::set_permissions(path("tree/bin"), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches(" → ").count(), 2, "{text}");
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "cargo offload prune: warning: tree/images.o: its device images stay: expected a 64-bit little-endian ELF file for x86-64 or AArch64\n"
    );
    assert!(read(&folder, "small/images.o") == read(&folder, "tree/images.o"));
    std::fs::remove_file(path("tree/images.o")).unwrap();
    assert_eq!(printed(&folder, &["small/link"]), expected);
    assert!(size(&folder, "small/one.hipfb") + 600_000 < size(&folder, "tree/one.hipfb"));
    assert!(path("small/bin/empty").is_dir());
    assert_eq!(read(&folder, "small/text"), b"text");
    let mode = |name: &str| path(name).metadata().unwrap().permissions().mode();
    assert_eq!(mode("small/script"), mode("tree/script"));
    assert_eq!(mode("small/bin") & 0o777, 0o755);
    let copied = path("small/script").metadata().unwrap().modified();
    assert_eq!(copied.unwrap(), time);
    let target = |name: &str| std::fs::read_link(path(name)).unwrap();
    assert_eq!(target("small/dangling"), Path::new("nowhere"));
    assert_eq!(target("small/link"), Path::new("bin/k"));
    // Links of an earlier run would lead new files into the old folder.
    let all = || ["tree/one.hipfb", "small/one.hipfb"].map(|name| read(&folder, name));
    let before = all();
    std::fs::remove_file(path("small/one.hipfb")).unwrap();
    symlink("../tree/one.hipfb", path("small/one.hipfb")).unwrap();
    let output = prune(&folder, &["--keep=gfx1100", "-r", "tree", "-o", "small"]);
    assert_eq!(
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap()
        ),
        (
            Some(1),
            "error: small: the new folder is not empty\nhint: remove it, or name another one\n"
                .to_owned()
        )
    );
    assert!(all() == [before[0].clone(), before[0].clone()]);
    std::fs::remove_file(path("small/one.hipfb")).unwrap();
    folder.write("small/one.hipfb", &before[1]);
    // In place, with one file that has other targets: it stays, and is an error.
    let other = unit(4);
    let other = other
        .windows(7)
        .position(|part| part == b"gfx1100")
        .map(|at| {
            let mut other = other.clone();
            other[at..at + 7].copy_from_slice(b"gfx1101");
            other
        });
    std::fs::write(path("tree/other.hipfb"), other.as_ref().unwrap()).unwrap();
    let output = prune(&folder, &["--keep=gfx1100", "-r", "tree", "--in-place"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("error: tree/other.hipfb: no image would remain; "),
        "{said}"
    );
    assert!(&read(&folder, "tree/other.hipfb") == other.as_ref().unwrap());
    for name in ["bin/k", "one.hipfb", "text"] {
        let both = ["tree", "small"].map(|start| read(&folder, &format!("{start}/{name}")));
        assert!(both[0] == both[1], "{name}");
    }
    // The same file is copied, if the folder is new.
    let output = prune(&folder, &["--keep=gfx1100", "-r", "tree", "-o", "third"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(&read(&folder, "third/other.hipfb") == other.as_ref().unwrap());
    let output = prune(
        &folder,
        &["--keep=gfx1100", "-r", "tree", "-o", "tree/inner"],
    );
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        said,
        "error: tree/inner: the new folder is inside of the old one\n"
    );
    assert!(!path("tree/inner").exists());
}
