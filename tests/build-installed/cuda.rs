//! Sources written for nvcc, compiled by clang with the headers of a toolkit.

use crate::support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::cuda_package::program;
use support::package::{OUT, Package, text};

const CUDA: &str =
    "language = \"cuda\"\nsources = [\"kernels/*.cu\"]\ntargets = [\"compute_80\"]\n";

/// A toolkit with NVIDIA's headers, without those that wheels lack, and with libcu++ in a folder of its own, as CUDA 13 has it.
fn toolkit(package: &Package) -> Option<PathBuf> {
    let real = support::cuda_package::cuda()?;
    let headers = real.join("include");
    support::tool("cuda", &["../include/cuda_runtime.h"])?;
    let link = |from: &Path, to: &str| {
        let to = package.at("cuda").join(to);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        symlink(from, to).unwrap();
    };
    for name in ["bin", "nvvm", "lib64"] {
        link(&real.join(name), name);
    }
    for header in fs::read_dir(headers).unwrap() {
        let header = header.unwrap();
        let name = header.file_name().into_string().unwrap();
        if !["cccl", "curand_mtgp32_kernel.h"].contains(&name.as_str()) {
            link(&header.path(), &format!("include/{name}"));
        }
    }
    let array = "#pragma once\nnamespace cuda { namespace std { template <class T, int n> struct array { T at[n]; }; } }\n";
    package.put("cuda/include/cccl/cuda/std/array", array);
    // The toolkit's own comes first.
    package.put(
        "cuda/include/cccl/cuda_runtime.h",
        "#error found before the toolkit's header\n",
    );
    Some(package.at("cuda"))
}

/// A package with one source, and its build script with clang 22 and that toolkit.
fn package(source: &str, keys: &str) -> Option<(Package, Command)> {
    let clang = support::tool("llvm22", &["clang"])?;
    let package = Package::new("")?;
    fs::remove_file(package.at("kernels/k.c")).unwrap();
    package.put("kernels/k.cu", source);
    package.declare(keys);
    let toolkit = toolkit(&package)?;
    let mut script = package.script();
    script
        .env("OFFLOAD_COMPILER", clang)
        .env("CUDA_PATH", toolkit);
    Some((package, script))
}

#[test]
fn finds_headers_of_toolkits_that_clang_does_not_search() {
    let source = "#include <cuda_runtime.h>\n#include <cuda/std/array>\n\
        extern \"C\" __global__ void first(float *x) { cuda::std::array<float, 1> a = {x[1]}; x[0] = a.at[0]; }\n";
    let Some((package, mut script)) = package(source, CUDA) else {
        return;
    };
    text(&script.output().unwrap());
    let main = "println!(\"{}\", kernels::kernel::first.name);";
    assert_eq!(program(&package, main), "first\n");
    // Host code includes the same headers.
    package.declare(&format!("{CUDA}host = true\n").replace("compute_80", "sm_80"));
    text(&script.output().unwrap());
    // The header that wheels lack is the toolkit's own if it has one.
    package.put(
        "cuda/include/curand_mtgp32_kernel.h",
        "#define FROM_TOOLKIT 1\n",
    );
    package.put(
        "kernels/k.cu",
        &format!("{source}static_assert(FROM_TOOLKIT);\n"),
    );
    text(&script.output().unwrap());
    // Nothing of this without the toolkit.
    let alone = "#include <offload/gpu.h>\n__global__ void k(int *x) { *x = 1; }\n";
    package.put("kernels/k.cu", alone);
    let plan = script.env("OFFLOAD_DRY_RUN", "1").output().unwrap();
    let plan = String::from_utf8(plan.stderr).unwrap();
    assert!(plan.contains("-nogpuinc"), "{plan}");
    assert!(
        !plan.contains("-idirafter") && !plan.contains("nvcc.h"),
        "{plan}"
    );
}

