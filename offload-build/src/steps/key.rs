//! Files beside an output: its key, by which a later build recognizes it, and warnings, which Cargo forgets when a build
//! script runs again.

use crate::steps::file_state;
use crate::steps::folder;
use offload_build_core::error::{self, Error};
use offload_build_core::files;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The key of an output and its warnings. The key is written last and removed first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyFiles {
    /// `<output>.key`.
    pub(crate) key: PathBuf,
    /// `<output>.messages`.
    pub(crate) messages: PathBuf,
}

impl KeyFiles {
    /// Returns the names of the files beside `output`.
    pub(crate) fn of(output: &Path) -> Self {
        Self {
            key: files::beside(output, ".key"),
            messages: files::beside(output, ".messages"),
        }
    }

    /// Returns the lines of the key after the first, if that is `recipe`.
    pub(crate) fn lines(&self, recipe: &str) -> Option<String> {
        let text = fs::read_to_string(&self.key).ok()?;
        let lines = text.strip_prefix(recipe)?.strip_prefix('\n')?;
        Some(lines.to_owned())
    }

    /// Returns the warnings, empty if there were none; nothing if they cannot be read.
    pub(crate) fn messages(&self) -> Option<String> {
        match fs::read_to_string(&self.messages) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(String::new()),
            kept => kept.ok(),
        }
    }

    /// Keeps warnings for the next build.
    pub(crate) fn keep_messages(&self, messages: &str) -> Result<(), Error> {
        match messages {
            "" => Ok(()),
            _ => {
                files::write(&self.messages, messages.as_bytes()).map_err(error::io(&self.messages))
            }
        }
    }

    /// Writes the key.
    pub(crate) fn write(&self, recipe: &str, lines: &str) -> Result<(), Error> {
        files::write(&self.key, format!("{recipe}\n{lines}").as_bytes())
            .map_err(error::io(&self.key))
    }
}

/// Tells whether a file, or all that is in a folder, was last written, and put in its place, before `time`. Another one may not be
/// the one that a step, started then, has read.
pub(crate) fn is_older(path: &Path, time: SystemTime) -> bool {
    let is_older = |path: &Path| {
        // A link that leads nowhere, as the lock of an editor, has times of its own.
        let Ok(data) = fs::metadata(path).or_else(|_| fs::symlink_metadata(path)) else {
            return false;
        };
        let is_placed = file_state::changed(&data).is_none_or(|changed| changed < time);
        let is_written = data.modified().is_ok_and(|modified| modified < time);
        is_placed && is_written && path_is_older(path, time, &mut BTreeSet::new())
    };
    is_older(path) && folder::below(path).is_ok_and(|all| all.iter().all(|path| is_older(path)))
}

/// Number of links in a path that Linux follows.
const LINKS: usize = 40;

/// Tells whether no link of a path, and no folder on it, was put in its place since `time`. A folder in which something was put
/// since has another time of its last write, too. `links` holds the links that were looked at.
fn path_is_older(path: &Path, time: SystemTime, links: &mut BTreeSet<PathBuf>) -> bool {
    let is_before = |found: Option<SystemTime>| found.is_none_or(|found| found < time);
    path.ancestors().all(|part| {
        let data = match fs::symlink_metadata(part) {
            Ok(data) => data,
            // A link may lead nowhere, and a name without a folder before it has an empty one.
            Err(error) => return error.kind() == io::ErrorKind::NotFound,
        };
        let is_placed = is_before(file_state::changed(&data));
        if data.is_dir() {
            return is_placed || !is_before(data.modified().ok());
        }
        if !data.is_symlink() || !links.insert(part.to_owned()) {
            return true;
        }
        let folder = part.parent().unwrap_or(Path::new(""));
        let target = fs::read_link(part).map(|target| folder.join(target));
        is_placed
            && links.len() <= LINKS
            && target.is_ok_and(|target| path_is_older(&target, time, links))
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    #[test]
    fn notices_what_is_put_in_the_place_of_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["old", "new"] {
            fs::create_dir_all(at(name)).unwrap();
            fs::write(at(name).join("k.h"), name).unwrap();
        }
        let switch = |link: &str, target: &str| {
            let _ = fs::remove_file(at(link));
            symlink(target, at(link)).unwrap();
        };
        switch("sdk", "current");
        switch("current", "old");
        let (linked, plain) = (at("sdk/k.h"), at("old/k.h"));
        let now = || {
            std::thread::sleep(Duration::from_millis(50));
            let now = SystemTime::now();
            std::thread::sleep(Duration::from_millis(50));
            now
        };
        let time = now();
        // What comes beside a file is no reason.
        fs::write(at("old/other.h"), "").unwrap();
        assert!(is_older(&linked, time) && is_older(&plain, time));
        switch("current", "new");
        assert!(!is_older(&linked, time) && is_older(&plain, time));

        let time = now();
        assert!(is_older(&linked, time) && is_older(&plain, time));
        fs::rename(at("old"), at("older")).unwrap();
        fs::rename(at("new"), at("old")).unwrap();
        assert!(!is_older(&plain, time));

        // Each of many links is looked at once.
        let mut path = at("");
        for number in 0..12 {
            let folder = format!("{number}");
            fs::create_dir(path.join(&folder)).unwrap();
            symlink(folder, path.join("l")).unwrap();
            path.push("l");
        }
        fs::write(path.join("k.h"), "").unwrap();
        assert!(is_older(&path.join("k.h"), now()));
    }
}
