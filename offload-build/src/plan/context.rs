//! Values that the plan of every module is made from, and the compile of a source.

use crate::inputs::libraries::Libraries;
use crate::out_dir::module_folder;
use crate::plan::code_options;
use crate::steps::image_library::ImageLibrary;
use crate::steps::kernel_headers;
use crate::steps::task::finish::Finish;
use crate::steps::task::{SymbolHints, Task};
use offload_build_core::compile::architectures::{self, ARCHITECTURES};
use offload_build_core::compile::clang::{self, Clang, Compile, MANAGED, Part};
use offload_build_core::declare::family::Family;
use offload_build_core::declare::language::{ImageSources, Language};
use offload_build_core::declare::module::{Flags, Module, Target};
use offload_build_core::files;
use offload_build_core::installed::compilers::Compiler;
use offload_build_core::installed::device_libraries::DeviceLibraries;
use offload_build_core::installed::device_tools::DeviceTools;
use offload_build_core::installed::host::Host;
use offload_build_core::installed::llvm::Llvm;
use offload_build_core::installed::rustc::Rustc;
use offload_build_core::installed::sdk;
use offload_build_core::process::command::Command;
use offload_build_core::process::launcher::{Launched, Launcher, Start};
use offload_formats::escape::Colors;
use offload_formats::md5::{self, Md5};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

pub(crate) const LAUNCH_HINT: &str = "kernels that launch kernels need NVIDIA's compiler and linker: set `compiler = \"nvcc\"` and \
    `rdc = true`";

pub(crate) const RUNTIME_HINT: &str = "kernels that launch kernels need CUDA's device runtime: install it with the toolkit's installer, or \
    copy `libcudadevrt.a` of PyPI's `nvidia-cuda-runtime` (CUDA 12: `nvidia-cuda-runtime-cu12`) to the toolkit's `lib64`";

/// The hint for a header of CUDA's libraries for C++, which CUDA's own headers include, too.
const CCCL: &str = "this header is part of CCCL, which some installations of CUDA lack: install it with the toolkit's \
    installer, or copy the headers of PyPI's `nvidia-cuda-cccl` (CUDA 12: `nvidia-cuda-cccl-cu12`) to the toolkit's `include`";

/// The hint for a header of a library that CUDA's toolkit contains and its single parts lack.
const CUDA_LIBRARY: &str = "this header is part of a library of CUDA: install it with the toolkit's installer, or add the folder \
    `include` of its wheel from PyPI (such as `nvidia-cublas`, for CUDA 12 `nvidia-cublas-cu12`) to `include`";

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

/// The hint for the header of OpenMP's runtime, of which each release of clang has its own.
const OPENMP_HEADER: (&str, &str) = (
    "fatal error: 'omp.h'",
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
    ("fatal error: 'hipblas", ROCM_LIBRARY),
    ("fatal error: 'rocblas", ROCM_LIBRARY),
    ("fatal error: 'hipcub/", ROCM_LIBRARY),
    ("fatal error: 'rocprim/", ROCM_LIBRARY),
    ("fatal error: 'thrust/", ROCM_LIBRARY),
    ("fatal error: 'hiprand", ROCM_LIBRARY),
    ("fatal error: 'rocrand", ROCM_LIBRARY),
    ("fatal error: 'hipfft", ROCM_LIBRARY),
    ("fatal error: 'hipsparse", ROCM_LIBRARY),
    ("fatal error: 'rocwmma/", ROCM_LIBRARY),
    ("fatal error: 'rccl", ROCM_LIBRARY),
    OPENMP_HEADER,
];

/// The hint for a processor that this release of CUDA does not know.
const OTHER_CUDA: &str = "each release of CUDA has its processors: CUDA 13 begins with sm_75, and new processors need a newer one; CUDA_PATH \
    names another toolkit, and `targets` lists the processors";
