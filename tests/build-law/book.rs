//! Pages of the book show files of this repository, and say what their console blocks need.
//!
//! `<!-- templates/rust-hip/build.rs -->` before a code block says that the block is that file. `{{project-name}}` of templates is
//! `my-kernels` on pages. `UPDATE_GOLDENS=1` writes the blocks.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders whose files pages show.
const SHOWN: [&str; 3] = ["templates/", "examples/", "docs/"];

#[test]
fn shows_files_as_they_are() {
    let (mut shown, mut different) = (0, Vec::new());
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        let expected = with_files(&page, &mut shown);
        if expected == page {
            continue;
        }
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            fs::write(&path, expected).unwrap();
        } else {
            different.push(path);
        }
    }
    assert!(
        different.is_empty(),
        "UPDATE_GOLDENS=1 writes {different:?}"
    );
    assert!(shown > 20, "{shown} files are shown");
}

/// What a console block needs, after `console,`.
const NEEDS: [(&str, &str); 4] = [
    ("built", "a long build, which another test runs"),
    ("gpu", "a GPU, or another machine"),
    ("install", "a registry, or rights to install packages"),
    ("sample", "files that are not in this repository"),
];

/// Blocks without a word are run by `tests/link-cargo/console_blocks.rs`, those of `docs/spec` by `tests/build-law/measured.rs`.
#[test]
fn marks_console_blocks_that_are_not_run() {
    let mut counts = vec![("run", 0)];
    counts.extend(NEEDS.map(|(word, _)| (word, 0)));
    for path in pages() {
        for line in fs::read_to_string(&path).unwrap().lines() {
            let Some(word) = line.strip_prefix("```console") else {
                // A command with its output is a console block.
                assert!(!line.starts_with("    $ "), "{}: {line}", path.display());
                continue;
            };
            let word = word.strip_prefix(',').unwrap_or("run");
            let row = counts.iter_mut().find(|(name, _)| *name == word);
            let row = row.unwrap_or_else(|| panic!("{}: {line}: {NEEDS:?}", path.display()));
            row.1 += 1;
        }
    }
    println!("console blocks: {counts:?}");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn pages() -> Vec<PathBuf> {
    let folder = |name: &str| fs::read_dir(root().join(name)).unwrap();
    let files = folder("docs").chain(folder("docs/spec"));
    let files = files.map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.sort();
    pages
}

/// Returns the page with the files that its marked blocks show.
fn with_files(page: &str, shown: &mut usize) -> String {
    let mut expected = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        expected.push_str(line);
        expected.push('\n');
        let path = line
            .strip_prefix("<!-- ")
            .and_then(|rest| rest.strip_suffix(" -->"));
        let Some(path) = path.filter(|path| SHOWN.iter().any(|folder| path.starts_with(folder)))
        else {
            continue;
        };
        let fence = lines.next().unwrap_or_default();
        assert!(fence.starts_with("```"), "{path}: no block follows");
        let file = fs::read_to_string(root().join(path));
        let file = file.unwrap_or_else(|problem| panic!("{path}: {problem}"));
        let file = file
            .replace("{{project-name}}", "my-kernels")
            .replace("{{crate_name}}", "my_kernels");
        expected.push_str(&format!("{fence}\n{}\n```\n", file.trim_end()));
        *shown += 1;
        lines.by_ref().find(|line| *line == "```");
    }
    expected
}
