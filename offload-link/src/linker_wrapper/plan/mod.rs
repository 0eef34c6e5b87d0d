//! What will be done: device links, containers, what registers them, what the host link gets besides.

pub(crate) mod containers;
pub(crate) mod device_link;
pub(crate) mod from_c;
pub(crate) mod override_image;
pub(crate) mod registration;
pub(crate) mod rpath;
pub(crate) mod runtime;