pub(crate) const UNKNOWN_TO_PTXAS: (&str, &str) =
    ("is not defined for option 'gpu-name'", OTHER_CUDA);

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
    ("Unsupported gpu architecture", OTHER_CUDA),
    // nvcc before CUDA 13, for `-arch`.
    ("is not defined for option 'gpu-architecture'", OTHER_CUDA),
    (
        "unsupported GNU version",
        "name an older compiler of the host that this nvcc supports in NVCC_CCBIN, or with `flags = [\"-ccbin=g++-11\"]`",
    ),
    ("fatal error: nv/target", CCCL),
    ("fatal error: 'nv/target'", CCCL),
    ("fatal error: cuda/", CCCL),
    ("fatal error: 'cuda/", CCCL),
    ("fatal error: cccl/", CCCL),
    ("fatal error: 'cccl/", CCCL),
    ("fatal error: cub/", CCCL),
    ("fatal error: 'cub/", CCCL),
    ("fatal error: thrust/", CCCL),
    ("fatal error: 'thrust/", CCCL),
    ("fatal error: cublas", CUDA_LIBRARY),
    ("fatal error: 'cublas", CUDA_LIBRARY),
    ("fatal error: curand", CUDA_LIBRARY),
    ("fatal error: 'curand", CUDA_LIBRARY),
    ("fatal error: cufft", CUDA_LIBRARY),
    ("fatal error: 'cufft", CUDA_LIBRARY),
    ("fatal error: cusparse", CUDA_LIBRARY),
    ("fatal error: 'cusparse", CUDA_LIBRARY),
    ("fatal error: cusolver", CUDA_LIBRARY),
    ("fatal error: 'cusolver", CUDA_LIBRARY),
    ("fatal error: cuda_profiler_api.h", CUDA_PART),
    ("fatal error: 'cuda_profiler_api.h", CUDA_PART),
    ("fatal error: nvtx3/", CUDA_PART),
    ("fatal error: 'nvtx3/", CUDA_PART),
    ("fatal error: nvrtc.h", CUDA_PART),
    ("fatal error: 'nvrtc.h", CUDA_PART),
    ("fatal error: nccl", NVIDIA_LIBRARY),
    ("fatal error: 'nccl", NVIDIA_LIBRARY),
    ("fatal error: cudnn", NVIDIA_LIBRARY),
    ("fatal error: 'cudnn", NVIDIA_LIBRARY),
    OPENMP_HEADER,
    (
        "cuda.h did not define CUDA_VERSION",
        "clang reads `cuda.h` from a folder of `include` instead of CUDA's: set `compiler = \"nvcc\"`, or, if your `cuda.h` is beside the \
         files that include it, name the folder by `flags = [\"-idirafter\", \"DIR\"]` in place of `include`",
    ),
    ("kernel launch from __device__ or __global__", LAUNCH_HINT),
    (
        "call to __device__ function from __host__ function",
        "nvcc accepts such calls: set `compiler = \"nvcc\"` for a module of these sources, or put the host function into \
         `#ifndef __CUDA_ARCH__`",
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
    ("type name is not allowed", TEMPLATE_IN_CALLS),
];

/// Values that the plan of a module is made from, besides the module.
pub(crate) struct Context<'a> {
    pub(crate) compiler: &'a Compiler,
    /// The compiler of a crate of kernels.
    pub(crate) rustc: Option<&'a Rustc>,
    /// The package's folder.
    pub(crate) root: &'a Path,
    pub(crate) out: &'a Path,
    /// The folder for files that packages share; nothing if each has its own.
    pub(crate) shared: Option<&'a Path>,
    pub(crate) host: &'a Host,
    pub(crate) debug: bool,
    /// Colors of the compiler's messages.
    pub(crate) colors: Colors,
    /// Variables that the compiler reads, for the keys of tasks.
    pub(crate) variables: &'a str,
    /// Name and version of the package.
    pub(crate) package: &'a str,
    /// The program that starts compiles.
    pub(crate) launcher: Option<&'a Launcher>,
    /// Unique in the whole program: prefix of symbols and name of the library.
    pub(crate) unique: &'a str,
    /// The library that Rust links images of a module without host code from; nothing if it includes them.
    pub(crate) images: Option<&'a ImageLibrary>,
    pub(crate) deferred: bool,
    pub(crate) libraries: &'a Libraries,
    /// Programs and files of device links, by target (`Target::written`).
    pub(crate) device_tools: &'a [(String, DeviceTools)],
    /// True if lld is beside clang, for the join of a foreign host's objects.
    pub(crate) has_lld: bool,
    /// The vendors' device libraries, by target (`Target::written`).
    pub(crate) device_libraries: &'a [(String, DeviceLibraries)],
    /// Files that the compiler links by itself to sources that use the SDK, for each target.
    pub(crate) sdk_libraries: &'a [(String, Vec<PathBuf>)],
    /// The targets whose device runtime lacks the lock of `omp critical` (`Target::written`).
    pub(crate) without_critical_lock: &'a [String],
    /// The library of CUDA's device runtime, for modules that nvcc compiles.
    pub(crate) cuda_device_runtime: Option<&'a Path>,
    /// The number of each source in names of OpenMP's kernels, where the system has numbers.
    pub(crate) source_numbers: &'a [(PathBuf, String)],
}

