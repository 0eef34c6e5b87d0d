//! Files that are complete under their names: written beside their place and renamed.

use md5::{Digest, Md5};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The name under which an output is made, before it is renamed: beside its place.
#[must_use]
pub(crate) fn part(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// Identifies a program without starting it: its real path, its size, and when it was installed.
#[must_use]
pub(crate) fn identity(program: &Path) -> String {
    let real = program
        .canonicalize()
        .unwrap_or_else(|_| program.to_owned());
    let Ok(data) = fs::metadata(&real) else {
        return real.display().to_string();
    };
    let time = data
        .modified()
        .ok()
        .and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    format!(
        "{} {} {}",
        real.display(),
        data.len(),
        time.unwrap_or_default().as_nanos()
    )
}

/// Removes a file, if it is there.
///
/// # Errors
///
/// When it stays.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Writes a file beside its place and renames it; a file that already holds `bytes` is left alone.
///
/// # Errors
///
/// When it cannot be written; what was there before is then untouched.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let same_size = fs::metadata(path).is_ok_and(|data| data.len() == bytes.len() as u64);
    if same_size && fs::read(path)? == bytes {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let part = part(path);
    let written = fs::File::create(&part).and_then(|mut file| file.write_all(bytes));
    written
        .and_then(|()| fs::rename(&part, path))
        .inspect_err(|_| {
            let _ = fs::remove_file(&part);
        })
}

/// Returns the real path of a file, links resolved. On Windows it starts with `\\?\`, which compilers do not take.
pub(crate) fn real_path(path: &Path) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    let plain = real.to_str().and_then(|real| real.strip_prefix(r"\\?\"));
    let plain = plain.filter(|plain| cfg!(windows) && plain.get(1..3) == Some(r":\"));
    Some(plain.map_or(real.clone(), PathBuf::from))
}

/// `name`, or where file systems would refuse it with an extension, its end behind a hash of all of it.
pub(crate) fn short_name(name: &str) -> String {
    const LONGEST: usize = 160;
    if name.len() <= LONGEST {
        return name.to_owned();
    }
    let hash = Md5::digest(name);
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut start = name.len() - LONGEST + digits.len() + 1;
    while !name.is_char_boundary(start) {
        start += 1;
    }
    format!("{digits}-{}", name.split_at(start).1)
}
