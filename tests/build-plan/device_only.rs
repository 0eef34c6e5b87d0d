//! Modules of HIP and CUDA without host code: their images, in containers that the vendors' tools make and read.

use crate::support;

use std::fs;
use std::path::Path;
use std::process::Command;
use support::cuda_package::{cuda, images, program};
use support::package::{OUT, Package, text};

const HIP: &str =
    "language = \"hip\"\nsources = [\"kernels/*.hip\"]\nflags = [\"-nogpulib\", \"-nogpuinc\"]\n";
const CUDA: &str =
    "language = \"cuda\"\nsources = [\"kernels/*.cu\"]\nflags = [\"-nogpulib\", \"-nogpuinc\"]\n";
const AMD: &str = "targets = [\"gfx90a:xnack-\", \"gfx1100\", \"gfx942\"]\n";
const NVIDIA: &str = "targets = [\"sm_90\", \"sm_80\"]\n";
const HEADER: &str = "#define __global__ __attribute__((global))\n#define __device__ __attribute__((device))\n\
    __device__ int twice(int x);\n";
const KERNEL: &str =
    "#include \"k.h\"\nextern \"C\" __global__ void scale(int *x) { *x = twice(*x); }\n";
/// A function of the device that another file calls.
const HELPER: &str = "#include \"k.h\"\n__device__ int twice(int x) { return 2 * x; }\n";

/// A package with sources of that extension, in the place of OpenMP's.
fn package(extension: &str, keys: &str) -> Option<Package> {
    let package = Package::new("")?;
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put("kernels/k.h", HEADER);
    package.put(&format!("kernels/k.{extension}"), KERNEL);
    package.put(&format!("kernels/helper.{extension}"), HELPER);
    package.declare(keys);
    Some(package)
}

fn image(package: &Package, target: &str) -> Vec<u8> {
    fs::read(package.image(target)).unwrap()
}

#[test]
fn bundles_images_as_amds_runtime_reads_them() {
    let Some(package) = package("hip", &format!("{HIP}{AMD}")) else {
        return;
    };
    let Some(bundler) = support::tool("llvm22", &["clang-offload-bundler"]) else {
        return;
    };
    let told = package.builds();
    assert!(
        told.contains("cargo::rustc-cfg=offload_target_gfx90a_xnack_off\n"),
        "{told}"
    );
    // The images are linked, and nothing else: no runtime.
    let linked: Vec<&str> = told
        .lines()
        .filter(|line| line.contains("rustc-link-lib"))
        .collect();
    assert!(
        linked.len() == 1 && linked[0].starts_with("cargo::rustc-link-lib=static=pack_kernels_"),
        "{told}"
    );
    let folders = ["gfx90a-xnack-", "gfx1100", "gfx942"];
    let mut command = Command::new(bundler);
    command.args(["-type=o", "-bundle-align=4096", "-input=/dev/null"]);
    for folder in folders {
        let image = package
            .at(OUT)
            .join("offload/kernels")
            .join(folder)
            .join("image");
        command.arg(format!("-input={}", image.display()));
    }
    command.arg(
        "-targets=host-x86_64-unknown-linux-gnu-,hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-,\
         hipv4-amdgcn-amd-amdhsa--gfx1100,hipv4-amdgcn-amd-amdhsa--gfx942",
    );
    let theirs = package.at("theirs");
    support::run(command.arg(format!("-output={}", theirs.display())));
    assert!(images(&package) == fs::read(&theirs).unwrap());

    let main = "let image = kernels::image().unwrap(); println!(\"{} {}\", image.len(), image.as_ptr() as usize % 4096);\
                for i in kernels::images() { println!(\"{} {} {}\", i.target, i.kind, i.bytes.len()); }\
                println!(\"{:?}\", kernels::KERNELS);";
    let [one, two, three] = folders.map(|folder| image(&package, folder).len());
    let expected = format!(
        "{} 0\ngfx90a:xnack- object {one}\ngfx1100 object {two}\ngfx942 object {three}\n[\"scale\"]\n",
        images(&package).len()
    );
    assert_eq!(program(&package, main), expected);
}

