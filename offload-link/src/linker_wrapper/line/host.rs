//! Facts about the host in the command line.

use std::path::Path;

use object::elf;
use offload_formats::container::elf::Machine;

use crate::linker_wrapper::line::arguments::{Arguments, Item};

/// Machines of the host with their names for compilers; the first is Rust's triple.
#[rustfmt::skip]
const MACHINES: &[(u16, &str, &str)] = &[
    (elf::EM_X86_64.0, "x86_64-unknown-linux-gnu", "x86_64-linux-gnu-gcc"),
    (elf::EM_AARCH64.0, "aarch64-unknown-linux-gnu", "aarch64-linux-gnu-gcc"),
    (elf::EM_PPC64.0, "powerpc64le-unknown-linux-gnu", "powerpc64le-linux-gnu-gcc"),
    (elf::EM_RISCV.0, "riscv64gc-unknown-linux-gnu", "riscv64-linux-gnu-gcc"),
    (elf::EM_S390.0, "s390x-unknown-linux-gnu", "s390x-linux-gnu-gcc"),
];

/// `e_machine` of programs for this machine.
const HERE: u16 = if cfg!(target_arch = "aarch64") {
    elf::EM_AARCH64.0
} else {
    elf::EM_X86_64.0
};

/// Returns the machine of the host objects, or else of the host's triple.
pub(crate) fn machine(arguments: &Arguments, host: Option<Machine>) -> Machine {
    let named = || {
        let triple = target(arguments, None)?;
        let arch = triple.split('-').next()?;
        let of_row = |row: &&(u16, &str, &str)| row.1.split('-').next() == Some(arch);
        MACHINES.iter().find(of_row).map(|row| row.0)
    };
    host.unwrap_or_else(|| Machine {
        number: named().unwrap_or(HERE),
        flags: 0,
    })
}

/// Returns Debian's name of the host: `x86_64-linux-gnu`.
pub(crate) fn multiarch(arguments: &Arguments) -> Option<&'static str> {
    let number = machine(arguments, None).number;
    let (.., gcc) = MACHINES.iter().find(|row| row.0 == number)?;
    gcc.strip_suffix("-gcc")
}

/// Returns the C compiler for a machine other than this one.
pub(crate) fn foreign_compiler(host: Machine) -> Option<&'static str> {
    let (.., gcc) = MACHINES.iter().find(|row| row.0 == host.number)?;
    (host.number != HERE).then_some(*gcc)
}

/// Tells whether programs for that machine run on this one.
pub(crate) fn is_here(host: Machine) -> bool {
    host.number == HERE
}

/// Returns the host's triple, in Rust's form if rustc passes it.
pub(crate) fn target(arguments: &Arguments, host: Option<Machine>) -> Option<String> {
    let given = arguments
        .options
        .host_triple
        .as_ref()
        .or(arguments.target.as_ref());
    if let Some(target) = given {
        return Some(target.to_string_lossy().into_owned());
    }
    let rustlib = arguments.items.iter().find_map(|item| {
        let Item::LibraryDir(dir) = item else {
            return None;
        };
        let mut parts = Path::new(dir).iter();
        parts.find(|part| *part == "rustlib")?;
        Some(parts.next()?.to_string_lossy().into_owned())
    });
    rustlib.or_else(|| {
        let machine = host?.number;
        let (_, triple, _) = MACHINES.iter().find(|row| row.0 == machine)?;
        Some((*triple).to_owned())
    })
}
