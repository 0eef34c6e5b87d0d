//! The first line of a doc comment starts with a verb or a noun, not with a fragment ("Of the image", "Whether it is linked").

use std::fmt::Write as _;

use crate::floors::{CRATES, source_folder, sources};

/// Words that start a fragment.
const FRAGMENTS: [&str; 6] = ["Of", "As", "What", "Whether", "Where", "In"];

/// Returns the first lines of doc comments in `text` that start with a fragment, with their line numbers.
fn fragments(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut was_doc = false;
    for (number, line) in (1..).zip(text.lines().map(str::trim_start)) {
        let content = line.strip_prefix("/// ").or(line.strip_prefix("//! "));
        if let Some(content) = content.filter(|_| !was_doc) {
            let word = content.split([' ', ':', ',']).next().unwrap();
            if FRAGMENTS.contains(&word) {
                found.push((number, content));
            }
        }
        was_doc = line.starts_with("///") || line.starts_with("//!");
    }
    found
}

#[test]
fn summaries_start_with_a_verb_or_a_noun() {
    let mut problems = String::new();
    for name in CRATES {
        for (module, text) in sources(&source_folder(name)) {
            for (line, content) in fragments(&text) {
                writeln!(problems, "{name}/{}:{line}: {content}", module.join("/")).unwrap();
            }
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

#[test]
fn finds_fragments() {
    let text = "//! Whether it is.\n//! In the second line.\n\nuse x;\n    /// What it has.\n    fn f() {}\n/// Inputs.\n";
    assert_eq!(
        fragments(text),
        [(1, "Whether it is."), (5, "What it has.")]
    );
}
