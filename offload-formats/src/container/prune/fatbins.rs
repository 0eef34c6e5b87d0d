//! CUDA's fat binaries and their replacements.

use std::ops::Range;

use super::choice::Recompression;
use super::error::PruneProblem;
use super::job::PruneJob;
use super::pruned::{PruneCounts, PrunedUnit};
use crate::container::elf::{Elf, SymbolPlace, SymbolTable};
use crate::format::bytes::{Cursor, ReadAt};
use crate::format::fatbin::{
    CompressedImage, FatbinCompression, FatbinCompressor, FatbinEntry, FatbinHeader, FatbinKind,
    FatbinUnpacker, FoundFatbin, ImageHeader,
};
use crate::format::pieces::{self, Piece};
use crate::format::unpacked::Scratch;

/// Alignment of CUDA's fat binaries, and of the images in them.
const ALIGNMENT: u64 = 8;

/// How an image is to be stored.
enum NewForm {
    Plain,
    Compressed(FatbinCompressor),
}

/// An image of a fat binary, or a group of images that are compressed together.
struct StoredImage<'a> {
    /// Range of the headers and the content.
    range: Range<u64>,
    /// The image, or the first of the group.
    entry: &'a FatbinEntry,
}

/// Tells whether a program may use an image: an ELF file that defines no function or variable has nothing for it. `limit` is the
/// size up to which an image is unpacked.
fn is_used<'d, R: ReadAt<'d>>(data: R, entry: &FatbinEntry, limit: u64) -> bool {
    let mut unpacker = FatbinUnpacker::new(data, limit);
    let Ok(image) = unpacker.image(entry) else {
        return true;
    };
    let file = Elf::parse(image, 0..image.len() as u64);
    let symbols = file.and_then(|file| file.symbols(SymbolTable::All));
    symbols.map_or(true, |symbols| {
        symbols.iter().any(|symbol| {
            let is_defined = symbol.place != SymbolPlace::Undefined;
            is_defined && (symbol.is_function() || symbol.is_object())
        })
    })
}

/// Returns the replacement of a fat binary: without the images that are removed, or with another compression.
pub(super) fn fatbin_unit<'d, R: ReadAt<'d>>(
    data: R,
    found: &FoundFatbin,
    job: PruneJob<'_>,
    counts: &mut PruneCounts,
) -> Result<PrunedUnit, PruneProblem> {
    let old = found.range.clone();
    let header = FatbinHeader::read(&mut Cursor::new(data, old.clone()));
    let header = header.map_err(PruneProblem::Outside)?;
    let start = FatbinHeader::LEN;
    if u64::from(header.header_size) != start {
        return Err(PruneProblem::FatbinHeader { offset: old.start });
    }
    let keep = job.choice.keeps_fatbin(&found.entries);
    let mut kept = Vec::new();
    let mut position = old.start.saturating_add(start);
    for (entries, keeps) in groups(&found.entries, &keep) {
        let entry = entries.first().expect("a group has an image");
        let range = position..entry.image.end;
        position = range.end;
        // A group is compressed as a whole.
        let is_kept = keeps.contains(&true);
        for entry in entries {
            let name = match entry.kind {
                FatbinKind::Ptx => entry.processor.replacen("sm_", "compute_", 1),
                _ => entry.processor.clone(),
            };
            // As it is when stored uncompressed.
            let size = entry.uncompressed_size.next_multiple_of(ALIGNMENT);
            counts.add(&name, entry.size_in_file(), size, is_kept);
        }
        if is_kept {
            kept.push(StoredImage { range, entry });
        }
    }
    let limit = job.limit.memory();
    if kept.is_empty()
        && found
            .entries
            .iter()
            .any(|entry| is_used(data, entry, limit))
    {
        counts.empty += 1;
    }
    let (mut body, mut copied, mut place) = (Vec::new(), Vec::new(), start);
    let mut is_recompressed = false;
    for image in kept {
        match image.recompressed(data, job)? {
            Some(new) => {
                is_recompressed = true;
                place += pieces::size(&new);
                body.extend(new);
            }
            None => {
                let (range, content) = (image.range, image.entry.image.clone());
                copied.push((content.clone(), place + (content.start - range.start)));
                place += range.end - range.start;
                body.push(Piece::Copy { input: 0, range });
            }
        }
    }
    counts.recompressed += usize::from(is_recompressed);
    let size = place - start;
    let mut head = Vec::new();
    FatbinHeader { size, ..header }.write(&mut head);
    Ok(PrunedUnit {
        old,
        pieces: std::iter::once(Piece::Bytes(head)).chain(body).collect(),
        size: place,
        alignment: ALIGNMENT,
        copied,
    })
}

