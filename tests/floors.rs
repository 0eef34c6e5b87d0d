//! The floors of `offload-formats` and `offload-build`: a module uses only those that come before it.
//!
//! Files, variables and processes are for the upper floors; `std::env::var` is for one file.

#![allow(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::fs;
use std::path::{Path, PathBuf};

/// Modules of the crate by floor. What is not listed is above all of these.
const FLOORS: [&[&str]; 6] = [
    &["escape", "names"],
    &["format"],
    &["container"],
    &["registration"],
    &["toolchain"],
    &["link"],
];

/// Words that the lowest floors, strings and bytes, do not use.
const WORLD: [&str; 3] = ["std::fs", "std::env", "std::process"];
const PURE: usize = 4;

fn floor(module: &str) -> usize {
    FLOORS
        .iter()
        .position(|modules| modules.contains(&module))
        .unwrap_or(FLOORS.len())
}

/// What is wrong with a source file: one line for each.
fn check(path: &Path, source: &str) -> Vec<String> {
    let first = path
        .iter()
        .next()
        .and_then(|part| part.to_str())
        .unwrap_or_default();
    let own = floor(first.trim_end_matches(".rs"));
    let mut problems = Vec::new();
    let mut problem = |number: usize, text: String| {
        problems.push(format!("{}:{}: {text}", path.display(), number + 1));
    };
    // Nothing in the crate uses its front page.
    let is_front = path == Path::new("lib.rs");
    for (number, line) in code(source).lines().enumerate() {
        for used in crate_paths(line) {
            // Above the floors anything goes.
            if !is_front && own < FLOORS.len() && floor(used) > own {
                problem(
                    number,
                    format!("`{first}` uses `crate::{used}` of a later floor"),
                );
            }
        }
        let world = WORLD.iter().find(|word| uses(line, word));
        if let Some(word) = world.filter(|_| own < PURE) {
            problem(number, format!("`{word}` on a floor of strings and bytes"));
        }
        if uses(line, "env::var") && path != Path::new("environment.rs") {
            problem(number, "`env::var` outside of environment.rs".to_owned());
        }
    }
    problems
}

/// The source without comments and without the tests at the end of a file.
fn code(source: &str) -> String {
    let source = source
        .split("\n#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    let line = |line: &str| line.split("//").next().unwrap_or_default().to_owned() + "\n";
    source.lines().map(line).collect()
}

/// `a` and `b` of `use crate::{a::x, b}` and of `crate::a::x`.
fn crate_paths(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for rest in line.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            Some(list) => found.extend(list.split(',').map(|part| ident(part.trim_start()))),
            None => found.push(ident(rest)),
        }
    }
    found.retain(|name| !name.is_empty());
    found
}

fn ident(text: &str) -> &str {
    let end = text.find(|char: char| !char.is_alphanumeric() && char != '_');
    &text[..end.unwrap_or(text.len())]
}

/// Whether `line` has `path`, also as a part of `use std::{env, fs}`.
fn uses(line: &str, path: &str) -> bool {
    let whole = |found: usize| {
        let after = line[found + path.len()..].chars().next();
        !after.is_some_and(|char| char.is_alphanumeric() && path != "env::var")
    };
    let in_list = path.split_once("::").is_some_and(|(root, name)| {
        let list = line.split_once(&format!("{root}::{{"));
        list.is_some_and(|(_, list)| list.split(',').any(|part| ident(part.trim_start()) == name))
    });
    line.find(path).is_some_and(whole) || in_list
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs")
            // Like the tests at the end of a file.
            && !path.ends_with("tests.rs")
        {
            files.push(path);
        }
    }
    files.sort();
    files
}

#[test]
fn uses_only_earlier_floors() {
    let mut problems = Vec::new();
    for name in ["offload-formats", "offload-build"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join(name)
            .join("src");
        let files = sources(&root);
        assert!(files.len() > 20, "found {} sources", files.len());
        for file in files {
            let path = file.strip_prefix(&root).unwrap();
            problems.extend(check(path, &fs::read_to_string(&file).unwrap()));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn finds_what_is_wrong() {
    let check = |path: &str, source: &str| check(Path::new(path), source).join("; ");
    assert_eq!(
        check(
            "format/magic.rs",
            "use crate::names::Triple;\nuse crate::container::elf::Elf;\n"
        ),
        "format/magic.rs:2: `format` uses `crate::container` of a later floor"
    );
    assert_eq!(
        check("names/kind.rs", "fn f() { crate::error::Error::new() }"),
        "names/kind.rs:1: `names` uses `crate::error` of a later floor"
    );
    assert_eq!(
        check("container/elf.rs", "use crate::{format::bytes, link};"),
        "container/elf.rs:1: `container` uses `crate::link` of a later floor"
    );
    assert_eq!(
        check("container/elf/write.rs", "use std::fs::File;"),
        "container/elf/write.rs:1: `std::fs` on a floor of strings and bytes"
    );
    assert_eq!(
        check("format/bytes.rs", "use std::{fmt, process};"),
        "format/bytes.rs:1: `std::process` on a floor of strings and bytes"
    );
    assert_eq!(
        check("builder.rs", "let x = std::env::var_os(\"X\");"),
        "builder.rs:1: `env::var` outside of environment.rs"
    );
}

#[test]
fn accepts_what_is_right() {
    for (path, source) in [
        (
            "container/mod.rs",
            "use crate::format::magic::Magic;\nuse crate::names::Triple;",
        ),
        ("link/mod.rs", "use crate::toolchain::Command;"),
        (
            "builder.rs",
            "use crate::error::Error;\nuse std::fs;\nuse crate::link::LinkJob;",
        ),
        ("environment.rs", "std::env::var_os(name)"),
        (
            "format/magic.rs",
            "// as crate::container does with std::fs\n",
        ),
        (
            "format/magic.rs",
            "x;\n#[cfg(test)]\nmod tests {\n    use crate::container::x;\n}\n",
        ),
    ] {
        assert_eq!(check(Path::new(path), source), Vec::<String>::new());
    }
}
