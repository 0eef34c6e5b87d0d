//! The container of CUDA's images, written without NVIDIA's tool.
//!
//! | offset | size | field |
//! |-------:|-----:|-------|
//! | `0x00` |   16 | header: magic, version, its size, size of what follows |
//! |        |   64 | for each image, a header; for `sm_100` and later the cubin's `.nv.compat` behind it |
//! |        |      | then the cubin, padded to 8 |
//!
//! NVIDIA documents the wrapper that points here (`fatbinary_section.h`), not the rest. The layout was measured:
//! `fatbinary` of CUDA 13.5 writes these bytes for every processor from `sm_75` to `sm_121a`, linked, relocatable and
//! with debug information. It compresses PTX and nothing that is an image here.

use crate::container::elf::{Elf, ElfError};
use crate::format::bytes::{Field, record};
use std::fmt;
use std::ops::Range;

record! {
    struct Header, "header", 16 bytes {
        0x00 magic: u32,
        0x04 version: u16,
        0x06 header_size: u16,
        0x08 size: u64,
    }
}

record! {
    struct ImageHeader, "image header", 64 bytes {
        0x00 kind: u16,
        0x02 version: u16,
        0x04 header_size: u32,
        0x08 image_size: u64,
        0x10 compressed_size: u32,
        0x14 compat_offset: u32,
        0x18 code_version: u16,
        0x1a code_kind: u16,
        0x1c processor: u32,
        0x20 name_offset: u32,
        0x24 name_size: u32,
        0x28 flags: u64,
        0x30 reserved: u64,
        0x38 uncompressed_size: u64,
    }
}

const MAGIC: u32 = 0xba55_ed50;
/// Of an image that is a cubin; 1 is PTX.
const ELF: u16 = 2;
const IMAGE_VERSION: u16 = 0x101;
/// For a host of 64 bits, with Linux.
const HOST: u64 = 0x11;
/// `sm_90a`: runs on this processor alone.
const THIS_PROCESSOR: u64 = 1 << 20;
/// `sm_100f`: runs on processors of this family.
const THIS_FAMILY: u64 = 1 << 21;
const HAS_COMPAT: u64 = 1 << 24;
/// The first processor whose images say what they are compatible with.
const COMPAT: u32 = 100;
const COMPAT_SECTION: &str = ".nv.compat";
const EM_CUDA: u16 = 190;

/// A linked cubin.
#[derive(Clone, Copy, Debug)]
pub struct FatbinImage<'a> {
    /// `sm_80`, `sm_90a`, `sm_100f`.
    pub processor: &'a str,
    /// The ELF file.
    pub cubin: &'a [u8],
}

/// A fat binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fatbin {
    /// All of it.
    pub bytes: Vec<u8>,
    /// Where the cubins are, in the order given.
    pub images: Vec<Range<u64>>,
}

