//! Finds images wherever they start in data, such as those that a program includes as bytes or strings.
//!
//! | image | recognized by | end |
//! |---|---|---|
//! | ELF file for a GPU | magic, processor, section headers | its last header or section |
//! | bundle | headers, and an entry for a device | its last image |
//! | compressed bundle, versions 2 and 3 | header | the header's size |
//! | CUDA fat binary, offload binary | header, and an image | the header's size |
//! | bitcode for a GPU | a module with the triple of a GPU | its last block |
//! | PTX | `.version 8.0`, then `.target sm_80` | the last statement; comments before the text belong to it |
//! | SPIR-V | header | the last function |
//!
//! Text bundles and compressed bundles of version 1 have no end of their own, so they are found only where
//! [`inventory()`](super::inventory()) finds them.

mod ptx_text;
mod spirv;

use std::cell::Cell;
use std::ops::Range;

use object::elf;

use super::identity::{Identity, ImageForm};
use crate::container::bundled::BundledEntry;
use crate::container::elf::Elf;
use crate::format::bundle::Bundle;
use crate::format::bytes::{Cursor, ReadAt, SourceError};
use crate::format::compressed_bundle::CompressedBundle;
use crate::format::magic::Magic;
use crate::format::offload_binary::OffloadBinary;
use crate::format::{bitcode, fatbin, ptx};
use ptx_text::VERSION;

/// Number of bytes that are searched at once.
const CHUNK: u64 = 1 << 18;

/// Number of bytes that are searched twice, because a magic may start in one part and end in the next.
const OVERLAP: u64 = 4;

/// Number of bytes in which PTX has its version and target.
const PTX_HEAD: u64 = 256;

/// Largest size of the comments before PTX that belong to it.
const PTX_COMMENTS: u64 = 1 << 10;

/// First bytes of SPIR-V with the byte order of all compilers.
const SPIRV: [u8; 4] = 0x0723_0203_u32.to_le_bytes();

/// Result of a search.
pub(super) struct SearchResult {
    /// Ranges of containers and images in ascending order, which do not overlap.
    pub(super) found: Vec<Range<u64>>,
    /// End of the searched part: the end of the data, unless reading failed or too many bytes looked like images.
    pub(super) end: u64,
}

/// Finds the containers and images in a range of `data`. Reads the range once, except the images.
pub(super) fn search<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> SearchResult {
    let end = Cursor::new(data, range.clone()).end();
    let limit = Limit::of(end.saturating_sub(range.start));
    let mut found = Vec::<Range<u64>>::new();
    // What `part` of the data has.
    let (mut part, mut buffer) = (range.start..range.start, Vec::new());
    let mut position = range.start;
    while position < end {
        if part.end < end && part.end.saturating_sub(position) <= OVERLAP {
            part = position..end.min(position.saturating_add(CHUNK));
            buffer.resize((part.end - part.start) as usize, 0);
            if data.read_once(&mut buffer, position).is_none() {
                break;
            }
        }
        let (_, rest) = buffer.split_at((position - part.start) as usize);
        let floor = found.last().map_or(range.start, |found| found.end);
        let limited = Limited {
            data,
            limit: &limit,
        };
        let image = starts(rest).find_map(|start| {
            let start = position.saturating_add(start as u64);
            image_at(limited, start, floor..end)
        });
        if limit.is_reached() {
            break;
        }
        position = match image {
            Some(image) => {
                let end = image.end;
                found.push(image);
                end
            }
            None if part.end == end => end,
            None => part.end - OVERLAP,
        };
    }
    SearchResult {
        found,
        end: position,
    }
}

/// Returns the places in `bytes` where an image may start.
fn starts(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let is_start = |window: &[u8]| {
        let Ok(first) = <[u8; 4]>::try_from(window) else {
            return false;
        };
        // Compared as numbers, which is the fast way.
        let first = u32::from_le_bytes(first);
        const fn number(text: [u8; 4]) -> u32 {
            u32::from_le_bytes(text)
        }
        first == number(*b"\x7fELF")
            || first == number(*b"\x10\xff\x10\xad")
            || first == number(*b"\x50\xed\x55\xba")
            || first == number(*b"__CL")
            || first == number(*b"CCOB")
            || first == number(*b".ver")
            || first == number(*b"BC\xc0\xde")
            || first == number(*b"\xde\xc0\x17\x0b")
            || first == number(SPIRV)
    };
    let windows = bytes.windows(4).enumerate();
    windows.filter_map(move |(start, window)| is_start(window).then_some(start))
}

