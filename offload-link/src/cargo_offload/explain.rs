//! `cargo offload explain`: the meaning of a code of `verify`.

use std::io::Write;

use offload_formats::container::verify::FindingCode;
use serde::Serialize;

use super::error::CargoOffloadError;
use super::text::{Align, NAME, TextTable};
use crate::json as json_text;

/// Explains a code of `verify`: what it means, how runtimes react, what to do.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo offload explain OFF112
  cargo offload explain           # lists all codes")]
pub(super) struct ExplainLine {
    /// The code, such as OFF112; without one, all codes are listed.
    #[arg(value_name = "CODE", value_parser = parse_code)]
    code: Option<FindingCode>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
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
    meaning: &'static str,
    action: &'static str,
}

/// Prints one code, or lists all.
pub(super) fn run(line: &ExplainLine, out: &mut impl Write) -> Result<(), CargoOffloadError> {
    let codes = line
        .code
        .map_or(FindingCode::ALL.to_vec(), |code| vec![code]);
    let written = if line.json {
        let codes = codes.iter().map(|code| ExplainedCode {
            code: code.code(),
            severity: code.severity().name(),
            title: code.title(),
            meaning: code.meaning(),
            action: code.action(),
        });
        let codes = codes.collect();
        out.write_all(json_text::text(&ExplainDocument { schema: 1, codes }).as_bytes())
    } else if line.code.is_some() {
        codes.iter().try_for_each(|code| explain(*code, out))
    } else {
        list(&codes, out)
    };
    written.map_err(CargoOffloadError::unwritten)
}

/// Reads a code of a command line.
pub(super) fn parse_code(text: &str) -> Result<FindingCode, String> {
    let code = FindingCode::find(text);
    code.ok_or_else(|| "`cargo offload explain` lists all codes".to_owned())
}

fn explain(code: FindingCode, out: &mut impl Write) -> std::io::Result<()> {
    let (name, severity) = (code.code(), code.severity().name());
    writeln!(out, "{NAME}{name}{NAME:#} ({severity}): {}\n", code.title())?;
    for line in wrapped(code.meaning()) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    for line in wrapped(&format!("Next: {}", code.action())) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn list(codes: &[FindingCode], out: &mut impl Write) -> std::io::Result<()> {
    let plain = anstyle::Style::new();
    let mut table = TextTable::new([
        (Align::Left, NAME),
        (Align::Left, plain),
        (Align::Left, plain),
    ]);
    for code in codes {
        table.push([code.code(), code.severity().name(), code.title()].map(str::to_owned));
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
