//! Facts about images, for people.

use offload_formats::container::inventory::{ContainerData, ImageForm, PlacedImage};
use offload_formats::escape::terminal;
use offload_formats::format::fatbin::FatbinCompression;

/// Returns the target for people: the target ID, after the triple unless the target ID implies it.
pub(super) fn target(placed: &PlacedImage<'_>) -> String {
    let target = &placed.image.target;
    let triple = terminal(&target.triple).to_string();
    let processor = terminal(&target.processor).to_string();
    let implied = match triple.as_str() {
        "amdgcn-amd-amdhsa" => processor.starts_with("gfx"),
        "nvptx64-nvidia-cuda" => processor.starts_with("sm_") || processor.starts_with("compute_"),
        "" => true,
        _ => false,
    };
    match (implied, processor.as_str()) {
        (true, "") => placed
            .image
            .entry_id
            .as_ref()
            .map_or("?".to_owned(), |id| terminal(id).to_string()),
        (true, _) => processor,
        (false, "" | "generic") => triple,
        (false, _) => format!("{triple} {processor}"),
    }
}

/// Returns the form for people; empty if it was not read.
pub(super) fn form(placed: &PlacedImage<'_>) -> &'static str {
    placed.image.form.map_or("", ImageForm::name)
}

/// Returns the place of an image: its offset in the file or in its container's unpacked bytes.
pub(super) fn place(placed: &PlacedImage<'_>) -> String {
    let is_unpacked = !matches!(placed.stored_data(), ContainerData::File);
    let offset = placed.image.stored_range().start;
    match is_unpacked {
        true => format!("unpacked offset {offset:#x}"),
        false => format!("offset {offset:#x}"),
    }
}

/// Returns the name of the compression of an image itself.
pub(super) fn compression(compression: FatbinCompression) -> &'static str {
    match compression {
        FatbinCompression::Lz4 => "lz4",
        FatbinCompression::Zstd => "zstd",
        _ => "unknown compression",
    }
}
