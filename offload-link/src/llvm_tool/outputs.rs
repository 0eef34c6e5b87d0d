//! Writes outputs beside their final paths, and renames them when all are complete.
//!
//! `place.rs` chooses where outputs are while they are written; `gathered.rs` joins small writes.

mod gathered;
mod place;

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io;
use std::path::Path;

use offload_build::tools::jobserver::Jobs;
use offload_formats::escape::terminal;
use offload_formats::format::pieces::{self, Piece};

use super::compression;
use super::error::LlvmToolError;
use super::output::{Output, Style};
use super::sources::{CopySource, Parts, Sources};
use crate::files::{self, CopyError};
use gathered::Gathered;
use place::{OutputPlace, OutputPlaces};

/// Writes all outputs or none. They get their names when the last one is complete.
pub(crate) fn write(outputs: &[Output], sources: &Sources) -> Result<(), LlvmToolError> {
    write_readable(outputs, sources, &mut Err).map(drop)
}

/// Writes outputs like [`write`], but leaves out those of bundles that cannot be decompressed, and returns their indices.
/// `damaged` gets the error of each such bundle; nothing is written if it fails.
pub(crate) fn write_readable(
    outputs: &[Output],
    sources: &Sources,
    damaged: &mut dyn FnMut(LlvmToolError) -> Result<(), LlvmToolError>,
) -> Result<BTreeSet<usize>, LlvmToolError> {
    let mut places = OutputPlaces::default();
    for output in outputs {
        places.add(output).map_err(|error| match output.style {
            Style::Archive => LlvmToolError::new(super::error::system_message(&error)),
            _ => LlvmToolError::file(&output.path, &error),
        })?;
    }
    refuse_same(outputs, &places)?;
    copy_all(outputs, &places.list, sources)?;
    for (output, place) in outputs.iter().zip(&places.list) {
        match output.style {
            Style::Compressed { how, verbose } => {
                let file = opened(output, place)?;
                compression::write(output, sources, how, verbose, &file)?;
            }
            Style::CompressedBinary { method, level } => {
                let file = opened(output, place)?;
                compression::write_binary(output, sources, method, level, &file)?;
            }
            _ => {}
        }
    }
    let left_out = decompress(outputs, &places.list, sources, damaged)?;
    files::check()?;
    places.finish(&left_out, |index, error| match outputs.get(index) {
        Some(output) => LlvmToolError::file(&output.path, &error),
        None => LlvmToolError::new(error.to_string()),
    })?;
    Ok(left_out)
}

/// Returns warnings about paths that several images are written to; the last image stays.
pub(crate) fn clashes(outputs: &[Output]) -> Vec<String> {
    let mut last: HashMap<&Path, &[Piece]> = HashMap::new();
    let mut texts = Vec::new();
    for output in outputs {
        let path = output.path.as_path();
        let Some(earlier) = last.insert(path, &output.pieces) else {
            continue;
        };
        let special = || fs::metadata(path).is_ok_and(|file| !file.is_file());
        if earlier != output.pieces && path != Path::new("-") && !special() {
            let path = terminal(path);
            texts.push(format!(
                "'{path}' is the output for several images; the last one stays"
            ));
        }
    }
    texts.dedup();
    texts
}

/// Refuses two outputs with different names for one file: an image would be lost. If the names are equal, LLVM's
/// behavior is known, and [`clashes`] warns.
fn refuse_same(outputs: &[Output], places: &OutputPlaces) -> Result<(), LlvmToolError> {
    let mut names: HashMap<place::Identity, &Output> = HashMap::new();
    for (output, place) in outputs.iter().zip(&places.list) {
        for identity in &place.identities {
            let earlier = names.insert(identity.clone(), output);
            let Some(earlier) = earlier.filter(|earlier| earlier.path != output.path) else {
                continue;
            };
            if earlier.pieces != output.pieces {
                let [one, two] = [earlier, output].map(|output| terminal(output.path.as_path()));
                return Err(LlvmToolError::new(format!(
                    "the outputs '{one}' and '{two}' are the same file"
                )));
            }
        }
    }
    Ok(())
}

/// Opens the file of an output.
fn opened(output: &Output, place: &OutputPlace) -> Result<File, LlvmToolError> {
    let file = place.new.open();
    file.map_err(|error| LlvmToolError::file(&output.path, &error))
}

/// Largest number of outputs that are copied at the same time.
const COPIES: usize = 4;

/// Size of all outputs in bytes from which on threads save more time than their start takes.
const WORTH_THREADS: u64 = 16 << 20;

