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
///
/// Lists are `<profile>/deps/*.d`, and what scripts printed is `<profile>/build/<package>-<hash>/output`. In Cargo's other layout,
/// `build-dir-new-layout`, they are `out/*.d` and `run/stdout` in `<profile>/build/<package>/<hash>`.
pub(crate) fn names(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for profile in profiles(folder) {
        add_of_crates(&profile.join("deps"), &mut names);
        for package in entries(&profile.join("build")) {
            add_of_script(&package.join("output"), &mut names);
            for unit in entries(&package) {
                add_of_crates(&unit.join("out"), &mut names);
                add_of_script(&unit.join("run/stdout"), &mut names);
            }
        }
    }
    names.retain(|name| !name.starts_with("CARGO") && name != "OUT_DIR");
    names
}

/// Adds those of rustc's lists in a folder.
fn add_of_crates(folder: &Path, names: &mut BTreeSet<String>) {
    let lists = entries(folder).into_iter();
    for list in lists.filter(|path| path.extension().is_some_and(|end| end == "d")) {
        let text = fs::read_to_string(&list).unwrap_or_default();
        let named = text.lines().filter_map(|line| line.strip_prefix(OF_CRATE));
        names.extend(named.map(|line| {
            let (name, _) = line.split_once('=').unwrap_or((line, ""));
            name.to_owned()
        }));
    }
}

/// Adds those of the lines that a build script printed.
fn add_of_script(printed: &Path, names: &mut BTreeSet<String>) {
    let text = fs::read_to_string(printed).unwrap_or_default();
    let named = text
        .lines()
        .filter_map(|line| OF_SCRIPT.iter().find_map(|start| line.strip_prefix(start)));
    names.extend(named.map(|name| name.trim().to_owned()));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Files as Cargo 1.97 wrote them in both layouts.
    #[test]
    fn finds_variables_in_both_layouts_of_cargo() {
        let list =
            "a.rlib: src/lib.rs\n\nsrc/lib.rs:\n\n# env-dep:CARGO_PKG_NAME=a\n# env-dep:OF_CRATE\n";
        let printed = "cargo::rerun-if-env-changed=OF_SCRIPT\ncargo:rustc-cfg=x\n";
        for [crate_list, script] in [
            ["target/release/deps/a-01.d", "release/build/b-02/output"],
            [
                "target/release/build/a/01/out/a-01.d",
                "release/build/b/02/run/stdout",
            ],
        ] {
            let folder = tempfile::tempdir().unwrap();
            for (path, text) in [(crate_list, list), (script, printed)] {
                let path = folder.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            let names = names(folder.path());
            assert!(names.iter().eq(["OF_CRATE", "OF_SCRIPT"]), "{names:?}");
        }
    }
}
