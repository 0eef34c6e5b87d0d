//! Floor 3: device compilers, as values.

pub mod clang;
pub mod command;
pub mod depfile;
pub mod device_only;
pub mod find;
pub mod jobserver;
pub mod ptxas;
pub mod task;

pub use command::{Command, CommandError, Quoted};
pub(crate) use find::machine_of;
pub use find::{Llvm, NotFound, Search};
