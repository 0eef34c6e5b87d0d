//! The text bundle: sources of one program, each between two comments with its entry ID.
//!
//! For each entry, `C` being what starts a comment in the language:
//!
//! ```text
//!
//! C __CLANG_OFFLOAD_BUNDLE____START__ <entry ID>
//! <text>
//! C __CLANG_OFFLOAD_BUNDLE____END__ <entry ID>
//! ```
//!
//! Each comment starts with the line feed before it, which is written even where the text ends in
//! one, so that texts come back byte by byte. Nothing else is in the file; what stands before,
//! between and after the entries is ignored.
//!
//! Specification: <https://clang.llvm.org/docs/ClangOffloadBundler.html#bundled-text-file-layout>.
//! LLVM 22 lists an entry without its end forever and crashes when it unbundles it, and writes a
//! text that contains an end, of which the rest is lost when read. Here both are errors.

#[cfg(feature = "tools")]
mod write;

use std::fmt;
use std::ops::Range;

use object::ReadRef;

use super::bytes::{Cursor, OutOfBounds};

#[cfg(feature = "tools")]
pub use write::{WriteError, comments, to_bytes};

/// What starts a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comment {
    /// `//`, of C and its relatives: types `i`, `ii`, `cui` and `hipi`.
    Slashes,
    /// `#`, of assembly and dependency files: types `s` and `d`.
    Hash,
    /// `;`, of LLVM IR: type `ll`.
    Semicolon,
}

const COMMENTS: [(Comment, &str); 3] = [
    (Comment::Slashes, "//"),
    (Comment::Hash, "#"),
    (Comment::Semicolon, ";"),
];

impl Comment {
    /// Its characters.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        let row = COMMENTS.iter().find(|(comment, _)| *comment == self);
        row.map_or("", |(_, text)| text)
    }

    /// That of the entry which a range of `data` starts with, as bundlers write it: behind a line feed.
    pub fn at<'d, R: ReadRef<'d>>(data: R, range: Range<u64>) -> Option<Self> {
        let row = COMMENTS.iter().find(|(comment, _)| {
            let marker = comment.marker(START);
            let first = Cursor::new(data, range.clone()).read(marker.len() as u64, "comment");
            first == Ok(&marker)
        });
        row.map(|(comment, _)| *comment)
    }

    /// What comes before the entry ID, from the line feed on.
    fn marker(self, word: &str) -> Vec<u8> {
        format!("\n{} __CLANG_OFFLOAD_BUNDLE____{word}__ ", self.as_str()).into_bytes()
    }
}

const START: &str = "START";
const END: &str = "END";

/// A text in a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextEntry {
    /// As written in the first of its comments; the second is not compared, as in LLVM.
    pub id: String,
    /// From the start of the file.
    pub text: Range<u64>,
}

/// Reads the entries in a range of `data`, which may be none.
///
/// Any input may be given: this does not panic, and allocates at most a small multiple of what it
/// reads, which is all of the range.
///
/// # Errors
///
/// When the range is not inside `data`, an entry has no end, or an entry ID is not UTF-8.
pub fn parse<'d, R: ReadRef<'d>>(
    data: R,
    range: Range<u64>,
    comment: Comment,
) -> Result<Vec<TextEntry>, Error> {
    let size = range.end.saturating_sub(range.start);
    let bytes = Cursor::new(data, range.clone()).read(size, "body");
    let bytes = bytes.map_err(Error::Outside)?;
    let at = |position: usize| range.start.saturating_add(position as u64);
    let (start, end) = (comment.marker(START), comment.marker(END));
    let (mut entries, mut position) = (Vec::new(), 0);
    while let Some(found) = find(bytes, position, &start) {
        let id_start = found.end;
        // As LLVM: the last line is no entry when nothing ends it.
        let Some(line) = find(bytes, id_start, b"\n") else {
            break;
        };
        let id = bytes.get(id_start..line.start).unwrap_or_default();
        let offset = at(id_start);
        let id = std::str::from_utf8(id).map_err(|_| Error::NotText { offset })?;
        let unended = || Error::NoEnd {
            id: id.to_owned(),
            offset: at(found.start.saturating_add(1)),
        };
        let ended = find(bytes, line.end, &end).ok_or_else(unended)?;
        entries.push(TextEntry {
            id: id.to_owned(),
            text: at(line.end)..at(ended.start),
        });
        // As LLVM: what starts the next entry is not the end of this line.
        let Some(line) = find(bytes, ended.end, b"\n") else {
            break;
        };
        position = line.end;
    }
    Ok(entries)
}

