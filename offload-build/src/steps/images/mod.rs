//! The images of a module, together: read, checked against each other, packed in one container.

pub(crate) mod lacking;
pub(crate) mod planned;

use crate::check;
use crate::generate;
use crate::generate::{Described, Place, Ptx, SourceName};
use crate::steps::images::planned::PlannedImage;
use offload_build_core::declare::language::{Container, Language};
use offload_build_core::declare::module::{ImageCompression, Module};
use offload_build_core::error::{self, Error};
use offload_build_core::files;
use offload_build_core::installed::llvm::numbers;
use offload_build_core::readable::Readable;
use offload_formats::by_name::ByName;
use offload_formats::container::cubin;
use offload_formats::container::fatbin::{FatbinImage, compressed_cuda_fatbin, cuda_fatbin};
use offload_formats::container::kernels::Argument;
use offload_formats::format::compressed_bundle::{CompressedBundleVersion, Compression};
use offload_formats::format::hip_bundle::{self, hip_bundle};
use offload_formats::format::pieces::{self, Piece};
use offload_formats::names::ImageKind;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Images that are made of the same sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartImages {
    /// The source; nothing if they are made of all.
    pub(crate) source: Option<SourceName>,
    /// One for each target.
    pub(crate) planned: Vec<PlannedImage>,
}

/// The images of a module, or of one source of it, and what becomes of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Images {
    pub(crate) planned: Vec<PlannedImage>,
    /// The source that they are made of; nothing if they are made of all.
    pub(crate) source: Option<SourceName>,
    pub(crate) container: Container,
    pub(crate) language: Language,
    compress: ImageCompression,
    /// Version of the compiler that makes them.
    version: String,
}

/// All images in their container.
#[derive(Debug)]
pub(crate) struct Packed {
    /// The container; input *k* is the file of the image with index *k*.
    pub(crate) pieces: Vec<Piece>,
    /// How it is compressed as a whole.
    pub(crate) compression: Option<Compression>,
    /// Range of each image in it; none if they are compressed.
    pub(crate) ranges: Vec<Range<u64>>,
    /// A warning for the user.
    pub(crate) warning: Option<String>,
}

impl Images {
    /// Returns the images, which `version` of a compiler makes.
    pub(crate) fn new(module: &Module, part: PartImages, version: &str) -> Self {
        Self {
            planned: part.planned,
            source: part.source,
            container: module.container,
            language: module.language,
            compress: module.compress,
            version: version.to_owned(),
        }
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.planned.iter().map(|image| image.path().to_owned())
    }

    /// Opens their files.
    pub(crate) fn open(&self) -> Result<Vec<Readable>, Error> {
        let images = self.planned.iter();
        images.map(|image| Readable::open(image.path())).collect()
    }

    /// Checks that each is what its target loads and has what `names` lists.
    pub(crate) fn check(&self, images: &[Readable], names: &BTreeSet<String>) -> Result<(), Error> {
        for (image, bytes) in self.planned.iter().zip(images) {
            image.check(bytes, names)?;
        }
        Ok(())
    }

    /// Returns a warning of the images that libomptarget, of the compiler's release, does not load.
    pub(crate) fn warning_of_ignored(&self, images: &[Readable]) -> Option<String> {
        let llvm = numbers(&self.version)?;
        let images = self.planned.iter().zip(images);
        let ignored =
            images.filter(|(_, image)| cubin::is_ignored_by_libomptarget(image.data(), 0, &llvm));
        let targets: Vec<&str> = ignored
            .map(|(planned, _)| planned.target.written.as_str())
            .collect();
        let warning = check::warning_of_ignored(&targets, *llvm.first()?)?;
        Some(format!("warning: {warning}\n"))
    }

    /// Returns the kernels of all images, and checks that each image is one that its target loads. Images of a source without
    /// kernels are not checked: their flags do not name the target's features.
    pub(crate) fn described(&self, images: &[Readable]) -> Result<Vec<Described>, Error> {
        let described = self.kernels(images)?;
        if !described.is_empty() {
            self.check(images, &BTreeSet::new())?;
        }
        Ok(described)
    }

    /// Returns an image in that place, as the file that Rust includes shows it.
    pub(crate) fn shown(&self, image: &PlannedImage, place: Place) -> generate::Image {
        generate::Image {
            target: image.target.written.clone(),
            source: self.source.iter().map(|name| name.path.as_str()).collect(),
            kind: image.kind().name(),
            compiler: self.version.clone(),
            place,
        }
    }

