//! What `flags` and `opt-level` say about the code of images, in compiles and device links.

use crate::support;

use std::fs;
use std::time::SystemTime;
use support::cuda_package::cuda;
use support::package::{OUT, Package, text};

const HEADER: &str = "#define __global__ __attribute__((global))\n";
const CUDA: &str =
    "language = \"cuda\"\nsources = [\"kernels/*.cu\"]\nflags = [\"-nogpulib\", \"-nogpuinc\"]\n";

/// A package with one source of that extension, in the place of OpenMP's.
fn package(extension: &str, keys: &str, source: &str) -> Option<Package> {
    let package = Package::new("")?;
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put("kernels/k.h", HEADER);
    let source = format!("#include \"k.h\"\n{source}");
    package.put(&format!("kernels/k.{extension}"), &source);
    package.declare(keys);
    Some(package)
}

/// Bitcode becomes code in the device link, assembly in the compile.
#[test]
fn generates_code_as_flags_say() {
    let keys = "language = \"hip\"\nsources = [\"kernels/*.hip\"]\ntargets = [\"gfx90a\"]\n\
        flags = [\"-nogpulib\", \"-nogpuinc\", \"-mllvm\", \"-amdgpu-dump-hsa-metadata\"]\n";
    for rdc in ["true", "false"] {
        let kernel = "extern \"C\" __global__ void scale(int *x) { *x = 2; }\n";
        let Some(package) = package("hip", &format!("{keys}rdc = {rdc}\n"), kernel) else {
            return;
        };
        let told = package.builds();
        assert!(told.contains(".name:           scale"), "{rdc}: {told}");
    }
}

/// What a compile writes as text, the assembler reads for the same machine.
#[test]
fn assembles_for_the_wavefronts_of_the_flags() {
    let keys = "language = \"hip\"\nsources = [\"kernels/*.hip\"]\ntargets = [\"gfx1100\"]\nrdc = false\n\
        flags = [\"-nogpulib\", \"-nogpuinc\", \"-mwavefrontsize64\"]\n";
    let kernel = "extern \"C\" __global__ void scale(float *x) { if (*x > 1) *x = 0; }\n";
    let Some(package) = package("hip", keys, kernel) else {
        return;
    };
    package.builds();
    let rust = package.at("target/build/pack-0123/out/kernels.rs");
    let rust = fs::read_to_string(rust).unwrap();
    assert!(rust.contains("wavefront: Some(64)"), "{rust}");
}

/// ptxas does not optimize code with debug information.
#[test]
fn leaves_code_for_debuggers_as_it_is() {
    let kernel = "extern \"C\" __global__ void scale(int *x, int y) { *x = y; }\n";
    let (Some(package), Some(cuda)) = (package("cu", "", kernel), cuda()) else {
        return;
    };
    for more in ["rdc = true\n", "images = \"source\"\n"] {
        let keys = CUDA.replace("flags = [", "opt-level = 0\nflags = [\"-g\", ");
        package.declare(&format!("{keys}targets = [\"sm_80\"]\n{more}"));
        let mut script = package.script();
        script.env("CUDA_PATH", &cuda);
        let plan = script.env("OFFLOAD_DRY_RUN", "1").output().unwrap();
        let plan = String::from_utf8(plan.stderr).unwrap();
        let levels = |start: &str| {
            let lines = plan.lines().filter(|line| line.contains(start));
            lines.flat_map(str::split_whitespace).any(|it| it == "-O0")
        };
        assert!(levels("--offload-device-only") && levels("ptxas"), "{plan}");
        text(&script.env_remove("OFFLOAD_DRY_RUN").output().unwrap());
    }
}