/// The destructor needs `delete`, whoever calls it.
#[test]
fn makes_objects_in_device_code_without_a_header_as_nvcc_does() {
    let source = "struct Shape { __device__ virtual int area() const { return 1; } __device__ virtual ~Shape() {} };\n\
        __global__ void k(int *o, int n) { Shape *s = new Shape; int *a = new int[n]; o[0] = s->area() + a[0]; delete s; delete[] a; }\n";
    for before in ["", "#include <new>\n"] {
        let Some((_package, mut script)) = package(&format!("{before}{source}"), CUDA) else {
            return;
        };
        // PTX that calls what it does not define is an error.
        let told = text(&script.output().unwrap());
        assert!(told.contains("cargo::rustc-cfg="), "{told}");
    }
}

/// `libstdc++` has classes whose names are keywords of clang.
#[test]
fn gives_host_code_the_functions_of_nvcc_with_each_clang() {
    let source = "#include <cuda_runtime.h>\n#include <cmath>\n#include <string>\n\
        __host__ __device__ int larger(int a, unsigned b) { return max(a, b); }\n\
        __global__ void k(int *x) { x[0] = larger(x[1], 2); }\n\
        extern \"C\" int run() { k<<<1, 1>>>(nullptr); return larger(1, 2) + int(min(2.5, 3)) + CLOCKS_PER_SEC; }\n";
    let header = support::tool("cuda12", &["cuda-12/include/cuda_runtime.h"]);
    for word in ["llvm16", "llvm19"] {
        let (Some(clang), Some(header), Some(package)) =
            (support::tool(word, &["clang"]), &header, Package::new(""))
        else {
            return;
        };
        fs::remove_file(package.at("kernels/k.c")).unwrap();
        package.put("kernels/k.cu", source);
        package.declare(&format!("{CUDA}host = true\nrdc = false\n"));
        let mut script = package.script();
        script
            .env("OFFLOAD_COMPILER", clang)
            .env("OFFLOAD_TARGETS", "sm_80")
            .env("CUDA_PATH", header.ancestors().nth(2).unwrap());
        let told = text(&script.output().unwrap());
        assert!(told.contains("cargo::rustc-link-lib=static"), "{told}");
    }
}

/// Debian spreads the toolkit over `/usr`, and has in `/usr/lib/cuda` what clang looks for.
#[test]
fn finds_the_toolkit_as_debian_installs_it() {
    let source = "#include <cuda_runtime.h>\n__global__ void k(int *x) { *x = 1; }\n";
    let Some((package, mut script)) = package(source, CUDA) else {
        return;
    };
    for header in ["cuda.h", "cuda_runtime.h"] {
        package.put(
            &format!("usr/include/{header}"),
            "#define CUDA_VERSION 13000\n",
        );
    }
    package.put("usr/bin/ptxas", "#!/bin/sh\nexit 1\n");
    let collected = package.at("usr/lib/cuda");
    fs::create_dir_all(collected.join("include")).unwrap();
    symlink("../../../include/cuda.h", collected.join("include/cuda.h")).unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut plan = |root: Option<&str>, path: &str| {
        match root {
            Some(root) => script.env("CUDA_PATH", package.at(root)),
            None => script.env_remove("CUDA_PATH"),
        };
        script.env("PATH", path).env("OFFLOAD_DRY_RUN", "1");
        let plan = String::from_utf8(script.output().unwrap().stderr).unwrap();
        let words = plan.split_whitespace();
        let roots = words.filter_map(|word| word.strip_prefix("--cuda-path="));
        roots.map(PathBuf::from).next()
    };
    for root in ["usr", "usr/lib/cuda"] {
        assert_eq!(plan(Some(root), &path), Some(collected.clone()), "{root}");
    }
    // Without a variable, what the compilers in PATH belong to.
    let bin = package.at("usr/bin").display().to_string();
    assert_eq!(plan(None, &format!("{bin}:{path}")), Some(collected));
    assert_eq!(plan(Some("cuda"), &path), Some(package.at("cuda")));
}

#[test]
fn asserts_in_device_code_without_a_header_as_nvcc_does() {
    let source = "extern \"C\" __global__ void k(unsigned *x, unsigned n) { assert(n > 1); x[0] = min(n, 2u); }\n";
    let Some((package, mut script)) = package(source, CUDA) else {
        return;
    };
    text(&script.output().unwrap());
    let ptx = package.at(OUT).join("offload/kernels/compute_80/image");
    let ptx = fs::read_to_string(ptx).unwrap();
    assert!(ptx.contains("__assertfail"), "{ptx}");
    package.declare(&format!("{CUDA}define = {{ NDEBUG = true }}\n"));
    text(&script.output().unwrap());
    let ptx = package.at(OUT).join("offload/kernels/compute_80/image");
    let ptx = fs::read_to_string(ptx).unwrap();
    assert!(!ptx.contains("__assertfail"), "{ptx}");
}

