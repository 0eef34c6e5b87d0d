//! Link jobs: images that go together, and the device link of each, as commands.
//!
//! Two ways lead to an image ([`Way`]). LLVM's runs what `clang-linker-wrapper` of clang's release runs. Our own
//! needs less: no `clang-nvlink-wrapper`, no C library for the GPU, for objects of CPUs no clang at all.
//!
//! | target | inputs | our own way |
//! |---|---|---|
//! | CPU | objects, bitcode | `clang -shared` (objects: or the host's `cc`) with the host's libraries |
//! | AMDGPU | bitcode that uses OpenMP's device runtime | `llvm-link`, then `clang` with that runtime as built-in bitcode |
//! | NVPTX | the same | `llvm-link`, `clang -S` likewise, then `ptxas` |
//! | NVPTX | others, without `clang-nvlink-wrapper`, with PTX, or of very many cubins | the same without the runtime; `nvlink` where there are cubins |
//! | NVPTX | one complete cubin | none: it is the image |
//! | NVPTX, its image PTX | bitcode | `llvm-link`, `clang -S` |
//! | all others | | LLVM's, in `wrapper_line.rs` |
//!
//! For OpenMP on GPUs, `llvm-link` adds functions of LLVM's C library for GPUs that the bitcode calls, if this library lies beside clang.
//!
//! Specification: `docs/spec/linker-wrapper.md` §3.2–3.6. Differently from LLVM, OpenMP's device runtime joins here and
//! not at each compile, so that an image has one copy of it.

#[cfg(feature = "tools")]
pub(crate) mod fatbinary;
mod job;
mod linker;
mod nvptx;
#[cfg(feature = "tools")]
pub mod spirv;
#[cfg(feature = "tools")]
mod spirv_line;
#[cfg(feature = "tools")]
mod text;
mod wrapper_line;

#[cfg(feature = "tools")]
pub use crate::device_link::text::SourceText;

pub use crate::device_link::job::{DeviceInput, LinkJob};
pub use crate::device_link::linker::{DeviceLinker, LinkOptions, PlannedLink, Way};

use crate::device_link::linker::LLD;
use offload_build_core::process::command::Command;
use offload_build_core::process::search::NotFound;
use offload_formats::names::ImageKind;
use std::path::Path;

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
            let inputs = job.inputs.iter().map(DeviceInput::path);
            let merged = self.llvm_link(output)?.args(inputs);
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
        let objects: Vec<&Path> = job.objects().collect();
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
            Way::Llvm if self.tools.llvm.is_none() && job.triple.is_cpu() => job.has_bitcode(),
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

    /// A CPU device's image: a shared object, linked against what the host program links.
    fn shared_object(
        &self,
        job: &LinkJob,
        objects: &[&Path],
        module: Option<&Path>,
        output: &Path,
    ) -> Result<Command, NotFound> {
        // Objects need no clang: what the host's programs are linked with will do.
        let command = match (&self.tools.llvm, module) {
            (None, None) => Command::new(self.cc),
            _ => {
                let foreign = self.foreign();
                if foreign.contains(&LLD) {
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
            // A function that no kernel calls may need libraries that are not there: clang's header of `<complex>` has some.
            command = command
                .args(["-ffunction-sections", "-Wl,--gc-sections"])
                .args(self.device_runtime(job)?);
        }
        self.check_lld()?;
        Ok(self.extra(self.module(command, module)))
    }
}

#[cfg(test)]
mod tests;
