//! Floor 4: link jobs: which images go together, and the device link of each, as commands.
//!
//! Two ways lead to an image ([`Way`]). LLVM's runs what `clang-linker-wrapper` of clang's release runs. Our own
//! needs less: no `clang-nvlink-wrapper`, no C library for the GPU, for objects of CPUs no clang at all.
//!
//! | target | inputs | our own way |
//! |---|---|---|
//! | CPU | objects, bitcode | `clang -shared` (objects: or the host's `cc`) with the host's libraries |
//! | AMDGPU | bitcode that uses OpenMP's device runtime | `llvm-link`, then `clang` with that runtime as built-in bitcode |
//! | NVPTX | the same | `llvm-link`, `clang -S` likewise, then `ptxas` |
//! | NVPTX | others, without `clang-nvlink-wrapper` or with PTX | the same without the runtime; `nvlink` where there are cubins |
//! | NVPTX | one complete cubin | none: it is the image |
//! | NVPTX, its image PTX | bitcode | `llvm-link`, `clang -S` |
//! | all others | | LLVM's, in `wrapper_line.rs` |
//!
//! Spec: linker-wrapper §3.2–3.6. Differently from LLVM, OpenMP's device runtime joins here and
//! not at each compile, so that an image has one copy of it, and neither ROCm nor CUDA is needed.

mod check;
pub mod fatbinary;
mod nvptx;
#[cfg(feature = "tools")]
pub mod spirv;
#[cfg(feature = "tools")]
mod text;
mod wrapper_line;

pub use check::{CheckError, check, check_header, check_ptx, processor_of};
#[cfg(feature = "tools")]
pub use text::SourceText;

use crate::toolchain::{Command, Llvm, NotFound, Search};
use offload_formats::names::{ImageKind, OffloadKind, Triple};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What `OpenMPOpt` did in each compile and must not do again here: both call functions of the device runtime
/// that it had no use for before, so that they were not linked into the module and stay undefined.
const DECIDED_BEFORE: [&str; 2] = [
    "-openmp-opt-disable-spmdization",
    "-openmp-opt-disable-state-machine-rewrite",
];

/// Images for one target that become one image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkJob {
    /// The device's triple.
    pub triple: Triple,
    /// The processor or target ID; empty when the triple says all.
    pub processor: String,
    /// Who manages the images: each kind once.
    pub kinds: Vec<OffloadKind>,
    /// Whether bitcode among the inputs calls functions of OpenMP's device runtime.
    pub uses_openmp_runtime: bool,
    /// In the order in which the linker sees them.
    pub inputs: Vec<DeviceInput>,
}

impl LinkJob {
    fn has_bitcode(&self) -> bool {
        let is_bitcode = |input: &DeviceInput| matches!(input, DeviceInput::Bitcode(_));
        self.inputs.iter().any(is_bitcode)
    }

    /// Whether OpenMP's device runtime has to join here.
    fn needs_openmp_runtime(&self) -> bool {
        self.uses_openmp_runtime && self.kinds.contains(&OffloadKind::OPENMP) && self.has_bitcode()
    }

    fn is_spirv(&self) -> bool {
        self.triple.arch().starts_with("spirv")
    }
}

/// An image as the device linker reads it: a file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceInput {
    /// A device object: ELF, or a cubin.
    Object(PathBuf),
    /// LLVM bitcode.
    Bitcode(PathBuf),
    /// PTX.
    Ptx(PathBuf),
    /// A complete cubin, which is an image by itself.
    Linked(PathBuf),
}

impl DeviceInput {
    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Object(path) | Self::Bitcode(path) | Self::Ptx(path) | Self::Linked(path) => path,
        }
    }
}

/// Whose command lines are planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// Those of `clang-linker-wrapper` of clang's release, to the argument.
    Llvm,
    /// Those that need the least to be installed.
    #[default]
    Own,
}

