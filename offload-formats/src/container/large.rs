//! Images that are too large to stand among the read-only data of a program.
//!
//! Code of the usual models reaches 2 GiB, and so do its tables for exceptions. Images between code and data push them
//! apart, so the linker rejects the program, or damages it.
//!
//! AArch64: every linker places a writable section after the program's data. Only `.bss` is behind it, which code reaches
//! up to 4 GiB away (`adrp`).
//!
//! x86-64 has sections for data that code reaches by 64-bit addresses only, which linkers place before or after
//! everything else:
//!
//! | part of the section | value                                | who needs it |
//! |---------------------|--------------------------------------|--------------|
//! | name                | `.lrodata`, then the usual name      | GNU ld       |
//! | flag                | `SHF_X86_64_LARGE`                   | gold, lld    |
//! | type                | `SHT_PROGBITS`, for any content      | lld, because all these sections become one: `.lrodata` |
//!
//! So images of a linked program for x86-64 are in `.lrodata`, containers of several formats one after the other.
//!
//! Specification: the x86-64 psABI's section "Special Sections"; `docs/spec/large-images.md`.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use object::elf;

use super::elf::Machine;
use crate::format::{
    bundles,
    bytes::{Alignment, ReadAt},
    fatbin,
    magic::Magic,
    offload_binary::OffloadBinary,
};

#[doc(inline)]
pub use offload_formats_core::settings::large_images::{
    LARGE_OPTION, LARGE_VARIABLE, largest_usual,
};

/// Name of sections of large read-only data, and start of the longer names.
pub(crate) const LARGE_SECTION: &str = ".lrodata";

/// Flag of sections of large data, of x86-64 only.
pub(super) const SHF_X86_64_LARGE: elf::SectionFlags = elf::SectionFlags(0x1000_0000);

/// Placement of a host object's images by linkers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImagePlacement {
    /// Among other read-only data.
    #[default]
    Usual,
    /// Apart from all code and other data, in sections of large data: x86-64.
    Large,
    /// After the program's data, in writable sections with the usual names: AArch64.
    AfterData,
}

impl ImagePlacement {
    /// Returns the placement for images of `total` bytes on an ELF host, or on another one (`None`), where a program
    /// has at most `largest_usual` bytes in usual sections.
    ///
    /// # Errors
    ///
    /// Fails if the host has no sections of large data, and its code does not reach that far.
    pub fn choose(
        elf: Option<Machine>,
        total: u64,
        largest_usual: u64,
    ) -> Result<Self, ImagesTooLarge> {
        let (reach, beyond_usual) = match elf.map(|machine| elf::Machine(machine.number)) {
            Some(elf::EM_X86_64) => (u64::MAX, Self::Large),
            Some(elf::EM_AARCH64) => (REACH_OF_AARCH64, Self::AfterData),
            _ => (REACH, Self::Usual),
        };
        if total > reach {
            return Err(ImagesTooLarge { total, reach });
        }
        Ok(match total > largest_usual {
            true => beyond_usual,
            false => Self::Usual,
        })
    }

    /// Returns the name of the section that is usually called `name`.
    #[must_use]
    pub fn section(self, name: &str) -> Cow<'_, str> {
        match self {
            Self::Usual | Self::AfterData => name.into(),
            Self::Large => format!("{LARGE_SECTION}{name}").into(),
        }
    }

    /// Returns the flags of the section.
    pub(crate) fn flags(self) -> elf::SectionFlags {
        match self {
            Self::Usual => elf::SHF_ALLOC,
            Self::Large => elf::SHF_ALLOC | SHF_X86_64_LARGE,
            Self::AfterData => elf::SHF_ALLOC | elf::SHF_WRITE,
        }
    }
}

/// Reach of code on hosts without sections of large data, in bytes: 32-bit offsets with a sign.
const REACH: u64 = 2 << 30;
/// The same on AArch64, whose `adrp` reaches 4 GiB, less room for the program's own code and data.
const REACH_OF_AARCH64: u64 = 7 << 29;

/// Images that no linker can place in a program for the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImagesTooLarge {
    /// Size of all images in bytes.
    pub total: u64,
    /// Largest size on the host in bytes.
    pub reach: u64,
}

impl fmt::Display for ImagesTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the images have {:#x} bytes, and code of this host reaches {:#x}",
            self.total, self.reach
        )
    }
}

impl std::error::Error for ImagesTooLarge {}

