//! Decides which images are linked, and which of them together.

pub(crate) mod bundle_choice;
mod content;
pub(crate) mod device_libraries;
pub(crate) mod distinct;
pub(crate) mod groups;
pub(crate) mod host_entries;
mod host_search;
mod host_units;
pub(crate) mod link_jobs;
mod linked_units;
mod needed;
mod releases;
pub(crate) mod select;
