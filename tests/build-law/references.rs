//! Every reference leads somewhere: links in Markdown, paths in comments and prose, sections of `docs/spec`, names of tests in tables.
//!
//! | reference | where | what must exist |
//! |---|---|---|
//! | `[text](path#heading)` | Markdown | the file, and a heading with that anchor |
//! | a page of `docs`, and an entry of `docs/SUMMARY.md` | `docs` | the entry, and the page |
//! | a path that starts with a folder of this repository | Markdown, comments | a file or folder; with `*`, at least one |
//! | a section after the path of its page, such as `docs/spec/bundler.md` §1.2 | Markdown, comments | a heading with that number |
//! | `name.rs`, `folder/name`, `folder/` | tables and text of `docs/architecture.md` and `docs/differences.md` | a path that ends so |
//! | `a_name_of_several_words` | tables of `docs/differences.md` | a function of that name |

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Folders of this repository whose paths are checked wherever they are cited.
const FOLDERS: [&str; 10] = [
    "docs/",
    "tests/",
    "benches/",
    "examples/",
    "templates/",
    "fuzz/",
    ".ci/",
    "offload-formats/",
    "offload-build/",
    "offload-link/",
];

/// Paths that commands make, or that a user's package has.
const MADE: [&str; 3] = ["fuzz/corpus", "fuzz/findings", "fuzz/target"];

/// Pages whose file names are relative to some source folder.
const PAGES_OF_SOURCES: [&str; 2] = ["docs/architecture.md", "docs/differences.md"];

#[test]
fn every_reference_leads_somewhere() {
    let broken = Tree::read().broken();
    assert!(
        broken.is_empty(),
        "{} references lead nowhere:\n{}",
        broken.len(),
        broken.join("\n")
    );
}

