//! Hints for compiles that fail, and hints for device links with the same causes.

use crate::steps::task::SymbolHints;
use offload_build_core::compile::clang::MANAGED;
use offload_build_core::declare::family::Family;
use offload_build_core::declare::language::Language;
use offload_build_core::declare::module::Module;

/// Returns the hints for compiles that fail.
pub(crate) fn of(module: &Module, family: Family) -> SymbolHints {
    SymbolHints {
        others: match module.language {
            Language::Cuda => FOR_CUDA,
            Language::Hip => FOR_HIP,
            Language::OpenMp => FOR_OPENMP,
            _ => &[],
        },
        ..match family {
            // Its compiles run ptxas, which reports undefined functions.
            Family::Nvcc if !module.rdc => SymbolHints {
                undefined: own_hint(module),
                redeclared: EXTERN_VARIABLE,
                ..SymbolHints::default()
            },
            _ => SymbolHints::default(),
        }
    }
}

/// Returns the hint for functions that no source defines for itself, if each has only its own.
pub(crate) fn own_hint(module: &Module) -> &'static str {
    match module.sources.len() {
        1 => ONLY_HINT,
        _ => OWN_HINT,
    }
}

pub(crate) const LAUNCH_HINT: &str = "kernels that launch kernels need NVIDIA's compiler and linker: set `compiler = \"nvcc\"` and \
    `rdc = true`";

pub(crate) const RUNTIME_HINT: &str = "kernels that launch kernels need CUDA's device runtime: install it with the toolkit's installer, or \
    copy `libcudadevrt.a` of PyPI's `nvidia-cuda-runtime` (CUDA 12: `nvidia-cuda-runtime-cu12`) to the toolkit's `lib64`";

/// The hint for a header of CUDA's libraries for C++, which CUDA's own headers include, too.
const CCCL: &str = "this header is part of CCCL, which some installations of CUDA lack: install it with the toolkit's \
    installer, or copy the headers of PyPI's `nvidia-cuda-cccl` (CUDA 12: `nvidia-cuda-cccl-cu12`) to the toolkit's `include`";

/// The hint for a name of CUB or Thrust that nvcc does not find.
const OLDER_CCCL: &str = "CCCL 3, which is part of CUDA 13, removed names of CUB and Thrust, such as `cub::TransformInputIterator` \
    (`thrust::transform_iterator` replaces it): use others, or CUDA 12, whose nvcc OFFLOAD_COMPILER names; or include the header that declares the name";

/// The hint for a header of a library that CUDA's toolkit contains and its single parts lack.
const CUDA_LIBRARY: &str = "this header is part of a library of CUDA: install it with the toolkit's installer, or add the folder \
    `include` of its wheel from PyPI (`nvidia-cublas`, `nvidia-cufft`, `nvidia-curand`, `nvidia-cusolver`, `nvidia-cusparse`; for CUDA 12 \
    with `-cu12`) to `include`";

/// The hint for a header of CUDA's toolkit that has a package of its own.
const CUDA_PART: &str = "this header is a part of CUDA's toolkit that some installations lack: install it with the toolkit's installer \
    (packages of NVIDIA: `cuda-profiler-api-…`, `cuda-nvtx-…`, `cuda-nvrtc-dev-…`), or add the folder `include` of its wheel from PyPI \
    (`nvidia-cuda-profiler-api`, `nvidia-nvtx`, `nvidia-cuda-nvrtc`; for CUDA 12 with `-cu12`) to `include`";

/// The hint for a header of a library that NVIDIA publishes beside CUDA's toolkit.
const NVIDIA_LIBRARY: &str = "this header is part of a library that CUDA's toolkit lacks: install it, and add its folder of headers to \
    `include`, as the folder `include` of its wheel from PyPI (such as `nvidia-nccl-cu13`)";

/// The hint for a header of a library that has a package of its own beside HIP's.
const ROCM_LIBRARY: &str = "this header is part of a library of ROCm: install its development package (Debian, Ubuntu: `apt install \
    libhipblas-dev`; Fedora: `dnf install hipblas-devel`; other libraries likewise), or add its folder to `include`";

