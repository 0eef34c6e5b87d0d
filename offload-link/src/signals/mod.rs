//! Ends this process on a signal without leftovers.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{Watch, survive_file_limit};
#[cfg(windows)]
pub(crate) use windows::{NoWatch as Watch, survive_file_limit};
