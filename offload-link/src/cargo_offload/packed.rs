//! Compressed members of zip files, unpacked to temporary files.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use offload_formats::container::inventory::HEAD_SIZE;
use offload_formats::format::zip::ZipMember;

use crate::decompressed;
use crate::files::{self, Opened, Reading};

/// A member's content in a temporary file without a name.
pub(super) struct UnpackedMember {
    pub(super) reading: Arc<Reading>,
    /// Size in bytes.
    pub(super) size: u64,
}

/// Unpacks a member if `is_wanted` returns true for its first [`HEAD_SIZE`] bytes; `None` for other members, of which only
/// the start is unpacked. Takes its size from `left`, the number of bytes that all members may have.
///
/// # Errors
///
/// Returns a message if the content is damaged, larger than allowed, or cannot be written.
pub(super) fn unpack_if(
    is_wanted: impl Fn(&[u8]) -> bool,
    file: &Reading,
    member: &ZipMember,
    left: &mut u64,
) -> Result<Option<UnpackedMember>, String> {
    let mut content = content(file, member)?;
    let mut head = Vec::new();
    let read = content.by_ref().take(HEAD_SIZE).read_to_end(&mut head);
    read.map_err(|error| error.to_string())?;
    if !is_wanted(&head) {
        return Ok(None);
    }
    *left = left.checked_sub(member.size).ok_or_else(|| {
        format!(
            "the content of {:#x} bytes exceeds the limit on decompressed data\nhint: {}",
            member.size,
            decompressed::hint()
        )
    })?;
    let written = files::temporary().and_then(|mut file| {
        file.write_all(&head)?;
        Ok(file)
    });
    let mut file = written.map_err(|error| unwritten(&error))?;
    copy(&mut content, &mut file)?;
    let path = String::from_utf8_lossy(&member.name).into_owned();
    Ok(Some(UnpackedMember {
        reading: Reading::new(Opened::new(Path::new(&path), file, None)),
        size: member.size,
    }))
}

/// Opens the content of a member.
fn content<'a>(file: &'a Reading, member: &ZipMember) -> Result<impl Read + 'a, String> {
    let stored = file.stream(member.content.clone());
    member.unpack(stored).map_err(|error| error.to_string())
}

/// Copies the content; tells errors of reading and of writing apart.
fn copy(content: &mut impl Read, file: &mut File) -> Result<(), String> {
    let mut buffer = vec![0; 1 << 17];
    loop {
        match content.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                let written = file.write_all(&buffer[..count]);
                written.map_err(|error| unwritten(&error))?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn unwritten(error: &io::Error) -> String {
    let hint = decompressed::FULL;
    format!("cannot write a temporary file: {error}\nhint: {hint}")
}
