//! Reads the files and libraries of the host link, and finds device code in them, in bundles too.

pub(crate) mod archive_index;
pub(crate) mod blocks;
pub(crate) mod file;
pub(crate) mod host_archive;
pub(crate) mod host_objects;
pub(crate) mod host_part;
pub(crate) mod image_bytes;
pub(crate) mod images;
pub(crate) mod libraries;
pub(crate) mod linker_script;
pub(crate) mod scan;
pub(crate) mod seen;
pub(crate) mod symbols;
