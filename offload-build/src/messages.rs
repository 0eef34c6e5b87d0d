//! Messages of compilers and failed steps, for people: each diagnostic once, even if several passes report it.

use offload_build_core::error::Error;
use offload_build_core::files;
use offload_build_core::process::command::CommandError;
use offload_formats::by_name::ByName;
use offload_formats::escape::{self, Colors};
use std::fmt::Write as _;
use std::path::Path;

/// Bytes of messages that are printed; a terminal has no use for more.
const LIMIT: usize = 64 << 10;

/// The reason why a step failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A program did; a hint, or nothing.
    Command(Box<CommandError>, String),
    /// Anything else.
    Other(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// The report of a failed step: lines under a heading, each with the other steps that report the same.
struct Block<'a> {
    heading: String,
    diagnostics: Vec<String>,
    hint: &'a str,
}

/// Steps that report a diagnostic after the first one.
struct Others<'a> {
    /// Title of the first step.
    first: &'a str,
    /// Other targets of its source.
    targets: Vec<&'a str>,
    /// Other sources, which include the same header.
    sources: Vec<&'a str>,
}

impl<'a> Others<'a> {
    /// Adds a step. Templates of a header may have one diagnostic many times in one step.
    fn add(&mut self, title: &'a str) {
        let (source, Some(target)) = parts(title) else {
            return;
        };
        let (list, name) = match parts(self.first).0 == source {
            true => (&mut self.targets, target),
            false => (&mut self.sources, source),
        };
        if title != self.first && !list.contains(&name) {
            list.push(name);
        }
    }

    fn line(&self) -> Option<String> {
        let lists = [("for", &self.targets), ("in", &self.sources)];
        let lists = lists.iter().filter(|(_, names)| !names.is_empty());
        let lists: Vec<_> = lists
            .map(|(word, names)| format!("{word} {}", names.join(", ")))
            .collect();
        (!lists.is_empty()).then(|| format!("also {}", lists.join(", ")))
    }
}

/// Splits a title into a source and its target.
fn parts(title: &str) -> (&str, Option<&str>) {
    let split = title.rsplit_once(" for ");
    split.map_or((title, None), |(source, target)| (source, Some(target)))
}

/// The text for all failed steps, by title, with the number of steps that were left out after them. The command is there once
/// and last: it is long, and the reason is not in it.
pub(crate) fn report(failures: &[(String, Failure)], left: usize) -> String {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut also: ByName<Others<'_>> = ByName::default();
    let mut command = None;
    for (title, failure) in failures {
        let (error, hint) = match failure {
            Failure::Other(error) => {
                blocks.push(Block {
                    heading: format!("{title}: {error}"),
                    diagnostics: Vec::new(),
                    hint: "",
                });
                continue;
            }
            Failure::Command(error, hint) => (error, hint.as_str()),
        };
        let all = diagnostics(error.output());
        let mut new = Vec::new();
        for text in &all {
            match also.get_mut(&identity(text)) {
                Some(others) => others.add(title),
                None => {
                    let (targets, sources) = (Vec::new(), Vec::new());
                    let others = Others {
                        first: title,
                        targets,
                        sources,
                    };
                    also.insert(identity(text), others);
                    new.push(text.clone());
                }
            }
        }
        if all.is_empty() || !new.is_empty() {
            command = command.or(Some(error.command()));
            blocks.push(Block {
                heading: format!("{title}: {}", error.headline()),
                diagnostics: new,
                hint,
            });
        }
    }
    let mut text = String::new();
    let mut last_hint = "";
    for block in blocks {
        // Nothing fails that writes to a string.
        let _ = writeln!(text, "{}", block.heading.trim_end());
        let mut diagnostics = block.diagnostics.iter().peekable();
        while let Some(diagnostic) = diagnostics.next() {
            text += diagnostic;
            let others = |diagnostic: &str| also.get(&identity(diagnostic))?.line();
            let next = diagnostics.peek().and_then(|next| others(next));
            if let Some(line) = others(diagnostic).filter(|line| Some(line) != next.as_ref()) {
                let _ = writeln!(text, "{line}");
            }
        }
        if !block.hint.is_empty() && block.hint != last_hint {
            last_hint = block.hint;
            let _ = writeln!(text, "hint: {last_hint}");
        }
    }
    if left > 0 {
        let failed = failures.len();
        let _ = writeln!(
            text,
            "after {failed} failures, {left} other steps were not started"
        );
    }
    if let Some(command) = command {
        let _ = writeln!(text, "command: {command}");
    }
    text.truncate(text.trim_end().len());
    text
}

