//! The part of the wrapper's line that is for SPIR-V and SYCL.

use crate::device_link::job::LinkJob;
use crate::device_link::linker::{DeviceLinker, needed};
use offload_build_core::process::command::Command;
use offload_build_core::process::search::NotFound;
use offload_formats::names::OffloadKind;
use std::ffi::OsString;

/// The option of clang 22 by which it writes SPIR-V for AMD itself.
const BACKEND: &str = "-use-spirv-backend";

impl DeviceLinker<'_> {
    /// Checks that the programs exist that clang will run for SPIR-V.
    pub(crate) fn check_spirv_tools(&self, job: &LinkJob) -> Result<(), NotFound> {
        let tools = &self.tools.spirv;
        if job.kinds.contains(&OffloadKind::SYCL) {
            needed(&tools.sycl_linker)?;
        } else if job.is_spirv() && job.triple.as_str().starts_with("spirv64-amd-") {
            if !self.writes_spirv_itself() {
                needed(&tools.llvm_spirv)?;
            }
        } else if job.is_spirv() {
            needed(&tools.spirv_link)?;
        }
        Ok(())
    }

    /// Adds the options of a job of SYCL.
    pub(crate) fn add_sycl(&self, job: &LinkJob, command: Command) -> Command {
        if !job.kinds.contains(&OffloadKind::SYCL) {
            return command;
        }
        let triple = format!("-triple={}", job.triple.as_str());
        let arch = format!("-arch={}", job.processor);
        command
            .args(["--sycl-link", "-Xlinker", &triple, "-Xlinker", &arch])
            .args(self.sycl_folder())
    }

    /// clang 22 looks for this linker in `PATH` and not beside itself, where it is.
    fn sycl_folder(&self) -> Option<OsString> {
        let tools = &self.tools.spirv;
        if tools.has_sycl_linker_in_path {
            return None;
        }
        let linker = tools.sycl_linker.as_ref().ok()?;
        let mut option = OsString::from("-B");
        option.push(linker.parent()?);
        Some(option)
    }

    /// Tells whether clang writes SPIR-V without the translator. The last of the options holds.
    fn writes_spirv_itself(&self) -> bool {
        let mut options = self
            .compiler_args
            .iter()
            .rev()
            .filter_map(|arg| arg.to_str());
        let last = options.find(|arg| matches!(*arg, BACKEND | "-no-use-spirv-backend"));
        last == Some(BACKEND)
    }
}