#[test]
fn says_which_flag_leaves_the_device_libraries_out() {
    let source =
        "#include <cuda_runtime.h>\nextern \"C\" __global__ void k(float *x) { *x = sinf(*x); }\n";
    let keys = format!("{CUDA}flags = [\"-nogpulib\"]\n");
    let Some((package, mut script)) = package(source, &keys) else {
        return;
    };
    let hint = "\nhint: `-nogpulib` in `flags` leaves the vendor's device libraries out: remove it";
    for target in ["compute_80", "sm_80"] {
        let error = package.fails(script.env("OFFLOAD_TARGETS", target));
        assert!(error.contains(hint), "{error}");
    }
}

#[test]
fn says_which_package_has_a_header_of_cuda_libraries() {
    let Some((package, mut script)) = package("#include <nv/target>\n", CUDA) else {
        return;
    };
    let hint = "\nhint: this header is part of CCCL, which some installations of CUDA lack: install it with the toolkit's \
        installer, or copy the headers of PyPI's `nvidia-cuda-cccl` (CUDA 12: `nvidia-cuda-cccl-cu12`) to the toolkit's \
        `include`\n";
    let error = package.fails(&mut script);
    assert!(error.contains("'nv/target' file not found"), "{error}");
    assert!(error.contains(hint), "{error}");
    package.put("kernels/k.cu", "#include <cccl/cuda/std/utility>\n");
    let error = package.fails(&mut script);
    assert!(error.contains(hint), "{error}");
    package.put("kernels/k.cu", "#include <cub/cub.cuh>\n");
    script.env("OFFLOAD_COMPILER", package.at("cuda/bin/nvcc"));
    let error = package.fails(&mut script);
    assert!(error.contains("cub/cub.cuh: No such file"), "{error}");
    assert!(error.contains(hint), "{error}");
    package.put("kernels/k.cu", "#include <cublas_v2.h>\n");
    let hint = "\nhint: this header is part of a library of CUDA: install it with the toolkit's installer, or add the folder \
        `include` of its wheel from PyPI (`nvidia-cublas`, `nvidia-cufft`, `nvidia-curand`, `nvidia-cusolver`, `nvidia-cusparse`; for \
        CUDA 12 with `-cu12`) to `include`\n";
    let error = package.fails(&mut script);
    assert!(
        error.contains("cublas_v2.h: No such file") && error.contains(hint),
        "{error}"
    );
    for header in ["cuda_profiler_api.h", "nvtx3/none.h", "nvrtc.h"] {
        // The toolkit here may have the others.
        if package.at("cuda/include").join(header).exists() {
            continue;
        }
        package.put("kernels/k.cu", &format!("#include <{header}>\n"));
        let error = package.fails(&mut script);
        let hint = "\nhint: this header is a part of CUDA's toolkit that some installations lack: ";
        assert!(error.contains(hint), "{error}");
    }
    let other = "\nhint: this header is part of a library that CUDA's toolkit lacks: install it, and add its folder of headers to \
        `include`, as the folder `include` of its wheel from PyPI (such as `nvidia-nccl-cu13`)\n";
    package.put("kernels/k.cu", "#include <nccl.h>\n");
    let error = package.fails(&mut script);
    assert!(error.contains(other), "{error}");
    script.env_remove("OFFLOAD_COMPILER");
    let error = package.fails(&mut script);
    assert!(error.contains(other), "{error}");
    package.put("kernels/k.cu", "#include <cublas_v2.h>\n");
    let error = package.fails(&mut script);
    assert!(
        error.contains("'cublas_v2.h' file not found") && error.contains(hint),
        "{error}"
    );
    // Clang words it otherwise if the source's folder has such a file.
    package.put("kernels/cublas_v2.h", "#include_next <cublas_v2.h>\n");
    let error = package.fails(&mut script);
    assert!(
        error.contains("error: 'cublas_v2.h' file not found with <angled> include")
            && error.contains("\nhint: if the header is your own, include it in quotes; if not: ")
            && error.contains(hint.trim_start_matches("\nhint: ")),
        "{error}"
    );
}

