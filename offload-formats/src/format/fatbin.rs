//! CUDA's fat binary: images and PTX for several processors, as its runtime and driver load them.
//!
//! | offset | size | field |
//! |-------:|-----:|-------|
//! | `0x00` |   16 | header: magic, version, its size, size of what follows |
//! |        |   64 | for each image, a header |
//! |        |      | options of `ptxas`, for PTX; a cubin's `.nv.compat`, for `sm_100` and later |
//! |        |      | then the cubin, or PTX and a NUL at least, padded to 8 |
//!
//! NVIDIA documents only the wrapper that points here (`fatbinary_section.h`). The layout was
//! measured: `fatbinary` of CUDA 13.5 writes these bytes for every processor from `sm_75` to
//! `sm_121a`. Linked images, relocatable ones and images with debug information were compared. By
//! default `fatbinary` compresses PTX and images with debug information.

use super::bytes::{Cursor, OutOfBounds, ReadAt, record};
use std::fmt;
use std::ops::Range;

record! {
    struct FatbinHeader, "header", 16 bytes {
        0x00 magic: u32,
        0x04 version: u16,
        0x06 header_size: u16,
        0x08 size: u64,
    }
}

record! {
    /// `options_offset` is the offset from the start of the header of another header of 8 bytes,
    /// for options or `.nv.compat`.
    struct ImageHeader, "image header", 64 bytes {
        0x00 kind: u16,
        0x02 version: u16,
        0x04 header_size: u32,
        0x08 image_size: u64,
        0x10 compressed_size: u32,
        0x14 options_offset: u32,
        0x18 code_minor: u16,
        0x1a code_major: u16,
        0x1c processor: u32,
        0x20 name_offset: u32,
        0x24 name_size: u32,
        0x28 flags: u64,
        0x30 reserved: u64,
        0x38 uncompressed_size: u64,
    }
}

pub(crate) const MAGIC: u32 = 0xba55_ed50;
pub(crate) const PTX: u16 = 1;
pub(crate) const CUBIN: u16 = 2;
/// Flag of an image that runs on this processor alone, such as `sm_90a`.
pub(crate) const THIS_PROCESSOR: u64 = 1 << 20;
/// Flag of an image that runs on all processors of this family, such as `sm_100f`.
pub(crate) const THIS_FAMILY: u64 = 1 << 21;

/// An image of a fat binary.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FatbinEntry {
    /// Kind of the image.
    pub kind: FatbinKind,
    /// Processor, such as `sm_80`, `sm_90a` or `sm_100f`.
    pub processor: String,
    /// Range in the file, with padding.
    pub image: Range<u64>,
    /// True if only NVIDIA's tools and driver can read it.
    pub is_compressed: bool,
}

/// Kind of an image in a fat binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FatbinKind {
    /// Text that the driver compiles.
    Ptx,
    /// Machine code that the driver loads.
    Cubin,
    /// Another kind, by number.
    Other(u16),
}

/// Reads the images of the consecutive fat binaries in a range of `data`.
///
/// # Errors
///
/// If the range does not consist of fat binaries, or a header or image exceeds the range.
pub fn parse<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<FatbinEntry>, FatbinReadError> {
    let mut cursor = Cursor::new(data, range);
    let mut entries = Vec::new();
    while entries.is_empty() || cursor.position() < cursor.end() {
        let start = cursor.position();
        let header = FatbinHeader::read(&mut cursor).map_err(FatbinReadError::Header)?;
        if header.magic != MAGIC {
            return Err(FatbinReadError::Magic { offset: start });
        }
        let images = start.saturating_add(header.header_size.into());
        let body = OutOfBounds::check("images", images, header.size, cursor.end())
            .map_err(FatbinReadError::Header)?;
        let mut images = Cursor::new(data, body.clone());
        let before = entries.len();
        while images.position() < images.end() {
            let index = entries.len();
            let wrong = |problem| FatbinReadError::Image { index, problem };
            entries.push(entry(&mut images).map_err(wrong)?);
        }
        if entries.len() == before {
            return Err(FatbinReadError::Empty { offset: start });
        }
        cursor = cursor.at(body.end);
    }
    Ok(entries)
}

