//! What became of every image that was found.
//!
//! On a link that succeeds nothing is said, because rustc turns a linker's output into warnings, unless
//! a whole target is lost, which is worth one. The report goes where the user asked for it.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::Error;
use crate::json;

/// One image and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// The file, with the archive member: `libk.a(k.o)`.
    pub from: String,
    /// Offload kind.
    pub kind: String,
    pub triple: String,
    /// Processor or target ID; may be empty.
    pub processor: String,
    /// Bytes.
    pub size: u64,
    pub fate: Fate,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// In the images of these targets.
    Linked(Vec<String>),
    /// The same image is linked from elsewhere.
    Duplicate { of: String },
    /// In an archive member that is no part of the link.
    NotTaken { reason: &'static str },
    /// Part of the link, and not in the output.
    LeftOut { reason: String },
}

/// The images of one host link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub lines: Vec<Line>,
    /// Said to the user, where the user looks.
    pub warnings: Vec<String>,
}

/// Of a member that is no part of the host link either.
pub(super) const NOT_TAKEN: &str =
    "not linked: the host link takes nothing from this archive member";

impl Line {
    /// `openmp-amdgcn-amd-amdhsa--gfx90a`, as entry IDs are written.
    #[must_use]
    pub(super) fn target(&self) -> String {
        target(&self.triple, &self.processor)
    }
}

/// A triple and a processor, for messages.
#[must_use]
pub(super) fn target(triple: &str, processor: &str) -> String {
    if processor.is_empty() {
        triple.to_owned()
    } else {
        format!("{triple} {processor}")
    }
}

impl Report {
    /// Images that belong in the output and are not there.
    pub(super) fn left_out(&self) -> impl Iterator<Item = (&Line, &str)> {
        self.lines.iter().filter_map(|line| match &line.fate {
            Fate::LeftOut { reason } => Some((line, reason.as_str())),
            _ => None,
        })
    }

    /// A line for each image.
    #[must_use]
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            let fate = match &line.fate {
                Fate::Linked(targets) => format!("linked for {}", targets.join(", ")),
                Fate::Duplicate { of } => format!("same as in {of}"),
                Fate::NotTaken { reason } => (*reason).to_owned(),
                Fate::LeftOut { reason } => format!("left out: {}", reason.replace('\n', "; ")),
            };
            let target = line.target();
            let _ = writeln!(
                text,
                "{}: {} {target}, {:#x} bytes: {fate}",
                line.from, line.kind, line.size
            );
        }
        for warning in &self.warnings {
            let _ = writeln!(text, "warning: {}", warning.replace('\n', "; "));
        }
        text
    }

    /// The same as JSON, schema 1.
    #[must_use]
    pub(super) fn to_json(&self) -> String {
        json::text(&JsonReport {
            schema: 1,
            images: self.lines.iter().map(JsonLine::of).collect(),
            warnings: &self.warnings,
        })
    }

    /// Writes the report as `request` says: `text` or `json`, then perhaps `:` and a file.
    pub(super) fn deliver(&self, request: &OsStr) -> Result<(), Error> {
        let (json, file) = parse_request(request)?;
        let text = if json { self.to_json() } else { self.to_text() };
        match file {
            None => {
                let mut err = std::io::stderr().lock();
                err.write_all(text.as_bytes())
                    .map_err(|source| Error::io("cannot write the report", source))
            }
            Some(path) => write_beside(&path, text.as_bytes()),
        }
    }
}

/// `[text|json[:]]FILE`; without `text` or `json`, a file for the text.
fn parse_request(request: &OsStr) -> Result<(bool, Option<PathBuf>), Error> {
    let bytes = request.as_bytes();
    for (name, json) in [(&b"text"[..], false), (b"json", true)] {
        match bytes.strip_prefix(name) {
            Some(b"") => return Ok((json, None)),
            Some([b':', file @ ..]) if !file.is_empty() => {
                let path = std::ffi::OsString::from_vec(file.to_vec());
                return Ok((json, Some(path.into())));
            }
            _ => {}
        }
    }
    if bytes.is_empty() {
        return Err(Error::Option(
            "--report: expected `text` or `json`, then perhaps `:<file>`".into(),
        ));
    }
    Ok((false, Some(request.into())))
}

/// Written under another name first, so that no half of a file is ever seen.
pub(super) fn write_beside(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let result = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
        .tempfile_in(folder)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.persist(path).map_err(|error| error.error)
        });
    match result {
        Ok(_) => Ok(()),
        Err(source) => Err(Error::io(
            format!("cannot write `{}`", path.display()),
            source,
        )),
    }
}

/// Schema 1, `docs/json.md`.
#[derive(Serialize)]
struct JsonReport<'a> {
    schema: u32,
    images: Vec<JsonLine<'a>>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct JsonLine<'a> {
    from: &'a str,
    kind: &'a str,
    triple: &'a str,
    processor: &'a str,
    size: u64,
    #[serde(flatten)]
    fate: JsonFate<'a>,
}

#[derive(Serialize)]
#[serde(tag = "fate", rename_all = "lowercase")]
enum JsonFate<'a> {
    Linked {
        linked_for: &'a [String],
    },
    Duplicate {
        of: &'a str,
    },
    #[serde(rename = "not taken")]
    NotTaken {
        reason: &'a str,
    },
    #[serde(rename = "left out")]
    LeftOut {
        reason: &'a str,
    },
}

impl<'a> JsonLine<'a> {
    fn of(line: &'a Line) -> Self {
        Self {
            from: &line.from,
            kind: &line.kind,
            triple: &line.triple,
            processor: &line.processor,
            size: line.size,
            fate: match &line.fate {
                Fate::Linked(targets) => JsonFate::Linked {
                    linked_for: targets,
                },
                Fate::Duplicate { of } => JsonFate::Duplicate { of },
                Fate::NotTaken { reason } => JsonFate::NotTaken { reason },
                Fate::LeftOut { reason } => JsonFate::LeftOut { reason },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let line = |from: &str, fate| Line {
            from: from.into(),
            kind: "openmp".into(),
            triple: "amdgcn-amd-amdhsa".into(),
            processor: "gfx90a".into(),
            size: 16,
            fate,
        };
        Report {
            lines: vec![
                line("a.o", Fate::Linked(vec!["amdgcn-amd-amdhsa gfx90a".into()])),
                line(
                    "lib\"b\".a(b.o)",
                    Fate::LeftOut {
                        reason: "two\nlines".into(),
                    },
                ),
            ],
            warnings: vec!["w".into()],
        }
    }

    #[test]
    fn prints_a_line_for_each_image() {
        assert_eq!(
            report().to_text(),
            "a.o: openmp amdgcn-amd-amdhsa gfx90a, 0x10 bytes: linked for amdgcn-amd-amdhsa gfx90a\n\
             lib\"b\".a(b.o): openmp amdgcn-amd-amdhsa gfx90a, 0x10 bytes: left out: two; lines\n\
             warning: w\n"
        );
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
        assert_eq!(
            parse_request("".as_ref()).unwrap_err().to_string(),
            "--report: expected `text` or `json`, then perhaps `:<file>`"
        );
    }
}