#[test]
fn lists_every_page_in_the_books_summary() {
    let problems = Tree::read().summary_problems();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn tells_pages_that_the_summary_lacks_or_repeats() {
    let summary = "# Summary\n- [A](a.md)\n- [A](a.md)\n- [B](b.md#two)\n";
    let pages = [
        ("docs/SUMMARY.md", summary),
        ("docs/a.md", ""),
        ("docs/spec/c.md", ""),
    ];
    assert_eq!(
        Tree::of(pages).summary_problems(),
        [
            "docs/SUMMARY.md: `docs/a.md` is there twice",
            "docs/SUMMARY.md: `docs/b.md#two` is not a page",
            "docs/SUMMARY.md: no entry for `docs/spec/c.md`",
        ]
    );
}

#[test]
fn tells_each_kind_of_broken_reference() {
    let page = "# Page\n## 1. One\n[a](other.md) [b](#two) [c](#1-one) docs/none.md\n```\ndocs/code.md\n```\n";
    let rows =
        "`rooms/none.rs` `page.md`\n| what | `no_such_test` |\n| what | `has_a_test_here` |\n";
    let source =
        "/\u{2f} `docs/spec/page.md` §1, §1.2; docs/spec/page.md#one\nfn has_a_test_here() {}\n";
    let tree = Tree::of([
        ("docs/spec/page.md", page),
        ("docs/differences.md", rows),
        ("offload-build/src/lib.rs", source),
    ]);
    assert_eq!(
        tree.broken(),
        [
            "docs/differences.md:1: no path ends in `rooms/none.rs`",
            "docs/differences.md:2: no function `no_such_test`",
            "docs/spec/page.md:3: `docs/none.md` does not exist",
            "docs/spec/page.md:3: link to `other.md`: `docs/spec/other.md` does not exist",
            "docs/spec/page.md:3: link to `#two`: `docs/spec/page.md` has no such heading",
            "offload-build/src/lib.rs:1: `docs/spec/page.md` has no heading `#one`",
            "offload-build/src/lib.rs:1: `docs/spec/page.md` has no §1.2",
        ]
    );
}

/// The files of the repository, as git lists them.
struct Tree {
    /// Files and their folders, relative to the root.
    paths: BTreeSet<String>,
    /// Files that are text.
    texts: BTreeMap<String, String>,
    functions: BTreeSet<String>,
}

impl Tree {
    fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let list = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others"])
            .arg("--exclude-standard")
            .current_dir(root)
            .output()
            .unwrap();
        assert!(list.status.success(), "git ls-files: {}", list.status);
        let list = String::from_utf8(list.stdout).unwrap();
        let mut files = Vec::new();
        for path in list.split_terminator('\0') {
            let file = root.join(path);
            // A file that is listed and deleted is not there. The text of a link is that of another file.
            match fs::symlink_metadata(&file) {
                Ok(data) if data.is_symlink() => files.push((path, Vec::new())),
                Ok(_) => files.push((path, fs::read(&file).unwrap())),
                Err(_) => {}
            }
        }
        let tree = Self::of(files);
        assert!(tree.texts.contains_key("docs/architecture.md"));
        tree
    }

    fn of<'a>(files: impl IntoIterator<Item = (&'a str, impl Into<Vec<u8>>)>) -> Self {
        let mut paths = BTreeSet::new();
        let mut texts = BTreeMap::new();
        for (path, bytes) in files {
            paths.insert(path.to_owned());
            let folders = path.match_indices('/').map(|(end, _)| &path[..end]);
            paths.extend(folders.map(str::to_owned));
            if let Ok(text) = String::from_utf8(bytes.into()) {
                texts.insert(path.to_owned(), text);
            }
        }
        let functions = texts
            .iter()
            .filter(|(path, _)| path.ends_with(".rs"))
            .flat_map(|(_, text)| text.split("fn ").skip(1))
            .map(|rest| rest.chars().take_while(|&c| is_word(c)).collect())
            .collect();
        Self {
            paths,
            texts,
            functions,
        }
    }

    /// Every reference of every text that leads nowhere, with its place.
    fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for (path, text) in &self.texts {
            let lines = if path.ends_with(".md") {
                prose(text)
            } else {
                comments(path, text)
            };
            for (number, line) in &lines {
                let mut problems = self.broken_paths(line);
                problems.extend(self.broken_sections(path, line, *number, &lines));
                if path.ends_with(".md") {
                    problems.extend(self.broken_links(path, line));
                }
                if PAGES_OF_SOURCES.contains(&path.as_str()) {
                    problems.extend(self.broken_names(path, line));
                }
                if path == "docs/differences.md" && line.starts_with('|') {
                    problems.extend(self.broken_functions(line));
                }
                let place = |problem| format!("{path}:{number}: {problem}");
                broken.extend(problems.into_iter().map(place));
            }
        }
        broken
    }

    /// Paths of the repository's folders that do not exist.
    fn broken_paths(&self, line: &str) -> Vec<String> {
        let mut broken = Vec::new();
        for folder in FOLDERS {
            for (start, _) in line.match_indices(folder) {
                let before = line[..start].chars().next_back();
                if before.is_some_and(|c| is_word(c) || "/.-:$}>".contains(c)) {
                    continue;
                }
                let path = path_at(&line[start..]);
                let anchor = anchor_at(&line[start + path.len()..]);
                if !anchor.is_empty() && !self.anchors(path).contains(anchor) {
                    broken.push(format!("`{path}` has no heading `#{anchor}`"));
                }
                let made = MADE.iter().any(|made| path.starts_with(made));
                if made || path.contains(['<', '{', '$']) || self.has(path) {
                    continue;
                }
                broken.push(format!("`{path}` does not exist{}", self.elsewhere(path)));
            }
        }
        broken
    }

    /// Compares the entries of the book's summary with the pages of `docs`.
    fn summary_problems(&self) -> Vec<String> {
        const SUMMARY: &str = "docs/SUMMARY.md";
        let text = self.texts.get(SUMMARY).map_or("", String::as_str);
        let is_page = |path: &String| path.starts_with("docs/") && path.ends_with(".md");
        let pages: BTreeSet<&String> = self.texts.keys().filter(|path| is_page(path)).collect();
        let mut problems = Vec::new();
        let mut listed = BTreeSet::new();
        for line in text.lines() {
            let Some((_, target)) = line.split_once("](") else {
                continue;
            };
            let path = joined(SUMMARY, target.trim_end_matches(')'));
            if !pages.contains(&path) {
                problems.push(format!("{SUMMARY}: `{path}` is not a page"));
            } else if !listed.insert(path.clone()) {
                problems.push(format!("{SUMMARY}: `{path}` is there twice"));
            }
        }
        let unlisted = pages
            .iter()
            .filter(|page| **page != SUMMARY && !listed.contains(**page));
        problems.extend(unlisted.map(|page| format!("{SUMMARY}: no entry for `{page}`")));
        problems
    }

    fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        match path.split_once('*') {
            None => self.paths.contains(path),
            Some((start, end)) => {
                let end = end.rsplit('*').next().unwrap();
                let fits = |p: &String| p.starts_with(start) && p.ends_with(end);
                self.paths.iter().any(fits)
            }
        }
    }

    /// Files of the same name in other folders, for the message.
    fn elsewhere(&self, path: &str) -> String {
        let name = path.trim_end_matches('/').rsplit('/').next().unwrap();
        let same = |p: &&String| p.rsplit('/').next() == Some(name);
        match self.paths.iter().find(same) {
            Some(path) => format!("; `{path}` does"),
            None => String::new(),
        }
    }

    /// Links of a line whose file or heading does not exist.
    fn broken_links(&self, page: &str, line: &str) -> Vec<String> {
        let mut broken = Vec::new();
        let mut rest = line;
        while let Some((_, after)) = rest.split_once("](") {
            rest = after;
            let target = after.split(')').next().unwrap();
            if target.contains("://") || target.starts_with("mailto:") || target.contains(' ') {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = if path.is_empty() {
                page.to_owned()
            } else {
                joined(page, path)
            };
            if !self.paths.contains(path.trim_end_matches('/')) {
                broken.push(format!("link to `{target}`: `{path}` does not exist"));
            } else if !anchor.is_empty() && !self.anchors(&path).contains(anchor) {
                broken.push(format!("link to `{target}`: `{path}` has no such heading"));
            }
        }
        broken
    }

    /// Sections that the named page does not have, and sections of no page.
    ///
    /// A section belongs to the page that is named before it, in the same line or the one before; in a page of `docs/spec`
    /// it may be one of the page itself.
    fn broken_sections(
        &self,
        path: &str,
        line: &str,
        number: usize,
        lines: &[(usize, String)],
    ) -> Vec<String> {
        let mut broken = Vec::new();
        for (at, sign) in line.match_indices('§') {
            let before = lines.iter().find(|(n, _)| n + 1 == number);
            let before = before.map_or("", |(_, line)| line.as_str());
            let own = path.starts_with("docs/spec/").then(|| path.to_owned());
            let page = page_before(path, &line[..at])
                .or_else(|| own.clone())
                .or_else(|| page_before(path, before));
            let cited = &line[at + sign.len()..];
            let end = cited.find(|c: char| !c.is_ascii_digit() && !".–".contains(c));
            let cited = cited[..end.unwrap_or(cited.len())].trim_end_matches('.');
            let Some(page) = page else {
                broken.push(format!("§{cited} of no page"));
                continue;
            };
            for section in cited.split('–') {
                let pages = [Some(page.clone()), own.clone()];
                let has = |page: &String| self.sections(page).contains(section);
                if !pages.iter().flatten().any(has) {
                    broken.push(format!("`{page}` has no §{section}"));
                }
            }
        }
        broken
    }

    /// Names of source files and folders that end no path.
    fn broken_names(&self, page: &str, line: &str) -> Vec<String> {
        let mut broken = Vec::new();
        for span in code_spans(line) {
            let plain =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-/.".contains(c);
            let name = span.trim_end_matches('/');
            let folder = span.ends_with('/') || page == "docs/differences.md" && span.contains('/');
            let looks_like_one = span.ends_with(".rs") || folder && !span.contains('.');
            let absolute = span.starts_with(['/', '.', '-']);
            if !looks_like_one || absolute || !span.chars().all(plain) || !name.contains(is_word) {
                continue;
            }
            let (end, source) = (format!("/{name}"), format!("/{name}.rs"));
            let ends = |p: &String| p == name || p.ends_with(&end) || p.ends_with(&source);
            if !self.paths.iter().any(ends) {
                broken.push(format!("no path ends in `{span}`{}", self.elsewhere(span)));
            }
        }
        broken
    }

    /// Names of tests in a table that no function has.
    fn broken_functions(&self, line: &str) -> Vec<String> {
        let last = line.trim_end_matches('|').rsplit('|').next().unwrap();
        let is_name = |span: &&str| {
            let small = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            span.chars().all(small) && span.matches('_').count() >= 2
        };
        let broken = code_spans(last).into_iter().filter(is_name);
        let broken = broken.filter(|name| !self.functions.contains(*name));
        broken.map(|name| format!("no function `{name}`")).collect()
    }

    fn headings(&self, page: &str) -> Vec<&str> {
        let text = self.texts.get(page).map_or("", String::as_str);
        let mut code = false;
        let mut headings = Vec::new();
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                code = !code;
            } else if !code && line.starts_with('#') {
                headings.push(line.trim_start_matches('#').trim());
            }
        }
        headings
    }

    /// The anchors of a page: of headings, as GitHub makes them, and of `<a id="…">`.
    fn anchors(&self, page: &str) -> BTreeSet<String> {
        let mut anchors = BTreeSet::new();
        for heading in self.headings(page) {
            let anchor: String = heading
                .to_lowercase()
                .chars()
                .filter(|&c| c.is_alphanumeric() || " -_".contains(c))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect();
            let again = (1..).map(|n| format!("{anchor}-{n}"));
            let mut names = std::iter::once(anchor.clone()).chain(again);
            let free = names.find(|name| !anchors.contains(name));
            anchors.extend(free);
        }
        // Headings of before, which other pages may still cite.
        let text = self.texts.get(page).map_or("", String::as_str);
        let named = text.split("<a id=\"").skip(1);
        anchors.extend(named.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
        anchors
    }

    /// The numbers with which headings of a page begin: `1`, `1.2`.
    fn sections(&self, page: &str) -> BTreeSet<&str> {
        let numbers = self.headings(page).into_iter();
        let numbers = numbers.filter_map(|heading| heading.split(' ').next());
        numbers.map(|number| number.trim_end_matches('.')).collect()
    }
}

