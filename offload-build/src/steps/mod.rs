//! Steps of a plan: what each does, prints and makes.

pub(crate) mod archive;
pub(crate) mod host_objects;
pub(crate) mod images;
pub(crate) mod register;
pub(crate) mod task;
