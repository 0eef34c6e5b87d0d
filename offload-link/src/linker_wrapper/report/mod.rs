//! What is said of the link: the fate of each image, commands as they are shown, what took how long.

pub(crate) mod fates;
pub(crate) mod shown;
pub(crate) mod trace;
