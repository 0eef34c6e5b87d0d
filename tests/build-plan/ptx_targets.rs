//! Targets whose images are PTX: of CUDA and LLVM IR, in each container.

use crate::support;

use std::fs;
use std::process::Command;
use support::cuda_package::{
    CUDA, HEADER, cuda, images, package, program, script, targets, theirs,
};
use support::package::{OUT, text};

#[test]
fn packs_ptx_and_cubins_as_nvidias_tools_do() {
    let names = ["compute_90", "sm_80", "compute_80"];
    let (Some(cuda), Some(package)) = (cuda(), package(&format!("{CUDA}{}", targets(&names))))
    else {
        return;
    };
    let told = text(&script(&package, &cuda).output().unwrap());
    assert!(
        told.contains("cargo::rustc-cfg=offload_target_compute_90\n"),
        "{told}"
    );
    // The version; two sources for each processor, and code for each target.
    assert_eq!(package.starts(), 1 + 2 * 2 + 3);
    let expected = theirs(
        &cuda,
        &package,
        &["--compress=false"],
        &[
            ("kind=ptx,sm=90", &package.image("compute_90")),
            ("kind=elf,sm=80", &package.image("sm_80")),
            ("kind=ptx,sm=80", &package.image("compute_80")),
        ],
    );
    assert!(images(&package) == expected);
    let dump = |option: &str| {
        let mut command = Command::new(cuda.join("bin/cuobjdump"));
        support::run(
            command
                .arg(option)
                .arg(package.at(OUT).join("offload/kernels/images")),
        )
    };
    assert_eq!(dump("--list-ptx").lines().count(), 2);
    assert_eq!(
        dump("--dump-ptx").matches(".visible .entry scale(").count(),
        2
    );

    let main = "for i in kernels::images() { println!(\"{} {} {:?}\", i.target, i.kind, i.bytes.last() == Some(&0)); }\
                let k = kernels::kernel::scale; println!(\"{:?}\", k.arguments.iter().map(|a| (a.offset, a.size)).collect::<Vec<_>>());\
                for i in k.images { println!(\"{} {} {}\", i.target, i.arguments_size, i.registers.is_some()); }";
    let printed = program(&package, main);
    let (first, rest) = printed.split_once('\n').unwrap();
    assert_eq!(first, "compute_90 ptx true");
    assert!(
        rest.contains("\ncompute_80 ptx true\n[(0, 8), (8, 1), (16, 16)]\n"),
        "{printed}"
    );
    assert!(
        rest.ends_with("compute_90 32 false\nsm_80 32 true\ncompute_80 32 false\n"),
        "{printed}"
    );
}

#[test]
fn compiles_ptx_apart_if_its_target_has_keys_of_its_own() {
    let table = "[package.metadata.offload.target.compute_80]\ndefine = { OF_PTX = 1 }\n";
    let keys = format!("{CUDA}{}", targets(&["sm_80", "compute_80"]));
    let (Some(cuda), Some(package)) = (cuda(), package(&keys)) else {
        return;
    };
    let compiles = || {
        let mut script = script(&package, &cuda);
        let output = script.env("OFFLOAD_DRY_RUN", "1").output().unwrap();
        let plan = String::from_utf8(output.stderr).unwrap();
        let compiles = plan
            .lines()
            .filter(|line| line.contains("--offload-device-only"));
        let of_ptx = compiles.clone().filter(|line| line.contains("-DOF_PTX=1"));
        (compiles.count(), of_ptx.count())
    };
    // Both are made of the same bitcode of two sources.
    assert_eq!(compiles(), (2, 0));
    package.declare(&format!("{keys}{table}"));
    assert_eq!(compiles(), (4, 2));
}

#[test]
fn makes_ptx_for_each_processor_that_clang_has() {
    let Some(clang) = support::tool("llvm22", &["clang"]) else {
        return;
    };
    // Each needs a version of PTX that is not too old for it.
    let names = [
        "compute_75",
        "compute_90a",
        "compute_100",
        "compute_100a",
        "compute_103",
        "compute_121a",
    ];
    let Some(package) = package(&format!("{CUDA}{}container = \"raw\"\n", targets(&names))) else {
        return;
    };
    text(
        &package
            .script()
            .env("OFFLOAD_COMPILER", clang)
            .output()
            .unwrap(),
    );
    for name in names {
        let ptx = fs::read_to_string(package.image(name)).unwrap();
        let target = format!("\n.target {}\n", name.replace("compute", "sm"));
        assert!(ptx.contains(&target), "{ptx}");
    }
}

