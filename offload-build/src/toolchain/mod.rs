//! Floor 3: device compilers, as values.

pub mod answers;
pub mod clang;
pub mod command;
pub mod depfile;
pub mod device_only;
pub mod family;
pub mod find;
pub mod finish;
pub(crate) mod install;
pub mod jobserver;
pub mod launcher;
pub mod nvcc;
pub mod ptxas;
mod regions;
pub(crate) mod returned;
pub mod rocm;
pub mod single_source;
pub mod task;

pub use answers::Answers;
pub use command::{Command, CommandError, Quoted};
pub use family::Family;
pub(crate) use find::machine_of;
pub use find::{Llvm, NotFound, Search};
