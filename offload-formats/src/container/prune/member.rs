//! A file that is not an archive, and may be a member of one.

use std::ops::Range;

use super::binaries::binary_units;
use super::elf_headers::ElfHeaders;
use super::error::{PruneError, PruneProblem};
use super::job::PruneJob;
use super::pruned::{PruneCounts, PrunedFile};
use super::units::units;
use super::{object, rewrite};
use crate::container::bundled_library::is_bundled_library;
use crate::container::object_bundle::BUNDLE_SECTION;
use crate::format::bytes::ReadAt;
use crate::format::magic::Magic;
use crate::format::pieces::Piece;

/// Prunes an ELF file, or a file of units. `prune_library` prunes the archive in a range of the file.
pub(super) fn file<'d, R: ReadAt<'d>>(
    data: R,
    job: PruneJob<'_>,
    prune_library: &dyn Fn(Range<u64>) -> Result<PrunedFile, PruneError>,
) -> Result<PrunedFile, PruneError> {
    let size = data.size().unwrap_or(0);
    match Magic::at(data, 0..size) {
        Magic::Elf => {
            let headers = ElfHeaders::read(data).map_err(PruneError::whole)?;
            let bundles = BUNDLE_SECTION.as_bytes();
            if headers.names.iter().any(|name| name.starts_with(bundles)) {
                return Err(PruneError::whole(PruneProblem::BundleSections));
            }
            let sections = headers.sections.iter().zip(&headers.names).enumerate();
            let libraries = sections.filter(|(_, (section, name))| {
                section.has_content() && is_bundled_library(data, name, section.range())
            });
            let mut libraries = libraries.map(|(index, _)| index);
            if let Some(index) = libraries.next() {
                // rustc puts one into an object of its own.
                if libraries.next().is_some() || !headers.is_object() {
                    return Err(PruneError::whole(PruneProblem::NestedArchive));
                }
                let library = prune_library(headers.section(index).range())?;
                return object::around(data, &headers, index, library);
            }
            match headers.is_object() {
                true => object::object(data, &headers, job),
                false => rewrite::linked(data, &headers, job),
            }
        }
        magic if magic.is_container() => containers(data, job).map_err(PruneError::whole),
        Magic::Archive | Magic::ThinArchive => Err(PruneError::whole(PruneProblem::NestedArchive)),
        _ => Err(PruneError::whole(PruneProblem::Format)),
    }
}

/// Prunes a file that consists of units.
fn containers<'d, R: ReadAt<'d>>(data: R, job: PruneJob<'_>) -> Result<PrunedFile, PruneProblem> {
    let mut counts = PruneCounts::default();
    let size = data.size().unwrap_or(0);
    let units = match Magic::at(data, 0..size) {
        Magic::OffloadBinary => binary_units(data, 0..size, job, &mut counts),
        _ => units(data, 0..size, job, &mut counts),
    }?;
    if counts.is_unchanged() {
        return Ok(PrunedFile::unchanged(size, units.into_iter(), counts));
    }
    let (mut pieces, mut end, mut copied) = (Vec::new(), 0_u64, Vec::new());
    for unit in units {
        let alignment = match unit.old.start % unit.alignment {
            0 => unit.alignment,
            _ => 1,
        };
        let start = end.next_multiple_of(alignment);
        pieces.push(Piece::Zeros(start - end));
        pieces.extend(unit.pieces);
        copied.extend(unit.copied.into_iter().map(|(old, place)| {
            let new = start + place;
            let size = old.end - old.start;
            (old, new..new + size)
        }));
        end = start + unit.size;
    }
    Ok(PrunedFile {
        pieces,
        size: end,
        counts,
        copied,
        left: Vec::new(),
    })
}
