//! The images of CUDA's fat binaries.

use crate::inputs::prebuilt::image::PrebuiltImage;
use crate::unpacking::{unpacked_image, unwritten};
use offload_build_core::error::Error;
use offload_formats::container::bundled::{DeviceTarget, Unpacking};
use offload_formats::format::bytes::ReadCache;
use offload_formats::format::fatbin::{self, FatbinEntry, FatbinKind, FatbinUnpacker};
use offload_formats::format::unpacked::Unpacked;
use offload_formats::names::OffloadKind;
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::Path;

const NVIDIA: &str = "nvptx64-nvidia-cuda";

/// Returns the images in a range of the file `path`, without what pads them; compressed ones are unpacked. One that cannot be
/// unpacked is an error only for whoever asks for it.
pub(super) fn images(
    path: &Path,
    data: &ReadCache,
    range: Range<u64>,
    memory: u64,
    unpacking: &mut Unpacking,
) -> Result<Vec<PrebuiltImage>, Error> {
    let entries = fatbin::parse(data, range);
    let entries = entries.map_err(|problem| Error::because(path.display(), problem))?;
    // The images of a group are unpacked once.
    let mut last = None;
    let image = |entry: FatbinEntry| {
        let declared = DeviceTarget {
            kind: OffloadKind::CUDA,
            triple: NVIDIA.to_owned(),
            processor: entry.processor.clone(),
        };
        if !entry.is_compressed() {
            let image = PrebuiltImage::new(Some(declared), data, entry.image, None);
            return Ok(image.without_padding(data));
        }
        let limit = memory.min(unpacking.remaining());
        let mut unpacker = FatbinUnpacker::new(data, limit).with_last(last.take());
        let unpacked = match unpacked_image(&mut unpacker, &entry, path) {
            Ok(bytes) => kept(bytes, unpacking).map_err(|problem| unwritten(path, problem))?,
            Err(problem) => {
                let (is_ptx, problem) = (entry.kind == FatbinKind::Ptx, problem.to_string());
                let image = PrebuiltImage::packed(declared, entry.image, is_ptx, problem);
                return Ok(image);
            }
        };
        last = unpacker.into_last();
        let (all, reader) = (0..unpacked.size(), unpacked.open());
        let image = PrebuiltImage::new(Some(declared), data, all, Some(unpacked));
        Ok(image.without_padding(&reader))
    };
    entries.into_iter().map(image).collect()
}

/// Writes `bytes` to the file of unpacked images.
fn kept(bytes: &[u8], unpacking: &mut Unpacking) -> io::Result<Unpacked> {
    let size = bytes.len() as u64;
    unpacking.spend(size);
    unpacking.scratch.keep(size, |out| out.write_all(bytes))
}