/// Splits a compiler's output into a text for each warning or error with its notes, without lines that count them or show commands.
///
/// Every pass over a source, those of the device and of the host, finds the same.
pub(crate) fn diagnostics(messages: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut headed = true;
    for colored in messages.lines() {
        let line = plain(colored);
        if counts(&line) || shows_command(&line) || line.trim().is_empty() {
            continue;
        }
        let head = is_head(&line);
        let opens = opens(&line);
        match found.last_mut() {
            Some(last) if !(headed && (head || opens)) => *last += &format!("{colored}\n"),
            _ => found.push(format!("{colored}\n")),
        }
        headed = head || (headed && !opens);
    }
    found
}

/// Tells whether a line counts the diagnostics before it: of clang and GCC, or of nvcc.
fn counts(line: &str) -> bool {
    let counts = line.contains(" generated") || line.contains(" detected in the compilation of ");
    counts && line.starts_with(|c: char| c.is_ascii_digit())
}

/// Tells whether a line is a command that nvcc runs, a variable of it, or its status, as `--verbose` prints.
fn shows_command(line: &str) -> bool {
    line.starts_with("#$ ") || line.starts_with("# --error ")
}

/// Tells whether a line is the first of a warning or error.
fn is_head(line: &str) -> bool {
    let is_coded = line.starts_with("error[") && line.contains("]: ");
    is_coded || line.contains("warning: ") || line.contains("error: ") || is_numbered(line)
}

/// Tells whether a line is the first of one with a number: nvcc's `k.cu(3): warning #177-D: …`.
fn is_numbered(line: &str) -> bool {
    let mut words = line.split(' ');
    let word = words.find(|word| matches!(*word, "warning" | "error"));
    let number = word.and_then(|_| words.next()?.strip_prefix('#')?.strip_suffix(':'));
    let digits = number.map(|number| number.strip_suffix("-D").unwrap_or(number));
    digits.is_some_and(|digits| digits.parse::<u32>().is_ok())
}

/// Tells whether a line says where the diagnostic after it is: files that include each other, or a function or a template. GCC
/// says the latter once for all diagnostics there.
fn opens(line: &str) -> bool {
    let place = [": In ", ": At "].iter().any(|word| line.contains(word));
    line.starts_with("In file included from ") || (place && line.ends_with(':'))
}

/// Returns what two texts of one diagnostic have in common: neither their colors nor the lines before the first, with the files
/// that include the header. Of a hundred sources with a header, each would report it again. Nvcc adds a remark to the first
/// of each source. Clang quotes a line once if several diagnostics are about it, and a header has as many paths as there are folders
/// that sources include it from. A header that is missing is so for each source.
pub(crate) fn identity(diagnostic: &str) -> String {
    let text = plain(diagnostic);
    let has_head = text.lines().any(is_head);
    let lines = text.lines().skip_while(|line| has_head && !is_head(line));
    let lines = lines.filter(|line| !line.starts_with("Remark: The warnings can be suppressed"));
    let lines = lines.filter(|line| !is_quote(line));
    let text = without_detours(lines.collect::<Vec<_>>().join("\n"));
    match text.split_once(" fatal error: ") {
        Some((_, problem)) if is_missing_header(problem) => problem.to_owned(),
        _ => text,
    }
}

/// Tells whether a fatal error is that of clang, or of GCC, for a header that is not found.
fn is_missing_header(problem: &str) -> bool {
    let words = ["' file not found", ": No such file or directory"];
    words.iter().any(|words| problem.contains(words))
}

/// Makes `folder/../k.h` to `k.h`. To compare texts, a folder that is a link does not matter.
fn without_detours(mut text: String) -> String {
    const UP: &str = "/../";
    let mut from = 0;
    while let Some(up) = text.get(from..).and_then(|rest| rest.find(UP)) {
        let up = from + up;
        let before = text.get(..up).unwrap_or_default();
        let start = before
            .rfind(['/', ' ', '\'', '"', '\n'])
            .map_or(0, |at| at + 1);
        match before.get(start..) {
            Some("" | "." | "..") | None => from = up + UP.len() - 1,
            Some(_) => {
                text.replace_range(start..up + UP.len(), "");
                from = start.saturating_sub(1);
            }
        }
    }
    text
}

/// Tells whether a line quotes a source, or marks a place in the quoted line above it: `  440 |   f(x);` or `      |   ^`.
fn is_quote(line: &str) -> bool {
    let after = line
        .trim_start()
        .trim_start_matches(|c: char| c.is_ascii_digit());
    after.trim_start().starts_with('|')
}

fn plain(text: &str) -> String {
    escape::messages(text, Colors::Removed)
}

