//! A lock between processes, which ends with its owner, however that ends.

use std::io;
use std::path::Path;

/// A lock that this process has.
#[derive(Debug)]
pub struct ProcessLock {
    #[cfg(target_os = "linux")]
    _owned: std::os::unix::net::UnixListener,
}

impl ProcessLock {
    /// Waits until no other process has the lock of the file `path`, and takes it. Creates the folder of the file.
    ///
    /// The lock is a name of an abstract socket: the system frees it when the process ends, so a killed build leaves
    /// no lock behind. (Locks of files need Rust 1.89.) Containers with networks of their own do not see each other.
    ///
    /// # Errors
    ///
    /// If the system has no such locks, or the folder cannot be created.
    #[cfg(target_os = "linux")]
    pub fn wait(path: &Path) -> io::Result<Self> {
        use offload_formats_core::md5::Md5;
        use std::os::linux::fs::MetadataExt;
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::ffi::OsStrExt;
        use std::os::unix::net::{SocketAddr, UnixListener};
        use std::time::Duration;

        const PAUSE: Duration = Duration::from_millis(50);
        // Containers with one network may have different files with one path, and one file with different paths.
        let folder = path.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(folder)?;
        let folder = folder.metadata()?;
        let folder = format!("{}:{}:", folder.st_dev(), folder.st_ino());
        let name = path.file_name().unwrap_or_default();
        let identity = [folder.as_bytes(), name.as_bytes()].concat();
        let name = [b"offload-build\0", &Md5::digest(identity)[..]];
        let address = SocketAddr::from_abstract_name(name.concat())?;
        loop {
            match UnixListener::bind_addr(&address) {
                Ok(_owned) => return Ok(Self { _owned }),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    std::thread::sleep(PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Fails: other systems free no name when a process ends.
    #[cfg(not(target_os = "linux"))]
    pub fn wait(_path: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
