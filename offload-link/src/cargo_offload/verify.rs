//! `cargo offload verify`: what is wrong with the device code of files.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use offload_formats::container::verify::{
    Finding, FindingCode, Severity, VerifySettings, verify as verify_file,
};
use offload_formats::escape::terminal;
use offload_formats::format::bytes::ReadCache;
use offload_formats::format::compressed_bundle::HipRuntime;
use serde::Serialize;

use super::error::CargoOffloadError;
use super::explain;
use super::find_options::FindOptions;
use super::images::{self, FileImages};
use super::inputs::{InputLine, OpenInput, Origin};
use super::text::{self, FAINT, NAME};
use crate::{files, json, say};

/// Largest number of findings of one code that is printed for a file, unless the user asks for all.
const SHOWN: usize = 5;

/// Verifies the device code of files: hashes, alignment, entry IDs, targets, wrappers, kernels.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit status: 0 if there is no error; 1 with an error, or if an input could not be read; 2 for an invalid command line.
`cargo offload explain CODE` explains a finding.

Examples:
  cargo offload verify target/release/app
  cargo offload verify -r --deny warnings dist
  cargo offload verify --runtime rocm-6.4 libkernels.so
  cargo offload verify --allow OFF112 --json libkernels.so")]
pub(super) struct VerifyLine {
    /// Treat findings with these codes, or all `warnings`, as errors.
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = DeniedFindings::parse)]
    deny: Vec<DeniedFindings>,
    /// Do not report findings with these codes.
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = explain::parse_code)]
    allow: Vec<FindingCode>,
    /// Release of ROCm that must read compressed bundles, such as rocm-6.4.
    #[arg(long, value_name = "RUNTIME")]
    runtime: Option<HipRuntime>,
    /// Print all findings, not only the first five of each code.
    #[arg(long)]
    all: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    find: FindOptions,
    #[command(flatten)]
    input: InputLine,
}

/// Findings that `--deny` makes errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeniedFindings {
    Warnings,
    Of(FindingCode),
}

impl DeniedFindings {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "warnings" => Ok(Self::Warnings),
            _ => explain::parse_code(text).map(Self::Of),
        }
    }
}

impl VerifyLine {
    /// Returns the severity of a finding; `None` for one that is left out.
    fn severity(&self, code: FindingCode) -> Option<Severity> {
        let severity = code.severity();
        let denies = |what| self.deny.contains(&what);
        if denies(DeniedFindings::Of(code)) {
            return Some(Severity::Error);
        }
        if self.allow.contains(&code) {
            return None;
        }
        match severity {
            Severity::Warning if denies(DeniedFindings::Warnings) => Some(Severity::Error),
            _ => Some(severity),
        }
    }
}

#[derive(Serialize)]
struct VerifyDocument {
    schema: u32,
    files: Vec<VerifiedFile>,
    errors: usize,
    warnings: usize,
    notes: usize,
}

/// Findings of one file.
#[derive(Serialize)]
struct VerifiedFile {
    file: String,
    images: usize,
    findings: Vec<ShownFinding>,
}

#[derive(Serialize)]
struct ShownFinding {
    code: &'static str,
    severity: &'static str,
    title: &'static str,
    message: String,
    action: &'static str,
    members: Vec<String>,
    section: Option<String>,
    offset: Option<u64>,
    index: Option<usize>,
    entry: Option<String>,
    #[serde(skip)]
    place: String,
    #[serde(skip)]
    level: Severity,
}

impl ShownFinding {
    fn of(finding: Finding, level: Severity, around: &[Vec<u8>]) -> Self {
        let mut place = finding.place;
        place.members.splice(0..0, around.iter().cloned());
        let lossy = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        Self {
            code: finding.code.code(),
            severity: level.name(),
            title: finding.code.title(),
            message: finding.message,
            action: finding.code.action(),
            members: place.members.iter().map(lossy).collect(),
            section: place.section.as_ref().map(lossy),
            offset: place.offset,
            index: place.index,
            entry: place.entry.clone(),
            place: place.to_string(),
            level,
        }
    }
}

