//! New files in the places of old ones, which stay until the new ones are complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::replacement::Replacement;
use super::scratch::temporary;
use crate::platform;
use crate::signals::Watch;

/// A new file for a path.
pub(crate) struct NewFile {
    content: Content,
    /// Removes the file on a signal. If no thread can be started, a signal leaves it.
    watch: Option<&'static Watch>,
}

enum Content {
    /// Has a temporary name beside the final one.
    Beside(Replacement, File),
    /// Has no name, to be copied to what a rename would replace: the device or pipe with this path.
    Apart(File, PathBuf),
}

impl NewFile {
    /// Creates the file for `path`. In the place of another file, it gets the mode of that.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be written to.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let replaced = fs::metadata(path).ok().filter(fs::Metadata::is_file);
        let mode = replaced.as_ref().map(platform::mode);
        Self::of(path, ".tmp", mode, None)
    }

    /// Creates the file, which only its owner may read, with a temporary name that begins with `prefix`; a signal removes it
    /// until it has its name. For tools without a watch of their own.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be written to.
    pub(crate) fn watched(path: &Path, prefix: &str) -> io::Result<Self> {
        // To the end of the process: signals have no effect after a watch has ended.
        static WATCH: OnceLock<Option<Watch>> = OnceLock::new();
        let watch = WATCH.get_or_init(|| Watch::start().ok()).as_ref();
        Self::of(path, prefix, Some(0o600), watch)
    }

    fn of(
        path: &Path,
        prefix: &str,
        mode: Option<u32>,
        watch: Option<&'static Watch>,
    ) -> io::Result<Self> {
        let is_special = |found: fs::Metadata| !found.is_file() && !found.is_dir();
        if fs::metadata(path).is_ok_and(is_special) {
            return Ok(Self {
                content: Content::Apart(temporary()?, path.to_owned()),
                watch,
            });
        }
        let (new, file) = Replacement::create(follow(path)?, prefix, mode, watch)?;
        Ok(Self {
            content: Content::Beside(new, file),
            watch,
        })
    }

    /// Returns the file, empty and writable.
    pub(crate) fn file(&self) -> &File {
        match &self.content {
            Content::Beside(_, file) | Content::Apart(file, _) => file,
        }
    }

    /// Sets the final mode, if the file gets a name.
    pub(crate) fn set_mode(&mut self, mode: u32) {
        if let Content::Beside(new, _) = &mut self.content {
            new.set_mode(mode);
        }
    }

    /// Gives the complete file its name.
    ///
    /// # Errors
    ///
    /// Fails if the system refuses it; an existing file stays.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self.content {
            Content::Beside(new, file) => {
                drop(file);
                new.finish(self.watch)
            }
            Content::Apart(mut file, target) => {
                file.seek(SeekFrom::Start(0))?;
                let mut out = OpenOptions::new().write(true).open(target)?;
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
