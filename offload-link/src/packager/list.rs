//! `--list` and `--yaml`: prints the images of an input for people and for programs.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

use offload_formats::escape::terminal;
use offload_formats::format::offload_yaml::{Document, YamlMember};
use serde::Serialize;

use super::inputs::{self, Node, PackedImage};
use super::options::ListFormat;
use crate::llvm_tool::{LlvmToolError, Sources};

/// Returns the text to print.
pub(super) fn text(
    input: &Path,
    images: &[PackedImage],
    sources: &Sources,
    listing: ListFormat,
) -> Result<String, LlvmToolError> {
    if listing == ListFormat::Yaml {
        return yaml(images, sources);
    }
    let mut nodes = Vec::new();
    for (index, image) in images.iter().enumerate() {
        nodes.extend(inputs::tree(input, index, image, sources)?);
    }
    Ok(match listing {
        ListFormat::Json => json(input, &nodes),
        _ => table(&nodes),
    })
}

const HEADER: [&str; 8] = [
    "index", "form", "kind", "triple", "arch", "offset", "size", "where",
];

fn table(nodes: &[Node]) -> String {
    if nodes.is_empty() {
        return "no images\n".to_owned();
    }
    let mut rows = vec![HEADER.map(str::to_owned)];
    rows.extend(nodes.iter().map(|Node { indices, image, .. }| {
        let entry = &image.entry;
        let more = image.more_strings();
        let more = more.iter().map(|(key, value)| format!(" {key}={value}"));
        [
            indices
                .iter()
                .map(usize::to_string)
                .collect::<Vec<_>>()
                .join("."),
            entry.image_kind.name().to_owned(),
            entry.offload_kind.name().to_owned(),
            terminal(entry.triple()).to_string(),
            terminal(entry.arch()).to_string(),
            format!("{:#x}", entry.image.start),
            (entry.image.end - entry.image.start).to_string(),
            image.container() + &more.collect::<String>(),
        ]
    }));
    /// Longer cells do not widen their column.
    const WIDEST: usize = 100;
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.filter(|width| *width <= WIDEST).max()
    };
    let widths: Vec<usize> = (0..HEADER.len())
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let lines = rows.iter().map(|row| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (text, width))| match HEADER[column] {
            "index" | "offset" | "size" => format!("{text:>width$}"),
            _ => format!("{text:<width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

/// Schema 1, `docs/json.md`.
#[derive(Serialize)]
struct JsonImages<'a> {
    schema: u32,
    file: Cow<'a, str>,
    images: Vec<JsonImage>,
}

#[derive(Serialize)]
struct JsonImage {
    indices: Vec<usize>,
    members: Vec<String>,
    section: Option<u32>,
    binary: usize,
    entry: usize,
    image_kind: &'static str,
    offload_kind: &'static str,
    flags: u32,
    strings: Vec<(String, String)>,
    offset: u64,
    size: u64,
    unpacked: bool,
}

fn json(input: &Path, nodes: &[Node]) -> String {
    let images = nodes.iter().map(|Node { indices, image, .. }| {
        let (entry, found) = (&image.entry, &image.found);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        JsonImage {
            indices: indices.clone(),
            members: found.members.iter().map(|name| text(name)).collect(),
            section: found.section,
            binary: found.binary,
            entry: found.index,
            image_kind: entry.image_kind.name(),
            offload_kind: entry.offload_kind.name(),
            flags: entry.flags,
            strings: entry
                .strings
                .iter()
                .map(|(key, value)| (text(key), text(value)))
                .collect(),
            offset: entry.image.start,
            size: entry.image.end - entry.image.start,
            unpacked: found.bytes.is_some(),
        }
    });
    crate::json::text(&JsonImages {
        schema: 1,
        file: input.to_string_lossy(),
        images: images.collect(),
    })
}

/// Returns all offload binaries of the input as YAML, in the form of `obj2yaml`.
fn yaml(images: &[PackedImage], sources: &Sources) -> Result<String, LlvmToolError> {
    let mut members = Vec::new();
    for image in images {
        let entry = &image.entry;
        let mut content = Vec::new();
        let read = sources.reader(&image.pieces()).read_to_end(&mut content);
        read.map_err(|error| LlvmToolError::new(error.to_string()))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let strings = entry.strings.iter();
        members.push(YamlMember {
            image_kind: entry.image_kind,
            offload_kind: entry.offload_kind,
            flags: entry.flags,
            strings: strings
                .map(|(key, value)| (text(key), text(value)))
                .collect(),
            content,
        });
    }
    let document = Document {
        members,
        ..Document::default()
    };
    Ok(document.to_string())
}
