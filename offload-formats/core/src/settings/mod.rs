//! Settings that tools and build scripts share, as options and variables.

pub mod decompression_limit;
pub mod large_images;
mod sizes;

/// Default limit on what is decompressed in memory, in bytes.
pub const INFLATE_LIMIT: u64 = 1 << 30;