#[test]
fn says_that_a_folder_has_a_header_in_place_of_cudas() {
    let source = "#include <cuda_runtime.h>\n#include \"mine.h\"\n\
        extern \"C\" __global__ void k(float *x) { *x = VALUE; }\n";
    let keys = |key: &str| format!("{CUDA}{key}\n");
    let Some((package, mut script)) = package(source, &keys("include = [\"own\"]")) else {
        return;
    };
    package.put("own/cuda.h", "#define VALUE 1\n");
    package.put("own/mine.h", "#include \"cuda.h\"\n");
    let error = package.fails(&mut script);
    let hint = "\nhint: clang reads `cuda.h` from a folder of `include` instead of CUDA's: set `compiler = \"nvcc\"`, or, if your `cuda.h` is \
        beside the files that include it, name the folder by `flags = [\"-idirafter\", \"DIR\"]` in place of `include`\n";
    assert!(error.contains(hint), "{error}");
    package.declare(&keys("flags = [\"-idirafter\", \"own\"]"));
    text(&script.output().unwrap());
}

#[test]
fn names_kernels_after_the_list_of_architectures_on_all_sides() {
    // CUB and Thrust have the list in the names of their kernels.
    let source = "template <int...> __global__ void k(int *x) { *x = 1; }\n\
        void launch(int *x) { k<__CUDA_ARCH_LIST__><<<1, 1>>>(x); }\n";
    let targets = "targets = [\"compute_90\", \"compute_80\"]";
    let keys = CUDA.replace("targets = [\"compute_80\"]", targets);
    let Some((package, mut script)) = package(source, &format!("{keys}host = true\n")) else {
        return;
    };
    text(&script.output().unwrap());
    let name = "_Z1kIJLi800ELi900EEEvPi";
    let folder = package.at(OUT).join("offload/kernels");
    for object in ["host", "compute_80", "compute_90"] {
        let files = fs::read_dir(folder.join(object)).unwrap();
        let bytes = files.map(|file| fs::read(file.unwrap().path()).unwrap());
        let has = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).contains(name);
        assert!(bytes.into_iter().any(has), "{object}");
    }
    // nvcc, with a process for each image.
    script.env("OFFLOAD_COMPILER", package.at("cuda/bin/nvcc"));
    let instance = "template __global__ void k<__CUDA_ARCH_LIST__>(int *);\n";
    package.put("kernels/k.cu", &format!("{source}{instance}"));
    package.declare(&format!("{keys}images = \"source\"\n"));
    text(&script.output().unwrap());
    let file = fs::read_to_string(package.at(OUT).join("kernels.rs")).unwrap();
    assert!(file.contains(name), "{file}");
    script.env("OFFLOAD_COMPILER", "clang-22");
    // Another list is the user's affair.
    package.declare(&format!(
        "{keys}host = true\ndefine = {{ __CUDA_ARCH_LIST__ = \"700\" }}\n"
    ));
    let plan = script.env("OFFLOAD_DRY_RUN", "1").output().unwrap();
    let plan = String::from_utf8(plan.stderr).unwrap();
    assert!(plan.contains(" -D__CUDA_ARCH_LIST__=700 "), "{plan}");
    assert!(!plan.contains("800,900"), "{plan}");
}

