//! Writes fat binaries, the container of CUDA's images, without NVIDIA's tool.
//!
//! The layout is in `format/fatbin.rs`. For valid images, the bytes are those of `fatbinary` (CUDA 13.5) without
//! compression. With compression only the compressed bytes and their sizes may differ. Like `fatbinary`, this module
//! removes comments and blanks from PTX.

use crate::container::elf::{Elf, ElfError};
use crate::format::bytes::{Field, ReadAt};
use crate::format::fatbin::{
    CUBIN, CompressedImage, FatbinCompressor, FatbinHeader, FatbinPackError, ImageHeader, MAGIC,
    PTX, THIS_FAMILY, THIS_PROCESSOR,
};
use crate::format::pieces::Piece;
use crate::format::ptx;
use crate::names::elf_flags::nvidia_number;
use std::fmt;
use std::ops::Range;

const IMAGE_VERSION: u16 = 0x101;
/// Flags of an image for a 64-bit Linux host.
const HOST: u64 = 0x11;
const HAS_COMPAT: u64 = 1 << 24;
/// First processor whose images have a section of compatible processors.
const COMPAT: u32 = 100;
const COMPAT_SECTION: &str = ".nv.compat";
const EM_CUDA: u16 = 190;

/// A linked cubin, or PTX.
#[derive(Clone, Copy, Debug)]
pub struct FatbinImage<'a, R = &'a [u8]> {
    /// Processor: `sm_80`, `sm_90a` or `sm_100f` for a cubin; `compute_80` for PTX.
    pub processor: &'a str,
    /// The ELF file, or the text.
    pub image: R,
}

/// A fat binary.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fatbin {
    /// The whole file; input *k* is the image with index *k*.
    pub pieces: Vec<Piece>,
    /// Ranges of the images, in the order given. That of PTX includes the NUL after the text. None if the images are
    /// compressed.
    pub images: Vec<Range<u64>>,
}

