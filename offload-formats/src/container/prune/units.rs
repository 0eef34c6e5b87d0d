//! The bundles and fat binaries of a section or file, and their replacements.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::ops::Range;

use super::choice::PruneChoice;
use super::error::{PruneError, PruneProblem};
use super::job::PruneJob;
use super::recompress::{compressed_copy, recompressed};
use crate::container::large;
use crate::format::bundle::{Bundle, BundleLayout};
use crate::format::bundles::{self, AnyBundle};
use crate::format::bytes::{Cursor, ReadAt};
use crate::format::compressed_bundle::{CompressedBundle, Compression};
use crate::format::fatbin::{self, FatbinEntry, FatbinHeader, FatbinKind, FoundFatbin};
use crate::format::magic::Magic;
use crate::format::pieces::{Piece, PieceSource};
use crate::format::unpacked::Unpacked;
use crate::names::{EntryId, EntryKind};

/// Alignment of bundles in sections, and of the images in them: the HIP runtime maps them.
const PAGE: u64 = 0x1000;
/// Alignment of CUDA's fat binaries.
const FATBIN_ALIGNMENT: u64 = 8;

/// Sections of bundles and fat binaries.
pub(super) const UNIT_SECTIONS: [&str; 3] = [".hip_fatbin", ".nv_fatbin", "__nv_relfatbin"];

/// Tells whether a section has bundles or fat binaries: one of [`UNIT_SECTIONS`], or its large form.
pub(super) fn is_unit_section(name: &[u8]) -> bool {
    let mut usual = UNIT_SECTIONS.iter();
    usual.any(|usual| large::is_called(name, usual.as_bytes()))
}

/// A pruned file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrunedFile {
    /// The new file. Input 0 is the old one, input 1 the scratch.
    pub pieces: Vec<Piece>,
    /// Size of the new file in bytes.
    pub size: u64,
    /// Kept and removed images.
    pub counts: PruneCounts,
    /// Images that were copied: their ranges in the old and in the new file.
    pub copied: Vec<(Range<u64>, Range<u64>)>,
    /// Archive members, and sections of a linked file, that stay as they are, because their images are of a kind that
    /// is not pruned.
    pub left: Vec<PruneError>,
}

impl PrunedFile {
    /// Returns a file of that size, from which nothing is removed.
    pub(super) fn unchanged(
        size: u64,
        units: impl Iterator<Item = PrunedUnit>,
        counts: PruneCounts,
    ) -> Self {
        let copied = units.flat_map(|unit| unit.copied);
        Self {
            pieces: vec![Piece::Copy {
                input: 0,
                range: 0..size,
            }],
            size,
            counts,
            copied: copied.map(|(old, _)| (old.clone(), old)).collect(),
            left: Vec::new(),
        }
    }
}

/// A bundle or a fat binary, which a wrapper registers, or an offload binary.
#[derive(Debug)]
pub(super) struct PrunedUnit {
    /// Range in the old file.
    pub old: Range<u64>,
    /// Its replacement. Input 0 is the old file, input 1 the scratch.
    pub pieces: Vec<Piece>,
    /// Size of the replacement in bytes.
    pub size: u64,
    /// Alignment of its address.
    pub alignment: u64,
    /// Images that are copied: range in the old file, and offset from the start of the replacement.
    pub copied: Vec<(Range<u64>, u64)>,
}

/// Numbers and sizes of images by target, and units that have no images left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PruneCounts {
    /// Number and bytes of kept images, unpacked, by target.
    pub kept: BTreeMap<String, (usize, u64)>,
    /// Number and bytes of removed images, unpacked, by target.
    pub removed: BTreeMap<String, (usize, u64)>,
    /// Number of bundles and fat binaries without any image now; they remain, because the program registers them.
    pub empty: usize,
    /// Number of bundles whose compression changed.
    pub recompressed: usize,
}

