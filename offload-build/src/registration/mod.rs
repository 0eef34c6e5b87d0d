//! Floor 4: the host object that gives images to a runtime.

pub mod openmp;
