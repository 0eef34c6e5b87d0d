//! Every image in any file, with where it was found.
//!
//! | file                    | what holds offload binaries                                       |
//! |-------------------------|-------------------------------------------------------------------|
//! | offload binaries        | the file                                                          |
//! | ELF                     | sections of type `0x6fff4c0b`, and ours of finished images        |
//! | COFF object             | sections whose name starts with `.llvm.offloading`                |
//! | PE image                | the same, and where the linker cut the name, `.llvm.of`, `.llvm`  |
//! | Mach-O, also universal  | sections that start with one                                      |
//! | bitcode                 | variables that `llvm.embedded.objects` lists for that section     |
//! | archive, of any form    | its members, which may be archives                                |
//!
//! Of objects and archives the headers are read, of offload binaries all but the images; bitcode
//! and compressed offload binaries are read as a whole, as their bytes are no bytes of the file.

mod error;

use std::ops::Range;
use std::sync::Arc;

use super::archive::Archive;
use super::coff::{CoffError, Listing};
use super::elf::{self, Elf, FINISHED_SECTION, OFFLOADING_SECTION};
use super::macho;
use crate::format::bitcode;
use crate::format::bytes::{Cursor, OutOfBounds, ReadAt};
use crate::format::magic::Magic;
use crate::format::offload_binary::{self, BinaryEntry, OffloadBinary};

pub use error::{FindError, FindProblem};

/// An image, and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundImage {
    /// The names of the archive members that it is in, the outermost first; of a universal Mach-O
    /// file the names of processors.
    pub members: Vec<Vec<u8>>,
    /// The number of the section that it is in, when it is in one: in ELF the index of its header,
    /// in the other formats, which count from 1, that number.
    pub section: Option<u32>,
    /// Whether a linker wrapper would link it.
    pub standing: Standing,
    /// Which of the offload binaries of that section or file it is in.
    pub binary: usize,
    /// Where that offload binary is, in `bytes` or else in the file.
    pub binary_range: Range<u64>,
    /// Which entry of that offload binary it is.
    pub index: usize,
    /// What it is, and where: in `bytes` or else in the file.
    pub entry: BinaryEntry,
    /// What had to be unpacked, as the file does not have it byte by byte: what bitcode embeds, and a
    /// compressed offload binary.
    pub bytes: Option<Arc<[u8]>>,
}

impl FoundImage {
    /// The bytes of the image, given the data that it was found in.
    pub fn content<'a, R: ReadAt<'a>>(&'a self, data: R) -> Option<&'a [u8]> {
        let Range { start, end } = self.entry.image;
        let size = end.checked_sub(start)?;
        match &self.bytes {
            Some(bytes) => Cursor::new(&**bytes, start..end).read(size, "image").ok(),
            None => Cursor::new(data, start..end).read(size, "image").ok(),
        }
    }
}

/// Whether the images of a place are input of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// In a file of offload binaries: whoever names the file means them.
    Raw,
    /// In a section that the host linker leaves out, or embedded in bitcode, which becomes one:
    /// input.
    Excluded,
    /// In a section that programs have in memory: as a rule linked and registered already;
    /// without a registration, what Rust makes of a `static` in such a section.
    Allocated,
    /// In our section of images that are linked and registered: never input.
    Finished,
}

/// What is in a file, as far as images are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FoundItem {
    /// An image.
    Image(FoundImage),
    /// A member of a thin archive, so a file of its own: the caller may open it and look there.
    Outside {
        /// The names of the archive members, the outermost first. The last is the path of the
        /// file, from the folder of the archive.
        members: Vec<Vec<u8>>,
        /// Size of the file in bytes, as the archive says.
        size: u64,
    },
    /// An object of a format in which no tool puts images where others find them.
    Unread {
        /// The names of the archive members that it is in, the outermost first.
        members: Vec<Vec<u8>>,
        /// Its format.
        format: Magic,
    },
}

/// How thoroughly to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// For what a linker wrapper links: by the types of sections, names are not read.
    Inputs,
    /// For everything.
    All,
}

/// Bytes that compressed offload binaries of one file may take in memory, for those who set no limit of their own.
pub const INFLATE_LIMIT: u64 = 1 << 30;

