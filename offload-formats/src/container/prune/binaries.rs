//! Offload binaries and their replacements.

use std::ops::Range;

use super::choice::PruneChoice;
use super::error::PruneProblem;
use super::job::PruneJob;
use super::pruned::{PruneCounts, PrunedUnit, new_unit};
use crate::format::bytes::ReadAt;
use crate::format::offload_binary::{
    self, BinaryEntry, NewBinaryEntry, OffloadBinary, OffloadBinaryVersion,
};
use crate::format::pieces::{self, Piece, PieceSource};
use crate::format::ptx;
use crate::format::unpacked::{Scratch, Unpacked};
use crate::names::LlvmRelease;

/// Alignment of offload binaries in sections.
const ALIGNMENT: u64 = 8;

/// Reads the offload binaries of a range and makes their replacements; one without images is removed.
pub(super) fn binary_units<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    job: PruneJob<'_>,
    counts: &mut PruneCounts,
) -> Result<Vec<PrunedUnit>, PruneProblem> {
    let binaries = offload_binary::walk(data, range).map_err(PruneProblem::OffloadBinary)?;
    // Those of version 1 have one image each, and an image may replace that in another one.
    let (mut unpacked, contents) = (Vec::new(), job.scratch.another());
    for binary in &binaries {
        unpacked.push(match &binary.compressed {
            Some(_) => {
                let content = binary.unpack(data, job.limit.files(), &contents);
                Some(content.map_err(PruneProblem::Inflate)?)
            }
            None => None,
        });
    }
    let mut wholes = Vec::new();
    for (binary, bytes) in binaries.iter().zip(&unpacked) {
        wholes.push(match bytes {
            Some(bytes) => OffloadBinary::parse(&bytes.open(), 0, bytes.size())
                .map_err(PruneProblem::OffloadBinary)?,
            None => binary.clone(),
        });
    }
    let entries = wholes.iter().flat_map(|whole| &whole.entries);
    let processors: Vec<&str> = entries.map(BinaryEntry::arch).collect();
    let mut units = Vec::new();
    for ((binary, whole), bytes) in binaries.iter().zip(&wholes).zip(&unpacked) {
        let keep: Vec<bool> = match bytes {
            Some(bytes) => keep(&bytes.open(), whole, job.choice, &processors),
            None => keep(data, whole, job.choice, &processors),
        };
        let mut inside = PruneCounts::default();
        for (entry, is_kept) in whole.entries.iter().zip(&keep) {
            let name = match (entry.arch(), entry.triple()) {
                ("", triple) => triple,
                (arch, _) => arch,
            };
            let size = entry.image.end.saturating_sub(entry.image.start);
            inside.add(name, size, size, *is_kept);
        }
        if binary.compressed.is_some() {
            let range = binary.range();
            inside.share(range.end.saturating_sub(range.start));
        }
        counts.append(&inside);
        units.push(unit(binary, whole, bytes.as_ref(), &keep, job.scratch)?);
    }
    Ok(units)
}

fn keep<'d, R: ReadAt<'d>>(
    data: R,
    binary: &OffloadBinary,
    choice: &PruneChoice,
    processors: &[&str],
) -> Vec<bool> {
    let keep = binary.entries.iter().map(|entry| {
        let size = entry.image.end.saturating_sub(entry.image.start);
        let head = data.read_at(entry.image.start, size.min(4096));
        let is_ptx = head.is_some_and(ptx::is_start);
        match entry.arch() {
            // Code for a CPU, or for any GPU.
            "" | "generic" => choice.keeps_triple(entry.triple()),
            arch => choice.keeps_binary_entry(arch, is_ptx, processors),
        }
    });
    keep.collect()
}

/// Returns the replacement of an offload binary; `bytes` is its content if it is compressed.
fn unit(
    binary: &OffloadBinary,
    whole: &OffloadBinary,
    bytes: Option<&Unpacked>,
    keep: &[bool],
    scratch: &Scratch,
) -> Result<PrunedUnit, PruneProblem> {
    let old = binary.range();
    if !keep.contains(&false) {
        let copied = binary.entries.iter().map(|entry| {
            let place = entry.image.start.saturating_sub(old.start);
            (entry.image.clone(), place)
        });
        return Ok(PrunedUnit {
            pieces: vec![Piece::Copy {
                input: 0,
                range: old.clone(),
            }],
            size: old.end.saturating_sub(old.start),
            alignment: ALIGNMENT,
            copied: copied.collect(),
            old,
        });
    }
    let entries = whole.entries.iter().zip(keep);
    let kept: Vec<&BinaryEntry> = entries
        .filter(|(_, keep)| **keep)
        .map(|(entry, _)| entry)
        .collect();
    let mut unit = PrunedUnit {
        old,
        pieces: Vec::new(),
        size: 0,
        alignment: ALIGNMENT,
        copied: Vec::new(),
    };
    if kept.is_empty() {
        return Ok(unit);
    }
    let pieces = written(&kept, whole.version)?;
    match (bytes, &binary.compressed) {
        (Some(bytes), Some(compressed)) => {
            let size = pieces::size(&pieces);
            let plain = PieceSource::new(pieces, vec![bytes.source()]);
            let new = scratch.keep_written(|out| {
                offload_binary::compress_to(plain, size, compressed.method, None, out)
                    .map_err(PruneProblem::WriteBinary)
            });
            return Ok(new_unit(unit.old, &new?, ALIGNMENT));
        }
        _ => {
            let mut place = 0;
            for piece in &pieces {
                if let Piece::Copy { range, .. } = piece {
                    unit.copied.push((range.clone(), place));
                }
                place += piece.size();
            }
            unit.pieces = pieces;
        }
    }
    unit.size = unit.pieces.iter().map(Piece::size).sum();
    Ok(unit)
}

/// Returns an offload binary with these entries; input 0 of the pieces has the images.
fn written(
    kept: &[&BinaryEntry],
    version: OffloadBinaryVersion,
) -> Result<Vec<Piece>, PruneProblem> {
    let strings: Vec<Vec<(&[u8], &[u8])>> = kept
        .iter()
        .map(|entry| entry.strings.iter().collect())
        .collect();
    let entries: Vec<NewBinaryEntry<'_>> = kept
        .iter()
        .zip(&strings)
        .map(|(entry, strings)| NewBinaryEntry {
            image_kind: entry.image_kind,
            offload_kind: entry.offload_kind,
            flags: entry.flags,
            strings,
            image_size: entry.image.end.saturating_sub(entry.image.start),
        })
        .collect();
    // Several images are only in version 2 and later, which releases with today's numbers of kinds write.
    let pieces = offload_binary::layout(&entries, version, LlvmRelease::V23);
    let pieces = pieces.map_err(PruneProblem::WriteBinary)?.into_iter();
    let pieces = pieces.map(|piece| match piece {
        Piece::Copy { input, .. } => Piece::Copy {
            input: 0,
            range: kept.get(input).map_or(0..0, |entry| entry.image.clone()),
        },
        piece => piece,
    });
    Ok(pieces.collect())
}