#[test]
fn packs_cubins_as_nvidias_tools_do() {
    let (Some(cuda), Some(package)) = (cuda(), package("cu", &format!("{CUDA}{NVIDIA}"))) else {
        return;
    };
    // With a clang that has a helper for nvlink of its own, and with one that has none.
    let mut script = package.script();
    script.env("CUDA_PATH", &cuda);
    if let Some(clang) = support::tool("llvm22", &["clang"]) {
        text(&script.env("OFFLOAD_COMPILER", clang).output().unwrap());
        assert!(images(&package).starts_with(b"\x50\xed\x55\xba"));
    }
    script.env("OFFLOAD_COMPILER", package.at("llvm/bin/clang"));
    text(&script.output().unwrap());
    let mut command = Command::new(cuda.join("bin/fatbinary"));
    command.arg("-64").arg("--create").arg(package.at("theirs"));
    for number in ["90", "80"] {
        let image = package
            .at(OUT)
            .join(format!("offload/kernels/sm_{number}/image"));
        command.arg(format!(
            "--image3=kind=elf,sm={number},file={}",
            image.display()
        ));
    }
    support::run(&mut command);
    assert!(images(&package) == fs::read(package.at("theirs")).unwrap());
    let main = "for i in kernels::images() { println!(\"{} {}\", i.target, i.bytes.starts_with(b\"\\x7fELF\")); }\
                println!(\"{:?}\", kernels::KERNELS);";
    assert_eq!(
        program(&package, main),
        "sm_90 true\nsm_80 true\n[\"scale\"]\n"
    );

    // PTX of the toolkit's own compiler calls device functions of other files as well.
    let resources = support::run(
        Command::new(cuda.join("bin/cuobjdump"))
            .arg("--dump-resource-usage")
            .arg(package.at(OUT).join("offload/kernels/images")),
    );
    assert_eq!(
        resources.matches("Function scale:").count(),
        2,
        "{resources}"
    );
}

#[test]
fn packs_images_as_the_manifest_says() {
    let Some(package) = package("hip", &format!("{HIP}targets = [\"gfx90a\", \"gfx942\"]\n"))
    else {
        return;
    };
    let build = |container: &str, targets: &str| {
        let mut script = package.script();
        script
            .env("OFFLOAD_CONTAINER", container)
            .env("OFFLOAD_TARGETS", targets);
        text(&script.output().unwrap());
    };
    let main = "match kernels::image() { Ok(image) => println!(\"{}\", image.len()), Err(error) => println!(\"{error}\") }\
                for i in kernels::images() { println!(\"{}\", i.bytes.len()); }";
    let both = ["gfx90a", "gfx942"];
    build("offload-binary", "gfx90a;gfx942");
    let sizes = both.map(|folder| image(&package, folder).len());
    let [one, two] = sizes;
    let all = images(&package).len();
    assert_eq!(program(&package, main), format!("{all}\n{one}\n{two}\n"));
    if let Some(packager) = support::tool("llvm22", &["llvm-offload-binary"]) {
        for folder in both {
            let mut command = Command::new(&packager);
            command.arg(package.at(OUT).join("offload/kernels/images"));
            command.arg(format!(
                "--image=file={},arch={folder},kind=hip",
                package.at("out").display()
            ));
            support::run(&mut command);
            assert!(
                fs::read(package.at("out")).unwrap() == image(&package, folder),
                "{folder}"
            );
        }
    }
    build("raw", "gfx90a;gfx942");
    let none = "device code was not built: the images are in no container: `images` has each";
    assert_eq!(program(&package, main), format!("{none}\n{one}\n{two}\n"));
    // A single image needs none.
    build("raw", "gfx942");
    assert!(images(&package) == image(&package, "gfx942"));
    assert_eq!(program(&package, main), format!("{two}\n{two}\n"));
}

#[test]
fn compresses_bundles_as_llvm_reads_them() {
    let keys = format!("{HIP}{AMD}compress = \"zstd:19\"\n");
    let (Some(package), Some(bundler)) = (
        package("hip", &keys),
        support::tool("llvm22", &["clang-offload-bundler"]),
    ) else {
        return;
    };
    package.builds();
    let packed = images(&package);
    // Version 2, by zstd.
    assert!(
        packed.starts_with(b"CCOB\x02\0\x01\0"),
        "{:?}",
        &packed[..8]
    );
    let main = "println!(\"{}\", kernels::image().unwrap().len()); \
                println!(\"{}\", kernels::images().iter().all(|image| image.bytes.is_empty()));";
    assert_eq!(program(&package, main), format!("{}\ntrue\n", packed.len()));
    for compress in ["zstd:19", "zlib", "none"] {
        text(
            &package
                .script()
                .env("OFFLOAD_COMPRESS", compress)
                .output()
                .unwrap(),
        );
        let mut command = Command::new(&bundler);
        command.args([
            "-type=o",
            "-unbundle",
            "-targets=hipv4-amdgcn-amd-amdhsa--gfx942",
        ]);
        command.arg(format!("-output={}", package.at("out").display()));
        let input = package.at(OUT).join("offload/kernels/images");
        support::run(command.arg(format!("-input={}", input.display())));
        assert!(
            fs::read(package.at("out")).unwrap() == image(&package, "gfx942"),
            "{compress}"
        );
    }
}

