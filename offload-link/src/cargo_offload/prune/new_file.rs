//! New files: written beside their place, compared with the old ones, and renamed.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use crate::cargo_offload::error::CargoOffloadError;
use crate::decompressed;
use crate::files::{self, NewFile, Opened, Reading, copy_range};
use crate::platform::{self, FileExt};
use offload_formats::container::decompression_limit::DecompressionLimit;
use offload_formats::container::prune::{
    PruneChoice, PruneCounts, PruneProblem, PrunedFile, PtxChoice, prune,
};
use offload_formats::format::bytes::ReadCache;
use offload_formats::format::pieces::Piece;
use offload_formats::format::unpacked::Scratch;

/// Creates a file for an output.
pub(super) fn create(output: &Path) -> Result<NewFile, CargoOffloadError> {
    let made = NewFile::private(output, ".prune-");
    made.map_err(|error| CargoOffloadError::of(output, &error))
}

/// Gives a complete file the permissions of the old one, and its name. In the place of the old file, it also gets its
/// owner and extended attributes, as far as the system allows.
pub(super) fn finish(
    mut made: NewFile,
    old: &Opened,
    output: &Path,
) -> Result<(), CargoOffloadError> {
    let kept = old.with(|old| {
        let metadata = old.metadata()?;
        let number = platform::file_number(&metadata);
        let replaced = std::fs::metadata(output).ok();
        let replaces = replaced.is_some_and(|found| platform::file_number(&found) == number);
        let mode = platform::mode(&metadata);
        let is_owned = replaces && platform::keep_owner(old, &made.open()?)?;
        // A program must not run with the rights of another user than the one who gave it these bits.
        let mode = if is_owned {
            mode & 0o7777
        } else {
            mode & 0o777
        };
        made.set_mode(mode);
        Ok(())
    });
    kept.and_then(|()| made.finish())
        .map_err(|error| CargoOffloadError::of(output, &error))
}

/// Writes the new content of a file or member, whose input 1 is `contents`, and compares it with the old one: the images
/// that were copied are the same, every pointer leads to a bundle, and the images are those that were kept.
///
/// # Errors
///
/// Returns a message.
pub(super) fn write_checked(
    old: &File,
    base: u64,
    pruned: &PrunedFile,
    contents: &Scratch,
    new: &File,
) -> Result<(), String> {
    let text = |error: io::Error| error.to_string();
    let new_contents = files::file_of(contents);
    let mut inputs = vec![(old, base)];
    inputs.extend(new_contents.iter().map(|file| (&**file, 0)));
    copy(&inputs, &pruned.pieces, new).map_err(text)?;
    let again = new.try_clone().map_err(text)?;
    if !compare((old, base), new, &pruned.copied).map_err(text)? {
        return Err("an image changed while it was copied; the file was not written".to_owned());
    }
    let again = Reading::new(Opened::new(Path::new(""), again, None));
    check(&again, &pruned.counts, pruned.size)
}

/// Reads the new content again.
fn check(new: &std::sync::Arc<Reading>, counts: &PruneCounts, size: u64) -> Result<(), String> {
    let cache = ReadCache::new(new.part(0..size));
    match prune(
        &cache,
        &keep_all(),
        DecompressionLimit::of(u64::MAX),
        &files::scratch(),
    ) {
        Ok(read) if read.counts.keeps_like(counts) && read.size == size => Ok(()),
        Ok(_) => Err(OTHER_IMAGES.to_owned()),
        Err(error) if counts.kept.is_empty() && is_empty(&error.problem, size) => Ok(()),
        Err(error) => Err(unchecked(&decompressed::with_hint(
            &error,
            error.problem.remedy(),
        ))),
    }
}

/// Problem of a new file whose images are others than those that were kept.
pub(super) const OTHER_IMAGES: &str =
    "the images of the new file are not those that were kept; it was not written";

/// Returns the problem of a new file that could not be read again.
pub(super) fn unchecked(problem: &str) -> String {
    format!("the new file was not written, because it could not be read again: {problem}")
}

/// Tells whether a file without images is the reason: sections of offload binaries are removed with their last one, and a
/// file of them then has no bytes.
fn is_empty(problem: &PruneProblem, size: u64) -> bool {
    match problem {
        PruneProblem::NoImages => true,
        PruneProblem::Format => size == 0,
        _ => false,
    }
}

/// Returns the choice that removes nothing.
pub(super) fn keep_all() -> PruneChoice {
    PruneChoice::drop(Vec::new(), PtxChoice::Keep)
}

/// Copies the pieces to an empty file. Each input is a file and the offset at which the input starts.
pub(super) fn copy(inputs: &[(&File, u64)], pieces: &[Piece], new: &File) -> io::Result<()> {
    files::write_pieces_by(new, pieces, |input, range, offset| {
        let (file, base) = inputs
            .get(input)
            .expect("pieces are of the inputs that were given");
        copy_range(file, range.start + base..range.end + base, new, offset).map_err(Into::into)
    })
}

/// Tells whether the images that were copied are the same in both files.
fn compare(
    (old, base): (&File, u64),
    new: &File,
    copied: &[(Range<u64>, Range<u64>)],
) -> io::Result<bool> {
    const PART: u64 = 1 << 20;
    let (mut one, mut two) = (vec![0; PART as usize], vec![0; PART as usize]);
    for (before, after) in copied {
        let mut done = 0;
        let size = before.end - before.start;
        while done < size {
            let count = PART.min(size - done) as usize;
            old.read_exact_at(&mut one[..count], base + before.start + done)?;
            new.read_exact_at(&mut two[..count], after.start + done)?;
            if one[..count] != two[..count] {
                return Ok(false);
            }
            done += count as u64;
        }
    }
    Ok(true)
}
