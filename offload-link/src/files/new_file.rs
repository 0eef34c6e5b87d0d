//! New files in the places of old ones, which stay until the new ones are complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::NamedTempFile;

use crate::platform;
use crate::signals::Watch;

/// A new file for a path.
pub(crate) struct NewFile {
    /// Final path with links resolved.
    target: PathBuf,
    content: Content,
    /// Removes the file on a signal. If no thread can be started, a signal leaves it.
    watch: Option<&'static Watch>,
}

enum Content {
    /// Has a temporary name beside the final one.
    Beside(NamedTempFile),
    /// Has no name, to be copied to what a rename would replace: a device or a pipe.
    Apart(File),
}

impl NewFile {
    /// Creates the file for `path`; `maker` makes it, if it gets a name.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be written to.
    pub(crate) fn create(path: &Path, maker: &tempfile::Builder<'_, '_>) -> io::Result<Self> {
        Self::of(path, None, |folder| maker.tempfile_in(folder))
    }

    /// Creates the file, with a temporary name that begins with `prefix`; a signal removes it until it has its name. For
    /// tools without a watch of their own.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be written to.
    pub(crate) fn watched(path: &Path, prefix: &str) -> io::Result<Self> {
        // To the end of the process: signals have no effect after a watch has ended.
        static WATCH: OnceLock<Option<Watch>> = OnceLock::new();
        let watch = WATCH.get_or_init(|| Watch::start().ok()).as_ref();
        Self::of(path, watch, |folder| {
            // The old file may be private.
            platform::temporary(0o600)
                .prefix(prefix)
                .tempfile_in(folder)
        })
    }

    fn of(
        path: &Path,
        watch: Option<&'static Watch>,
        create: impl FnOnce(&Path) -> io::Result<NamedTempFile>,
    ) -> io::Result<Self> {
        let is_special = |found: fs::Metadata| !found.is_file() && !found.is_dir();
        if fs::metadata(path).is_ok_and(is_special) {
            return Ok(Self {
                target: path.to_owned(),
                content: Content::Apart(tempfile::tempfile()?),
                watch,
            });
        }
        let target = follow(path)?;
        let folder = match target.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        // The system's error, without the temporary name.
        fs::metadata(folder)?;
        let create = || create(folder);
        let file = match watch {
            Some(watch) => watch.create(create, |file| file.path().to_owned())?,
            None => create()?,
        };
        Ok(Self {
            target,
            content: Content::Beside(file),
            watch,
        })
    }

    /// Returns the file, empty and writable.
    pub(crate) fn file(&self) -> &File {
        match &self.content {
            Content::Beside(file) => file.as_file(),
            Content::Apart(file) => file,
        }
    }

    /// Gives the complete file its name.
    ///
    /// # Errors
    ///
    /// Fails if the system refuses it; an existing file stays.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self.content {
            Content::Beside(file) => {
                let path = file.path().to_owned();
                let rename = || Ok(file.persist(self.target).map(drop)?);
                match self.watch {
                    Some(watch) => watch.keep(&path, rename)?,
                    None => rename()?,
                }
            }
            Content::Apart(mut file) => {
                file.seek(SeekFrom::Start(0))?;
                let mut out = OpenOptions::new().write(true).open(self.target)?;
                io::copy(&mut file, &mut out)?;
            }
        }
        Ok(())
    }
}

/// Resolves links like `open`, also one whose target does not exist yet, so that no link is replaced.
pub(crate) fn follow(path: &Path) -> io::Result<PathBuf> {
    /// Number of links that Linux follows.
    const LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let Ok(next) = fs::read_link(&path) else {
            return in_real_folder(&path);
        };
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    // Returns the system's error about too many links.
    fs::metadata(&path)?;
    Ok(path)
}

/// Returns the path with all links in its folder resolved.
fn in_real_folder(path: &Path) -> io::Result<PathBuf> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(path.to_owned());
    };
    let folder = match folder == Path::new("") {
        true => Path::new("."),
        false => folder,
    };
    // If this fails, the next use of the folder reports the error.
    let real = fs::canonicalize(folder);
    Ok(real.unwrap_or_else(|_| folder.to_owned()).join(name))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::files::write_beside;
    use std::os::unix::fs::{FileTypeExt as _, symlink};
    use std::process::Command;

    #[test]
    fn keeps_links_and_pipes() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let kind = |name: &str| fs::symlink_metadata(at(name)).unwrap().file_type();
        symlink("file", at("link")).unwrap();
        for text in ["new", "old file"] {
            write_beside(&at("link"), text.as_bytes()).unwrap();
            assert!(kind("link").is_symlink() && kind("file").is_file());
            assert_eq!(fs::read_to_string(at("file")).unwrap(), text);
        }
        let made = Command::new("mkfifo").arg(at("pipe")).status();
        assert!(made.unwrap().success());
        let pipe = at("pipe");
        let reader = std::thread::spawn(move || fs::read(pipe).unwrap());
        // More than a pipe holds.
        let bytes = vec![7; 200_000];
        write_beside(&at("pipe"), &bytes).unwrap();
        assert!(kind("pipe").is_fifo());
        assert!(reader.join().unwrap() == bytes);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}
