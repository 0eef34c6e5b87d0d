//! New files in the places of old ones, which stay until the new ones are complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use super::replacement::Replacement;
use super::scratch::temporary;
use crate::platform;
use crate::signals::Watch;

/// A new file for a path. A signal removes it until it has its name.
pub(crate) struct NewFile {
    content: Content,
    /// If no thread can be started, a signal leaves the file. Dropped after the file.
    watch: Option<Watch>,
}

enum Content {
    /// Has a temporary name beside the final one.
    Beside(Replacement),
    /// Has no name, to be copied to what a rename cannot replace: standard output, which has no path, a device or pipe, or a file in
    /// a folder where no other file can be created.
    Apart(File, Option<PathBuf>),
}

impl NewFile {
    /// Creates the file for `path`. In the place of another file, it gets the mode of that.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be written to.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let replaced = fs::metadata(path).ok().filter(fs::Metadata::is_file);
        Self::of(path, ".tmp", replaced.as_ref().map(platform::mode))
    }

    /// Creates the file, which only its owner may read, with a temporary name that begins with `prefix`.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be written to.
    pub(crate) fn private(path: &Path, prefix: &str) -> io::Result<Self> {
        Self::of(path, prefix, Some(0o600))
    }

    fn of(path: &Path, prefix: &str, mode: Option<u32>) -> io::Result<Self> {
        let is_special = |found: fs::Metadata| !found.is_file() && !found.is_dir();
        match fs::metadata(path).is_ok_and(is_special) {
            true => Self::apart(Some(path.to_owned())),
            false => Self::beside(follow(path)?, prefix, mode),
        }
    }

    /// Creates the file beside `target`, a path without links.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be written to.
    pub(crate) fn beside(target: PathBuf, prefix: &str, mode: Option<u32>) -> io::Result<Self> {
        let watch = Watch::start().ok();
        let new = Replacement::create(target, prefix, mode, watch.as_ref())?;
        Ok(Self {
            content: Content::Beside(new),
            watch,
        })
    }

    /// Creates a file without a name, to be copied to `target`, or to standard output.
    ///
    /// # Errors
    ///
    /// Fails if the folder for temporary files cannot be written to.
    pub(crate) fn apart(target: Option<PathBuf>) -> io::Result<Self> {
        Ok(Self {
            content: Content::Apart(temporary()?, target),
            watch: None,
        })
    }

    /// Opens the file, which is empty at first. Not every file stays open: there may be more than a process may have open.
    ///
    /// # Errors
    ///
    /// Fails if the system refuses it.
    pub(crate) fn open(&self) -> io::Result<File> {
        match &self.content {
            Content::Beside(new) => new.open(),
            Content::Apart(file, _) => file.try_clone(),
        }
    }

    /// Sets the final mode, if the file gets a name.
    pub(crate) fn set_mode(&mut self, mode: u32) {
        if let Content::Beside(new) = &mut self.content {
            new.set_mode(mode);
        }
    }

    /// Gives the complete file its name.
    ///
    /// # Errors
    ///
    /// Fails if the system refuses it; an existing file stays.
    pub(crate) fn finish(self) -> io::Result<()> {
        let (mut file, target) = match self.content {
            Content::Beside(new) => return new.finish(self.watch.as_ref()),
            Content::Apart(file, target) => (file, target),
        };
        file.rewind()?;
        match target {
            None => {
                let mut out = io::stdout().lock();
                io::copy(&mut file, &mut out)?;
                out.flush()
            }
            Some(path) => {
                let mut out = OpenOptions::new().write(true).truncate(true).open(path)?;
                io::copy(&mut file, &mut out).map(drop)
            }
        }
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
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
    use std::process::Command;

    #[test]
    fn keeps_the_mode_of_the_file_that_it_replaces() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode() & 0o7777;
        fs::write(at("plain"), "").unwrap();
        write_beside(&at("new"), b"new").unwrap();
        assert_eq!(mode("new"), mode("plain"));
        symlink("old", at("link")).unwrap();
        for (old, expected) in [(0o600, 0o600), (0o444, 0o444), (0o2755, 0o755)] {
            fs::write(at("old"), "old").unwrap();
            fs::set_permissions(at("old"), fs::Permissions::from_mode(old)).unwrap();
            write_beside(&at("link"), b"new").unwrap();
            assert_eq!(mode("old"), expected, "{old:o}");
            assert_eq!(fs::read(at("old")).unwrap(), b"new");
            fs::remove_file(at("old")).unwrap();
        }
    }

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
