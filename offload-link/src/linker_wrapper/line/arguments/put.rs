//! Replaces or removes an input on the host's command line.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::{Arguments, Edit, Item, Position};
use crate::platform;

/// Options for a library, joined with the name or followed by it.
const LETTERS: [&[u8]; 3] = [b"-l", b"--library", b"-library"];

impl Arguments {
    /// Replaces an item by a file, or removes it. Returns false if that is impossible because no argument, and no
    /// part of one between commas, names only this item.
    #[must_use]
    pub(crate) fn put(&mut self, item: usize, file: Option<&Path>) -> bool {
        let (at, names) = match self.items.get(item) {
            Some(Item::File { token, path, .. }) => {
                (*token, vec![path.as_os_str().as_encoded_bytes().to_vec()])
            }
            Some(Item::Library { token, name, .. }) => {
                let name = name.as_encoded_bytes();
                let names: [&[&[u8]]; 4] = [
                    &[name],
                    &[b"-l", name],
                    &[b"--library=", name],
                    &[b"-library=", name],
                ];
                (*token, names.iter().map(|parts| parts.concat()).collect())
            }
            _ => return false,
        };
        let is_named = |text: &[u8]| names.iter().any(|name| name == text);
        let current = self.text(at).as_encoded_bytes();
        let file = file.map(|file| file.as_os_str().to_owned());
        if is_named(current) {
            self.alone(at, file);
            return true;
        }
        let list = current.strip_prefix(b"-Wl,");
        let list = list.filter(|_| self.position == Position::Driver);
        let Some(edit) = list.and_then(|list| in_list(list, is_named, file.as_deref())) else {
            return false;
        };
        if let Some(token) = self.tokens.get_mut(at) {
            token.edit = edit;
        }
        true
    }

    /// Returns an argument as the host linker gets it.
    fn text(&self, at: usize) -> &OsStr {
        let token = self.tokens.get(at);
        token.map_or(OsStr::new(""), |token| match &token.edit {
            Edit::Replace(text) => text,
            Edit::Keep | Edit::Drop => &token.text,
        })
    }

    /// Edits an argument that consists of the name.
    fn alone(&mut self, at: usize, file: Option<OsString>) {
        let mut dropped = Vec::new();
        let before = |at: usize| at.checked_sub(1);
        let is_xlinker =
            |at: usize| self.position == Position::Driver && self.text(at) == "-Xlinker";
        let wrapped = before(at).filter(|at| is_xlinker(*at));
        // `-l name`, or `-Xlinker -l -Xlinker name`.
        let letter = wrapped.map_or(before(at), before);
        let letter = letter.filter(|at| LETTERS.contains(&self.text(*at).as_encoded_bytes()));
        dropped.extend(letter);
        dropped.extend(letter.and_then(before).filter(|at| is_xlinker(*at)));
        if file.is_none() {
            dropped.extend(wrapped);
        }
        for at in dropped {
            if let Some(token) = self.tokens.get_mut(at) {
                token.edit = Edit::Drop;
            }
        }
        if let Some(token) = self.tokens.get_mut(at) {
            token.edit = file.map_or(Edit::Drop, Edit::Replace);
        }
    }
}

/// Edits an argument that contains the name between commas.
fn in_list(list: &[u8], is_named: impl Fn(&[u8]) -> bool, file: Option<&OsStr>) -> Option<Edit> {
    let file = file.map(OsStr::as_encoded_bytes);
    if file.is_some_and(|file| file.contains(&b',')) {
        return None;
    }
    let mut parts: Vec<&[u8]> = list.split(|byte| *byte == b',').collect();
    let at = parts.iter().position(|part| is_named(part))?;
    let letter = at.checked_sub(1);
    let letter = letter.filter(|at| parts.get(*at).is_some_and(|part| LETTERS.contains(part)));
    parts.splice(letter.unwrap_or(at)..=at, file);
    if parts.is_empty() {
        return Some(Edit::Drop);
    }
    let text = [b"-Wl,", &parts.join(&b',')[..]].concat();
    Some(Edit::Replace(platform::os_string(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the command line without the input `name`, and with `new` instead of it.
    fn put(argv: &[&str], tool: &str, name: &str) -> [Option<Vec<String>>; 2] {
        [None, Some(Path::new("new"))].map(|file| {
            let argv = argv.iter().map(OsString::from).collect();
            let mut arguments = Arguments::parse(argv, tool).unwrap();
            let is_it = |item: &Item| match item {
                Item::File { path, .. } => path == Path::new(name),
                Item::Library { name: known, .. } => known == name,
                _ => false,
            };
            let item = arguments.items.iter().position(is_it).unwrap();
            let done = arguments.put(item, file);
            let line = arguments.render(&[], &[], |_| unreachable!()).unwrap();
            done.then(|| {
                line.iter()
                    .map(|arg| arg.to_str().unwrap().to_owned())
                    .collect()
            })
        })
    }

    #[test]
    fn changes_the_argument_that_names_an_input_and_no_other() {
        let line = |args: &[&str]| Some(args.iter().map(|arg| (*arg).to_owned()).collect());
        for (argv, name, without, with) in [
            (
                &["a.o", "b.bc"][..],
                "b.bc",
                &["a.o"][..],
                &["a.o", "new"][..],
            ),
            (&["-lfoo", "a.o"], "foo", &["a.o"], &["new", "a.o"]),
            (&["-l", "foo", "a.o"], "foo", &["a.o"], &["new", "a.o"]),
            (
                &["-Wl,--whole-archive,b.a,--no-whole-archive"],
                "b.a",
                &["-Wl,--whole-archive,--no-whole-archive"],
                &["-Wl,--whole-archive,new,--no-whole-archive"],
            ),
            (&["-Wl,-lfoo", "a.o"], "foo", &["a.o"], &["-Wl,new", "a.o"]),
            (
                &["-Xlinker", "b.bc", "a.o"],
                "b.bc",
                &["a.o"],
                &["-Xlinker", "new", "a.o"],
            ),
        ] {
            assert_eq!(
                put(argv, "offload-link", name),
                [line(without), line(with)],
                "{argv:?}"
            );
        }
        let expected = [line(&["a.o"]), line(&["new", "a.o"])];
        assert_eq!(
            put(&["--library=foo", "a.o"], "offload-ld", "foo"),
            expected
        );
    }
}
