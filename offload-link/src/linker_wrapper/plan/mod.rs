//! Plans the work as values: device links, registrations, and additions to the host link.

pub(crate) mod containers;
pub(crate) mod device_link;
pub(crate) mod from_c;
pub(crate) mod placement;
pub(crate) mod registration;
pub(crate) mod runtime;