/// What `clang-linker-wrapper` can be asked for besides arguments of the device compiler and linker.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkOptions<'a> {
    /// `-mllvm` and `--offload-opt`: options of LLVM for the linker's code generation, in order.
    pub plugin_options: &'a [OsString],
    /// `-mllvm` alone.
    pub mllvm: &'a [OsString],
    /// Intermediate files of the device linker are kept.
    pub save_temps: bool,
    /// The image shall be bitcode, for a runtime that compiles it.
    pub embed_bitcode: bool,
    /// Bitcode is compiled by itself, not by the linker.
    pub no_lto: bool,
    /// clang prints what it runs (LLVM 19).
    pub verbose: bool,
    /// Bitcode of which is taken what the module uses (`--builtin-bitcode`).
    pub builtin_bitcode: &'a [PathBuf],
    /// Root of the CUDA tree (`--cuda-path`).
    pub cuda: Option<&'a Path>,
    /// The host program: beside it lie auxiliary outputs. Empty: clang's default.
    pub executable: &'a OsStr,
    /// Whether the host linker is lld, by the end of its name.
    pub host_is_lld: bool,
    /// Device libraries have joined where the bitcode was compiled: the link needs none.
    pub has_device_libraries: bool,
    /// The commands are only printed: what they run in turn need not be there.
    pub dry_run: bool,
}

/// What every device link of one build or one host link has in common.
#[derive(Clone, Debug)]
pub struct DeviceLinker<'a> {
    /// The LLVM that made the images; CPU objects can do without.
    pub llvm: Option<&'a Llvm>,
    /// Where other programs are looked for.
    pub search: &'a Search,
    /// The host's C compiler, for CPU objects when there is no clang.
    pub cc: &'a Path,
    /// Whose command lines.
    pub way: Way,
    /// `0`, `1`, `2`, `3`, `s` or `z`: of the code made from bitcode.
    pub opt_level: &'a str,
    /// Put behind the inputs of CPU targets: `-L`, `-l`, `-Wl,…`, archives and shared objects.
    pub host_libraries: &'a [OsString],
    /// For the compiler driver, as spelled (`--device-compiler=`).
    pub compiler_args: &'a [OsString],
    /// For the linker, each behind `-Xlinker` (`--device-linker=`).
    pub linker_args: &'a [OsString],
    /// The rest.
    pub options: LinkOptions<'a>,
}

/// A device link as it will happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedLink {
    /// Run one after the other; none when the image is there already.
    pub commands: Vec<Command>,
    /// The file that then holds the image.
    pub output: PathBuf,
    /// What the image is.
    pub kind: ImageKind,
}

