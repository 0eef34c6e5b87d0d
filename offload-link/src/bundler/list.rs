//! `-list`: entry IDs for scripts, a table for people, JSON for programs.

use std::borrow::Cow;

use offload_formats::escape::terminal;
use serde::Serialize;

use super::contents::{BundleForm, Contents, Entry, FoundBundle};
use super::options::Listing;

/// Returns the text to print.
pub(super) fn text(contents: &Contents, listing: Listing) -> String {
    match listing {
        Listing::Ids => ids(contents),
        Listing::Long => long(contents),
        Listing::Json => json(contents),
    }
}

fn ids(contents: &Contents) -> String {
    contents
        .entries()
        .map(|entry| format!("{}\n", terminal(&entry.id)))
        .collect()
}

impl BundleForm {
    fn name(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::Text => "text",
            Self::Object => "object",
        }
    }
}

fn long(contents: &Contents) -> String {
    let mut text = String::new();
    for bundle in &contents.bundles {
        text += &format!("bundle {}: {}", bundle.index, heading(bundle));
        let rows: Vec<[String; 3]> = bundle.entries.iter().map(row).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let [offset, size] = [0, 1].map(width);
        for [a, b, id] in &rows {
            text += &format!("  {a:>offset$}  {b:>size$}  {id}\n");
        }
    }
    if contents.left > 0 {
        text += &contents.rest();
        text.push('\n');
    }
    if contents.bundles.is_empty() {
        text += "no bundles\n";
    }
    text
}

fn heading(bundle: &FoundBundle) -> String {
    let mut text = String::new();
    if let Some(member) = &bundle.member {
        text += &format!("member {}, ", terminal(member));
    }
    if let Some(section) = &bundle.section {
        text += &format!("section {}, ", terminal(section));
    }
    let size = bundle.range.end - bundle.range.start;
    text += &format!(
        "{}, offset {:#x}, size {size}",
        bundle.form.name(),
        bundle.range.start
    );
    if let Some(compressed) = &bundle.compressed {
        text += &format!(
            ", compressed (version {}, {}) from {}; offsets below are in the uncompressed bundle",
            compressed.version.raw(),
            compressed.method,
            compressed.uncompressed_size
        );
    }
    text + "\n"
}

fn row(entry: &Entry) -> [String; 3] {
    [
        format!("{:#x}", entry.range.start),
        (entry.range.end - entry.range.start).to_string(),
        terminal(&entry.id).to_string(),
    ]
}

/// Schema 1, `docs/json.md`.
#[derive(Serialize)]
struct Json<'a> {
    schema: u32,
    file: Cow<'a, str>,
    bundles: Vec<JsonBundle<'a>>,
    left: u64,
}

#[derive(Serialize)]
struct JsonBundle<'a> {
    index: usize,
    member: Option<&'a str>,
    section: Option<&'a str>,
    form: &'static str,
    offset: u64,
    size: u64,
    compression: Option<JsonCompression>,
    entries: Vec<JsonEntry<'a>>,
}

#[derive(Serialize)]
struct JsonCompression {
    version: u16,
    method: &'static str,
    uncompressed_size: u64,
    hash: String,
}

#[derive(Serialize)]
struct JsonEntry<'a> {
    id: &'a str,
    kind: Option<&'static str>,
    triple: Option<String>,
    target_id: Option<String>,
    offset: u64,
    size: u64,
}

fn json(contents: &Contents) -> String {
    let bundles = contents.bundles.iter();
    let json = Json {
        schema: 1,
        file: contents.name.to_string_lossy(),
        bundles: bundles.map(FoundBundle::json).collect(),
        left: contents.left,
    };
    crate::json::text(&json)
}

impl FoundBundle {
    fn json(&self) -> JsonBundle<'_> {
        let compression = self.compressed.as_ref().map(|bundle| JsonCompression {
            version: bundle.version.raw(),
            method: bundle.method.name(),
            uncompressed_size: bundle.uncompressed_size,
            hash: bundle.hash.map(|byte| format!("{byte:02x}")).concat(),
        });
        JsonBundle {
            index: self.index,
            member: self.member.as_deref(),
            section: self.section.as_deref(),
            form: self.form.name(),
            offset: self.range.start,
            size: self.range.end - self.range.start,
            compression,
            entries: self.entries.iter().map(Entry::json).collect(),
        }
    }
}

impl Entry {
    fn json(&self) -> JsonEntry<'_> {
        let parsed = self.parsed();
        let parsed = parsed.as_ref();
        JsonEntry {
            id: &self.id,
            kind: parsed.map(|id| id.kind().name()),
            triple: parsed.map(|id| id.triple().to_string()),
            target_id: parsed.map(|id| id.target_id().to_owned()),
            offset: self.range.start,
            size: self.range.end - self.range.start,
        }
    }
}
