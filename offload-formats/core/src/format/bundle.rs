//! The bundle: the images made from one source file, each under an entry ID.
//!
//! | offset | size | field                                            |
//! |-------:|-----:|--------------------------------------------------|
//! | `0x00` |   24 | magic, `__CLANG_OFFLOAD_BUNDLE__`                |
//! | `0x18` |    8 | number of entries                                |
//! |        |      | then an entry header for each:                   |
//! |   `+0` |    8 | offset of the image from the start of the bundle |
//! |   `+8` |    8 | size of the image                                |
//! |  `+16` |    8 | length *n* of the entry ID                       |
//! |  `+24` |  *n* | entry ID, no NUL                                 |
//!
//! Integers are little-endian. The images follow the headers, in entry order, each at a multiple
//! of the writer's alignment, which the file does not record.
//!
//! Linkers concatenate bundles, with zeros between them: [`bundles`](super::bundles) reads them
//! all. The file does not record the end of a bundle; it is the end of the last image, or of the
//! headers.
//!
//! Specification: <https://clang.llvm.org/docs/ClangOffloadBundler.html#bundled-binary-file-layout>.
//! LLVM 22 reads only the first bundle, ignores one whose first header is damaged, and crashes on
//! other damage. Of two entries with the same ID it returns one. This module reads all bundles,
//! reports damage as an error, and keeps both entries.

mod error;

use std::num::NonZeroU64;
use std::ops::Range;

use super::bytes::{Cursor, OutOfBounds, ReadAt, field, record};
use super::magic;
use super::pieces::Piece;

pub use error::{BundleError, BundleProblem, BundleWriteError};

record! {
    pub(crate) struct BundleHeader, "header", 32 bytes {
        0x00 magic: [u8; 24],
        0x18 entry_count: u64,
    }
}

record! {
    pub(crate) struct EntryHeader, "entry header", 24 bytes {
        0x00 image_offset: u64,
        0x08 image_size: u64,
        0x10 id_len: u64,
    }
}

/// A bundle in a file. Images are ranges of that file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bundle {
    /// Offset from the start of the file.
    pub offset: u64,
    /// Size in bytes, up to the end of the last image, or of the headers.
    pub size: u64,
    /// Entries in file order, which is the order of `-targets` when the bundle was written.
    pub entries: Vec<BundleEntry>,
}

/// An image in a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BundleEntry {
    /// Entry ID as written, perhaps invalid. [`EntryId::parse`](crate::names::EntryId::parse) reads
    /// the IDs that any release wrote.
    pub id: String,
    /// Range from the start of the file. Ranges may overlap; LLVM accepts that too.
    pub image: Range<u64>,
}

impl Bundle {
    /// Reads the bundle at `offset` of `data`. Ignores data after the bundle, and at `end` and
    /// later.
    ///
    /// Accepts any input: this does not panic, and allocates at most a small multiple of what it
    /// reads. It does not read the images.
    ///
    /// # Errors
    ///
    /// Fails if the magic is missing, an ID is not UTF-8, or anything exceeds `offset..end`.
    pub fn parse<'d, R: ReadAt<'d>>(data: R, offset: u64, end: u64) -> Result<Self, BundleError> {
        parse(data, offset, end).map_err(|(entry, problem)| BundleError {
            index: 0,
            entry,
            problem,
        })
    }

    /// Returns its range in the file.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.size)
    }
}

type BundleResult<T> = Result<T, (Option<u64>, BundleProblem)>;

fn parse<'d, R: ReadAt<'d>>(data: R, offset: u64, end: u64) -> BundleResult<Bundle> {
    let whole = |problem| (None, BundleProblem::Outside(problem));
    let mut cursor = Cursor::new(data, offset..end);
    let start = field(&mut cursor.clone(), "magic of header").map_err(whole)?;
    if start != magic::BUNDLE {
        let found = start;
        return Err((None, BundleProblem::Magic { offset, found }));
    }
    let header = BundleHeader::read(&mut cursor).map_err(whole)?;
    let mut entries = Vec::new();
    let mut last = 0;
    // The count is not trusted, so it sizes no allocation.
    for index in 0..header.entry_count {
        let outside = |problem| (Some(index), BundleProblem::Outside(problem));
        let record = EntryHeader::read(&mut cursor).map_err(outside)?;
        let id_offset = cursor.position();
        let id = cursor.read(record.id_len, "entry ID").map_err(outside)?;
        let id = std::str::from_utf8(id);
        let id = id.map_err(|_| (Some(index), BundleProblem::NotText { offset: id_offset }))?;
        if record.image_offset == 0 {
            return Err((Some(index), BundleProblem::NoImageOffset { offset }));
        }
        let image_offset = offset.saturating_add(record.image_offset);
        let image = OutOfBounds::check("image", image_offset, record.image_size, cursor.end());
        let image = image.map_err(outside)?;
        last = image.end.max(last);
        let id = id.to_owned();
        entries.push(BundleEntry { id, image });
    }
    let size = cursor.position().max(last).saturating_sub(offset);
    Ok(Bundle {
        offset,
        size,
        entries,
    })
}

