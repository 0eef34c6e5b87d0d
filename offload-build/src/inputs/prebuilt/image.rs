//! An image in a source of a prebuilt module: where it is and what it is for, by its header. What it holds is read when it is
//! taken.

use crate::check;
use offload_build_core::declare::module::Target;
use offload_build_core::error;
use offload_build_core::error::Error;
use offload_formats::container::bundled::DeviceTarget;
use offload_formats::container::elf::Elf;
use offload_formats::format::bytes::{Cursor, ReadCache};
use offload_formats::format::magic::Magic;
use offload_formats::format::pieces::{Piece, PieceSource};
use offload_formats::format::ptx;
use offload_formats::format::unpacked::Unpacked;
use offload_formats::names::ImageTarget;
use offload_formats::names::elf_flags::{self, processor_of};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

/// Bytes of a text that are read: `.version` and `.target` are its first directives.
const HEAD: u64 = 64 << 10;

/// An image in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PrebuiltImage {
    /// The target that its container names.
    declared: Option<DeviceTarget>,
    content: ImageContent,
    /// Range in the file, or in `unpacked`.
    range: Range<u64>,
    unpacked: Option<Unpacked>,
}

/// Kind of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ImageContent {
    Elf {
        machine: u16,
        flags: u32,
        abi_version: u8,
        is_linked: bool,
    },
    /// PTX for this processor.
    Ptx(String),
    Bitcode,
    /// A compressed image that cannot be unpacked.
    Packed {
        is_ptx: bool,
        /// Its description, and why it cannot be.
        problem: String,
    },
    Other,
}

impl PrebuiltImage {
    pub(super) fn new(
        declared: Option<DeviceTarget>,
        data: &ReadCache,
        range: Range<u64>,
        unpacked: Option<Unpacked>,
    ) -> Self {
        let content = match &unpacked {
            Some(bytes) => ImageContent::of(&bytes.open(), range.clone()),
            None => ImageContent::of(data, range.clone()),
        };
        Self {
            declared,
            content,
            range,
            unpacked,
        }
    }

    /// Returns an image for `declared` at `range` of a file, which cannot be unpacked.
    pub(super) fn packed(
        declared: DeviceTarget,
        range: Range<u64>,
        is_ptx: bool,
        problem: String,
    ) -> Self {
        Self {
            declared: Some(declared),
            content: ImageContent::Packed { is_ptx, problem },
            range,
            unpacked: None,
        }
    }

    /// Returns it without the zeros after an ELF file that pad it to 8; `data` has the whole image at its range.
    pub(super) fn without_padding(mut self, data: &ReadCache) -> Self {
        if let ImageContent::Elf { .. } = self.content {
            self.range.end = end_of_elf(data, self.range.clone()).unwrap_or(self.range.end);
        }
        self
    }

    /// Tells whether it is code for a GPU, without a container.
    pub(super) fn is_device_code(&self) -> bool {
        match &self.content {
            ImageContent::Elf { machine, .. } => {
                [object::elf::EM_AMDGPU.0, object::elf::EM_CUDA.0].contains(machine)
            }
            ImageContent::Ptx(_) => true,
            _ => false,
        }
    }

    pub(super) fn is_bitcode(&self) -> bool {
        matches!(self.content, ImageContent::Bitcode)
    }

    /// Tells whether it is a linked image for `target`, or PTX if that is wanted.
    pub(crate) fn serves(&self, target: &Target, wanted: &ImageTarget<'_>) -> bool {
        let declared = self.declared.as_ref();
        declared.is_none_or(|declared| declared.image_target().serves(wanted))
            && match &self.content {
                ImageContent::Elf {
                    machine,
                    flags,
                    abi_version,
                    is_linked,
                } => {
                    let header = (*machine, *flags, *abi_version);
                    let checked = check::check_header(header, &target.triple, &target.id);
                    !target.is_ptx && *is_linked && checked.is_ok()
                }
                ImageContent::Ptx(processor) => target.is_ptx && processor == wanted.arch,
                ImageContent::Bitcode | ImageContent::Packed { .. } | ImageContent::Other => false,
            }
    }

    /// Tells whether its container names the target itself. Without a container, its header leaves no setting of the target open.
    pub(crate) fn is_own(&self, target: &Target, wanted: &ImageTarget<'_>) -> bool {
        match (&self.declared, &self.content) {
            (Some(declared), _) => declared.image_target().is_same(wanted),
            (
                None,
                ImageContent::Elf {
                    machine,
                    flags,
                    abi_version,
                    ..
                },
            ) if *machine == object::elf::EM_AMDGPU.0 => {
                !elf_flags::amd_leaves_open(&target.id, *flags, *abi_version)
            }
            (None, _) => true,
        }
    }

