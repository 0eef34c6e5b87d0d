//! Finds what this machine has: compilers, linkers, runtimes. `plan` gets it as values.

pub(crate) mod device_programs;
pub(crate) mod host_compiler;
pub(crate) mod host_linker;
pub(crate) mod programs;
pub(crate) mod rpath_folders;
pub(crate) mod runtimes;
