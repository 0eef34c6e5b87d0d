//! Windows.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs as system;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// Reads and writes at offsets. Unlike on Unix, the position of the file moves.
pub(crate) trait FileExt {
    /// Reads up to the length of the buffer; fewer bytes at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes up to all bytes.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Fills the buffer.
    fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read_at(buffer, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    buffer = &mut buffer[count..];
                    offset += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all bytes.
    fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write_at(bytes, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    bytes = &bytes[count..];
                    offset += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The system's error for a read that starts past the end of a file (`ERROR_HANDLE_EOF`).
const END_OF_FILE: i32 = 38;

impl FileExt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match system::FileExt::seek_read(self, buffer, offset) {
            Err(error) if error.raw_os_error() == Some(END_OF_FILE) => Ok(0),
            read => read,
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        system::FileExt::seek_write(self, bytes, offset)
    }
}

/// Returns the text of these bytes, which are UTF-8. Other bytes become U+FFFD: no file has such a name.
pub(crate) fn os_string(bytes: Vec<u8>) -> OsString {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// Returns the text of these bytes, if they are UTF-8.
pub(crate) fn os_str(bytes: &[u8]) -> Option<&OsStr> {
    std::str::from_utf8(bytes).ok().map(OsStr::new)
}

/// Returns nothing: the standard library does not tell the numbers of files.
pub(crate) fn file_number(_: &Metadata) -> Option<(u64, u64)> {
    None
}

/// Returns the corresponding permission bits of Unix: all may read a file, and write it unless it is read-only.
pub(crate) fn mode(metadata: &Metadata) -> u32 {
    match metadata.permissions().readonly() {
        true => 0o444,
        false => 0o666,
    }
}

/// Makes a file read-only, or not, as its owner's mode says.
pub(crate) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    let mut permissions = fs::metadata(path)?.permissions();
    permissions.set_readonly(mode & 0o200 == 0);
    fs::set_permissions(path, permissions)
}

/// Leaves the new file as it is: access follows from the folder.
pub(crate) fn keep_owner(_: &File, _: &File) -> io::Result<bool> {
    Ok(true)
}

/// Returns `options`: access follows from the folder.
pub(crate) fn create_with_mode(options: &mut OpenOptions, _: u32) -> &mut OpenOptions {
    options
}

/// Returns a maker of temporary files or folders; access follows from the folder.
pub(crate) fn temporary(_: u32) -> tempfile::Builder<'static, 'static> {
    tempfile::Builder::new()
}

/// Does nothing: there is no limit that a process can raise.
pub(crate) fn raise_file_limit() {}

/// Opens a file for reading.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Runs the program to its end: no process becomes another program.
pub(crate) fn become_program(command: &mut Command) -> io::Result<ExitStatus> {
    command.status()
}

/// Returns nothing: Windows does not tell it without a snapshot of all processes.
pub(crate) fn parent_program() -> Option<PathBuf> {
    None
}

/// Returns nothing: no signal ends a process.
pub(crate) fn signal(_: ExitStatus) -> Option<i32> {
    None
}

/// Tells whether the error means that no file has this name, for any process.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, InvalidInput, NotADirectory, NotFound};
    matches!(
        error.kind(),
        NotFound | NotADirectory | InvalidFilename | InvalidInput
    )
}

/// Creates a link to a file or folder.
pub(crate) fn symlink(target: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    let (target, link) = (target.as_ref(), link.as_ref());
    let folder = link.parent().unwrap_or(Path::new(""));
    match folder.join(target).is_dir() {
        true => system::symlink_dir(target, link),
        false => system::symlink_file(target, link),
    }
}
