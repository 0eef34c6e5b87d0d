//! Differences of operating systems: positions in files, file modes and numbers, bytes of names, and how a process
//! becomes another program. The rest of the crate is the same on all of them.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::*;
#[cfg(windows)]
pub(crate) use windows::*;
