//! Reports the link: the fate of each image, the commands, the time of each phase.

pub(crate) mod fates;
pub(crate) mod shown;
pub(crate) mod trace;
