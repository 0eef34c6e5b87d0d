//! The host's part of bundles that are files: what the host's linker reads in their place.

use std::path::Path;

use object::ReadRef;
use offload_build::container::bundled;

use super::Error;
use super::blocks::Blocks;

/// The host's entry of the bundle that a file is, unless it is empty.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    read_entry(path).map_err(|source| Error::Input {
        from: path.display().to_string(),
        source,
    })
}

fn read_entry(path: &Path) -> Result<Option<Vec<u8>>, Box<dyn std::error::Error + Send + Sync>> {
    let blocks = Blocks::open(path)?;
    let data = &blocks;
    let size = data.len().map_err(|()| "its size cannot be read")?;
    for entry in bundled::entries(data, 0..size)? {
        if entry.target()?.is_none() && !entry.range.is_empty() {
            let bytes = entry.content(data).ok_or("its host entry cannot be read")?;
            return Ok(Some(bytes.to_vec()));
        }
    }
    Ok(None)
}
