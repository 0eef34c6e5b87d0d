//! Reports the fate of every image that was found.
//!
//! A successful link prints nothing unless a whole target is lost, because rustc turns a linker's output into warnings. The
//! user requests the report and its place.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use offload_build::tools::distance;
use offload_formats::escape::terminal;
use serde::Serialize;

use crate::files;
use crate::json;
use crate::linker_wrapper::error::LinkError;
use crate::platform;

/// An image with its fate; in JSON, too (schema 1, `docs/json.md`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ReportLine {
    /// Name of the file with the archive member: `libk.a(k.o)`.
    pub from: String,
    /// Offload kind of the image.
    pub kind: String,
    pub triple: String,
    /// Processor or target ID; may be empty.
    pub processor: String,
    /// Size in bytes.
    pub size: u64,
    #[serde(flatten)]
    pub fate: Fate,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "fate", rename_all = "lowercase")]
pub(crate) enum Fate {
    /// Linked into the images of these targets.
    Linked { linked_for: Vec<String> },
    /// Equal to an image that is linked.
    Duplicate { of: String },
    /// Belongs to an archive member that is not part of the link, or that is linked already.
    #[serde(rename = "not linked")]
    NotLinked { reason: &'static str },
    /// Part of the link, but not in the output.
    #[serde(rename = "left out")]
    LeftOut { reason: String },
}

impl Fate {
    /// Linked, before the device links are planned.
    pub(crate) const LINKED: Self = Self::Linked {
        linked_for: Vec::new(),
    };
}

/// Images of one host link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    pub lines: Vec<ReportLine>,
    /// Warnings that are also printed on standard error.
    pub warnings: Vec<String>,
    /// Additions to the host link.
    pub notes: Vec<String>,
}

/// Reason for an image whose archive member is not part of the host link.
pub(crate) const NOT_IN_LINK: &str = "the host link takes nothing from this archive member";

/// Names of OpenMP's device runtime as a library, LLVM 17 to 20 and later: it has dozens of images, and a link needs
/// few.
const RUNTIME_LIBRARIES: [&str; 2] = ["libomptarget.devicertl.a", "libompdevice.a"];

impl ReportLine {
    /// Returns the runtime library that contains the image: `DIR/libompdevice.a` of `DIR/libompdevice.a(x.o)`.
    fn runtime_library(&self) -> Option<&str> {
        let (file, _) = self.from.strip_suffix(')')?.rsplit_once('(')?;
        let name = file.rsplit('/').next()?;
        RUNTIME_LIBRARIES.contains(&name).then_some(file)
    }

    fn to_text(&self) -> String {
        let fate = match &self.fate {
            Fate::Linked { linked_for } => format!("linked for {}", linked_for.join(", ")),
            Fate::Duplicate { of } => format!("same as in {of}"),
            Fate::NotLinked { reason } => format!("not linked: {reason}"),
            Fate::LeftOut { reason } => format!("left out: {reason}"),
        };
        let (from, kind, size) = (&self.from, &self.kind, self.size);
        line_of(&format!(
            "{from}: {kind} {}, {size} bytes: {fate}",
            self.target()
        ))
    }

    /// Returns triple and processor, escaped: `amdgcn-amd-amdhsa gfx90a`.
    #[must_use]
    pub(crate) fn target(&self) -> String {
        target(&self.triple, &self.processor)
    }
}

/// Returns triple and processor, escaped for messages.
#[must_use]
pub(crate) fn target(triple: &str, processor: &str) -> String {
    if processor.is_empty() {
        terminal(triple).to_string()
    } else {
        format!("{} {}", terminal(triple), terminal(processor))
    }
}

/// Escapes the text, so that it stays one line of the report.
fn line_of(text: &str) -> String {
    let text = text.replace('\n', "; ");
    format!("{}\n", terminal(&text))
}