    /// Returns the kernels of all images. Those of one name take the same arguments, because the program fills them in without
    /// knowing which image runs.
    pub(crate) fn kernels(&self, images: &[Readable]) -> Result<Vec<Described>, Error> {
        let mut all: ByName<Described> = ByName::default();
        for (image, bytes) in self.planned.iter().zip(images) {
            let target = &image.target.written;
            for kernel in image.kernels(bytes)? {
                if self.language == Language::Rust {
                    check_layout(&kernel.name, &kernel.arguments)
                        .map_err(|problem| Error::new(format_args!("{image}: {problem}")))?;
                }
                let new = Described {
                    name: kernel.name.clone(),
                    arguments: kernel.arguments.clone(),
                    images: Vec::new(),
                    stub: None,
                };
                let described = all.or_insert(&kernel.name, new);
                if let (false, Some((other, _))) = (
                    are_passed_alike(&described.arguments, &kernel.arguments),
                    described.images.first(),
                ) {
                    let name = &kernel.name;
                    return Err(Error::new(format_args!(
                        "{image}: kernel `{name}` takes other arguments than for `{other}`"
                    )));
                }
                // One image may tell what another does not.
                for (known, argument) in described.arguments.iter_mut().zip(&kernel.arguments) {
                    known.kind = known.kind.or(argument.kind);
                }
                described.images.push((target.clone(), kernel));
            }
        }
        Ok(all.values().cloned().collect())
    }

    /// Returns the PTX among them, as text that the generated file includes; `out` is `OUT_DIR`.
    pub(crate) fn ptx(&self, out: &Path) -> Vec<Ptx> {
        let ptx = self.planned.iter();
        let ptx = ptx.filter(|image| image.kind() == ImageKind::PTX);
        ptx.map(|image| Ptx {
            target: image.target.written.clone(),
            file: image
                .path()
                .strip_prefix(out)
                .ok()
                .map(|path| path.to_string_lossy().into_owned()),
        })
        .collect()
    }

    /// Packs all of them in their container.
    pub(crate) fn pack(&self, images: &[Readable]) -> Result<Packed, Error> {
        match self.container {
            Container::Bundle => self.bundle(images),
            Container::Fatbin => self.fatbin(images),
            Container::OffloadBinary => self.offload_binaries(images),
            Container::Raw => Ok(self.raw(images)),
        }
    }

    /// Tells whether they could be compressed in their container, and are not.
    pub(crate) fn are_plain(&self) -> bool {
        match self.container {
            Container::Bundle => self.compress.of_bundle().is_none(),
            Container::Fatbin => self.compress.of_fatbin().is_none(),
            Container::OffloadBinary | Container::Raw => false,
        }
    }

    fn bundle(&self, images: &[Readable]) -> Result<Packed, Error> {
        let ids = self.planned.iter().map(|image| {
            let processor = image.target.id.to_string();
            hip_bundle::entry_id("hipv4", &processor)
        });
        let entries: Vec<(String, u64)> = ids.zip(images.iter().map(Readable::size)).collect();
        let bundle = hip_bundle(hip_bundle::HOST_ID, &entries).map_err(Error::new)?;
        let warning = bundle.warning();
        let size = pieces::size(&bundle.pieces);
        let compression = self
            .compress
            .of_bundle()
            .map(|(method, level)| Compression {
                version: CompressedBundleVersion::for_any_runtime(size),
                method,
                level,
                ..Compression::default()
            });
        Ok(Packed {
            pieces: bundle.pieces,
            ranges: match compression {
                None => bundle.images,
                Some(_) => Vec::new(),
            },
            compression,
            warning,
        })
    }

    fn fatbin(&self, images: &[Readable]) -> Result<Packed, Error> {
        let images = self.planned.iter().zip(images);
        let images = images.map(|(planned, image)| FatbinImage {
            processor: &planned.target.written,
            image: image.data(),
        });
        let images: Vec<_> = images.collect();
        let fatbin = match self.compress.of_fatbin() {
            Some(compressor) => compressed_cuda_fatbin(&images, compressor),
            None => cuda_fatbin(&images),
        };
        let fatbin = fatbin.map_err(Error::new)?;
        Ok(Packed::plain(fatbin.pieces, fatbin.images))
    }

    /// Packs each image in an offload binary of its own, with its range there.
    pub(crate) fn binaries(&self, images: &[Readable]) -> Result<Vec<PackedBinary>, Error> {
        let images = self.planned.iter().zip(images).enumerate();
        let pack = |(input, (planned, image)): (usize, (&PlannedImage, &Readable))| {
            let kind = self.language.offload_kind(&planned.target.triple);
            planned.pack((input, image.size()), kind)
        };
        images.map(pack).collect()
    }

    fn offload_binaries(&self, images: &[Readable]) -> Result<Packed, Error> {
        let binaries = self.binaries(images)?;
        Ok(Packed::plain(joined(&binaries), consecutive(&binaries)))
    }