impl PruneCounts {
    /// Returns whether no image is removed and no bundle recompressed: the new file is the old one.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.removed.is_empty() && self.recompressed == 0
    }

    /// Adds the counts of another part.
    pub fn append(&mut self, other: &Self) {
        self.empty += other.empty;
        self.recompressed += other.recompressed;
        let maps = [
            (&mut self.kept, &other.kept),
            (&mut self.removed, &other.removed),
        ];
        for (map, others) in maps {
            for (target, (count, bytes)) in others {
                let (all, size) = map.entry(target.clone()).or_default();
                *all += count;
                *size = size.saturating_add(*bytes);
            }
        }
    }

    pub(super) fn add(&mut self, target: &str, size: u64, is_kept: bool) {
        let map = match is_kept {
            true => &mut self.kept,
            false => &mut self.removed,
        };
        let (count, bytes) = map.entry(target.to_owned()).or_default();
        *count += 1;
        *bytes = bytes.saturating_add(size);
    }
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
            fatbin_unit(data, &found, job.choice, counts)
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
        Ok(id) if !id.target_id().is_empty() => counts.add(id.target_id(), size, is_kept),
        _ => counts.add(id, size, is_kept),
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
    let content = compressed.unpack(data, job.limit, &job.scratch.another());
    let content = content.map_err(PruneProblem::Compressed)?;
    let bundle = Bundle::parse(&content.open(), 0, content.size()).map_err(PruneProblem::Bundle)?;
    let plain = plain_unit(&bundle, job.choice, counts)?;
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

/// Returns a unit whose replacement is in the scratch.
pub(super) fn new_unit(old: Range<u64>, new: &Unpacked, alignment: u64) -> PrunedUnit {
    PrunedUnit {
        old,
        pieces: vec![Piece::Copy {
            input: 1,
            range: new.range(),
        }],
        size: new.size(),
        alignment,
        copied: Vec::new(),
    }
}

fn fatbin_unit<'d, R: ReadAt<'d>>(
    data: R,
    found: &FoundFatbin,
    choice: &PruneChoice,
    counts: &mut PruneCounts,
) -> Result<PrunedUnit, PruneProblem> {
    let old = found.range.clone();
    let header = FatbinHeader::read(&mut Cursor::new(data, old.clone()));
    let header = header.map_err(PruneProblem::Outside)?;
    let start = FatbinHeader::LEN;
    if u64::from(header.header_size) != start {
        return Err(PruneProblem::FatbinHeader { offset: old.start });
    }
    let keep = choice.keeps_fatbin(&found.entries);
    let mut kept = Vec::new();
    let mut position = old.start.saturating_add(start);
    for (entries, keeps) in groups(&found.entries, &keep) {
        let image = entries.first().expect("a group has an image");
        let range = position..image.image.end;
        position = range.end;
        // A group is compressed as a whole.
        let is_kept = keeps.contains(&true);
        for entry in entries {
            let name = match entry.kind {
                FatbinKind::Ptx => entry.processor.replacen("sm_", "compute_", 1),
                _ => entry.processor.clone(),
            };
            counts.add(&name, entry.uncompressed_size, is_kept);
        }
        if is_kept {
            kept.push((range, image.image.clone()));
        }
    }
    let size = kept.iter().map(|(range, _)| range.end - range.start);
    let size: u64 = size.sum();
    if kept.is_empty() && !found.entries.is_empty() {
        counts.empty += 1;
    }
    let mut head = Vec::new();
    FatbinHeader { size, ..header }.write(&mut head);
    let (mut pieces, mut copied, mut place) = (vec![Piece::Bytes(head)], Vec::new(), start);
    for (range, image) in kept {
        copied.push((image.clone(), place + (image.start - range.start)));
        place += range.end - range.start;
        pieces.push(Piece::Copy { input: 0, range });
    }
    Ok(PrunedUnit {
        old,
        pieces,
        size: place,
        alignment: FATBIN_ALIGNMENT,
        copied,
    })
}

/// Divides entries into those with the same stored bytes.
fn groups<'a>(
    entries: &'a [FatbinEntry],
    keep: &'a [bool],
) -> impl Iterator<Item = (&'a [FatbinEntry], &'a [bool])> {
    let mut start = 0;
    let groups = entries.chunk_by(|one, two| one.image == two.image);
    groups.map(move |group| {
        let end = start + group.len();
        let kept = keep.get(start..end).expect("there is one for each entry");
        start = end;
        (group, kept)
    })
}
