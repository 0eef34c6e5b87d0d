//! Modules of images that were there, whatever holds them.

use crate::support;

use offload_formats::format::bundle::{self, BundleImage};
use offload_formats::format::compressed_bundle::{Compression, compress};
use offload_formats::format::fatbin;
use offload_formats::format::offload_binary::{self, Method, NewBinaryEntry, OffloadBinaryVersion};
use offload_formats::format::pieces;
use offload_formats::names::{ImageKind, LlvmRelease, OffloadKind};
use std::fs::{self, File};
use std::num::NonZeroU64;
use std::process::Command;
use support::cuda_package::{CUDA, cuda, images, package, script, targets, theirs};
use support::package::{OUT, Package, text};

/// The build script of a module of images, where there is no compiler.
fn prebuilt(package: &Package, sources: &str, names: &[&str]) -> Command {
    let sources = format!("language = \"prebuilt\"\nsources = [{sources}]\n");
    package.declare(&format!("{sources}{}", targets(names)));
    let mut script = package.script();
    script.env("OFFLOAD_COMPILER", "").env("PATH", "/nowhere");
    script
}

#[test]
fn takes_ptx_and_cubins_out_of_fat_binaries() {
    let names = ["sm_90", "compute_90"];
    let (Some(cuda), Some(package)) = (cuda(), package(&format!("{CUDA}{}", targets(&names))))
    else {
        return;
    };
    text(&script(&package, &cuda).output().unwrap());
    fs::create_dir_all(package.at("images")).unwrap();
    let cubin = fs::read(package.image("sm_90")).unwrap();
    let ptx = fs::read(package.image("compute_90")).unwrap();
    fs::write(package.at("images/k.cubin"), &cubin).unwrap();
    fs::write(package.at("images/k.ptx"), &ptx).unwrap();
    let plain = images(&package);
    fs::write(package.at("images/plain.fatbin"), &plain).unwrap();
    let files = [
        ("kind=elf,sm=90", &*package.at("images/k.cubin")),
        ("kind=ptx,sm=90", &*package.at("images/k.ptx")),
    ];
    for (name, options) in [
        ("some", &[][..]),
        ("all", &["--compress-all"]),
        ("lz4", &["--compress-all", "--compress-mode=speed"]),
        ("group", &["--compress-all", "--concat"]),
    ] {
        let compressed = theirs(&cuda, &package, options, &files);
        fs::write(package.at(&format!("images/{name}.fatbin")), compressed).unwrap();
    }
    let two = [plain.clone(), plain.clone()].concat();
    fs::write(package.at("images/two.fatbin"), two).unwrap();
    let starts = package.starts();
    let build = |sources: &str, names: &[&str]| prebuilt(&package, sources, names);
    let builds = |sources: &str, names: &[&str]| text(&build(sources, names).output().unwrap());
    // By themselves, and out of a fat binary, of which one is like another.
    builds("\"images/k.ptx\", \"images/k.cubin\"", &names);
    assert!(images(&package) == plain);
    // Cargo runs the script again if a source without an image for a target gets one.
    let told = builds("\"images/k.ptx\", \"images/k.cubin\"", &["sm_90"]);
    for name in ["k.ptx", "k.cubin"] {
        let path = package.at("images").join(name);
        let line = format!("cargo::rerun-if-changed={}\n", path.display());
        assert!(told.contains(&line), "{told}");
    }
    for source in ["plain", "two"] {
        fs::remove_dir_all(package.at(OUT)).unwrap();
        builds(&format!("\"images/{source}.fatbin\""), &names);
        assert!(images(&package) == plain, "{source}");
        assert!(
            fs::read(package.image("sm_90")).unwrap() == cubin,
            "{source}"
        );
    }
    // Compressed ones, alone and together.
    for name in ["some", "all", "lz4", "group"] {
        fs::remove_dir_all(package.at(OUT)).unwrap();
        builds(&format!("\"images/{name}.fatbin\""), &names);
        assert!(images(&package) == plain, "{name}");
        assert!(fs::read(package.image("sm_90")).unwrap() == cubin, "{name}");
    }
    // One that cannot be unpacked is an error for whoever asks for it.
    let mut damaged = fs::read(package.at("images/some.fatbin")).unwrap();
    let entries = fatbin::parse(&damaged[..], 0..damaged.len() as u64).unwrap();
    let text_of = usize::try_from(entries[1].image.start).unwrap();
    damaged[text_of..text_of + 4].fill(0);
    fs::write(package.at("images/damaged.fatbin"), damaged).unwrap();
    builds("\"images/damaged.fatbin\"", &["sm_90"]);
    assert!(fs::read(package.image("sm_90")).unwrap() == cubin);
    let error = package.fails(&mut build("\"images/damaged.fatbin\"", &["compute_90"]));
    let expected = "module `kernels`: no image for `compute_90` [OFF510]: images/damaged.fatbin: PTX for sm_90 of a CUDA fat \
                    binary: the zstd frame is damaged: ";
    assert!(error.starts_with(expected), "{error}");
    let mut limited = build("\"images/lz4.fatbin\"", &["sm_90"]);
    let error = package.fails(limited.env("OFFLOAD_MAX_DECOMPRESSED_SIZE", "1K"));
    assert!(
        error.starts_with("module `kernels`: no image for `sm_90` [OFF510]: images/lz4.fatbin: cubin for sm_90 of a CUDA fat binary: ")
            && error.contains(" exceeds the limit 0x400\nhint: OFFLOAD_MAX_DECOMPRESSED_SIZE=<size> allows more [OFF704]"),
        "{error}"
    );
    // Of all images together.
    let packed = fs::read(package.at("images/lz4.fatbin")).unwrap();
    let entries = fatbin::parse(&packed[..], 0..packed.len() as u64).unwrap();
    let limit = entries[0].uncompressed_size.to_string();
    let limited = |target: &str| {
        let mut limited = build("\"images/lz4.fatbin\"", &[target]);
        limited.env("OFFLOAD_MAX_DECOMPRESSED_SIZE", &limit);
        limited
    };
    text(&limited("sm_90").output().unwrap());
    let error = package.fails(&mut limited("compute_90"));
    assert!(error.contains(" exceeds the limit 0x0\nhint: "), "{error}");
    let error = package.fails(&mut build("\"images/plain.fatbin\"", &["compute_80"]));
    let expected = "module `kernels`: no image for `compute_80`: `images/plain.fatbin` has nvptx64-nvidia-cuda sm_90, \
                    nvptx64-nvidia-cuda sm_90 (PTX) [OFF510]\nhint: add a source with such an image";
    assert!(error.starts_with(expected), "{error}");
    fs::write(package.at("images/cut.fatbin"), &plain[..plain.len() - 8]).unwrap();
    let error = package.fails(&mut build("\"images/cut.fatbin\"", &["sm_90"]));
    assert!(
        error.starts_with("images/cut.fatbin: CUDA fat binary: images at offset 0x10 with size "),
        "{error}"
    );
    assert_eq!(package.starts(), starts);
}

