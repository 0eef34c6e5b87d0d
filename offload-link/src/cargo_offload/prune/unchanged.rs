//! Files, and parts of files, that stay as they are.

use std::path::Path;

use offload_formats::container::bundled::Unpacking;
use offload_formats::container::inventory::{ContainerFormat, inventory};
use offload_formats::container::prune::PruneError;
use offload_formats::escape::terminal;
use offload_formats::format::bytes::ReadAt;

use crate::say;

/// Warns of the parts of a file that stay as they are.
pub(super) fn warn_of_left(name: &Path, left: &[String]) {
    for text in left {
        let text = format!("{}: {text}", terminal(name));
        say::warning("cargo offload prune", &text);
    }
}

/// Returns the text for a file whose images are in formats that are not changed.
pub(super) fn images_stay(error: &PruneError) -> String {
    format!("its device images stay: {error}")
}

/// Tells whether a file contains images. One that is an image itself, for one target, contains none.
pub(super) fn contains_images<'d>(data: impl ReadAt<'d>, size: u64) -> bool {
    let found = inventory(data, &mut Unpacking::in_memory(0));
    found.containers.iter().any(|container| {
        let mut images = container.images.iter();
        // Linked images that are compressed are not unpacked, and thus not listed.
        container.format == ContainerFormat::LinkedImages
            || images.any(|image| !image.is_host && image.stored_range() != (0..size))
    })
}