#[test]
fn needs_none_of_nvidias_tools_for_ptx_alone() {
    let Some(package) = package(&format!("{CUDA}{}", targets(&["compute_80"]))) else {
        return;
    };
    let told = text(&package.script().output().unwrap());
    assert!(!told.contains("cargo::warning"), "{told}");
    assert!(images(&package).starts_with(b"\x50\xed\x55\xba\x01\0\x10\0"));
    let ptx = fs::read(package.image("compute_80")).unwrap();
    let main = "println!(\"{:?} {}\", kernels::KERNELS, kernels::image().unwrap().ends_with(b\"\\0\"));\
                println!(\"{}\", kernels::images()[0].bytes.len());";
    let build = |container: &str| {
        text(
            &package
                .script()
                .env("OFFLOAD_CONTAINER", container)
                .output()
                .unwrap(),
        );
    };
    // As `cuModuleLoadData` takes it.
    build("raw");
    assert_eq!(images(&package), [&ptx[..], b"\0"].concat());
    assert_eq!(
        program(&package, main),
        format!("[\"scale\"] true\n{}\n", ptx.len() + 1)
    );
    build("offload-binary");
    if let Some(packager) = support::tool("llvm22", &["llvm-offload-binary"]) {
        let mut command = Command::new(packager);
        command.arg(package.at(OUT).join("offload/kernels/images"));
        let option = format!(
            "--image=file={},arch=sm_80,kind=cuda",
            package.at("out").display()
        );
        support::run(command.arg(option));
        assert!(fs::read(package.at("out")).unwrap() == ptx);
    }
    // Its kind: PTX.
    let packed = images(&package);
    assert_eq!(packed[0x20..0x22], [5, 0], "{:x?}", &packed[..0x40]);
}

/// clang compiles to bitcode, of which the device link makes PTX and `ptxas` an image.
#[test]
fn generates_code_as_flags_say() {
    let kernel = "extern \"C\" __global__ void scale(double *x, double *y, float *z) { double a[40]; \
        for (int i = 0; i < 40; i++) a[i] = y[i]; for (int i = 0; i < 40; i++) x[i] = a[39 - i] * a[i]; z[0] /= z[1]; }\n";
    let keys = |flags: &str| {
        format!(
            "language = \"cuda\"\nsources = [\"kernels/*.cu\"]\nflags = [\"-nogpulib\", \"-nogpuinc\"{flags}]\n{}",
            targets(&["sm_80", "compute_80"])
        )
    };
    let (Some(cuda), Some(package)) = (cuda(), package(&keys(""))) else {
        return;
    };
    package.put("kernels/k.cu", &format!("{HEADER}{kernel}"));
    let built = |flags: &str| {
        package.declare(&keys(flags));
        text(&script(&package, &cuda).output().unwrap());
        let main = "println!(\"{}\", kernels::kernel::scale.images[0].registers.unwrap())";
        let registers = program(&package, main).trim().parse::<u32>().unwrap();
        let ptx = fs::read_to_string(package.image("compute_80")).unwrap();
        (registers, ptx.matches("div.rn.f32").count())
    };
    let (registers, divisions) = built("");
    assert!(registers > 32 && divisions == 1, "{registers} {divisions}");
    let options = "\"-Xcuda-ptxas\", \"--maxrregcount=32\", \"-mllvm\", \"-nvptx-prec-divf32=0\"";
    assert_eq!(built(&format!(", {options}")), (32, 0));
}

#[test]
fn leaves_ptx_out_where_nobody_makes_it() {
    let names = ["sm_80", "compute_80"];
    let (Some(cuda), Some(package)) = (cuda(), package(&format!("{CUDA}{}", targets(&names))))
    else {
        return;
    };
    // nvcc reads its own headers.
    package.put(
        "kernels/k.h",
        "struct Pair { char a; double b; };\n__device__ int twice(int x);\n",
    );
    let mut script = script(&package, &cuda);
    script
        .env("OFFLOAD_COMPILER", cuda.join("bin/nvcc"))
        .env("OFFLOAD_FLAGS", "-w")
        .env("OFFLOAD_MISSING", "skip");
    let told = text(&script.output().unwrap());
    let note = "module `kernels`: no image for `compute_80`: `nvcc` makes PTX from each source separately: set \
                `images = \"source\"`, or leave out `compiler`";
    assert!(
        told.contains(&format!("cargo::warning={note} [OFF500]\n")),
        "{told}"
    );
    assert!(
        told.contains("cargo::rustc-cfg=offload_target_sm_80\n"),
        "{told}"
    );
    let error = package.fails(script.env("OFFLOAD_MISSING", "error"));
    let hint =
        "hint: OFFLOAD_TARGETS=sm_80 builds the other targets; OFFLOAD_MISSING=skip leaves out";
    assert!(error.starts_with(&format!("{note}\n{hint}")), "{error}");
}

