//! Where the host link finds what `-l` names.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::arguments::{Arguments, Position};

/// Folders searched without being named, by the linker that a driver runs.
const DEFAULT_DIRS: &[&str] = &["/usr/local/lib", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// The folders of the command line, then those that a driver adds.
pub(super) struct Search {
    dirs: Vec<PathBuf>,
}

impl Search {
    pub(super) fn new(arguments: &Arguments) -> Self {
        let root = arguments.sysroot.as_deref().unwrap_or(OsStr::new(""));
        let mut dirs: Vec<PathBuf> = arguments
            .library_dirs
            .iter()
            .map(|dir| match dir.as_bytes().strip_prefix(b"=") {
                Some(rest) => {
                    let mut path = root.to_owned();
                    path.push(OsStr::from_bytes(rest));
                    path.into()
                }
                None => dir.into(),
            })
            .collect();
        if arguments.position == Position::Driver {
            if let Some(list) = std::env::var_os("LIBRARY_PATH") {
                dirs.extend(std::env::split_paths(&list));
            }
            dirs.extend(DEFAULT_DIRS.iter().map(|dir| {
                let mut path = root.to_owned();
                path.push(dir);
                PathBuf::from(path)
            }));
        }
        Self { dirs }
    }

    /// The file that `-l<name>` stands for, open. That there is none is the linker's to say.
    pub(super) fn find(&self, name: &OsStr, only_static: bool) -> Option<(PathBuf, File)> {
        let names: Vec<OsString> = match name.as_bytes().strip_prefix(b":") {
            Some(exact) => vec![OsStr::from_bytes(exact).to_owned()],
            None => [".so", ".a"]
                .into_iter()
                .skip(usize::from(only_static))
                .map(|extension| {
                    let mut file = OsString::from("lib");
                    file.push(name);
                    file.push(extension);
                    file
                })
                .collect(),
        };
        self.dirs.iter().find_map(|dir| {
            names.iter().find_map(|name| {
                let path = dir.join(Path::new(name));
                let file = File::open(&path).ok()?;
                Some((path, file))
            })
        })
    }
}