#[test]
fn takes_images_of_cuda_out_of_bundles_and_offload_binaries() {
    let names = ["sm_90", "sm_80", "compute_80"];
    let (Some(cuda), Some(package), Some(bundler), Some(packager)) = (
        cuda(),
        package(&format!("{CUDA}{}", targets(&names))),
        support::tool("llvm22", &["clang-offload-bundler"]),
        support::tool("llvm22", &["llvm-offload-binary"]),
    ) else {
        return;
    };
    text(&script(&package, &cuda).output().unwrap());
    let plain = images(&package);
    fs::create_dir_all(package.at("images")).unwrap();
    for name in names {
        fs::copy(package.image(name), package.at(&format!("images/{name}"))).unwrap();
    }
    let all = |command: &mut Command, package: &Package| {
        for name in ["sm_90", "sm_80"] {
            command.arg(format!(
                "-input={}",
                package.at("images").join(name).display()
            ));
        }
    };
    let mut command = Command::new(&bundler);
    command.args([
        "-type=o",
        "-input=/dev/null",
        "-targets=host-x86_64-unknown-linux-gnu-,openmp-nvptx64-nvidia-cuda--sm_90,openmp-nvptx64-nvidia-cuda--sm_80",
    ]);
    all(&mut command, &package);
    support::run(command.arg(format!(
        "-output={}",
        package.at("images/all.bundle").display()
    )));
    let mut command = Command::new(&packager);
    command.arg("-o").arg(package.at("images/all.bin"));
    for (name, kind) in [
        ("sm_90", "cubin"),
        ("sm_80", "cubin"),
        ("compute_80", "ptx"),
    ] {
        let file = package.at("images").join(name);
        // The packager tells the kind by the extension.
        let renamed = file.with_extension(if kind == "ptx" { "s" } else { kind });
        fs::copy(&file, &renamed).unwrap();
        command.arg(format!(
            "--image=file={},triple=nvptx64-nvidia-cuda,arch={},kind=cuda",
            renamed.display(),
            name.replace("compute", "sm")
        ));
    }
    support::run(&mut command);
    let builds = |sources: &str| {
        fs::remove_dir_all(package.at(OUT)).unwrap();
        text(&prebuilt(&package, sources, &names).output().unwrap());
        assert!(images(&package) == plain, "{sources}");
    };
    builds("\"images/all.bin\"");
    builds("\"images/all.bundle\", \"images/compute_80\"");
    // Texts of a bundle: PTX.
    let mut command = Command::new(&bundler);
    command.args(["-type=s", "-input=/dev/null"]);
    command.arg(format!(
        "-input={}",
        package.at("images/compute_80").display()
    ));
    command.arg("-targets=host-x86_64-unknown-linux-gnu-,openmp-nvptx64-nvidia-cuda--sm_80");
    support::run(command.arg(format!("-output={}", package.at("images/texts").display())));
    // The same image twice is one.
    let sources = "\"images/all.bin\", \"images/texts\"";
    text(&prebuilt(&package, sources, &names).output().unwrap());
    assert!(images(&package) == plain);
    let mut script = prebuilt(&package, "\"images/texts\"", &["compute_80"]);
    text(&script.output().unwrap());
    let ours = fs::read_to_string(package.image("compute_80")).unwrap();
    let there = fs::read_to_string(package.at("images/compute_80")).unwrap();
    assert_eq!(ours, there);
    let error = package.fails(&mut prebuilt(&package, "\"images/texts\"", &["sm_80"]));
    assert!(
        error.contains("`images/texts` has nvptx64-nvidia-cuda sm_80 (PTX) [OFF510]\n"),
        "{error}"
    );
}

