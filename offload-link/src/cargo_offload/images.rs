//! The images of an input file, of the files that its thin archives name, and of compressed members of zip files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use offload_formats::container::bundled::Unpacking;
use offload_formats::container::inventory::{
    ContainerData, ImageContainer, Inventory, OutsideMember, PackedMember, PlacedImage,
    exhaustive_inventory, inventory, may_contain_images,
};
use offload_formats::escape::terminal;
use offload_formats::format::bytes::ReadCache;
use offload_formats::format::unpacked::Scratch;

use super::inputs::OpenInput;
use super::packed::unpack_if;
use crate::decompressed::{self, DecompressionLimit};
use crate::files::{self, Nesting, Opened, Reading};
use crate::stamp::Stamp;

/// The images of an input file.
pub(super) struct FileImages {
    /// The file, then members of thin archives, and compressed members of zip files.
    pub(super) parts: Vec<FilePart>,
    /// Parts that could not be read.
    pub(super) problems: Vec<String>,
    /// Objects of formats without a known place for images.
    pub(super) notes: Vec<String>,
}

/// File or member that contains a part's members.
struct Around {
    members: Vec<Vec<u8>>,
    path: PathBuf,
    reading: Arc<Reading>,
    /// Size in the input file and unpacked size of a compressed member.
    packed: Option<(u64, u64)>,
}

impl Around {
    /// Returns the share of the input file that `size` stored bytes have. A compressed member's size is shared among its
    /// parts.
    fn size_in_file(&self, size: u64) -> u64 {
        let Some((packed, whole)) = self.packed else {
            return size;
        };
        let share = u128::from(packed) * u128::from(size);
        let share = share.checked_div(whole.into()).unwrap_or(0);
        u64::try_from(share).expect("stored bytes are a part of the unpacked member")
    }
}

/// Returns the names of members for messages: each with a colon.
fn prefix(members: &[Vec<u8>]) -> String {
    let members = members.iter();
    let members = members.map(|member| format!("member `{}`: ", terminal(&**member)));
    members.collect()
}

/// A file with images.
pub(super) struct FilePart {
    /// Names of the members around the images, of thin archives and zip files; empty for the input file itself.
    pub(super) members: Vec<Vec<u8>>,
    /// Size in the input file in bytes, if the part is a compressed member.
    pub(super) packed_size: Option<u64>,
    pub(super) path: PathBuf,
    pub(super) reading: Arc<Reading>,
    /// Size in bytes.
    pub(super) size: u64,
    pub(super) inventory: Inventory,
}

/// Settings for the files of one command, and what is left of its limits.
pub(super) struct FindSettings {
    /// True if images are also found in the middle of data.
    search_data: bool,
    /// Limits for bundles and offload binaries.
    containers: Unpacking,
    /// Remaining bytes for members of zip files.
    members: u64,
}

impl FindSettings {
    /// Returns the settings of a command, which keeps unpacked containers in `scratch`.
    pub(super) fn new(search_data: bool, limit: &DecompressionLimit, scratch: Scratch) -> Self {
        Self {
            search_data,
            containers: Unpacking::within(limit.files(), scratch),
            members: limit.files(),
        }
    }
}

/// Largest number of bytes that are unpacked to find out the forms of images.
const IDENTIFIED: u64 = 256 << 20;

/// Largest depth of members in members.
const MAX_MEMBERS: usize = 16;

impl FileImages {
    /// Finds the images of a file. Reads only headers, whatever the size of the images; all data if `settings` say so.
    pub(super) fn find(input: &OpenInput, settings: &mut FindSettings) -> Self {
        let mut found = Self {
            parts: Vec::new(),
            problems: Vec::new(),
            notes: Vec::new(),
        };
        let part = FilePart {
            members: Vec::new(),
            packed_size: None,
            path: input.name.clone(),
            reading: Arc::clone(&input.reading),
            size: input.size,
            inventory: Inventory::default(),
        };
        found.add(part, &Nesting::default(), settings);
        found
    }

    /// Finds the images of a part and adds it.
    fn add(&mut self, mut part: FilePart, nesting: &Nesting, settings: &mut FindSettings) {
        let cache = ReadCache::new(part.reading.part(0..part.size));
        let mut inventory = match settings.search_data {
            true => exhaustive_inventory(&cache, &mut settings.containers),
            false => inventory(&cache, &mut settings.containers),
        };
        drop(cache);
        let is_other_file = !part.members.is_empty() && part.packed_size.is_none();
        if is_other_file {
            // A thin archive may have more members than a process may open files.
            part.reading.file.close();
        }
        self.note(&part, &inventory);
        let outside = std::mem::take(&mut inventory.outside);
        let packed = std::mem::take(&mut inventory.packed);
        let is_found = !inventory.containers.is_empty();
        part.inventory = inventory;
        let around = Around {
            members: part.members.clone(),
            path: part.path.clone(),
            reading: Arc::clone(&part.reading),
            packed: part.packed_size.map(|packed| (packed, part.size)),
        };
        // A compressed member without images needs no file.
        if is_found || part.packed_size.is_none() {
            self.parts.push(part);
        }
        for member in outside {
            self.add_outside(&around, member, nesting, settings);
        }
        for member in packed {
            self.add_packed(&around, member, nesting, settings);
        }
    }