/// Returns the range of the container or image that starts at `start`. Comments before a text belong to it, from the
/// start of `around` on; nothing exceeds its end.
fn image_at<'d, R: ReadAt<'d>>(data: R, start: u64, around: Range<u64>) -> Option<Range<u64>> {
    let end = around.end;
    let image_end = match Magic::at(data, start..end) {
        Magic::Elf => elf_end(data, start..end),
        Magic::Bundle => bundle_end(data, start..end),
        Magic::CompressedBundle => {
            let bundle = CompressedBundle::parse(data, start, end).ok()?;
            bundle.size.map(|_| bundle.range().end)
        }
        Magic::Fatbin => {
            let first = fatbin::walk(data, start..end).next()?.ok()?;
            (!first.entries.is_empty()).then_some(first.range.end)
        }
        Magic::OffloadBinary => {
            let binary = OffloadBinary::parse(data, start, end).ok()?;
            let has_images = !binary.entries.is_empty() || binary.compressed.is_some();
            has_images.then(|| binary.range().end)
        }
        Magic::Bitcode => {
            let image = start..bitcode::end(data, start..end)?;
            let is_image = Identity::of(data, image.clone()).is_device_image();
            is_image.then_some(image.end)
        }
        _ => return text_or_words_at(data, start, around),
    };
    image_end.map(|end| start..end)
}

fn elf_end<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Option<u64> {
    /// Offset of `e_machine`, in both classes.
    const MACHINE: u64 = 18;
    let mut machine = Cursor::new(data, range.clone()).at(range.start.saturating_add(MACHINE));
    let &[low, high] = machine.read(2, "processor").ok()? else {
        return None;
    };
    // Strings and headers for the CPU start with the magic, too.
    match elf::Machine(u16::from_le_bytes([low, high])) {
        elf::EM_AMDGPU | elf::EM_CUDA => {}
        _ => return None,
    }
    let file = Elf::parse(data, range.clone()).ok()?;
    Some(file.end()).filter(|end| *end <= range.end)
}

fn bundle_end<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Option<u64> {
    let bundle = Bundle::parse(data, range.start, range.end).ok()?;
    let mut targets = bundle.entries.iter();
    let has_device = targets.any(|entry| matches!(BundledEntry::target_of(&entry.id), Ok(Some(_))));
    has_device.then(|| bundle.range().end)
}

/// Returns the range of PTX or SPIR-V.
fn text_or_words_at<'d, R: ReadAt<'d>>(
    data: R,
    start: u64,
    around: Range<u64>,
) -> Option<Range<u64>> {
    let mut cursor = Cursor::new(data, start..around.end);
    if cursor.clone().read(4, "magic").ok()? == SPIRV {
        return Some(start..spirv::end(data, start..around.end)?);
    }
    if cursor.read(VERSION.len() as u64, "directive").ok()? != VERSION {
        return None;
    }
    let mut head = vec![0; PTX_HEAD.min(around.end - start) as usize];
    data.read_once(&mut head, start)?;
    let head = head.split(|byte| *byte == 0).next()?;
    let identity = Identity::of(head, 0..head.len() as u64);
    let target = identity
        .target_id
        .filter(|_| identity.form == ImageForm::Ptx)?;
    if !target.starts_with("compute_") || ptx::version(head).is_none() {
        return None;
    }
    let before = around.start.max(start.saturating_sub(PTX_COMMENTS));
    let mut comments = vec![0; (start - before) as usize];
    data.read_once(&mut comments, before)?;
    let comments = ptx_text::comments_at_end(&comments) as u64;
    Some(start - comments..ptx_text::end(data, start..around.end)?)
}

/// Limit on what is read to recognize images, so that a file that was made for it does not take forever.
struct Limit {
    left: Cell<u64>,
    reached: Cell<bool>,
}

impl Limit {
    /// Weight of bytes that a cache keeps.
    const KEPT: u64 = 16;

    /// Returns the limit for a search of `size` bytes. Headers of images do not overlap, and are smaller than that.
    fn of(size: u64) -> Self {
        let left = size.saturating_add(1 << 16).saturating_mul(2 * Self::KEPT);
        Self {
            left: Cell::new(left),
            reached: Cell::new(false),
        }
    }

    fn is_reached(&self) -> bool {
        self.reached.get()
    }

    fn take(&self, size: u64) -> Option<()> {
        let left = self.left.get().checked_sub(size);
        self.reached.set(self.is_reached() || left.is_none());
        self.left.set(left?);
        Some(())
    }
}

/// Data whose reads have a limit.
#[derive(Clone, Copy)]
struct Limited<'c, R> {
    data: R,
    limit: &'c Limit,
}

impl<'d, R: ReadAt<'d>> ReadAt<'d> for Limited<'_, R> {
    fn size(self) -> Option<u64> {
        self.data.size()
    }

    fn first_error(self) -> Option<SourceError> {
        self.data.first_error()
    }

    fn read_at(self, offset: u64, size: u64) -> Option<&'d [u8]> {
        self.limit.take(size.saturating_mul(Limit::KEPT))?;
        self.data.read_at(offset, size)
    }

    fn read_until(self, range: Range<u64>, delimiter: u8) -> Option<&'d [u8]> {
        let bytes = self.data.read_until(range, delimiter)?;
        self.limit
            .take((bytes.len() as u64).saturating_mul(Limit::KEPT))?;
        Some(bytes)
    }

    fn read_once(self, buffer: &mut [u8], offset: u64) -> Option<()> {
        self.limit.take(buffer.len() as u64)?;
        self.data.read_once(buffer, offset)
    }
}

#[cfg(test)]
mod tests;
