//! What the user asked for: the command line, understood.

pub(crate) mod arguments;
pub(crate) mod family;
pub(crate) mod host;
pub(crate) mod options;
pub(crate) mod programs;