impl StoredImage<'_> {
    /// Returns the headers and the content with another compression; nothing if they stay as they are.
    fn recompressed<'d, R: ReadAt<'d>>(
        &self,
        data: R,
        job: PruneJob<'_>,
    ) -> Result<Option<Vec<Piece>>, PruneProblem> {
        let Some(form) = self.new_form(job.choice.recompression()) else {
            return Ok(None);
        };
        let (entry, offset) = (self.entry, self.range.start);
        let wrong = |problem| PruneProblem::Unpack { offset, problem };
        let mut unpacker = FatbinUnpacker::new(data, job.limit.memory());
        let image = unpacker.whole(entry).map_err(wrong)?;
        let compressed = match form {
            NewForm::Compressed(how) => how.compress(image).map_err(PruneProblem::Pack)?,
            NewForm::Plain => None,
        };
        let is_plain = entry.compression.is_none();
        let stored = entry.image.end.saturating_sub(entry.image.start);
        let is_useless = |new: &CompressedImage| {
            let (how, _) = new.how;
            entry.compression == Some(how.method()) && new.bytes.len() as u64 >= stored
        };
        // Another level of the same method is worth it only if it saves something.
        if compressed.as_ref().is_some_and(is_useless) {
            return Ok(None);
        }
        let (how, content) = match &compressed {
            Some(compressed) => (Some(compressed.how), compressed.bytes.as_slice()),
            None if is_plain => return Ok(None),
            None => (None, image),
        };
        let header = ImageHeader::read(&mut Cursor::new(data, self.range.clone()));
        let header = header.map_err(PruneProblem::Outside)?;
        let header = header.stored_as(image.len() as u64, how);
        let mut head = Vec::new();
        header.write(&mut head);
        let size = content.len() as u64;
        Ok(Some(vec![
            Piece::Bytes(head),
            // Name, options and the table of a group.
            Piece::Copy {
                input: 0,
                range: offset + ImageHeader::LEN..entry.image.start,
            },
            kept(content, job.scratch)?,
            Piece::Zeros(size.next_multiple_of(ALIGNMENT) - size),
        ]))
    }

    /// Returns its new form; nothing if it stays as it is.
    fn new_form(&self, how: Option<Recompression>) -> Option<NewForm> {
        let old = self.entry.compression;
        match how? {
            Recompression::Compress { fatbins, .. } => {
                let fatbins = fatbins?;
                let is_to_change = match old {
                    None => true,
                    // Nobody can compress again what nobody can read.
                    Some(FatbinCompression::Other(_)) => false,
                    Some(old) => {
                        let is_other = old != fatbins.compressor.method();
                        fatbins.replaces && (is_other || fatbins.has_level())
                    }
                };
                is_to_change.then_some(NewForm::Compressed(fatbins.compressor))
            }
            // Only compressed images form groups.
            Recompression::Decompress => {
                let is_alone = self.entry.group.is_none();
                let is_known = !matches!(old, None | Some(FatbinCompression::Other(_)));
                (is_known && is_alone).then_some(NewForm::Plain)
            }
        }
    }
}

/// Writes `content` to the scratch.
fn kept(content: &[u8], scratch: &Scratch) -> Result<Piece, PruneProblem> {
    let kept = scratch.keep(content.len() as u64, |out| {
        let written = std::io::Write::write_all(out, content);
        written.map_err(PruneProblem::from)
    });
    let range = kept?.range();
    Ok(Piece::Copy { input: 1, range })
}

/// Divides entries into those with the same stored bytes.
fn groups<'a>(
    entries: &'a [FatbinEntry],
    keep: &'a [bool],
) -> impl Iterator<Item = (&'a [FatbinEntry], &'a [bool])> {
    let mut start = 0;
    let groups = entries.chunk_by(|one, two| one.image == two.image);
    groups.map(move |group| {
        let end = start + group.len();
        let kept = keep.get(start..end).expect("there is one for each entry");
        start = end;
        (group, kept)
    })
}