/// Finds every image in `data`, and says what it did not look into: members of thin archives, and
/// objects of WebAssembly and AIX. Anything else that is no object and no archive holds none.
///
/// In the order of the members, of the sections, of the offload binaries. Compressed offload binaries are inflated in
/// memory, of which they may take [`INFLATE_LIMIT`] bytes in all.
///
/// # Errors
///
/// When a file, member or offload binary is invalid, or compressed ones claim too much.
pub fn find<'d, R: ReadAt<'d>>(data: R) -> Result<Vec<FoundItem>, FindError> {
    find_within(data, &mut { INFLATE_LIMIT })
}

/// Finds every image in `data`, as [`find`] does. Compressed offload binaries may claim `memory` bytes in all, which is
/// reduced by what they claim.
///
/// # Errors
///
/// As [`find`].
pub fn find_within<'d, R: ReadAt<'d>>(
    data: R,
    memory: &mut u64,
) -> Result<Vec<FoundItem>, FindError> {
    let size = data.size().unwrap_or(0);
    look(data, 0..size, Look::All, memory)
}

/// Finds every image in `data`, as [`find`] does, for those who know of no other files.
///
/// # Errors
///
/// As [`find`], and when an archive is thin: its members are files of their own.
pub fn images<'d, R: ReadAt<'d>>(data: R) -> Result<Vec<FoundImage>, FindError> {
    images_within(data, &mut { INFLATE_LIMIT })
}

/// Finds every image in `data`, as [`images`] does, within `memory` as [`find_within`] does.
///
/// # Errors
///
/// As [`images`].
pub fn images_within<'d, R: ReadAt<'d>>(
    data: R,
    memory: &mut u64,
) -> Result<Vec<FoundImage>, FindError> {
    all_here(find_within(data, memory)?)
}

/// Finds what a linker wrapper links: as [`images`], without the finished ones, for which the names of all sections of
/// ELF files are read. Within `memory` as [`find_within`] does.
///
/// # Errors
///
/// As [`images`].
pub fn link_inputs<'d, R: ReadAt<'d>>(
    data: R,
    memory: &mut u64,
) -> Result<Vec<FoundImage>, FindError> {
    let size = data.size().unwrap_or(0);
    link_inputs_in(data, 0..size, memory)
}

/// Those of the file in a range of `data`.
pub(super) fn link_inputs_in<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    memory: &mut u64,
) -> Result<Vec<FoundImage>, FindError> {
    all_here(look(data, range, Look::Inputs, memory)?)
}

fn all_here(items: Vec<FoundItem>) -> Result<Vec<FoundImage>, FindError> {
    let images = items.into_iter().filter_map(|item| match item {
        FoundItem::Image(image) => Some(Ok(image)),
        FoundItem::Outside { members, .. } => Some(Err(FindError {
            members,
            problem: FindProblem::Thin,
        })),
        FoundItem::Unread { .. } => None,
    });
    images.collect()
}

fn look<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    look: Look,
    memory: &mut u64,
) -> Result<Vec<FoundItem>, FindError> {
    let size = range.end.saturating_sub(range.start);
    let mut finder = ImageFinder {
        data,
        look,
        left: size.saturating_mul(OVERLAP),
        memory,
        members: Vec::new(),
        found: Vec::new(),
    };
    match finder.file(range) {
        Ok(()) => Ok(finder.found),
        Err(problem) => Err(FindError {
            members: finder.members,
            problem,
        }),
    }
}

struct ImageFinder<'m, R> {
    data: R,
    look: Look,
    /// How many bytes of offload binaries may still come.
    left: u64,
    /// And how many of them inflated: those are in memory.
    memory: &'m mut u64,
    /// Where we are.
    members: Vec<Vec<u8>>,
    found: Vec<FoundItem>,
}

/// How many times the size of the file all offload binaries together may have: sections may lie
/// over each other, and a small file shall not hold millions of images.
const OVERLAP: u64 = 16;

