//! Checks of containers: compression, duplicate and conflicting entries, alignment.

use std::collections::BTreeMap;

use super::checked::{CheckedContainer, is_for_hip};
use super::codes::FindingCode;
use super::finding::{FindingPlace, Findings};
use crate::container::elf::Elf;
use crate::container::inventory::{ContainerFormat, ImageContainer, ImageForm};
use crate::escape::terminal;
use crate::format::bytes::ReadAt;
use crate::format::compressed_bundle::{
    CompressedBundle, CompressedBundleError, CompressedBundleVersion, HipRuntime,
};
use crate::names::{ConflictScope, EntryId, EntryKind, conflict};

/// Alignment of bundles and of code objects in them, in bytes: that of pages.
const PAGE: u64 = 0x1000;
/// Alignment of CUDA's fat binaries in bytes.
const FATBIN: u64 = 8;

/// Returns the code for an error in a compressed bundle.
pub(super) fn code_of(problem: &CompressedBundleError) -> FindingCode {
    match problem {
        CompressedBundleError::Hash { .. }
        | CompressedBundleError::Longer { .. }
        | CompressedBundleError::Shorter { .. } => FindingCode::Hash,
        _ => FindingCode::Damaged,
    }
}

/// Checks that HIP's runtime reads the version and method of a compressed bundle.
pub(super) fn compression(
    bundle: &CompressedBundle,
    found: &ImageContainer,
    runtime: Option<HipRuntime>,
    findings: &mut Findings,
) {
    if !is_for_hip(found) {
        return;
    }
    let place = FindingPlace::of(found);
    let version = bundle.version;
    if version == CompressedBundleVersion::V1 {
        let text = "the bundle has version 1; no HIP runtime reads it as it is written";
        return findings.add(FindingCode::OldCompression, place, &text);
    }
    let Some(runtime) = runtime else { return };
    if !runtime.reads(version, bundle.method) {
        let method = bundle.method;
        let known: Vec<String> = runtime
            .versions()
            .iter()
            .map(|it| it.raw().to_string())
            .collect();
        let known = match known.is_empty() {
            true => "reads no compressed bundles".to_owned(),
            false => {
                let methods = runtime.methods().iter().map(|method| method.name());
                let methods: Vec<&str> = methods.collect();
                format!(
                    "reads version {} with {}",
                    known.join(", "),
                    methods.join(", ")
                )
            }
        };
        let text = format!(
            "the bundle has version {} with {method}; {runtime} {known}",
            version.raw()
        );
        findings.add(FindingCode::UnreadCompression, place, &text);
    }
}

impl CheckedContainer<'_> {
    /// Finds entries for the same target.
    pub(super) fn duplicates(&self, findings: &mut Findings) {
        let mut first = BTreeMap::new();
        for image in &self.container.images {
            let Some(id) = &image.entry_id else { continue };
            // The runtime treats both kinds alike.
            let key = match id.strip_prefix("hipv4-") {
                Some(target) => format!("hip-{target}"),
                None => id.clone(),
            };
            match first.get(&key) {
                None => {
                    first.insert(key, image.index);
                }
                Some(index) => {
                    let text = format!("entry {index} has the same target");
                    findings.add(FindingCode::Duplicate, self.place.entry(image), &text);
                }
            }
        }
    }

    /// Finds target IDs that exclude each other.
    pub(super) fn conflicts(&self, findings: &mut Findings) {
        let images = self.container.images.iter();
        let ids = images.filter_map(|image| {
            let id = EntryId::parse(image.entry_id.as_ref()?).ok()?;
            Some((image, id)).filter(|(_, id)| id.kind() != EntryKind::Host)
        });
        let (images, ids): (Vec<_>, Vec<_>) = ids.unzip();
        let Some((first, other)) = conflict(&ids, ConflictScope::KindAndTriple) else {
            return;
        };
        let pair = images.get(first).zip(ids.get(first)).zip(images.get(other));
        let ((_, first), image) = pair.expect("the indices are those of the list");
        let text = format!(
            "`{}` in the same bundle excludes it",
            terminal(first.as_str())
        );
        findings.add(FindingCode::Conflict, self.place.entry(image), &text);
    }

    /// Checks that code objects of plain bundles for HIP are at multiples of 4096 from the bundle's start.
    pub(super) fn image_alignment(&self, findings: &mut Findings) {
        if self.container.compression.is_some() || !self.is_for_hip() {
            return;
        }
        let start = self.container.range.start;
        for image in &self.container.images {
            let offset = image.range.start.saturating_sub(start);
            if image.form == Some(ImageForm::CodeObject) && offset % PAGE != 0 {
                let text = format!("the image is at offset {offset:#x} of the bundle");
                findings.add(FindingCode::UnalignedImage, self.place.entry(image), &text);
            }
        }
    }

    /// Checks the address of a container in a section of a linked file.
    pub(super) fn alignment<'d, R: ReadAt<'d>>(&self, data: R, findings: &mut Findings) {
        let (code, align) = match self.container.format {
            ContainerFormat::Bundle if self.is_for_hip() => (FindingCode::UnalignedBundle, PAGE),
            ContainerFormat::Fatbin => (FindingCode::UnalignedFatbin, FATBIN),
            _ => return,
        };
        // The offsets of a compressed bundle's images are not in the file; its place is.
        let Some(offset) = self.place.offset else {
            return;
        };
        let size = data.size().unwrap_or(0);
        let Ok(elf) = Elf::parse(data, 0..size) else {
            return;
        };
        let mut sections = elf.sections().filter(|section| section.allocated());
        let section = sections.find(|section| {
            let end = section.offset.saturating_add(section.size);
            (section.offset..end).contains(&offset)
        });
        let Some(section) = section else { return };
        let address = section.address.wrapping_add(offset - section.offset);
        if address % align != 0 {
            let text = format!("expected a multiple of {align}, found address {address:#x}");
            findings.add(code, self.place.clone(), &text);
        }
    }
}
