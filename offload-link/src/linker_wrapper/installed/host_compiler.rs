//! Finds the compiler of registrations in C.
//!
//! In driver position it is the host compiler, with the link's options about the machine. In linker position it is
//! clang, with the host's triple.

use std::ffi::OsString;

use offload_build::tools::Command;
use offload_formats::container::elf::Machine;
use offload_formats::names::host::clang_triple;

use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::installed::programs;
use crate::linker_wrapper::line::arguments::{Arguments, Position};
use crate::linker_wrapper::line::host;

/// Finds the compiler for the host, and returns it with the options that select the host.
///
/// # Errors
///
/// Fails for a foreign host if there is no clang.
pub(crate) fn find(
    arguments: &Arguments,
    linker: &Command,
    host: Machine,
) -> Result<Command, LinkError> {
    if arguments.position == Position::Driver {
        return Ok(linker.clone().args(arguments.machine_flags()));
    }
    let triple = host::target(arguments, Some(host));
    let search = programs::search(arguments);
    let clang = search.clangs().into_iter().next();
    match (clang, triple) {
        (Some(llvm), triple) => {
            let target =
                triple.map(|triple| OsString::from(format!("--target={}", clang_triple(&triple))));
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