/// The image for every setting of XNACK serves the target, too.
#[test]
fn takes_the_image_that_a_container_names_for_the_target() {
    let (Some(package), Some(clang), Some(packager)) = (
        Package::new(""),
        support::tool("llvm22", &["clang"]),
        support::tool("llvm22", &["llvm-offload-binary"]),
    ) else {
        return;
    };
    package.put(
        "k.hip",
        "__attribute__((global)) void k(int *p) { *p = 1; }\n",
    );
    let processors = ["gfx90a", "gfx90a:xnack+"];
    for processor in processors {
        let mut command = Command::new(&clang);
        command.args([
            "--offload-device-only",
            "--no-gpu-bundle-output",
            "-nogpulib",
            "-nogpuinc",
        ]);
        command.arg(format!("--offload-arch={processor}"));
        support::run(
            command
                .arg(package.at("k.hip"))
                .arg("-o")
                .arg(package.at(processor)),
        );
    }
    let mut command = Command::new(&packager);
    command.arg("-o").arg(package.at("both.bin"));
    for processor in processors {
        let file = package.at(processor);
        command.arg(format!(
            "--image=file={},triple=amdgcn-amd-amdhsa,arch={processor},kind=hip",
            file.display()
        ));
    }
    support::run(&mut command);
    text(
        &prebuilt(&package, "\"both.bin\"", &["gfx90a:xnack+"])
            .output()
            .unwrap(),
    );
    let expected = fs::read(package.at("gfx90a:xnack+")).unwrap();
    assert!(fs::read(package.image("gfx90a-xnack+")).unwrap() == expected);
}

