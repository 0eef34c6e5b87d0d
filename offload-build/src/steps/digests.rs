//! Digests of files, as keys of tasks hold them.

use offload_formats::md5::Md5;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Digests of file contents, each file read once in a build.
#[derive(Debug, Default)]
pub(crate) struct Digests(Mutex<HashMap<PathBuf, Option<String>>>);

impl Digests {
    /// The MD5 of a file's content; nothing when it cannot be read.
    pub(crate) fn of(&self, path: &Path) -> Option<String> {
        let mut known = self.lock();
        if let Some(digest) = known.get(path) {
            return digest.clone();
        }
        drop(known);
        let digest = digest_file(path).ok();
        known = self.lock();
        known.insert(path.to_owned(), digest.clone());
        digest
    }

    /// Forgets a file that has been written.
    pub(crate) fn forget(&self, path: &Path) {
        self.lock().remove(path);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Option<String>>> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn digest_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Md5::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(hash)),
            count => hash.update(
                buffer
                    .get(..count)
                    .expect("a read fills at most the buffer"),
            ),
        }
    }
}

/// Returns the digest in hexadecimal digits.
pub(crate) fn hex(hash: Md5) -> String {
    hash.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
