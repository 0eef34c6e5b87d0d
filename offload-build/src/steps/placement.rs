//! Decides where the host's linker places the images of a module.

use offload_build_core::error::Error;
use offload_formats::container::elf::Machine;
use offload_formats::container::large::ImagePlacement;

/// Returns the placement of `total` bytes of images on an ELF host, or on another one (`None`), where a program has at
/// most `largest_usual` bytes in usual sections.
///
/// # Errors
///
/// Fails if no program for the host can have such images.
pub(crate) fn placement(
    elf: Option<Machine>,
    total: u64,
    largest_usual: u64,
) -> Result<ImagePlacement, Error> {
    let placement = ImagePlacement::choose(elf, total, largest_usual);
    placement.map_err(|problem| {
        let hint = "build for fewer targets, or set `compress = \"zstd\"`";
        Error::new(format_args!("{problem} [OFF813]\nhint: {hint}"))
    })
}