/// The fat binary of `images`, in their order, for a Linux host of 64 bits: what CUDA's runtime registers.
///
/// # Errors
///
/// When an image is no cubin of its processor.
pub fn cuda_fatbin(images: &[FatbinImage<'_>]) -> Result<Fatbin, FatbinError> {
    let mut body = Vec::new();
    let mut places = Vec::new();
    for (index, image) in images.iter().enumerate() {
        let start = image
            .add_to(&mut body)
            .map_err(|problem| FatbinError { index, problem })?;
        let start = Header::LEN + start as u64;
        places.push(start..start + image.cubin.len() as u64);
    }
    let header = Header {
        magic: MAGIC,
        version: 1,
        header_size: Header::LEN as u16,
        size: body.len() as u64,
    };
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    bytes.extend(body);
    Ok(Fatbin {
        bytes,
        images: places,
    })
}

impl FatbinImage<'_> {
    /// Where in `body` the cubin begins.
    fn add_to(&self, body: &mut Vec<u8>) -> Result<usize, FatbinProblem> {
        let (number, mut flags) = self.processor().ok_or(FatbinProblem::Processor)?;
        let cubin =
            Elf::parse(self.cubin, 0..self.cubin.len() as u64).map_err(FatbinProblem::Elf)?;
        // Of 64 bits and little-endian; then OS and version of the ABI.
        let &[2, 1, _, abi, abi_version] = self.cubin.get(4..9).unwrap_or_default() else {
            return Err(FatbinProblem::Machine);
        };
        if cubin.machine != EM_CUDA {
            return Err(FatbinProblem::Machine);
        }
        // The processor moved when numbers grew (LLVM 22, `BinaryFormat/ELF.h`, `EF_CUDA_SM`).
        let found = match abi {
            0x41 => (cubin.flags >> 8) & 0xff,
            _ => cubin.flags & 0xff,
        };
        if found != number {
            return Err(FatbinProblem::OtherProcessor { found });
        }
        let mut compat = Vec::new();
        let section = cubin.find(COMPAT_SECTION).map_err(FatbinProblem::Elf)?;
        if let (Some(section), COMPAT..) = (section, number) {
            let content = cubin.content(&section).map_err(FatbinProblem::Elf)?;
            let (start, size) = (ImageHeader::LEN as u32 + 8, content.len() as u32);
            start.write(&mut compat);
            size.write(&mut compat);
            compat.push(0);
            compat.extend_from_slice(content);
            pad(&mut compat);
            flags |= HAS_COMPAT;
        }
        let header = ImageHeader {
            kind: ELF,
            version: IMAGE_VERSION,
            header_size: (ImageHeader::LEN as usize + compat.len()) as u32,
            image_size: (self.cubin.len() as u64).next_multiple_of(8),
            compressed_size: 0,
            compat_offset: if compat.is_empty() {
                0
            } else {
                ImageHeader::LEN as u32
            },
            code_version: abi_version.into(),
            code_kind: 1,
            processor: number,
            name_offset: 0,
            name_size: 0,
            flags: HOST | flags,
            reserved: 0,
            uncompressed_size: 0,
        };
        header.write(body);
        body.extend(compat);
        let start = body.len();
        body.extend_from_slice(self.cubin);
        // What precedes the body is a multiple of 8.
        pad(body);
        Ok(start)
    }

    /// The number of the processor, and what its letter says.
    fn processor(&self) -> Option<(u32, u64)> {
        let name = self.processor.strip_prefix("sm_")?;
        let (number, flags) = match name.as_bytes().last()? {
            b'a' => (name.strip_suffix('a')?, THIS_PROCESSOR),
            b'f' => (name.strip_suffix('f')?, THIS_FAMILY),
            _ => (name, 0),
        };
        Some((number.parse().ok()?, flags))
    }
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
}

/// Why images make no fat binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FatbinError {
    /// Which of the images.
    pub index: usize,
    /// What is odd about it.
    pub problem: FatbinProblem,
}

/// What is odd about an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FatbinProblem {
    /// Its processor has another form than `sm_90a`.
    Processor,
    /// It is no ELF file.
    Elf(ElfError),
    /// It is no cubin.
    Machine,
    /// It is for another processor.
    OtherProcessor {
        /// The number that its header has.
        found: u32,
    },
}

impl fmt::Display for FatbinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "image {} of a CUDA fat binary: ", self.index)?;
        match self.problem {
            FatbinProblem::Processor => f.write_str("expected a processor such as `sm_90a`"),
            FatbinProblem::Elf(problem) => problem.fmt(f),
            FatbinProblem::Machine => f.write_str("expected a cubin: ELF for NVIDIA's processors"),
            FatbinProblem::OtherProcessor { found } => write!(f, "it is for `sm_{found}`"),
        }
    }
}

impl std::error::Error for FatbinError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by `fatbinary` of CUDA 13.5: `sm_80` and `sm_100a`.
    const GOLDEN: &[u8] = include_bytes!("../../../tests/golden/cuda-13.5/two-images.fatbin");

    /// The cubins in it.
    fn cubins() -> [&'static [u8]; 2] {
        [&GOLDEN[0x50..0xbf8], &GOLDEN[0xc70..0x1f5a]]
    }

    fn images() -> [FatbinImage<'static>; 2] {
        let [first, second] = cubins();
        [("sm_80", first), ("sm_100a", second)]
            .map(|(processor, cubin)| FatbinImage { processor, cubin })
    }

    #[test]
    fn writes_the_bytes_nvidia_writes() {
        let fatbin = cuda_fatbin(&images()).unwrap();
        assert_eq!(fatbin.bytes, GOLDEN);
        for (place, image) in fatbin.images.iter().zip(images()) {
            let place = place.start as usize..place.end as usize;
            assert_eq!(&GOLDEN[place], image.cubin);
        }
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
            format!("{start}it is for `sm_80`")
        );
        for processor in ["gfx90a", "sm_", "sm_a", "sm_8x", ""] {
            assert_eq!(
                message(FatbinImage { processor, ..image }),
                format!("{start}expected a processor such as `sm_90a`")
            );
        }
        let mut other = image.cubin.to_vec();
        other[0x12] = 62; // x86-64
        assert_eq!(
            message(FatbinImage {
                cubin: &other,
                ..image
            }),
            format!("{start}expected a cubin: ELF for NVIDIA's processors")
        );
        assert!(
            message(FatbinImage {
                cubin: b"BC",
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
                cubin,
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
