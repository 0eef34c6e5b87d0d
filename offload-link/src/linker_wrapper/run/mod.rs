//! Runs or shows the link.

pub(crate) mod dependency_file;
pub(crate) mod device_links;
pub(crate) mod host_linker;
pub(crate) mod link;
pub(crate) mod linked_image;
pub(crate) mod override_image;
pub(crate) mod packing;
pub(crate) mod questions;
pub(crate) mod relocatable;
pub(crate) mod start;
pub(crate) mod unseen;
