//! Whole files under their names.

use std::io::{self, Write as _};
use std::path::Path;

use crate::platform;

/// Writes a temporary file beside its place and renames it, so the file is never incomplete.
///
/// # Errors
///
/// If the folder cannot be written to; what was there stays.
pub(crate) fn write_beside(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let mut file = platform::temporary(0o666).tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}
