//! What `--image=` says: keys with values, about an image to pack or to look for.
//!
//! ```text
//! image = item ("," item)*        item = key ["=" value]
//! ```
//!
//! Nothing is quoted, escaped or trimmed, and every key may be there, also the empty one. A key
//! that is given again gets its values joined with commas. `docs/spec/offload-binary.md` §2.2.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Keys with their values, in the order of the first time that each was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ImageArgument {
    items: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    key: Vec<u8>,
    /// One for each time that it was given.
    values: Vec<Vec<u8>>,
}

impl ImageArgument {
    pub(super) fn parse(text: &OsStr) -> Self {
        let mut items: Vec<Field> = Vec::new();
        for part in text.as_bytes().split(|byte| *byte == b',') {
            let (key, value) = match part.iter().position(|byte| *byte == b'=') {
                Some(place) => (&part[..place], &part[place + 1..]),
                None => (part, &b""[..]),
            };
            match items.iter_mut().find(|item| item.key == key) {
                Some(item) => item.values.push(value.to_vec()),
                None => items.push(Field {
                    key: key.to_vec(),
                    values: vec![value.to_vec()],
                }),
            }
        }
        Self { items }
    }

    /// The value of a key, joined when it was given several times.
    pub(super) fn value(&self, key: &str) -> Option<Vec<u8>> {
        let item = self.items.iter().find(|item| item.key == key.as_bytes());
        item.map(Field::joined)
    }

    /// The files that are named, one by one.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let item = self.items.iter().find(|item| item.key == b"file");
        let values = item.map_or(&[][..], |item| &item.values);
        let files = values.iter().cloned();
        files
            .map(|file| PathBuf::from(OsString::from_vec(file)))
            .collect()
    }

    /// All keys, those that only the tool reads too.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.items.iter().map(|item| &*item.key)
    }

    /// All keys with their values, in order.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&[u8], Vec<u8>)> {
        self.items.iter().map(|item| (&*item.key, item.joined()))
    }
}

impl Field {
    fn joined(&self) -> Vec<u8> {
        self.values.join(&b","[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_llvm_reads() {
        let parse = |text: &str| ImageArgument::parse(text.as_ref());
        let pairs = |text: &str| -> Vec<(String, String)> {
            let text_of = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let argument = parse(text);
            let pairs = argument.pairs();
            pairs
                .map(|(key, value)| (text_of(key), text_of(&value)))
                .collect()
        };
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(
            pairs("file=a=b,arch=1, x = y ,arch=2,arch=,flag"),
            [
                pair("file", "a=b"),
                pair("arch", "1,2,"),
                pair(" x ", " y "),
                pair("flag", ""),
            ]
        );
        assert_eq!(pairs(""), [pair("", "")]);
        assert_eq!(pairs("a,,"), [pair("a", ""), pair("", ",")]);
        assert_eq!(
            parse("file=a,triple=t,file=b").files(),
            ["a", "b"].map(PathBuf::from)
        );
        assert_eq!(
            parse("kind=hip,kind=cuda").value("kind").unwrap(),
            b"hip,cuda"
        );
        assert_eq!(parse("a").value("b"), None);
    }
}