/// The hint for HIP's own headers, `hip/hip_runtime.h` and `hip/hip_runtime_api.h`.
const HIP_HEADER: &str = "install HIP's headers (Debian, Ubuntu: `apt install libamdhip64-dev`; Fedora: `dnf install rocm-hip-devel`; Arch: \
    `pacman -S hip-runtime-amd`), name ROCm's folder by ROCM_PATH, or include `<offload/gpu.h>`, which needs no ROCm";

/// The hint for a header beside HIP's own, such as `hip/hip_bf16.h`.
const NEWER_HIP_HEADER: &str = "HIP's headers on this machine lack this one, which a newer ROCm may have: install it and name its folder by ROCM_PATH";

/// The hint for the header of OpenMP's runtime, of which each release of clang has its own.
const OPENMP_HEADER: (&str, &str) = (
    // With clang's quote, because GCC has a runtime of its own.
    "fatal error: omp.h'",
    "this header belongs to the OpenMP runtime of this clang's release, which is a package of its own (Debian, Ubuntu: `apt install \
     libomp-22-dev` for clang 22; Fedora: `dnf install libomp-devel`): install it, or name a clang that has it with `compiler`",
);

/// Hints for instructions and arguments of newer PTX than images are made of.
const NEWER_PTX: &str = "images are made of the newest PTX that both clang and ptxas know (clang 16 writes 7.8, clang 19 writes 8.5, \
    clang 22 writes 9.0): install a newer clang, or set `compiler = \"nvcc\"`";
pub(crate) const PTX_VERSION: (&str, &str) = ("requires PTX ISA .version", NEWER_PTX);
pub(crate) const PARAMETER_SPACE: (&str, &str) = ("uses too much parameter space", NEWER_PTX);

/// ptxas's message about `%%`, and the hint. nvcc runs ptxas in its compiles, clang's modules in device links.
pub(crate) const ASM_WITHOUT_OPERANDS: (&str, &str) = (
    "Parsing error near '%'",
    "in an `asm` without operands a register has a single `%`",
);

/// The hint for a table of addresses in shared memory.
const SHARED_TABLE: &str = "clang makes a constant of a table of addresses in shared memory, such as `char *p[2] = {tile, tile + 16};`: \
    assign to its elements, `p[0] = tile;`, or set `compiler = \"nvcc\"`";

/// Messages about such a table: ptxas's of dynamic and of other variables, and ours of PTX.
pub(crate) const SHARED_TABLES: [(&str, &str); 3] = [
    (
        "used as initial value not in .global or .const state space",
        SHARED_TABLE,
    ),
    ("Invalid initial value expression", SHARED_TABLE),
    ("with addresses in shared memory", SHARED_TABLE),
];

/// The hint for a dependent type without the keyword.
const TYPENAME: &str = "nvcc accepts the type `T::Other` without the keyword: set `compiler = \"nvcc\"`, or write `typename T::Other`, \
    which both accept";

/// The hint for a device variable that is declared `extern`.
const EXTERN_VARIABLE: &str = "with `rdc = false` nvcc makes a variable of its own for each source that declares one `extern`: if it is a \
    `__device__` or `__constant__` variable of another source, set `rdc = true`, as cc does for several sources";

/// The hint for a call of a dependent template, which clang reads as two comparisons.
const TEMPLATE: &str = "nvcc accepts `T::cast<n>(x)` where `T` is dependent: set `compiler = \"nvcc\"`, or write \
    `T::template cast<n>(x)`, which both accept";

/// The hint for a dependent template with types as arguments. nvcc requires the keyword in calls, and not in names of types.
const TEMPLATE_OF_TYPES: &str = "write `T::template cast<int>(x)` or `t.template cast<int>(x)` for a call, and \
    `typename T::template Other<int>` for a type, where `T` is dependent: nvcc accepts these, too, and the type without the keyword";
