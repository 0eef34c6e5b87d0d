//! Compiles registrations from C: for hosts without machine code in `registration/machine/`, and on request.
//!
//! In driver position the host compiler compiles it, with the link's options about the machine. In linker position it
//! is clang, with the host's triple.

use crate::linker_wrapper::actions::Actions;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use offload_build::tools::Command;
use offload_formats::container::elf::Machine;
use offload_formats::format::pieces::Piece;

use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::line::arguments::{Arguments, Position};
use crate::linker_wrapper::line::host;
use crate::linker_wrapper::line::programs;
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

    /// Writes the files that the compiler reads; pieces copy `inputs`.
    pub(crate) fn write(&self, actions: Actions, inputs: &[PathBuf]) -> Result<(), LinkError> {
        for (file, pieces) in &self.blobs {
            actions.write_pieces(file, pieces, inputs)?;
        }
        actions.write(&self.file, self.text.as_bytes())
    }

    /// Returns the command that compiles it.
    pub(crate) fn compile(
        &self,
        arguments: &Arguments,
        linker: &Command,
        host: Machine,
        output: &Path,
    ) -> Result<Command, LinkError> {
        let compiler = compiler(arguments, linker, host)?;
        let mut command = compiler.args(["-O2", "-c"]);
        if arguments.family.is_elf() {
            command = command.arg("-fPIC");
        }
        // A driver for C++ takes any source as C++.
        let command = command.args(["-x", "c"]).arg(&self.file);
        Ok(command.arg("-o").arg(output))
    }
}

/// Returns the compiler for the host, with the options that select the host.
fn compiler(arguments: &Arguments, linker: &Command, host: Machine) -> Result<Command, LinkError> {
    if arguments.position == Position::Driver {
        return Ok(linker.clone().args(arguments.machine_flags()));
    }
    let triple = host::target(arguments, Some(host));
    let search = programs::search(arguments);
    let clang = search.clangs().into_iter().next();
    match (clang, triple) {
        (Some(llvm), triple) => {
            let target = triple.map(|triple| {
                OsString::from(format!(
                    "--target={}",
                    triple.replace("riscv64gc", "riscv64")
                ))
            });
            Ok(Command::new(llvm.clang)
                .arg("--no-default-config")
                .args(target))
        }
        (None, _) if host::is_here(host) => Ok(Command::new("cc")),
        (None, triple) => Err(LinkError::Option(format!(
            "the registration must be compiled for {}, but clang was not found\n\
             hint: install clang, or link through a compiler driver",
            triple.as_deref().unwrap_or("the host")
        ))),
    }
}
