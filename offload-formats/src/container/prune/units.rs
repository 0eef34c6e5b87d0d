//! The bundles and fat binaries of a section or file, and their replacements.

use std::num::NonZeroU64;
use std::ops::Range;

use super::choice::PruneChoice;
use super::error::PruneProblem;
use super::fatbins::fatbin_unit;
use super::job::PruneJob;
use super::pruned::{PruneCounts, PrunedUnit, new_unit};
use super::recompress::{compressed_copy, recompressed};
use crate::container::large;
use crate::format::bundle::{Bundle, BundleLayout};
use crate::format::bundles::{self, AnyBundle};
use crate::format::bytes::ReadAt;
use crate::format::compressed_bundle::{CompressedBundle, Compression};
use crate::format::fatbin;
use crate::format::magic::Magic;
use crate::format::pieces::{Piece, PieceSource};
use crate::names::{EntryId, EntryKind};

/// Alignment of bundles in sections, and of the images in them: the HIP runtime maps them.
const PAGE: u64 = 0x1000;

/// Sections of bundles and fat binaries.
pub(super) const UNIT_SECTIONS: [&str; 3] = [".hip_fatbin", ".nv_fatbin", "__nv_relfatbin"];

/// Tells whether a section has bundles or fat binaries: one of [`UNIT_SECTIONS`], or its large form.
pub(super) fn is_unit_section(name: &[u8]) -> bool {
    let mut usual = UNIT_SECTIONS.iter();
    usual.any(|usual| large::is_called(name, usual.as_bytes()))
}

/// Reads the units of a range and makes their replacements.
pub(super) fn units<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    job: PruneJob<'_>,
    counts: &mut PruneCounts,
) -> Result<Vec<PrunedUnit>, PruneProblem> {
    if Magic::at(data, range.clone()) == Magic::Fatbin {
        let fatbins = fatbin::walk(data, range);
        let units = fatbins.map(|found| {
            let found = found.map_err(PruneProblem::Fatbin)?;
            fatbin_unit(data, &found, job, counts)
        });
        return units.collect();
    }
    let end = range.end;
    let walked = bundles::walk(data, range).map_err(PruneProblem::Bundles)?;
    if walked.end < end {
        let (offset, size) = (walked.end, end - walked.end);
        return Err(PruneProblem::Trailing { offset, size });
    }
    let units = walked.bundles.into_iter().map(|bundle| {
        let unit = unit(data, bundle, job, counts)?;
        let Some(how) = job.choice.recompression() else {
            return Ok(unit);
        };
        let new = recompressed(data, &unit.old, how, job)?;
        counts.recompressed += usize::from(new.is_some());
        Ok(match new {
            None => unit,
            Some(new) => new_unit(unit.old, &new, unit.alignment),
        })
    });
    units.collect()
}

/// Returns the replacement of a bundle, without the images that are removed.
fn unit<'d, R: ReadAt<'d>>(
    data: R,
    bundle: AnyBundle,
    job: PruneJob<'_>,
    counts: &mut PruneCounts,
) -> Result<PrunedUnit, PruneProblem> {
    match bundle {
        AnyBundle::Plain(bundle) => plain_unit(&bundle, job.choice, counts),
        AnyBundle::Compressed(bundle) => compressed_unit(data, &bundle, job, counts),
    }
}

/// Counts an entry, and tells whether it is kept.
fn keep_entry(id: &str, size: u64, choice: &PruneChoice, counts: &mut PruneCounts) -> bool {
    let is_kept = choice.keeps_entry(id);
    match EntryId::parse(id) {
        Ok(id) if id.kind() == EntryKind::Host => {}
        Ok(id) if !id.target_id().is_empty() => counts.add(id.target_id(), size, size, is_kept),
        _ => counts.add(id, size, size, is_kept),
    }
    is_kept
}