/// Returns the usual name of a section of images: `.hip_fatbin` for `.lrodata.hip_fatbin`. Returns `.lrodata` as it is.
pub(crate) fn usual_name(name: &[u8]) -> &[u8] {
    match name.strip_prefix(LARGE_SECTION.as_bytes()) {
        Some(rest) if rest.starts_with(b".") => rest,
        _ => name,
    }
}

#[cfg(feature = "tools")]
/// Tells whether a section named `name` is called `usual`, or may have its content after a link.
pub(crate) fn is_called(name: &[u8], usual: &[u8]) -> bool {
    usual_name(name) == usual || name == LARGE_SECTION.as_bytes()
}

/// Returns the parts of a section that may have containers of different formats: the whole section, unless it is
/// `.lrodata`. Of that one, the parts that start with a container: consecutive containers of one format are one part,
/// and other data of the program is in none.
///
/// A damaged container makes the rest of the section one part, whose reader reports the damage.
pub(super) fn parts<'d, R: ReadAt<'d>>(
    data: R,
    name: &[u8],
    section: Range<u64>,
) -> Vec<Range<u64>> {
    if name != LARGE_SECTION.as_bytes() {
        return vec![section];
    }
    let mut parts = Vec::new();
    let mut position = section.start;
    while let Some(start) = next_container(data, position..section.end) {
        let end = end_of_containers(data, start..section.end);
        parts.push(start..end);
        let distance = end.saturating_sub(section.start);
        position = end.saturating_add(Alignment::EIGHT.padding(distance));
    }
    parts
}

/// Least alignment of a container in bytes.
const ALIGNMENT: usize = 8;

/// Number of bytes that are searched at once: whole magics, at any place where one may start.
const BLOCK: u64 = 1 << 16;

/// Returns the first place in a range at which a container starts. Keeps nothing that it reads: most large data is no container.
fn next_container<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Option<u64> {
    let mut buffer = Vec::new();
    let mut position = range.start;
    while position < range.end {
        let size = range.end.saturating_sub(position).min(BLOCK);
        buffer.resize(usize::try_from(size).ok()?, 0);
        data.read_once(&mut buffer, position)?;
        let is_last = position.saturating_add(size) == range.end;
        let starts = match is_last {
            true => buffer.len(),
            false => buffer.len() - Magic::LEN,
        };
        let place = (0..starts).step_by(ALIGNMENT).find(|place| {
            let (_, rest) = buffer.split_at(*place);
            Magic::of(rest).is_container()
        });
        if let Some(place) = place {
            return Some(position.saturating_add(place as u64));
        }
        position = position.saturating_add(if is_last { size } else { starts as u64 });
    }
    None
}

