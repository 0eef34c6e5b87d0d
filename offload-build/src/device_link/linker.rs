//! Options that all device links of one build share, and the parts that several command lines share.

use crate::device_link::job::{DeviceInput, LinkJob};
use offload_build_core::compile::device::target_option;
use offload_build_core::installed::device_tools::DeviceTools;
use offload_build_core::process::command::Command;
use offload_build_core::process::search::NotFound;
use offload_formats::names::ImageKind;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Passes that `OpenMPOpt` ran in each compile and must not run again here: both call functions of the device runtime
/// that it had no use for before, so that they were not linked into the module and stay undefined.
const DECIDED_BEFORE: [&str; 2] = [
    "-openmp-opt-disable-spmdization",
    "-openmp-opt-disable-state-machine-rewrite",
];

/// Makes clang run lld.
pub(crate) const LLD: &str = "-fuse-ld=lld";

/// The tool whose command lines are planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// The lines of `clang-linker-wrapper` of clang's release, to the argument.
    Llvm,
    /// Our own lines, which need the least to be installed.
    #[default]
    Own,
}

/// Options of `clang-linker-wrapper` besides arguments of the device compiler and linker.
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
    /// Bitcode whose used functions join the module (`--builtin-bitcode`).
    pub builtin_bitcode: &'a [PathBuf],
    /// Root of the CUDA tree (`--cuda-path`).
    pub cuda: Option<&'a Path>,
    /// The host program: beside it lie auxiliary outputs. Empty: clang's default.
    pub executable: &'a OsStr,
    /// True if the host linker is lld, by the end of its name.
    pub host_is_lld: bool,
    /// Device libraries have joined where the bitcode was compiled: the link needs none.
    pub has_device_libraries: bool,
    /// Compilers have optimized the bitcode: AMD's linker reads the files that they wrote. Otherwise clang optimizes each first.
    pub has_optimized_bitcode: bool,
    /// The commands are only printed: what they run in turn need not be there.
    pub dry_run: bool,
}

/// Options that all device links of one build or one host link share.
#[derive(Clone, Debug)]
pub struct DeviceLinker<'a> {
    /// Programs and files for the target.
    pub tools: &'a DeviceTools,
    /// The host's C compiler, for CPU objects when there is no clang.
    pub cc: &'a Path,
    /// The tool whose command lines are planned.
    pub way: Way,
    /// `0`, `1`, `2`, `3`, `s` or `z`: of the code made from bitcode.
    pub opt_level: &'a str,
    /// Arguments after the inputs of CPU targets: `-L`, `-l`, `-Wl,…`, archives and shared objects.
    pub host_libraries: &'a [OsString],
    /// Arguments for the compiler driver, as spelled (`--device-compiler=`).
    pub compiler_args: &'a [OsString],
    /// Arguments for the linker, each after `-Xlinker` (`--device-linker=`).
    pub linker_args: &'a [OsString],
    /// The rest.
    pub options: LinkOptions<'a>,
}

/// A device link as it will happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedLink {
    /// Commands in order; none if the image exists already.
    pub commands: Vec<Command>,
    /// The file that then holds the image.
    pub output: PathBuf,
    /// Kind of the image.
    pub kind: ImageKind,
}