/// What FP8 needs on `sm_89`: ptxas knows the PTX of its release, and drivers may be older.
#[test]
fn takes_the_newest_ptx_for_images() {
    let kernel = "extern \"C\" __global__ void scale(short *x, float y) {\n\
        asm(\"cvt.rn.satfinite.e4m3x2.f32 %0, %1, %1;\" : \"=h\"(*x) : \"f\"(y));\n}\n";
    let keys = format!("{CUDA}targets = [\"sm_89\", \"compute_89\"]\n");
    let (Some(package), Some(cuda)) = (package("cu", &keys, kernel), cuda()) else {
        return;
    };
    text(&package.script().env("CUDA_PATH", &cuda).output().unwrap());
    let ptx =
        || fs::read_to_string(package.at(OUT).join("offload/kernels/compute_89/image")).unwrap();
    assert!(ptx().contains(".version 7.8\n"), "{}", ptx());
    let newer = keys.replace("flags = [", "flags = [\"--cuda-feature=+ptx84\", ");
    package.declare(&newer);
    text(&package.script().env("CUDA_PATH", &cuda).output().unwrap());
    assert!(ptx().contains(".version 8.4\n"), "{}", ptx());
    let Some(clang) = support::tool("llvm16", &["clang-16"]) else {
        return;
    };
    package.declare(&keys);
    let mut script = package.script();
    script
        .env("OFFLOAD_COMPILER", clang)
        .env("CUDA_PATH", &cuda);
    let error = package.fails(&mut script);
    assert!(
        error.contains("requires PTX ISA .version 8.1")
            && error.contains("hint: images are made of the newest PTX that both clang and ptxas know (clang 16 writes 7.8"),
        "{error}"
    );
}

/// It has the times of its package, which are older than the last build.
#[test]
fn leaves_out_processors_until_another_ptxas_knows_them() {
    let kernel = "extern \"C\" __global__ void scale(int *x) { *x = 1; }\n";
    let keys = CUDA.replace('*', "k") + "targets = [\"sm_60\", \"sm_80\"]\nmissing = \"skip\"\n";
    let Some(package) = package("cu", &keys, kernel) else {
        return;
    };
    for (known, is_left_out) in [("'sm_80','sm_90'", true), ("'sm_60','sm_80'", false)] {
        let help =
            format!("#!/bin/sh\nprintf \"Usage\\n\\n--gpu-name <name>\\n    {known}.\\n\"\n");
        package.put("cuda/bin/ptxas", &help);
        let ptxas = fs::File::open(package.at("cuda/bin/ptxas")).unwrap();
        ptxas.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let mut script = package.script();
        script
            .env("CUDA_PATH", package.at("cuda"))
            .env("OFFLOAD_DRY_RUN", "1");
        let output = script.output().unwrap();
        let plan = String::from_utf8_lossy(&output.stderr);
        assert!(plan.contains("--offload-arch=sm_80"), "{plan}");
        let compiles = plan.contains("--offload-arch=sm_60");
        assert_ne!(compiles, is_left_out, "{known}: {plan}");
    }
}

