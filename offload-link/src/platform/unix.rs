//! Unix.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
pub(crate) use std::os::unix::fs::{FileExt, symlink};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, setrlimit};

/// Returns the bytes as a string of the system, which may have any bytes.
pub(crate) fn os_string(bytes: Vec<u8>) -> OsString {
    OsString::from_vec(bytes)
}

/// Returns the bytes as a string of the system; every string of bytes is one.
pub(crate) fn os_str(bytes: &[u8]) -> Option<&OsStr> {
    Some(OsStr::from_bytes(bytes))
}

/// Returns the device and inode of a file, which are equal for all its names.
pub(crate) fn file_number(metadata: &Metadata) -> Option<(u64, u64)> {
    Some((metadata.dev(), metadata.ino()))
}

/// Returns the permission bits of a file, as `chmod` takes them.
pub(crate) fn mode(metadata: &Metadata) -> u32 {
    metadata.permissions().mode()
}

/// Sets the permission bits of a file.
pub(crate) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Gives a new file the owner, the group and the extended attributes of an old one, as far as this process may, and tells
/// whether it has the owner and the group.
pub(crate) fn keep_owner(old: &File, new: &File) -> io::Result<bool> {
    let (was, is) = (old.metadata()?, new.metadata()?);
    let same = (was.uid(), was.gid()) == (is.uid(), is.gid());
    let is_kept = same || fchown(new, Some(was.uid()), Some(was.gid())).is_ok();
    // Access control lists are attributes, too. Some systems have none, and some are for the administrator.
    #[cfg(target_os = "linux")]
    copy_attributes(old, new);
    Ok(is_kept)
}

#[cfg(target_os = "linux")]
fn copy_attributes(old: &File, new: &File) -> Option<()> {
    use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
    // Larger lists and values than the kernel has.
    let mut names = vec![0; 1 << 16];
    let size = flistxattr(old, &mut names[..]).ok()?;
    let mut value = vec![0; 1 << 16];
    for name in names[..size].split(|byte| *byte == 0) {
        if let Ok(size) = fgetxattr(old, name, &mut value[..]) {
            let _ = fsetxattr(new, name, &value[..size], XattrFlags::empty());
        }
    }
    Some(())
}

/// Sets the mode of files that are created, less the process's mask.
pub(crate) fn create_with_mode(options: &mut OpenOptions, mode: u32) -> &mut OpenOptions {
    options.mode(mode)
}

/// Returns a maker of temporary files or folders with this mode, less the process's mask.
pub(crate) fn temporary(mode: u32) -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.permissions(Permissions::from_mode(mode));
    builder
}

/// Lets this process open as many files as the administrator allows. Its parent may have set a lower limit, often 1024.
pub(crate) fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    // macOS accepts no more, also where it tells no maximum.
    let most = cfg!(target_os = "macos").then_some(10_240);
    limit.current = match (limit.maximum, most) {
        (Some(maximum), Some(most)) => Some(maximum.min(most)),
        (maximum, most) => maximum.or(most),
    };
    // Without it, an input that cannot be opened is an error.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Opens a file for reading. Does not block, unlike opening a pipe without a writer.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    // The standard library takes the flags as an `i32`.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).expect("the flag is a bit below the sign");
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Copies up to `size` bytes inside the system, moves both offsets past them, and returns their number.
///
/// # Errors
///
/// Fails if the system cannot copy between these files; reading and writing may still work.
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
pub(crate) fn copy_in_system(
    from: (&File, &mut u64),
    to: (&File, &mut u64),
    size: usize,
) -> io::Result<usize> {
    let copied = rustix::fs::copy_file_range(from.0, Some(from.1), to.0, Some(to.1), size);
    Ok(copied?)
}

/// Makes this process the program; returns only if that fails.
pub(crate) fn become_program(command: &mut Command) -> io::Result<ExitStatus> {
    Err(command.exec())
}

/// Returns the program of the process that started this one, where the system tells it.
pub(crate) fn parent_program() -> Option<PathBuf> {
    let parent = std::os::unix::process::parent_id();
    fs::read_link(format!("/proc/{parent}/exe")).ok()
}

/// Returns the number of the signal that ended a process.
pub(crate) fn signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// Tells whether the error means that no file has this name, for any process. Such an error depends on the name, not
/// on the state of the system.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    let certain = [Errno::NOENT, Errno::NOTDIR, Errno::NAMETOOLONG, Errno::LOOP];
    // The standard library refuses a name with a NUL, without an error number.
    match error.raw_os_error() {
        Some(number) => certain.contains(&Errno::from_raw_os_error(number)),
        None => error.kind() == io::ErrorKind::InvalidInput,
    }
}
