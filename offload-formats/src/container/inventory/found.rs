//! The types of an inventory.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::identity::{Identity, ImageForm};
use crate::container::Standing;
use crate::container::bundled::DeviceTarget;
use crate::escape::terminal;
use crate::format::bytes::ReadAt;
use crate::format::compressed_bundle::{CompressedBundle, CompressedBundleError, Method};
use crate::format::fatbin::{FatbinCompression, FatbinEntry, FatbinKind};
use crate::format::magic::Magic;
use crate::format::unpacked::{Scratch, Unpacked};
use crate::format::zip::ZipMember;
use crate::names::OffloadKind;

/// The device images of a file.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Inventory {
    /// Containers of images in file order.
    pub containers: Vec<ImageContainer>,
    /// Members of thin archives, which are other files: the caller can open and search them.
    pub outside: Vec<OutsideMember>,
    /// Compressed members of zip files, which the caller can unpack and search.
    pub packed: Vec<PackedMember>,
    /// Objects of formats without a known place for images.
    pub unsupported: Vec<UnsupportedFile>,
    /// Parts of the file that could not be read, and bytes in a container that belong to no image.
    pub problems: Vec<InventoryProblem>,
}

/// Bytes that hold one or more images.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ImageContainer {
    /// Names of the archive members that contain it, the outermost first. For a universal Mach-O file, the names of
    /// processors.
    pub members: Vec<Vec<u8>>,
    /// Name of the section that contains it.
    pub section: Option<Vec<u8>>,
    /// The container's format.
    pub format: ContainerFormat,
    /// Range in the file; for containers in unpacked bytes, range in these.
    pub range: Range<u64>,
    /// Compression of the whole container.
    pub compression: Option<ContainerCompression>,
    /// Tells if a linker wrapper would link the images; `None` for formats that wrappers treat alike everywhere.
    pub standing: Option<Standing>,
    /// Data that contains the images, which their ranges refer to.
    pub data: ContainerData,
    /// Images in the container's order, the host's entries of bundles too.
    pub images: Vec<InventoryImage>,
}

/// Formats of containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ContainerFormat {
    /// A bundle of `clang-offload-bundler`, plain or compressed.
    Bundle,
    /// A bundle as text.
    TextBundle,
    /// A bundle in the sections of an object.
    ObjectBundle,
    /// A section of a linked file with all images for a target, as Intel's compiler writes it.
    LinkedImages,
    /// An offload binary.
    OffloadBinary,
    /// A CUDA fat binary.
    Fatbin,
    /// One image without a container: a file, an archive member, a section, or a part of data.
    Image,
}

impl ContainerFormat {
    /// Returns the format's name, such as `offload binary`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bundle => "bundle",
            Self::TextBundle => "text bundle",
            Self::ObjectBundle => "bundle in sections",
            Self::LinkedImages => "linked images",
            Self::OffloadBinary => "offload binary",
            Self::Fatbin => "fat binary",
            Self::Image => "image",
        }
    }
}

/// Compression of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContainerCompression {
    /// The method.
    pub method: Method,
    /// Version of a compressed bundle: 1, 2 or 3.
    pub version: Option<u16>,
    /// Uncompressed size in bytes, according to the header.
    pub uncompressed_size: u64,
    /// First 8 bytes of the MD5 digest of the uncompressed bytes, according to the header of a compressed bundle.
    pub hash: Option<[u8; 8]>,
}

/// Data that contains a container's images.
#[derive(Clone, Debug)]
pub enum ContainerData {
    /// The file, or what contains the container.
    File,
    /// Bytes that were unpacked from the file.
    Unpacked(Unpacked),
    /// The content of a compressed bundle, which was not unpacked.
    Packed(Arc<CompressedBundle>),
}