/// Returns a fat binary with `images` in this order for a 64-bit Linux host, which CUDA's runtime registers. Of cubins
/// it reads only headers, and copies them.
///
/// # Errors
///
/// Fails if an image is neither a cubin of its processor nor PTX.
pub fn cuda_fatbin<'d, R: ReadAt<'d>>(
    images: &[FatbinImage<'_, R>],
) -> Result<Fatbin, FatbinError> {
    written(images, None)
}

/// Returns a fat binary like [`cuda_fatbin`], whose images are compressed if that makes them smaller. Each image is in
/// memory meanwhile, and then the compressed one.
///
/// # Errors
///
/// Those of [`cuda_fatbin`], and if an image cannot be read, or the method is not built in.
pub fn compressed_cuda_fatbin<'d, R: ReadAt<'d>>(
    images: &[FatbinImage<'_, R>],
    compressor: FatbinCompressor,
) -> Result<Fatbin, FatbinError> {
    let written = written(images, Some(compressor))?;
    Ok(Fatbin {
        images: Vec::new(),
        ..written
    })
}

fn written<'d, R: ReadAt<'d>>(
    images: &[FatbinImage<'_, R>],
    compressor: Option<FatbinCompressor>,
) -> Result<Fatbin, FatbinError> {
    let mut end = FatbinHeader::LEN;
    let (mut body, mut places) = (Vec::new(), Vec::new());
    for (index, image) in images.iter().enumerate() {
        let (head, image) = image
            .encoded(index, compressor)
            .map_err(|problem| FatbinError { index, problem })?;
        let start = end + head.len() as u64;
        let place = start..start + image.size();
        // The header before the body has a multiple of 8 bytes.
        end = place.end.next_multiple_of(8);
        let padding = Piece::Zeros(end - place.end);
        body.extend([Piece::Bytes(head), image, padding]);
        places.push(place);
    }
    let header = FatbinHeader {
        magic: MAGIC,
        version: 1,
        header_size: FatbinHeader::LEN as u16,
        size: end - FatbinHeader::LEN,
    };
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    Ok(Fatbin {
        pieces: std::iter::once(Piece::Bytes(bytes)).chain(body).collect(),
        images: places,
    })
}

impl<'d, R: ReadAt<'d>> FatbinImage<'_, R> {
    /// Returns the header and the options of the image with that index, and the image.
    fn encoded(
        &self,
        index: usize,
        compressor: Option<FatbinCompressor>,
    ) -> Result<(Vec<u8>, Piece), FatbinProblem> {
        let (prefix, number) = self
            .processor
            .split_once('_')
            .ok_or(FatbinProblem::Processor)?;
        let (number, letter) = match number.as_bytes().last() {
            Some(b'a') => (number.strip_suffix('a'), THIS_PROCESSOR),
            Some(b'f') => (number.strip_suffix('f'), THIS_FAMILY),
            _ => (Some(number), 0),
        };
        let number = number.and_then(|number| number.parse().ok());
        let number = number.ok_or(FatbinProblem::Processor)?;
        let entry = match prefix {
            "sm" => self.cubin(number, index)?,
            "compute" => self.ptx()?,
            _ => return Err(FatbinProblem::Processor),
        };
        let header = ImageHeader {
            kind: entry.kind,
            version: IMAGE_VERSION,
            header_size: (ImageHeader::LEN as usize + entry.options.len()) as u32,
            image_size: 0,
            compressed_size: 0,
            options_offset: match entry.options.is_empty() {
                true => 0,
                false => ImageHeader::LEN as u32,
            },
            code_minor: entry.code.0,
            code_major: entry.code.1,
            processor: number,
            name_offset: 0,
            name_size: 0,
            flags: HOST | letter | entry.flags,
            reserved: 0,
            uncompressed_size: 0,
        };
        let size = entry.image.size();
        let compressed = match compressor {
            Some(compressor) => self.compressed(&entry.image, compressor)?,
            None => None,
        };
        let mut head = Vec::new();
        let how = compressed.as_ref().map(|compressed| compressed.how);
        header.stored_as(size, how).write(&mut head);
        head.extend(entry.options);
        let image = compressed.map_or(entry.image, |compressed| Piece::Bytes(compressed.bytes));
        Ok((head, image))
    }

    /// Returns the compressed image; nothing if it is not smaller.
    fn compressed(
        &self,
        image: &Piece,
        compressor: FatbinCompressor,
    ) -> Result<Option<CompressedImage>, FatbinProblem> {
        let size = image.size();
        let bytes = match image {
            Piece::Bytes(bytes) => Some(bytes.as_slice()),
            _ => self.image.read_at(0, size),
        };
        let bytes = bytes.ok_or(FatbinProblem::Unread { size })?;
        compressor.compress(bytes).map_err(FatbinProblem::Pack)
    }

    fn cubin(&self, number: u32, index: usize) -> Result<EncodedImage, FatbinProblem> {
        let range = 0..self.image.size().unwrap_or(0);
        let cubin = Elf::parse(self.image, range.clone()).map_err(FatbinProblem::Elf)?;
        // 64-bit and little-endian.
        if cubin.machine != EM_CUDA || self.image.read_at(4, 2) != Some(&[2, 1]) {
            return Err(FatbinProblem::Machine);
        }
        let found = nvidia_number(cubin.flags, cubin.abi_version).into();
        if found != number {
            return Err(FatbinProblem::OtherProcessor { found });
        }
        let mut entry = EncodedImage {
            kind: CUBIN,
            code: (cubin.abi_version.into(), 1),
            options: Vec::new(),
            flags: 0,
            image: Piece::Copy {
                input: index,
                range,
            },
        };
        let section = cubin.find(COMPAT_SECTION).map_err(FatbinProblem::Elf)?;
        if let (Some(section), COMPAT..) = (section, number) {
            let content = cubin.content(&section).map_err(FatbinProblem::Elf)?;
            entry.options = options(content);
            entry.flags = HAS_COMPAT;
        }
        Ok(entry)
    }

    fn ptx(&self) -> Result<EncodedImage, FatbinProblem> {
        let size = self.image.size().unwrap_or(0);
        let text = self.image.read_at(0, size).unwrap_or_default();
        let (major, minor) = ptx::version(text).ok_or(FatbinProblem::NoPtx)?;
        let mut text = ptx::stripped(text);
        text.push(0);
        Ok(EncodedImage {
            kind: PTX,
            code: (minor, major),
            options: options(&[]),
            flags: 0,
            image: Piece::Bytes(text),
        })
    }
}

/// An image and the fields of its header.
struct EncodedImage {
    kind: u16,
    /// Minor and major version of PTX. For a cubin, the minor one is the ABI version.
    code: (u16, u16),
    /// Bytes between the header and the image.
    options: Vec<u8>,
    flags: u64,
    image: Piece,
}

/// Returns the options: offset and size of `content`, an empty string of `ptxas` options, then `content`.
fn options(content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (start, size) = (ImageHeader::LEN as u32 + 8, content.len() as u32);
    start.write(&mut bytes);
    size.write(&mut bytes);
    bytes.push(0);
    bytes.extend_from_slice(content);
    pad(&mut bytes);
    bytes
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
}

/// Reason why a fat binary cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FatbinError {
    /// Index of the image.
    pub index: usize,
    /// The image's problem.
    pub problem: FatbinProblem,
}

/// A problem of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FatbinProblem {
    /// A processor of another form than `sm_90a` and `compute_90a`.
    Processor,
    /// Not an ELF file.
    Elf(ElfError),
    /// Not a cubin.
    Machine,
    /// Not PTX: the `.version` is missing.
    NoPtx,
    /// A cubin for another processor.
    OtherProcessor {
        /// The processor's number in the cubin's header.
        found: u32,
    },
    /// The image cannot be read as a whole.
    Unread {
        /// Its size in bytes.
        size: u64,
    },
    /// The image cannot be compressed.
    Pack(FatbinPackError),
}

