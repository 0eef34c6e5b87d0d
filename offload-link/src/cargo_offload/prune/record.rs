//! The file `RECORD` of a wheel: path, hash and size of each file, as CSV.
//!
//! Specification: <https://packaging.python.org/en/latest/specifications/recording-installed-packages/>.

use std::io::{self, Read};

use sha2::{Sha256, Sha384, Sha512};

use crate::cargo_offload::digest::digest;

/// The lines of a `RECORD`.
pub(super) struct WheelRecord {
    lines: Vec<RecordLine>,
}

/// A line, which is written unchanged unless it gets a new hash.
struct RecordLine {
    /// Path of the file, without `./` before it.
    path: Vec<u8>,
    /// Name and value of the hash; may be empty.
    hash: Vec<u8>,
    has_size: bool,
    /// The first field as written, perhaps after a byte order mark or in quotes.
    written_path: Vec<u8>,
    /// Everything after the first field as written, without the end of the line.
    fields: Vec<u8>,
    end: &'static [u8],
}

/// The mark of UTF-8 with which some programs begin the file.
const MARK: &[u8] = b"\xef\xbb\xbf";

impl WheelRecord {
    pub(super) fn parse(text: &[u8]) -> Self {
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        Self {
            lines: lines.map(RecordLine::parse).collect(),
        }
    }

    /// Returns the name of the hash of a file; `None` if the file is not listed or has no hash.
    pub(super) fn algorithm(&self, path: &[u8]) -> Option<&[u8]> {
        let line = self.lines.iter().find(|line| line.path == plain(path))?;
        let mut parts = line.hash.split(|byte| *byte == b'=');
        parts.next().filter(|name| !name.is_empty())
    }

    /// Changes the hash and the size of a file, if the line has them.
    pub(super) fn change(&mut self, path: &[u8], hash: &str, size: u64) {
        let lines = self.lines.iter_mut();
        for line in lines.filter(|line| line.path == plain(path)) {
            let size = match line.has_size {
                true => size.to_string(),
                false => String::new(),
            };
            line.fields = format!(",{hash},{size}").into_bytes();
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let lines = self.lines.iter();
        let lines = lines.map(|line| [&line.written_path, &line.fields, line.end].concat());
        lines.collect::<Vec<_>>().concat()
    }
}

impl RecordLine {
    fn parse(line: &[u8]) -> Self {
        let (line, end): (&[u8], &'static [u8]) = match line {
            [line @ .., b'\r', b'\n'] => (line, b"\r\n"),
            [line @ .., b'\n'] => (line, b"\n"),
            line => (line, b""),
        };
        let (path, fields) = field(line.strip_prefix(MARK).unwrap_or(line));
        let (hash, others) = field(fields.strip_prefix(b",").unwrap_or_default());
        let (size, _) = field(others.strip_prefix(b",").unwrap_or_default());
        Self {
            path: plain(&path).to_vec(),
            hash,
            has_size: !size.is_empty(),
            written_path: line[..line.len() - fields.len()].to_vec(),
            fields: fields.to_vec(),
            end,
        }
    }
}

/// Returns a path without `./` before it.
pub(super) fn plain(mut path: &[u8]) -> &[u8] {
    while let Some(after) = path.strip_prefix(b"./") {
        path = after;
    }
    path
}

/// Returns the value of the first field, and everything after the field.
fn field(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let [b'"', quoted @ ..] = text else {
        let length = text.iter().position(|byte| *byte == b',');
        let (field, others) = text.split_at(length.unwrap_or(text.len()));
        return (field.to_vec(), others);
    };
    let (mut value, mut others) = (Vec::new(), quoted);
    loop {
        match others {
            [b'"', b'"', after @ ..] => {
                value.push(b'"');
                others = after;
            }
            // Also without a second quote.
            [b'"', after @ ..] => return (value, after),
            [] => return (value, others),
            [byte, after @ ..] => {
                value.push(*byte);
                others = after;
            }
        }
    }
}

/// Returns the hash of a content as `RECORD` has it: `sha256=…`; `None` for an unknown hash.
pub(super) fn hash(algorithm: &[u8], content: &mut impl Read) -> io::Result<Option<String>> {
    let digest = match algorithm {
        b"sha256" => digest::<Sha256>(content)?,
        b"sha384" => digest::<Sha384>(content)?,
        b"sha512" => digest::<Sha512>(content)?,
        _ => return Ok(None),
    };
    let algorithm = String::from_utf8_lossy(algorithm);
    Ok(Some(format!("{algorithm}={}", base64(&digest))))
}

/// Encodes bytes as base64 for URLs, without padding (RFC 4648, section 5).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let number = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..=chunk.len() {
            let index = number >> (18 - 6 * digit) & 63;
            text.push(char::from(DIGITS[index as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_a_line_and_keeps_the_others() {
        let text =
            b"a/k.so,sha256=AAA,12\r\n\"b,\"\"c\"\"\",sha512=BBB,5\nnone,,\nk.dist-info/RECORD,,";
        let mut record = WheelRecord::parse(text);
        assert_eq!(record.to_bytes(), text);
        assert_eq!(record.algorithm(b"a/k.so"), Some(&b"sha256"[..]));
        assert_eq!(record.algorithm(b"b,\"c\""), Some(&b"sha512"[..]));
        assert_eq!(record.algorithm(b"none"), None);
        assert_eq!(record.algorithm(b"other"), None);
        record.change(b"b,\"c\"", "sha512=new", 7);
        record.change(b"other", "sha256=new", 7);
        assert_eq!(
            record.to_bytes(),
            b"a/k.so,sha256=AAA,12\r\n\"b,\"\"c\"\"\",sha512=new,7\nnone,,\nk.dist-info/RECORD,,"
        );
    }

    #[test]
    fn reads_what_csv_readers_read() {
        let line = b"\xef\xbb\xbf\"./p,k\",\"sha256=AAA\",\"12\"\n";
        for (text, new) in [
            (&line[..], &b"\xef\xbb\xbf\"./p,k\",sha256=new,7\n"[..]),
            (b"\"p,k\",\"sha256=AAA\",\"\"", b"\"p,k\",sha256=new,"),
        ] {
            let mut record = WheelRecord::parse(text);
            assert_eq!(record.to_bytes(), text);
            assert_eq!(record.algorithm(b"p,k"), Some(&b"sha256"[..]));
            record.change(b"p,k", "sha256=new", 7);
            assert_eq!(record.to_bytes(), new);
        }
        let record = WheelRecord::parse(b"\"p\",\"\",\"\"\n\"q");
        assert_eq!(record.algorithm(b"p"), None);
        assert_eq!(record.to_bytes(), b"\"p\",\"\",\"\"\n\"q");
    }

    /// Vectors of RFC 4648, section 10, without padding, and of FIPS 180-2, appendix B.1.
    #[test]
    fn encodes_hashes() {
        for (bytes, text) in [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xff, 0xef]), "_-8");
        let abc = hash(b"sha256", &mut &b"abc"[..]).unwrap().unwrap();
        // ba7816bf 8f01cfea 414140de 5dae2223 b00361a3 96177a9c b410ff61 f20015ad
        assert_eq!(abc, "sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0");
        assert_eq!(hash(b"md5", &mut &b"abc"[..]).unwrap(), None);
    }
}
