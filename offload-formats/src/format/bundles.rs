//! Bundles that follow each other, compressed or not: what a linker makes of several objects.
//!
//! A linker concatenates the bundles of a section, as a rule at multiples of 4096 and with zeros
//! between them; `cat` puts one right behind the other. Either is read, also mixed. No bundle is
//! searched for: the next one is where the last one ends, so that bytes of an image that look
//! like a bundle are none.
//!
//! | bundle                                     | ends                                          |
//! |--------------------------------------------|-----------------------------------------------|
//! | plain                                      | with its last image, or its headers           |
//! | compressed, versions 2 and 3               | where the size of all says                    |
//! | compressed, version 1, or that size absurd | with its data: the last frame of zstd, the    |
//! |                                            | stream of zlib when that is built in          |
//! | the same, with data that is damaged        | before the next magic at a multiple of 4096   |
//! |                                            | from the start of the range, or with it       |
//!
//! LLVM 22 reads the first bundle only, and refuses what follows a compressed one; its main branch
//! looks for the next magic, also inside of images, and stops where the kind changes.

use std::fmt;
use std::ops::Range;

use super::bundle::{self, Bundle};
use super::bytes::{Alignment, Cursor, ReadAt};
use super::compressed_bundle::{self, CompressedBundle};
use super::magic::Magic;

/// What is decompressed at most to see where data of zlib ends, all bundles of a range together.
const BUDGET: u64 = 1 << 30;

/// A bundle, with its data or images as ranges of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnyBundle {
    /// As it is.
    Plain(Bundle),
    /// Compressed; what is in it is not read.
    Compressed(CompressedBundle),
}

impl AnyBundle {
    /// The bytes of the file that it takes up.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        match self {
            Self::Plain(bundle) => bundle.range(),
            Self::Compressed(bundle) => bundle.range(),
        }
    }
}

/// The bundles that follow each other in a range, and where they end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundles {
    /// In file order.
    pub bundles: Vec<AnyBundle>,
    /// Where something else starts, from the start of the file; the end of the range when
    /// nothing does. Zeros after the last bundle belong to the bundles.
    pub end: u64,
}

/// Reads the bundles at the start of a range of `data`. Bytes of other kinds end them and are
/// left to the caller.
///
/// Of images and compressed data nothing is read, save where an end has to be found. Any input
/// may be given: this does not panic, and allocates at most a small multiple of what it reads.
///
/// # Errors
///
/// When the first one is absent, or a header is damaged.
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
        position = after_zeros(data, bundle.range().end, end);
        bundles.push(bundle);
    }
    Ok(Bundles {
        bundles,
        end: position,
    })
}

/// The first magic behind `from` at a multiple of a page from `start`, or `end`.
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

/// The first place from `position` that is not zero, or `end`.
fn after_zeros<'d, R: ReadAt<'d>>(data: R, mut position: u64, end: u64) -> u64 {
    const STEP: u64 = 0x1000;
    while position < end {
        let mut cursor = Cursor::new(data, position..end);
        let Ok(bytes) = cursor.read(STEP.min(end - position), "padding") else {
            return position;
        };
        if let Some(other) = bytes.iter().position(|byte| *byte != 0) {
            return position + other as u64;
        }
        position = cursor.position();
    }
    position
}

/// Why bytes are not bundles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleSequenceError {
    /// Which of those that follow each other.
    pub index: usize,
    /// What is wrong.
    pub problem: BundleSequenceProblem,
}

/// What is wrong with a bundle. Offsets are from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BundleSequenceProblem {
    /// There is none.
    None {
        /// Where it should start.
        offset: u64,
    },
    /// With a plain one.
    Plain(bundle::BundleError),
    /// With a compressed one.
    Compressed(compressed_bundle::CompressedBundleError),
}

impl fmt::Display for BundleSequenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            // It says which itself.
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
