//! Variables that a Cargo which a task started has read, as far as it and its compilers say.

use crate::steps::task::cargo_lists::CargoLists;
use std::collections::BTreeSet;
use std::path::Path;

/// Line of rustc's list of dependencies: `# env-dep:NAME=VALUE`, without a value if the variable was not set.
const OF_CRATE: &str = "# env-dep:";

/// Returns the names of variables that crates and build scripts in Cargo's folder `folder` read, but for those that Cargo sets
/// for each crate.
pub(crate) fn names(folder: &Path) -> BTreeSet<String> {
    let lists = CargoLists::of(folder);
    let lines = lists.crates.iter().flat_map(|text| text.lines());
    let of_crates = lines.filter_map(|line| line.strip_prefix(OF_CRATE));
    let of_crates = of_crates.map(|line| line.split_once('=').map_or(line, |(name, _)| name));
    let names = of_crates.chain(lists.said("rerun-if-env-changed"));
    let is_own = |name: &&str| name.starts_with("CARGO") || *name == "OUT_DIR";
    names
        .filter(|name| !is_own(name))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
