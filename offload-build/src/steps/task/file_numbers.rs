//! Numbers of files in names of OpenMP's kernels.
//!
//! OpenMP's kernels are called `__omp_offloading_<device>_<inode>_<function>_l<line>`, in hexadecimal numbers of the file
//! that they are in. The host's object and each image must say the same.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

/// Prefix of these names.
pub(crate) const KERNEL: &[u8] = b"__omp_offloading_";

/// The numbers of files that names in an object or in bitcode hold.
pub(crate) fn named_files(output: &Path) -> io::Result<BTreeSet<String>> {
    Ok(numbers(&fs::read(output)?))
}

pub(crate) fn numbers(bytes: &[u8]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|&byte| byte == b'_') {
        rest = rest.get(at..).expect("a position is inside the bytes");
        match rest.strip_prefix(KERNEL) {
            Some(name) => {
                found.extend(number_at(name));
                rest = name;
            }
            None => rest = rest.get(1..).expect("a byte was found here"),
        }
    }
    found
}

/// `<device>_<inode>` at the start of a name, with more after it.
pub(crate) fn number_at(name: &[u8]) -> Option<String> {
    let mut parts = name.splitn(3, |&byte| byte == b'_');
    let (device, inode, _) = (parts.next()?, parts.next()?, parts.next()?);
    let is_number = |part: &[u8]| {
        !part.is_empty() && part.len() <= 16 && part.iter().all(u8::is_ascii_hexdigit)
    };
    let text = |part: &[u8]| String::from_utf8(part.to_vec()).ok();
    (is_number(device) && is_number(inode)).then_some(())?;
    Some(format!("{}_{}", text(device)?, text(inode)?))
}

/// The number of a file as these names have it; nothing where the system has none.
pub(crate) fn number(path: &Path) -> Option<String> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let data = fs::metadata(path).ok()?;
        Some(format!("{:x}_{:x}", data.dev(), data.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}
