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
//! all. Where a bundle ends is not in the file either; it is where the last image ends, or the
//! headers.
//!
//! Specification: <https://clang.llvm.org/docs/ClangOffloadBundler.html#bundled-binary-file-layout>.
//! LLVM 22 reads the first bundle only, takes one whose first header is damaged for no bundle at
//! all, crashes on other damage, and gives one of two entries with the same ID. Here all are
//! read, damage is an error, and both entries are kept.

mod error;

use std::num::NonZeroU64;
use std::ops::Range;

use super::bytes::{Cursor, OutOfBounds, ReadAt, field, record};
use super::magic;

pub use error::{BundleError, BundleProblem, BundleWriteError};

record! {
    struct BundleHeader, "header", 32 bytes {
        0x00 magic: [u8; 24],
        0x18 entry_count: u64,
    }
}

record! {
    struct EntryHeader, "entry header", 24 bytes {
        0x00 image_offset: u64,
        0x08 image_size: u64,
        0x10 id_len: u64,
    }
}

/// One bundle of a file. Images are ranges of that file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// From the start of the file.
    pub offset: u64,
    /// Of all, up to the end of the last image, or of the headers.
    pub size: u64,
    /// In file order, which is the order of `-targets` when it was written.
    pub entries: Vec<BundleEntry>,
}

/// An image in a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleEntry {
    /// As written. [`EntryId::parse`](crate::names::EntryId::parse) reads it; files contain some
    /// that no release would write today, and any text is possible.
    pub id: String,
    /// From the start of the file. Ranges may overlap; LLVM accepts that too.
    pub image: Range<u64>,
}

impl Bundle {
    /// Reads the bundle at `offset` of `data`; nothing at `end` or later belongs to it, and what
    /// follows it before is left alone.
    ///
    /// Any input may be given: this does not panic, and allocates at most a small multiple of
    /// what it reads. Images are not read.
    ///
    /// # Errors
    ///
    /// When the magic is absent, an ID is not UTF-8, or anything lies outside of `offset..end`.
    pub fn parse<'d, R: ReadAt<'d>>(data: R, offset: u64, end: u64) -> Result<Self, BundleError> {
        parse(data, offset, end).map_err(|(entry, problem)| BundleError {
            index: 0,
            entry,
            problem,
        })
    }

    /// The bytes of the file that it takes up.
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
    // The count is only what the file claims, so it sizes no allocation.
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

/// An image to be bundled, with the bytes at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleImage<'a> {
    /// Written as it is. [`EntryId`](crate::names::EntryId) displays what LLVM 22 writes.
    pub id: &'a str,
    /// The bytes of the image.
    pub image: &'a [u8],
}

/// The bytes of a bundle, each image at a multiple of `align`, as LLVM writes it: also an empty
/// image at the end has zeros before it.
///
/// # Errors
///
/// When two images have the same ID, which LLVM writes and misplaces.
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

/// Where everything of a bundle is, for those who copy the images from file to file: first
/// [`Self::head`], then each image where it belongs, zeros between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleLayout {
    /// The header and the entry headers.
    pub head: Vec<u8>,
    /// From the start of the bundle, in the order given. None starts before an earlier one ends.
    pub images: Vec<Range<u64>>,
}

impl BundleLayout {
    /// For images of these IDs and sizes, each at a multiple of `align`, which need not be a power
    /// of two.
    ///
    /// # Errors
    ///
    /// When two IDs are equal, or the images are too large for any file.
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
        // What is in memory is far from the end of a u64; the sizes of the images may be anything.
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

    /// Of the whole bundle.
    #[must_use]
    pub fn size(&self) -> u64 {
        let last = self.images.last().map(|image| image.end);
        last.unwrap_or(self.head.len() as u64)
    }
}

#[cfg(test)]
mod tests;