#[test]
fn says_what_to_do_with_sources_and_flags_for_nvcc() {
    let source = "inline int checked(int x) {\n#ifdef __CUDA_ARCH__\n  if (x < 0) __trap();\n#endif\n  return x;\n}\n\
        extern \"C\" __global__ void k(int *x) { *x = 1; }\n";
    let Some((package, mut script)) = package(source, CUDA) else {
        return;
    };
    let error = package.fails(&mut script);
    let hint = "\nhint: declare the called function `__host__ __device__`; if the call stands in a template or below \
        `#ifdef __CUDA_ARCH__`, nvcc accepts it: set `compiler = \"nvcc\"` for a module of these sources, or put the host \
        function into `#ifndef __CUDA_ARCH__`\n";
    assert!(error.contains(hint), "{error}");
    let source = "#ifdef __CUDA_ARCH__\n__device__ int f() { return 1; }\n#else\nint f() { return 1; }\n#endif\n\
        extern \"C\" __global__ void k(int *x) { *x = f(); }\n";
    package.put("kernels/k.cu", source);
    package.declare(&format!("{CUDA}host = true\n"));
    let error = package.fails(&mut script);
    let hint = "\nhint: nvcc does not compile kernels for the host: set `compiler = \"nvcc\"` for a module of these sources, or \
        declare the function `__host__ __device__`\n";
    assert!(error.contains(hint), "{error}");
    let source = "using Launch = std::function<void()>;\nextern \"C\" __global__ void k(int *x) { *x = 1; }\n";
    package.put("kernels/k.cu", source);
    let error = package.fails(&mut script);
    let hint = "\nhint: clang does not include `<functional>` and `<utility>`, as nvcc does with `--expt-extended-lambda`: include them in the source\n";
    assert!(error.contains(hint), "{error}");
    package.declare(CUDA);
    let source = "__device__ __attribute__((managed)) int total;\nextern \"C\" __global__ void k(int *x) { *x = total; }\n";
    package.put("kernels/k.cu", source);
    let error = package.fails(&mut script);
    let hint = "\nhint: clang has no `__managed__` variables for CUDA: ";
    assert!(
        error.contains("'managed' attribute ignored") && error.contains(hint),
        "{error}"
    );
    let source = "extern \"C\" __global__ void k(int *x) { asm(\"{ .reg .b32 %lo; mov.b32 %lo, 3; mov.b32 %0, %lo; }\" : \"=r\"(*x)); }\n";
    package.put("kernels/k.cu", source);
    let error = package.fails(&mut script);
    let hint = "\nhint: nvcc accepts a single `%` in front of registers: set `compiler = \"nvcc\"`, or write `%%` in each \
        `asm` with operands, which both accept\n";
    assert!(error.contains(hint), "{error}");
    // Without operands, clang hands both on.
    package.declare(&CUDA.replace("compute_80", "sm_80"));
    let source = "extern \"C\" __global__ void k() { asm volatile(\"{ .reg .pred %%p; }\"); }\n";
    package.put("kernels/k.cu", source);
    let error = package.fails(&mut script);
    assert!(error.contains("Parsing error near '%'"), "{error}");
    let hint = "\nhint: in an `asm` without operands a register has a single `%`\n";
    assert!(error.contains(hint), "{error}");
    // ptxas refuses it, and so would the driver.
    let source = "extern \"C\" __global__ void k(int n, char *out) {\n  extern __shared__ char tile[];\n  \
        char *p[2] = {tile, tile + 16};\n  for (int i = 0; i < n; i++) out[i] = *p[(i + blockIdx.x) & 1];\n}\n";
    package.put("kernels/k.cu", source);
    let hint = "\nhint: clang makes a constant of a table of addresses in shared memory, such as `char *p[2] = {tile, tile + 16};`: \
        assign to its elements, `p[0] = tile;`, or set `compiler = \"nvcc\"`";
    let error = package.fails(&mut script);
    assert!(
        error.contains("used as initial value not in") && error.contains(hint),
        "{error}"
    );
    package.declare(CUDA);
    let error = package.fails(&mut script);
    assert!(
        error.contains("with addresses in shared memory") && error.contains(hint),
        "{error}"
    );
    let hint = "\nhint: nvcc accepts the type `T::Other` without the keyword: set `compiler = \"nvcc\"`, or write `typename T::Other`, \
        which both accept\n";
    for (template, message) in [
        (
            "template <class T> __device__ int one() { return sizeof(T); }\n",
            "missing 'typename'",
        ),
        (
            "template <class T> struct one { int size = sizeof(T); __device__ operator int() { return size; } };\n",
            "did you forget 'typename'?",
        ),
    ] {
        let source = format!(
            "{template}struct Tiles {{ typedef int Tile; }};\n\
             template <class T> __device__ int size() {{ return one<T::Tile>(); }}\n\
             extern \"C\" __global__ void k(int *x) {{ *x = size<Tiles>(); }}\n"
        );
        package.put("kernels/k.cu", &source);
        let error = package.fails(&mut script);
        assert!(error.contains(message) && error.contains(hint), "{error}");
    }
    let hint = "\nhint: nvcc accepts `T::cast<n>(x)` where `T` is dependent: set `compiler = \"nvcc\"`, or write \
        `T::template cast<n>(x)`, which both accept\n";
    // Where clang sees that a template is meant, and where it reads two comparisons.
    for (call, message) in [
        (
            "Cast<n>::cast<2>(1)",
            "missing 'template' keyword prior to dependent template name",
        ),
        (
            "Cast<n>::cast<n>(1)",
            "missing 'template' keyword prior to dependent template name",
        ),
        (
            "1 + T::cast<n>(1)",
            "reference to overloaded function could not be resolved",
        ),
    ] {
        let source = format!(
            "template <int n> struct Cast {{ template <int m> static __device__ int cast(int x) {{ return x * m; }}\n\
             template <int m> static __device__ int cast(long x) {{ return x * m; }} }};\n\
             template <int n, class T> __global__ void k(int *x) {{ *x = {call}; }}\n\
             template __global__ void k<1, Cast<1>>(int *);\n"
        );
        package.put("kernels/k.cu", &source);
        let error = package.fails(&mut script);
        assert!(error.contains(message) && error.contains(hint), "{error}");
    }
    let source = "template <class T> struct View { View(T); };\n__attribute__((host)) View(long) -> View<long>;\n\
        extern \"C\" __global__ void k(int *x) { *x = 1; }\n";
    package.put("kernels/k.cu", source);
    let error = package.fails(&mut script);
    let hint = "\nhint: clang does not read CCCL 3.1 to 3.3: set `compiler = \"nvcc\"`, or add the folder `include/cccl` of another \
        release, such as that of PyPI's newest `nvidia-cuda-cccl`, to `include`\n";
    assert!(error.contains(hint), "{error}");
    let source = "struct Raw { int x; };\nstruct Half { __device__ Half &operator=(const Half &); __device__ Half &operator=(const Raw &); };\n\
        extern \"C\" __global__ void k(Half *x) { *x = {}; }\n";
    package.put("kernels/k.cu", source);
    let error = package.fails(&mut script);
    let hint = "\nhint: nvcc accepts `x = {}` where several assignments fit, as for `half2`: set `compiler = \"nvcc\"`, or write \
        `x = half2{}`, which both accept\n";
    assert!(error.contains(hint), "{error}");
    package.declare(&format!("{CUDA}flags = [\"--expt-relaxed-constexpr\"]\n"));
    let error = package.fails(&mut script);
    let hint = "\nhint: clang compiles this module, so `flags` are its options: for those of nvcc set `compiler = \"nvcc\"`\n";
    assert!(error.contains(hint), "{error}");
    // What the manifest says has no effect here.
    let note = "\nnote: OFFLOAD_COMPILER replaces the key `compiler`: unset it, or name the compiler there";
    assert!(error.ends_with(note), "{error}");
    let clang = script
        .get_envs()
        .find(|(name, _)| *name == "OFFLOAD_COMPILER");
    let clang = clang.and_then(|(_, path)| path).unwrap().display();
    let keys = format!("{CUDA}compiler = \"{clang}\"\nflags = [\"--expt-relaxed-constexpr\"]\n");
    package.declare(&keys);
    let error = package.fails(script.env_remove("OFFLOAD_COMPILER"));
    assert!(error.contains(hint) && !error.contains("note: "), "{error}");
}