/// An image in memory, to be bundled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleImage<'a> {
    /// Entry ID, written unchanged. [`EntryId`](crate::names::EntryId) displays IDs as LLVM 22 writes them.
    pub id: &'a str,
    /// Bytes of the image.
    pub image: &'a [u8],
}

/// Writes a bundle, each image at a multiple of `align`. As in LLVM's output, padding also precedes
/// an empty last image.
///
/// # Errors
///
/// Fails if two images have the same ID. LLVM writes such bundles with wrong offsets.
pub fn to_bytes(
    images: &[BundleImage<'_>],
    align: NonZeroU64,
) -> Result<Vec<u8>, BundleWriteError> {
    let sizes = images
        .iter()
        .map(|image| (image.id, image.image.len() as u64));
    let BundleLayout {
        head: mut bytes,
        images: places,
    } = BundleLayout::new(sizes, align)?;
    let mut position = bytes.len() as u64;
    for (place, image) in places.iter().zip(images) {
        bytes.extend((position..place.start).map(|_| 0));
        bytes.extend_from_slice(image.image);
        position = place.end;
    }
    Ok(bytes)
}

/// Layout of a bundle, for callers that copy the images from file to file: first [`Self::head`],
/// then each image at its offset, with zeros between them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BundleLayout {
    /// The header and the entry headers.
    pub head: Vec<u8>,
    /// Ranges from the start of the bundle, in the given order. They do not overlap and ascend.
    pub images: Vec<Range<u64>>,
}

impl BundleLayout {
    /// Lays out images with these IDs and sizes, each at a multiple of `align`, which need not be a
    /// power of two.
    ///
    /// # Errors
    ///
    /// Fails if two IDs are equal, or the images are too large for a file.
    pub fn new<'a>(
        images: impl IntoIterator<Item = (&'a str, u64)>,
        align: NonZeroU64,
    ) -> Result<Self, BundleWriteError> {
        let given: Vec<(&str, u64)> = images.into_iter().collect();
        let mut ids: Vec<&str> = given.iter().map(|(id, _)| *id).collect();
        ids.sort_unstable();
        if let Some(id) = ids.windows(2).find_map(|pair| match pair {
            [first, second] if first == second => Some((*first).to_owned()),
            _ => None,
        }) {
            return Err(BundleWriteError::Twice { id });
        }
        // IDs are in memory, so their sizes cannot overflow; the sizes of the images can.
        let ids = given
            .iter()
            .map(|(id, _)| EntryHeader::LEN + id.len() as u64);
        let mut position = BundleHeader::LEN + ids.sum::<u64>();

        let (mut head, mut images) = (Vec::new(), Vec::new());
        BundleHeader {
            magic: magic::BUNDLE,
            entry_count: given.len() as u64,
        }
        .write(&mut head);
        for (id, image_size) in given {
            let place = position
                .checked_next_multiple_of(align.get())
                .and_then(|start| Some(start..start.checked_add(image_size)?));
            let place = place.ok_or_else(|| BundleWriteError::TooLarge { id: id.to_owned() })?;
            EntryHeader {
                image_offset: place.start,
                image_size,
                id_len: id.len() as u64,
            }
            .write(&mut head);
            head.extend_from_slice(id.as_bytes());
            position = place.end;
            images.push(place);
        }
        Ok(Self { head, images })
    }

    /// Returns the bundle in pieces; input *k* is the image with index *k*.
    #[must_use]
    pub fn pieces(&self) -> Vec<Piece> {
        let mut position = self.head.len() as u64;
        let mut pieces = vec![Piece::Bytes(self.head.clone())];
        for (input, place) in self.images.iter().enumerate() {
            pieces.push(Piece::Zeros(place.start.saturating_sub(position)));
            pieces.push(Piece::Copy {
                input,
                range: 0..place.end.saturating_sub(place.start),
            });
            position = place.end;
        }
        pieces
    }

    /// Returns the size of the whole bundle.
    #[must_use]
    pub fn size(&self) -> u64 {
        let last = self.images.last().map(|image| image.end);
        last.unwrap_or(self.head.len() as u64)
    }
}

#[cfg(test)]
mod tests;
