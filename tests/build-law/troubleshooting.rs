//! Each error text in `docs/troubleshooting.md` is one of the sources, and each code has a section, a source and a test.
//!
//! Each line of a block of the page is a text with `…` for values. The sources have `{…}` there. A code is a part of the text.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const FOLDERS: [&str; 5] = [
    "offload-formats/core/src",
    "offload-formats/src",
    "offload-build/core/src",
    "offload-build/src",
    "offload-link/src",
];

#[test]
fn quotes_texts_of_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = fs::read_to_string(root.join("docs/troubleshooting.md")).unwrap();
    let mut sources = String::new();
    for folder in FOLDERS {
        read(&root.join(folder), &mut sources);
    }
    let texts = texts(&page);
    assert!(texts.len() > 20, "{texts:?}");
    let unknown: Vec<&&str> = texts.iter().filter(|text| !has(&sources, text)).collect();
    assert!(
        unknown.is_empty(),
        "no source has these texts of docs/troubleshooting.md: {unknown:#?}"
    );
}

#[test]
fn finds_texts_with_their_values() {
    let mut sources = normalized("\"`{program}` not \\\n   found: {}\\nhint: \\\"x\\\"\"");
    sources.push('\n');
    assert!(has(&sources, "`…` not found: …"));
    assert!(has(&sources, "hint: \"x\""));
    assert!(!has(&sources, "`…` was not found"));
    assert_eq!(texts("```text\na\nb\n```\n```sh\nc\n```\n"), ["a", "b"]);
}

/// Errors that the host linker prints: their sections have a code that nothing prints.
const OF_HOST_LINKER: [&str; 2] = ["OFF801", "OFF802"];

#[test]
fn pairs_codes_with_sections_sources_and_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = fs::read_to_string(root.join("docs/troubleshooting.md")).unwrap();
    let mut sections = BTreeSet::new();
    for section in page.split("\n### OFF").skip(1) {
        let code = format!("OFF{}", &section[..3]);
        let text = section.split("\n#").next().unwrap();
        let printed = printed(&texts(text).join("\n"));
        if !OF_HOST_LINKER.contains(&&*code) {
            assert_eq!(printed, BTreeSet::from([code.clone()]), "{text}");
            sections.insert(code);
        }
    }
    assert!(sections.len() > 20, "{sections:?}");
    let mut sources = String::new();
    for folder in FOLDERS {
        read(&root.join(folder), &mut sources);
    }
    assert_eq!(
        printed(&sources),
        sections,
        "codes of the sources, and of the page"
    );
    // Tests that start a failing build or link; those of this folder read files only, and `support` has no tests.
    let mut tests = fs::read_to_string(root.join(".ci/package")).unwrap();
    for folder in fs::read_dir(root.join("tests")).unwrap() {
        let folder = folder.unwrap().path();
        let has_none = ["build-law", "golden", "support"];
        if folder.is_dir() && !has_none.iter().any(|name| folder.ends_with(name)) {
            read(&folder, &mut tests);
        }
    }
    assert_eq!(
        printed(&tests),
        sections,
        "codes of the tests, and of the page"
    );
}

/// Returns the codes that a text has in brackets, as errors print them.
fn printed(text: &str) -> BTreeSet<String> {
    let codes = text.split("[OFF").skip(1).filter_map(|rest| {
        let (number, _) = rest.split_once(']')?;
        number.parse::<u16>().ok().map(|_| format!("OFF{number}"))
    });
    codes.collect()
}

fn read(folder: &Path, sources: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            // Tests quote errors as well.
            let code = text.split("#[cfg(test)]").next().unwrap();
            if path.file_stem().is_some_and(|stem| stem != "tests") {
                sources.push_str(&normalized(code));
                sources.push('\n');
            }
        }
    }
}

/// Returns a source with `…` for each value of its texts, and texts of several lines in one.
fn normalized(source: &str) -> String {
    let mut text = String::new();
    let mut rest = source;
    while let Some((before, after)) = rest.split_once("\\\n") {
        text.push_str(before);
        rest = after.trim_start();
    }
    text.push_str(rest);
    let text = text.replace("\\\"", "\"").replace("\\n", "\n");
    let mut shown = String::new();
    let mut rest = text.as_str();
    while let Some(start) = rest.find('{') {
        let name = &rest[start + 1..];
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && !"_:#?".contains(c));
        shown.push_str(&rest[..start]);
        match end {
            Some(end) if name[end..].starts_with('}') => {
                shown.push('…');
                rest = &name[end + 1..];
            }
            _ => {
                shown.push('{');
                rest = name;
            }
        }
    }
    shown.push_str(rest);
    shown
}

/// Tells whether the sources have the text, or have its parts between values in places of their own.
fn has(sources: &str, text: &str) -> bool {
    let text = text.trim_matches(['…', ' ']);
    let parts = || {
        text.split('…')
            .map(|part| part.trim_matches([' ', '`', ',', ';', ':', '?']))
    };
    // A part as short as `(LLVM` tells nothing by itself.
    let is_told = parts().any(|part| part.len() > 10);
    sources.contains(text) || is_told && parts().all(|part| sources.contains(part))
}

/// Returns the lines of the blocks of a page.
fn texts(page: &str) -> Vec<&str> {
    let blocks = page.split("```text\n").skip(1);
    blocks
        .flat_map(|block| block.split("```").next().unwrap_or_default().lines())
        .collect()
}