/// The hint for nvcc's message about a call without the keyword, which other mistakes also cause.
const TEMPLATE_IN_CALLS: &str = "if it is in a call such as `T::cast<int>(x)` or `t.cast<int>(x)`, where `T` is dependent, write \
    `T::template cast<int>(x)` or `t.template cast<int>(x)`";

const OWN_HINT: &str = "with `rdc = false` a source has only the device functions that are in it and in its headers; \
    if another source of the module defines the function, set `rdc = true`, else define or include it";
const ONLY_HINT: &str = "with `rdc = false` a source has only the device functions that are in it and in its headers: check the name and the \
    arguments of the call, or include the definition";

/// clang gives such an array another type where it is defined, and does not find the one of its declaration again.
const INITIAL_HINT: &str = "clang fails for some arrays with fewer initial values than elements that are declared before they are \
    defined: give each element a value (`{[0 ... 15] = 0}`), or none";
const FOR_OPENMP: &[(&str, &str)] = &[
    UNSUPPORTED_CALL,
    // Of clang 19 and 22.
    ("Offloading entry for declare target variable", INITIAL_HINT),
    ("offloading entry for declare target variable", INITIAL_HINT),
    OPENMP_HEADER,
];

/// The hint for a source without a header of HIP.
const NAMES_OF_HIP: &str = "a header declares HIP's names: include `<hip/hip_runtime.h>` of ROCm, or `<offload/gpu.h>`, which needs no \
    ROCm";

/// Hints for headers that are missing.
const FOR_HIP: &[(&str, &str)] = &[
    UNSUPPORTED_CALL,
    ("use of undeclared identifier 'threadIdx'", NAMES_OF_HIP),
    ("use of undeclared identifier 'blockIdx'", NAMES_OF_HIP),
    ("fatal error: hip/hip_runtime", HIP_HEADER),
    ("fatal error: hip/", NEWER_HIP_HEADER),
    ("fatal error: hipblas", ROCM_LIBRARY),
    ("fatal error: rocblas", ROCM_LIBRARY),
    ("fatal error: hipcub/", ROCM_LIBRARY),
    ("fatal error: rocprim/", ROCM_LIBRARY),
    ("fatal error: thrust/", ROCM_LIBRARY),
    ("fatal error: hiprand", ROCM_LIBRARY),
    ("fatal error: rocrand", ROCM_LIBRARY),
    ("fatal error: hipfft", ROCM_LIBRARY),
    ("fatal error: rocfft", ROCM_LIBRARY),
    ("fatal error: hipsparse", ROCM_LIBRARY),
    ("fatal error: rocsparse", ROCM_LIBRARY),
    ("fatal error: hipsolver", ROCM_LIBRARY),
    ("fatal error: rocsolver", ROCM_LIBRARY),
    ("fatal error: miopen/", ROCM_LIBRARY),
    ("fatal error: rocwmma/", ROCM_LIBRARY),
    ("fatal error: rccl", ROCM_LIBRARY),
    OPENMP_HEADER,
];

/// The hint for a processor that the `ptxas` beside clang does not know.
pub(crate) const OTHER_CUDA: &str = "each release of CUDA has its processors: CUDA 13 begins with sm_75, and new processors need a newer one; CUDA_PATH \
    names another toolkit, and `targets` lists the processors";

/// The hint for a processor that this release of nvcc does not know.
pub(crate) const OTHER_NVCC: &str = "each release of CUDA has its processors: CUDA 13 begins with sm_75, and new processors need a newer one; name \
    another nvcc by OFFLOAD_COMPILER=/usr/local/cuda-12.9/bin/nvcc, or put it first in PATH; `targets` lists the processors";

/// The hint for code that LLVM compiles to a call of a function that GPUs lack: its back end stops with a stack dump.
pub(crate) const UNSUPPORTED_CALL: (&str, &str) = (
    "unsupported library call operation",
    "LLVM has no such operation for GPUs, such as arithmetic of 128-bit floats (`f128`) and conversions between floats and 128-bit integers: \
        use 64-bit floats and integers",
);

