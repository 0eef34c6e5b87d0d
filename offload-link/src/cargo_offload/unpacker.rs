//! Images in compressed containers, unpacked in memory.

use std::sync::Arc;

use offload_formats::format::bytes::ReadAt;
use offload_formats::format::compressed_bundle::{CompressedBundle, CompressedBundleError};
use offload_formats::format::fatbin::{
    FatbinEntry, FatbinKind, FatbinUnpackError, FatbinUnpacker, UnpackedBytes,
};

use super::images::FilePart;

/// Tells whether the bytes of an image in a fat binary are not those of the file: it is compressed, or PTX.
pub(super) fn is_unpacked(entry: &FatbinEntry) -> bool {
    entry.kind == FatbinKind::Ptx || entry.is_compressed()
}

/// Unpacks images. Keeps what was unpacked last: images that are compressed together follow one another.
pub(super) struct ImageUnpacker {
    /// Largest size of unpacked data in bytes.
    limit: u64,
    /// The last compressed bundle, and its content.
    bundle: Option<(Arc<CompressedBundle>, Arc<[u8]>)>,
    /// Address of the data of a fat binary, and its last group.
    group: Option<(usize, UnpackedBytes)>,
}

impl ImageUnpacker {
    pub(super) fn new(limit: u64) -> Self {
        Self {
            limit,
            bundle: None,
            group: None,
        }
    }

    /// Reads an image of a fat binary in `data`, which is that of the part, or in unpacked bytes. PTX loses the NULs at
    /// its end, which are not text.
    pub(super) fn fatbin_image<'d, R: ReadAt<'d>>(
        &mut self,
        part: &FilePart,
        unpacked: Option<&Arc<[u8]>>,
        data: R,
        entry: &FatbinEntry,
    ) -> Result<Vec<u8>, FatbinUnpackError> {
        // Both live as long as the list of images.
        let address = match unpacked {
            Some(bytes) => Arc::as_ptr(bytes).addr(),
            None => std::ptr::from_ref(part).addr(),
        };
        let last = self.group.take().filter(|(of, _)| *of == address);
        let last = last.map(|(_, bytes)| bytes);
        let mut unpacker = FatbinUnpacker::new(data, self.limit).with_last(last);
        let bytes = unpacker.image(entry)?;
        let is_text = entry.kind == FatbinKind::Ptx;
        let end = bytes
            .iter()
            .rposition(|byte| *byte != 0)
            .filter(|_| is_text);
        let bytes = end.map_or(bytes, |last| &bytes[..=last]).to_vec();
        if entry.group.is_some() {
            self.group = unpacker.into_last().map(|last| (address, last));
        }
        Ok(bytes)
    }

    /// Returns the content of a compressed bundle in `data`.
    pub(super) fn bundle_content<'d, R: ReadAt<'d>>(
        &mut self,
        bundle: &Arc<CompressedBundle>,
        data: R,
    ) -> Result<Arc<[u8]>, CompressedBundleError> {
        let last = self.bundle.as_ref();
        if let Some((_, bytes)) = last.filter(|(last, _)| Arc::ptr_eq(last, bundle)) {
            return Ok(Arc::clone(bytes));
        }
        let bytes: Arc<[u8]> = bundle.decompress(data, self.limit)?.into();
        self.bundle = Some((Arc::clone(bundle), Arc::clone(&bytes)));
        Ok(bytes)
    }
}
