//! Archives: members are pruned one by one; names, times, owners and modes stay, the symbol index leads to the moved
//! members. A native library in an rlib is an archive in a member.

use std::collections::BTreeMap;
use std::ops::Range;

use super::error::{PruneError, PruneProblem};
use super::job::PruneJob;
use super::member;
use super::pruned::{PruneCounts, PrunedFile, moved};
use crate::container::archive::{Archive, ArchiveMember};
use crate::format::bytes::{Cursor, ReadAt, Window};
use crate::format::pieces::{self, Piece};

/// Offset and size of the field with the size in a member's header.
const SIZE_FIELD: (u64, usize) = (48, 10);

/// Largest depth of native libraries in rlibs. rustc writes 1.
const MAX_LIBRARIES: usize = 16;

/// Prunes the members of the archive in a range of `file`. The result's ranges start with it.
pub(super) fn archive<'d, R: ReadAt<'d>>(
    file: R,
    range: Range<u64>,
    job: PruneJob<'_>,
) -> Result<PrunedFile, PruneError> {
    within(file, range, job, 0)
}

/// Prunes the members of an archive that is in as many native libraries as `depth` says.
fn within<'d, R: ReadAt<'d>>(
    file: R,
    range: Range<u64>,
    job: PruneJob<'_>,
    depth: usize,
) -> Result<PrunedFile, PruneError> {
    if depth > MAX_LIBRARIES {
        return Err(PruneError::whole(PruneProblem::NestedArchive));
    }
    let data = Window::new(file, range.clone());
    let end = data.size().unwrap_or(0);
    let archive = Archive::parse(data, 0..end);
    let archive = archive.map_err(|problem| PruneError::whole(PruneProblem::Archive(problem)))?;
    if archive.thin {
        return Err(PruneError::whole(PruneProblem::ThinArchive));
    }
    let mut counts = PruneCounts::default();
    let (mut changed, mut copied, mut has_images) = (Vec::new(), Vec::new(), false);
    let mut left = Vec::new();
    for member in &archive.members {
        let Some(content) = member.content.clone() else {
            continue;
        };
        let start = range.start + content.start;
        let here = Window::new(file, start..range.start + content.end);
        let pruned = member::file(here, job, &|library| {
            let library = start + library.start..start + library.end;
            within(file, library, job, depth + 1)
        });
        let mut pruned = match pruned {
            Ok(pruned) => pruned,
            Err(error) if error.problem.is_without_images() => continue,
            Err(error) if error.problem.is_unsupported() => {
                left.push(error.in_member(member.name));
                continue;
            }
            Err(error) => return Err(error.in_member(member.name)),
        };
        has_images = true;
        counts.append(&pruned.counts);
        let others = std::mem::take(&mut pruned.left).into_iter();
        left.extend(others.map(|error| error.in_member(member.name)));
        if pruned.counts.is_unchanged() {
            let base = content.start;
            copied.extend(pruned.copied.into_iter().map(|(old, _)| {
                let old = old.start + base..old.end + base;
                (old.clone(), old)
            }));
        } else {
            changed.push((member, content, pruned));
        }
    }
    if !has_images {
        let none = PruneError::whole(PruneProblem::NoImages);
        return Err(left.into_iter().next().unwrap_or(none));
    }
    let plan = ArchiveRewriter {
        data,
        archive: &archive,
        end,
    };
    let mut file = plan.file(changed).map_err(PruneError::whole)?;
    let unchanged = copied.into_iter().map(|(old, _)| {
        let new = file.offset(old.start);
        (old.clone(), new..new + (old.end - old.start))
    });
    let unchanged: Vec<_> = unchanged.collect();
    file.copied.extend(unchanged);
    Ok(PrunedFile {
        size: pieces::size(&file.pieces),
        pieces: file.pieces,
        counts,
        copied: file.copied,
        left,
    })
}

struct ArchiveRewriter<'a, 'd, R> {
    data: R,
    archive: &'a Archive<'d, R>,
    end: u64,
}

/// The new archive.
struct NewArchive {
    pieces: Vec<Piece>,
    copied: Vec<(Range<u64>, Range<u64>)>,
    /// End of each changed member in the old file, in their order, and the number of bytes by which the bytes after it move up.
    shifts: Vec<(u64, u64)>,
}

