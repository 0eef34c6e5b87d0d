//! The records of fat binaries.

use crate::format::bytes::record;

record! {
    #[doc(hidden)]
    pub struct FatbinHeader, "header", 16 bytes {
        0x00 magic: u32,
        0x04 version: u16,
        0x06 header_size: u16,
        0x08 size: u64,
    }
}

record! {
    /// `options_offset` is the offset from the start of the header of another header of 8 bytes,
    /// for options or `.nv.compat`.
    #[doc(hidden)]
    pub struct ImageHeader, "image header", 64 bytes {
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

record! {
    /// `offset` is from the start of the image's header.
    pub(crate) struct OptionsHeader, "options", 8 bytes {
        0x0 offset: u32,
        0x4 size: u32,
    }
}

record! {
    /// `size` includes this header.
    pub(crate) struct GroupHeader, "group header", 8 bytes {
        0x0 count: u32,
        0x4 size: u32,
    }
}

/// First bytes of a fat binary.
#[doc(hidden)]
pub const MAGIC: u32 = 0xba55_ed50;
/// Kind of an image that is PTX.
#[doc(hidden)]
pub const PTX: u16 = 1;
/// Kind of an image that is a cubin.
#[doc(hidden)]
pub const CUBIN: u16 = 2;
/// Kind of an image that is NVIDIA's intermediate code, which nvlink compiles (`-dlto`).
pub(super) const LTO_IR: u16 = 8;
/// Kind of a group of images that are compressed together.
pub(super) const GROUP: u16 = 0x100;
/// Flag of an image that runs on this processor alone, such as `sm_90a`.
#[doc(hidden)]
pub const THIS_PROCESSOR: u64 = 1 << 20;
/// Flag of an image that runs on all processors of this family, such as `sm_100f`.
#[doc(hidden)]
pub const THIS_FAMILY: u64 = 1 << 21;
/// Flag of an image whose stored bytes only NVIDIA's tools can read: LTO IR of nvcc 13.5.
pub(super) const HIDDEN: u64 = 1 << 16;
/// Flag of an image that is compressed by LZ4.
pub(super) const LZ4: u64 = 1 << 13;
/// Flag of an image that is compressed by Zstandard.
pub(super) const ZSTD: u64 = 1 << 15;
