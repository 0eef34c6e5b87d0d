//! The container of HIP's images: a bundle as AMD's runtime reads it.
//!
//! The runtime maps images in place, so each is at a multiple of 4096. It searches entries only in
//! the first 4096 bytes. It trusts the kind `hipv4`; for other kinds it examines the image.
//! Specification: `docs/spec/hip-runtime.md`.

use crate::format::bundle::{BundleLayout, BundleWriteError};
use crate::format::pieces::Piece;
use std::num::NonZeroU64;
use std::ops::Range;

/// Alignment of images, in bytes.
pub const ALIGNMENT: u64 = 4096;

/// The first entry, which is empty. LLVM 20 and later write this ID for any host.
pub const HOST_ID: &str = "host-x86_64-unknown-linux-gnu-";

/// Returns the entry ID of an image for `processor`: a target ID (`gfx90a:xnack-`) or
/// `amdgcnspirv`. The triple has four fields, because the runtime requires them.
#[must_use]
pub fn entry_id(kind: &str, processor: &str) -> String {
    let triple = match processor {
        "amdgcnspirv" => "spirv64-amd-amdhsa-",
        _ => "amdgcn-amd-amdhsa-",
    };
    format!("{kind}-{triple}-{processor}")
}

/// A bundle of images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HipBundle {
    /// The bundle; input *k* is the image with index *k*.
    pub pieces: Vec<Piece>,
    /// Ranges of the images, in the given order.
    pub images: Vec<Range<u64>>,
    /// The size of the header and the entry headers, in bytes.
    table: u64,
}

/// Bundles images, each given by its entry ID and its size in bytes, after the host's entry.
///
/// # Errors
///
/// Fails if two IDs are equal.
pub fn hip_bundle(host: &str, images: &[(String, u64)]) -> Result<HipBundle, BundleWriteError> {
    let align = NonZeroU64::new(ALIGNMENT).expect("the alignment is not zero");
    let entries = images.iter().map(|(id, size)| (id.as_str(), *size));
    let layout = BundleLayout::new([(host, 0)].into_iter().chain(entries), align)?;
    let of_images = |piece| match piece {
        // The first is the host's, which is empty.
        Piece::Copy { input, range } => Some(Piece::Copy {
            input: usize::checked_sub(input, 1)?,
            range,
        }),
        other => Some(other),
    };
    Ok(HipBundle {
        table: layout.head.len() as u64,
        pieces: layout.pieces().into_iter().filter_map(of_images).collect(),
        images: layout.images.into_iter().skip(1).collect(),
    })
}

impl HipBundle {
    /// Returns a warning if the entry headers are too large for the runtime.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let table = self.table;
        (table > ALIGNMENT).then(|| {
            format!(
                "the table of the HIP bundle takes {table} bytes; HIP's runtime finds only entries in the \
                 first {ALIGNMENT} bytes of a bundle that is not compressed"
            )
        })
    }
}