/// Reads an image's header, and moves the cursor to the end of the image.
fn entry<'d, R: ReadAt<'d>>(cursor: &mut Cursor<'d, R>) -> Result<FatbinEntry, OutOfBounds> {
    let (start, end) = (cursor.position(), cursor.end());
    let header = ImageHeader::read(cursor)?;
    let image = start.saturating_add(header.header_size.into());
    // The header's size is at least the record's, so that the loop ends.
    let image = OutOfBounds::check(
        "image",
        image.max(cursor.position()),
        header.image_size,
        end,
    )?;
    *cursor = cursor.at(image.end);
    let letter = match header.flags {
        flags if flags & THIS_PROCESSOR != 0 => "a",
        flags if flags & THIS_FAMILY != 0 => "f",
        _ => "",
    };
    Ok(FatbinEntry {
        kind: match header.kind {
            PTX => FatbinKind::Ptx,
            CUBIN => FatbinKind::Cubin,
            other => FatbinKind::Other(other),
        },
        processor: format!("sm_{}{letter}", header.processor),
        image,
        is_compressed: header.compressed_size != 0 || header.uncompressed_size != 0,
    })
}

impl fmt::Display for FatbinEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FatbinKind::Ptx => write!(f, "PTX for {}", self.processor),
            FatbinKind::Cubin => write!(f, "cubin for {}", self.processor),
            FatbinKind::Other(kind) => write!(f, "kind {kind} for {}", self.processor),
        }
    }
}

/// An error in a fat binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FatbinReadError {
    /// The header is cut, or the images exceed the range.
    Header(OutOfBounds),
    /// The magic is wrong.
    Magic {
        /// Offset from the start of the file.
        offset: u64,
    },
    /// The fat binary has no image.
    Empty {
        /// Offset from the start of the file.
        offset: u64,
    },
    /// An image exceeds the fat binary.
    Image {
        /// Index of the image.
        index: usize,
        /// The range that exceeds it.
        problem: OutOfBounds,
    },
}

impl fmt::Display for FatbinReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(problem) => write!(f, "CUDA fat binary: {problem}"),
            Self::Magic { offset } => write!(f, "expected a CUDA fat binary at offset {offset:#x}"),
            Self::Empty { offset } => {
                write!(f, "the CUDA fat binary at offset {offset:#x} has no image")
            }
            Self::Image { index, problem } => {
                write!(f, "image {index} of a CUDA fat binary: {problem}")
            }
        }
    }
}

impl std::error::Error for FatbinReadError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by `fatbinary` of CUDA 13.5: `sm_80` and `sm_100a`.
    const GOLDEN: &[u8] = include_bytes!("../../../tests/golden/cuda-13.5/two-images.fatbin");

    fn read(bytes: &[u8]) -> Result<Vec<FatbinEntry>, FatbinReadError> {
        parse(bytes, 0..bytes.len() as u64)
    }

    fn cubin(processor: &str, image: Range<u64>) -> FatbinEntry {
        FatbinEntry {
            kind: FatbinKind::Cubin,
            processor: processor.into(),
            image,
            is_compressed: false,
        }
    }

    #[test]
    fn reads_what_nvidia_writes() {
        let expected = [
            cubin("sm_80", 0x50..0xbf8),
            cubin("sm_100a", 0xc70..GOLDEN.len() as u64),
        ];
        assert_eq!(read(GOLDEN).unwrap(), expected);
        // Consecutive, as in an object's section.
        let two = [GOLDEN, GOLDEN].concat();
        let four = read(&two).unwrap();
        assert_eq!(four.len(), 4);
        assert_eq!(four[2].image.start, GOLDEN.len() as u64 + 0x50);
    }

    #[test]
    fn rejects_every_truncation_and_what_follows() {
        for len in 0..GOLDEN.len() {
            read(&GOLDEN[..len]).unwrap_err();
        }
        let message = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
        let end = GOLDEN.len();
        assert_eq!(
            message(&[GOLDEN, &[0; 16]].concat()),
            format!("expected a CUDA fat binary at offset {end:#x}")
        );
        assert_eq!(
            message(&GOLDEN[..end - 1]),
            format!(
                "CUDA fat binary: images at offset 0x10 with size {:#x} runs past the end at {:#x}",
                end - 16,
                end - 1
            )
        );
        let mut long = GOLDEN.to_vec();
        long[0x18 + 3] = 1;
        assert_eq!(
            message(&long),
            format!(
                "image 0 of a CUDA fat binary: image at offset 0x50 with size 0x1000ba8 runs past the end at {end:#x}"
            )
        );
        let mut empty = GOLDEN[..16].to_vec();
        empty[8..].fill(0);
        assert_eq!(
            message(&empty),
            "the CUDA fat binary at offset 0x0 has no image"
        );
    }

    #[test]
    fn survives_every_single_byte_change() {
        let mut changed = GOLDEN.to_vec();
        for index in 0..0xc70 {
            for byte in [0, 1, 0x80, 0xff] {
                let before = std::mem::replace(&mut changed[index], byte);
                let _ = read(&changed);
                changed[index] = before;
            }
        }
    }
}