#[test]
fn says_which_folders_of_headers_do_not_exist() {
    let source = "#include \"own.h\"\nextern \"C\" __global__ void k(float *x) { *x = 1; }\n";
    let keys = |folders: &str| format!("{CUDA}include = [{folders}]\n");
    let Some((package, mut script)) = package(source, &keys("\"headers-old\", \"include\"")) else {
        return;
    };
    package.put("include/other.h", "");
    let folder = package.folder.root().display();
    let clang = support::tool("llvm22", &["clang"]).unwrap();
    for compiler in [clang, package.at("cuda/bin/nvcc")] {
        script.env("OFFLOAD_COMPILER", compiler);
        package.declare(&keys("\"headers-old\", \"include\""));
        let error = package.fails(&mut script);
        let note = "\nnote: `include` names folders that do not exist: `headers-old`";
        assert!(error.ends_with(note), "{error}");
        package.declare(&keys("\"$ROOT/include\""));
        let error = package.fails(&mut script);
        let note = "\nnote: `include` names folders that do not exist: `$ROOT/include`\n\
            hint: a variable is `${NAME}` in a manifest, not `$NAME`";
        assert!(error.ends_with(note), "{folder}: {error}");
        package.declare(&keys("\"include\""));
        let error = package.fails(&mut script);
        assert!(
            error.contains("own.h") && !error.contains("note: "),
            "{error}"
        );
    }
}

