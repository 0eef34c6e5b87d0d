//! Walks a file: sections, members, containers, and containers in images.

use std::error::Error;
use std::io::Write as _;
use std::ops::Range;

use object::elf;

use super::found::{
    ContainerCompression, ContainerData, ContainerFormat, ImageContainer, Inventory,
    InventoryImage, InventoryProblem, MAX_NESTING, OVERLAP, OutsideMember, PackedMember,
    UnsupportedFile,
};
use super::identity::Identity;
use super::linked_images::{LinkedImages, LinkedImagesProblem};
use super::search::search;
use super::sections::{has_only_fatbins, is_data, is_raw};
use crate::container::archive::Archive;
use crate::container::bundled::{DeviceTarget, Unpacking};
use crate::container::bundled_library::is_bundled_library;
use crate::container::coff::{CoffError, Listing};
use crate::container::elf::{Elf, ElfError, FINISHED_SECTION, SHT_LLVM_OFFLOADING};
use crate::container::large::{self, LARGE_SECTION, usual_name};
use crate::container::object_bundle::BUNDLE_SECTION;
use crate::container::{Standing, macho};
use crate::format::bitcode;
use crate::format::bundle_text::Comment;
use crate::format::bytes::{OutOfBounds, ReadAt};
use crate::format::compressed_bundle::CompressedBundleError;
use crate::format::fatbin::{self, FatbinReadError};
use crate::format::magic::Magic;
use crate::format::offload_binary::{self, InflateError, OffloadBinary};
use crate::format::zip::{ZipFile, ZipMethod};

mod bundled;
mod linked;

/// Largest depth of archives in archives.
const MAX_ARCHIVES: usize = 16;

type AnyProblem = Box<dyn Error + Send + Sync>;

/// Places where images are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Places {
    /// The starts of files, members and sections.
    Starts,
    /// Also the middle of data.
    Everywhere,
}

pub(super) fn walk<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    places: Places,
    unpacking: &mut Unpacking,
) -> Inventory {
    let size = range.end.saturating_sub(range.start);
    let mut walker = Walker {
        data,
        places,
        place: ContainerPlace::default(),
        depth: 0,
        left: size.saturating_mul(OVERLAP),
        unpacking,
        found: Inventory::default(),
    };
    walker.file(range);
    let mut found = walker.found;
    // What follows may be a consequence.
    if let Some(problem) = data.first_error() {
        let problem = InventoryProblem {
            members: Vec::new(),
            section: None,
            problem: Box::new(problem),
            is_limit: false,
        };
        found.problems.insert(0, problem);
    }
    found
}

/// Place of a container in the file.
#[derive(Clone, Default)]
struct ContainerPlace {
    members: Vec<Vec<u8>>,
    section: Option<Vec<u8>>,
    standing: Option<Standing>,
}

struct Walker<'a, R> {
    data: R,
    places: Places,
    place: ContainerPlace,
    /// Number of containers around.
    depth: usize,
    /// Remaining limit on the size of containers in bytes.
    left: u64,
    unpacking: &'a mut Unpacking,
    found: Inventory,
}

