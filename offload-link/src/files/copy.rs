//! Copies bytes from file to file inside the system, without memory of this process.

use std::fs::File;
use std::io;
use std::ops::Range;

use crate::platform::{FileExt, copy_in_system};

/// Failed copy; the variant tells which file failed.
#[derive(Debug)]
pub(crate) enum CopyError {
    /// The file that is read failed.
    Read(io::Error),
    /// The file that is written failed.
    Write(io::Error),
}

impl From<CopyError> for io::Error {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Read(error) | CopyError::Write(error) => error,
        }
    }
}

/// Copies a range of a file to an offset of another. The positions of both files do not move.
pub(crate) fn copy_range(
    from: &File,
    range: Range<u64>,
    to: &File,
    mut offset: u64,
) -> Result<(), CopyError> {
    let mut start = range.start;
    while let Some(size) = range.end.checked_sub(start).filter(|size| *size > 0) {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        match copy_in_system((from, &mut start), (to, &mut offset), size) {
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The system cannot copy between these files, or the file has ended: reading shows which.
            Ok(0) | Err(_) => return copy_through(from, start..range.end, to, offset),
        }
    }
    Ok(())
}

/// Copies a range by reading and writing.
fn copy_through(
    from: &File,
    range: Range<u64>,
    to: &File,
    mut offset: u64,
) -> Result<(), CopyError> {
    let mut buffer = vec![0; 1 << 17];
    let mut start = range.start;
    while let Some(size) = range.end.checked_sub(start).filter(|size| *size > 0) {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let count = match from.read_at(&mut buffer[..size.min(1 << 17)], start) {
            Ok(0) => return Err(CopyError::Read(shrunk())),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(CopyError::Read(error)),
        };
        let written = to.write_all_at(&buffer[..count], offset);
        written.map_err(CopyError::Write)?;
        start += count as u64;
        offset += count as u64;
    }
    Ok(())
}

/// Returns the error for a file that is now shorter than when it was examined.
pub(crate) fn shrunk() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "became shorter while it was read",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_a_range_to_an_offset_in_either_way() {
        let bytes: Vec<u8> = (0..300_000).map(|at| (at * 31 / 7) as u8).collect();
        let from = tempfile::tempfile().unwrap();
        from.write_all_at(&bytes, 0).unwrap();
        for way in [copy_range, copy_through] {
            for range in [5..5, 5..6, 0..300_000, 131_072..270_001] {
                let to = tempfile::tempfile().unwrap();
                way(&from, range.clone(), &to, 7).unwrap();
                let (start, end) = (range.start as usize, range.end as usize);
                let expected = &bytes[start..end];
                let mut found = vec![0; expected.len()];
                to.read_exact_at(&mut found, 7).unwrap();
                assert!(found == expected, "{range:?}");
                let size = to.metadata().unwrap().len();
                assert!(range.is_empty() || size == 7 + expected.len() as u64);
            }
            let to = tempfile::tempfile().unwrap();
            let problem: io::Error = way(&from, 299_999..300_001, &to, 0).unwrap_err().into();
            assert_eq!(problem.kind(), io::ErrorKind::UnexpectedEof);
        }
    }
}
