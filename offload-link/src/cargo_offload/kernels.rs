//! The kernels of a file's images.

use std::error::Error;
use std::ops::Range;

use offload_formats::container::inventory::{
    ContainerData, ImageForm, InventoryImage, PlacedImage,
};
use offload_formats::container::kernels::{
    Kernel, KernelError, kernels_within, ptx_kernels, signature, source_name,
};
use offload_formats::format::bytes::{ReadAt, ReadCache};
use offload_formats::format::magic::Magic;
use offload_formats::format::unpacked::Unpacked;

use super::image_text;
use super::images::{FileImages, FilePart};
use super::unpacker::{ImageUnpacker, is_unpacked};
use crate::decompressed::DecompressionLimit;

/// The kernels of a file's images.
pub(super) struct FileKernels {
    /// A list for each image, by the image's number; `None` if an image of its form lists no kernels.
    lists: Vec<Option<Vec<Kernel>>>,
}

impl FileKernels {
    /// Reads the kernels of all images. Images that cannot be read become problems of the file. Reads headers, symbols
    /// and notes; unpacks what is compressed, up to `limit` bytes at once.
    pub(super) fn read(found: &mut FileImages, limit: DecompressionLimit) -> Self {
        let mut unpacker = ImageUnpacker::new(limit);
        let (mut lists, mut problems) = (Vec::new(), Vec::new());
        for part in &found.parts {
            for placed in part.inventory.images() {
                let number = lists.len();
                let kernels = read(&mut unpacker, part, &placed).unwrap_or_else(|problem| {
                    let target = image_text::target(&placed);
                    problems.push(format!("image {number} ({target}): {problem}"));
                    None
                });
                lists.push(kernels);
            }
        }
        found.problems.extend(problems);
        Self { lists }
    }

    /// Returns the kernels of an image by its number.
    pub(super) fn of(&self, number: usize) -> Option<&[Kernel]> {
        self.lists.get(number)?.as_deref()
    }

    /// Moves the kernels of an image out, by its number.
    pub(super) fn take(&mut self, number: usize) -> Option<Vec<Kernel>> {
        self.lists.get_mut(number)?.take()
    }

    /// Lists the kernels of all images, in the order of the images.
    pub(super) fn all(&self) -> impl Iterator<Item = &Kernel> {
        self.lists.iter().flatten().flatten()
    }
}

/// Lists the kernels of an image; `None` if it is of a form that lists none.
fn read(
    unpacker: &mut ImageUnpacker,
    part: &FilePart,
    placed: &PlacedImage<'_>,
) -> Result<Option<Vec<Kernel>>, Box<dyn Error>> {
    let image = placed.image;
    if image.form.is_some_and(lists_none) {
        return Ok(None);
    }
    // A cache for each image: it keeps what it read.
    let file = ReadCache::new(part.reading.part(0..part.size));
    match placed.data() {
        ContainerData::File => read_in(unpacker, part, None, &file, image),
        ContainerData::Unpacked(bytes) => {
            read_in(unpacker, part, Some(bytes), &bytes.open(), image)
        }
        ContainerData::Packed(bundle) => {
            let bytes = unpacker.bundle_content(bundle, &file)?;
            read_in(unpacker, part, Some(&bytes), &bytes.open(), image)
        }
    }
}

fn read_in<'d, R: ReadAt<'d>>(
    unpacker: &mut ImageUnpacker,
    part: &FilePart,
    unpacked: Option<&Unpacked>,
    data: R,
    image: &InventoryImage,
) -> Result<Option<Vec<Kernel>>, Box<dyn Error>> {
    let entry = image.fatbin_entry.as_ref();
    Ok(match entry.filter(|entry| is_unpacked(entry)) {
        Some(entry) => {
            let bytes = unpacker.fatbin_image(part, unpacked, data, entry)?;
            kernels_at(bytes, 0..bytes.len() as u64, image.form)?
        }
        None => kernels_at(data, image.range.clone(), image.form)?,
    })
}

/// Lists the kernels of the image at a range; `None` if it is of a form that lists none.
fn kernels_at<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    form: Option<ImageForm>,
) -> Result<Option<Vec<Kernel>>, KernelError> {
    if form == Some(ImageForm::Ptx) {
        let size = range.end.saturating_sub(range.start);
        let text = data.read_at(range.start, size);
        return text.map(ptx_kernels).transpose();
    }
    match Magic::at(data, range.clone()) {
        Magic::Elf => kernels_within(data, range).map(Some),
        _ => Ok(None),
    }
}

/// Tells whether images of a form list no kernels, whatever is in them: they are not unpacked.
fn lists_none(form: ImageForm) -> bool {
    use ImageForm::{Bitcode, HostElf, LtoIr, SpirV, SpirVElf};
    matches!(form, HostElf | LtoIr | Bitcode | SpirV | SpirVElf)
}

/// Returns the name of a kernel in source form: C++ and Rust names are demangled.
pub(super) fn shown_name(symbol: &str) -> String {
    match rustc_demangle::try_demangle(symbol) {
        // Names of C++ parse as Rust's older names, but have no hash.
        Ok(name) if format!("{name}") != format!("{name:#}") || symbol.starts_with("_R") => {
            format!("{name:#}")
        }
        _ => signature(symbol),
    }
}

/// Tells whether a kernel has that symbol, or that name in source form, with or without its parameters.
pub(super) fn is_called(symbol: &str, name: &str) -> bool {
    symbol == name || shown_name(symbol) == name || source_name(symbol) == name
}