fn is_host(id: &str) -> bool {
    EntryId::parse(id).is_ok_and(|id| id.kind() == EntryKind::Host)
}

/// Returns the alignment of a bundle's images: a page if all of them have it.
fn alignment(bundle: &Bundle) -> NonZeroU64 {
    let is_aligned = |start: u64| start.saturating_sub(bundle.offset) % PAGE == 0;
    let mut entries = bundle.entries.iter();
    let align = match entries.all(|entry| entry.image.is_empty() || is_aligned(entry.image.start)) {
        true => PAGE,
        false => 8,
    };
    NonZeroU64::new(align).expect("neither is 0")
}

fn plain_unit(
    bundle: &Bundle,
    choice: &PruneChoice,
    counts: &mut PruneCounts,
) -> Result<PrunedUnit, PruneProblem> {
    let all = bundle.entries.len();
    let kept: Vec<_> = bundle
        .entries
        .iter()
        .filter(|entry| {
            let size = entry.image.end.saturating_sub(entry.image.start);
            keep_entry(&entry.id, size, choice, counts)
        })
        .collect();
    if kept.len() == all {
        let old = bundle.range();
        let copied = kept.iter().map(|entry| {
            let place = entry.image.start.saturating_sub(old.start);
            (entry.image.clone(), place)
        });
        return Ok(PrunedUnit {
            copied: copied.collect(),
            ..whole(old, PAGE)
        });
    }
    if kept.iter().all(|entry| is_host(&entry.id)) {
        counts.empty += 1;
    }
    let sizes = kept.iter().map(|entry| {
        let size = entry.image.end.saturating_sub(entry.image.start);
        (entry.id.as_str(), size)
    });
    let layout = BundleLayout::new(sizes, alignment(bundle)).map_err(PruneProblem::Write)?;
    let (mut size, mut copied) = (layout.head.len() as u64, Vec::new());
    let mut pieces = vec![Piece::Bytes(layout.head)];
    for (entry, place) in kept.iter().zip(layout.images) {
        pieces.push(Piece::Zeros(place.start.saturating_sub(size)));
        pieces.push(Piece::Copy {
            input: 0,
            range: entry.image.clone(),
        });
        copied.push((entry.image.clone(), place.start));
        size = place.end;
    }
    Ok(PrunedUnit {
        old: bundle.range(),
        pieces,
        size,
        alignment: PAGE,
        copied,
    })
}

/// Returns a unit that stays as it is.
fn whole(old: Range<u64>, alignment: u64) -> PrunedUnit {
    PrunedUnit {
        pieces: vec![Piece::Copy {
            input: 0,
            range: old.clone(),
        }],
        size: old.end.saturating_sub(old.start),
        old,
        alignment,
        copied: Vec::new(),
    }
}

fn compressed_unit<'d, R: ReadAt<'d>>(
    data: R,
    compressed: &CompressedBundle,
    job: PruneJob<'_>,
    counts: &mut PruneCounts,
) -> Result<PrunedUnit, PruneProblem> {
    let content = compressed.unpack(data, job.limit.files(), &job.scratch.another());
    let content = content.map_err(PruneProblem::Compressed)?;
    let bundle = Bundle::parse(&content.open(), 0, content.size()).map_err(PruneProblem::Bundle)?;
    let mut inside = PruneCounts::default();
    let plain = plain_unit(&bundle, job.choice, &mut inside)?;
    let range = compressed.range();
    inside.share(range.end.saturating_sub(range.start));
    counts.append(&inside);
    if plain.copied.len() == bundle.entries.len() {
        return Ok(whole(compressed.range(), PAGE));
    }
    let how = Compression {
        version: compressed.version,
        method: compressed.method,
        ..Compression::default()
    };
    let bytes = PieceSource::new(plain.pieces, vec![content.source()]);
    let new = compressed_copy(job, how, plain.size, bytes)?;
    Ok(new_unit(compressed.range(), &new, PAGE))
}
