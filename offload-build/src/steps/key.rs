//! Files beside an output: its key, by which a later build recognizes it, and warnings, which Cargo forgets when a build
//! script runs again.

use crate::steps::file_state;
use crate::steps::folder;
use offload_build_core::files;
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
        let beside = |extension: &str| {
            let mut name = output.as_os_str().to_owned();
            name.push(extension);
            PathBuf::from(name)
        };
        Self {
            key: beside(".key"),
            messages: beside(".messages"),
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
    pub(crate) fn keep_messages(&self, messages: &str) -> Result<(), (PathBuf, io::Error)> {
        match messages {
            "" => Ok(()),
            _ => files::write(&self.messages, messages.as_bytes())
                .map_err(|error| (self.messages.clone(), error)),
        }
    }

    /// Writes the key.
    pub(crate) fn write(&self, recipe: &str, lines: &str) -> Result<(), (PathBuf, io::Error)> {
        files::write(&self.key, format!("{recipe}\n{lines}").as_bytes())
            .map_err(|error| (self.key.clone(), error))
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
        is_placed && data.modified().is_ok_and(|modified| modified < time)
    };
    is_older(path) && folder::below(path).is_ok_and(|all| all.iter().all(|path| is_older(path)))
}