    /// Places each by itself, at the beginning of a page.
    fn raw(&self, images: &[Readable]) -> Packed {
        let mut end = 0_u64;
        let (mut pieces, mut ranges) = (Vec::new(), Vec::new());
        for (input, (planned, image)) in self.planned.iter().zip(images).enumerate() {
            let start = end.next_multiple_of(ALIGNMENT);
            // How the driver knows the end of PTX.
            let nul = u64::from(planned.kind() == ImageKind::PTX);
            let range = 0..image.size();
            pieces.extend([
                Piece::Zeros(start - end),
                Piece::Copy { input, range },
                Piece::Zeros(nul),
            ]);
            end = start + image.size() + nul;
            ranges.push(start..end);
        }
        Packed::plain(pieces, ranges)
    }
}

impl Packed {
    fn plain(pieces: Vec<Piece>, ranges: Vec<Range<u64>>) -> Self {
        Self {
            pieces,
            ranges,
            compression: None,
            warning: None,
        }
    }

    /// Writes the container to a file, and returns its size in bytes. `images` are the files of the images.
    pub(crate) fn write(&self, path: &Path, images: &[PathBuf]) -> Result<u64, Error> {
        let written = match self.compression {
            None => files::write_pieces(path, &self.pieces, images),
            Some(how) => files::write_compressed(path, self.pieces.clone(), images, how),
        };
        written.map_err(error::io(path))?;
        let data = std::fs::metadata(path).map_err(error::io(path))?;
        Ok(data.len())
    }
}

/// An offload binary, and the range of its image in it.
pub(crate) type PackedBinary = (Vec<Piece>, Range<u64>);

/// Returns offload binaries that follow each other.
pub(crate) fn joined(binaries: &[PackedBinary]) -> Vec<Piece> {
    let pieces = binaries.iter().map(|(binary, _)| binary.as_slice());
    pieces.collect::<Vec<_>>().concat()
}

/// Returns the ranges of the images when the offload binaries follow each other. Each has a size that is a multiple of 8,
/// so the next one follows at once.
pub(crate) fn consecutive(binaries: &[PackedBinary]) -> Vec<Range<u64>> {
    let mut start = 0;
    let range = |(binary, image): &PackedBinary| {
        let range = start + image.start..start + image.end;
        start += pieces::size(binary);
        range
    };
    binaries.iter().map(range).collect()
}

/// Returns the error of a module without kernels.
pub(crate) fn no_kernel(language: Language) -> Error {
    Error::new(match language {
        Language::Rust => {
            "no kernel in the crate [OFF703]\nhint: write a function with the attribute `#[offload_device::kernel]` in it"
        }
        Language::OpenMp => {
            "no target region and no `declare target` variable in any source [OFF703]\n\
             hint: write `#pragma omp target` in one of `sources`"
        }
        Language::Hip | Language::Cuda => {
            "no kernel in any source [OFF703]\n\
             hint: write a `__global__` function in one of `sources`; sources without kernels are for the crate `cc`"
        }
        Language::Bitcode | Language::Prebuilt => "no kernel in any source [OFF703]",
    })
}

/// Checks that arguments are where `offload-device` puts them: each scalar at the first multiple of its size after the one
/// before it (`Layout::offset`).
fn check_layout(kernel: &str, arguments: &[Argument]) -> Result<(), String> {
    let mut end = 0u32;
    for (index, argument) in arguments.iter().enumerate() {
        let (offset, size) = (argument.offset, argument.size);
        let expected = end.next_multiple_of(size.clamp(1, 8));
        if offset != expected || !size.is_power_of_two() || size > 8 {
            return Err(format!(
                "kernel `{kernel}`: argument {index} has {size} bytes at offset {offset:#x}, expected a scalar at {expected:#x}\n\
                 hint: kernels are functions with the attribute `#[offload_device::kernel]`"
            ));
        }
        end = expected + size;
    }
    Ok(())
}

/// Tells whether two images take the same argument buffer.
fn are_passed_alike(one: &[Argument], other: &[Argument]) -> bool {
    let is_alike = |(one, other): (&Argument, &Argument)| one.is_at_the_place_of(other);
    one.len() == other.len() && one.iter().zip(other).all(is_alike)
}

/// Alignment of images that are in no container.
const ALIGNMENT: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_the_layout_of_kernels_in_rust() {
        let checked = |places: &[(u32, u32)]| {
            let arguments = places
                .iter()
                .map(|(offset, size)| Argument::new(*offset, *size, None));
            check_layout("k", &arguments.collect::<Vec<_>>())
        };
        assert_eq!(checked(&[(0, 4), (8, 8), (16, 1), (18, 2)]), Ok(()));
        let rows: [&[(u32, u32)]; 4] =
            [&[(4, 4)], &[(0, 4), (4, 8)], &[(0, 16)], &[(0, 8), (16, 8)]];
        for places in rows {
            let error = checked(places).unwrap_err();
            assert!(error.starts_with("kernel `k`: argument "), "{error}");
        }
        assert!(
            checked(&[(0, 8), (16, 8)])
                .unwrap_err()
                .contains("argument 1 has 8 bytes at offset 0x10, expected a scalar at 0x8\n")
        );
    }
}
