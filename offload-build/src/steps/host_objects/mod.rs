//! Host objects: their offload entries, and names that only one module has.

pub(crate) mod entries;
pub(crate) mod own;
