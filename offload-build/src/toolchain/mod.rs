//! Floor 3: device compilers, as values.

pub mod command;
pub mod find;
