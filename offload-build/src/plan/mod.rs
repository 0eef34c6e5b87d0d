//! Plans: the steps of a build, as values.

pub(crate) mod artifacts;
pub(crate) mod context;
pub(crate) mod device_link;
pub(crate) mod device_only;
pub(crate) mod hosted;
pub(crate) mod machine_code;
pub(crate) mod nvcc;
pub(crate) mod prebuilt;
pub(crate) mod stages;

pub use stages::Plan;
