//! Plans the device links of one host link.

mod host_libraries;
mod link;
mod planner;

pub(crate) use link::{DeviceLink, Missing};
pub(crate) use planner::Planner;
