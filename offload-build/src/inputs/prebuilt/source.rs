//! The images in a source of a prebuilt module, by their headers.

use crate::inputs::prebuilt::fatbin;
use crate::inputs::prebuilt::image::PrebuiltImage;
use crate::unpacking::unpacking as cannot_unpack;
use offload_build_core::error::Error;
use offload_build_core::readable::Readable;
use offload_formats::container;
use offload_formats::container::bundled::{self, DeviceTarget, Unpacking};
use offload_formats::container::device_library::{self, PlainObjects};
use offload_formats::format::bytes::{ReadAt as _, ReadCache};
use offload_formats::format::magic::Magic;
use std::path::Path;

/// The images of a source, in its order. `memory` limits what an image of a fat binary may take in memory, in bytes.
pub(crate) fn images(
    path: &Path,
    memory: u64,
    unpacking: &mut Unpacking,
) -> Result<Vec<PrebuiltImage>, Error> {
    let file = Readable::open(path)?;
    let images = images_in(path, file.data(), memory, unpacking);
    file.check()?;
    images
}

fn images_in(
    path: &Path,
    cache: &ReadCache,
    memory: u64,
    unpacking: &mut Unpacking,
) -> Result<Vec<PrebuiltImage>, Error> {
    let wrong =
        |problem: Box<dyn std::error::Error + Send + Sync>| Error::because(path.display(), problem);
    let size = cache
        .size()
        .ok_or_else(|| wrong("its size cannot be read".into()))?;
    let itself = PrebuiltImage::new(None, cache, 0..size, None);
    if itself.is_device_code() {
        return Ok(vec![itself]);
    }
    if let Magic::Fatbin = Magic::at(cache, 0..size) {
        return fatbin::images(path, cache, 0..size, memory, unpacking);
    }
    let mut found = Vec::new();
    if let Magic::TextBundle = Magic::at(cache, 0..size) {
        // PTX is an image; a library's reader wants what can be linked.
        for entry in bundled::unpacked_entries(cache, 0..size, unpacking)
            .map_err(|problem| cannot_unpack(path, problem.remedy(), problem))?
        {
            if let Some(target) = entry.target().map_err(|problem| wrong(problem.into()))? {
                found.push(PrebuiltImage::new(
                    Some(target),
                    cache,
                    entry.range,
                    entry.unpacked,
                ));
            }
        }
        return Ok(found);
    }
    let is_library = matches!(
        Magic::at(cache, 0..size),
        Magic::Bundle | Magic::CompressedBundle | Magic::Archive | Magic::Bitcode
    );
    if is_library {
        let images = device_library::images(cache, PlainObjects::HostCode, unpacking)
            .map_err(|problem| cannot_unpack(path, problem.remedy(), problem))?;
        let images = images.into_iter();
        found.extend(
            images
                .map(|image| PrebuiltImage::new(image.target, cache, image.range, image.unpacked)),
        );
    }
    if found.is_empty() {
        let images = container::images_within(cache, unpacking)
            .map_err(|problem| cannot_unpack(path, problem.remedy(), problem))?;
        for image in images {
            let string = |key: &str| {
                let value = image.entry.strings.value(key).unwrap_or_default();
                String::from_utf8_lossy(value).into_owned()
            };
            let declared = Some(DeviceTarget {
                kind: image.entry.offload_kind,
                triple: string("triple"),
                processor: string("arch"),
            });
            found.push(PrebuiltImage::new(
                declared,
                cache,
                image.entry.image,
                image.bytes,
            ));
        }
    }
    Ok(found)
}