#[test]
fn tells_which_kernels_not_every_image_has() {
    let Some(package) = package("hip", &format!("{HIP}{AMD}")) else {
        return;
    };
    package.put(
        "kernels/more.hip",
        "#include \"k.h\"\n#ifndef __gfx942__\nextern \"C\" __global__ void more(int *x) { ++*x; }\n#endif\n",
    );
    // What no target has is no excuse.
    package.put("kernels/none.hip", "");
    package.declare(&format!("{HIP}{AMD}exclude = [\"kernels/none.hip\"]\n"));
    let warnings = |told: &str| -> Vec<String> {
        let warnings = told
            .lines()
            .filter_map(|line| line.strip_prefix("cargo::warning="));
        warnings.map(str::to_owned).collect()
    };
    let told = package.builds();
    let title = "images of `kernels`:";
    let lacks_more = "warning: gfx942 has no kernel `more`, which other targets have";
    assert_eq!(warnings(&told)[..2], [title, lacks_more]);
    let main = "for image in kernels::kernel::more.images { println!(\"{}\", image.target); }";
    assert_eq!(program(&package, main), "gfx90a:xnack-\ngfx1100\n");
    let kernels = ["a", "b", "c", "d", "e"]
        .map(|name| format!("__global__ void {name}(int *x) {{ ++*x; }}\n"));
    package.put(
        "kernels/none.hip",
        &format!(
            "#include \"k.h\"\n#ifdef __gfx942__\n{}#endif\n",
            kernels.concat()
        ),
    );
    package.declare(&format!("{HIP}{AMD}"));
    let lacks = |target| {
        format!(
            "warning: {target} has no kernel `a`, `b`, `c` and 2 others, which other targets have"
        )
    };
    let mut found = warnings(&package.builds());
    found.retain(|line| !line.starts_with("hint: "));
    assert_eq!(
        found,
        [
            title,
            &lacks("gfx90a:xnack-"),
            &lacks("gfx1100"),
            lacks_more
        ]
    );
    package.put("kernels/none.hip", "");
    // Who fills in the arguments does not know which image runs.
    let arguments = "#ifdef __gfx942__\n#define COUNT long\n#else\n#define COUNT int\n#endif\n";
    let kernel = "extern \"C\" __global__ void more(int *x, COUNT count) { *x += count; }\n";
    let other = format!("#include \"k.h\"\n{arguments}{kernel}");
    let source = fs::read_to_string(package.at("kernels/more.hip")).unwrap();
    package.put("kernels/more.hip", &other);
    assert_eq!(
        package.fails(&mut package.script()),
        "images of `kernels`: gfx942: target/build/pack-0123/out/offload/kernels/gfx942/image: kernel `more` takes \
         other arguments than for `gfx90a:xnack-`"
    );
    package.put("kernels/more.hip", &source);
    // Who leaves a source out means it.
    let exclude = "[package.metadata.offload.target.gfx942]\nexclude = [\"kernels/more.hip\"]\n";
    package.declare(&format!("{HIP}{AMD}{exclude}"));
    assert_eq!(warnings(&package.builds()), [""; 0]);
    let file = fs::read_to_string(package.at(OUT).join("kernels.rs")).unwrap();
    assert!(
        file.contains("KERNELS: &[&str] = &[\"more\", \"scale\"];"),
        "{file}"
    );

    package.put("kernels/k.hip", "\n");
    package.put("kernels/more.hip", "\n");
    let error = package.fails(&mut package.script());
    assert!(
        error.starts_with("images of `kernels`: no kernel in any source [OFF703]\nhint: "),
        "{error}"
    );
}

#[test]
fn compiles_again_only_what_changed() {
    let Some(package) = package("hip", &format!("{HIP}{AMD}")) else {
        return;
    };
    package.builds();
    // The version, two sources and a device link for each target.
    assert_eq!(package.starts(), 1 + 3 * 3);
    package.builds();
    assert_eq!(package.starts(), 10);
    package.put("kernels/helper.hip", &HELPER.replace('2', "3"));
    package.builds();
    assert_eq!(package.starts(), 10 + 3 * 2);
    package.put("kernels/k.h", &format!("{HEADER}\n#define OTHER\n"));
    package.builds();
    // The bitcode is the same: no device link.
    assert_eq!(package.starts(), 16 + 3 * 2);
}

#[test]
fn takes_the_targets_of_its_language_from_a_list_for_several_packages() {
    let Some(package) = package("hip", &format!("{HIP}{AMD}")) else {
        return;
    };
    let plan = |targets: &str| {
        let mut script = package.script();
        let script = script.env("OFFLOAD_TARGETS", targets);
        script.env("OFFLOAD_DRY_RUN", "1").output().unwrap().stderr
    };
    let plan = String::from_utf8(plan("sm_80,gfx1100,x86_64-pc-linux-gnu")).unwrap();
    assert!(plan.contains("--offload-arch=gfx1100 "), "{plan}");
    assert!(
        !plan.contains("sm_80") && !plan.contains("gfx90a"),
        "{plan}"
    );
    assert_eq!(
        package.fails(package.script().env("OFFLOAD_TARGETS", "sm_80,sm_90")),
        "OFFLOAD_TARGETS: `sm_80` is not a valid target of `hip` [OFF503]\n\
             hint: `hip` is for AMD GPUs (`gfx90a`); for NVIDIA GPUs set `language = \"cuda\"`, in a module of its own"
    );
}