/// An image.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InventoryImage {
    /// Index in its container.
    pub index: usize,
    /// Entry ID of a bundle's entry, as written.
    pub entry_id: Option<String>,
    /// True for the host's entry of a bundle.
    pub is_host: bool,
    /// Target according to the container, or else to the image. Fields may be empty.
    pub target: DeviceTarget,
    /// Target ID according to the image itself, such as `gfx90a:xnack+`.
    pub own_target_id: Option<String>,
    /// Form of the image; `None` if its bytes were not read, because they are compressed.
    pub form: Option<ImageForm>,
    /// Range in [`PlacedImage::data`]: the container's data, or the image's own if it was unpacked.
    pub range: Range<u64>,
    /// The image's own data, if the image was compressed alone and the container's format is [`ContainerFormat::LinkedImages`].
    pub unpacked: Option<UnpackedImage>,
    /// Size in bytes, uncompressed.
    pub size: u64,
    /// Size in the container's data in bytes. Images that are compressed together share theirs by their sizes.
    pub stored_size: u64,
    /// Entry of a CUDA fat binary, which [`FatbinUnpacker`](crate::format::fatbin::FatbinUnpacker) reads.
    pub fatbin_entry: Option<FatbinEntry>,
    /// Containers that the image consists of, such as a fat binary in an offload binary.
    pub inner: Vec<ImageContainer>,
}

/// The data of an image that was unpacked: a zstd frame.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnpackedImage {
    /// Range of the frame in the container's data.
    pub stored: Range<u64>,
    /// The unpacked bytes.
    pub data: ContainerData,
}

impl InventoryImage {
    /// Returns the image that an entry of a fat binary describes.
    pub(super) fn of_fatbin(index: usize, entry: FatbinEntry) -> Self {
        let number = entry.processor.trim_start_matches("sm_");
        let (form, processor) = match entry.kind {
            FatbinKind::Ptx => (Some(ImageForm::Ptx), format!("compute_{number}")),
            FatbinKind::Cubin => (Some(ImageForm::Cubin), entry.processor.clone()),
            FatbinKind::LtoIr => (Some(ImageForm::LtoIr), entry.processor.clone()),
            _ => (None, entry.processor.clone()),
        };
        let size = entry.uncompressed_size;
        let range = entry.image.clone();
        Self {
            index,
            entry_id: None,
            is_host: false,
            target: DeviceTarget {
                kind: OffloadKind::CUDA,
                triple: "nvptx64-nvidia-cuda".to_owned(),
                processor,
            },
            own_target_id: None,
            form,
            size,
            stored_size: entry.size_in_file(),
            range,
            unpacked: None,
            fatbin_entry: Some(entry),
            inner: Vec::new(),
        }
    }

    /// Returns the compression of the image itself.
    #[must_use]
    pub fn compression(&self) -> Option<FatbinCompression> {
        match (&self.fatbin_entry, &self.unpacked) {
            (Some(entry), _) => entry.compression,
            (None, unpacked) => unpacked.as_ref().map(|_| FatbinCompression::Zstd),
        }
    }

    /// Returns the range of the image in the container's data, where it may be compressed.
    #[must_use]
    pub fn stored_range(&self) -> Range<u64> {
        let unpacked = self.unpacked.as_ref();
        unpacked.map_or(self.range.clone(), |unpacked| unpacked.stored.clone())
    }
}

/// A member of a thin archive.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutsideMember {
    /// Names of the archive members, the outermost first. The last is the path of the file, relative to the archive's
    /// folder.
    pub members: Vec<Vec<u8>>,
    /// Size of the file in bytes, according to the archive.
    pub size: u64,
}

/// A compressed member of a zip file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackedMember {
    /// Names of the members, the outermost first; the last is that of `member`.
    pub members: Vec<Vec<u8>>,
    /// The member.
    pub member: ZipMember,
}

/// An object of a format without a known place for images.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnsupportedFile {
    /// Names of the archive members that contain it, the outermost first.
    pub members: Vec<Vec<u8>>,
    /// The object's format.
    pub format: Magic,
}

/// A part of a file that could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub struct InventoryProblem {
    /// Names of the archive members that contain it, the outermost first.
    pub members: Vec<Vec<u8>>,
    /// Name of the section that contains it.
    pub section: Option<Vec<u8>>,
    /// The problem, with offsets.
    pub problem: Box<dyn std::error::Error + Send + Sync>,
    /// True if a higher limit on decompressed data solves it.
    pub is_limit: bool,
}

