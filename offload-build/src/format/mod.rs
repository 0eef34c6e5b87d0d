//! Floor 1: bytes. Formats as pure functions of bytes; no file, variable or process here.

pub mod bytes;
pub mod magic;
pub mod offload_binary;
pub mod offload_entry;