#[test]
fn says_what_a_language_does_not_take() {
    let Some(package) = package("hip", &format!("{HIP}{AMD}")) else {
        return;
    };
    package.put("kernels/host.c", "int host(int x) { return x; }\n");
    let fails = |keys: &str| {
        package.declare(keys);
        package.fails(&mut package.script())
    };
    for (keys, problem) in [
        (
            format!("{HIP}targets = [\"gfx90a\", \"sm_80\"]\n"),
            "8:1: `sm_80` is not a valid target of `hip` [OFF503]\n\
             hint: `hip` is for AMD GPUs (`gfx90a`); for NVIDIA GPUs set `language = \"cuda\"`, in a module of its own",
        ),
        (
            format!("{HIP}{AMD}container = \"fatbin\"\n"),
            "9:1: `fatbin` is not a container of `hip` (`bundle`, `offload-binary`, `raw` are)",
        ),
        (
            format!("{HIP}{AMD}compress = \"zstd:high\"\n"),
            "9:1: `zstd:high` is not one of `none`, `lz4`, `zlib`, `zstd`, or one of the last two with a level: `zstd:19`",
        ),
        (
            format!("{HIP}{AMD}compress = \"zlib:10\"\n"),
            "9:1: `zlib:10`: levels of `zlib` are 1 to 9",
        ),
        (
            format!("{HIP}{AMD}container = \"raw\"\ncompress = \"zlib\"\n"),
            "10:1: `compress` needs the container `bundle` or `fatbin`, found `raw`",
        ),
        (
            "language = \"cuda\"\nsources = [\"kernels/*.hip\"]\nflags = [\"-xcuda\"]\ntargets = [\"sm_80\"]\n\
             rdc = false\nimages = \"module\"\n"
                .to_owned(),
            "10:1: without `rdc` an image of `cuda` is made from one source, and there are 2\n\
             hint: set `rdc = true`, or `images = \"source\"`",
        ),
        (
            format!("{HIP}{AMD}images = \"source\"\nrdc = true\n"),
            "10:1: with `images = \"source\"` no source calls device functions of another",
        ),
        (
            "language = \"bitcode\"\nsources = [\"kernels/*\"]\nflags = [\"-xir\"]\ntargets = [\"gfx90a\"]\nrdc = true\n"
                .to_owned(),
            "9:1: `rdc` has no effect on modules of `bitcode` [OFF502]",
        ),
        (
            "language = \"prebuilt\"\nsources = [\"kernels/*\"]\ntargets = [\"gfx90a\"]\n\
             artifact = [\"device-archive\"]\n"
                .to_owned(),
            "8:1: `artifact` has no effect on modules of `prebuilt` [OFF502]",
        ),
        (
            format!("{HIP}{AMD}register = \"complete\"\n"),
            "9:1: `register = \"complete\"` needs `host = true`",
        ),
        (
            format!("{HIP}{AMD}artifact = [\"hda\"]\n"),
            "9:1: `hda` supports only modules of `openmp`, not of `hip`",
        ),
        (
            format!("{HIP}{AMD}").replace("*.hip", "k.h"),
            "6:1: `kernels/k.h` is not a source of `hip` (`.hip`, `.cu`, `.C`, `.cc`, `.cp`, `.cpp`, `.cxx`, `.c++` are)",
        ),
        (
            format!("{HIP}{AMD}").replace("*.hip", "*.c"),
            "6:1: `kernels/host.c` is not a source of `hip` (`.hip`, `.cu`, `.C`, `.cc`, `.cp`, `.cpp`, `.cxx`, `.c++` are)\n\
             hint: if it has device code, name it `kernels/host.hip`: kernels are C++; else compile it with the crate `cc` in the \
             build script, and leave it out here: `exclude = [\"kernels/host.c\"]`",
        ),
        (
            "language = \"openmp\"\nsources = [\"kernels/k.hip\"]\nflags = [\"-xc\"]\nregister = \"none\"\n\
             targets = [\"gfx90a\"]\n"
                .to_owned(),
            "8:1: `openmp` launches registered kernels: `none` is only for modules without host code",
        ),
    ] {
        assert_eq!(fails(&keys), format!("Cargo.toml:{problem}"));
    }
    // The toolkit is asked for unless the sources need none of it.
    let flags = "flags = [\"-nogpulib\", \"-nogpuinc\"]\n";
    let keys = format!("{CUDA}{NVIDIA}")
        .replace(flags, "")
        .replace("*.cu", "k.hip");
    package.declare(&format!("{keys}flags = [\"-xcuda\"]\n"));
    let mut script = package.script();
    let error = package.fails(script.env("CUDA_HOME", package.at("nowhere")));
    let expected = "module `kernels`: no CUDA for `cuda`: `include/cuda_runtime.h` not found (searched: nowhere, ";
    assert!(error.starts_with(expected), "{error}");
    assert!(
        error.ends_with("`flags = [\"-nogpuinc\", \"-nogpulib\"]`"),
        "{error}"
    );
}