    /// Adds the problems and notes of a part.
    fn note(&mut self, part: &FilePart, inventory: &Inventory) {
        let around = prefix(&part.members);
        for problem in &inventory.problems {
            let hint = match problem.is_limit {
                true => format!("\nhint: {}", decompressed::hint()),
                false => String::new(),
            };
            self.problems.push(format!("{around}{problem}{hint}"));
        }
        for file in &inventory.unsupported {
            let members = prefix(&file.members);
            let format = file.format;
            self.notes.push(format!(
                "{around}{members}device images in {format:?} files are not supported"
            ));
        }
    }

    /// Adds a member of a thin archive.
    fn add_outside(
        &mut self,
        around: &Around,
        member: OutsideMember,
        nesting: &Nesting,
        settings: &mut FindSettings,
    ) {
        let text = prefix(&around.members);
        if around.packed.is_some() {
            let name = prefix(&member.members);
            self.problems.push(format!(
                "{text}{name}the members of a thin archive are not in the zip file"
            ));
            return;
        }
        let name = member.members.last().map_or(&[][..], Vec::as_slice);
        match nesting.open_member(&around.path, name, member.size) {
            Ok((opened, inner)) => {
                let stamp = Stamp::of(&opened.metadata);
                let file = Opened::new(&opened.path, opened.file, Some(stamp));
                let part = FilePart {
                    members: [&around.members[..], &member.members].concat(),
                    packed_size: None,
                    path: opened.path,
                    reading: Reading::new(file),
                    size: opened.metadata.len(),
                    inventory: Inventory::default(),
                };
                self.add(part, &inner, settings);
            }
            Err(problem) => {
                let problem = match problem.unopened() {
                    Some((path, error)) => format!("member `{}`: {error}", terminal(path)),
                    None => format!("member `{}`: {problem}", terminal(name)),
                };
                self.problems.push(format!("{text}{problem}"));
            }
        }
    }

    /// Adds a compressed member of a zip file.
    fn add_packed(
        &mut self,
        around: &Around,
        packed: PackedMember,
        nesting: &Nesting,
        settings: &mut FindSettings,
    ) {
        let members = [&around.members[..], &packed.members].concat();
        if members.len() > MAX_MEMBERS {
            let text = format!("archives are nested more than {MAX_MEMBERS} deep");
            return self.problems.push(prefix(&members) + &text);
        }
        let member = &packed.member;
        let is_wanted = |head: &[u8]| settings.search_data || may_contain_images(head);
        match unpack_if(is_wanted, &around.reading, member, &mut settings.members) {
            Ok(Some(unpacked)) => {
                let stored = member.content.end.saturating_sub(member.content.start);
                let part = FilePart {
                    packed_size: Some(around.size_in_file(stored)),
                    path: around.path.clone(),
                    reading: unpacked.reading,
                    size: unpacked.size,
                    inventory: Inventory::default(),
                    members,
                };
                self.add(part, nesting, settings);
            }
            Ok(None) => {}
            Err(problem) => self.problems.push(prefix(&members) + &problem),
        }
    }

    /// Finds out the forms of images in compressed bundles, of which only the headers were read. Unpacks at most
    /// [`IDENTIFIED`] bytes for that; the forms of other images remain unknown.
    pub(super) fn identify(&mut self) {
        let mut left = IDENTIFIED;
        for part in &mut self.parts {
            let cache = ReadCache::new(part.reading.part(0..part.size));
            for container in &mut part.inventory.containers {
                let ContainerData::Packed(bundle) = &container.data else {
                    continue;
                };
                let Some(rest) = left.checked_sub(bundle.uncompressed_size) else {
                    continue;
                };
                left = rest;
                match bundle.unpack(&cache, bundle.uncompressed_size, &files::scratch()) {
                    Ok(bytes) => {
                        for image in &mut container.images {
                            image.identify(&bytes.open());
                        }
                    }
                    Err(problem) => {
                        let offset = bundle.range().start;
                        let around = prefix(&part.members) + &prefix(&container.members);
                        let text = format!("{around}bundle at offset {offset:#x}: {problem}");
                        self.problems.push(text);
                    }
                }
            }
        }
    }

    /// Returns the number of device images.
    pub(super) fn count(&self) -> usize {
        let counts = self.parts.iter().map(|part| part.inventory.images().len());
        counts.sum()
    }
}

impl FilePart {
    /// Lists the outermost containers, each with the device images in it, in file order.
    pub(super) fn containers(&self) -> Vec<(&ImageContainer, Vec<PlacedImage<'_>>)> {
        let mut images = self.inventory.images().into_iter().peekable();
        let containers = self.inventory.containers.iter();
        let with_images = containers.map(|container| {
            let is_inside = |placed: &PlacedImage<'_>| std::ptr::eq(placed.outermost(), container);
            let mut inside = Vec::new();
            while let Some(placed) = images.next_if(is_inside) {
                inside.push(placed);
            }
            (container, inside)
        });
        with_images.collect()
    }
}

/// Returns a path for messages.
pub(super) fn shown(path: &Path) -> String {
    terminal(path).to_string()
}
