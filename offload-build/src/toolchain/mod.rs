//! Floor 3: device compilers, as values.

pub mod command;
pub mod find;

pub use command::{Command, CommandError, Quoted};
pub use find::{Llvm, NotFound, Search};
