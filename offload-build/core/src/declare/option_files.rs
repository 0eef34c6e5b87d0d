//! Files of options, which `@file` names in `flags`.

use crate::files;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Returns `flags` with the options of the files that `@file` names in the place of their names, each file once. Names are relative
/// to `root`, or to the file that has them. A file that cannot be read has no options.
pub fn expanded(flags: &[String], root: &Path) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut options = Vec::new();
    let with_root = |flag: &String| (flag.clone(), root.to_owned());
    // The last one is next.
    let mut left: Vec<_> = flags.iter().rev().map(with_root).collect();
    while let Some((option, folder)) = left.pop() {
        let Some(name) = option.strip_prefix('@') else {
            options.push(option);
            continue;
        };
        let paths = [root.join(name), folder.join(name)];
        let Some(path) = paths.into_iter().find(|path| path.is_file()) else {
            continue;
        };
        // A file may name itself, and in many ways.
        if !seen.insert(files::real_path(&path).unwrap_or_else(|| path.clone())) {
            continue;
        }
        let text = fs::read(&path).unwrap_or_default();
        let folder = path.parent().unwrap_or(root);
        let words = words(&String::from_utf8_lossy(&text)).into_iter().rev();
        left.extend(words.map(|word| (word, folder.to_owned())));
    }
    options
}

/// Divides the text of a file of options as GCC and clang do: at white space, but in quotes and after a backslash, which on
/// Windows is a part of paths.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match (char, quote) {
            ('\\', _) if !cfg!(windows) => word.get_or_insert_default().extend(chars.next()),
            ('"' | '\'', None) => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (_, Some(open)) if open == char => quote = None,
            (_, None) if char.is_ascii_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn puts_the_options_of_files_in_the_place_of_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join("d")).unwrap();
        for (name, text) in [
            ("outer", "-DA=1 @d/inner\n'-DB=x y' \"\""),
            ("d/inner", "@beside @../d/inner @none -DC=\\\"q\\\""),
            ("d/beside", "-I \"a b\""),
        ] {
            fs::write(root.join(name), text).unwrap();
        }
        let flags = ["-O1", "@outer", "-O2"].map(str::to_owned);
        let expected = [
            "-O1",
            "-DA=1",
            "-I",
            "a b",
            "-DC=\"q\"",
            "-DB=x y",
            "",
            "-O2",
        ];
        assert_eq!(expanded(&flags, root), expected);
    }
}
