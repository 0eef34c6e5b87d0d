//! The images of an input file, and of the files that its thin archives name.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use offload_formats::container::bundled::Unpacking;
use offload_formats::container::inventory::{ImageContainer, Inventory, PlacedImage, inventory};
use offload_formats::escape::terminal;
use offload_formats::format::bytes::{ReadAt, ReadCache};
use offload_formats::format::fatbin::{FatbinEntry, FatbinKind, FatbinUnpackError, FatbinUnpacker};

use super::inputs::OpenInput;
use crate::decompressed::{self, DecompressionLimit};
use crate::files::{Nesting, Opened, Reading, Stamp};

/// The images of an input file.
pub(super) struct FileImages {
    /// The file, then members of thin archives.
    pub(super) parts: Vec<FilePart>,
    /// Parts that could not be read.
    pub(super) problems: Vec<String>,
    /// Objects of formats without a known place for images.
    pub(super) notes: Vec<String>,
}

/// A file with images.
pub(super) struct FilePart {
    /// Names of the thin archives' members around the images; empty for the input file itself.
    pub(super) members: Vec<Vec<u8>>,
    pub(super) path: PathBuf,
    pub(super) reading: Rc<Reading>,
    /// Size in bytes.
    pub(super) size: u64,
    pub(super) inventory: Inventory,
}

/// Returns the limits for one command.
pub(super) fn unpacking(limit: &DecompressionLimit) -> Unpacking {
    Unpacking {
        limit: limit.files(),
        memory: limit.memory(),
    }
}

impl FileImages {
    /// Finds the images of a file. Reads only headers, whatever the size of the images.
    pub(super) fn find(input: &OpenInput, unpacking: &mut Unpacking) -> Self {
        let mut found = Self {
            parts: Vec::new(),
            problems: Vec::new(),
            notes: Vec::new(),
        };
        let part = (input.name.clone(), Rc::clone(&input.reading), input.size);
        found.add(part, Vec::new(), &Nesting::default(), unpacking);
        found
    }

    /// Adds the images of a file that is in the thin archives' members `members`.
    fn add(
        &mut self,
        (path, reading, size): (PathBuf, Rc<Reading>, u64),
        members: Vec<Vec<u8>>,
        nesting: &Nesting,
        unpacking: &mut Unpacking,
    ) {
        let cache = ReadCache::new(reading.part(0..size));
        let mut inventory = inventory(&cache, unpacking);
        drop(cache);
        if !members.is_empty() {
            // A thin archive may have more members than a process may open files.
            reading.file.close();
        }
        let around: String = members
            .iter()
            .map(|member| format!("member `{}`: ", terminal(&**member)))
            .collect();
        for problem in &inventory.problems {
            let hint = match problem.is_limit {
                true => format!("\nhint: {}", decompressed::hint()),
                false => String::new(),
            };
            self.problems.push(format!("{around}{problem}{hint}"));
        }
        for file in &inventory.unsupported {
            let members = members.iter().chain(&file.members);
            let members: String = members
                .map(|member| format!("member `{}`: ", terminal(&**member)))
                .collect();
            let format = file.format;
            self.notes.push(format!(
                "{members}device images in {format:?} files are not supported"
            ));
        }
        let outside = std::mem::take(&mut inventory.outside);
        self.parts.push(FilePart {
            members: members.clone(),
            path: path.clone(),
            reading,
            size,
            inventory,
        });
        for member in outside {
            let name = member.members.last().map_or(&[][..], Vec::as_slice);
            match nesting.open_member(&path, name, member.size) {
                Ok((opened, inner)) => {
                    let mut members = members.clone();
                    members.extend(member.members);
                    let stamp = Stamp::of(&opened.metadata);
                    let file = Opened::new(&opened.path, opened.file, Some(stamp));
                    let size = opened.metadata.len();
                    let part = (opened.path, Reading::new(file), size);
                    self.add(part, members, &inner, unpacking);
                }
                Err(problem) => {
                    let problem = match problem.unopened() {
                        Some((path, error)) => format!("member `{}`: {error}", terminal(path)),
                        None => format!("member `{}`: {problem}", terminal(name)),
                    };
                    self.problems.push(format!("{around}{problem}"));
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

/// Tells whether the bytes of an image in a fat binary are not those of the file: it is compressed, or PTX.
pub(super) fn is_unpacked(entry: &FatbinEntry) -> bool {
    entry.kind == FatbinKind::Ptx || entry.is_compressed()
}

/// Reads an image of a fat binary, of at most `limit` bytes. PTX loses the NULs at its end, which are not text.
pub(super) fn unpack<'d, R: ReadAt<'d>>(
    data: R,
    entry: &FatbinEntry,
    limit: u64,
) -> Result<Vec<u8>, FatbinUnpackError> {
    let mut unpacker = FatbinUnpacker::new(data, limit);
    let bytes = unpacker.image(entry)?;
    let is_text = entry.kind == FatbinKind::Ptx;
    let end = bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .filter(|_| is_text);
    Ok(end.map_or(bytes, |last| &bytes[..=last]).to_vec())
}

/// Returns a path for messages.
pub(super) fn shown(path: &Path) -> String {
    terminal(path).to_string()
}