impl<'d, R: ReadAt<'d>> Walker<'_, R> {
    /// Adds the containers of a file or archive member.
    fn file(&mut self, range: Range<u64>) {
        match Magic::at(self.data, range.clone()) {
            Magic::Archive | Magic::ThinArchive | Magic::BigArchive => self.archive(range),
            Magic::MachOUniversal => self.universal(range),
            Magic::MachO => self.macho(range),
            Magic::Zip => self.zip(range),
            Magic::Elf => self.elf(range),
            Magic::Coff | Magic::DosProgram => self.windows(range),
            Magic::Bitcode => self.bitcode(range),
            format @ (Magic::Wasm | Magic::Xcoff) if self.places == Places::Starts => {
                let members = self.place.members.clone();
                let file = UnsupportedFile { members, format };
                self.found.unsupported.push(file);
            }
            _ => {
                let standing = Some(Standing::Raw);
                let place = ContainerPlace {
                    standing,
                    ..self.place.clone()
                };
                let before = std::mem::replace(&mut self.place, place);
                if !self.start(range.clone()) && self.places == Places::Everywhere {
                    self.middle(range);
                }
                self.place = before;
            }
        }
    }

    /// Adds the containers or the image that a range starts with; returns false if it starts with none.
    fn start(&mut self, range: Range<u64>) -> bool {
        self.containers(range.clone()) || self.plain(range)
    }

    /// Adds the containers and images anywhere in a range.
    fn middle(&mut self, range: Range<u64>) {
        let size = range.end.saturating_sub(range.start);
        let Some(left) = self.left.checked_sub(size) else {
            return self.problem("sections overlap too often".into());
        };
        self.left = left;
        let result = search(self.data, range.clone());
        for image in result.found {
            self.start(image);
        }
        if result.end < range.end {
            let offset = result.end;
            let text = format!(
                "the search ended at offset {offset:#x}: too many bytes look like headers of images, or cannot be read"
            );
            self.problem(text.into());
        }
    }

    fn problem(&mut self, problem: AnyProblem) {
        let is_limit = match problem.downcast_ref() {
            Some(CompressedBundleError::Limit { .. }) => true,
            _ => matches!(problem.downcast_ref(), Some(InflateError::Limit { .. })),
        };
        let linked = problem.downcast_ref::<LinkedImagesProblem>();
        let is_limit = is_limit || linked.is_some_and(LinkedImagesProblem::is_limit);
        self.found.problems.push(InventoryProblem {
            members: self.place.members.clone(),
            section: self.place.section.clone(),
            problem,
            is_limit,
        });
    }

    fn noted<T, E: Error + Send + Sync + 'static>(&mut self, result: Result<T, E>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(problem) => {
                self.problem(problem.into());
                None
            }
        }
    }

    fn archive(&mut self, range: Range<u64>) {
        if self.place.members.len() >= MAX_ARCHIVES {
            let text = format!("archives are nested more than {MAX_ARCHIVES} deep");
            return self.problem(text.into());
        }
        let archive = Archive::parse(self.data, range);
        let Some(archive) = self.noted(archive) else {
            return;
        };
        for member in archive.members {
            self.place.members.push(member.name.to_vec());
            match member.content {
                Some(content) => self.file(content),
                None => self.found.outside.push(OutsideMember {
                    members: self.place.members.clone(),
                    size: member.size,
                }),
            }
            self.place.members.pop();
        }
    }

    /// Adds the containers of members that are not compressed. The others are for the caller, who can unpack them.
    fn zip(&mut self, range: Range<u64>) {
        if self.place.members.len() >= MAX_ARCHIVES {
            let text = format!("archives are nested more than {MAX_ARCHIVES} deep");
            return self.problem(text.into());
        }
        let zip = ZipFile::parse(self.data, range);
        let Some(zip) = self.noted(zip) else { return };
        for member in zip.members.into_iter().filter(|member| member.size > 0) {
            self.place.members.push(member.name.clone());
            let is_plain = member.method == ZipMethod::Stored && !member.is_encrypted;
            let magic = Magic::at(self.data, member.content.clone());
            match is_plain {
                true if magic == Magic::ThinArchive => {
                    self.problem("the members of a thin archive are not in the zip file".into());
                }
                true => self.file(member.content),
                false => self.found.packed.push(PackedMember {
                    members: self.place.members.clone(),
                    member,
                }),
            }
            self.place.members.pop();
        }
    }

    fn universal(&mut self, range: Range<u64>) {
        let slices = macho::slices(self.data, &range);
        let slices = self.noted(slices).flatten();
        let mut end = range.start;
        for (name, slice) in slices.into_iter().flatten() {
            self.place.members.push(name);
            let size = slice.end.saturating_sub(slice.start);
            let here = OutOfBounds::check("slice", slice.start, size, range.end);
            // In ascending order, so that no slice contains itself or is read twice.
            match self.noted(here) {
                Some(here) if here.start <= end => self.problem("slices overlap".into()),
                Some(here) => {
                    end = here.end.saturating_sub(1);
                    if let Magic::MachO | Magic::Archive | Magic::Bitcode =
                        Magic::at(self.data, here.clone())
                    {
                        self.file(here);
                    }
                }
                None => {}
            }
            self.place.members.pop();
        }
    }

    fn elf(&mut self, range: Range<u64>) {
        if self.plain(range.clone()) {
            return;
        }
        let elf = Elf::parse(self.data, range.clone());
        let Some(elf) = self.noted(elf) else { return };
        let names = elf.names();
        let Some(names) = self.noted(names) else {
            return;
        };
        let sections = elf.sections().skip(1);
        let named = sections.filter_map(|section| names.of(&section).ok());
        let linked = LinkedImages::among(named, self.data, range.clone());
        let mut has_bundle = false;
        for section in elf.sections().skip(1) {
            if section.section_type == elf::SHT_NOBITS.0 {
                continue;
            }
            let name = names.of(&section);
            let Some(name) = self.noted(name) else {
                continue;
            };
            let linked_section = linked.section(section.index);
            if name.starts_with(BUNDLE_SECTION.as_bytes()) {
                has_bundle |= linked_section.is_none();
                continue;
            }
            let standing = match name {
                _ if usual_name(name) == FINISHED_SECTION.as_bytes() => Standing::Finished,
                _ if section.allocated() => Standing::Allocated,
                _ => Standing::Excluded,
            };
            if let Some(linked_section) = linked_section {
                self.between_linked_images(linked_section, standing);
                continue;
            }
            let is_offloading = section.section_type == SHT_LLVM_OFFLOADING;
            let end = section.offset.saturating_add(section.size);
            let content = section.offset..end.min(range.end);
            if self.bundled_library(name, content.clone()) {
                continue;
            }
            let has_images = || self.has_images(content.clone());
            if name == LARGE_SECTION.as_bytes() {
                let content = elf.check(&section);
                let parts = large::parts(self.data, name, content.clone().unwrap_or(0..0));
                if parts.is_empty() {
                    self.in_data(name, standing, content);
                }
                for part in parts {
                    self.in_section(name, standing, Ok::<_, ElfError>(part));
                }
            } else if is_raw(name) {
                self.in_middle(name, standing, elf.check(&section));
            } else if is_offloading || has_images() {
                self.in_section(name, standing, elf.check(&section));
            } else if is_data(&section) {
                self.in_data(name, standing, elf.check(&section));
            }
        }
        if has_bundle {
            self.object_bundle(range, &linked);
        }
        self.linked_images(linked);
    }

    fn windows(&mut self, range: Range<u64>) {
        let listing = match Listing::parse(self.data, range.clone()) {
            // The first bytes are ambiguous: a file of another format, or one without sections.
            Ok(None) | Err(CoffError::Anonymous) => return,
            listing => listing,
        };
        let Some(listing) = self.noted(listing).flatten() else {
            return;
        };
        let mut has_bundle = false;
        for section in listing.sections() {
            let name = listing.name(&section).unwrap_or(section.header.raw_name());
            if name.starts_with(BUNDLE_SECTION.as_bytes()) {
                has_bundle = true;
                continue;
            }
            let standing = match section.removed() {
                _ if name.starts_with(FINISHED_SECTION.as_bytes()) => Standing::Finished,
                true => Standing::Excluded,
                false => Standing::Allocated,
            };
            let end = section.offset.saturating_add(section.size);
            let content = section.offset..end.min(range.end);
            if self.bundled_library(name, content.clone()) {
                continue;
            }
            if is_raw(name) {
                self.in_middle(name, standing, listing.check(&section));
            } else if self.has_images(content) {
                self.in_section(name, standing, listing.check(&section));
            } else if section.is_data() {
                self.in_data(name, standing, listing.check(&section));
            }
        }
        if has_bundle {
            self.object_bundle(range, &LinkedImages::default());
        }
    }

    fn macho(&mut self, range: Range<u64>) {
        let sections = macho::sections(self.data, &range);
        for section in self.noted(sections).into_iter().flatten() {
            let end = section.offset.saturating_add(section.size);
            let standing = match section.excluded {
                true => Standing::Excluded,
                false => Standing::Allocated,
            };
            let content = section.offset..end.min(range.end);
            if self.bundled_library(&section.name, content.clone()) {
                continue;
            }
            let has_images = self.has_images(content);
            let content = OutOfBounds::check("content", section.offset, section.size, range.end);
            if has_images {
                self.in_section(&section.name, standing, content);
            } else if section.is_data {
                self.in_data(&section.name, standing, content);
            }
        }
    }

    /// Adds the containers in a section that is a native library of an rlib; returns false for others.
    fn bundled_library(&mut self, name: &[u8], content: Range<u64>) -> bool {
        if !is_bundled_library(self.data, name, content.clone()) {
            return false;
        }
        let size = content.end.saturating_sub(content.start);
        match self.left.checked_sub(size) {
            Some(left) => {
                self.left = left;
                self.archive(content);
            }
            None => self.problem("sections overlap too often".into()),
        }
        true
    }

    /// Tells whether a section starts with a container or an image for a GPU.
    fn has_images(&self, range: Range<u64>) -> bool {
        match Magic::at(self.data, range.clone()) {
            magic if magic.is_container() => true,
            Magic::Elf => Identity::of(self.data, range).is_device_image(),
            _ => false,
        }
    }

    /// Adds the containers or the image that a section starts with.
    fn in_section<E: Error + Send + Sync + 'static>(
        &mut self,
        name: &[u8],
        standing: Standing,
        content: Result<Range<u64>, E>,
    ) {
        self.at_section(name, standing, content, |walker, content| {
            walker.start(content);
        });
    }

    /// Adds the images in a section of data, if these are wanted.
    fn in_data<E: Error + Send + Sync + 'static>(
        &mut self,
        name: &[u8],
        standing: Standing,
        content: Result<Range<u64>, E>,
    ) {
        if self.places == Places::Everywhere {
            self.in_middle(name, standing, content);
        }
    }

    /// Adds the images anywhere in a section.
    fn in_middle<E: Error + Send + Sync + 'static>(
        &mut self,
        name: &[u8],
        standing: Standing,
        content: Result<Range<u64>, E>,
    ) {
        self.at_section(name, standing, content, Self::middle);
    }

    /// Calls `walk` with the content of a section, which is the place of what it finds.
    fn at_section<E: Error + Send + Sync + 'static>(
        &mut self,
        name: &[u8],
        standing: Standing,
        content: Result<Range<u64>, E>,
        walk: impl FnOnce(&mut Self, Range<u64>),
    ) {
        let place = ContainerPlace {
            section: Some(name.to_vec()),
            standing: Some(standing),
            ..self.place.clone()
        };
        let before = std::mem::replace(&mut self.place, place);
        if let Some(content) = self.noted(content) {
            walk(self, content);
        }
        self.place = before;
    }

    fn bitcode(&mut self, range: Range<u64>) {
        let identity = Identity::of(self.data, range.clone());
        if identity.is_device_image() {
            self.add_image(identity, range);
            return;
        }
        let objects = bitcode::embedded_objects(self.data, range);
        for bytes in self.noted(objects).into_iter().flatten() {
            let all = 0..bytes.len() as u64;
            let walked = offload_binary::walk(&bytes[..], all);
            let scratch = &self.unpacking.scratch;
            let unpacked = scratch.keep(bytes.len() as u64, |out| out.write_all(&bytes));
            let Some(unpacked) = self.noted(unpacked) else {
                return;
            };
            for binary in self.noted(walked).into_iter().flatten() {
                let standing = Some(Standing::Excluded);
                let data = ContainerData::Unpacked(unpacked.clone());
                self.offload_binary(&bytes[..], binary, data, standing);
            }
        }
    }

    /// Adds the containers that a range starts with; returns false if it starts with none.
    fn containers(&mut self, range: Range<u64>) -> bool {
        let size = range.end.saturating_sub(range.start);
        let magic = Magic::at(self.data, range.clone());
        let comment = Comment::at(self.data, range.clone());
        if !magic.is_container() && comment.is_none() {
            return false;
        }
        let Some(left) = self.left.checked_sub(size) else {
            self.problem("containers overlap too often".into());
            return true;
        };
        self.left = left;
        match (magic, comment) {
            (_, Some(comment)) => self.text_bundle(range, comment),
            (Magic::Fatbin, _) => self.fatbins(range),
            (Magic::OffloadBinary, _) => self.offload_binaries(range),
            _ => self.bundles(range),
        }
        true
    }

    fn container(&self, format: ContainerFormat, range: Range<u64>) -> ImageContainer {
        ImageContainer {
            members: self.place.members.clone(),
            section: self.place.section.clone(),
            format,
            range,
            compression: None,
            standing: None,
            data: ContainerData::File,
            images: Vec::new(),
        }
    }

    /// Adds a file, member or section that is an image itself; returns false for others.
    fn plain(&mut self, range: Range<u64>) -> bool {
        let identity = Identity::of(self.data, range.clone());
        let is_image = identity.is_device_image();
        if is_image {
            self.add_image(identity, range);
        }
        is_image
    }

    fn add_image(&mut self, identity: Identity, range: Range<u64>) {
        let mut container = self.container(ContainerFormat::Image, range.clone());
        let target = DeviceTarget::default();
        container.images.push(image(0, target, identity, range));
        self.found.containers.push(container);
    }

    fn fatbins(&mut self, range: Range<u64>) {
        for found in fatbin::walk(self.data, range.clone()) {
            if let (Err(FatbinReadError::Magic { offset }), true) = (&found, self.has_tables()) {
                return self.middle(*offset..range.end);
            }
            let Some(found) = self.noted(found) else {
                return;
            };
            let mut container = self.container(ContainerFormat::Fatbin, found.range);
            let images = found.entries.into_iter().enumerate();
            container.images = images
                .map(|(index, entry)| InventoryImage::of_fatbin(index, entry))
                .collect();
            self.found.containers.push(container);
        }
    }

    /// Tells whether the section may have other data between fat binaries, such as `.cask_resource` of cuBLASLt.
    fn has_tables(&self) -> bool {
        let section = self.place.section.as_deref();
        section.is_some_and(|name| !has_only_fatbins(name))
    }

    fn offload_binaries(&mut self, range: Range<u64>) {
        let walked = offload_binary::walk(self.data, range);
        for binary in self.noted(walked).into_iter().flatten() {
            let standing = self.place.standing;
            self.offload_binary(self.data, binary, ContainerData::File, standing);
        }
    }

    /// Adds an offload binary that was read from `data`, which is the file or unpacked bytes.
    fn offload_binary<'b, B: ReadAt<'b>>(
        &mut self,
        data: B,
        binary: OffloadBinary,
        container_data: ContainerData,
        standing: Option<Standing>,
    ) {
        let mut container = self.container(ContainerFormat::OffloadBinary, binary.range());
        container.standing = standing;
        container.data = container_data;
        let Some(compressed) = &binary.compressed else {
            return self.binary_images(container, binary, data);
        };
        container.compression = Some(ContainerCompression {
            method: compressed.method,
            version: None,
            uncompressed_size: compressed.inflated_size,
            hash: None,
        });
        let inflated = binary.unpack(data, self.unpacking.left, &self.unpacking.scratch);
        let Some(bytes) = self.noted(inflated) else {
            return;
        };
        let (data, size) = (bytes.open(), bytes.size());
        self.unpacking.left = self.unpacking.left.saturating_sub(size);
        container.data = ContainerData::Unpacked(bytes);
        let whole = OffloadBinary::parse(&data, 0, size);
        if let Some(whole) = self.noted(whole) {
            self.binary_images(container, whole, &data);
        }
    }

    fn binary_images<'b, B: ReadAt<'b>>(
        &mut self,
        mut container: ImageContainer,
        binary: OffloadBinary,
        data: B,
    ) {
        for (index, entry) in binary.entries.into_iter().enumerate() {
            let target = DeviceTarget {
                kind: entry.offload_kind,
                triple: entry.triple().to_owned(),
                processor: entry.arch().to_owned(),
            };
            let identity = Identity::of(data, entry.image.clone());
            let mut image = image(index, target, identity, entry.image.clone());
            image.inner = self.inner(data, entry.image);
            container.images.push(image);
        }
        self.found.containers.push(container);
    }

    /// Returns the containers that an image in `data` consists of.
    fn inner<'b, B: ReadAt<'b>>(&mut self, data: B, range: Range<u64>) -> Vec<ImageContainer> {
        if self.depth + 1 >= MAX_NESTING {
            return Vec::new();
        }
        let mut walker = Walker {
            data,
            places: Places::Starts,
            place: ContainerPlace::default(),
            depth: self.depth + 1,
            left: self.left,
            unpacking: self.unpacking,
            found: Inventory::default(),
        };
        walker.containers(range);
        let (left, found) = (walker.left, walker.found);
        self.left = left;
        for problem in found.problems {
            let members = self.place.members.clone();
            let section = self.place.section.clone();
            self.found.problems.push(InventoryProblem {
                members,
                section,
                ..problem
            });
        }
        found.containers
    }
}

/// Returns an image whose container states `target`; the image's own statement replaces missing fields.
fn image(
    index: usize,
    mut target: DeviceTarget,
    identity: Identity,
    range: Range<u64>,
) -> InventoryImage {
    if target.triple.is_empty() {
        target.triple = identity.triple.unwrap_or_default();
    }
    if target.processor.is_empty() {
        target.processor = identity.target_id.clone().unwrap_or_default();
    }
    InventoryImage {
        index,
        entry_id: None,
        is_host: false,
        target,
        own_target_id: identity.target_id,
        form: Some(identity.form),
        size: range.end.saturating_sub(range.start),
        stored_size: range.end.saturating_sub(range.start),
        range,
        unpacked: None,
        fatbin_entry: None,
        inner: Vec::new(),
    }
}