/// CUDA 13 begins with `sm_75`. Nothing is started for what is left out, and later builds know the answer.
#[test]
fn leaves_out_processors_that_cuda_does_not_know() {
    let kernel = "extern \"C\" __global__ void scale(int *x) { *x = 1; }\n";
    let (Some(package), Some(cuda)) = (package("cu", "", kernel), cuda()) else {
        return;
    };
    let ptxas = cuda.join("bin/ptxas");
    let counted = "#!/bin/sh\necho \"$@\" >> 'LOG'\nexec 'PTXAS' \"$@\"\n"
        .replace("LOG", &package.at("questions").display().to_string())
        .replace("PTXAS", &ptxas.display().to_string());
    package.put("cuda/bin/ptxas", &counted);
    let of_nvcc = "language = \"cuda\"\nsources = [\"kernels/own.cu\"]\ncompiler = \"nvcc\"\n";
    package.put("kernels/own.cu", kernel);
    let with_host = format!("{of_nvcc}host = true\n");
    for (keys, ptxas) in [
        (CUDA.replace('*', "k"), package.at("cuda/bin/ptxas")),
        (of_nvcc.to_owned(), ptxas.clone()),
        (with_host, ptxas),
    ] {
        let is_nvcc = keys.contains("nvcc");
        package.declare(&format!("{keys}targets = [\"sm_60\", \"sm_80\"]\n"));
        let script = || {
            let mut script = package.script();
            script.env("CUDA_PATH", ptxas.ancestors().nth(2).unwrap());
            if is_nvcc {
                script.env_remove("OFFLOAD_COMPILER");
            }
            script
        };
        let way = match is_nvcc {
            true => {
                "name another nvcc by OFFLOAD_COMPILER=/usr/local/cuda-12.9/bin/nvcc, or put it first in PATH;"
            }
            false => "CUDA_PATH names another toolkit, and",
        };
        let hint = "each release of CUDA has its processors: CUDA 13 begins with sm_75, and new processors need a newer one;";
        let reason = format!(
            "unknown to `{}` [OFF602]\nhint: {hint} {way} `targets` lists the processors\n",
            ptxas.display()
        );
        let root = format!("{}/", package.folder.root().display());
        let reason = reason.replace(&root, "");
        let error = package.fails(&mut script());
        assert_eq!(
            error,
            format!(
                "module `kernels`: no image for `sm_60`: {reason}hint: OFFLOAD_TARGETS=sm_80 builds the other targets; \
                 OFFLOAD_MISSING=skip leaves out the targets that cannot be built"
            )
        );
        let skip = || text(&script().env("OFFLOAD_MISSING", "skip").output().unwrap());
        let told = skip();
        let warning = "cargo::warning=module `kernels`: no image for `sm_60`: unknown to `";
        assert!(told.contains(warning), "{told}");
        assert!(
            told.contains("cargo::rustc-cfg=offload_target_sm_80\n")
                && !told.contains("rustc-cfg=offload_target_sm_60"),
            "{told}"
        );
        assert!(told.contains("looks-again"), "{told}");
        let questions = || fs::read_to_string(package.at("questions")).unwrap();
        let starts = (package.starts(), questions());
        assert_eq!(skip(), told);
        assert_eq!((package.starts(), questions()), starts);
        let stub = [("OFFLOAD_MISSING", "stub"), ("OFFLOAD_TARGETS", "sm_60")];
        let told = text(&script().envs(stub).output().unwrap());
        let note = "cargo::warning=note: the module is built without device code: ";
        assert!(told.contains(note), "{told}");
        // The driver reads what clang writes.
        let mut script = script();
        let ptx = script.env("OFFLOAD_TARGETS", "compute_60");
        match is_nvcc {
            true => assert!(package.fails(ptx).contains("unknown to `"), "{keys}"),
            false => {
                text(&ptx.output().unwrap());
            }
        }
    }
}

/// Each side has options of its own; those of nvcc in its spelling with one dash are none that clang uses.
#[test]
fn warns_of_options_that_no_side_uses() {
    let source = "#include <offload/gpu.h>\n__global__ void scale(float *x) { *x *= 2; }\n\
        extern \"C\" void run(float *x) { scale<<<1, 1>>>(x); }\n";
    let keys = |flags: &str| {
        format!(
            "language = \"hip\"\nhost = true\nsources = [\"kernels/*.hip\"]\ntargets = [\"gfx90a\", \"gfx1100\"]\nflags = [{flags}]\n"
        )
    };
    let used = "\"-mavx2\", \"-Xarch_device\", \"-fgpu-flush-denormals-to-zero\", \"-Xarch_gfx90a\", \"-munsafe-fp-atomics\"";
    let Some(package) = package("hip", &keys(used), "") else {
        return;
    };
    package.put("kernels/k.hip", source);
    let told = package.builds();
    assert!(!told.contains("cargo::warning"), "{told}");
    let starts = package.starts();
    package.builds();
    assert_eq!(package.starts(), starts);
    package.declare(&keys(&format!("\"-use_fast_math\", {used}, \"-lineinfo\"")));
    let told = package.builds();
    let warning = "cargo::warning=flags of `kernels`: clang uses none of these: `-lineinfo`, `-u se_fast_math`\n\
        cargo::warning=hint: remove them\n";
    assert!(told.contains(warning), "{told}");
    // Of one target.
    package.declare(&format!(
        "{}[package.metadata.offload.target.gfx1100]\nflags = [\"-lineinfo\"]\n",
        keys(used)
    ));
    let told = package.builds();
    assert!(
        told.contains("clang uses none of these: `-lineinfo`\n"),
        "{told}"
    );
}