impl Report {
    /// Returns the images that belong in the output but are missing.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = (&ReportLine, &str)> {
        self.lines.iter().filter_map(|line| match &line.fate {
            Fate::LeftOut { reason } => Some((line, reason.as_str())),
            _ => None,
        })
    }

    /// Returns a line for each image, and one for each runtime library.
    #[must_use]
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        let mut libraries: Vec<&str> = Vec::new();
        for line in &self.lines {
            match line.runtime_library() {
                Some(library) if libraries.contains(&library) => {}
                Some(library) => {
                    libraries.push(library);
                    text += &self.library_text(library);
                }
                None => text += &line.to_text(),
            }
        }
        for warning in &self.warnings {
            text += &line_of(&format!("warning: {warning}"));
        }
        for note in &self.notes {
            text += &line_of(&format!("note: {note}"));
        }
        text
    }

    /// Returns the number of images of a runtime library for each fate.
    fn library_text(&self, library: &str) -> String {
        let images = self.lines.iter();
        let images = images.filter(|line| line.runtime_library() == Some(library));
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for image in images {
            let fate = match image.fate {
                Fate::Linked { .. } => "linked",
                Fate::Duplicate { .. } => "the same as others",
                Fate::NotLinked { .. } => "not linked",
                Fate::LeftOut { .. } => "left out",
            };
            *counts.entry(fate).or_default() += 1;
        }
        let all: usize = counts.values().sum();
        let counts = counts.iter().map(|(fate, count)| format!("{count} {fate}"));
        let counts: Vec<String> = counts.collect();
        let plural = if all == 1 { "" } else { "s" };
        line_of(&format!(
            "{library}: runtime library, {all} image{plural}: {}",
            counts.join(", ")
        ))
    }

    /// Returns the report as JSON, schema 1.
    #[must_use]
    pub(crate) fn to_json(&self) -> String {
        json::text(&JsonReport {
            schema: 1,
            images: &self.lines,
            warnings: &self.warnings,
            notes: &self.notes,
        })
    }

    /// Writes the report as `request` demands: `text` or `json`, optionally followed by `:` and a file.
    pub(crate) fn deliver(&self, request: &OsStr) -> Result<(), LinkError> {
        let (json, file) = parse_request(request)?;
        let text = if json { self.to_json() } else { self.to_text() };
        match file {
            None => {
                let mut err = std::io::stderr().lock();
                err.write_all(text.as_bytes())
                    .map_err(|source| LinkError::io("cannot write the report", source))
            }
            Some(path) => write_beside(&path, text.as_bytes()),
        }
    }

    /// Writes this report where `request` names a file, which may have that of an earlier link.
    pub(crate) fn replace(&self, request: &OsStr) -> Result<(), LinkError> {
        match parse_request(request)? {
            (_, Some(_)) => self.deliver(request),
            (_, None) => Ok(()),
        }
    }
}

/// Parses `text`, `json`, `text:FILE`, `json:FILE` or `FILE`, which gets the text. Returns true for JSON, and the file.
fn parse_request(request: &OsStr) -> Result<(bool, Option<PathBuf>), LinkError> {
    let bytes = request.as_encoded_bytes();
    for (name, json) in [(&b"text"[..], false), (b"json", true)] {
        match bytes.strip_prefix(name) {
            Some(b"") => return Ok((json, None)),
            Some([b':', file @ ..]) if !file.is_empty() => {
                let path = platform::os_string(file.to_vec());
                return Ok((json, Some(path.into())));
            }
            _ => {}
        }
    }
    // Nobody gives a report such a name.
    let text = request.to_string_lossy();
    let word = text.split(':').next().unwrap_or_default();
    let is_misspelled = |name| distance(word, name) <= 1;
    if bytes.is_empty() || ["text", "json"].into_iter().any(is_misspelled) {
        return Err(LinkError::Option(format!(
            "--report: `{}`: expected `text` or `json`, optionally followed by `:<file>`, or a file",
            terminal(request)
        )));
    }
    Ok((false, Some(request.into())))
}

/// Writes a temporary file and renames it, so the file is never incomplete.
pub(crate) fn write_beside(path: &Path, bytes: &[u8]) -> Result<(), LinkError> {
    files::write_beside(path, bytes).map_err(|source| LinkError::unwritten(path, source))
}