#[test]
fn makes_archives_of_each_target() {
    let Some(package) = package(
        "hip",
        &format!("{HIP}{AMD}artifact = [\"device-archive\"]\n"),
    ) else {
        return;
    };
    package.builds();
    let archive = package
        .at(OUT)
        .join("offload/artifacts/libbc-pack-amdgcn-gfx942.a");
    let members = support::run(Command::new("ar").arg("t").arg(&archive));
    assert_eq!(members, "kernels-helper.hip.bc\nkernels-k.hip.bc\n");
    assert!(Path::new(&archive).is_file());
    // Kernels of others call what is in it.
    fs::remove_file(package.at("kernels/k.hip")).unwrap();
    package.builds();
    let members = support::run(Command::new("ar").arg("t").arg(&archive));
    assert_eq!(members, "kernels-helper.hip.bc\n");
}

#[test]
fn records_what_was_built_from_what() {
    let Some(package) = package(
        "hip",
        &format!("{HIP}targets = [\"gfx90a:xnack-\", \"gfx942\"]\n"),
    ) else {
        return;
    };
    package.builds();
    let path = package.at(OUT).join("offload/manifest.json");
    let first = fs::read_to_string(&path).unwrap();
    let record: serde_json::Value = serde_json::from_str(&first).unwrap();
    assert_eq!(record["schema"], 1);
    assert_eq!(record["host"], "x86_64-unknown-linux-gnu");
    let module = &record["modules"][0];
    for (key, value) in [
        ("name", "kernels"),
        ("language", "hip"),
        ("register", "none"),
        ("container", "bundle"),
    ] {
        assert_eq!(module[key], value, "{key}");
    }
    assert_eq!(
        module["compiler"],
        package.at("llvm/bin/clang").to_str().unwrap()
    );
    assert_eq!(module["targets"][0]["processor"], "gfx90a:xnack-");
    // Every file that was made from others; what is made is what the next step reads.
    let [headers, files @ ..] = module["files"].as_array().unwrap().as_slice() else {
        panic!("{module}");
    };
    assert_eq!(headers["what"], "headers of kernels");
    assert_eq!(files.len(), 2 * 2 + 2 + 1);
    let texts = |value: &serde_json::Value| -> Vec<String> {
        let list = value.as_array().unwrap().iter();
        list.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let compile = &files[1];
    assert_eq!(compile["what"], "kernels/k.hip for gfx90a:xnack-");
    let read = ["kernels/k.h", "kernels/k.hip"].map(|name| package.at(name).display().to_string());
    let mut inputs = texts(&compile["inputs"]);
    inputs.sort();
    assert_eq!(inputs, read);
    assert!(texts(&compile["commands"])[0].contains(" --offload-arch=gfx90a:xnack- "));
    for file in &files[4..] {
        for input in texts(&file["inputs"]) {
            assert!(
                files
                    .iter()
                    .any(|other| texts(&other["outputs"]).contains(&input)),
                "{input}"
            );
            assert!(Path::new(&input).is_file(), "{input}");
        }
    }
    assert!(texts(&files[6]["outputs"])[1].ends_with("/out/kernels.rs"));
    // The same when nothing had to be made; none when something failed.
    package.builds();
    assert_eq!(fs::read_to_string(&path).unwrap(), first);
    package.put("kernels/k.hip", "error");
    package.fails(&mut package.script());
    assert!(!path.exists());
}

#[test]
fn links_llvm_ir_of_any_compiler() {
    let (Some(cuda), Some(package), Some(clang)) = (
        cuda(),
        package("hip", &format!("{HIP}{AMD}")),
        support::tool("llvm19", &["clang"]),
    ) else {
        return;
    };
    let compile = |source: &str, output: &str, options: &[&str]| {
        let mut command = Command::new(&clang);
        command
            .current_dir(package.folder.root())
            .args([
                "-nogpulib",
                "-nogpuinc",
                "--offload-device-only",
                "-fgpu-rdc",
                "-emit-llvm",
            ])
            .args(options)
            .args([source, "-o", output]);
        support::run(&mut command);
    };
    fs::create_dir_all(package.at("ir")).unwrap();
    let amd = [
        "-x",
        "hip",
        "--no-gpu-bundle-output",
        "--offload-arch=gfx90a",
    ];
    compile(
        "kernels/k.hip",
        "ir/amd-k.bc",
        &[&amd[..], &["-c"]].concat(),
    );
    compile(
        "kernels/helper.hip",
        "ir/amd-helper.ll",
        &[&amd[..], &["-S"]].concat(),
    );
    let nvidia = [
        "-x",
        "cuda",
        "--offload-arch=sm_80",
        "--cuda-feature=+ptx70",
    ];
    compile(
        "kernels/k.hip",
        "ir/nvidia-k.ll",
        &[&nvidia[..], &["-S"]].concat(),
    );
    compile(
        "kernels/helper.hip",
        "ir/nvidia-helper.bc",
        &[&nvidia[..], &["-c"]].concat(),
    );

    let build = |sources: &str, targets: &str| {
        let keys = format!(
            "language = \"bitcode\"\nsources = [\"ir/{sources}\"]\ntargets = [{targets}]\n"
        );
        package.declare(&keys);
        let mut script = package.script();
        script.env("CUDA_PATH", &cuda);
        script
    };
    text(&build("amd-*", "\"gfx90a\"").output().unwrap());
    assert!(images(&package).starts_with(b"__CLANG_OFFLOAD_BUNDLE__"));
    let main = "println!(\"{:?} {}\", kernels::KERNELS, kernels::kernel::scale.arguments[0].size);";
    assert_eq!(program(&package, main), "[\"scale\"] 8\n");
    // Nothing changed, one source did.
    let starts = package.starts();
    text(&build("amd-*", "\"gfx90a\"").output().unwrap());
    assert_eq!(package.starts(), starts);
    let helper = fs::read_to_string(package.at("ir/amd-helper.ll")).unwrap();
    package.put("ir/amd-helper.ll", &format!("; changed\n{helper}"));
    text(&build("amd-*", "\"gfx90a\"").output().unwrap());
    assert_eq!(
        package.starts(),
        starts + 1,
        "comments do not reach the bitcode"
    );

    text(&build("nvidia-*", "\"sm_80\"").output().unwrap());
    assert!(images(&package).starts_with(b"\x50\xed\x55\xba"));
    assert_eq!(program(&package, main), "[\"scale\"] 8\n");
    // Both, where each target leaves out what is not for it.
    let leave = |target: &str, sources: &str| {
        format!("[package.metadata.offload.target.{target}]\nexclude = [\"ir/{sources}-*\"]\n")
    };
    let keys = "language = \"bitcode\"\nsources = [\"ir/*\"]\ntargets = [\"gfx90a\", \"sm_80\"]\n";
    let (amd, nvidia) = (leave("gfx90a", "nvidia"), leave("sm_80", "amd"));
    package.declare(&format!("{keys}{amd}{nvidia}"));
    text(&package.script().env("CUDA_PATH", &cuda).output().unwrap());
    let main = "for k in kernels::kernel::scale.images { println!(\"{}\", k.target); }";
    assert_eq!(program(&package, main), "gfx90a\nsm_80\n");
    let error = package.fails(&mut build("amd-*", "\"sm_80\""));
    assert!(
        error.contains("overriding the module target triple with nvptx64-nvidia-cuda"),
        "{error}"
    );
}

#[test]
fn builds_for_hosts_that_have_no_host_code() {
    let Some(package) = package("hip", &format!("{HIP}{AMD}")) else {
        return;
    };
    for host in [
        "x86_64-pc-windows-msvc",
        "aarch64-apple-darwin",
        "riscv64gc-unknown-linux-gnu",
    ] {
        let mut script = package.script();
        script.env("TARGET", host).env("HOST", host);
        text(&script.output().unwrap());
        assert!(
            images(&package).starts_with(b"__CLANG_OFFLOAD_BUNDLE__"),
            "{host}"
        );
    }
    let keys = "language = \"openmp\"\nsources = [\"kernels/k.hip\"]\nflags = [\"-xc\"]\ntargets = [\"gfx90a\"]\n";
    package.declare(keys);
    let mut script = package.script();
    let error = package.fails(script.env("TARGET", "x86_64-pc-windows-msvc"));
    assert_eq!(
        error,
        "OpenMP is not supported for `x86_64-pc-windows-msvc`: LLVM's offload runtime supports only Linux on x86_64 and aarch64 [OFF609]"
    );
    // Cargo names `crt-static` only if RUSTFLAGS do.
    for (target, features, hint) in [
        (
            "x86_64-unknown-linux-musl",
            "fxsr",
            "build for a target of glibc",
        ),
        (
            "x86_64-unknown-linux-gnu",
            "crt-static,fxsr",
            "remove `+crt-static` from RUSTFLAGS",
        ),
    ] {
        script.env("CARGO_CFG_TARGET_FEATURE", features);
        let error = package.fails(script.env("TARGET", target));
        let expected = format!(
            "host code is not supported for static programs of `{target}`: \
             the runtimes of devices are shared libraries [OFF609]\nhint: {hint}"
        );
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn packs_images_that_were_there() {
    let (Some(cuda), Some(package), Some(packager)) = (
        cuda(),
        package("hip", &format!("{HIP}{AMD}")),
        support::tool("llvm22", &["llvm-offload-binary"]),
    ) else {
        return;
    };
    package.builds();
    let bundle = images(&package);
    let folders = ["gfx90a-xnack-", "gfx1100", "gfx942"];
    let amd = folders.map(|folder| image(&package, folder));
    fs::create_dir_all(package.at("images")).unwrap();
    let put = |name: &str, bytes: &[u8]| fs::write(package.at("images").join(name), bytes).unwrap();
    package.put("kernels/k.cu", KERNEL);
    package.put("kernels/helper.cu", HELPER);
    package.declare(&format!("{CUDA}{NVIDIA}"));
    text(&package.script().env("CUDA_PATH", &cuda).output().unwrap());
    put("k.cubin", &image(&package, "sm_90"));
    let starts = package.starts();
    // No compiler here: none is needed.
    let build = |sources: &str, targets: &str| {
        let keys =
            format!("language = \"prebuilt\"\nsources = [{sources}]\ntargets = [{targets}]\n");
        package.declare(&keys);
        let mut script = package.script();
        script.env("OFFLOAD_COMPILER", "").env("PATH", "/nowhere");
        script
    };

    // Each by itself: what it is for is in its header.
    for (name, bytes) in folders.iter().zip(&amd) {
        put(&format!("{name}.hsaco"), bytes);
    }
    let targets = "\"gfx90a:xnack-\", \"gfx1100\", \"gfx942\"";
    let told = text(&build("\"images/*.hsaco\"", targets).output().unwrap());
    assert!(images(&package) == bundle);
    let watched = format!(
        "cargo::rerun-if-changed={}\n",
        package.at("images/gfx1100.hsaco").display()
    );
    assert!(told.contains(&watched), "{told}");
    // Out of a bundle, some of it; an archive of one; an offload binary; with another vendor's.
    put("all.hipfb", &bundle);
    text(
        &build("\"images/all.hipfb\"", "\"gfx1100\"")
            .output()
            .unwrap(),
    );
    assert!(image(&package, "gfx1100") == amd[1] && images(&package).len() < bundle.len());
    support::run(
        Command::new("ar")
            .arg("rcs")
            .arg(package.at("images/liball.a"))
            .arg(package.at("images/all.hipfb")),
    );
    text(&build("\"images/liball.a\"", targets).output().unwrap());
    assert!(images(&package) == bundle);
    // An archive of images as they are.
    let mut command = Command::new("ar");
    command.arg("rcs").arg(package.at("images/libimages.a"));
    for folder in folders {
        command.arg(package.at("images").join(format!("{folder}.hsaco")));
    }
    support::run(&mut command);
    text(&build("\"images/libimages.a\"", targets).output().unwrap());
    assert!(images(&package) == bundle);
    let mut command = Command::new(packager);
    command.arg("-o").arg(package.at("images/all.bin"));
    for (folder, arch) in folders.iter().zip(["gfx90a:xnack-", "gfx1100", "gfx942"]) {
        let file = package.at("images").join(format!("{folder}.hsaco"));
        command.arg(format!(
            "--image=file={},triple=amdgcn-amd-amdhsa,arch={arch},kind=hip",
            file.display()
        ));
    }
    support::run(&mut command);
    text(
        &build(
            "\"images/all.bin\", \"images/k.cubin\"",
            "\"gfx942\", \"sm_90\"",
        )
        .output()
        .unwrap(),
    );
    assert!(image(&package, "gfx942") == amd[2]);
    let main = "for i in kernels::images() { println!(\"{} {}\", i.target, i.bytes.len()); }\
                println!(\"{}\", kernels::kernel::scale.arguments[0].size);";
    let cubin = fs::read(package.at("images/k.cubin")).unwrap();
    let expected = format!("gfx942 {}\nsm_90 {}\n8\n", amd[2].len(), cubin.len());
    assert_eq!(program(&package, main), expected);
    assert_eq!(package.starts(), starts);

    // What does not fit.
    let error = package.fails(&mut build(
        "\"images/gfx*.hsaco\"",
        "\"gfx90a:xnack+\", \"gfx942\"",
    ));
    let expected = "module `kernels`: no image for `gfx90a:xnack+`: `images/gfx1100.hsaco` has gfx1100; \
                    `images/gfx90a-xnack-.hsaco` has gfx90a; `images/gfx942.hsaco` has gfx942 [OFF510]\nhint: ";
    assert!(error.starts_with(expected), "{error}");
    let mut other = amd[2].clone();
    other.push(0);
    put("other.hsaco", &other);
    let error = package.fails(&mut build(
        "\"images/other.hsaco\", \"images/gfx942.hsaco\"",
        "\"gfx942\"",
    ));
    assert_eq!(
        error,
        "module `kernels`: several images for `gfx942`: `images/gfx942.hsaco` (gfx942), `images/other.hsaco` (gfx942) [OFF510]"
    );
    fs::copy(
        package
            .at(OUT)
            .join("offload/kernels/gfx1100/kernels-k.hip.bc"),
        package.at("images/k.bc"),
    )
    .unwrap();
    let error = package.fails(&mut build("\"images/k.bc\"", "\"gfx1100\""));
    assert!(
        error.contains(
            "`images/k.bc` has an image for an unknown processor (bitcode) [OFF510]\nhint: "
        ),
        "{error}"
    );
    // An object that no device link has made an image of.
    package.put("k.c", "int scale(int x) { return 2 * x; }\n");
    let mut clang = Command::new("/usr/bin/clang-19");
    clang.args(["--target=amdgcn-amd-amdhsa", "-mcpu=gfx942", "-nogpulib"]);
    clang.args(["-c", "k.c", "-o", "images/k.o"]);
    support::run(clang.current_dir(package.folder.root()));
    let error = package.fails(&mut build("\"images/k.o\"", "\"gfx942\""));
    let expected = "`images/k.o` has gfx942 (not linked) [OFF510]\n";
    assert!(error.contains(expected), "{error}");
    // An image that says of itself that it is for another processor than its entry says.
    let mut wrong = bundle.clone();
    let place = wrong
        .windows(7)
        .position(|text| text == b"gfx1100")
        .unwrap();
    wrong[place..place + 7].copy_from_slice(b"gfx1101");
    put("wrong.hipfb", &wrong);
    let error = package.fails(&mut build("\"images/wrong.hipfb\"", "\"gfx1101\""));
    assert!(
        error.contains("no image for `gfx1101`: `images/wrong.hipfb` has "),
        "{error}"
    );
    for cut in [4, 40, 5000] {
        put("cut.hipfb", &bundle[..cut]);
        let error = package.fails(&mut build("\"images/cut.hipfb\"", "\"gfx942\""));
        assert!(error.contains("images/cut.hipfb"), "{cut}: {error}");
    }
}

#[test]
fn keeps_functions_of_equal_names_apart_without_rdc() {
    let keys = format!("{HIP}{AMD}opt-level = 0\n");
    let Some(package) = package("hip", &keys) else {
        return;
    };
    // Each has its own.
    let own = |kernel: &str, factor: &str| {
        let helper = format!(
            "#include \"k.h\"\n__device__ __attribute__((noinline)) int twice(int x) {{ return {factor} * x; }}\n"
        );
        format!(
            "{helper}extern \"C\" __global__ void {kernel}(int *x) {{ *x = twice(*x) + twice(x[1]); }}\n"
        )
    };
    package.put("kernels/k.hip", &own("scale", "3"));
    package.put("kernels/helper.hip", &own("shrink", "5"));
    let error = package.fails(&mut package.script());
    assert!(error.contains("duplicate symbol: twice(int)"), "{error}");
    package.declare(&format!("{keys}rdc = false\n"));
    package.builds();
    assert_eq!(
        program(&package, "println!(\"{:?}\", kernels::KERNELS);"),
        "[\"scale\", \"shrink\"]\n"
    );
    if let Some(readelf) = support::tool("llvm22", &["llvm-readelf"]) {
        let path = package.at(OUT).join("offload/kernels/gfx942/image");
        let symbols = support::run(Command::new(readelf).arg("--symbols").arg(path));
        let dynamic = symbols
            .lines()
            .filter(|line| line.contains(" GLOBAL ") || line.contains(" WEAK "));
        assert!(
            !dynamic.clone().any(|line| line.contains("_Z5twicei")),
            "{symbols}"
        );
    }
    let error = package.fails(package.script().env("OFFLOAD_RDC", "on"));
    assert!(error.contains("duplicate symbol: twice(int)"), "{error}");
    // What another file has is not there.
    package.put("kernels/k.hip", KERNEL);
    let error = package.fails(&mut package.script());
    assert!(error.contains("twice"), "{error}");
}

#[test]
fn keeps_static_kernels_of_equal_names_apart_without_rdc() {
    let keys = format!("{HIP}{AMD}rdc = false\n");
    let Some(package) = package("hip", &keys) else {
        return;
    };
    let own = |value: u8| {
        format!("#include \"k.h\"\nstatic __global__ void st(int *x) {{ *x = {value}; }}\n")
    };
    package.put("kernels/k.hip", &own(1));
    package.put("kernels/helper.hip", &own(2));
    package.builds();
    let kernels = program(&package, "println!(\"{}\", kernels::KERNELS.len());");
    assert_eq!(kernels, "2\n");
}

/// Archives have the name of a processor, whatever becomes of their bitcode.
#[test]
fn refuses_two_archives_of_one_name() {
    let (Some(package), Some(cuda)) = (package("cu", ""), cuda()) else {
        return;
    };
    let keys = format!(
        "{CUDA}targets = [\"sm_80\", \"compute_80\"]\nrdc = true\nartifact = [\"device-archive\"]\n"
    );
    package.declare(&keys);
    text(&package.script().env("CUDA_PATH", &cuda).output().unwrap());
    // One of them has no image, unless there is a toolkit that no variable names.
    if !Path::new("/usr/local/cuda").exists() {
        let mut script = package.script();
        script.env("PATH", "/none").env("CUDA_PATH", "/none");
        let told = text(&script.env("OFFLOAD_MISSING", "skip").output().unwrap());
        assert!(told.contains("no image for `sm_80`"), "{told}");
    }
    let differing =
        format!("{keys}[package.metadata.offload.target.compute_80]\ndefine = {{ A = 1 }}\n");
    package.declare(&differing);
    let error = package.fails(package.script().env("CUDA_PATH", &cuda));
    assert!(
        error.contains("`compute_80` and another target of its processor differ in `define`"),
        "{error}"
    );
}

#[test]
fn prints_a_warning_of_a_header_once() {
    let Some(package) = package("hip", &format!("{HIP}{AMD}")) else {
        return;
    };
    package.put("kernels/k.h", &format!("{HEADER}#warning odd\n"));
    let told = package.builds();
    assert_eq!(told.matches("warning: odd").count(), 1, "{told}");
}