/// The first place of `wanted`, at `from` or later.
fn find(bytes: &[u8], from: usize, wanted: &[u8]) -> Option<Range<usize>> {
    let rest = bytes.get(from..)?;
    // Line by line: all that is looked for starts with a line feed.
    let mut feeds = rest.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let (place, _) = feeds.find(|(place, _)| {
        let here = rest.get(*place..);
        here.is_some_and(|here| here.starts_with(wanted))
    })?;
    let start = from.checked_add(place)?;
    Some(start..start.checked_add(wanted.len())?)
}

/// Why bytes are not a text bundle. Offsets are from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The range is not inside the file.
    Outside(OutOfBounds),
    /// An entry without the comment that ends it.
    NoEnd {
        /// Its ID.
        id: String,
        /// Where the comment is that starts it.
        offset: u64,
    },
    /// An entry ID that is not UTF-8.
    NotText {
        /// Where it starts.
        offset: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "text bundle: ")?;
        match self {
            Self::Outside(problem) => problem.fmt(f),
            Self::NoEnd { id, offset } => {
                write!(
                    f,
                    "entry {id:?} that starts at offset {offset:#x} has no end"
                )
            }
            Self::NotText { offset } => {
                write!(f, "entry ID at offset {offset:#x} is not UTF-8")
            }
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "host-x86_64-unknown-linux-gnu-";
    const GFX906: &str = "hip-amdgcn-amd-amdhsa--gfx906";

    /// `clang-offload-bundler` 22.1.8 and 19.1.7, the same bytes of both:
    /// `printf 'int x;\n' > h`, `printf dev > g`, then `-type=ll -input=h -input=g`
    /// `-targets=host-x86_64-unknown-linux-gnu,hip-amdgcn-amd-amdhsa--gfx906`.
    const LLVM: &[u8] = b"\n; __CLANG_OFFLOAD_BUNDLE____START__ host-x86_64-unknown-linux-gnu-\n\
        int x;\n\
        \n; __CLANG_OFFLOAD_BUNDLE____END__ host-x86_64-unknown-linux-gnu-\n\
        \n; __CLANG_OFFLOAD_BUNDLE____START__ hip-amdgcn-amd-amdhsa--gfx906\n\
        dev\
        \n; __CLANG_OFFLOAD_BUNDLE____END__ hip-amdgcn-amd-amdhsa--gfx906\n";

    fn parse_with(bytes: &[u8], comment: Comment) -> Result<Vec<TextEntry>, Error> {
        parse(bytes, 0..bytes.len() as u64, comment)
    }

    fn read(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
        let entries = parse_with(bytes, Comment::Semicolon).unwrap();
        let text = |range: Range<u64>| bytes[range.start as usize..range.end as usize].to_vec();
        entries
            .into_iter()
            .map(|entry| (entry.id, text(entry.text)))
            .collect()
    }

    fn expected() -> Vec<(String, Vec<u8>)> {
        vec![
            (HOST.to_owned(), b"int x;\n".to_vec()),
            (GFX906.to_owned(), b"dev".to_vec()),
        ]
    }

    #[test]
    fn writes_the_bytes_llvm_writes() {
        let entries: &[(&str, &[u8])] = &[(HOST, b"int x;\n"), (GFX906, b"dev")];
        assert_eq!(to_bytes(entries, Comment::Semicolon).unwrap(), LLVM);
        assert_eq!(LLVM.len(), 0x114);
        let [start, end] = comments(GFX906, Comment::Semicolon).unwrap();
        assert!(LLVM.ends_with(&[&start[..], b"dev", &end].concat()));
    }

    #[test]
    fn reads_what_llvm_writes() {
        assert_eq!(read(LLVM), expected());
        let inside = [b"12345", LLVM].concat();
        let entries = parse(&inside[..], 5..inside.len() as u64, Comment::Semicolon).unwrap();
        assert_eq!(entries[1].text, 0xd5..0xd8);
    }

    #[test]
    fn sees_only_the_comments_of_its_language() {
        for (comment, text) in COMMENTS {
            let bytes = to_bytes(&[(HOST, b"x")], comment).unwrap();
            assert_eq!(bytes[1..=text.len()], *text.as_bytes());
            let (inside, end) = ([b"12345", &bytes[..]].concat(), 5 + bytes.len() as u64);
            assert_eq!(Comment::at(&inside[..], 5..end), Some(comment));
            assert_eq!(Comment::at(&inside[..], 6..end), None);
            assert_eq!(Comment::at(&inside[..], 5..20), None);
            for (other, _) in COMMENTS {
                let found = parse_with(&bytes, other).unwrap();
                assert_eq!(found.len(), usize::from(comment == other));
            }
        }
    }

    #[test]
    fn ignores_what_is_around_the_entries() {
        let (first, second) = LLVM.split_at(LLVM.len() - 0x87);
        assert!(second.starts_with(b"\n; __CLANG_OFFLOAD_BUNDLE____START__ hip"));
        let bytes = [b"before\n\n", first, b"between", second, b"after\n"].concat();
        assert_eq!(read(&bytes), expected());
        assert_eq!(read(b"no bundle\n"), []);
        assert_eq!(read(b""), []);
        // LLVM sees no comment on the first line either.
        assert_eq!(read(&LLVM[1..]), expected()[1..]);
        // Nor one right after an end, nor one that no line feed ends.
        let joined = [&LLVM[..LLVM.len() - 1], LLVM].concat();
        assert_eq!(
            read(&joined),
            [expected(), expected()[1..].to_vec()].concat()
        );
        assert_eq!(read(b"\n; __CLANG_OFFLOAD_BUNDLE____START__ host"), []);
    }

    #[test]
    fn keeps_odd_ids_and_texts_as_they_are() {
        let texts: [&[u8]; 5] = [b"", b"\n", b"\r\n", b"\n\n; x\n", b"\xff\0"];
        let ids = ["", "host-x\r", "a b", "\u{e9}", "x"];
        let written: Vec<(&str, &[u8])> = ids.into_iter().zip(texts).collect();
        let found = read(&to_bytes(&written, Comment::Semicolon).unwrap());
        let owned = written
            .iter()
            .map(|(id, text)| ((*id).to_owned(), text.to_vec()));
        assert_eq!(found, owned.collect::<Vec<_>>());
    }

    #[test]
    fn names_the_entry_and_its_place() {
        let message = |bytes: &[u8]| {
            let error = parse_with(bytes, Comment::Semicolon).unwrap_err();
            error.to_string()
        };
        // LLVM 22.1.8 lists this one forever.
        assert_eq!(
            message(&LLVM[..0xd3]),
            "text bundle: entry \"hip-amdgcn-amd-amdhsa--gfx906\" that starts at offset 0x8e \
             has no end"
        );
        let mut bytes = LLVM.to_vec();
        bytes[0x25] = 0xff;
        assert_eq!(
            message(&bytes),
            "text bundle: entry ID at offset 0x25 is not UTF-8"
        );
        assert_eq!(
            parse(LLVM, 0x100..0x115, Comment::Hash)
                .unwrap_err()
                .to_string(),
            "text bundle: body at offset 0x100 with size 0x15 runs past the end at 0x114"
        );
    }

    #[test]
    fn rejects_what_could_not_be_read_back() {
        let message = |entries: &[(&str, &[u8])]| {
            let error = to_bytes(entries, Comment::Semicolon).unwrap_err();
            error.to_string()
        };
        assert_eq!(
            message(&[("a", b""), ("b", b""), ("a", b"")]),
            "two texts for the entry ID \"a\""
        );
        assert_eq!(
            message(&[("a\nb", b"")]),
            "the entry ID \"a\\nb\" contains a line feed"
        );
        for rest in ["x\n", ""] {
            let ending = format!("; __CLANG_OFFLOAD_BUNDLE____END__ {rest}");
            assert_eq!(
                message(&[("a", format!("12\n{ending}").as_bytes())]),
                "the text for \"a\" contains the end of a text bundle at offset 0x2"
            );
            // On the first line it ends nothing, for LLVM neither.
            let first: &[(&str, &[u8])] = &[("a", ending.as_bytes())];
            let bytes = to_bytes(first, Comment::Semicolon).unwrap();
            assert_eq!(read(&bytes)[0].1, ending.as_bytes());
        }
    }

    #[test]
    fn gives_nothing_else_for_any_truncation() {
        for len in 0..LLVM.len() {
            let whole = expected();
            if let Ok(entries) = parse_with(&LLVM[..len], Comment::Semicolon) {
                let found = read(&LLVM[..len]);
                assert_eq!(found, whole[..entries.len()], "{len:#x}");
            }
        }
    }

    #[test]
    fn survives_every_single_byte_change() {
        let mut bytes = LLVM.to_vec();
        for offset in 0..bytes.len() {
            let before = bytes[offset];
            for value in 0..=255 {
                bytes[offset] = value;
                if parse_with(&bytes, Comment::Semicolon).is_ok() {
                    read(&bytes);
                }
            }
            bytes[offset] = before;
        }
    }
}
