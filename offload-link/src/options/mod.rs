//! Command lines: how options may be written, response files, near names.
//!
//! Two grammars meet here. A linker's line (`linker.rs`) passes on what it does not know; a line of LLVM's tools (`llvm.rs`)
//! reports each mistake.

pub(crate) mod linker;
pub(crate) mod llvm;
pub(crate) mod near;
pub(crate) mod response_file;
