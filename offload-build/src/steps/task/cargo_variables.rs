//! Variables that a Cargo which a task started has read, as far as it and its compilers say.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Line of rustc's list of dependencies: `# env-dep:NAME=VALUE`, without a value if the variable was not set.
const OF_CRATE: &str = "# env-dep:";

/// Lines of a build script.
const OF_SCRIPT: [&str; 2] = [
    "cargo:rerun-if-env-changed=",
    "cargo::rerun-if-env-changed=",
];

/// Returns the names of variables that crates and build scripts in Cargo's folder `folder` read, but for those that Cargo sets
/// for each crate.
pub(crate) fn names(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for profile in profiles(folder) {
        for list in entries(&profile.join("deps")) {
            if list.extension().is_some_and(|end| end == "d") {
                let text = fs::read_to_string(&list).unwrap_or_default();
                let named = text.lines().filter_map(|line| line.strip_prefix(OF_CRATE));
                names.extend(named.map(|line| {
                    let (name, _) = line.split_once('=').unwrap_or((line, ""));
                    name.to_owned()
                }));
            }
        }
        for script in entries(&profile.join("build")) {
            let text = fs::read_to_string(script.join("output")).unwrap_or_default();
            let named = text
                .lines()
                .filter_map(|line| OF_SCRIPT.iter().find_map(|start| line.strip_prefix(start)));
            names.extend(named.map(|name| name.trim().to_owned()));
        }
    }
    names.retain(|name| !name.starts_with("CARGO") && name != "OUT_DIR");
    names
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
