//! Checks the device code of a file, as the runtimes that will load it would.
//!
//! Starts from the file's [inventory](super::inventory). Each check is a function that adds findings:
//!
//! | part | checks |
//! |---|---|
//! | `containers.rs` | compression and its hash, duplicate and conflicting entries, alignment |
//! | `hip.rs` | entry IDs and tables, as HIP's runtime looks for them |
//! | `image.rs` | an image: its ELF headers, its target, its kernels |
//! | `openmp.rs` | kernels that OpenMP images for one target have and others lack |
//! | `program.rs` | a linked host file: wrappers, kernels that it registers, device code that no runtime reads |
//! | `codes.rs` | the code, severity and texts of each finding |
//!
//! Reads headers, symbols and notes of images. Compressed bundles are unpacked in memory, one after the other.

mod checked;
mod codes;
mod containers;
mod finding;
mod hip;
mod image;
mod openmp;
mod program;

use std::ops::Range;

use super::bundled::Unpacking;
use super::decompression_limit::DecompressionLimit;
use super::host_file::HostFile;
use super::inventory::{
    ContainerData, ContainerFormat, ImageContainer, Inventory, InventoryImage, inventory,
};
use crate::format::bytes::{ReadAt, ReadCache, SourceError};
use crate::format::compressed_bundle::{CompressedBundleError, HipRuntime};
use crate::format::fatbin::{FatbinUnpackError, FatbinUnpacker};
use crate::format::magic::Magic;
use crate::format::unpacked::Scratch;
use checked::CheckedContainer;
use finding::Findings;
use image::{CheckedImage, ImageKernels};

pub use codes::{FindingCode, Severity};
pub use finding::{Finding, FindingPlace};

/// Settings of a verification.
#[derive(Clone, Debug)]
pub struct VerifySettings {
    /// The runtime that must read compressed bundles; `None` to check no release.
    pub runtime: Option<HipRuntime>,
    /// Limit on the size that compressed data claims: bundles are unpacked to `scratch`, images of CUDA in memory.
    pub limit: DecompressionLimit,
    /// Keeps compressed bundles that are unpacked.
    pub scratch: Scratch,
}

/// Verifies the file that `open` reads, with its inventory. Each call of `open` gives a new cache, so that images do not
/// stay in memory.
///
/// ```
/// use std::io::Cursor;
/// use offload_formats::container::bundled::Unpacking;
/// use offload_formats::container::decompression_limit::DecompressionLimit;
/// use offload_formats::container::inventory::inventory;
/// use offload_formats::container::verify::{FindingCode, VerifySettings, verify};
/// use offload_formats::format::bytes::ReadCache;
/// use offload_formats::format::unpacked::Scratch;
///
/// // A bundle with one empty image at offset 80. The entry ID has four fields instead of five.
/// let id = b"hip-amdgcn-amd-amdhsa-gfx906";
/// let mut file = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
/// for field in [1, 84, 0, id.len() as u64] {
///     file.extend(field.to_le_bytes());
/// }
/// file.extend(id);
/// let found = inventory(&file[..], &mut Unpacking::in_memory(1 << 20));
/// let settings = VerifySettings { runtime: None, limit: DecompressionLimit::default(), scratch: Scratch::in_memory() };
/// let findings = verify(|| ReadCache::new(Cursor::new(file.clone())), &found, settings);
/// assert!(findings?.iter().any(|finding| finding.code == FindingCode::FieldCount));
/// # Ok::<(), offload_formats::format::bytes::SourceError>(())
/// ```
///
/// # Errors
///
/// Fails if the file cannot be read.
pub fn verify(
    open: impl Fn() -> ReadCache,
    inventory: &Inventory,
    settings: VerifySettings,
) -> Result<Vec<Finding>, SourceError> {
    let mut verifier = Verifier {
        settings,
        findings: Findings::default(),
        kernels: ImageKernels::default(),
        is_linked: false,
        libomptarget: None,
        unread: None,
    };
    let cache = open();
    let size = (&cache).size().unwrap_or(0);
    verifier.problems(inventory);
    let host = match Magic::at(&cache, 0..size) {
        Magic::Elf => HostFile::read(&cache, 0..size),
        _ => None,
    };
    verifier.is_linked = host.is_some();
    verifier.libomptarget = host.as_ref().and_then(HostFile::libomptarget);
    for container in &inventory.containers {
        verifier.container(&open, container);
    }
    verifier
        .kernels
        .report_images_without(&mut verifier.findings);
    if let Some(host) = host {
        program::check(&host, inventory, &verifier.kernels, &mut verifier.findings);
    }
    verifier.check_reads(&cache);
    match verifier.unread {
        None => Ok(verifier.findings.sorted()),
        Some(problem) => Err(problem),
    }
}

struct Verifier {
    settings: VerifySettings,
    findings: Findings,
    /// Kernels of all images.
    kernels: ImageKernels,
    /// True for a linked file of a host.
    is_linked: bool,
    /// LLVM release of the OpenMP runtime that the file needs.
    libomptarget: Option<u32>,
    /// First failed read.
    unread: Option<SourceError>,
}

impl Verifier {
    /// Keeps the error if a read of this cache failed, for all checks that used it.
    fn check_reads(&mut self, cache: &ReadCache) {
        self.unread = self.unread.or(cache.first_error());
    }

    /// Adds the problems that the inventory has found.
    fn problems(&mut self, inventory: &Inventory) {
        for problem in &inventory.problems {
            let compressed = problem.problem.downcast_ref::<CompressedBundleError>();
            let place = FindingPlace {
                members: problem.members.clone(),
                section: problem.section.clone(),
                ..FindingPlace::default()
            };
            let code = compressed.map_or(FindingCode::Damaged, containers::code_of);
            self.findings.add(code, place, &problem.problem);
            // Kernels may be in the part that was not read.
            self.kernels.is_complete = false;
        }
    }

