//! Files that flags name: they are inputs of the compiles, and no dependency file lists them.

use crate::declare::module::flags::Flags;
use crate::declare::module::target::Target;
use crate::declare::option_files::words;
use crate::files;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Size in bytes of the largest file that is read for the names of others, as files of options have them.
const LARGEST: u64 = 64 << 10;

/// Returns the files that flags name, such as `@options` and the library of `-mlink-builtin-bitcode`: those of the module and of its
/// targets, and those that files of options name in turn. Paths are relative to `root`.
pub(super) fn named_files(own: &Flags, targets: &[Target], root: &Path) -> Vec<PathBuf> {
    let of_targets = targets.iter().map(|target| &target.own);
    let all = std::iter::once(own).chain(of_targets);
    let flags = all.flat_map(|own| &own.flags);
    let mut paths: Vec<PathBuf> = flags.filter_map(|flag| named(flag, &[root])).collect();
    // One file may be named in many ways.
    let mut seen = BTreeSet::new();
    let mut is_new =
        |path: &PathBuf| seen.insert(files::real_path(path).unwrap_or_else(|| path.clone()));
    paths.retain(&mut is_new);
    let mut next = 0;
    while let Some(path) = paths.get(next) {
        // clang looks for a file that another one names in either folder.
        let folders = [root, path.parent().unwrap_or(root)];
        let options = words(&options(path));
        let more = options.iter();
        let more = more.filter_map(|option| named(option, &folders));
        let more: Vec<PathBuf> = more.filter(&mut is_new).collect();
        paths.extend(more);
        next += 1;
    }
    paths.sort();
    paths
}

/// Returns the file that an option names.
fn named(option: &str, folders: &[&Path]) -> Option<PathBuf> {
    let name = option.strip_prefix('@').unwrap_or(option);
    let name = name.rsplit_once('=').map_or(name, |(_, value)| value);
    let paths = folders.iter().map(|folder| folder.join(name));
    paths.into_iter().find(|path| path.is_file())
}

/// Returns the text of a file that may be one of options.
fn options(path: &Path) -> String {
    let is_small = fs::metadata(path).is_ok_and(|file| file.len() <= LARGEST);
    let text = is_small.then(|| fs::read_to_string(path).ok());
    text.flatten().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_files_of_options_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("d")).unwrap();
        for (name, text) in [
            ("outer.rsp", "-DA=1 @d/inner.rsp"),
            (
                "d/inner.rsp",
                "@../d/inner.rsp @beside.rsp --config=outer.rsp -include x.h @none",
            ),
            (
                "d/beside.rsp",
                "-include\n\"quoted.h\" -L'a b'/lib -include 'in \\'one.h' in\\ two.h \"@@in three\"",
            ),
            ("quoted.h", ""),
            ("in 'one.h", ""),
            ("in two.h", ""),
            ("@in three", ""),
            ("x.h", "@d/unread.rsp"),
            ("other", ""),
        ] {
            fs::write(root.join(name), text).unwrap();
        }
        let own = Flags {
            flags: vec!["@outer.rsp".to_owned(), "-O3".to_owned()],
            ..Flags::default()
        };
        let names = [
            "@in three",
            "d/beside.rsp",
            "d/inner.rsp",
            "in 'one.h",
            "in two.h",
            "outer.rsp",
            "quoted.h",
            "x.h",
        ];
        assert_eq!(
            named_files(&own, &[], &root),
            names.map(|name| root.join(name))
        );
    }
}