impl DeviceLinker<'_> {
    /// Returns the one module of all bitcode among the inputs, with the functions of LLVM's C library for GPUs that it calls, and
    /// the commands that make it.
    pub(crate) fn module_of(
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
        let (mut commands, module) = match bitcode.as_slice() {
            [] => return Ok((Vec::new(), None)),
            [one] => (Vec::new(), (*one).clone()),
            several => {
                let merged = output.with_extension("merged.bc");
                let link = self.llvm_link(&merged)?.args(several);
                (vec![link], merged)
            }
        };
        let libraries = match job.is_openmp_gpu() {
            true => self.tools.gpu_libraries.as_slice(),
            false => &[],
        };
        if libraries.is_empty() {
            return Ok((commands, Some(module)));
        }
        let complete = output.with_extension("libc.bc");
        let link = self.llvm_link(&complete)?.arg("--only-needed");
        commands.push(link.arg(module).args(libraries));
        Ok((commands, Some(complete)))
    }

    pub(crate) fn llvm_link(&self, output: &Path) -> Result<Command, NotFound> {
        let program = needed(&self.tools.llvm_link)?;
        Ok(Command::new(program).arg("-o").arg(output))
    }

    /// Returns options for a foreign CPU: lld if it has no linker of its own, and no C library if it has none.
    pub(crate) fn foreign(&self) -> Vec<&'static str> {
        let Some(cpu) = self.tools.foreign_cpu else {
            return Vec::new();
        };
        let mut args = Vec::new();
        // In a root of its own clang does not look for this system's linkers.
        let says_where = |arg: &OsString| arg.to_string_lossy().starts_with("--sysroot");
        let has_root = self.compiler_args.iter().any(says_where);
        if has_root || !cpu.has_linker {
            args.push(LLD);
        }
        if !has_root && !cpu.has_c_library {
            args.push("-nostdlib");
        }
        args
    }

    /// clang, told the target.
    pub(crate) fn clang(&self, job: &LinkJob) -> Result<Command, NotFound> {
        let mut command = Command::new(&self.tools.llvm()?.clang)
            .arg("--no-default-config")
            .arg(format!("--target={}", job.triple));
        if !job.processor.is_empty() {
            command = command.arg(target_option(&job.triple, &job.processor));
        }
        Ok(command)
    }

    /// Bitcode of which the module takes what it uses: the files that were named, else OpenMP's device runtime when
    /// that is missing and no argument names one.
    pub(crate) fn device_runtime(&self, job: &LinkJob) -> Result<Vec<OsString>, NotFound> {
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
        let runtime = needed(&self.tools.device_runtime)?;
        let passes = DECIDED_BEFORE.iter().flat_map(|pass| ["-mllvm", pass]);
        let options = passes.chain(["-mlink-builtin-bitcode"]).map(OsString::from);
        let options = options.chain([runtime.into()]);
        Ok(options
            .flat_map(|option| ["-Xclang".into(), option])
            .collect())
    }

    pub(crate) fn builtin_bitcode(&self) -> Vec<OsString> {
        let files = self.options.builtin_bitcode.iter();
        files
            .flat_map(|file| {
                let words = ["-mlink-builtin-bitcode".into(), file.clone().into()];
                words.into_iter().flat_map(|word| ["-Xclang".into(), word])
            })
            .collect()
    }

    pub(crate) fn module(&self, command: Command, module: Option<&Path>) -> Command {
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

    pub(crate) fn extra(&self, command: Command) -> Command {
        command
            .args(self.compiler_args)
            .args(behind("-Xlinker", self.linker_args))
    }

    /// Returns the programs that clang starts to link `job`.
    pub(crate) fn inner_programs(&self, job: &LinkJob) -> Vec<PathBuf> {
        let runs_lld = job.triple.is_amdgpu() || self.foreign().contains(&LLD);
        let lld = self.tools.lld.as_ref().ok().filter(|_| runs_lld);
        lld.into_iter().cloned().collect()
    }

    /// Checks that clang will find lld, which it runs.
    pub(crate) fn check_lld(&self) -> Result<(), NotFound> {
        match self.options.dry_run {
            true => Ok(()),
            false => needed(&self.tools.lld).map(drop),
        }
    }
}

/// Returns a program or file that a link cannot do without.
pub(crate) fn needed(tool: &Result<PathBuf, NotFound>) -> Result<&Path, NotFound> {
    tool.as_deref().map_err(NotFound::clone)
}

/// Returns each of `values` after the option that takes it.
pub(crate) fn behind<'a>(
    option: &'a str,
    values: &'a [OsString],
) -> impl Iterator<Item = OsString> + 'a {
    let pair = |value: &OsString| [option.into(), value.clone()];
    values.iter().flat_map(pair)
}