/// The side that a compile is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side<'a> {
    /// The host, under its name in messages.
    Host(&'static str),
    Device(&'a Target),
}

impl<'a> Side<'a> {
    /// Returns the options of compiles for this side, and its name for people.
    fn of(self, module: &'a Module) -> (&'a Flags, &'a str) {
        match self {
            Self::Host(what_for) => (&module.own, what_for),
            Self::Device(target) => (&target.own, target.written.as_str()),
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

impl Context<'_> {
    /// The folder of a module's intermediate files.
    pub(crate) fn folder(&self, module: &Module) -> PathBuf {
        module_folder(self.out, &module.name)
    }

    /// A number for a module in names of symbols.
    fn module_number(&self, module: &Module) -> u64 {
        let digest = Md5::digest(format!(
            "{}\0{}\0{}",
            self.package, self.unique, module.name
        ));
        let mut number = [0; 8];
        for (byte, digest) in number.iter_mut().zip(digest) {
            *byte = digest;
        }
        u64::from_le_bytes(number)
    }

    pub(crate) fn compile(
        &self,
        module: &Module,
        source: &Path,
        side: Side<'_>,
        output: &Path,
        command: &dyn Fn(&Clang<'_>, &Compile<'_>) -> Command,
    ) -> Task {
        let target = self.host.clang_target();
        // After the user's own folders.
        let headers = match side {
            Side::Device(target) => self.device_headers(module, target),
            Side::Host(_) => kernel_headers::folder(module.language, self.out),
        };
        let include: Vec<PathBuf> = module.include.iter().cloned().chain(headers).collect();
        let (own, what_for) = side.of(module);
        let flags = self.flags(module, source, side);
        let include_last = self.include_last(module, &flags);
        let clang = Clang {
            clang: &self.compiler.program,
            release: self.compiler.llvm.as_ref().and_then(Llvm::release),
            host: &self.host.triple,
            target: target.as_deref(),
            host_options: self.host.code_options(),
            std: module.std_of(source),
            include: &include,
            include_last: &include_last,
            renamed_folders: &[(self.root, ""), (self.out, "OUT_DIR/")],
            debug: self.debug,
            colors: self.colors,
        };
        let mut numbers = self.source_numbers.iter();
        let number = numbers.find(|(numbered, _)| numbered == source);
        let compile = Compile {
            source,
            output,
            assembly: None,
            opt_level: self.opt_level(module, side, own),
            rdc: module.rdc,
            shares_image: module.images == ImageSources::OfModule,
            define: &own.define,
            flags: &flags,
            unit: &self.unit(module, source),
            file: number.map_or("", |(_, number)| number),
            part: Part::Whole,
        };
        let shown = source.strip_prefix(self.root).unwrap_or(source);
        let is_ir = matches!(module.language, Language::Bitcode | Language::Rust);
        Task {
            title: format!("{} for {what_for}", shown.display()),
            commands: vec![command(&clang, &compile)],
            start: self.start(
                module,
                side,
                &|part| {
                    command(
                        &clang,
                        &Compile {
                            part,
                            ..compile.clone()
                        },
                    )
                },
                output,
            ),
            inputs: self.unlisted_inputs(module, source, side),
            // LLVM IR includes nothing, and clang writes no dependencies of it.
            depfile: (!is_ir).then(|| clang::depfile(output)),
            finish: self.finish(module, side),
            hints: self.hints(module),
            ..self.task(output)
        }
    }

    /// Returns a task that makes `output` of nothing yet.
    pub(crate) fn task(&self, output: &Path) -> Task {
        Task {
            title: String::new(),
            commands: Vec::new(),
            inner_programs: Vec::new(),
            start: Start::Plain,
            inputs: Vec::new(),
            depfile: None,
            cargo_folder: None,
            output: output.to_owned(),
            joined: Vec::new(),
            finish: Finish::None,
            environment: self.variables.to_owned(),
            hints: SymbolHints::default(),
        }
    }

    /// Returns the inputs of a compile that no dependency file lists: files that flags name, and libraries that the compiler links
    /// to a source by itself.
    fn unlisted_inputs(&self, module: &Module, source: &Path, side: Side<'_>) -> Vec<PathBuf> {
        let mut inputs = module.named_files.clone();
        if matches!(module.language, Language::Bitcode | Language::Rust) {
            inputs.push(source.to_owned());
            return inputs;
        }
        if let Side::Device(target) = side {
            let mut all = self.sdk_libraries.iter();
            let is_linked = |(written, _): &&(String, Vec<PathBuf>)| {
                *written == target.written && !module.sources_without_sdk.contains(source)
            };
            let linked = all.find(is_linked).into_iter();
            inputs.extend(linked.flat_map(|(_, files)| files.clone()));
        }
        inputs
    }

    /// Returns the hints for compiles that fail.
    fn hints(&self, module: &Module) -> SymbolHints {
        SymbolHints {
            others: match module.language {
                Language::Cuda => FOR_CUDA,
                Language::Hip => FOR_HIP,
                Language::OpenMp => FOR_OPENMP,
                _ => &[],
            },
            ..match self.compiler.family {
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

    /// Returns what is left to do to a compiled file.
    fn finish(&self, module: &Module, side: Side<'_>) -> Finish {
        let is_of_host = matches!(side, Side::Host(_));
        match module.language {
            Language::OpenMp => Finish::OwnRegions(self.module_number(module)),
            Language::Cuda if self.compiler.family == Family::Nvcc && is_of_host => {
                Finish::WithoutProcess
            }
            _ => Finish::None,
        }
    }

    /// Returns the level for one side. For sources of one image clang's optimiser makes the functions of a file its own, so it must
    /// run.
    fn opt_level<'f>(&self, module: &Module, side: Side<'_>, flags: &'f Flags) -> &'f str {
        let shares_image = module.images == ImageSources::OfModule
            && (module.language == Language::Hip || module.sources.len() > 1);
        let is_apart = matches!(side, Side::Device(_)) && shares_image && !module.rdc;
        match flags.opt_level.as_str() {
            "0" if is_apart && self.compiler.family != Family::Nvcc => "1",
            level => level,
        }
    }

    /// Returns the flags of a compile: the module's, options that keep the vendor's SDK out if the source does without, else those that
    /// headers of CUDA's toolkit need.
    fn flags(&self, module: &Module, source: &Path, side: Side<'_>) -> Vec<String> {
        let (own, _) = side.of(module);
        let mut flags = match self.compiler.family {
            Family::Nvcc => own.flags.clone(),
            _ => {
                let processor = match side {
                    Side::Host(_) => None,
                    Side::Device(target) => Some(target.id.to_string()),
                };
                let flags = code_options::of_side(&own.flags, processor.as_deref());
                let mut targets = module.targets.iter();
                match targets.any(|target| target.triple.is_nvptx()) {
                    true => code_options::without_ptxas(flags)
                        .map(str::to_owned)
                        .collect(),
                    false => flags.map(str::to_owned).collect(),
                }
            }
        };
        let has_sides = matches!(module.language, Language::Hip | Language::Cuda);
        if has_sides && module.has_host_code && self.compiler.family != Family::Nvcc {
            // What is for one side only, that of the other does not use.
            flags.insert(0, "-Wno-unused-command-line-argument".to_owned());
        }
        if module.sources_without_sdk.contains(source) && self.compiler.family != Family::Nvcc {
            for flag in ["-nogpuinc", "-nogpulib"] {
                if !flags.iter().any(|own| own == flag) {
                    flags.push(flag.to_owned());
                }
            }
        }
        let definition = format!("-D{ARCHITECTURES}");
        let is_defined = own.define.contains(ARCHITECTURES)
            || flags.iter().any(|flag| flag.starts_with(&definition));
        if module.language == Language::Cuda && !is_defined && sdk::uses_headers(&flags) {
            let processors = module.targets.iter().map(|target| target.id.processor());
            let options = match self.compiler.family {
                // One process compiles a source for the host and all targets.
                Family::Nvcc if module.has_host_code => None,
                Family::Nvcc => architectures::of_nvcc(processors),
                _ => {
                    let release = self.compiler.llvm.as_ref().and_then(Llvm::release);
                    architectures::of_clang(release, processors)
                }
            };
            flags.splice(0..0, options.into_iter().flatten());
        }
        flags
    }

    /// Returns the folder of this crate's headers that a source searches after the user's own folders, for a target.
    pub(crate) fn device_headers(&self, module: &Module, target: &Target) -> Option<PathBuf> {
        let release = self.compiler.llvm.as_ref().and_then(Llvm::release);
        let of_glibc =
            kernel_headers::glibc_folder(module.language, &target.triple, release, self.out);
        of_glibc.or_else(|| kernel_headers::folder(module.language, self.out))
    }

    /// Returns the folders that a source searches after those of the system: parts of CUDA's toolkit that clang does not
    /// find, or that NVIDIA leaves out of its wheels.
    fn include_last(&self, module: &Module, flags: &[String]) -> Vec<PathBuf> {
        if module.language != Language::Cuda || !sdk::uses_headers(flags) {
            return Vec::new();
        }
        let mut folders = self.compiler.include_last.clone();
        folders.extend(kernel_headers::toolkit_folder(self.out));
        folders
    }

    /// The same in every checkout.
    fn unit(&self, module: &Module, source: &Path) -> String {
        let source = stem(self.root, source);
        let hash = Md5::digest(format!("{}\0{}\0{source}", self.package, module.name));
        md5::hex(&hash[..8])
    }

    /// A compile as the launcher starts it.
    fn start(
        &self,
        module: &Module,
        side: Side<'_>,
        command: &dyn Fn(Part<'_>) -> Command,
        output: &Path,
    ) -> Start {
        let Some(launcher) = self.launcher else {
            return Start::Plain;
        };
        let commands = match module.language {
            // No compile of a source: what IR costs is in the device link.
            Language::Bitcode | Language::Rust | Language::Prebuilt => return Start::Plain,
            Language::Hip | Language::Cuda
                if launcher.sends()
                    && matches!(side, Side::Device(_))
                    && self.compiler.family == Family::Clang =>
            {
                let mut text = output.as_os_str().to_owned();
                text.push(".ii");
                let text = Path::new(&text);
                let compile = command(Part::Compile(text));
                vec![command(Part::Preprocess(text)), launcher.launch(&compile)]
            }
            Language::OpenMp if launcher.sends() => {
                return Start::Here("names of OpenMP's kernels contain the numbers of their file");
            }
            _ if launcher.sends() => {
                return Start::Here("the object contains the name of its source");
            }
            _ => vec![launcher.launch(&command(Part::Whole))],
        };
        Start::Launched(Launched { commands })
    }
}

/// A name for the files made from `source`: its path in the package, in one word. Different paths have different ones.
pub(crate) fn stem(root: &Path, source: &Path) -> String {
    let relative = source.strip_prefix(root).unwrap_or(source);
    let text = relative.to_string_lossy();
    let name = text.replace('-', "--").replace(['/', '\\'], "-");
    // `a-/b` and `a/-b` would be one word, and so would names in which a letter is replaced.
    let is_clear = |part: &OsStr| {
        let part = part.to_str();
        part.is_some_and(|part| {
            !part.starts_with('-') && !part.ends_with('-') && !part.contains('\\')
        })
    };
    let name = match relative.iter().all(is_clear) {
        true => files::short_name(&name),
        false => files::behind_hash(relative.as_os_str().as_encoded_bytes(), &name),
    };
    // The dot goes as well: the text after the last one is replaced by each file's own extension.
    name + "."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortens_names_that_no_file_may_have() {
        let name = |source: &str| stem(Path::new("/p"), &Path::new("/p").join(source));
        assert_eq!(name("kernels/a-b.c"), "kernels-a--b.c.");
        let folders = "some-kernels/".repeat(30);
        let (one, two) = (
            name(&format!("{folders}k.c")),
            name(&format!("x{folders}k.c")),
        );
        assert_eq!(one.len(), 161);
        assert!(one.ends_with("-some--kernels-k.c.") && two.ends_with("-some--kernels-k.c."));
        assert_ne!(one, two);
        let wide = name(&"ä/".repeat(200));
        assert!(wide.len() <= 161, "{wide}");
    }

    /// Messages of clang 22. The second one is about a source whose folder has a file of that name.
    #[test]
    fn says_which_package_has_the_header_of_openmp() {
        for others in [FOR_CUDA, FOR_HIP, FOR_OPENMP] {
            let hints = SymbolHints {
                others,
                ..SymbolHints::default()
            };
            for message in [
                "/p/k.cu:1:10: fatal error: 'omp.h' file not found\n",
                "/p/k.cu:1:10: error: 'omp.h' file not found with <angled> include; use \"quotes\" instead\n",
            ] {
                let hint = hints.of(message);
                assert!(hint.contains("`apt install libomp-22-dev`"), "{hint}");
            }
        }
    }

    #[test]
    fn gives_each_path_a_name_of_its_own() {
        let paths = ["k/a-/b.c", "k/a/-b.c", "k/a--/b.c", "k-a---b.c", "k/a-b.c"];
        let names = paths.map(|source| stem(Path::new("/p"), &Path::new("/p").join(source)));
        let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), paths.len(), "{names:?}");
        assert!(names[0].ends_with("-k-a---b.c."), "{names:?}");
    }
}