/// With host code nvcc would link PTX with the images.
#[test]
fn leaves_ptx_out_of_host_code_of_nvcc() {
    let (Some(cuda), Some(package)) = (cuda(), package("")) else {
        return;
    };
    package.put("kernels/k.h", "__device__ int twice(int x);\n");
    package.put(
        "kernels/k.cu",
        "#include \"k.h\"\nextern \"C\" __global__ void scale(int *x) { *x = twice(*x); }\n\
         extern \"C\" int launch(int *x) { scale<<<1, 1>>>(x); return cudaGetLastError(); }\n",
    );
    let keys = "language = \"cuda\"\ncompiler = \"nvcc\"\nsources = [\"kernels/*.cu\"]\nhost = true\nrdc = true\nmissing = \"skip\"\n";
    package.declare(&format!("{keys}{}", targets(&["sm_80", "compute_80"])));
    let mut script = script(&package, &cuda);
    script
        .env_remove("OFFLOAD_COMPILER")
        .env("PATH", std::env::var_os("PATH").unwrap());
    let told = text(&script.output().unwrap());
    let note =
        "cargo::warning=module `kernels`: no image for `compute_80`: `nvcc` does not link PTX: ";
    assert!(told.contains(note), "{told}");
    assert!(
        told.contains("cargo::rustc-cfg=offload_target_sm_80\n"),
        "{told}"
    );
    let error = package.fails(script.env("OFFLOAD_TARGETS", "compute_80"));
    assert!(
        error.contains("module `kernels`: no image can be built\n"),
        "{error}"
    );
}

#[test]
fn makes_ptx_of_llvm_ir() {
    let (Some(package), Some(clang)) = (package(""), support::tool("llvm19", &["clang"])) else {
        return;
    };
    for source in ["k", "helper"] {
        let mut command = Command::new(&clang);
        command.current_dir(package.folder.root()).args([
            "-nogpulib",
            "-nogpuinc",
            "--offload-device-only",
            "-fgpu-rdc",
            "-emit-llvm",
            "-c",
            "-x",
            "cuda",
            "--offload-arch=sm_80",
            "--cuda-feature=+ptx70",
        ]);
        let (source, output) = (
            format!("kernels/{source}.cu"),
            format!("kernels/{source}.bc"),
        );
        support::run(command.args([source, "-o".to_owned(), output]));
    }
    let keys = "language = \"bitcode\"\nsources = [\"kernels/*.bc\"]\n";
    package.declare(&format!("{keys}{}", targets(&["compute_80"])));
    text(&package.script().output().unwrap());
    let main = "println!(\"{:?} {}\", kernels::KERNELS, kernels::kernel::scale.arguments.len());";
    assert_eq!(program(&package, main), "[\"scale\"] 3\n");
}

/// clang 22 chooses PTX 4.2 without a toolkit, which has no sm_80, and crashes.
#[test]
fn compiles_llvm_ir_for_nvidia_without_a_toolkit() {
    let (Some(package), Some(clang)) = (package(""), support::tool("llvm22", &["clang"])) else {
        return;
    };
    package.put(
        "kernels/k.ll",
        "target triple = \"nvptx64-nvidia-cuda\"\n\
         define ptx_kernel void @scale(ptr %x) #0 {\n  store float 2.0, ptr %x\n  ret void\n}\n\
         attributes #0 = { \"target-cpu\"=\"sm_80\" }\n",
    );
    let keys = "language = \"bitcode\"\nsources = [\"kernels/*.ll\"]\n";
    package.declare(&format!("{keys}{}", targets(&["compute_80"])));
    let mut script = package.script();
    text(&script.env("OFFLOAD_COMPILER", clang).output().unwrap());
    let ptx = fs::read_to_string(package.image("compute_80")).unwrap();
    assert!(ptx.contains(".visible .entry scale("), "{ptx}");
    assert!(ptx.contains(".version 7.8"), "{ptx}");
}

