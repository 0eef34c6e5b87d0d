//! The offload binary: images with their targets and strings.
//!
//! | version 1, 2 | version 3 | size | field                                                     |
//! |-------------:|----------:|-----:|-----------------------------------------------------------|
//! |       `0x00` |    `0x00` |    4 | magic, `10 FF 10 AD`                                      |
//! |       `0x04` |    `0x04` |    4 | version                                                   |
//! |       `0x08` |    `0x08` |    8 | size of all; a multiple of 8, but when compressed         |
//! |       `0x10` |    `0x10` |    8 | offset of the entries                                     |
//! |       `0x18` |    `0x18` |    8 | number of entries; in version 1 the size of the one entry |
//! |              |    `0x20` |    8 | 0; of a compressed one, the size of all before            |
//! |              |           |      | then each entry:                                          |
//! |         `+0` |      `+0` |    2 | image kind                                                |
//! |         `+2` |      `+2` |    2 | offload kind                                              |
//! |         `+4` |      `+4` |    4 | flags; bit 0: there are strings but no image              |
//! |         `+8` |      `+8` |    8 | offset of the string entries                              |
//! |        `+16` |     `+16` |    8 | number of string entries                                  |
//! |        `+24` |     `+24` |    8 | offset of the image, in version 1 a multiple of 8         |
//! |        `+32` |     `+32` |    8 | size of the image                                         |
//! |              |           |      | then each string entry:                                   |
//! |         `+0` |      `+0` |    8 | offset of the key, which ends in NUL                      |
//! |         `+8` |      `+8` |    8 | offset of the value, which in version 1 ends in NUL       |
//! |              |     `+16` |    8 | versions 2 and 3: size of the value, which may contain NUL |
//! |              |           |      | then the strings, and the images                          |
//!
//! Integers are little-endian, offsets are from the first byte of the offload binary. LLVM 15 to 22
//! write version 1, and all releases read it. LLVM 23 writes version 2, and the main branch version
//! 3. HIP was kind 3 up to LLVM 20 and is 4 since, with the same version.
//!
//! In a compressed offload binary, a zlib stream or zstd frame follows the header. Offsets refer to
//! the uncompressed form: see [`CompressedBody`].
//!
//! The packager concatenates offload binaries, and so do linkers that join sections.
//!
//! Specification: <https://llvm.org/docs/CommandGuide/llvm-offload-binary.html>, which still shows
//! the old numbers. Our differences to LLVM: `docs/differences.md#offload-binary`.

mod binary;
#[cfg(feature = "tools")]
mod compress;
mod compressed;
mod error;
mod layout;
#[cfg(feature = "tools")]
mod pair_order;
mod read;
mod strings;
mod write;

use super::bytes::ReadAt;

pub use super::codec::Method;
pub use binary::{BinaryEntry, CompressedBody, OffloadBinary};
#[cfg(feature = "tools")]
pub use compress::{compress, compress_to};
pub use error::{InflateError, OffloadBinaryError, OffloadBinaryProblem, OffloadBinaryWriteError};
pub use layout::OffloadBinaryVersion;
#[cfg(feature = "tools")]
pub use pair_order::pair_order;
pub use read::walk;
pub use strings::EntryStrings;
pub use write::{BinaryImage, NewBinaryEntry, layout};

impl OffloadBinary {
    /// Reads the offload binary at `offset` of `data`. Ignores data at `end` and later.
    ///
    /// Accepts any input: this does not panic, and allocates at most a small multiple of what it
    /// reads. It neither reads images nor inflates anything.
    ///
    /// # Errors
    ///
    /// Fails if the magic is missing, the version is not 1, 2 or 3, or anything exceeds the offload
    /// binary.
    pub fn parse<'d, R: ReadAt<'d>>(
        data: R,
        offset: u64,
        end: u64,
    ) -> Result<Self, OffloadBinaryError> {
        read::parse(data, offset, end).map_err(|(entry, problem)| OffloadBinaryError {
            index: 0,
            entry,
            problem,
        })
    }
}

#[cfg(test)]
mod tests;
