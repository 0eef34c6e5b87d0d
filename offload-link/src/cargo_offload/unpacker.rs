//! Images in compressed containers, unpacked: bundles to a temporary file, images of fat binaries to memory.

use std::ops::Range;
use std::sync::Arc;

use offload_formats::format::bytes::ReadAt;
use offload_formats::format::compressed_bundle::{CompressedBundle, CompressedBundleError};
use offload_formats::format::fatbin::{
    FatbinEntry, FatbinKind, FatbinUnpackError, FatbinUnpacker, UnpackedBytes,
};
use offload_formats::format::unpacked::Unpacked;

use super::images::FilePart;
use crate::decompressed::DecompressionLimit;
use crate::files;

/// Tells whether the bytes of an image in a fat binary are not those of the file: it is compressed, or PTX.
pub(super) fn is_unpacked(entry: &FatbinEntry) -> bool {
    entry.kind == FatbinKind::Ptx || entry.is_compressed()
}

/// Unpacks images. Keeps what was unpacked last: images that are compressed together follow one another.
pub(super) struct ImageUnpacker {
    limit: DecompressionLimit,
    /// The last compressed bundle, and its content.
    bundle: Option<(Arc<CompressedBundle>, Unpacked)>,
    /// Data of a fat binary: the address of its part, and its range in unpacked bytes; and its last image or group.
    last: Option<((usize, Range<u64>), UnpackedBytes)>,
}

impl ImageUnpacker {
    pub(super) fn new(limit: DecompressionLimit) -> Self {
        Self {
            limit,
            bundle: None,
            last: None,
        }
    }

    /// Reads an image of a fat binary in `data`, which is that of the part, or in unpacked bytes. PTX loses the NULs at
    /// its end, which are not text.
    pub(super) fn fatbin_image<'d, R: ReadAt<'d>>(
        &mut self,
        part: &FilePart,
        unpacked: Option<&Unpacked>,
        data: R,
        entry: &FatbinEntry,
    ) -> Result<&[u8], FatbinUnpackError> {
        // The part lives as long as the list of images.
        let address = std::ptr::from_ref(part).addr();
        let of = (address, unpacked.map_or(0..0, Unpacked::range));
        let last = self.last.take().filter(|(last, _)| *last == of);
        let last = last.map(|(_, bytes)| bytes);
        let mut unpacker = FatbinUnpacker::new(data, self.limit.memory()).with_last(last);
        unpacker.image(entry)?;
        let last = unpacker.into_last().expect("an image was read");
        let (_, last) = self.last.insert((of, last));
        let bytes = last.image(entry)?;
        let is_text = entry.kind == FatbinKind::Ptx;
        let end = bytes
            .iter()
            .rposition(|byte| *byte != 0)
            .filter(|_| is_text);
        Ok(end.map_or(bytes, |last| &bytes[..=last]))
    }

    /// Returns the content of a compressed bundle in `data`.
    pub(super) fn bundle_content<'d, R: ReadAt<'d>>(
        &mut self,
        bundle: &Arc<CompressedBundle>,
        data: R,
    ) -> Result<Unpacked, CompressedBundleError> {
        let last = self.bundle.as_ref();
        if let Some((_, bytes)) = last.filter(|(last, _)| Arc::ptr_eq(last, bundle)) {
            return Ok(bytes.clone());
        }
        // Only the last bundle stays on disk.
        let bytes = bundle.unpack(data, self.limit.files(), &files::scratch())?;
        self.bundle = Some((Arc::clone(bundle), bytes.clone()));
        self.last = None;
        Ok(bytes)
    }
}