/// The lines of a Markdown file outside of code blocks, with their numbers.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut code = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            code = !code;
        } else if !code {
            lines.push((index + 1, line.to_owned()));
        }
    }
    lines
}

/// The comments of a source file, with the numbers of their lines.
fn comments(path: &str, text: &str) -> Vec<(usize, String)> {
    let name = path.rsplit('/').next().unwrap();
    let sign = match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("rs" | "c" | "hip" | "cu" | "h") => "//",
        Some("toml" | "sh" | "py" | "yml") => "#",
        _ if name == "Makefile" || path.starts_with(".ci/") => "#",
        _ => return Vec::new(),
    };
    let lines = text.lines().enumerate();
    let comments = lines.filter_map(|(index, line)| {
        let at = line.find(sign)?;
        // Not the slashes of an address.
        let address = sign == "//" && line[..at].ends_with(':');
        (!address).then(|| (index + 1, line[at + sign.len()..].to_owned()))
    });
    comments.collect()
}

/// The page that `text` names last: `docs/spec/bundler.md`, or `spec/…` in `docs`, or `bundler.md` beside `path`.
fn page_before(path: &str, text: &str) -> Option<String> {
    let end = text.rfind(".md")? + ".md".len();
    let start = text[..end].rfind(|c: char| !is_word(c) && !"/.-".contains(c));
    let name = &text[start.map_or(0, |at| at + 1)..end];
    Some(if name.starts_with("docs/") {
        name.to_owned()
    } else {
        joined(path, name)
    })
}

/// The path at the start of `text`.
fn path_at(text: &str) -> &str {
    let end = text.find(|c: char| !is_word(c) && !"/.-*<>{}$".contains(c));
    let path = &text[..end.unwrap_or(text.len())];
    path.trim_end_matches(['.', '-'])
}

/// The anchor at the start of `text`, after its `#`; empty when there is none.
fn anchor_at(text: &str) -> &str {
    let anchor = text.strip_prefix('#').unwrap_or_default();
    let end = anchor.find(|c: char| !is_word(c) && c != '-');
    &anchor[..end.unwrap_or(anchor.len())]
}

/// The path that is `target`, seen from the folder of `page`.
fn joined(page: &str, target: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// What stands between single backticks.
fn code_spans(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
