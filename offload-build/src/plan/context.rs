//! Values that the plan of every module is made from, and the compile of a source.

use crate::inputs::libraries::Libraries;
use crate::out_dir::module_folder;
use crate::plan::compile_hints::{OTHER_CUDA, OTHER_NVCC};
use crate::plan::{code_options, compile_hints};
use crate::steps::image_library::ImageLibrary;
use crate::steps::kernel_headers;
use crate::steps::task::finish::Finish;
use crate::steps::task::{SymbolHints, Task};
use offload_build_core::compile::architectures::{self, ARCHITECTURES};
use offload_build_core::compile::clang::{self, Clang, Compile, Part};
use offload_build_core::compile::host::{self, HostRegistration};
use offload_build_core::declare::family::Family;
use offload_build_core::declare::language::{ImageSources, Language};
use offload_build_core::declare::module::{Flags, Module, Target};
use offload_build_core::declare::skipped::Skipped;
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
    /// The targets that NVIDIA's tools do not know (`Target::written`), each with the `ptxas` that says so.
    pub(crate) unknown_to_ptxas: &'a [(String, PathBuf)],
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

    /// Returns why there is no image for `target` if NVIDIA's tools do not know it.
    pub(crate) fn unknown_to_ptxas(&self, module: &Module, target: &Target) -> Option<Skipped> {
        let mut unknown = self.unknown_to_ptxas.iter();
        let (_, ptxas) = unknown.find(|(written, _)| *written == target.written)?;
        let ptxas = ptxas.display();
        let hint = match self.compiler.family {
            Family::Nvcc => OTHER_NVCC,
            _ => OTHER_CUDA,
        };
        let reason = format!("unknown to `{ptxas}` [OFF602]\nhint: {hint}");
        Some(Skipped::unlinked(module, target, &reason))
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
            hints: compile_hints::of(module, self.compiler.family),
            ..self.task(output)
        }
    }

    /// Compiles a source for the host, with code that launches its kernels.
    pub(crate) fn compile_host(
        &self,
        module: &Module,
        source: &Path,
        registrar: HostRegistration<'_>,
        output: &Path,
    ) -> Task {
        let side = Side::Host("the host");
        self.compile(module, source, side, output, &|clang, compile| {
            let (sdk, rocm) = (self.compiler.sdk.as_deref(), self.compiler.rocm());
            match module.language {
                Language::Hip => host::hip_host(clang, rocm, registrar, compile),
                Language::Cuda => host::cuda_host(clang, sdk, registrar, compile),
                _ => clang.host_object(compile),
            }
        })
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
            order_loss: None,
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
                let text = files::beside(output, ".ii");
                let compile = command(Part::Compile(&text));
                vec![command(Part::Preprocess(&text)), launcher.launch(&compile)]
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

    #[test]
    fn gives_each_path_a_name_of_its_own() {
        let paths = ["k/a-/b.c", "k/a/-b.c", "k/a--/b.c", "k-a---b.c", "k/a-b.c"];
        let names = paths.map(|source| stem(Path::new("/p"), &Path::new("/p").join(source)));
        let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), paths.len(), "{names:?}");
        assert!(names[0].ends_with("-k-a---b.c."), "{names:?}");
    }
}