#[test]
fn reads_headers_alone_when_it_plans() {
    let names = ["sm_90", "compute_80"];
    let (Some(cuda), Some(package)) = (cuda(), package(&format!("{CUDA}{}", targets(&names))))
    else {
        return;
    };
    text(&script(&package, &cuda).output().unwrap());
    // More than any machine has memory for, and nearly nothing on its disk.
    for (name, file) in [("sm_90", "k.cubin"), ("compute_80", "k.ptx")] {
        fs::copy(package.image(name), package.at(file)).unwrap();
        let file = File::options().write(true).open(package.at(file)).unwrap();
        file.set_len(1 << 43).unwrap();
    }
    let mut script = prebuilt(&package, "\"k.cubin\", \"k.ptx\"", &names);
    let output = script.env("OFFLOAD_DRY_RUN", "1").output().unwrap();
    let plan = String::from_utf8(output.stderr).unwrap();
    assert!(plan.contains("# image for sm_90 of "), "{plan}");
    assert!(plan.contains("# image for compute_80 of "), "{plan}");
}

#[test]
fn refuses_images_that_claim_more_than_the_limit() {
    let Some(package) = Package::new("") else {
        return;
    };
    let mut object = include_bytes!("../golden/22.1.8/elf64le.o").to_vec();
    object[0x10] = 3; // a shared object
    object[0x12] = 224; // of AMD
    object[0x30] = 0x2f; // gfx906
    let images = [BundleImage {
        id: "hip-amdgcn-amd-amdhsa--gfx906",
        image: &object,
    }];
    let bundle = bundle::to_bytes(&images, NonZeroU64::MIN).unwrap();
    let packed = compress(&bundle, Compression::default()).unwrap();
    fs::write(package.at("packed.bundle"), packed).unwrap();
    let image = NewBinaryEntry {
        image_kind: ImageKind::OBJECT,
        offload_kind: OffloadKind::HIP,
        strings: &[(b"triple", b"amdgcn-amd-amdhsa"), (b"arch", b"gfx906")],
        image_size: object.len() as u64,
        ..Default::default()
    };
    let binary =
        offload_binary::layout(&[image], OffloadBinaryVersion::V3, LlvmRelease::Main).unwrap();
    let binary = pieces::to_bytes(&binary, &[&object]).unwrap();
    let packed = offload_binary::compress(&binary, Method::Zstd, None).unwrap();
    fs::write(package.at("packed.bin"), packed).unwrap();
    for (source, size) in [
        ("packed.bundle", bundle.len()),
        ("packed.bin", binary.len()),
    ] {
        let build = |limit: String| {
            let mut script = prebuilt(&package, &format!("{source:?}"), &["gfx906"]);
            script.env("OFFLOAD_MAX_DECOMPRESSED_SIZE", limit);
            script
        };
        let said = package.fails(&mut build((size - 1).to_string()));
        let allowed = format!("size {size:#x} is more than the allowed {:#x}", size - 1);
        assert!(said.contains(&allowed), "{said}");
        assert!(said.contains(source), "{said}");
        let hint = "hint: OFFLOAD_MAX_DECOMPRESSED_SIZE=<size> allows more [OFF704]";
        assert!(said.contains(hint), "{said}");
        // It is read then: there is no kernel in it.
        let said = package.fails(&mut build(size.to_string()));
        assert!(said.contains("no kernel in any source"), "{said}");
        let said = package.fails(&mut build("much".to_owned()));
        let expected = "OFFLOAD_MAX_DECOMPRESSED_SIZE: `much` is not a size";
        assert!(said.contains(expected), "{said}");
        // No place for what is unpacked.
        let said = package.fails(build(size.to_string()).env("TMPDIR", package.at("missing")));
        let hint = "\nhint: set TMPDIR to a folder with enough space";
        assert!(said.contains(hint), "{said}");
        assert!(said.contains(source), "{said}");
    }
    // The limit is for all sources together.
    let mut both = prebuilt(&package, "\"packed.*\"", &["gfx906"]);
    let sum = bundle.len() + binary.len();
    both.env("OFFLOAD_MAX_DECOMPRESSED_SIZE", (sum - 1).to_string());
    let said = package.fails(&mut both);
    assert!(said.contains("more than the allowed"), "{said}");
}