/// `text`, or as much of it as is printed, with the hints and the command behind it; then all of it is in `file`.
pub(crate) fn shortened(text: &str, file: &Path) -> String {
    if text.len() <= LIMIT {
        return text.to_owned();
    }
    let mut end = LIMIT;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let (printed, _) = text.split_at(end);
    let printed = printed
        .rsplit_once('\n')
        .map_or(printed, |(lines, _)| lines);
    let is_ours = |line: &&str| line.starts_with("hint: ") || line.starts_with("command: ");
    let ours = text[printed.len()..].lines().filter(is_ours);
    let ours: String = ours.map(|line| format!("\n{line}")).collect();
    let lines = text.lines().count() - printed.lines().count();
    let rest = match files::write(file, text.as_bytes()) {
        Ok(()) => format!("all of it is in {}", file.display()),
        Err(error) => format!("{}: {error}", file.display()),
    };
    format!("{printed}\n… {lines} more lines; {rest}{ours}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use offload_build_core::process::command::Command;

    fn failed(title: &str, output: &str, hint: &str) -> (String, Failure) {
        let script = format!("printf '%s' \"$0\" >&2; exit 1 # {title}");
        let command = Command::new("sh").args(["-c", &script, output]);
        let error = command.run().unwrap_err();
        (
            title.to_owned(),
            Failure::Command(Box::new(error), hint.to_owned()),
        )
    }

    #[test]
    fn says_each_diagnostic_once_and_the_command_last() {
        let common = "k.c:3:9: error: expected ';'\n  x += 1\n        ^\n";
        let own = "k.c:9:1: error: no asm\n";
        let failures = [
            failed(
                "k.c for the host",
                &format!("{common}1 error generated.\n"),
                "",
            ),
            failed(
                "k.c for gfx90a",
                &format!("{common}{own}2 errors generated when compiling for gfx90a.\n"),
                "a hint",
            ),
            failed(
                "k.c for sm_80",
                &format!("{common}{own}2 errors generated.\n"),
                "a hint",
            ),
            ("images".to_owned(), Failure::Other(Error::new("no space"))),
            failed("other.c for sm_80", "", ""),
        ];
        let text = report(&failures, 0);
        let (text, command) = text.split_once("command: ").unwrap();
        assert_eq!(
            text,
            format!(
                "k.c for the host: `sh` failed (exit status: 1)\n{common}also for gfx90a, sm_80\n\
                 k.c for gfx90a: `sh` failed (exit status: 1)\n{own}also for sm_80\nhint: a hint\n\
                 images: no space\n\
                 other.c for sm_80: `sh` failed (exit status: 1)\n"
            )
        );
        assert!(command.contains("# k.c for the host"), "{command}");
    }

    #[test]
    fn names_other_sources_of_a_diagnostic_and_each_target_once() {
        let header = "k.h:3:9: error: no function `max`\n";
        let twice = header.repeat(2);
        let included = |source: &str| {
            format!("In file included from {source}:1:\nIn file included from all.h:2:\n{header}")
        };
        let gcc =
            format!("In file included from all.h:2,\n                 from d.cu:1:\n{header}");
        let failures = [
            failed("a.cu for sm_80", &twice, ""),
            failed("a.cu for sm_90", &twice, ""),
            failed("b.cu for sm_80", &included("b.cu"), ""),
            failed("b.cu for sm_90", &included("b.cu"), ""),
            failed("c.cu for sm_80", &included("c.cu").repeat(2), ""),
            failed("d.cu for sm_80", &gcc, ""),
        ];
        let text = report(&failures, 0);
        let (text, _) = text.split_once("command: ").unwrap();
        assert_eq!(
            text,
            format!(
                "a.cu for sm_80: `sh` failed (exit status: 1)\n{header}also for sm_90, in b.cu, c.cu, d.cu\n"
            )
        );
        let alone = report(&[failed("a.cu for sm_80", &twice, "")], 0);
        assert!(!alone.contains("also"), "{alone}");
    }

    #[test]
    fn says_once_that_a_header_is_missing() {
        for problem in [
            "fatal error: 'cublas_v2.h' file not found\n    1 | #include <cublas_v2.h>\n      |          ^~~~~~~~~~~~~\n",
            "fatal error: cublas_v2.h: No such file or directory\n    1 | #include <cublas_v2.h>\ncompilation terminated.\n",
        ] {
            let missing = |place: &str| format!("{place}: {problem}");
            let failures = [
                failed("a.cu for sm_80", &missing("a.cu:1:10"), "install it"),
                failed("a.cu for sm_90", &missing("a.cu:1:10"), "install it"),
                failed("b.cu for sm_80", &missing("b.cu:2:10"), "install it"),
                failed(
                    "c.cu for sm_80",
                    &missing("c.cu:1:10").replace("cublas", "curand"),
                    "install it",
                ),
            ];
            let text = report(&failures, 0);
            let (text, _) = text.split_once("command: ").unwrap();
            let heading = "for sm_80: `sh` failed (exit status: 1)";
            let first = missing("a.cu:1:10");
            let other = missing("c.cu:1:10").replace("cublas", "curand");
            assert_eq!(
                text,
                format!(
                    "a.cu {heading}\n{first}also for sm_90, in b.cu\nhint: install it\nc.cu {heading}\n{other}"
                )
            );
        }
    }

    #[test]
    fn keeps_where_gcc_found_a_diagnostic_with_it() {
        let first = "k.h(1): warning #177-D: variable \"a\" was declared but never referenced\n";
        let place = "k.h: In instantiation of ‘struct S<int>’:\nk.h:9:8:   required from here\n";
        let second = "k.h:2:3: warning: ‘S<int>’ has a field\n";
        let found = diagnostics(&format!("{first}{place}{second}"));
        assert_eq!(found, [first, &format!("{place}{second}")]);
        assert_eq!(identity(&found[1]), identity(second));
    }

    /// Warnings of clang 22 about loops in templates.
    #[test]
    fn says_a_diagnostic_once_that_clang_quotes_once() {
        let head = "k.h:440:21: warning: loop not unrolled [-Wpass-failed=transform-warning]\n";
        let quote = "  440 |     f(x);\n      |     ^\n";
        let found = diagnostics(&format!("{head}{quote}{head}{head}2 warnings generated.\n"));
        assert_eq!(found, [&format!("{head}{quote}"), head, head]);
        assert_eq!(identity(&found[0]), identity(&found[1]));
        let other = head.replace("440:21", "440:22");
        assert_ne!(identity(&other), identity(&found[1]));
    }

    #[test]
    fn knows_a_header_by_each_path() {
        for (path, plain) in [
            ("src/one/../k.h:3:1: error: no", "src/k.h:3:1: error: no"),
            ("src/one/two/../../k.h:3: error: no", "src/k.h:3: error: no"),
            ("one/../k.h:3: error: no", "k.h:3: error: no"),
            ("../k.h:3: error: no", "../k.h:3: error: no"),
            ("/../../k.h:3: error: no", "/../../k.h:3: error: no"),
            ("ü/../k.h:3: error: no", "k.h:3: error: no"),
            (
                "a/../k.h:3: error: 'b/../c.h' file not found",
                "k.h:3: error: 'c.h' file not found",
            ),
        ] {
            assert_eq!(identity(path), plain);
        }
    }

    /// With `--verbose`, which build scripts of other crates pass.
    #[test]
    fn leaves_out_commands_of_nvcc() {
        let variable = "#$ _NVVM_BRANCH_=nvvm\n";
        let command = "#$ cicc --orig_src_file_name \"k.cu\" \"error: none\"\n";
        let warning = "k.cu(1): warning #177-D: variable \"a\" was declared but never referenced\n  int a;\n      ^\n";
        let status = "# --error 0x1 --\n";
        let output = format!("{variable}{command}{warning}{command}{warning}{status}");
        assert_eq!(diagnostics(&output), [warning, warning]);
        assert_eq!(diagnostics(&command.repeat(3)), [""; 0]);
        let text = report(&[failed("k.cu for sm_80", &output, "")], 0);
        let (text, _) = text.split_once("command: ").unwrap();
        assert!(!text.contains("#$ "), "{text}");
    }

    #[test]
    fn says_each_diagnostic_of_nvcc_once() {
        let unused = "k.h(1): warning #177-D: variable \"a\" was declared but never referenced\n  int a;\n      ^\n";
        let remark =
            "Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"\n";
        let error = "k.h(2): error: identifier \"b\" is undefined\n  b;\n  ^\n";
        let numbered = "k.h(3): error #20: identifier \"c\" is undefined\n  c;\n  ^\n";
        let output = format!(
            "{unused}\n{remark}\n{error}\n{numbered}\n{unused}\n2 errors detected in the compilation of \"k.cu\".\n"
        );
        let found = diagnostics(&output);
        let expected = [&format!("{unused}{remark}"), error, numbered, unused];
        assert_eq!(found, expected);
        assert_eq!(identity(&found[0]), identity(&found[3]));
    }

    #[test]
    fn cuts_what_no_terminal_has_a_use_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("offload/messages.txt");
        let text = "ä warning\n".repeat(1 << 20);
        let short = shortened(&text, &file);
        assert!(short.len() < LIMIT + 1000, "{}", short.len());
        let (printed, rest) = short.split_once("\n… ").unwrap();
        let lines = (1 << 20) - printed.lines().count();
        assert_eq!(
            rest,
            format!("{lines} more lines; all of it is in {}", file.display())
        );
        assert!(printed.lines().all(|line| line == "ä warning"));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        let ours = "\nhint: a hint\ncommand: ptxas k.s";
        let short = shortened(&format!("{text}hint: a hint\nmore{ours}"), &file);
        let (_, kept) = short.split_once(&file.display().to_string()).unwrap();
        assert_eq!(kept, format!("\nhint: a hint{ours}"));
        assert_eq!(shortened("short", &file), "short");
    }
}