impl NewArchive {
    /// Returns the new offset of bytes that are not in a changed member.
    fn offset(&self, old: u64) -> u64 {
        let before = self.shifts.partition_point(|(end, _)| *end <= old);
        let last = before.checked_sub(1).and_then(|last| self.shifts.get(last));
        old - last.map_or(0, |(_, shift)| *shift)
    }
}

impl<'d, R: ReadAt<'d>> ArchiveRewriter<'_, 'd, R> {
    fn file(
        &self,
        changed: Vec<(&ArchiveMember<'d>, Range<u64>, PrunedFile)>,
    ) -> Result<NewArchive, PruneProblem> {
        let mut new = NewArchive {
            pieces: Vec::new(),
            copied: Vec::new(),
            shifts: Vec::new(),
        };
        // Members are at multiples of 2; a padding byte may be missing after the last.
        let mut total = 0;
        for (_, content, pruned) in &changed {
            let old_size = content.end - content.start;
            let padded = |size: u64| (content.start + size).next_multiple_of(2);
            let old_end = padded(old_size).min(self.end.max(content.end));
            let shift = old_end.checked_sub(padded(pruned.size));
            total += shift.ok_or(PruneProblem::Grew)?;
            new.shifts.push((old_end, total));
        }
        let mut edits: BTreeMap<u64, (u64, Vec<Piece>)> = BTreeMap::new();
        if !changed.is_empty() {
            self.change_index(&new, &mut edits)?;
        }
        for ((member, content, pruned), (old_end, _)) in changed.into_iter().zip(&new.shifts) {
            let field = self.size_field(member, &content, pruned.size)?;
            edits.insert(
                member.header_offset + SIZE_FIELD.0,
                (SIZE_FIELD.1 as u64, vec![Piece::Bytes(field)]),
            );
            let start = new.offset(content.start);
            let base = content.start;
            new.copied
                .extend(pruned.copied.into_iter().map(|(old, new)| {
                    let old = old.start + base..old.end + base;
                    (old, new.start + start..new.end + start)
                }));
            let mut pieces: Vec<Piece> = pruned
                .pieces
                .into_iter()
                .map(|piece| moved(piece, base))
                .collect();
            if (start + pruned.size) % 2 == 1 {
                pieces.push(Piece::Bytes(b"\n".to_vec()));
            }
            edits.insert(base, (old_end - base, pieces));
        }
        new.pieces = pieces::replaced(0..self.end, edits);
        Ok(new)
    }

    /// Returns the new field with a member's size. A BSD member's name is part of it.
    fn size_field(
        &self,
        member: &ArchiveMember<'d>,
        content: &Range<u64>,
        size: u64,
    ) -> Result<Vec<u8>, PruneProblem> {
        /// Size of a member's header.
        const HEADER: u64 = 60;
        let name = content.start - (member.header_offset + HEADER);
        let mut field = (name + size).to_string().into_bytes();
        match field.len() > SIZE_FIELD.1 {
            true => Err(PruneProblem::Grew),
            false => {
                field.resize(SIZE_FIELD.1, b' ');
                Ok(field)
            }
        }
    }

    /// Changes the offsets in GNU's symbol index; others are an error.
    fn change_index(
        &self,
        new: &NewArchive,
        edits: &mut BTreeMap<u64, (u64, Vec<Piece>)>,
    ) -> Result<(), PruneProblem> {
        for (count, index) in self.archive.indices().iter().enumerate() {
            let word = match (index.name, count) {
                (b"/", 0) => 4,
                (b"/SYM64/", 0) => 8,
                _ => return Err(PruneProblem::ArchiveIndex),
            };
            let Some(content) = index.content.clone() else {
                continue;
            };
            let mut cursor = Cursor::new(self.data, content.clone());
            let mut number = || -> Result<u64, PruneProblem> {
                let bytes = cursor
                    .read(word, "symbol index")
                    .map_err(PruneProblem::Outside)?;
                // Big-endian.
                Ok(bytes
                    .iter()
                    .fold(0, |number, byte| number << 8 | u64::from(*byte)))
            };
            let count = number()?;
            let mut offsets = Vec::new();
            for _ in 0..count {
                let new = new.offset(number()?).to_be_bytes();
                let start = new.len() - word as usize;
                offsets.extend(new.get(start..).expect("a word has at most 8 bytes"));
            }
            let size = offsets.len() as u64;
            edits.insert(content.start + word, (size, vec![Piece::Bytes(offsets)]));
        }
        Ok(())
    }
}
