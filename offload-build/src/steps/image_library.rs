//! Writes the static library of a module without host code: an object for each container of images, whose content is
//! copied from the container's file.

use crate::steps::placement::placement;
use offload_build_core::declare::language::Container;
use offload_build_core::error::{self, Error};
use offload_build_core::files;
use offload_formats::container::archive::{self, Index, MemberPlan};
use offload_formats::container::data_object::{DataHost, DataObject, DataSymbol};
use offload_formats::container::large::ImagePlacement;
use offload_formats::format::pieces::Piece;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A static library whose objects contain images, each container in the section where tools look for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageLibrary {
    pub(crate) host: DataHost,
    /// Largest total of images in usual sections in bytes.
    pub(crate) largest_usual: u64,
    /// Start of its symbols, which no other module has.
    pub(crate) unique: String,
    pub(crate) library: PathBuf,
}

/// A container in the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkedContainer<'a> {
    /// The container's file.
    pub(crate) file: &'a Path,
    /// Size of the file in bytes.
    pub(crate) size: u64,
    pub(crate) container: Container,
    pub(crate) symbols: ContainerSymbols,
    /// Range of each image in the file; none if it is compressed.
    pub(crate) images: Vec<Range<u64>>,
}

/// Names of a container's symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContainerSymbols(String);

impl ContainerSymbols {
    /// Returns the symbol of the container.
    pub(crate) fn container(&self) -> String {
        format!("{}_container", self.0)
    }

    /// Returns the symbol of an image.
    pub(crate) fn image(&self, index: usize) -> String {
        format!("{}_image_{index}", self.0)
    }
}

impl ImageLibrary {
    /// Returns the symbols of the container with that index.
    pub(crate) fn symbols(&self, index: usize) -> ContainerSymbols {
        ContainerSymbols(match index {
            0 => self.unique.clone(),
            _ => format!("{}_{index}", self.unique),
        })
    }

    /// Writes the library, and returns where a program has the images. A library that already has these bytes is left
    /// alone.
    pub(crate) fn write(
        &self,
        containers: &[LinkedContainer<'_>],
    ) -> Result<ImagePlacement, Error> {
        let elf = match self.host {
            DataHost::Elf(machine) => Some(machine),
            DataHost::Coff => None,
        };
        let total = containers.iter().map(|container| container.size).sum();
        let placement = placement(elf, total, self.largest_usual)?;
        let mut members = Vec::new();
        for (input, container) in containers.iter().enumerate() {
            let symbols = container.data_symbols();
            let (section, alignment) = section(container.container);
            let object = DataObject {
                section,
                placement,
                alignment,
                symbols: &symbols,
            };
            let range = 0..container.size;
            let pieces = object.to_pieces(self.host, &[Piece::Copy { input, range }]);
            let pieces =
                pieces.map_err(|problem| Error::because(container.file.display(), problem))?;
            members.push((format!("{}.o", container.symbols.0), pieces, symbols));
        }
        let indexed = members.iter().map(|(name, pieces, symbols)| {
            let names = symbols.iter().map(|symbol| symbol.name.as_bytes());
            (name, pieces, names.collect::<Vec<&[u8]>>())
        });
        let indexed: Vec<_> = indexed.collect();
        let plans = indexed.iter().map(|(name, content, symbols)| MemberPlan {
            name,
            content,
            symbols,
        });
        let layout = archive::layout(&plans.collect::<Vec<_>>(), Index::Always);
        let wrong = |problem| Error::because(self.library.display(), problem);
        let inputs: Vec<&Path> = containers.iter().map(|container| container.file).collect();
        files::write_pieces(&self.library, &layout.map_err(wrong)?, &inputs)
            .map_err(error::io(&self.library))?;
        Ok(placement)
    }
}

impl LinkedContainer<'_> {
    fn data_symbols(&self) -> Vec<DataSymbol> {
        let symbol = |name, range: &Range<u64>| DataSymbol {
            name,
            offset: range.start,
            size: range.end.saturating_sub(range.start),
        };
        let images = self.images.iter().enumerate();
        let images = images.map(|(index, range)| symbol(self.symbols.image(index), range));
        let whole = symbol(self.symbols.container(), &(0..self.size));
        std::iter::once(whole).chain(images).collect()
    }
}

/// Returns the section in which tools look for a container, and its alignment in bytes. Containers of several crates stand
/// one after the other in it. No linker wrapper links or registers what is in these sections.
pub(crate) fn section(container: Container) -> (&'static str, u64) {
    match container {
        // HIP's runtime maps code objects in place.
        Container::Bundle => (".hip_fatbin", 4096),
        Container::Fatbin => (".nv_fatbin", 16),
        Container::OffloadBinary => (".offloading.images", 8),
        Container::Raw => (".device_images", 4096),
    }
}
