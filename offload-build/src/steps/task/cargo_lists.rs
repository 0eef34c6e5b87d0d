//! Lists in the folder of a Cargo that a task started: what crates and build scripts read.
//!
//! Lists of crates are `<profile>/deps/*.d`, those of build scripts' own crates `<profile>/build/<package>-<hash>/*.d`, and what
//! scripts printed is `<profile>/build/<package>-<hash>/output`. In Cargo's other layout, `build-dir-new-layout`, they are `out/*.d` and
//! `run/stdout` in `<profile>/build/<package>/<hash>`.

use std::fs;
use std::path::{Path, PathBuf};

/// Texts of the lists.
#[derive(Debug, Default)]
pub(crate) struct CargoLists {
    /// Those that rustc wrote.
    pub(crate) crates: Vec<String>,
    /// Those that build scripts printed.
    pub(crate) scripts: Vec<String>,
}

impl CargoLists {
    /// Reads those in Cargo's folder.
    pub(crate) fn of(folder: &Path) -> Self {
        let mut lists = Self::default();
        for profile in profiles(folder) {
            lists.add_crates(&profile.join("deps"));
            for package in entries(&profile.join("build")) {
                lists.add_crates(&package);
                lists.add_script(&package.join("output"));
                for unit in entries(&package) {
                    lists.add_crates(&unit.join("out"));
                    lists.add_script(&unit.join("run/stdout"));
                }
            }
        }
        lists
    }

    fn add_crates(&mut self, folder: &Path) {
        let lists = entries(folder).into_iter();
        let lists = lists.filter(|path| path.extension().is_some_and(|end| end == "d"));
        let texts = lists.filter_map(|list| fs::read_to_string(list).ok());
        self.crates.extend(texts);
    }

    fn add_script(&mut self, printed: &Path) {
        self.scripts.extend(fs::read_to_string(printed));
    }

    /// Returns what scripts said by the lines `cargo::<name>=`.
    pub(crate) fn said<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let value = move |line: &'a str| {
            let line = line.strip_prefix("cargo:")?;
            let line = line.strip_prefix(':').unwrap_or(line);
            Some(line.strip_prefix(name)?.strip_prefix('=')?.trim())
        };
        let lines = self.scripts.iter().flat_map(|text| text.lines());
        lines.filter_map(value)
    }
}

/// Returns the folders of what Cargo made for the host and for a target.
fn profiles(folder: &Path) -> Vec<PathBuf> {
    let targets = entries(folder);
    let targets = std::iter::once(folder.to_owned()).chain(targets);
    targets.map(|target| target.join("release")).collect()
}

/// Returns what is in a folder; nothing if it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}