    /// Returns why it cannot be unpacked, if it is for `target`.
    pub(crate) fn problem_for(&self, target: &Target, wanted: &ImageTarget<'_>) -> Option<&str> {
        match &self.content {
            ImageContent::Packed { is_ptx, problem } if *is_ptx == target.is_ptx => {
                self.is_own(target, wanted).then_some(problem)
            }
            _ => None,
        }
    }

    /// Returns its range in the source, if its bytes are there as they are.
    pub(crate) fn range_in_source(&self) -> Option<Range<u64>> {
        let is_there = self.unpacked.is_none() && !matches!(self.content, ImageContent::Ptx(_));
        is_there.then(|| self.range.clone())
    }

    /// Returns a reader of its bytes.
    pub(crate) fn reader(&self, source: &Path) -> Result<Box<dyn Read>, Error> {
        let range = self.range.clone();
        let whole = vec![Piece::Copy { input: 0, range }];
        let mut reader: Box<dyn Read> = match &self.unpacked {
            Some(unpacked) => Box::new(PieceSource::new(whole, vec![unpacked.source()])),
            None => {
                let file = File::open(source).map_err(error::io(source))?;
                Box::new(PieceSource::new(whole, vec![file]))
            }
        };
        let ImageContent::Ptx(_) = self.content else {
            return Ok(reader);
        };
        let mut text = Vec::new();
        let read = reader.read_to_end(&mut text);
        read.map_err(error::io(source))?;
        // What ends it for the driver, and what pads it.
        let end = text.iter().rposition(|byte| *byte != 0);
        text.truncate(end.map_or(0, |end| end + 1));
        Ok(Box::new(io::Cursor::new(text)))
    }
}

impl ImageContent {
    fn of(data: &ReadCache, range: Range<u64>) -> Self {
        match Magic::at(data, range.clone()) {
            Magic::Elf => Elf::parse(data, range).map_or(Self::Other, |elf| Self::Elf {
                machine: elf.machine,
                flags: elf.flags,
                abi_version: elf.abi_version,
                is_linked: [object::elf::ET_EXEC.0, object::elf::ET_DYN.0].contains(&elf.file_type),
            }),
            Magic::Bitcode => Self::Bitcode,
            Magic::Unknown => {
                let size = range.end.saturating_sub(range.start).min(HEAD);
                let head = Cursor::new(data, range).read(size, "text");
                let head = head.unwrap_or_default();
                let target = ptx::version(head).and_then(|_| ptx::target(head));
                target.map_or(Self::Other, Self::Ptx)
            }
            _ => Self::Other,
        }
    }
}

/// Prints its target, and what it is if it is not an image.
impl fmt::Display for PrebuiltImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let processor = match &self.content {
            ImageContent::Elf {
                machine,
                flags,
                abi_version,
                ..
            } => processor_of(*machine, *flags, *abi_version),
            ImageContent::Ptx(processor) => Some(processor.clone()),
            _ => None,
        };
        match (&self.declared, processor) {
            (Some(declared), _) => declared.fmt(f)?,
            (None, Some(processor)) => f.write_str(&processor)?,
            (None, None) => f.write_str("an image for an unknown processor")?,
        }
        match &self.content {
            ImageContent::Elf { is_linked, .. } if *is_linked => Ok(()),
            ImageContent::Elf { .. } => f.write_str(" (not linked)"),
            ImageContent::Ptx(_) => f.write_str(" (PTX)"),
            ImageContent::Bitcode => f.write_str(" (bitcode)"),
            ImageContent::Packed { .. } => f.write_str(" (compressed)"),
            ImageContent::Other => f.write_str(" (no code object)"),
        }
    }
}

/// Returns the end of an ELF file that is padded to 8.
fn end_of_elf(data: &ReadCache, range: Range<u64>) -> Option<u64> {
    use object::Endianness;
    use object::read::elf::FileHeader as _;
    let size = size_of::<object::elf::FileHeader64<Endianness>>() as u64;
    let header = Cursor::new(data, range.clone()).read(size, "ELF header");
    let header = object::elf::FileHeader64::<Endianness>::parse(header.ok()?).ok()?;
    let endian = header.endian().ok()?;
    let table =
        |start: u64, count: u16, size: u16| start.checked_add(u64::from(count) * u64::from(size));
    let sections = table(
        header.e_shoff(endian),
        header.e_shnum(endian),
        header.e_shentsize(endian),
    )?;
    let segments = table(
        header.e_phoff(endian),
        header.e_phnum(endian),
        header.e_phentsize(endian),
    )?;
    let elf = Elf::parse(data, range.clone()).ok()?;
    let contents = elf
        .sections()
        .filter(|section| section.section_type != object::elf::SHT_NOBITS.0);
    let contents = contents
        .filter_map(|section| section.offset.checked_add(section.size))
        .max();
    let size = sections.max(segments).max(contents.unwrap_or(0));
    let end = range.start.checked_add(size)?;
    (end <= range.end && range.end - end < 8).then_some(end)
}
