//! Plans registrations in C: for hosts without machine code in `registration/machine/`, and on request.

use std::path::{Path, PathBuf};

use offload_build::tools::Command;
use offload_formats::format::pieces::Piece;

use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::line::family::Family;
use crate::linker_wrapper::plan::registration::Registration;
use crate::linker_wrapper::workplace::Workplace;

/// A registration in C with the files that it needs.
#[derive(Clone, Debug)]
pub(crate) struct CSource {
    pub text: String,
    pub file: PathBuf,
    /// Files of the images, with their pieces.
    pub blobs: Vec<(PathBuf, Vec<Piece>)>,
}

impl CSource {
    /// Returns the C source of `form`. The names of its files in the workplace start with `name`.
    pub(crate) fn of(
        form: &Registration<'_>,
        name: &str,
        workplace: &Workplace,
    ) -> Result<Self, LinkError> {
        let blobs = form.blobs();
        let blobs: Vec<(PathBuf, Vec<Piece>)> = (0..)
            .zip(blobs)
            .map(|(index, pieces): (usize, Vec<Piece>)| {
                let file = workplace.file(&format!("{name}.{index}.image"));
                // The assembler resolves relative paths in the folder where the compiler was started.
                let file = std::path::absolute(&file).unwrap_or(file);
                (file, pieces)
            })
            .collect();
        let files: Vec<&Path> = blobs.iter().map(|(file, _)| file.as_path()).collect();
        Ok(Self {
            text: form.to_c(&files)?,
            file: workplace.file(&format!("{name}.image.wrapper.c")),
            blobs,
        })
    }

    /// Returns the command with which `compiler` compiles it for hosts of `family`.
    pub(crate) fn compile(&self, compiler: Command, family: Family, output: &Path) -> Command {
        let mut command = compiler.args(["-O2", "-c"]);
        if family.is_elf() {
            command = command.arg("-fPIC");
        }
        // A driver for C++ takes any source as C++.
        let command = command.args(["-x", "c"]).arg(&self.file);
        command.arg("-o").arg(output)
    }
}
