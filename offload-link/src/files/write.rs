//! Whole files under their names, and files that consist of pieces.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use offload_formats::format::pieces::{self, Piece};

use super::copy::{CopyError, copy_range};
use super::new_file::NewFile;
use super::opened::Opened;
use super::reading::Reading;
use crate::platform::FileExt;

/// Writes a file that is never incomplete. Links and devices stay what they are, and the mode of a file stays.
///
/// # Errors
///
/// Fails if the folder cannot be written to; an existing file stays.
pub(crate) fn write_beside(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let pieces = [Piece::Bytes(bytes.to_vec())];
    write_pieces_beside(path, &pieces, &[])
}

/// Writes pieces, which copy ranges of the files `inputs`, like [`write_beside`].
///
/// # Errors
///
/// Fails if an input cannot be read, or the folder cannot be written to; an existing file stays.
pub(crate) fn write_pieces_beside(
    path: &Path,
    pieces: &[Piece],
    inputs: &[PathBuf],
) -> io::Result<()> {
    write_new(NewFile::create(path)?, pieces, inputs)
}

/// Writes pieces, which copy ranges of the files `inputs`, to standard output.
///
/// # Errors
///
/// Fails if an input cannot be read, or the output cannot be written.
pub(crate) fn print_pieces(pieces: &[Piece], inputs: &[PathBuf]) -> io::Result<()> {
    // Nothing is printed if an input cannot be read.
    write_new(NewFile::apart(None)?, pieces, inputs)
}

fn write_new(new: NewFile, pieces: &[Piece], inputs: &[PathBuf]) -> io::Result<()> {
    write_pieces(&new.open()?, pieces, inputs)?;
    new.finish()
}

/// Returns the pieces with all copied bytes in memory.
///
/// # Errors
///
/// Fails if an input cannot be read.
pub(crate) fn read_pieces(pieces: &[Piece], inputs: &[PathBuf]) -> io::Result<Vec<Piece>> {
    let mut read = Vec::new();
    for piece in pieces {
        read.push(match piece {
            Piece::Copy { range, .. } if range.is_empty() => Piece::Zeros(0),
            Piece::Copy { input, range } => {
                let path = inputs.get(*input).ok_or(io::ErrorKind::InvalidInput)?;
                let file = Reading::new(Opened::new(path, Opened::open(path)?, None));
                let mut bytes = Vec::new();
                file.stream(range.clone()).read_to_end(&mut bytes)?;
                Piece::Bytes(bytes)
            }
            other => other.clone(),
        });
    }
    Ok(read)
}

/// Writes pieces, which copy ranges of the files `inputs`, to an empty file. The system copies, so nothing is in memory.
///
/// # Errors
///
/// Fails if an input cannot be read (the error names it), or the file cannot be written.
pub(crate) fn write_pieces(file: &File, pieces: &[Piece], inputs: &[PathBuf]) -> io::Result<()> {
    write_pieces_by(file, pieces, |input, range, offset| {
        let path = inputs.get(input).ok_or(io::ErrorKind::InvalidInput)?;
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let from = Opened::open(path).map_err(named)?;
        let copied = copy_range(&from, range, file, offset);
        copied.map_err(|error| match error {
            CopyError::Read(error) => named(error),
            CopyError::Write(error) => error,
        })
    })
}

/// Writes pieces to an empty file. `copy` copies a range of an input to an offset of the file.
///
/// # Errors
///
/// Returns errors of `copy`, and fails if the file cannot be written.
pub(crate) fn write_pieces_by(
    file: &File,
    pieces: &[Piece],
    mut copy: impl FnMut(usize, Range<u64>, u64) -> io::Result<()>,
) -> io::Result<()> {
    // Zeros are then in their places.
    file.set_len(pieces::size(pieces))?;
    let mut offset = 0;
    for piece in pieces {
        match piece {
            Piece::Zeros(_) => {}
            Piece::Bytes(bytes) => file.write_all_at(bytes, offset)?,
            Piece::Copy { input, range } => copy(*input, range.clone(), offset)?,
        }
        offset += piece.size();
    }
    Ok(())
}