/// Without `rdc`, as for cubins: each compiler makes such PTX without an error of its own.
#[test]
fn says_what_to_do_if_ptx_calls_an_undefined_function() {
    let keys = format!("{CUDA}{}rdc = false\n", targets(&["compute_80"]));
    let (Some(cuda), Some(package)) = (cuda(), package(&keys)) else {
        return;
    };
    let calls =
        |function: &str| format!("PTX does not define what it uses: {function} [OFF701]\nhint: ");
    let twice = calls("_Z5twicei (`twice(int)`)");
    let own = "with `rdc = false` a source has only the device functions that are in it and in its headers";
    let error = package.fails(&mut package.script());
    let hint = format!(
        "{twice}{own}; if another source of the module defines the function, set `rdc = true`, else define or include it"
    );
    assert!(error.ends_with(&hint), "{error}");
    fs::remove_file(package.at("kernels/helper.cu")).unwrap();
    let only = format!(
        "{twice}{own}: check the name and the arguments of the call, or include the definition"
    );
    for host in ["", "host = true\n"] {
        package.put(
            "kernels/k.cu",
            "__device__ int twice(int x);\n__global__ void k(int *x) { *x = twice(*x); }\n",
        );
        package.declare(&format!("{keys}{host}").replace("\"-nogpulib\", \"-nogpuinc\"", ""));
        let mut script = script(&package, &cuda);
        script
            .env("OFFLOAD_COMPILER", cuda.join("bin/nvcc"))
            .env("PATH", std::env::var_os("PATH").unwrap());
        let error = package.fails(&mut script);
        assert!(error.ends_with(&only), "{host}{error}");
    }
    // As clang 22 compiles the launch of a kernel in a kernel.
    let launch = "extern \"C\" __device__ void *__cudaCDP2GetParameterBuffer(unsigned long, unsigned long);\n\
        extern \"C\" __global__ void k(void **x) { *x = __cudaCDP2GetParameterBuffer(1, 1); }\n";
    package.put("kernels/k.cu", &format!("{HEADER}{launch}"));
    package.declare(&keys);
    let error = package.fails(&mut package.script());
    let hint = calls("__cudaCDP2GetParameterBuffer")
        + "kernels that launch kernels need NVIDIA's compiler and linker: ";
    assert!(error.contains(&hint), "{error}");
}

/// clang 22 gives a `static` variable that the host uses another name, and kernels above that use the old one. ptxas only warns: its
/// image has a second variable, of zeros.
#[test]
fn refuses_images_with_variables_that_nothing_defines() {
    let keys = format!("{CUDA}{}", targets(&["sm_80"]));
    let (Some(cuda), Some(package)) = (cuda(), package(&keys)) else {
        return;
    };
    fs::remove_file(package.at("kernels/helper.cu")).unwrap();
    let uses =
        "__global__ void k(int *y) { *y = count; }\nconst void *address() { return &count; }\n";
    let declaration = "hint: `_ZL5count` is `count`; ";
    for (target, problem, hint) in [
        (
            "sm_80",
            "/bin/ptxas` only warned of an error\n",
            declaration,
        ),
        (
            "compute_80",
            "PTX does not define what it uses: _ZL5count (`count`) [OFF701]\n",
            "hint: ",
        ),
    ] {
        package.declare(&format!("{CUDA}{}", targets(&[target])));
        package.put(
            "kernels/k.cu",
            &format!("{HEADER}static __device__ int count = 7;\n{uses}"),
        );
        let error = package.fails(&mut script(&package, &cuda));
        let hint = format!("{hint}clang renames a `static` variable that the host copies");
        assert!(error.contains(problem) && error.contains(&hint), "{error}");
        // What the hint says.
        package.put(
            "kernels/k.cu",
            &format!(
                "{HEADER}static __device__ int count = 7;\nstatic inline const void *before() {{ return &count; }}\n{uses}"
            ),
        );
        text(&script(&package, &cuda).output().unwrap());
    }
}

#[test]
fn refuses_ptx_that_the_driver_would_not_load() {
    let keys = format!(
        "{CUDA}{}exclude = [\"kernels/helper.cu\"]\n",
        targets(&["compute_80"])
    );
    let Some(package) = package(&keys) else {
        return;
    };
    let error = package.fails(&mut package.script());
    let expected = "images of `kernels`: compute_80: target/build/pack-0123/out/offload/kernels/compute_80/image: \
                    PTX does not define what it uses: _Z5twicei (`twice(int)`) [OFF701]\n\
                    hint: PTX has only the device functions of the module's own sources, and of what `archives` and `link` name: \
                    check the name and the arguments of the call, or add the file that defines the function";
    assert_eq!(error, expected);
    // Nor is there such a target where the host starts kernels by the runtime of another language.
    package.declare("language = \"openmp\"\nsources = [\"kernels/k.cu\"]\nflags = [\"-xc\"]\ntargets = [\"compute_80\"]\n",
    );
    let error = package.fails(&mut package.script());
    assert_eq!(
        error,
        "Cargo.toml:8:1: `compute_80` is not a valid target of `openmp` [OFF503]\n\
         hint: `openmp` takes `sm_80`, and no PTX"
    );
    let both = targets(&["compute_80", "sm_80", "compute_80"]);
    package.declare(&format!("{CUDA}{both}"));
    let error = package.fails(&mut package.script());
    assert_eq!(
        error,
        "Cargo.toml:8:1: `compute_80` and `compute_80` are the same target"
    );
}