impl<'d, R: ReadAt<'d>> ImageFinder<'_, R> {
    fn file(&mut self, range: Range<u64>) -> Result<(), FindProblem> {
        match Magic::at(self.data, range.clone()) {
            Magic::OffloadBinary => self.binaries(range, None, Standing::Raw),
            Magic::Elf => self.elf(range),
            Magic::Archive | Magic::ThinArchive | Magic::BigArchive => self.archive(range),
            Magic::Bitcode => self.bitcode(range),
            Magic::Coff | Magic::DosProgram => self.coff(range),
            Magic::MachO => self.macho(range),
            Magic::MachOUniversal => self.universal(range),
            format @ (Magic::Wasm | Magic::Xcoff) => {
                let members = self.members.clone();
                self.found.push(FoundItem::Unread { members, format });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn member(&mut self, name: &[u8], range: Range<u64>) -> Result<(), FindProblem> {
        self.members.push(name.to_vec());
        self.file(range)?;
        self.members.pop();
        Ok(())
    }

    fn archive(&mut self, range: Range<u64>) -> Result<(), FindProblem> {
        if self.members.len() >= error::MAX_DEPTH {
            return Err(FindProblem::Depth);
        }
        let archive = Archive::parse(self.data, range).map_err(FindProblem::Archive)?;
        for member in archive.members {
            match member.content {
                Some(content) => self.member(member.name, content)?,
                None => {
                    let mut members = self.members.clone();
                    members.push(member.name.to_vec());
                    let size = member.size;
                    self.found.push(FoundItem::Outside { members, size });
                }
            }
        }
        Ok(())
    }

    fn elf(&mut self, range: Range<u64>) -> Result<(), FindProblem> {
        let elf = Elf::parse(self.data, range).map_err(FindProblem::Elf)?;
        let names = match self.look {
            Look::Inputs => None,
            Look::All => Some(elf.names().map_err(FindProblem::Elf)?),
        };
        for section in elf.sections() {
            let finished = match names {
                Some(names) if section.index > 0 => {
                    names.of(&section).map_err(FindProblem::Elf)? == FINISHED_SECTION.as_bytes()
                }
                _ => false,
            };
            let standing = match section.section_type {
                _ if finished => Standing::Finished,
                elf::SHT_LLVM_OFFLOADING if section.excluded() => Standing::Excluded,
                elf::SHT_LLVM_OFFLOADING if section.allocated() => Standing::Allocated,
                // Neither flag: nobody writes it, and no program has it.
                elf::SHT_LLVM_OFFLOADING => Standing::Excluded,
                _ => continue,
            };
            let range = elf.check(&section).map_err(FindProblem::Elf)?;
            self.binaries(range, Some(section.index), standing)?;
        }
        Ok(())
    }

    fn coff(&mut self, range: Range<u64>) -> Result<(), FindProblem> {
        /// As much as is left of a name at least: images have eight bytes of it, or when lld
        /// links them, what precedes the second period.
        const CUT: usize = ".llvm".len();
        let listing = match Listing::parse(self.data, range) {
            Ok(Some(listing)) => listing,
            Ok(None) => return Ok(()),
            Err(CoffError::Anonymous) => {
                let (members, format) = (self.members.clone(), Magic::Coff);
                self.found.push(FoundItem::Unread { members, format });
                return Ok(());
            }
            Err(problem) => return Err(FindProblem::Coff(problem)),
        };
        for section in listing.sections() {
            let name = listing.name(&section).map_err(FindProblem::Coff)?;
            let of = |whole: &str| {
                let (name, whole) = (name, whole.as_bytes());
                let is_cut = listing.image && name.len() >= CUT && whole.starts_with(name);
                name.starts_with(whole) || is_cut && self.is_binary(&section)
            };
            let standing = match section.removed() {
                _ if of(FINISHED_SECTION) => Standing::Finished,
                _ if !of(OFFLOADING_SECTION) => continue,
                true => Standing::Excluded,
                false => Standing::Allocated,
            };
            if (self.look, standing) == (Look::Inputs, Standing::Finished) {
                continue;
            }
            let number = u32::try_from(section.number).unwrap_or(u32::MAX);
            let outside = |problem| FindProblem::Section { number, problem };
            let range = listing.check(&section).map_err(outside)?;
            self.binaries(range, Some(number), standing)?;
        }
        Ok(())
    }

    fn macho(&mut self, range: Range<u64>) -> Result<(), FindProblem> {
        for section in macho::sections(self.data, &range).map_err(FindProblem::MachO)? {
            let (number, offset) = (section.number, section.offset);
            let content = OutOfBounds::check("content", offset, section.size, range.end);
            let content = content.map_err(|problem| FindProblem::Section { number, problem })?;
            if Magic::at(self.data, content.clone()) == Magic::OffloadBinary {
                let standing = match section.excluded {
                    true => Standing::Excluded,
                    false => Standing::Allocated,
                };
                self.binaries(content, Some(number), standing)?;
            }
        }
        Ok(())
    }

    fn universal(&mut self, range: Range<u64>) -> Result<(), FindProblem> {
        let slices = macho::slices(self.data, &range).map_err(FindProblem::MachO)?;
        let mut end = range.start;
        for (name, slice) in slices.into_iter().flatten() {
            // Each after the other: none is in itself, or read twice.
            let size = slice.end.saturating_sub(slice.start);
            let here = OutOfBounds::check("slice", slice.start, size, range.end);
            let here = here.map_err(FindProblem::Slice)?;
            if here.start <= end {
                return Err(FindProblem::Overlap);
            }
            end = here.end.saturating_sub(1);
            match Magic::at(self.data, here.clone()) {
                Magic::MachO | Magic::Archive | Magic::Bitcode => self.member(&name, here)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn bitcode(&mut self, range: Range<u64>) -> Result<(), FindProblem> {
        let objects = bitcode::embedded_objects(self.data, range).map_err(FindProblem::Bitcode)?;
        let mut first = 0;
        for (object, bytes) in objects.into_iter().enumerate() {
            let wrong = |problem| FindProblem::Embedded { object, problem };
            let walked = offload_binary::walk(&bytes[..], 0..bytes.len() as u64).map_err(wrong)?;
            let count = walked.len();
            for (binary, parsed) in (first..).zip(walked) {
                let place = (None, binary, Standing::Excluded);
                self.add(parsed, &bytes[..], Some(&bytes), place)?;
            }
            first += count;
        }
        Ok(())
    }

    fn is_binary(&self, section: &super::coff::ListedSection<'_>) -> bool {
        let end = section.offset.saturating_add(section.size);
        Magic::at(self.data, section.offset..end) == Magic::OffloadBinary
    }

    fn binaries(
        &mut self,
        range: Range<u64>,
        section: Option<u32>,
        standing: Standing,
    ) -> Result<(), FindProblem> {
        let size = range.end.saturating_sub(range.start);
        self.left = self.left.checked_sub(size).ok_or(FindProblem::Overlap)?;
        let binaries = offload_binary::walk(self.data, range);
        let binaries =
            binaries.map_err(|problem| FindProblem::OffloadBinary { section, problem })?;
        for (binary, parsed) in binaries.into_iter().enumerate() {
            self.add(parsed, self.data, None, (section, binary, standing))?;
        }
        Ok(())
    }

    /// Adds the images of an offload binary that is in `data`: in the file, or unpacked, in `bytes`.
    fn add<'b, B: ReadAt<'b>>(
        &mut self,
        parsed: OffloadBinary,
        data: B,
        bytes: Option<&Arc<[u8]>>,
        (section, binary, standing): (Option<u32>, usize, Standing),
    ) -> Result<(), FindProblem> {
        if parsed.compressed.is_some() {
            let inflated = parsed.inflate(data, *self.memory);
            let inflated = inflated.map_err(|problem| FindProblem::Compressed {
                section,
                binary,
                problem,
            })?;
            let size = inflated.len() as u64;
            *self.memory = self.memory.saturating_sub(size);
            let whole = OffloadBinary::parse(&inflated[..], 0, size);
            let whole = whole.map_err(|problem| FindProblem::Inflated {
                section,
                problem: offload_binary::Error {
                    index: binary,
                    ..problem
                },
            })?;
            let place = (section, binary, standing);
            self.push(whole, Some(&inflated.into()), place);
        } else {
            self.push(parsed, bytes, (section, binary, standing));
        }
        Ok(())
    }

    fn push(
        &mut self,
        parsed: OffloadBinary,
        bytes: Option<&Arc<[u8]>>,
        (section, binary, standing): (Option<u32>, usize, Standing),
    ) {
        let binary_range = parsed.range();
        for (index, entry) in parsed.entries.into_iter().enumerate() {
            self.found.push(FoundItem::Image(FoundImage {
                members: self.members.clone(),
                section,
                standing,
                binary,
                binary_range: binary_range.clone(),
                index,
                entry,
                bytes: bytes.map(Arc::clone),
            }));
        }
    }
}

#[cfg(test)]
mod tests;
