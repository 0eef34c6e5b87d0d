//! The device link of a module for one target, as a task, and hints for undefined functions.

use crate::device_link::{DeviceInput, DeviceLinker, LinkJob, LinkOptions, Way};
use crate::generate::SourceName;
use crate::plan::code_options::CodeOptions;
use crate::plan::compile_hints::{
    ASM_WITHOUT_OPERANDS, ATOMIC_OF_OLD_PTX, FENCE_OF_THREAD, LAUNCH_HINT, PARAMETER_SPACE,
    PTX_VERSION, RUNTIME_HINT, SHARED_TABLES, UNSUPPORTED_CALL, own_hint,
};
use crate::plan::context::Context;
use crate::steps::task::finish::Finish;
use crate::steps::task::joined::{self, Joined};
use crate::steps::task::{SymbolHints, Task};
use offload_build_core::compile::{critical_lock, device, lld, nvcc};
use offload_build_core::declare::family::Family;
use offload_build_core::declare::language::Language;
use offload_build_core::declare::module::{Module, Target};
use offload_build_core::files;
use offload_build_core::installed::compilers::KernelLinker;
use offload_build_core::installed::device_libraries::{self, DeviceLibraries};
use offload_build_core::installed::device_tools::DeviceTools;
use offload_build_core::process::search::NotFound;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const CRATES_HINT: &str = "`link = [\"foo\"]` links a library of the host; device functions of other crates are found when offload-link is \
    Cargo's linker: it links the device code of all crates together";
const GPU_HINT: &str = "for a function of the C library, install LLVM with its C library for GPUs (`lib/amdgcn-amd-amdhsa/libc.a`, \
    `lib/nvptx64-nvidia-cuda/libc.a` beside clang; no Debian package has it), and `define = { NDEBUG = true }` leaves `assert` out; device \
    functions of other crates are found when offload-link is Cargo's linker";
const REGISTER_HINT: &str = "check that `sources` has the file that defines it; device functions of other crates are found when both say `register = \"deferred\"` \
    and offload-link is Cargo's linker; if it is a `static` variable that the host copies, `cargo offload explain OFF701` has the reason";
const MODULE_HINT: &str = "a module without host code has only the device functions of its own sources, and of what \
    `archives` and `link` name: check that `sources` has the file that defines it";
const RUST_HINT: &str = "a kernel in Rust calls functions of its crate and of the crates that it depends on, and those of bitcode that `archives` and \
    `link` name: an `extern` block alone defines no function";
const PTX_HINT: &str = "PTX has only the device functions of the module's own sources, and of what `archives` and `link` name: check the \
    name and the arguments of the call, or add the file that defines the function";
pub(crate) const APART_HINT: &str = "set `rdc = false`, so that each source has device functions of its own, or declare the functions \
    of headers `static` or `inline`";
const HIP_APART_HINT: &str = "set `rdc = false`, so that each source has device functions of its own, or declare the functions \
    of headers `static` or `inline`; if it is a kernel or a variable, declare it `static`, or set `images = \"source\"`";
const SOURCE_HINT: &str = "set `images = \"source\"`, so that each source has images and device functions of its own, or \
    declare the functions of headers `static` or `inline`";
const SHARED_HINT: &str = "kernels and variables belong to the image, also with `rdc = false`: declare them `static`, or set \
    `images = \"source\"`";