/// As CUTLASS's collectives do, without which code behind them has errors of its own.
#[test]
fn hints_at_the_first_error() {
    let source = "#ifndef __CUDACC_VER_MAJOR__\n\
        static_assert(false, \"Unsupported Toolkit for SM90 Collective Builder\");\n#endif\n\
        template <class T> __device__ int size() { return sizeof(T); }\n\
        struct Tiles { typedef int Tile; };\n\
        template <class T> __device__ int tile() { return size<T::Tile>(); }\n\
        extern \"C\" __global__ void k(int *x) { *x = tile<Tiles>(); }\n";
    let Some((package, mut script)) = package(source, CUDA) else {
        return;
    };
    let error = package.fails(&mut script);
    let hint = "\nhint: CUTLASS asks for the toolkit's release, which clang does not define: \
        `define = { __CUDACC_VER_MAJOR__ = 13, __CUDACC_VER_MINOR__ = 5 }` for CUDA 13.5, or set `compiler = \"nvcc\"`\n";
    assert!(error.contains("missing 'typename'"), "{error}");
    assert!(error.contains(hint), "{error}");
}

#[test]
fn says_where_the_keyword_template_is_missing_before_types() {
    let source = |call: &str, name: &str| {
        format!(
            "struct S {{ template <class T> __device__ T get() {{ return 1; }} template <class T> using Other = T; }};\n\
             template <class T> __global__ void k(T t, int *x) {{ typename T::{name}<int> y = {call}<int>(); *x = y; }}\n\
             template __global__ void k<S>(S, int *);\n"
        )
    };
    let Some((package, mut script)) = package("", CUDA) else {
        return;
    };
    let mut fails = |call: &str, name: &str| {
        package.put("kernels/k.cu", &source(call, name));
        package.fails(&mut script)
    };
    let hint = "\nhint: write `T::template cast<int>(x)` or `t.template cast<int>(x)` for a call, and `typename T::template \
        Other<int>` for a type, where `T` is dependent: nvcc accepts these, too, and the type without the keyword\n";
    for (call, name) in [("t.get", "template Other"), ("t.template get", "Other")] {
        let error = fails(call, name);
        let message = "error: use 'template' keyword to treat";
        assert!(error.contains(message) && error.contains(hint), "{error}");
    }
    let nvcc = support::cuda_package::cuda().unwrap().join("bin/nvcc");
    let sm_80 = CUDA.replace("compute_80", "sm_80");
    let mut script = package.script();
    script
        .env("OFFLOAD_COMPILER", &nvcc)
        .env("PATH", std::env::var_os("PATH").unwrap());
    package.declare(&sm_80);
    package.put("kernels/k.cu", &source("t.get", "Other"));
    let error = package.fails(&mut script);
    let hint = "\nhint: if it is in a call such as `T::cast<int>(x)` or `t.cast<int>(x)`, where `T` is dependent, write \
        `T::template cast<int>(x)` or `t.template cast<int>(x)`\n";
    let message = "error: type name is not allowed";
    assert!(error.contains(message) && error.contains(hint), "{error}");
    // nvcc says it of any parameter, too.
    package.put("kernels/k.cu", "void call(Missing *missing, int x);\n");
    let error = package.fails(&mut script);
    let is_hinted = error.contains("`T::template cast");
    assert!(error.contains(message) && !is_hinted, "{error}");
    // As the hints say.
    package.put("kernels/k.cu", &source("t.template get", "Other"));
    text(&script.output().unwrap());
    package.put("kernels/k.cu", &source("t.template get", "template Other"));
    text(&script.output().unwrap());
}

