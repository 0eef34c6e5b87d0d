//! `cargo offload explain`: the meaning of a code of `verify`, or of an error of a build or link.

use std::io::Write;

use offload_formats::container::verify::{FindingCode, Severity};
use serde::Serialize;

use super::error::CargoOffloadError;
use super::error_codes::{self, ErrorSection};
use super::text::{Align, NAME, TextTable};
use crate::json;

/// Explains the code of a finding of `verify`, or of an error of a build or link, and what to do.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo offload explain OFF112    # a finding of `cargo offload verify`
  cargo offload explain OFF601    # an error of a build
  cargo offload explain           # lists all codes")]
pub(super) struct ExplainLine {
    /// The code, such as OFF112; without one, all codes are listed.
    #[arg(value_name = "CODE", value_parser = parse_any)]
    code: Option<Explained>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Something that has a code.
#[derive(Clone, Copy, Debug)]
enum Explained {
    Finding(FindingCode),
    Error(ErrorSection),
}

impl Explained {
    /// Returns all, in the order of their codes.
    fn all() -> Vec<Self> {
        let findings = FindingCode::ALL.iter().copied().map(Self::Finding);
        findings
            .chain(error_codes::sections().map(Self::Error))
            .collect()
    }

    fn code(self) -> &'static str {
        match self {
            Self::Finding(code) => code.code(),
            Self::Error(section) => section.code,
        }
    }

    fn severity(self) -> &'static str {
        match self {
            Self::Finding(code) => code.severity().name(),
            Self::Error(_) => Severity::Error.name(),
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Finding(code) => code.title(),
            Self::Error(section) => section.title,
        }
    }
}

#[derive(Serialize)]
struct ExplainDocument {
    schema: u32,
    codes: Vec<ExplainedCode>,
}

#[derive(Serialize)]
struct ExplainedCode {
    code: &'static str,
    severity: &'static str,
    title: &'static str,
    /// For errors, the section of `docs/troubleshooting.md`, which has the actions, too.
    meaning: &'static str,
    action: Option<&'static str>,
}

/// Prints one code, or lists all.
pub(super) fn run(line: &ExplainLine, out: &mut impl Write) -> Result<(), CargoOffloadError> {
    let codes = line.code.map_or_else(Explained::all, |code| vec![code]);
    let written = if line.json {
        let codes = codes.iter().map(|explained| {
            let (meaning, action) = match explained {
                Explained::Finding(code) => (code.meaning(), Some(code.action())),
                Explained::Error(section) => (section.text, None),
            };
            ExplainedCode {
                code: explained.code(),
                severity: explained.severity(),
                title: explained.title(),
                meaning,
                action,
            }
        });
        let codes = codes.collect();
        json::write(&ExplainDocument { schema: 1, codes }, out)
    } else if line.code.is_some() {
        codes.iter().try_for_each(|code| explain(*code, out))
    } else {
        list(&codes, out)
    };
    written.map_err(CargoOffloadError::unwritten)
}

/// Reads any code of a command line.
fn parse_any(text: &str) -> Result<Explained, String> {
    match error_codes::find(text) {
        Some(section) => Ok(Explained::Error(section)),
        None => parse_code(text).map(Explained::Finding),
    }
}

/// Reads a code of `verify` of a command line.
pub(super) fn parse_code(text: &str) -> Result<FindingCode, String> {
    let code = FindingCode::find(text);
    code.ok_or_else(|| "`cargo offload explain` lists all codes".to_owned())
}

fn explain(explained: Explained, out: &mut impl Write) -> std::io::Result<()> {
    let (name, severity) = (explained.code(), explained.severity());
    let title = explained.title();
    writeln!(out, "{NAME}{name}{NAME:#} ({severity}): {title}\n")?;
    match explained {
        Explained::Error(section) => writeln!(out, "{}", without_links(section.text)),
        Explained::Finding(code) => {
            for line in wrapped(code.meaning()) {
                writeln!(out, "{line}")?;
            }
            writeln!(out)?;
            for line in wrapped(&format!("Next: {}", code.action())) {
                writeln!(out, "{line}")?;
            }
            Ok(())
        }
    }
}

/// Returns text of a page of `docs` with its links as a terminal's reader can follow them: the text, then the page.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let (Some((start, name)), Some((target, end))) =
            (before.rsplit_once('['), after.split_once(')'))
        else {
            break;
        };
        plain.push_str(start);
        plain.push_str(name);
        let page = target.split('#').next().unwrap_or_default();
        match page {
            "" => {}
            page if page.contains("://") => plain.push_str(&format!(" ({target})")),
            page => plain.push_str(&format!(" (docs/{page})")),
        }
        rest = end;
    }
    plain + rest
}

fn list(codes: &[Explained], out: &mut impl Write) -> std::io::Result<()> {
    let plain = anstyle::Style::new();
    let mut table = TextTable::new([
        (Align::Left, NAME),
        (Align::Left, plain),
        (Align::Left, plain),
    ]);
    for code in codes {
        table.push([code.code(), code.severity(), code.title()].map(str::to_owned));
    }
    table.print("", out)
}

/// Divides text into lines of at most 100 characters.
fn wrapped(text: &str) -> Vec<String> {
    const WIDTH: usize = 100;
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is a line");
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(word.to_owned());
            continue;
        }
        if !last.is_empty() {
            last.push(' ');
        }
        last.push_str(word);
    }
    lines
}