/// Copies the pieces of all outputs that are not compressed, several outputs at the same time.
fn copy_all(
    outputs: &[Output],
    places: &[OutputPlace],
    sources: &Sources,
) -> Result<(), LlvmToolError> {
    let sources = sources.to_copy();
    let copied = outputs.iter().zip(places).filter(|(output, _)| {
        let style = &output.style;
        matches!(style, Style::Plain | Style::Archive | Style::Object(_))
    });
    let copied: Vec<(&Output, &OutputPlace)> = copied.collect();
    let sizes = copied
        .iter()
        .map(|(output, _)| pieces::size(&output.pieces));
    let count = match sizes.fold(0, u64::saturating_add) {
        ..WORTH_THREADS => 1,
        _ => COPIES.min(compression::all_processors().get() as usize),
    };
    let done = Jobs::new(None, count).run(copied, |(output, place)| {
        let file = opened(output, place)?;
        copy(output, &sources, &file)
    });
    done.into_iter().collect()
}

/// Copies all pieces except compressed ones. Large zeros are skipped, because the file already has its full size.
fn copy(
    output: &Output,
    sources: &[Option<CopySource<'_>>],
    file: &File,
) -> Result<(), LlvmToolError> {
    let unwritten = |error: io::Error| LlvmToolError::file(&output.path, &error);
    file.set_len(pieces::size(&output.pieces))
        .map_err(unwritten)?;
    let mut gathered = Gathered::new(file);
    for piece in &output.pieces {
        let source = match piece {
            Piece::Copy { input, .. } => sources.get(*input).copied().flatten(),
            _ => None,
        };
        match (piece, source) {
            (Piece::Bytes(bytes), _) => gathered.bytes(bytes).map_err(unwritten)?,
            (Piece::Copy { range, .. }, Some(source)) => {
                let copied = gathered.copy(source, range.clone());
                copied.map_err(|error| match error {
                    CopyError::Read(error) => LlvmToolError::file(source.name, &error),
                    CopyError::Write(error) => unwritten(error),
                })?;
            }
            (Piece::Zeros(_) | Piece::Copy { .. }, _) => {
                gathered.skip(piece.size()).map_err(unwritten)?;
            }
        }
    }
    gathered.finish().map_err(unwritten)
}

/// Limit on the outputs that one decompression writes, below the limit on open files of a process.
const OUTPUTS_OF_A_PASS: usize = 128;

/// Decompresses each bundle once for all outputs with a part of it; in several passes for more than
/// [`OUTPUTS_OF_A_PASS`]. Returns the outputs of bundles whose error `damaged` took.
fn decompress(
    outputs: &[Output],
    places: &[OutputPlace],
    sources: &Sources,
    damaged: &mut dyn FnMut(LlvmToolError) -> Result<(), LlvmToolError>,
) -> Result<BTreeSet<usize>, LlvmToolError> {
    // Each compressed bundle with the outputs that need a part of it.
    let mut wanted: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut known: HashMap<usize, usize> = HashMap::new();
    for (index, output) in outputs.iter().enumerate() {
        for piece in &output.pieces {
            let Piece::Copy { input, .. } = piece else {
                continue;
            };
            if sources.as_compressed(*input).is_none() {
                continue;
            }
            let place = *known.entry(*input).or_insert_with(|| {
                wanted.push((*input, Vec::new()));
                wanted.len() - 1
            });
            let list = &mut wanted[place].1;
            if list.last() != Some(&index) {
                list.push(index);
            }
        }
    }
    let mut left_out = BTreeSet::new();
    for (source, wanting) in wanted {
        for part in wanting.chunks(OUTPUTS_OF_A_PASS) {
            if let Some(problem) = decompress_one(outputs, places, sources, source, part)? {
                damaged(problem)?;
                left_out.extend(&wanting);
                break;
            }
        }
    }
    Ok(left_out)
}

/// Decompresses the bundle `source` to the outputs in `wanting`. Returns the error of a damaged bundle.
fn decompress_one(
    outputs: &[Output],
    places: &[OutputPlace],
    sources: &Sources,
    source: usize,
    wanting: &[usize],
) -> Result<Option<LlvmToolError>, LlvmToolError> {
    let Some((bundle, file)) = sources.as_compressed(source) else {
        return Ok(None);
    };
    let mut files = Vec::new();
    for index in wanting {
        files.push(opened(&outputs[*index], &places[*index])?);
    }
    let mut parts = Vec::new();
    for (index, file) in wanting.iter().zip(&files) {
        let output = &outputs[*index];
        let mut offset = 0;
        for piece in &output.pieces {
            match piece {
                Piece::Copy { input, range } if *input == source => {
                    parts.push((range.clone(), file, offset, output.path.as_path()));
                }
                _ => {}
            }
            offset += piece.size();
        }
    }
    let name = sources.name(source);
    let compressed = file.stream(bundle.data.clone());
    let mut parts = Parts::new(parts);
    let done = bundle.decompress_from(compressed, &mut parts);
    match parts.failed {
        Some((path, error)) => Err(LlvmToolError::file(path, &error)),
        None => Ok(done
            .err()
            .map(|problem| compression::failed(name, &problem))),
    }
}