    fn container(&mut self, open: &impl Fn() -> ReadCache, found: &ImageContainer) {
        let place = FindingPlace::of(found);
        let runtime = self.settings.runtime;
        if let ContainerData::Packed(bundle) = &found.data {
            containers::compression(bundle, found, runtime, &mut self.findings);
            let cache = open();
            // Its bytes go after the bundle is checked.
            let scratch = self.settings.scratch.another();
            let bytes = bundle.unpack(&cache, self.settings.limit.files(), &scratch);
            self.check_reads(&cache);
            let bytes = match bytes {
                Ok(bytes) => bytes,
                Err(problem) => {
                    self.kernels.is_complete = false;
                    let code = containers::code_of(&problem);
                    return self.findings.add(code, place, &problem);
                }
            };
            drop(cache);
            let mut unpacking = Unpacking::within(self.settings.limit.files(), scratch);
            let inner = inventory(&bytes.open(), &mut unpacking);
            for problem in &inner.problems {
                self.kernels.is_complete = false;
                self.findings
                    .add(FindingCode::Damaged, place.clone(), &problem.problem);
            }
            for inside in inner.containers {
                let inside = ImageContainer {
                    members: found.members.clone(),
                    section: found.section.clone(),
                    compression: found.compression,
                    ..inside
                };
                self.opened(&|| bytes.open(), &inside, place.clone());
            }
            return;
        }
        match &found.data {
            ContainerData::Unpacked(bytes) => self.opened(&|| bytes.open(), found, place),
            _ => self.opened(open, found, place),
        }
    }

    /// Checks a container, whose images are in the data that `open` reads.
    fn opened(
        &mut self,
        open: &impl Fn() -> ReadCache,
        found: &ImageContainer,
        place: FindingPlace,
    ) {
        match found.format {
            ContainerFormat::Fatbin => {
                let cache = open();
                self.checks(&cache, found, place);
                self.images(&cache, found, &found.images);
                self.check_reads(&cache);
            }
            _ => {
                let cache = open();
                self.checks(&cache, found, place);
                self.check_reads(&cache);
                for image in found.images.chunks(1) {
                    let cache = open();
                    self.images(&cache, found, image);
                    self.check_reads(&cache);
                }
            }
        }
    }

    /// Checks a container, whose images are in `data`.
    fn checks<'d, R: ReadAt<'d>>(&mut self, data: R, found: &ImageContainer, place: FindingPlace) {
        let checked = CheckedContainer {
            container: found,
            place,
        };
        let findings = &mut self.findings;
        match found.format {
            ContainerFormat::Bundle => {
                checked.duplicates(findings);
                checked.conflicts(findings);
                if self.is_linked || found.section.is_none() {
                    checked.image_alignment(findings);
                }
                if checked.is_for_hip() {
                    hip::entry_ids(&checked, findings);
                    hip::table(&checked, findings);
                }
            }
            ContainerFormat::TextBundle | ContainerFormat::ObjectBundle => {
                checked.duplicates(findings);
                checked.conflicts(findings);
            }
            _ => {}
        }
        if self.is_linked && found.section.is_some() {
            checked.alignment(data, findings);
        }
    }

    /// Checks images of a container in `data`, and the containers that they consist of.
    fn images<'d, R: ReadAt<'d>>(
        &mut self,
        data: R,
        container: &ImageContainer,
        images: &[InventoryImage],
    ) {
        // Images that are compressed together follow one another.
        let mut unpacker = FatbinUnpacker::new(data, self.settings.limit.memory());
        for image in images.iter().filter(|image| !image.is_host) {
            let place = FindingPlace::of(container).entry(image);
            let own = image.unpacked.as_ref().map(|own| &own.data);
            if let Some(ContainerData::Unpacked(bytes)) = own {
                let cache = bytes.open();
                self.plain_image(&cache, container, image);
                self.check_reads(&cache);
                continue;
            }
            let packed = image.fatbin_entry.as_ref();
            match packed.filter(|entry| entry.is_compressed()) {
                None => self.plain_image(data, container, image),
                Some(entry) => match unpacker.image(entry) {
                    Ok(bytes) => self.image(bytes, 0..bytes.len() as u64, container, image),
                    Err(problem) => {
                        self.kernels.is_complete = false;
                        self.kernels.images += 1;
                        // The method of another release of CUDA is no damage.
                        if !matches!(problem, FatbinUnpackError::Method { .. }) {
                            self.findings.add(FindingCode::Damaged, place, &problem);
                        }
                    }
                },
            }
        }
    }

    /// Checks an image in `data`, or the images of the containers that it consists of.
    fn plain_image<'d, R: ReadAt<'d>>(
        &mut self,
        data: R,
        container: &ImageContainer,
        image: &InventoryImage,
    ) {
        for inner in &image.inner {
            self.images(data, inner, &inner.images);
        }
        if image.inner.is_empty() {
            self.image(data, image.range.clone(), container, image);
        }
    }

    fn image<'d, R: ReadAt<'d>>(
        &mut self,
        data: R,
        range: Range<u64>,
        container: &ImageContainer,
        image: &InventoryImage,
    ) {
        let checked = CheckedImage {
            data,
            range,
            container,
            image,
            libomptarget: self.libomptarget,
        };
        checked.check(self.is_linked, &mut self.kernels, &mut self.findings);
    }
}

#[cfg(test)]
mod tests;
