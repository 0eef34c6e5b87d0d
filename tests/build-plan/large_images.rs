//! Large images: no build script reads one into memory. It gets 64 MiB of address space, half of an image. Programs that it
//! starts may have more, and device links make images with a hole at the end.

use crate::support;

use std::fs;
use std::process::Command;
use support::package::{OUT, Package, text};

const IMAGE: u64 = 128 << 20;
/// Address space of the build script in KiB.
const LIMIT: u64 = 64 << 10;

/// Lets programs have more memory than the build script.
const FREE: &str = "#!/bin/sh\nulimit -S -v unlimited\n";

/// A package whose clang makes large images: what it links.
fn package() -> Option<Package> {
    let package = Package::new("")?;
    let clang = format!(
        "{FREE}case \" $* \" in *' -c '*|*' -r '*|*' -E '*) exec /usr/bin/clang-19 \"$@\";; esac\n\
         /usr/bin/clang-19 \"$@\" || exit\n\
         for a; do [ \"$last\" = -o ] && truncate -s {IMAGE} \"$a\"; last=$a; done\n"
    );
    package.put("llvm/bin/clang", &clang);
    for name in ["cc", "ld"] {
        package.put(
            &format!("free/{name}"),
            &format!("{FREE}exec /usr/bin/{name} \"$@\"\n"),
        );
    }
    Some(package)
}

/// Builds what the keys declare with little memory. glibc reserves address space for each thread, so all share one heap.
fn builds(package: &Package, keys: &str) {
    package.declare(keys);
    let script = package.script();
    let mut shell = Command::new("sh");
    let limited = format!("ulimit -S -v {LIMIT}; exec \"$0\"");
    shell
        .args(["-c", &limited])
        .arg(script.get_program())
        .env_clear();
    for (name, value) in script.get_envs() {
        shell.env(name, value.unwrap());
    }
    shell
        .env("MALLOC_ARENA_MAX", "1")
        .env(
            "PATH",
            format!("{}:/usr/bin:/bin", package.at("free").display()),
        )
        .current_dir(package.folder.root());
    text(&shell.output().unwrap());
}

/// Size of the module's static library in bytes.
fn library(package: &Package) -> u64 {
    let files = fs::read_dir(package.at(OUT)).unwrap();
    let files = files.map(|file| file.unwrap());
    let mut library = files.filter(|file| file.path().extension().is_some_and(|end| end == "a"));
    library.next().unwrap().metadata().unwrap().len()
}

#[test]
fn packs_large_images_in_little_memory() {
    let Some(package) = package() else {
        return;
    };
    package.put(
        "kernels/k.hip",
        "extern \"C\" __attribute__((global)) void scale(int *x, int y) { *x *= y; }\n",
    );
    let hip = "language = \"hip\"\nsources = [\"kernels/*.hip\"]\nflags = [\"-nogpulib\", \"-nogpuinc\"]\n\
         targets = [\"gfx90a\"]\n";
    let all = [
        "",
        "embed = \"include\"\n",
        "container = \"offload-binary\"\n",
        "container = \"raw\"\n",
    ];
    for keys in support::share(all, 0, 2) {
        fs::remove_dir_all(package.at("target")).ok();
        builds(&package, &format!("{hip}{keys}"));
        let images = package.at(OUT).join("offload/kernels/images");
        let size = fs::metadata(&images).unwrap().len();
        assert!(size >= IMAGE, "{keys}");
        if !keys.starts_with("embed") {
            assert!(library(&package) > size, "{keys}");
        }
    }
    // The same images, taken out of a bundle and out of a file of their own.
    fs::remove_dir_all(package.at("target")).unwrap();
    builds(&package, hip);
    let bundle = package.at("kernels.hipfb");
    fs::rename(package.at(OUT).join("offload/kernels/images"), &bundle).unwrap();
    fs::remove_dir_all(package.at("target")).unwrap();
    builds(
        &package,
        "language = \"prebuilt\"\nsources = [\"kernels.hipfb\"]\ntargets = [\"gfx90a\"]\n",
    );
    assert!(library(&package) > IMAGE);
}

#[test]
fn registers_large_images_in_little_memory() {
    let Some(package) = package() else {
        return;
    };
    let openmp = "language = \"openmp\"\nsources = [\"kernels/*.c\"]\ntargets = [\"gfx90a\"]\nflags = [\"-nogpulib\"]\n";
    builds(&package, openmp);
    assert!(library(&package) > IMAGE);
}
