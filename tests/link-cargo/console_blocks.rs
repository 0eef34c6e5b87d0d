//! Console blocks of pages: each command prints what its page says.
//!
//! Blocks marked ```` ```console ```` are run, in the order of a page and in one empty folder; `tests/build-law/book.rs` lists the words that mark
//! others. Commands start with `$ `, and go on in the next line after a final `\`. `…` in the output stands for any text, and a line
//! of its own for any lines. A comment `<!-- setup` … `-->` has commands that readers do not see; `<!-- tools: llvm19 -->` names the tools that a
//! page needs, by words of `OFFLOAD_REQUIRE`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support;

#[test]
fn prints_what_pages_say() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let pages = fs::read_dir(docs)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> = pages.filter(|path| path.is_file()).collect();
    pages.sort();
    let (mut counts, mut shows) = (Vec::new(), 0);
    for page in pages {
        let Ok(text) = fs::read_to_string(&page) else {
            continue;
        };
        let commands = commands(&text);
        if commands.iter().all(|command| command.expected.is_none()) {
            continue;
        }
        shows += 1;
        if !has_tools(&text) {
            continue;
        }
        let name = page.file_name().unwrap().to_string_lossy().into_owned();
        let shown = commands.iter().filter(|command| command.expected.is_some());
        counts.push((name.clone(), shown.count()));
        run(&name, &commands);
    }
    assert!(shows >= 2, "pages with commands: {shows}");
    println!("commands: {counts:?}");
}

#[test]
fn reads_setups_commands_and_output() {
    let page =
        "<!-- setup\ntrue\n-->\n```console\n$ a \\\n  b\nx\n$ c\n```\n```console,gpu\n$ d\n```\n";
    let found: Vec<(String, Option<String>)> = commands(page)
        .into_iter()
        .map(|command| (command.line, command.expected))
        .collect();
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        found,
        [
            ("true\n".to_owned(), None),
            ("a \\\n  b".to_owned(), text("x\n")),
            ("c".to_owned(), text("")),
        ]
    );
    assert!(fits("a … c\n…\nz\n", "a b c\n1\n2\nz\n"));
    assert!(fits("a\n…\n", "a\n"));
    assert!(!fits("a\n…\nz\n", "a\n1\n"));
    assert!(!fits("a …\n", "b a \n"));
}

/// A command, and the output that its page shows; nothing for setups.
struct PageCommand {
    line: String,
    expected: Option<String>,
}

fn commands(page: &str) -> Vec<PageCommand> {
    let mut commands: Vec<PageCommand> = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line == "<!-- setup" {
            let setup = lines.by_ref().take_while(|line| *line != "-->");
            let line = setup.map(|line| format!("{line}\n")).collect();
            let expected = None;
            commands.push(PageCommand { line, expected });
        } else if line == "```console" {
            while let Some(line) = lines.next().filter(|line| *line != "```") {
                if let Some(first) = line.strip_prefix("$ ") {
                    let mut line = first.to_owned();
                    while line.ends_with('\\') {
                        line.push('\n');
                        line.push_str(lines.next().unwrap_or_default());
                    }
                    let expected = Some(String::new());
                    commands.push(PageCommand { line, expected });
                } else if let Some(last) = commands.last_mut() {
                    let expected = last.expected.as_mut().expect("output follows a command");
                    expected.push_str(line);
                    expected.push('\n');
                }
            }
        }
    }
    commands
}

fn has_tools(page: &str) -> bool {
    let words = page
        .lines()
        .find_map(|line| line.strip_prefix("<!-- tools: ")?.strip_suffix(" -->"));
    let mut words = words.unwrap_or_default().split_whitespace();
    words.all(|word| match word {
        "llvm19" => support::tool(word, &["clang-19"]).is_some(),
        "llvm22" => support::tool(word, &["clang-22"]).is_some(),
        "omptarget19" => support::tool(word, &["libomptarget.so.19.1"]).is_some(),
        word => panic!("unknown tool `{word}`"),
    })
}

fn run(page: &str, commands: &[PageCommand]) {
    let folder = tempfile::tempdir().unwrap();
    let tools = Path::new(env!("CARGO_BIN_EXE_cargo-offload"))
        .parent()
        .unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    for command in commands {
        let mut shell = Command::new("sh");
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("OFFLOAD_") || text.starts_with("CARGO") {
                shell.env_remove(name);
            }
        }
        let output = shell
            .arg("-c")
            .arg(format!("exec 2>&1\nset -e\n{}", command.line))
            .current_dir(folder.path())
            .env("LC_ALL", "C")
            .env("PATH", &path)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        let place = format!("docs/{page}: `{}`", command.line);
        let expected = command.expected.as_deref();
        let is_error = expected.is_some_and(|text| text.contains("error"));
        assert_eq!(output.status.success(), !is_error, "{place}\n{printed}");
        if let Some(expected) = expected {
            assert!(
                fits(expected, &printed),
                "{place}\nexpected:\n{expected}\nprinted:\n{printed}"
            );
        }
    }
}

/// Tells whether a text is as expected, where `…` stands for any text in a line, or for any lines.
fn fits(expected: &str, printed: &str) -> bool {
    let expected: Vec<&str> = expected.lines().collect();
    let printed: Vec<&str> = printed.lines().collect();
    lines_fit(&expected, &printed)
}

fn lines_fit(expected: &[&str], printed: &[&str]) -> bool {
    match expected {
        [] => printed.is_empty(),
        [line, rest @ ..] if line.trim() == "…" => {
            (0..=printed.len()).any(|skipped| lines_fit(rest, &printed[skipped..]))
        }
        [line, rest @ ..] => {
            printed.first().is_some_and(|found| line_fits(line, found))
                && lines_fit(rest, &printed[1..])
        }
    }
}

fn line_fits(expected: &str, found: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut rest) = found.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(place) = rest.find(part) else {
            return false;
        };
        rest = &rest[place + part.len()..];
    }
    true
}