impl Context<'_> {
    /// Returns the vendor's device libraries for `target`; nothing if the language does not join them here.
    fn device_libraries(&self, target: &Target) -> Option<&DeviceLibraries> {
        let mut all = self.device_libraries.iter();
        let (_, libraries) = all.find(|(written, _)| *written == target.written)?;
        Some(libraries)
    }

    fn device_tools(&self, target: &Target) -> &DeviceTools {
        let mut all = self.device_tools.iter();
        let found = all.find(|(written, _)| *written == target.written);
        let (_, tools) = found.expect("the tools of each target were searched");
        tools
    }

    /// Lets the output of a device compile call the vendor's device libraries, and what the device runtime lacks.
    pub(crate) fn with_device_libraries(&self, task: Task, target: &Target) -> Task {
        let (processor, program) = (target.id.to_string(), &self.compiler.program);
        let compiled = files::part(&task.output);
        let output = joined::joined(&compiled);
        let join = |libraries: &[PathBuf]| {
            let paths = (compiled.as_path(), output.as_path());
            device::join(program, &target.triple, &processor, libraries, paths)
        };
        let mut all = task.joined;
        if let Some(DeviceLibraries::Found(files)) = self.device_libraries(target) {
            all.push(Joined {
                prefixes: device_libraries::prefixes(target),
                source: None,
                commands: vec![join(files)],
                files: files.clone(),
            });
        }
        if self.lacks_critical_lock(target) {
            let [text, lock] = ["lock.ll", "lock.bc"].map(|name| compiled.with_extension(name));
            let paths = (text.as_path(), lock.as_path());
            let assemble = device::assemble_ir(program, &target.triple, &processor, paths);
            all.push(Joined {
                prefixes: critical_lock::FUNCTIONS,
                commands: vec![assemble, join(&[lock])],
                source: Some((text, critical_lock::SOURCE)),
                files: Vec::new(),
            });
        }
        Task {
            joined: all,
            ..task
        }
    }

    /// Tells whether the device runtime that joins images for `target` lacks the lock of `omp critical`.
    fn lacks_critical_lock(&self, target: &Target) -> bool {
        let mut lacking = self.without_critical_lock.iter();
        lacking.any(|written| *written == target.written)
    }

    /// Returns the hint for calls of the vendor's device libraries if these are missing.
    fn missing_library(
        &self,
        module: &Module,
        target: &Target,
    ) -> Option<(&'static [&'static str], String)> {
        let reason = match (self.device_libraries(target), module.language) {
            (Some(DeviceLibraries::Missing(reason)), _) => reason.clone(),
            // clang links them to each source by itself.
            (None, Language::Hip | Language::Cuda) => device_libraries::left_out(target)?,
            _ => return None,
        };
        Some((device_libraries::prefixes(target), reason))
    }

    /// Plans the image that `output` will be.
    pub(crate) fn device_link(
        &self,
        module: &Module,
        target: &Target,
        inputs: Vec<DeviceInput>,
        source: Option<&SourceName>,
        output: &Path,
    ) -> Result<Task, NotFound> {
        let is_object = |input: &DeviceInput| matches!(input, DeviceInput::Object(_));
        let finish = match target.triple.is_amdgpu() && inputs.iter().any(is_object) {
            true => Finish::JoinNotes,
            false => Finish::None,
        };
        let job = LinkJob {
            triple: target.triple.clone(),
            processor: target.id.to_string(),
            kinds: vec![module.language.offload_kind(&target.triple)],
            // The bitcode is not there yet when this is planned.
            uses_openmp_runtime: module.language == Language::OpenMp,
            inputs,
        };
        let is_cpu = target.triple.is_cpu();
        let host_libraries = self.host_libraries(module, target)?;
        let sysroot = self.compiler.sysroot.as_ref().filter(|_| is_cpu);
        let sysroot = sysroot.map(|root| format!("--sysroot={}", root.display()).into());
        let code = self.code_options(module, target);
        let of_nvidia = code.ptxas.into_iter().chain(code.features);
        let of_nvidia = of_nvidia.filter(|_| target.triple.is_nvptx());
        let compiler_args: Vec<OsString> = sysroot.into_iter().chain(of_nvidia).collect();
        let linker_args = match self.compiler.family {
            Family::Nvcc => nvcc::link_options(self.cuda_device_runtime, &target.own.flags),
            _ => Vec::new(),
        };
        let linker = DeviceLinker {
            tools: self.device_tools(target),
            cc: Path::new("cc"),
            opt_level: &target.own.opt_level,
            host_libraries: &host_libraries,
            compiler_args: &compiler_args,
            linker_args: &linker_args,
            way: Way::Own,
            options: LinkOptions {
                plugin_options: &code.llvm,
                has_device_libraries: module.language != Language::OpenMp,
                // LLVM IR and kernels in Rust are optimized here, for all sources together.
                has_optimized_bitcode: module.language == Language::Hip,
                ..LinkOptions::default()
            },
        };
        let part = files::part(output);
        Ok(Task {
            title: match source {
                Some(source) => format!("device link of {} for {}", source.path, target.written),
                None => format!("device link for {}", target.written),
            },
            commands: match (self.compiler.kernel_linker(target), target.is_ptx) {
                (KernelLinker::Lld(lld), _) => {
                    let inputs = job.inputs.iter().map(DeviceInput::path);
                    vec![lld::link(lld, target, inputs, &part)]
                }
                (_, true) => linker.plan_ptx(&job, &part)?,
                (_, false) => linker.plan(&job, &part)?.commands,
            },
            inner_programs: match self.compiler.kernel_linker(target) {
                KernelLinker::Clang(_) => linker.inner_programs(&job),
                KernelLinker::Lld(_) | KernelLinker::LlvmTools(_) => Vec::new(),
            },
            inputs: self.linked_files(module, target, &job),
            finish,
            hints: self.symbol_hints(module, target),
            ..self.task(output)
        })
    }

    /// Returns the files whose change makes the image another one.
    fn linked_files(&self, module: &Module, target: &Target, job: &LinkJob) -> Vec<PathBuf> {
        let of_host = self.libraries.of_host(target).iter();
        let of_host = of_host.filter_map(|library| library.path.as_deref());
        let tools = self.device_tools(target);
        let runtime = tools.device_runtime.as_deref().ok();
        let runtime = runtime.filter(|_| job.is_openmp_gpu() && job.needs_openmp_runtime());
        let libraries: &[PathBuf] = match job.is_openmp_gpu() && job.has_bitcode() {
            true => &tools.gpu_libraries,
            false => &[],
        };
        let of_cuda = self.cuda_device_runtime;
        let files = job.inputs.iter().map(DeviceInput::path).chain(of_host);
        let files = files.chain(runtime).chain(of_cuda);
        let files = files.chain(
            libraries
                .iter()
                .chain(&module.named_files)
                .map(PathBuf::as_path),
        );
        files.map(Path::to_owned).collect()
    }

    /// Returns the options for the host's libraries that the image for a CPU calls; none for a GPU.
    fn host_libraries(&self, module: &Module, target: &Target) -> Result<Vec<OsString>, NotFound> {
        if !target.triple.is_cpu() {
            return Ok(Vec::new());
        }
        let named = self.libraries.of_host(target);
        let own = self.compiler.host_libraries(module)?;
        if named.is_empty() {
            return Ok(own);
        }
        let folders = module.library_dirs.iter().map(|folder| {
            let mut option = OsString::from("-L");
            option.push(folder);
            option
        });
        let named = named
            .iter()
            .map(|library| format!("-l{}", library.name).into());
        let start = std::iter::once("-Wl,--as-needed".into()).chain(folders);
        Ok(start.chain(named).chain(own).collect())
    }

    /// Returns what `flags` say about the code that the device link makes of bitcode.
    fn code_options(&self, module: &Module, target: &Target) -> CodeOptions {
        match (module.language, self.compiler.family) {
            // Options of rustc and nvcc.
            (Language::Rust, _) | (_, Family::Nvcc) => CodeOptions::default(),
            (language, _) => {
                let options = CodeOptions::of(&target.own.flags, &target.id.to_string());
                // ptxas reads it here and now, the driver PTX of any age of the toolkit.
                let is_read_here = language == Language::Cuda && !target.is_ptx;
                let newest = self.device_tools(target).newest_ptx;
                match newest.filter(|_| is_read_here) {
                    Some(version) => options.or_ptx(version),
                    None => options,
                }
            }
        }
    }

    /// Returns the hints for functions that PTX calls and does not define. No later link adds them.
    pub(crate) fn call_hints(&self, module: &Module, target: &Target) -> SymbolHints {
        let hints = self.symbol_hints(module, target);
        let undefined = match module.language {
            Language::Hip | Language::Cuda if !module.rdc => hints.undefined,
            Language::Rust => hints.undefined,
            _ => PTX_HINT,
        };
        SymbolHints { undefined, ..hints }
    }

    pub(crate) fn symbol_hints(&self, module: &Module, target: &Target) -> SymbolHints {
        SymbolHints {
            library: self.missing_library(module, target),
            undefined: match module.language {
                Language::OpenMp if target.triple.is_cpu() => CRATES_HINT,
                Language::OpenMp => GPU_HINT,
                Language::Hip | Language::Cuda if !module.rdc => own_hint(module),
                Language::Rust => RUST_HINT,
                _ if module.has_host_code => REGISTER_HINT,
                _ => MODULE_HINT,
            },
            duplicate: match module.language {
                Language::Hip if !module.rdc => SHARED_HINT,
                Language::Cuda if !module.has_host_code => SOURCE_HINT,
                Language::Hip => HIP_APART_HINT,
                Language::Cuda => APART_HINT,
                _ => "",
            },
            others: match (module.language, self.compiler.family) {
                (Language::Cuda, Family::Nvcc) => &[("__cudaCDP2", RUNTIME_HINT)],
                (Language::Cuda, _) => &[
                    ("__cudaCDP2", LAUNCH_HINT),
                    ASM_WITHOUT_OPERANDS,
                    SHARED_TABLES[0],
                    SHARED_TABLES[1],
                    SHARED_TABLES[2],
                    PTX_VERSION,
                    PARAMETER_SPACE,
                    UNSUPPORTED_CALL,
                    ATOMIC_OF_OLD_PTX,
                    FENCE_OF_THREAD,
                ],
                _ => &[UNSUPPORTED_CALL, ATOMIC_OF_OLD_PTX, FENCE_OF_THREAD],
            },
            redeclared: "",
        }
    }
}
