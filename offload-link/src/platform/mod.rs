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

/// Fails on this system; the caller then reads and writes the bytes.
///
/// # Errors
///
/// Fails always.
#[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
pub(crate) fn copy_in_system(
    _: (&std::fs::File, &mut u64),
    _: (&std::fs::File, &mut u64),
    _: usize,
) -> std::io::Result<usize> {
    Err(std::io::ErrorKind::Unsupported.into())
}
