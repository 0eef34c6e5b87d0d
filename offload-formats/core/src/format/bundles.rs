//! Consecutive bundles, compressed or not, as linkers make them of several objects.
//!
//! A linker concatenates the bundles of a section, usually at multiples of 4096 with zeros between
//! them; `cat` adds no padding. Both forms are read, also mixed. The next bundle starts where the
//! last one ends. No search is involved, so bytes of an image that look like a bundle do no harm.
//!
//! | bundle                                     | ends                                          |
//! |--------------------------------------------|-----------------------------------------------|
//! | plain                                      | with its last image, or its headers           |
//! | compressed, versions 2 and 3               | at its total size                             |
//! | compressed, version 1 or size impossible   | with its data: the last frame of zstd, the    |
//! |                                            | stream of zlib if that is built in            |
//! | the same, with data that is damaged        | before the next magic at a multiple of 4096   |
//! |                                            | from the start of the range, or with it       |
//!
//! LLVM 22 reads only the first bundle, and rejects data after a compressed one. Its main branch
//! searches for the next magic, even inside of images, and stops where the kind changes.

use std::fmt;
use std::ops::Range;

use super::bundle::{self, Bundle};
use super::bytes::{Alignment, Cursor, ReadAt};
use super::compressed_bundle::{self, CompressedBundle};
use super::magic::Magic;

/// Maximum number of bytes that are decompressed to find the ends of zlib data, for all bundles of
/// a range.
const BUDGET: u64 = 1 << 30;

/// A bundle, with its data or images as ranges of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnyBundle {
    /// A plain bundle.
    Plain(Bundle),
    /// A compressed bundle, not decompressed.
    Compressed(CompressedBundle),
}

impl AnyBundle {
    /// Returns its range in the file.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        match self {
            Self::Plain(bundle) => bundle.range(),
            Self::Compressed(bundle) => bundle.range(),
        }
    }
}

/// The consecutive bundles of a range, and their end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bundles {
    /// Bundles in file order.
    pub bundles: Vec<AnyBundle>,
    /// Offset of the first other data, or the end of the range. Zeros after the last bundle belong
    /// to the bundles.
    pub end: u64,
}

/// Reads the bundles at the start of a range of `data`, up to the first other data.
///
/// Reads images and compressed data only if an end has to be found. Accepts any input: this does
/// not panic, and allocates at most a small multiple of what it reads.
///
/// # Errors
///
/// Fails if the range does not start with a bundle, or a header is damaged.
pub fn walk<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Result<Bundles, BundleSequenceError> {
    let end = Cursor::new(data, range.clone()).end();
    let (mut bundles, mut position) = (Vec::new(), range.start);
    let mut budget = BUDGET;
    loop {
        let index = bundles.len();
        let bundle = match Magic::at(data, position..end) {
            Magic::Bundle => Bundle::parse(data, position, end)
                .map(AnyBundle::Plain)
                .map_err(|problem| {
                    BundleSequenceProblem::Plain(bundle::BundleError { index, ..problem })
                }),
            Magic::CompressedBundle => {
                let boundary = |from| next_magic(data, range.start, from, end);
                CompressedBundle::parse_in_sequence(data, position, end, &mut budget, boundary)
                    .map(AnyBundle::Compressed)
                    .map_err(BundleSequenceProblem::Compressed)
            }
            _ if bundles.is_empty() => Err(BundleSequenceProblem::None { offset: position }),
            _ => break,
        };
        let bundle = bundle.map_err(|problem| BundleSequenceError { index, problem })?;
        position = Cursor::new(data, bundle.range().end..end).after_zeros(0x1000);
        bundles.push(bundle);
    }
    Ok(Bundles {
        bundles,
        end: position,
    })
}

/// Returns the offset of the first magic after `from` at a multiple of 4096 from `start`, or `end`.
fn next_magic<'d, R: ReadAt<'d>>(data: R, start: u64, from: u64, end: u64) -> u64 {
    const PAGE: Option<Alignment> = Alignment::new(0x1000);
    let next = |position: u64| {
        let distance = PAGE?.align(position.checked_sub(start)?.checked_add(1)?)?;
        start.checked_add(distance).filter(|next| *next < end)
    };
    let is_magic = |position: &u64| {
        let magic = Magic::at(data, *position..end);
        matches!(magic, Magic::Bundle | Magic::CompressedBundle)
    };
    let pages = std::iter::successors(next(from), |position| next(*position));
    pages.into_iter().find(is_magic).unwrap_or(end)
}

/// An error in consecutive bundles.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BundleSequenceError {
    /// Index of the bundle.
    pub index: usize,
    /// Cause of the error.
    pub problem: BundleSequenceProblem,
}

/// Cause of a [`BundleSequenceError`]. Offsets are from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BundleSequenceProblem {
    /// There is no bundle.
    None {
        /// Expected offset of the bundle.
        offset: u64,
    },
    /// A plain bundle is damaged.
    Plain(bundle::BundleError),
    /// A compressed bundle is damaged.
    Compressed(compressed_bundle::CompressedBundleError),
}

impl fmt::Display for BundleSequenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            // It contains the index.
            BundleSequenceProblem::Plain(problem) => problem.fmt(f),
            problem => write!(f, "bundle {}: {problem}", self.index),
        }
    }
}

impl fmt::Display for BundleSequenceProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None { offset } => write!(f, "expected a bundle at offset {offset:#x}"),
            Self::Plain(problem) => problem.fmt(f),
            Self::Compressed(problem) => problem.fmt(f),
        }
    }
}

impl std::error::Error for BundleSequenceError {}
impl std::error::Error for BundleSequenceProblem {}

#[cfg(test)]
mod tests;