/// The hint for atomic loads and stores that order memory, for the oldest processors: the back end stops with a stack dump.
pub(crate) const ATOMIC_OF_OLD_PTX: (&str, &str) = (
    "PTX does not support \"atomic\" for orderings different than",
    "LLVM has them from `sm_70` on: use a relaxed operation with a fence before or after it, or another target",
);

/// The hint for fences of one thread, which the back end for NVIDIA GPUs does not have: it stops with a stack dump.
pub(crate) const FENCE_OF_THREAD: (&str, &str) = (
    "Unsupported scope \"Thread\"",
    "LLVM has no `compiler_fence` (C++: `std::atomic_signal_fence`) for NVIDIA GPUs: remove it, or write `fence`",
);

/// Hints for headers that are missing, and for sources and flags that were written for nvcc.
const FOR_CUDA: &[(&str, &str)] = &[
    UNSUPPORTED_CALL,
    ATOMIC_OF_OLD_PTX,
    FENCE_OF_THREAD,
    (
        "no template named 'function' in namespace 'std'",
        "clang does not include `<functional>` and `<utility>`, as nvcc does with `--expt-extended-lambda`: include them in the source",
    ),
    (
        MANAGED,
        "clang has no `__managed__` variables for CUDA: host and device would each have one of their own. Set `compiler = \"nvcc\"`",
    ),
    ("Unsupported gpu architecture", OTHER_NVCC),
    // nvcc before CUDA 13, for `-arch`.
    ("is not defined for option 'gpu-architecture'", OTHER_NVCC),
    (
        "unsupported GNU version",
        "name an older compiler of the host that this nvcc supports in NVCC_CCBIN, or with `flags = [\"-ccbin=g++-11\"]`",
    ),
    ("fatal error: nv/target", CCCL),
    ("fatal error: cuda/", CCCL),
    ("fatal error: cccl/", CCCL),
    ("fatal error: cub/", CCCL),
    ("fatal error: thrust/", CCCL),
    ("fatal error: cublas", CUDA_LIBRARY),
    ("fatal error: curand", CUDA_LIBRARY),
    ("fatal error: cufft", CUDA_LIBRARY),
    ("fatal error: cusparse", CUDA_LIBRARY),
    ("fatal error: cusolver", CUDA_LIBRARY),
    ("fatal error: cuda_profiler_api.h", CUDA_PART),
    ("fatal error: nvtx3/", CUDA_PART),
    ("fatal error: nvrtc.h", CUDA_PART),
    ("fatal error: nccl", NVIDIA_LIBRARY),
    ("fatal error: cudnn", NVIDIA_LIBRARY),
    OPENMP_HEADER,
    (
        "cuda.h did not define CUDA_VERSION",
        "clang reads `cuda.h` from a folder of `include` instead of CUDA's: set `compiler = \"nvcc\"`, or, if your `cuda.h` is beside the \
         files that include it, name the folder by `flags = [\"-idirafter\", \"DIR\"]` in place of `include`",
    ),
    ("kernel launch from __device__ or __global__", LAUNCH_HINT),
    (
        "call to __device__ function from __host__ function",
        "declare the called function `__host__ __device__`; if the call stands in a template or below `#ifdef __CUDA_ARCH__`, nvcc accepts \
         it: set `compiler = \"nvcc\"` for a module of these sources, or put the host function into `#ifndef __CUDA_ARCH__`",
    ),
    (
        "call to __host__ function from __",
        "nvcc does not compile kernels for the host: set `compiler = \"nvcc\"` for a module of these sources, or declare the \
         function `__host__ __device__`",
    ),
    (
        "invalid % escape in inline assembly string",
        "nvcc accepts a single `%` in front of registers: set `compiler = \"nvcc\"`, or write `%%` in each `asm` with operands, which \
         both accept",
    ),
    ASM_WITHOUT_OPERANDS,
    (
        "default argument references parameter",
        "nvcc takes a parameter's own name in its default argument for the variable outside: set `compiler = \"nvcc\"`, or give the \
         parameter another name",
    ),
    ("missing 'typename' prior to dependent type name", TYPENAME),
    ("did you forget 'typename'?", TYPENAME),
    (
        "overloaded operator '=' is ambiguous",
        "nvcc accepts `x = {}` where several assignments fit, as for `half2`: set `compiler = \"nvcc\"`, or write `x = half2{}`, \
         which both accept",
    ),
    ("missing 'template' keyword prior to dependent", TEMPLATE),
    (
        "reference to overloaded function could not be resolved",
        TEMPLATE,
    ),
    ("use 'template' keyword to treat", TEMPLATE_OF_TYPES),
    (
        "Unsupported Toolkit for SM",
        "CUTLASS asks for the toolkit's release, which clang does not define: `define = { __CUDACC_VER_MAJOR__ = 13, \
         __CUDACC_VER_MINOR__ = 5 }` for CUDA 13.5, or set `compiler = \"nvcc\"`",
    ),
    (
        "deduction guides may only be annotated",
        "clang does not read CCCL 3.1 to 3.3: set `compiler = \"nvcc\"`, or add the folder `include/cccl` of another release, such as \
         that of PyPI's newest `nvidia-cuda-cccl`, to `include`",
    ),
    (
        "unknown argument",
        "clang compiles this module, so `flags` are its options: for those of nvcc set `compiler = \"nvcc\"`",
    ),
    // nvcc takes a parameter's type for an error, too, if another type of the function is undefined.
    ("\" is undefined", ""),
    ("namespace \"cub\" has no member", OLDER_CCCL),
    ("namespace \"thrust\" has no member", OLDER_CCCL),
    ("\" has no member", ""),
    ("type name is not allowed", TEMPLATE_IN_CALLS),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(others: &'static [(&'static str, &'static str)], message: &str) -> String {
        let hints = SymbolHints {
            others,
            ..SymbolHints::default()
        };
        hints.of(message)
    }

    /// Messages of clang 22. The second one is about a source whose folder has a file of that name.
    #[test]
    fn says_which_package_has_the_header_of_openmp() {
        for others in [FOR_CUDA, FOR_HIP, FOR_OPENMP] {
            for message in [
                "/p/k.cu:1:10: fatal error: 'omp.h' file not found\n",
                "/p/k.cu:1:10: error: 'omp.h' file not found with <angled> include; use \"quotes\" instead\n",
            ] {
                let hint = hint(others, message);
                assert!(hint.contains("`apt install libomp-22-dev`"), "{hint}");
            }
        }
        let gcc = "/p/k.cu:1:10: fatal error: omp.h: No such file or directory\n";
        assert_eq!(hint(FOR_CUDA, gcc), "");
    }

    /// Messages of GCC and clang.
    #[test]
    fn says_what_has_a_missing_header_in_the_words_of_each_compiler() {
        for message in [
            "/p/k.cu:1:10: fatal error: cublas_v2.h: No such file or directory\n",
            "/p/k.cu:1:10: fatal error: 'cublas_v2.h' file not found\n",
        ] {
            assert_eq!(hint(FOR_CUDA, message), CUDA_LIBRARY);
        }
        let message = "/p/k.hip:1:10: fatal error: 'hipblas/hipblas.h' file not found\n";
        assert_eq!(hint(FOR_HIP, message), ROCM_LIBRARY);
    }

    /// Messages of nvcc 13.5: the second ones follow from the first ones.
    #[test]
    fn says_that_cccl_removed_a_name_and_nothing_of_other_namespaces() {
        let second = "/p/k.cu(2): error: type name is not allowed\n";
        for (first, expected) in [
            (
                "namespace \"cub\" has no member \"TransformInputIterator\"",
                OLDER_CCCL,
            ),
            (
                "namespace \"thrust\" has no member class \"unary_function\"",
                OLDER_CCCL,
            ),
            ("namespace \"n\" has no member \"q\"", ""),
            ("class \"n::S\" has no member \"z\"", ""),
            ("type name is not allowed", TEMPLATE_IN_CALLS),
        ] {
            let message = format!("/p/k.cu(2): error: {first}\n{second}");
            assert_eq!(hint(FOR_CUDA, &message), expected, "{first}");
        }
    }
}
