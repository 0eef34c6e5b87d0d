//! Translates device code from text to what a device linker reads: LLVM IR to bitcode, assembly to an object.
//!
//! clang's older driver does the same with the entries of text bundles before its link, with the
//! assembler for all that is called `.s` (clang 19, `-###`). No pass runs over the IR: that is the
//! link's affair. PTX is text, too, but its tools link it as it is.

use crate::device_link::linker::DeviceLinker;
use offload_build_core::compile::device::target_option;
use offload_build_core::files;
use offload_build_core::process::command::Command;
use offload_build_core::process::search::NotFound;
use offload_formats::names::Triple;
use std::path::{Path, PathBuf};

/// Language of a text other than PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceText {
    /// LLVM IR.
    Ir,
    /// Assembly of the target.
    Assembly,
}

impl SourceText {
    /// Returns the path of the bitcode or object made from `text`; not `.bc`, which clang would compile.
    #[must_use]
    pub fn made_from(text: &Path) -> PathBuf {
        files::beside(text, ".o")
    }
}

impl DeviceLinker<'_> {
    /// The command that makes [`SourceText::made_from`] the file `text`, which is for `processor`: a
    /// target ID without all features of the link's, perhaps, and assembly says so itself.
    ///
    /// # Errors
    ///
    /// When there is no clang.
    pub fn translate(
        &self,
        language: SourceText,
        text: &Path,
        triple: &Triple,
        processor: &str,
    ) -> Result<Command, NotFound> {
        let mut command = Command::new(&self.tools.llvm()?.clang)
            .arg("--no-default-config")
            .arg(format!("--target={triple}"));
        // IR goes through no back end, and of an NVIDIA processor clang 22 wants the version of PTX.
        if language == SourceText::Assembly && !processor.is_empty() {
            command = command.arg(target_option(triple, processor));
        }
        let how: &[&str] = match language {
            SourceText::Ir => &[
                "-nogpulib",
                "-emit-llvm",
                "-Xclang",
                "-disable-llvm-passes",
                "-x",
                "ir",
            ],
            SourceText::Assembly => &["-x", "assembler"],
        };
        Ok(command
            .args(["-c", "-fPIC", "-Wno-unused-command-line-argument"])
            .args(how)
            .arg(text)
            .arg("-o")
            .arg(SourceText::made_from(text)))
    }
}
