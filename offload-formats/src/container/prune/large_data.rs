//! Bundles and fat binaries in `.lrodata`, the section of large data of x86-64.
//!
//! Only code of the medium and large models reaches that section, and it may use a unit without a pointer: `movabs` has the
//! distance from the global offset table. libtorch_cuda.so of PyTorch 2.15 loads 58 fat binaries in this way. If the units there
//! cannot be pruned, all of them stay as they are, and the rest of the file is pruned.

use std::ops::Range;

use super::choice::{PruneChoice, PtxChoice};
use super::elf_headers::ElfHeaders;
use super::error::{PruneError, PruneProblem};
use super::job::PruneJob;
use super::pruned::{PruneCounts, PrunedFile};
use super::units::units;
use crate::container::large::{self, LARGE_SECTION};
use crate::format::bytes::ReadAt;
use crate::format::magic::Magic;

/// Treatment of the units in `.lrodata`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LargeData {
    Pruned,
    /// They stay as they are.
    Left,
}

impl LargeData {
    /// Tells whether a section with that name stays as it is.
    pub(super) fn leaves(self, name: &[u8]) -> bool {
        self == Self::Left && name == LARGE_SECTION.as_bytes()
    }
}

/// Returns the offset of the unit in `.lrodata` that cannot be pruned because of how the program may use it. Offload binaries, which
/// do not stay as they are, are not units.
fn used_unit<'d, R: ReadAt<'d>>(
    data: R,
    headers: &ElfHeaders,
    problem: &PruneProblem,
) -> Option<u64> {
    let section = headers.section(headers.find(LARGE_SECTION)?);
    if Magic::at(data, section.range()) == Magic::OffloadBinary {
        return None;
    }
    match problem {
        PruneProblem::Unregistered { offset } | PruneProblem::UsedByAddress { offset } => {
            section.range().contains(offset).then_some(*offset)
        }
        PruneProblem::Inside { address, .. } if section.addresses().contains(address) => {
            Some(section.offset + (address - section.address))
        }
        _ => None,
    }
}

/// Tells whether only units in `.lrodata` keep a file from being pruned.
pub(super) fn is_of_large_data<'d, R: ReadAt<'d>>(
    data: R,
    headers: &ElfHeaders,
    error: &PruneError,
) -> bool {
    let is_in_section = error.section.as_deref() == Some(LARGE_SECTION.as_bytes());
    let is_mixed = matches!(error.problem, PruneProblem::MixedFormats { .. });
    is_in_section && is_mixed || used_unit(data, headers, &error.problem).is_some()
}

/// Adds the images of `.lrodata`, which stayed because of `error`, to a pruned file.
pub(super) fn with_large_data<'d, R: ReadAt<'d>>(
    data: R,
    headers: &ElfHeaders,
    job: PruneJob<'_>,
    mut file: PrunedFile,
    error: PruneError,
) -> Result<PrunedFile, PruneError> {
    let Some(offset) = used_unit(data, headers, &error.problem) else {
        file.left.insert(0, error);
        return Ok(file);
    };
    let all = PruneChoice::drop(Vec::new(), PtxChoice::Keep);
    let job = PruneJob {
        choice: &all,
        ..job
    };
    let name = LARGE_SECTION.as_bytes();
    let here = |problem| PruneError::in_section(name, problem);
    let range = headers.find(LARGE_SECTION);
    let range = range.map_or(0..0, |index| headers.section(index).range());
    let (mut count, mut counts) = (0, PruneCounts::default());
    for part in unit_parts(data, name, range).map_err(here)? {
        count += units(data, part, job, &mut counts).map_err(here)?.len();
    }
    file.counts.append(&counts);
    let stays = PruneProblem::LargeData { offset, count };
    file.left.insert(0, here(stays));
    Ok(file)
}

/// Returns the parts of a section, if they have bundles or fat binaries; otherwise none.
///
/// # Errors
///
/// Fails if only some of them do, or the section has other data, too: units would be placed over it.
pub(super) fn unit_parts<'d, R: ReadAt<'d>>(
    data: R,
    name: &[u8],
    section: Range<u64>,
) -> Result<Vec<Range<u64>>, PruneProblem> {
    let parts = large::parts(data, name, section.clone());
    let has_units = |part: &Range<u64>| {
        matches!(
            Magic::at(data, part.clone()),
            Magic::Bundle | Magic::CompressedBundle | Magic::Fatbin
        )
    };
    if !parts.iter().any(has_units) {
        return Ok(Vec::new());
    }
    let mut position = section.start;
    let end = section.end..section.end;
    for part in parts.iter().chain(std::iter::once(&end)) {
        let gap = part.start.saturating_sub(position);
        let bytes = data.read_at(position, gap.min(LARGEST_GAP)).unwrap_or(&[1]);
        let is_padding = gap < LARGEST_GAP && bytes.iter().all(|byte| *byte == 0);
        if !is_padding || !(part.is_empty() || has_units(part)) {
            return Err(PruneProblem::MixedFormats { offset: position });
        }
        position = part.end;
    }
    Ok(parts)
}

/// Alignment of bundles in bytes, which no gap before one reaches.
const LARGEST_GAP: u64 = 4096;
