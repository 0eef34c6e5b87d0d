//! NVIDIA images with nothing but NVIDIA's own `ptxas` and `nvlink`.
//!
//! | inputs | commands |
//! |---|---|
//! | bitcode | `llvm-link` when there are several, `clang -S`, `ptxas` |
//! | one PTX file | `ptxas` |
//! | bitcode, where the image is PTX | the same without `ptxas` |
//! | bitcode of kernels in Rust, without clang | `opt` and `llc` in place of `clang -S` |
//! | anything else | each to a relocatable cubin (`ptxas -c`), then `nvlink` |

use crate::device_link::job::{DeviceInput, LinkJob};
use crate::device_link::linker::{DeviceLinker, needed};
use offload_build_core::compile::{llvm_tools, ptxas};
use offload_build_core::process::command::Command;
use offload_build_core::process::search::NotFound;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Bytes of paths from which clang's helper is not started: from about 64 KiB of arguments on it gives nvlink a response file, which
/// nvlink does not read (LLVM 22).
const LONG_LINE: usize = 40_000;

impl DeviceLinker<'_> {
    /// Tells whether clang links this by itself: by its helper, which runs NVIDIA's tools. The helper fails with very many cubins;
    /// without bitcode they need only nvlink.
    pub(crate) fn has_nvlink_wrapper(&self, job: &LinkJob) -> bool {
        let is_ptx = |input: &DeviceInput| matches!(input, DeviceInput::Ptx(_));
        let size = job
            .inputs
            .iter()
            .map(|input| input.path().as_os_str().len());
        let is_long = size.sum::<usize>() >= LONG_LINE;
        (job.has_bitcode() || !is_long)
            && !job.inputs.iter().any(is_ptx)
            && self.tools.nvlink_wrapper.is_ok()
            && self.tools.nvlink.is_ok()
    }

    pub(crate) fn nvidia_image(
        &self,
        job: &LinkJob,
        output: &Path,
    ) -> Result<Vec<Command>, NotFound> {
        let (mut commands, module) = self.module_of(job, output)?;
        let mut assemblies = Vec::new();
        if let Some(module) = &module {
            let assembly = output.with_extension("s");
            commands.extend(self.ptx(job, module, &assembly)?);
            assemblies.push(assembly);
        }
        assemblies.extend(job.inputs.iter().filter_map(|input| match input {
            DeviceInput::Ptx(path) => Some(path.clone()),
            _ => None,
        }));
        let mut cubins: Vec<PathBuf> = job.objects().map(Path::to_owned).collect();
        if let ([assembly], []) = (assemblies.as_slice(), cubins.as_slice()) {
            commands.push(self.assemble(job, assembly, &[], output)?);
            return Ok(commands);
        }
        for (index, assembly) in assemblies.iter().enumerate() {
            let cubin = output.with_extension(format!("{index}.cubin"));
            commands.push(self.assemble(job, assembly, &["-c"], &cubin)?);
            cubins.push(cubin);
        }
        let nvlink = needed(&self.tools.nvlink)?;
        let link = Command::new(nvlink)
            .args(["-arch", &job.processor, "-o"])
            .arg(output)
            .args(cubins)
            .args(self.linker_args);
        commands.push(link);
        Ok(commands)
    }

    /// The commands that make PTX of `job`'s bitcode, into the file `output`: the driver compiles it.
    ///
    /// # Errors
    ///
    /// When a program that this needs is not installed.
    pub fn plan_ptx(&self, job: &LinkJob, output: &Path) -> Result<Vec<Command>, NotFound> {
        let (mut commands, module) = self.module_of(job, output)?;
        if let Some(module) = module {
            commands.extend(self.ptx(job, &module, output)?);
        }
        Ok(commands)
    }

    fn ptx(&self, job: &LinkJob, module: &Path, assembly: &Path) -> Result<Vec<Command>, NotFound> {
        if let Some(tools) = &self.tools.llvm_tools {
            let paths = (module, assembly);
            return Ok(llvm_tools::ptx(tools, &job.processor, self.opt_level, paths).into());
        }
        let command = self.clang(job)?.args(["-nogpulib", "-S"]);
        let command = command
            .args(ptxas::options(&job.processor))
            .args(self.device_runtime(job)?)
            .arg("-o")
            .arg(assembly);
        let (_, compiler) = self.for_ptxas();
        Ok(vec![self.module(command, Some(module)).args(compiler)])
    }

    fn assemble(
        &self,
        job: &LinkJob,
        assembly: &Path,
        mode: &[&str],
        output: &Path,
    ) -> Result<Command, NotFound> {
        let ptxas = needed(&self.tools.ptxas)?;
        let command = ptxas::assemble(ptxas, &job.processor, self.opt_level, assembly, output);
        let (assembler, _) = self.for_ptxas();
        Ok(command.args(mode).args(assembler))
    }

    /// The compiler's arguments, apart: what `-Xcuda-ptxas` gives on, and the others.
    fn for_ptxas(&self) -> (Vec<OsString>, Vec<OsString>) {
        let (mut assembler, mut compiler) = (Vec::new(), Vec::new());
        let mut args = self.compiler_args.iter();
        while let Some(arg) = args.next() {
            if arg == "-Xcuda-ptxas" {
                assembler.extend(args.next().cloned());
            } else if !arg.to_string_lossy().starts_with("--cuda-path=") {
                compiler.push(arg.clone());
            }
        }
        (assembler, compiler)
    }
}