impl fmt::Display for FatbinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "image {} of a CUDA fat binary: ", self.index)?;
        match &self.problem {
            FatbinProblem::Processor => {
                f.write_str("expected a processor such as `sm_90a` or `compute_90a`")
            }
            FatbinProblem::Elf(problem) => problem.fmt(f),
            FatbinProblem::Machine => f.write_str("expected a cubin: ELF for NVIDIA's processors"),
            FatbinProblem::NoPtx => f.write_str("expected PTX with a `.version`"),
            FatbinProblem::OtherProcessor { found } => {
                write!(
                    f,
                    "expected a cubin for its processor, found one for `sm_{found}`"
                )
            }
            FatbinProblem::Unread { size } => write!(f, "its {size:#x} bytes cannot be read"),
            FatbinProblem::Pack(problem) => problem.fmt(f),
        }
    }
}

impl std::error::Error for FatbinError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::pieces;

    /// Written by `fatbinary` of CUDA 13.5: `sm_80` and `sm_100a`.
    const GOLDEN: &[u8] = include_bytes!("../../../tests/golden/cuda-13.5/two-images.fatbin");

    /// The cubins in [`GOLDEN`].
    fn cubins() -> [&'static [u8]; 2] {
        [&GOLDEN[0x50..0xbf8], &GOLDEN[0xc70..0x1f5a]]
    }

    fn images() -> [FatbinImage<'static>; 2] {
        let [first, second] = cubins();
        [("sm_80", first), ("sm_100a", second)]
            .map(|(processor, image)| FatbinImage { processor, image })
    }

    #[test]
    fn writes_the_bytes_nvidia_writes() {
        let fatbin = cuda_fatbin(&images()).unwrap();
        let bytes = pieces::to_bytes(&fatbin.pieces, &images().map(|image| image.image));
        assert_eq!(bytes.unwrap(), GOLDEN);
        for (place, image) in fatbin.images.iter().zip(images()) {
            let place = place.start as usize..place.end as usize;
            assert_eq!(&GOLDEN[place], image.image);
        }
    }

    /// `fatbinary` 13.5 `-64 --compress=false --image3=kind=ptx,sm=90a,file=… --image3=kind=ptx,sm=80,file=…`
    const GOLDEN_PTX: &[u8] = b"P\xedU\xba\x01\0\x10\0\xf0\0\0\0\0\0\0\0\
        \x01\0\x01\x01P\0\0\0\x30\0\0\0\0\0\0\0\0\0\0\0@\0\0\0\0\0\x08\0Z\0\0\0\0\0\0\0\0\0\0\0\
        \x11\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0H\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\n\
        .version 8.0\n.target\tsm_90a \n.pragma \"a  b\";\n\0\0\
        \x01\0\x01\x01P\0\0\0\x20\0\0\0\0\0\0\0\0\0\0\0@\0\0\0\x08\0\x07\0P\0\0\0\0\0\0\0\0\0\0\0\
        \x11\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0H\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
        .version 7.8\n.target sm_80\n\0\0\0\0\0";

    #[test]
    fn keeps_ptx_as_nvidia_does() {
        let texts = [
            (
                "compute_90a",
                "// k\n.version 8.0\n.target\t sm_90a /* a */\n  .pragma \"a  b\";\n",
            ),
            ("compute_80", ".version 7.8\n.target sm_80\n"),
        ];
        let images = texts.map(|(processor, text)| FatbinImage {
            processor,
            image: text.as_bytes(),
        });
        let fatbin = cuda_fatbin(&images).unwrap();
        // Nothing is copied from texts.
        let bytes = pieces::to_bytes(&fatbin.pieces, &[]);
        assert_eq!(bytes.unwrap(), GOLDEN_PTX);
        // The range that the driver gets.
        let second = fatbin.images[1].start as usize..fatbin.images[1].end as usize;
        assert_eq!(&GOLDEN_PTX[second], b".version 7.8\n.target sm_80\n\0");
        let none = FatbinImage {
            image: &b"; no version\n"[..],
            ..images[0]
        };
        assert_eq!(
            cuda_fatbin(&[none]).unwrap_err().to_string(),
            "image 0 of a CUDA fat binary: expected PTX with a `.version`"
        );
    }

    #[test]
    fn rejects_what_is_no_cubin_of_its_processor() {
        let [image, _] = images();
        let message =
            |image: FatbinImage<'_>| cuda_fatbin(&[images()[0], image]).unwrap_err().to_string();
        let start = "image 1 of a CUDA fat binary: ";
        assert_eq!(
            message(FatbinImage {
                processor: "sm_90",
                ..image
            }),
            format!("{start}expected a cubin for its processor, found one for `sm_80`")
        );
        for processor in ["gfx90a", "sm_", "sm_a", "sm_8x", "ptx_80", ""] {
            assert_eq!(
                message(FatbinImage { processor, ..image }),
                format!("{start}expected a processor such as `sm_90a` or `compute_90a`")
            );
        }
        let mut other = image.image.to_vec();
        other[0x12] = 62; // x86-64
        assert_eq!(
            message(FatbinImage {
                image: &other,
                ..image
            }),
            format!("{start}expected a cubin: ELF for NVIDIA's processors")
        );
        assert!(
            message(FatbinImage {
                image: &b"BC"[..],
                ..image
            })
            .starts_with(start)
        );
    }

    #[test]
    fn survives_every_truncation_and_every_single_byte_change() {
        let cubin = cubins()[1];
        let write = |cubin: &[u8]| {
            let image = FatbinImage {
                processor: "sm_100a",
                image: cubin,
            };
            let _ = cuda_fatbin(&[image]);
        };
        for len in 0..cubin.len() {
            write(&cubin[..len]);
        }
        let mut changed = cubin.to_vec();
        for index in 0..changed.len() {
            changed[index] ^= 0xff;
            write(&changed);
            changed[index] ^= 0xff;
        }
    }
}
