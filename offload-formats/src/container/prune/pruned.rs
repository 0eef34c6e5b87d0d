//! The new file and its units.

use std::collections::BTreeMap;
use std::ops::Range;

use super::error::PruneError;
use crate::format::pieces::Piece;
use crate::format::unpacked::Unpacked;

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

    /// Returns the archive in the range `old` of a file as a unit of that file.
    pub(super) fn into_unit(self, old: Range<u64>) -> PrunedUnit {
        let start = old.start;
        let pieces = self.pieces.into_iter();
        let copied = self.copied.into_iter();
        PrunedUnit {
            old,
            pieces: pieces.map(|piece| moved(piece, start)).collect(),
            size: self.size,
            alignment: 1,
            copied: copied
                .map(|(old, new)| (old.start + start..old.end + start, new.start))
                .collect(),
        }
    }
}

/// Returns a piece of a part of a file as one of the file.
pub(super) fn moved(piece: Piece, base: u64) -> Piece {
    match piece {
        Piece::Copy { input: 0, range } => Piece::Copy {
            input: 0,
            range: range.start + base..range.end + base,
        },
        piece => piece,
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

/// Number and sizes of images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageSizes {
    /// Number of images.
    pub images: usize,
    /// Bytes in the old file. Images that are compressed together share theirs by their sizes.
    pub stored: u64,
    /// Bytes, unpacked.
    pub unpacked: u64,
}

/// Numbers and sizes of images by target, and units that have no images left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PruneCounts {
    /// Kept images by target.
    pub kept: BTreeMap<String, ImageSizes>,
    /// Removed images by target.
    pub removed: BTreeMap<String, ImageSizes>,
    /// Number of bundles and fat binaries without any image now; they remain, because the program registers them. Fat binaries
    /// whose images had no function or variable do not count.
    pub empty: usize,
    /// Number of bundles and fat binaries whose compression changed.
    pub recompressed: usize,
}

impl PruneCounts {
    /// Returns whether no image is removed or compressed otherwise: the new file is the old one.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.removed.is_empty() && self.recompressed == 0
    }

    /// Tells whether the kept images have the same targets, numbers and unpacked sizes as other ones.
    #[must_use]
    pub fn keeps_like(&self, other: &Self) -> bool {
        let without_stored = |kept: &BTreeMap<String, ImageSizes>| -> Vec<(String, usize, u64)> {
            let kept = kept.iter();
            kept.map(|(target, sizes)| (target.clone(), sizes.images, sizes.unpacked))
                .collect()
        };
        without_stored(&self.kept) == without_stored(&other.kept)
    }

    /// Shares the bytes of a compressed container among its images, by their unpacked sizes.
    pub(super) fn share(&mut self, compressed: u64) {
        let all = || self.kept.values().chain(self.removed.values());
        let whole: u128 = all().map(|sizes| u128::from(sizes.unpacked)).sum();
        for sizes in self.kept.values_mut().chain(self.removed.values_mut()) {
            let part = u128::from(compressed) * u128::from(sizes.unpacked);
            let part = part.checked_div(whole).unwrap_or(0);
            sizes.stored = u64::try_from(part).map_or(compressed, |part| part.min(compressed));
        }
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
            for (target, sizes) in others {
                map.entry(target.clone()).or_default().add(*sizes);
            }
        }
    }

    /// Adds an image.
    pub(super) fn add(&mut self, target: &str, stored: u64, unpacked: u64, is_kept: bool) {
        let map = match is_kept {
            true => &mut self.kept,
            false => &mut self.removed,
        };
        let image = ImageSizes {
            images: 1,
            stored,
            unpacked,
        };
        map.entry(target.to_owned()).or_default().add(image);
    }
}

impl ImageSizes {
    fn add(&mut self, other: Self) {
        self.images += other.images;
        self.stored = self.stored.saturating_add(other.stored);
        self.unpacked = self.unpacked.saturating_add(other.unpacked);
    }
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