impl DeviceLinker<'_> {
    /// The commands that link `job` into the file `output`; intermediate files lie beside it.
    ///
    /// # Errors
    ///
    /// When a program or file that this target needs is not installed.
    pub fn plan(&self, job: &LinkJob, output: &Path) -> Result<PlannedLink, NotFound> {
        let object = |commands| PlannedLink {
            commands,
            output: output.to_owned(),
            kind: ImageKind::OBJECT,
        };
        if let ([DeviceInput::Linked(path)], Way::Own) = (job.inputs.as_slice(), self.way) {
            return Ok(PlannedLink {
                commands: Vec::new(),
                output: path.clone(),
                kind: ImageKind::CUBIN,
            });
        }
        if self.takes_llvms_way(job) {
            let kind = match self.options.embed_bitcode {
                true => ImageKind::BITCODE,
                false => ImageKind::OBJECT,
            };
            return Ok(PlannedLink {
                commands: vec![self.wrapper_line(job, output)?],
                output: output.to_owned(),
                kind,
            });
        }
        if self.options.embed_bitcode && job.has_bitcode() {
            let merged = Command::new(self.llvm()?.program("llvm-link")?)
                .arg("-o")
                .arg(output)
                .args(job.inputs.iter().map(DeviceInput::path));
            return Ok(PlannedLink {
                commands: vec![merged],
                output: output.to_owned(),
                kind: ImageKind::BITCODE,
            });
        }
        if job.triple.is_nvptx() {
            return self.nvidia_image(job, output).map(object);
        }
        let (mut commands, module) = self.module_of(job, output)?;
        let objects: Vec<&Path> = objects(job).collect();
        commands.push(match job.triple.is_cpu() {
            true => self.shared_object(job, &objects, module.as_deref(), output)?,
            false => self.amd_image(job, &objects, module.as_deref(), output)?,
        });
        Ok(object(commands))
    }

    fn takes_llvms_way(&self, job: &LinkJob) -> bool {
        let is_object = |input: &DeviceInput| matches!(input, DeviceInput::Object(_));
        let is_ptx = |input: &DeviceInput| matches!(input, DeviceInput::Ptx(_));
        if !self.options.builtin_bitcode.is_empty() && job.has_bitcode() {
            // It joins where clang compiles, and with LTO the linker does.
            return false;
        }
        match self.way {
            // Objects for a CPU, and no clang: the host's compiler does as well.
            Way::Llvm if self.llvm.is_none() && job.triple.is_cpu() => job.has_bitcode(),
            // LLVM 20 and later have no way for PTX.
            Way::Llvm => !job.inputs.iter().any(is_ptx),
            Way::Own if job.is_spirv() => true,
            Way::Own if job.triple.is_cpu() || job.needs_openmp_runtime() => false,
            Way::Own if self.options.embed_bitcode => job.inputs.iter().all(is_object),
            Way::Own if job.triple.is_nvptx() => {
                !self.options.has_device_libraries && self.has_nvlink_wrapper(job)
            }
            Way::Own => true,
        }
    }

    /// The one module of all bitcode among the inputs, and the commands that make it.
    fn module_of(
        &self,
        job: &LinkJob,
        output: &Path,
    ) -> Result<(Vec<Command>, Option<PathBuf>), NotFound> {
        let bitcode: Vec<&PathBuf> = job
            .inputs
            .iter()
            .filter_map(|input| match input {
                DeviceInput::Bitcode(path) => Some(path),
                _ => None,
            })
            .collect();
        match bitcode.as_slice() {
            [] => Ok((Vec::new(), None)),
            [one] => Ok((Vec::new(), Some((*one).clone()))),
            several => {
                let merged = output.with_extension("merged.bc");
                let link = Command::new(self.llvm()?.program("llvm-link")?)
                    .arg("-o")
                    .arg(&merged)
                    .args(several);
                Ok((vec![link], Some(merged)))
            }
        }
    }

    /// A CPU device's image: a shared object, linked against what the host program links.
    fn shared_object(
        &self,
        job: &LinkJob,
        objects: &[&Path],
        module: Option<&Path>,
        output: &Path,
    ) -> Result<Command, NotFound> {
        // Objects need no clang: what the host's programs are linked with will do.
        let command = match (self.llvm, module) {
            (None, None) => Command::new(self.cc),
            _ => {
                let foreign = self.foreign(job);
                if foreign.contains(&wrapper_line::LLD) {
                    self.check_lld()?;
                }
                self.clang(job)?.args(foreign)
            }
        };
        let command = command
            .args([
                "-shared",
                "-fPIC",
                "-Wl,-Bsymbolic",
                "-Wl,--no-undefined",
                "-o",
            ])
            .arg(output)
            .args(objects);
        let builtin = module.map(|_| self.builtin_bitcode());
        let command = command.args(builtin.into_iter().flatten());
        let command = self.extra(self.module(command, module));
        // Libraries are none of the language of the module before them.
        let language = module.filter(|_| !self.host_libraries.is_empty());
        let language = language.map(|_| ["-x", "none"]).into_iter().flatten();
        Ok(command.args(language).args(self.host_libraries))
    }

    /// For a CPU other than this one without a linker of its own: lld, and without a C library none.
    fn foreign(&self, job: &LinkJob) -> Vec<&'static str> {
        // As GNU's tools call it.
        let name = match job.triple.arch() {
            "ppc64le" => "powerpc64le",
            "i386" | "i486" | "i586" | "i686" => "x86_64",
            other => other,
        };
        let here = match std::env::consts::ARCH {
            "x86" => "x86_64",
            "powerpc64" if cfg!(target_endian = "little") => "powerpc64le",
            other => other,
        };
        if name == here {
            return Vec::new();
        }
        let mut args = Vec::new();
        // In a root of its own clang does not look for this system's linkers.
        let says_where = |arg: &OsString| arg.to_string_lossy().starts_with("--sysroot");
        let has_root = self.compiler_args.iter().any(says_where);
        let linker = self.search.program(&[&format!("{name}-linux-gnu-ld")]);
        if has_root || linker.is_none() {
            args.push(wrapper_line::LLD);
        }
        let folders = [
            format!("/usr/{name}-linux-gnu/lib/crti.o"),
            format!("/usr/lib/{name}-linux-gnu/crti.o"),
        ];
        if !has_root && !folders.iter().any(|file| Path::new(file).exists()) {
            args.push("-nostdlib");
        }
        args
    }

    /// An AMD GPU's image, with OpenMP's device runtime in it.
    fn amd_image(
        &self,
        job: &LinkJob,
        objects: &[&Path],
        module: Option<&Path>,
        output: &Path,
    ) -> Result<Command, NotFound> {
        let mut command = self
            .clang(job)?
            .arg("-nogpulib")
            .arg("-o")
            .arg(output)
            .args(objects)
            .arg("-Wl,--no-undefined");
        if module.is_some() {
            command = command.args(self.device_runtime("amdgpu", job)?);
        }
        self.check_lld()?;
        Ok(self.extra(self.module(command, module)))
    }

    /// clang, told the target.
    fn clang(&self, job: &LinkJob) -> Result<Command, NotFound> {
        let mut command = Command::new(&self.llvm()?.clang)
            .arg("--no-default-config")
            .arg(format!("--target={}", job.triple));
        if !job.processor.is_empty() {
            command = command.arg(processor_flag(&job.triple, &job.processor));
        }
        Ok(command)
    }

    /// Bitcode of which the module takes what it uses: the files that were named, else OpenMP's device runtime when
    /// that is missing and no argument names one.
    fn device_runtime(
        &self,
        vendor: &'static str,
        job: &LinkJob,
    ) -> Result<Vec<OsString>, NotFound> {
        let builtin = self.builtin_bitcode();
        if !builtin.is_empty() || !job.needs_openmp_runtime() {
            return Ok(builtin);
        }
        let is_runtime = |arg: &OsString| {
            ["-lompdevice", "-mlink-builtin-bitcode"].contains(&&*arg.to_string_lossy())
        };
        let given = self.compiler_args.iter().chain(self.linker_args);
        if given.into_iter().any(is_runtime) {
            return Ok(Vec::new());
        }
        let processor = job.processor.split(':').next().unwrap_or_default();
        let runtime = self.llvm()?.device_runtime(vendor, processor)?;
        let passes = DECIDED_BEFORE.iter().flat_map(|pass| ["-mllvm", pass]);
        let options = passes.chain(["-mlink-builtin-bitcode"]).map(OsString::from);
        let options = options.chain([runtime.into()]);
        Ok(options
            .flat_map(|option| ["-Xclang".into(), option])
            .collect())
    }

    fn builtin_bitcode(&self) -> Vec<OsString> {
        let files = self.options.builtin_bitcode.iter();
        files
            .flat_map(|file| {
                let words = ["-mlink-builtin-bitcode".into(), file.clone().into()];
                words.into_iter().flat_map(|word| ["-Xclang".into(), word])
            })
            .collect()
    }

    fn module(&self, command: Command, module: Option<&Path>) -> Command {
        let Some(module) = module else { return command };
        // Unoptimised, the device runtime asks for a C library that is not there.
        let level = match self.opt_level {
            "0" => "1",
            level => level,
        };
        let options = self.options.plugin_options.iter();
        command
            .arg(format!("-O{level}"))
            .args(options.flat_map(|option| ["-mllvm".into(), option.clone()]))
            .args(["-x", "ir"])
            .arg(module)
    }

    fn extra(&self, command: Command) -> Command {
        command
            .args(self.compiler_args)
            .args(behind("-Xlinker", self.linker_args))
    }

    /// That lld is where clang looks for it, which runs it: beside itself or in `PATH`.
    fn check_lld(&self) -> Result<(), NotFound> {
        let is_needed = !self.options.dry_run && self.search.program(&["ld.lld"]).is_none();
        match self.llvm() {
            Ok(llvm) if is_needed => llvm.program("ld.lld").map(|_| ()),
            _ => Ok(()),
        }
    }

    fn llvm(&self) -> Result<&Llvm, NotFound> {
        self.llvm.ok_or_else(|| {
            NotFound::new(
                "clang",
                vec!["PATH".to_owned()],
                "install clang of the release that compiled the device code (Debian, Ubuntu: `clang-<release>`; Fedora, Arch, conda-forge: `clang`)",
            )
        })
    }
}

/// The inputs that are linked as they are.
fn objects(job: &LinkJob) -> impl Iterator<Item = &Path> {
    job.inputs.iter().filter_map(|input| match input {
        DeviceInput::Object(path) | DeviceInput::Linked(path) => Some(path.as_path()),
        DeviceInput::Bitcode(_) | DeviceInput::Ptx(_) => None,
    })
}

fn processor_flag(triple: &Triple, processor: &str) -> String {
    let flag = match triple.is_amdgpu() {
        true => "-mcpu",
        false => "-march",
    };
    format!("{flag}={processor}")
}

/// Each of `values` behind the option that takes it.
fn behind<'a>(option: &'a str, values: &'a [OsString]) -> impl Iterator<Item = OsString> + 'a {
    let pair = |value: &OsString| [option.into(), value.clone()];
    values.iter().flat_map(pair)
}

#[cfg(test)]
mod tests;
