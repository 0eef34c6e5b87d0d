//! Command lines: spellings of options, response files.
//!
//! There are two grammars. A linker's command line (`linker.rs`) passes on unknown options; a command line of LLVM's
//! tools (`llvm.rs`) reports each mistake.

pub(crate) mod linker;
pub(crate) mod llvm;
pub(crate) mod response_file;
