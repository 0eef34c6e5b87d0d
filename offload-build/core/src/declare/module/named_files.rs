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
/// targets, of `variables` with flags, and those that files of options name in turn. Paths are relative to `root`.
pub(super) fn named_files(
    own: &Flags,
    targets: &[Target],
    variables: &[String],
    root: &Path,
) -> Vec<PathBuf> {
    let of_targets = targets.iter().map(|target| &target.own);
    let all = std::iter::once(own).chain(of_targets);
    let flags = all.flat_map(|own| own.flags.iter().cloned());
    let of_variables = variables.iter().flat_map(|value| words(value));
    let flags = flags.chain(of_variables);
    let mut paths: Vec<PathBuf> = flags.flat_map(|flag| named(&flag, &[root])).collect();
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
        let more = more.flat_map(|option| named(option, &folders));
        let more: Vec<PathBuf> = more.filter(&mut is_new).collect();
        paths.extend(more);
        next += 1;
    }
    paths.sort();
    paths
}

/// Returns the files that an option names: its value, the elements of a list, behind `@`, and behind the `+` or `^` that adds an
/// option in CCC_OVERRIDE_OPTIONS.
fn named(option: &str, folders: &[&Path]) -> Vec<PathBuf> {
    let value = option.split_once('=').map(|(_, value)| value);
    let elements = option.split(['=', ',']);
    let names = std::iter::once(option).chain(value).chain(elements);
    let names = names.flat_map(|name| [name.strip_prefix(['@', '+', '^']), Some(name)]);
    let files = names.flatten().filter_map(|name| {
        let mut paths = folders.iter().map(|folder| folder.join(name));
        paths.find(|path| path.is_file())
    });
    files.collect()
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
            named_files(&own, &[], &[], &root),
            names.map(|name| root.join(name))
        );
    }

    #[test]
    fn takes_files_from_lists_and_variables() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["a", "b", "c", "d", "e", "f=g,h"] {
            fs::write(root.join(name), "").unwrap();
        }
        let found = |flags: &[&str], variables: &[&str]| {
            let own = Flags {
                flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
                ..Flags::default()
            };
            let variables: Vec<String> =
                variables.iter().map(|value| (*value).to_owned()).collect();
            let found = named_files(&own, &[], &variables, &root).into_iter();
            let names = found.map(|path| path.strip_prefix(&root).unwrap().display().to_string());
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(found(&["-optf", "a,b"], &[]), "a b");
        assert_eq!(found(&["-optf=a,b", "-Xcompiler=@c,-DX=1"], &[]), "a b c");
        assert_eq!(found(&["-Xcompiler", "-DX=1,@d"], &[]), "d");
        assert_eq!(found(&["-include=f=g,h"], &[]), "f=g,h");
        assert_eq!(
            found(&[], &["-DX=1 -optf a", "+--config=b @c ^d /e"]),
            "a b c d"
        );
    }
}
