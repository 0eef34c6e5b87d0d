//! Digests of content that is read.

use std::io::{self, Read};

use sha2::Digest;

/// Returns the digest of all bytes of a reader.
pub(super) fn digest<D: Digest>(content: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut digest = D::new();
    let mut buffer = vec![0; 1 << 17];
    loop {
        match content.read(&mut buffer) {
            Ok(0) => return Ok(digest.finalize().to_vec()),
            Ok(count) => digest.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