/// Verifies each file and prints its findings. Fails if there is an error.
pub(super) fn run(line: &VerifyLine, out: &mut impl Write) -> Result<(), CargoOffloadError> {
    let limit = line.find.limit()?;
    let settings = VerifySettings {
        runtime: line.runtime,
        limit,
        scratch: files::scratch(),
    };
    let mut find = line.find.settings(files::scratch())?;
    let (mut files, mut without) = (Vec::new(), 0);
    let done = line.input.each(|input| {
        let found = FileImages::find(input, &mut find);
        let file = verified(input, &found, &settings, line)?;
        CargoOffloadError::check_unpacked(&input.name)?;
        if file.images == 0 && file.findings.is_empty() && input.origin == Origin::Searched {
            without += 1;
            return Ok(());
        }
        if !line.json {
            let hint = line.find.hint().filter(|_| file.images == 0);
            print(&file, line.all, hint, out).map_err(CargoOffloadError::unwritten)?;
        }
        files.push(file);
        match unopened(&found).next() {
            None => Ok(()),
            Some(_) => Err(CargoOffloadError::reported()),
        }
    });
    let all = files.iter().flat_map(|file| &file.findings);
    let count = |level| all.clone().filter(|finding| finding.level == level).count();
    let [errors, warnings, notes] = [Severity::Error, Severity::Warning, Severity::Note].map(count);
    let written = if line.json {
        let document = VerifyDocument {
            schema: 1,
            files,
            errors,
            warnings,
            notes,
        };
        json::write(&document, out)
    } else {
        totals([errors, warnings, notes], without, out)
    };
    written.map_err(CargoOffloadError::unwritten)?;
    match errors {
        0 => done,
        _ => Err(CargoOffloadError::reported()),
    }
}

fn verified(
    input: &OpenInput,
    found: &FileImages,
    settings: &VerifySettings,
    line: &VerifyLine,
) -> Result<VerifiedFile, CargoOffloadError> {
    let mut findings = Vec::new();
    for part in &found.parts {
        let open = || ReadCache::new(part.reading.part(0..part.size));
        let found = verify_file(open, &part.inventory, settings.clone());
        let found = found.map_err(|problem| CargoOffloadError::of(&input.name, problem))?;
        for finding in found {
            if let Some(level) = line.severity(finding.code) {
                findings.push(ShownFinding::of(finding, level, &part.members));
            }
        }
    }
    for problem in unopened(found) {
        say::error(
            "",
            &format_args!("{}: {problem}", images::shown(&input.name)),
        );
    }
    Ok(VerifiedFile {
        file: input.name.to_string_lossy().into_owned(),
        images: found.count(),
        findings,
    })
}

/// Lists the problems outside of inventories: members of thin archives that cannot be opened.
fn unopened(found: &FileImages) -> impl Iterator<Item = &String> {
    let inventories = found.parts.iter().map(|part| &part.inventory);
    let known = inventories.flat_map(|inventory| &inventory.problems);
    let known: Vec<String> = known.map(ToString::to_string).collect();
    let problems = found.problems.iter();
    problems.filter(move |problem| !known.iter().any(|known| problem.contains(known)))
}

fn print(
    file: &VerifiedFile,
    all: bool,
    hint: Option<&str>,
    out: &mut impl Write,
) -> io::Result<()> {
    let name = terminal(&file.file);
    let images = text::count(file.images, "device image");
    if file.findings.is_empty() {
        writeln!(out, "{NAME}{name}{NAME:#}: {images}, no findings")?;
        return hint.map_or(Ok(()), |hint| writeln!(out, "  hint: {hint}"));
    }
    writeln!(out, "{NAME}{name}{NAME:#}: {images}")?;
    for group in file.findings.chunk_by(|one, two| one.code == two.code) {
        let Some(first) = group.first() else { continue };
        let style = style(first.level);
        let (severity, code, title) = (first.severity, first.code, first.title);
        writeln!(out, "  {style}{severity}{style:#} {code}: {title}")?;
        let shown = if all { group.len() } else { SHOWN };
        for finding in group.iter().take(shown) {
            let separator = if finding.place.is_empty() { "" } else { ": " };
            writeln!(out, "    {}{separator}{}", finding.place, finding.message)?;
        }
        if group.len() > shown {
            let count = group.len() - shown;
            writeln!(out, "    {FAINT}{count} more; `--all` prints them{FAINT:#}")?;
        }
        writeln!(out, "    {FAINT}next: {}{FAINT:#}", first.action)?;
    }
    Ok(())
}

fn style(level: Severity) -> Style {
    match level {
        Severity::Error => AnsiColor::Red.on_default().bold(),
        Severity::Warning => AnsiColor::Yellow.on_default().bold(),
        _ => AnsiColor::Cyan.on_default().bold(),
    }
}

fn totals(counts: [usize; 3], without: usize, out: &mut impl Write) -> io::Result<()> {
    let [errors, warnings, notes] = counts;
    let parts = [
        text::count(errors, "error"),
        text::count(warnings, "warning"),
        text::count(notes, "note"),
    ];
    writeln!(out, "{}", parts.join(", "))?;
    match without {
        0 => Ok(()),
        _ => writeln!(
            out,
            "{} without device images",
            text::count(without, "file")
        ),
    }
}
