//! Parses `--image=`: keys with values about an image to pack or to extract.
//!
//! ```text
//! image = item ("," item)*        item = key ["=" value]
//! ```
//!
//! There is no quoting, escaping or trimming, and any key is accepted, also an empty one. The values of a repeated
//! key are joined with commas. `docs/spec/offload-binary.md` §2.2.

use crate::platform;
use std::ffi::OsStr;
use std::path::PathBuf;

/// Keys with their values, in the order of their first occurrence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ImageArgument {
    /// The argument as the user spells it, for messages.
    pub written: String,
    items: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    key: Vec<u8>,
    /// Values, one for each occurrence.
    values: Vec<Vec<u8>>,
}

impl ImageArgument {
    pub(super) fn parse(text: &OsStr) -> Self {
        let mut items: Vec<Field> = Vec::new();
        for part in text.as_encoded_bytes().split(|byte| *byte == b',') {
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
        let written = text.to_string_lossy().into_owned();
        Self { written, items }
    }

    /// Returns the value of a key; several are joined with commas.
    pub(super) fn value(&self, key: &str) -> Option<Vec<u8>> {
        let item = self.items.iter().find(|item| item.key == key.as_bytes());
        item.map(Field::joined)
    }

    /// Returns the files of the argument, one by one.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let item = self.items.iter().find(|item| item.key == b"file");
        let values = item.map_or(&[][..], |item| &item.values);
        let files = values.iter().cloned();
        files
            .map(|file| PathBuf::from(platform::os_string(file)))
            .collect()
    }

    /// Returns all keys, including those that only the tool reads.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.items.iter().map(|item| &*item.key)
    }

    /// Returns all keys with their values, in order.
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