#[test]
fn knows_functions_that_the_toolkits_headers_call() {
    let source = "extern \"C\" __global__ void k(unsigned *x, int *y) {\n\
          y[0] = __dp4a(y[1], y[2], y[3]) + __dp2a_lo(y[4], y[5], y[6]) + __dp2a_hi(y[7], y[8], y[9]);\n\
          x[0] = __dp4a(x[1], x[2], x[3]) + __dp2a_lo(x[4], x[5], x[6]) + __dp2a_hi(x[7], x[8], x[9]);\n\
          x[10] = __nv_bswap16(x[11]) + __nv_bswap32(x[12]) + __nv_bswap64(x[13]);\n\
        }\n";
    let Some((package, mut script)) = package(source, CUDA) else {
        return;
    };
    text(&script.output().unwrap());
    let ptx = package.at(OUT).join("offload/kernels/compute_80/image");
    let ptx = fs::read_to_string(ptx).unwrap();
    for instruction in [
        "dp4a.s32.s32",
        "dp4a.u32.u32",
        "dp2a.lo.s32.s32",
        "dp2a.hi.u32.u32",
    ] {
        assert!(ptx.contains(instruction), "{instruction}: {ptx}");
    }
    assert!(!ptx.contains("_impl"), "{ptx}");
    // ptxas takes them all.
    package.declare(&CUDA.replace("compute_80", "sm_80"));
    text(&script.output().unwrap());
}

/// nvcc has them for these types; clang lacks these five.
#[test]
fn loads_and_stores_with_the_cache_hints_of_nvcc() {
    let source = "template <class T> __device__ void copy(const T *x, T *y) {\n\
          __stwb(y, __ldca(x)); __stcg(y + 1, __ldlu(x + 1)); __stcs(y + 2, __ldca(x + 2));\n\
        }\n\
        extern \"C\" __global__ void k(char *a, short2 *b, float *c, double *d, float4 *e, long *f, uchar4 *g, short *h) {\n\
          copy(a, a + 9); copy(b, b + 9); copy(c, c + 9); copy(d, d + 9); copy(e, e + 9); copy(f, f + 9); copy(g, g + 9); copy(h, h + 9);\n\
          __stwb(c, 1); __stcs(a, 'x');\n\
        }\n";
    let Some((package, mut script)) = package(source, CUDA) else {
        return;
    };
    text(&script.output().unwrap());
    let ours = fs::read_to_string(package.at(OUT).join("offload/kernels/compute_80/image"));
    // The bytes of each instruction, from words such as `ld.global.ca.v2.b64`.
    let accesses = |ptx: &str| -> Vec<(String, u32)> {
        let mut found = Vec::new();
        for word in ptx.split_whitespace() {
            let parts: Vec<&str> = word.trim_end_matches(',').split('.').collect();
            let [
                access @ ("ld" | "st"),
                "global",
                hint @ ("ca" | "lu" | "wb" | "cg" | "cs"),
                vector @ ..,
                kind,
            ] = parts.as_slice()
            else {
                continue;
            };
            let count: u32 = vector
                .first()
                .map_or(1, |vector| vector.trim_start_matches('v').parse().unwrap());
            let bits: u32 = kind.get(1..).unwrap().parse().unwrap();
            found.push((format!("{access}.{hint}"), count * bits / 8));
        }
        found.sort();
        found
    };
    let ours = accesses(&ours.unwrap());
    assert_eq!(ours.len(), 6 * 8 + 2, "{ours:?}");
    let nvcc = support::cuda_package::cuda().unwrap().join("bin/nvcc");
    let theirs = package.at("theirs.ptx");
    let mut command = Command::new(nvcc);
    command
        .args(["-arch=compute_80", "-ptx", "-o"])
        .arg(&theirs);
    support::run(command.arg(package.at("kernels/k.cu")));
    assert_eq!(ours, accesses(&fs::read_to_string(&theirs).unwrap()));
    // ptxas takes them all, and so does clang where it compiles the host's part.
    let both = CUDA.replace("compute_80", "sm_80") + "host = true\n";
    package.declare(&both);
    text(&script.output().unwrap());
}