impl fmt::Display for InventoryProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for member in &self.members {
            write!(f, "member `{}`: ", terminal(&member[..]))?;
        }
        if let Some(section) = &self.section {
            write!(f, "section `{}`: ", terminal(&section[..]))?;
        }
        self.problem.fmt(f)
    }
}

/// An image with the containers around it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PlacedImage<'a> {
    /// The image.
    pub image: &'a InventoryImage,
    /// The containers around the image, the outermost first; never empty.
    pub containers: [Option<&'a ImageContainer>; MAX_NESTING],
}

/// Largest number of containers around an image.
pub const MAX_NESTING: usize = 4;

/// Limit on overlapping sections and images: the size of all containers, in multiples of the file size.
pub(super) const OVERLAP: u64 = 16;

impl<'a> PlacedImage<'a> {
    /// Returns the container of the image.
    #[must_use]
    pub fn container(&self) -> &'a ImageContainer {
        let mut containers = self.containers.iter().rev();
        containers
            .find_map(|container| *container)
            .expect("an image has a container")
    }

    /// Returns the data that the image's range refers to: its own, the innermost that is not in the file, or the file.
    #[must_use]
    pub fn data(&self) -> &'a ContainerData {
        if let Some(unpacked) = &self.image.unpacked {
            return &unpacked.data;
        }
        self.stored_data()
    }

    /// Returns the data that the image's [stored range](InventoryImage::stored_range) refers to: that of its containers.
    #[must_use]
    pub fn stored_data(&self) -> &'a ContainerData {
        let containers = self.containers.iter().rev().flatten();
        let mut data = containers.map(|container| &container.data);
        data.find(|data| !matches!(data, ContainerData::File))
            .unwrap_or(&ContainerData::File)
    }

    /// Returns the outermost container, whose range is in the file.
    #[must_use]
    pub fn outermost(&self) -> &'a ImageContainer {
        self.containers[0].expect("an image has a container")
    }
}

impl InventoryImage {
    /// Reads form and target of an image whose container was unpacked to `data` after the search.
    pub fn identify<'d, R: ReadAt<'d>>(&mut self, data: R) {
        let identity = Identity::of(data, self.range.clone());
        self.form = Some(identity.form);
        self.own_target_id = identity.target_id;
    }
}

impl Inventory {
    /// Lists the device images in file order. Of an image that consists of containers, the images in these are listed
    /// instead. Hosts' entries are left out.
    #[must_use]
    pub fn images(&self) -> Vec<PlacedImage<'_>> {
        let mut found = Vec::new();
        for container in &self.containers {
            add_images(container, [None; MAX_NESTING], 0, &mut found);
        }
        found
    }
}

fn add_images<'a>(
    container: &'a ImageContainer,
    mut containers: [Option<&'a ImageContainer>; MAX_NESTING],
    depth: usize,
    found: &mut Vec<PlacedImage<'a>>,
) {
    let Some(place) = containers.get_mut(depth) else {
        return;
    };
    *place = Some(container);
    for image in container.images.iter().filter(|image| !image.is_host) {
        if image.inner.is_empty() {
            found.push(PlacedImage { image, containers });
        }
        for inner in &image.inner {
            add_images(inner, containers, depth + 1, found);
        }
    }
}

impl ContainerData {
    /// Unpacks the data of a compressed bundle to `scratch`, so that its images can be read; returns other data unchanged.
    ///
    /// # Errors
    ///
    /// Fails if the bundle is damaged or claims more than `limit` bytes, or `scratch` fails.
    pub fn unpacked<'d, R: ReadAt<'d>>(
        &self,
        data: R,
        limit: u64,
        scratch: &Scratch,
    ) -> Result<Self, CompressedBundleError> {
        Ok(match self {
            Self::File => Self::File,
            Self::Unpacked(bytes) => Self::Unpacked(bytes.clone()),
            Self::Packed(bundle) => Self::Unpacked(bundle.unpack(data, limit, scratch)?),
        })
    }
}
