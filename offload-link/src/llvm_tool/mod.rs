//! What the tools share that stand in for LLVM's: their command lines, how they fail, and files that
//! are read and written as pieces.

pub(crate) mod compression;
pub(crate) mod error;
pub(crate) mod installation;
pub(crate) mod options;
pub(crate) mod outputs;
pub(crate) mod sources;

pub(crate) use error::Error;
pub(crate) use outputs::{Output, Style};
pub(crate) use sources::Sources;
