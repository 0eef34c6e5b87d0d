//! Steps of a plan: what each does, prints and makes.

pub(crate) mod archive;
pub(crate) mod artifact;
pub(crate) mod atomic_orders;
pub(crate) mod describe;
pub(crate) mod digests;
pub(crate) mod extract;
mod file_state;
mod folder;
pub(crate) mod host_objects;
pub(crate) mod image_library;
pub(crate) mod images;
pub(crate) mod kernel_functions;
pub(crate) mod kernel_headers;
mod key;
pub(crate) mod keyed;
pub(crate) mod pack;
pub(crate) mod placement;
pub(crate) mod planned;
pub(crate) mod register;
pub(crate) mod step;
pub(crate) mod take;
pub(crate) mod task;
pub(crate) mod text_file;