/// Returns the end of the containers of one format at the start of a range.
fn end_of_containers<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> u64 {
    let end = match Magic::at(data, range.clone()) {
        Magic::Bundle | Magic::CompressedBundle => {
            bundles::walk(data, range.clone()).ok().map(|all| all.end)
        }
        Magic::Fatbin => {
            let fatbins = fatbin::walk(data, range.clone()).map_while(Result::ok);
            fatbins.last().map(|last| last.range.end)
        }
        Magic::OffloadBinary => {
            let mut end = None;
            let mut position = range.start;
            while let Ok(binary) = OffloadBinary::parse(data, position, range.end) {
                position = binary.range().end;
                end = Some(position);
                let distance = position.saturating_sub(range.start);
                position = position.saturating_add(Alignment::EIGHT.padding(distance));
            }
            end
        }
        _ => None,
    };
    end.unwrap_or(range.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RISCV: Option<Machine> = Some(Machine::RISCV64);

    #[test]
    fn chooses_by_host_and_size() {
        const GIB: u64 = 1 << 30;
        let (x86_64, aarch64) = (Some(Machine::X86_64), Some(Machine::AARCH64));
        for (host, total, expected) in [
            (x86_64, 0, Some(ImagePlacement::Usual)),
            (x86_64, GIB, Some(ImagePlacement::Usual)),
            (x86_64, GIB + 1, Some(ImagePlacement::Large)),
            (x86_64, 100 * GIB, Some(ImagePlacement::Large)),
            (aarch64, GIB, Some(ImagePlacement::Usual)),
            (aarch64, GIB + 1, Some(ImagePlacement::AfterData)),
            (aarch64, 7 * GIB / 2, Some(ImagePlacement::AfterData)),
            (aarch64, 7 * GIB / 2 + 1, None),
            (RISCV, 2 * GIB, Some(ImagePlacement::Usual)),
            (RISCV, 2 * GIB + 1, None),
            (None, 2 * GIB, Some(ImagePlacement::Usual)),
            (None, 2 * GIB + 1, None),
        ] {
            let largest_usual = largest_usual(None, None).unwrap();
            let chosen = ImagePlacement::choose(host, total, largest_usual);
            assert_eq!(chosen.ok(), expected, "{host:?} {total:#x}");
        }
        let refused = ImagePlacement::choose(None, 3 * GIB, 0).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the images have 0xc0000000 bytes, and code of this host reaches 0x80000000"
        );
    }

    #[test]
    fn recognizes_both_names() {
        for (name, usual) in [
            (".hip_fatbin", ".hip_fatbin"),
            (".lrodata.hip_fatbin", ".hip_fatbin"),
            (".lrodata", ".lrodata"),
            (".lrodatax", ".lrodatax"),
        ] {
            assert_eq!(usual_name(name.as_bytes()), usual.as_bytes());
        }
        let name = ImagePlacement::Large.section(".nv_fatbin");
        assert_eq!(name, ".lrodata.nv_fatbin");
        assert_eq!(usual_name(name.as_bytes()), b".nv_fatbin");
    }

    /// Sections of several objects and formats, as linkers make one of them, and data of the program.
    #[test]
    fn divides_a_section_by_formats() {
        use crate::format::bundle::{self, BundleImage};
        use crate::format::offload_binary::BinaryImage;
        use crate::names::LlvmRelease;
        let id = "hip-amdgcn-amd-amdhsa--gfx90a";
        let image = BundleImage { id, image: b"code" };
        let bundle = bundle::to_bytes(&[image], std::num::NonZeroU64::new(4096).unwrap()).unwrap();
        let fatbin = [0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let binary = BinaryImage::default().to_bytes(LlvmRelease::V22).unwrap();
        let other = b"other data of the program";
        let mut bytes = Vec::new();
        let mut starts = Vec::new();
        for (content, alignment) in [
            (&other[..], 8),
            (&bundle, 4096),
            (&bundle, 4096),
            (&fatbin, 16),
            (other, 1),
            (&binary, 8),
            (&binary, 8),
            (&bundle, 4096),
        ] {
            bytes.resize(bytes.len().next_multiple_of(alignment), 0);
            starts.push(bytes.len() as u64);
            bytes.extend_from_slice(content);
        }
        let all = 0..bytes.len() as u64;
        let expected = [starts[1], starts[3], starts[5], starts[7]];
        let found = parts(&bytes[..], b".lrodata", all.clone());
        let found_starts: Vec<u64> = found.iter().map(|part| part.start).collect();
        assert_eq!(found_starts, expected);
        // Padding after bundles is theirs.
        assert_eq!(found[0].end, starts[3]);
        assert_eq!(found[1].end, starts[3] + 16);
        assert_eq!(found[2].end, starts[6] + binary.len() as u64);
        assert_eq!(found[3].end, all.end);
        assert_eq!(parts(&bytes[..], b".hip_fatbin", all.clone()), [all]);

        // The reader of the rest reports the damage.
        let place = starts[7] as usize + 24;
        bytes[place..place + 8].fill(0xff);
        let all = 0..bytes.len() as u64;
        let damaged = parts(&bytes[..], b".lrodata", all.clone());
        assert_eq!(damaged.last(), Some(&(starts[7]..all.end)));
    }

    /// Data of the program is read in blocks, and a container may start anywhere in one.
    #[test]
    fn finds_containers_across_blocks() {
        let fatbin = [0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let size = BLOCK as usize * 3;
        for start in [
            8,
            BLOCK - 32,
            BLOCK - 24,
            BLOCK - 16,
            BLOCK - 8,
            BLOCK,
            BLOCK * 3 - 16,
        ] {
            let mut bytes = vec![1; size];
            let place = start as usize;
            bytes[place..place + 16].copy_from_slice(&fatbin);
            let all = 8..size as u64;
            let found = parts(&bytes[..], b".lrodata", all.clone());
            let expected = start..start + 16;
            assert_eq!(found, [expected]);
            // At a place that no alignment allows.
            bytes.rotate_right(1);
            assert_eq!(parts(&bytes[..], b".lrodata", all), []);
        }
    }
}
