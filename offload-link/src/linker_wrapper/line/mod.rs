//! Parses the command line.

pub(crate) mod arguments;
pub(crate) mod elf_linker;
pub(crate) mod family;
pub(crate) mod host;
pub(crate) mod options;
pub(crate) mod values;
