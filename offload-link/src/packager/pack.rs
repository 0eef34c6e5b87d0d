//! Packing: puts the files that `--image=` names into offload binaries.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

use offload_formats::format::magic::Magic;
use offload_formats::format::offload_binary::{
    Method, NewBinaryEntry, OffloadBinaryVersion, layout, pair_order,
};
use offload_formats::format::offload_yaml;
use offload_formats::format::pieces::{self, Piece};
use offload_formats::names::{ImageKind, LlvmRelease, OffloadKind};

use super::image_argument::ImageArgument;
use super::options::PackagerOptions;
use crate::llvm_tool::{LlvmToolError, Output, Sources, Style};

/// Returns the pieces of the output: each file of each argument, in order.
pub(super) fn plan(
    output: &Path,
    options: &PackagerOptions,
    sources: &mut Sources,
) -> Result<Output, LlvmToolError> {
    if let Some(path) = &options.from_yaml {
        let bytes = from_yaml(path, options.llvm, sources)?;
        return Ok(Output::plain(output.to_owned(), vec![Piece::Bytes(bytes)]));
    }
    let mut images = Vec::new();
    for argument in &options.images {
        images.extend(open(argument, options.llvm, sources)?);
    }
    let strings: Vec<Vec<(&[u8], &[u8])>> = images.iter().map(NewImage::strings).collect();
    let entries = images.iter().zip(&strings);
    let entries: Vec<NewBinaryEntry<'_>> = entries
        .map(|(image, strings)| NewBinaryEntry {
            image_kind: image.kind,
            offload_kind: image.offload_kind,
            flags: 0,
            strings,
            image_size: image.size,
        })
        .collect();
    let pieces = layout(
        &entries,
        OffloadBinaryVersion::of(options.llvm),
        options.llvm,
    )
    .map_err(|problem| LlvmToolError::input(output, problem))?;
    let style = match options.compress {
        true => compressed(options)?,
        false => Style::Plain,
    };
    Ok(Output {
        path: output.to_owned(),
        pieces: pieces::renumbered(pieces, |index| images[index].source),
        style,
    })
}

/// Limit on a `!Offload` document, in bytes: it is parsed in memory. Content has two digits a byte.
const MAX_DOCUMENT: u64 = 1 << 30;

/// Returns the offload binary that a `!Offload` document describes.
fn from_yaml(
    path: &Path,
    llvm: LlvmRelease,
    sources: &mut Sources,
) -> Result<Vec<u8>, LlvmToolError> {
    let source = sources.open_up_to(path, MAX_DOCUMENT)?;
    let mut text = String::new();
    let all = [sources.all(source)];
    let read = sources.reader(&all).read_to_string(&mut text);
    read.map_err(|error| match error.kind() {
        // The document is not UTF-8; the reader of pieces does not check that.
        std::io::ErrorKind::InvalidData => LlvmToolError::file(path, &error),
        _ => LlvmToolError::new(error.to_string()),
    })?;
    let document =
        offload_yaml::parse(&text).map_err(|problem| LlvmToolError::input(path, problem))?;
    let bytes = document.to_bytes(llvm);
    bytes.map_err(|problem| LlvmToolError::input(path, problem))
}

/// Returns how a compressed offload binary is written.
fn compressed(options: &PackagerOptions) -> Result<Style, LlvmToolError> {
    if OffloadBinaryVersion::of(options.llvm) < OffloadBinaryVersion::V3 {
        let release = options.llvm;
        return Err(LlvmToolError::new(format!(
            "--compress: LLVM {release} does not read compressed offload binaries; --llvm=main does"
        )));
    }
    let methods = [Method::Zstd, Method::Zlib];
    let method = match &options.format {
        None if options.level.is_some() => {
            return Err(LlvmToolError::new(
                "--compression-level requires --compression-format",
            ));
        }
        None => Method::Zstd,
        Some(name) => {
            let method = methods.into_iter().find(|method| method.name() == name);
            method.ok_or_else(|| {
                LlvmToolError::new(format!(
                    "--compression-format: `{name}` is not a format; expected `zstd` or `zlib`"
                ))
            })?
        }
    };
    let level = options.level;
    Ok(Style::CompressedBinary { method, level })
}

/// A file to pack, with its strings.
struct NewImage {
    source: usize,
    size: u64,
    kind: ImageKind,
    offload_kind: OffloadKind,
    /// Keys and values in output order.
    strings: Vec<(Vec<u8>, Vec<u8>)>,
}

impl NewImage {
    fn strings(&self) -> Vec<(&[u8], &[u8])> {
        let pairs = self.strings.iter();
        pairs.map(|(key, value)| (&**key, &**value)).collect()
    }
}

/// Returns the kind for a release: before LLVM 23, SPIR-V is a number without name and extension.
pub(super) fn known_to(kind: ImageKind, llvm: LlvmRelease) -> ImageKind {
    match kind {
        ImageKind::SPIRV if llvm < LlvmRelease::V23 => ImageKind::NONE,
        kind => kind,
    }
}

/// Opens the files of one argument.
fn open(
    argument: &ImageArgument,
    llvm: LlvmRelease,
    sources: &mut Sources,
) -> Result<Vec<NewImage>, LlvmToolError> {
    let files = argument.files();
    if llvm < LlvmRelease::V22 && (files.is_empty() || argument.value("triple").is_none()) {
        return Err(LlvmToolError::new(
            "'file' and 'triple' are required image arguments",
        ));
    }
    if files.is_empty() {
        return Err(LlvmToolError::new("'file' is a required image arguments"));
    }
    let kind = argument.value("kind").unwrap_or_default();
    let offload_kind = std::str::from_utf8(&kind).ok();
    let offload_kind = offload_kind.and_then(OffloadKind::from_name);
    let pairs: Vec<(&[u8], Vec<u8>)> = argument.pairs().collect();
    let keys: Vec<Cow<'_, str>> = argument.keys().map(String::from_utf8_lossy).collect();
    let keys: Vec<&str> = keys.iter().map(|key| &**key).collect();
    let strings = pair_order(&keys, llvm).into_iter();
    let strings = strings.filter_map(|index| pairs.get(index));
    let strings = strings.filter(|(key, _)| *key != b"file" && *key != b"kind");
    let strings: Vec<(Vec<u8>, Vec<u8>)> = strings
        .map(|(key, value)| (key.to_vec(), value.clone()))
        .collect();
    let mut images = Vec::new();
    for path in files {
        let source = sources.open(&path)?;
        let file = sources.file(source);
        let kind = match Magic::at(file.data(), file.whole()) {
            Magic::Bitcode => ImageKind::BITCODE,
            _ => path
                .extension()
                .and_then(|extension| extension.to_str())
                .map_or(ImageKind::NONE, ImageKind::from_extension),
        };
        let kind = known_to(kind, llvm);
        images.push(NewImage {
            source,
            size: file.size,
            kind,
            offload_kind: offload_kind.unwrap_or(OffloadKind::NONE),
            strings: strings.clone(),
        });
    }
    Ok(images)
}