/// Schema 1, `docs/json.md`.
#[derive(Serialize)]
struct JsonReport<'a> {
    schema: u32,
    images: &'a [ReportLine],
    warnings: &'a [String],
    notes: &'a [String],
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let line = |from: &str, fate| ReportLine {
            from: from.into(),
            kind: "openmp".into(),
            triple: "amdgcn-amd-amdhsa".into(),
            processor: "gfx90a".into(),
            size: 16,
            fate,
        };
        Report {
            lines: vec![
                line(
                    "a.o",
                    Fate::Linked {
                        linked_for: vec!["amdgcn-amd-amdhsa gfx90a".into()],
                    },
                ),
                line(
                    "lib\"b\".a(b.o)",
                    Fate::LeftOut {
                        reason: "two\nlines".into(),
                    },
                ),
            ],
            warnings: vec!["w".into()],
            notes: vec!["n".into()],
        }
    }

    #[test]
    fn prints_a_line_for_each_image() {
        assert_eq!(
            report().to_text(),
            "a.o: openmp amdgcn-amd-amdhsa gfx90a, 16 bytes: linked for amdgcn-amd-amdhsa gfx90a\n\
             lib\"b\".a(b.o): openmp amdgcn-amd-amdhsa gfx90a, 16 bytes: left out: two; lines\n\
             warning: w\n\
             note: n\n"
        );
    }

    #[test]
    fn prints_one_line_for_each_runtime_library() {
        let mut report = report();
        for fate in [
            Fate::LINKED,
            Fate::NotLinked { reason: "one" },
            Fate::NotLinked { reason: "two" },
        ] {
            report.lines.push(ReportLine {
                from: "/d/libompdevice.a(m.o)".to_owned(),
                fate,
                ..report.lines[0].clone()
            });
        }
        let text = report.to_text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert_eq!(
            lines[2],
            "/d/libompdevice.a: runtime library, 3 images: 1 linked, 2 not linked"
        );
    }

    #[test]
    fn prints_no_name_that_a_terminal_would_act_on() {
        let mut report = report();
        report.lines.truncate(1);
        report.lines[0].kind = "\u{1b}]0;k\u{7}".to_owned();
        report.lines[0].triple = "t\nforged: line".to_owned();
        report.warnings.clear();
        report.notes = vec!["\u{9b}1m\u{202e}".to_owned()];
        let text = report.to_text();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(
            text.contains("\\x1b]0;k\\x07 t\\nforged: line gfx90a"),
            "{text}"
        );
        assert!(text.ends_with("note: \\u{9b}1m\\u{202e}\n"), "{text}");
    }

    #[test]
    fn writes_json_that_escapes_names() {
        assert_eq!(
            report().to_json(),
            r#"{
  "schema": 1,
  "images": [
    {
      "from": "a.o",
      "kind": "openmp",
      "triple": "amdgcn-amd-amdhsa",
      "processor": "gfx90a",
      "size": 16,
      "fate": "linked",
      "linked_for": [
        "amdgcn-amd-amdhsa gfx90a"
      ]
    },
    {
      "from": "lib\"b\".a(b.o)",
      "kind": "openmp",
      "triple": "amdgcn-amd-amdhsa",
      "processor": "gfx90a",
      "size": 16,
      "fate": "left out",
      "reason": "two\nlines"
    }
  ],
  "warnings": [
    "w"
  ],
  "notes": [
    "n"
  ]
}
"#
        );
    }

    #[test]
    fn reads_where_the_report_goes() {
        for (request, expected) in [
            ("text", (false, None)),
            ("json", (true, None)),
            ("json:r.json", (true, Some("r.json"))),
            ("text:a:b", (false, Some("a:b"))),
            ("r.txt", (false, Some("r.txt"))),
        ] {
            let (json, file) = parse_request(request.as_ref()).unwrap();
            assert_eq!((json, file), (expected.0, expected.1.map(PathBuf::from)));
        }
        for request in ["", "jso:r", "test", "text:"] {
            let error = parse_request(request.as_ref()).unwrap_err().to_string();
            let expected = format!(
                "--report: `{request}`: expected `text` or `json`, optionally followed by `:<file>`, or a file"
            );
            assert_eq!(error, expected);
        }
    }
}
