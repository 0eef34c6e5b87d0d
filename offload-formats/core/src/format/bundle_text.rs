//! The text bundle: sources of one program, each between two comments with its entry ID.
//!
//! Each entry has this form. `C` starts a comment in the language:
//!
//! ```text
//!
//! C __CLANG_OFFLOAD_BUNDLE____START__ <entry ID>
//! <text>
//! C __CLANG_OFFLOAD_BUNDLE____END__ <entry ID>
//! ```
//!
//! Each comment starts with the preceding line feed. It is written even if the text ends in one, so
//! that texts survive byte by byte. Other text before, between and after the entries is ignored.
//!
//! Specification: <https://clang.llvm.org/docs/ClangOffloadBundler.html#bundled-text-file-layout>.
//! LLVM 22 hangs listing an entry without its end, and crashes unbundling it. It writes a text that
//! contains an end, and loses the rest on reading. Here both are errors.

#[cfg(feature = "tools")]
mod write;

use std::fmt;
use std::io::{self, BufRead};
use std::ops::Range;

use super::bytes::{Cursor, OutOfBounds, ReadAt};
use super::codec::OnceStream;
use crate::escape::terminal;

#[cfg(feature = "tools")]
pub use write::{TextBundleWriteError, comments, to_bytes};

/// Start of a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Comment {
    /// `//`, of C and its relatives: types `i`, `ii`, `cui` and `hipi`.
    Slashes,
    /// `#`, of assembly and dependency files: types `s` and `d`.
    Hash,
    /// `;`, of LLVM IR: type `ll`.
    Semicolon,
}

impl Comment {
    /// All comments.
    const ALL: [Self; 3] = [Self::Slashes, Self::Hash, Self::Semicolon];

    /// Returns its characters.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Slashes => "//",
            Self::Hash => "#",
            Self::Semicolon => ";",
        }
    }

    /// Detects the comment of the entry at the start of a range of `data`. As bundlers write it, a
    /// line feed precedes the comment; with the line ends of Windows, a carriage return precedes that.
    pub fn at<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Option<Self> {
        let is_return = Cursor::new(data, range.clone()).read(1, "comment") == Ok(&b"\r"[..]);
        let start = range.start.saturating_add(u64::from(is_return));
        Self::ALL.into_iter().find(|comment| {
            let marker = comment.marker(START);
            let first = Cursor::new(data, start..range.end).read(marker.len() as u64, "comment");
            first == Ok(&marker)
        })
    }

    /// Returns the text before the entry ID, from the line feed on.
    fn marker(self, word: &str) -> Vec<u8> {
        format!("\n{} __CLANG_OFFLOAD_BUNDLE____{word}__ ", self.as_str()).into_bytes()
    }
}

const START: &str = "START";
const END: &str = "END";

/// A text in a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextEntry {
    /// Entry ID in the first of its comments; the second is not compared, as in LLVM.
    pub id: String,
    /// Range of the text from the start of the file.
    pub text: Range<u64>,
}

/// Reads the entries in a range of `data`; there may be none.
///
/// Accepts any input: this does not panic, and keeps no more than the entry IDs, up to [`MAX_IDS`].
///
/// # Errors
///
/// Fails if the range exceeds `data`, an entry has no end, an entry ID is not UTF-8, or the IDs exceed
/// [`MAX_IDS`].
pub fn parse<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
    comment: Comment,
) -> Result<Vec<TextEntry>, TextBundleError> {
    let size = range.end.saturating_sub(range.start);
    let end = data.size().unwrap_or(0);
    OutOfBounds::check("body", range.start, size, end).map_err(TextBundleError::Outside)?;
    let start = range.start;
    parse_from(OnceStream::new(Cursor::new(data, range)), start, comment)
}

/// Reads the entries of a stream, like [`parse`]. The stream starts at `offset` of the file.
///
/// # Errors
///
/// Fails as [`parse`] does, and if the stream cannot be read.
pub fn parse_from(
    mut source: impl BufRead,
    mut offset: u64,
    comment: Comment,
) -> Result<Vec<TextEntry>, TextBundleError> {
    // Each marker starts with the line feed of the line before.
    let [start, end] = [START, END].map(|word| comment.marker(word).split_off(1));
    let most = start.len().max(end.len());
    let (mut entries, mut left) = (Vec::new(), MAX_IDS);
    let mut line = Vec::new();
    // The line feed before a marker must be at `from` or later.
    let mut from = offset;
    let mut open: Option<(String, u64)> = None;
    loop {
        let line_start = offset;
        line.clear();
        offset = offset.saturating_add(until_feed(&mut source, most, &mut line)?);
        if line.is_empty() {
            break;
        }
        let is_marker = |marker: &[u8]| line_start > from && line.starts_with(marker);
        let is_start = open.is_none() && is_marker(&start);
        let is_end = open.is_some() && is_marker(&end);
        if is_start {
            let more = usize::try_from(left).unwrap_or(usize::MAX);
            offset = offset.saturating_add(until_feed(&mut source, more, &mut line)?);
            let id_offset = line_start.saturating_add(start.len() as u64);
            let id = line
                .get(start.len()..)
                .expect("the line starts with the marker");
            left = left.saturating_sub(id.len() as u64 + ENTRY);
            if left == 0 {
                return Err(TextBundleError::TooLarge { offset: id_offset });
            }
            // Like LLVM, ignores a last line without line feed.
            let Some(id) = id.strip_suffix(b"\n") else {
                break;
            };
            let id = std::str::from_utf8(id)
                .map_err(|_| TextBundleError::NotText { offset: id_offset })?;
            open = Some((id.to_owned(), line_start));
            from = offset;
            continue;
        }
        if !line.ends_with(b"\n") {
            offset = offset.saturating_add(skip_line(&mut source)?);
        }
        if let (true, Some((id, _))) = (is_end, open.take_if(|_| is_end)) {
            entries.push(TextEntry {
                id,
                text: from..line_start.saturating_sub(1),
            });
            // Like LLVM, requires another line feed before the next entry.
            from = offset;
        }
    }
    match open {
        Some((id, offset)) => Err(TextBundleError::NoEnd { id, offset }),
        None => Ok(entries),
    }
}

/// Maximum size of a text bundle's entry IDs in bytes, with a fixed size added for each.
pub const MAX_IDS: u64 = 16 << 20;

/// Size added for each entry.
const ENTRY: u64 = 64;

/// Appends the next bytes up to and including a line feed, at most `most`. Returns their number.
fn until_feed(
    source: impl BufRead,
    most: usize,
    line: &mut Vec<u8>,
) -> Result<u64, TextBundleError> {
    if line.ends_with(b"\n") {
        return Ok(0);
    }
    let read = source.take(most as u64).read_until(b'\n', line);
    read.map(|count| count as u64).map_err(unreadable)
}

/// Skips the rest of a line and its line feed. Returns the number of bytes.
fn skip_line(mut source: impl BufRead) -> Result<u64, TextBundleError> {
    let mut skipped = 0_u64;
    loop {
        let bytes = source.fill_buf().map_err(unreadable)?;
        let feed = bytes.iter().position(|byte| *byte == b'\n');
        let count = feed.map_or(bytes.len(), |feed| feed + 1);
        let done = feed.is_some() || bytes.is_empty();
        source.consume(count);
        skipped = skipped.saturating_add(count as u64);
        if done {
            return Ok(skipped);
        }
    }
}

fn unreadable(problem: io::Error) -> TextBundleError {
    TextBundleError::Read {
        message: problem.to_string(),
    }
}

/// An error in a text bundle. Offsets are from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextBundleError {
    /// The range exceeds the file.
    Outside(OutOfBounds),
    /// An entry without its closing comment.
    NoEnd {
        /// Entry ID.
        id: String,
        /// Offset of the opening comment.
        offset: u64,
    },
    /// An entry ID that is not UTF-8.
    NotText {
        /// Offset of the ID.
        offset: u64,
    },
    /// The entry IDs exceed [`MAX_IDS`].
    TooLarge {
        /// Offset of the first ID over the limit.
        offset: u64,
    },
    /// The text cannot be read.
    Read {
        /// Error of the system.
        message: String,
    },
}

impl fmt::Display for TextBundleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "text bundle: ")?;
        match self {
            Self::Outside(problem) => problem.fmt(f),
            Self::NoEnd { id, offset } => {
                write!(
                    f,
                    "missing end of entry `{}`, which starts at offset {offset:#x}",
                    terminal(id)
                )
            }
            Self::NotText { offset } => {
                write!(f, "entry ID at offset {offset:#x} is not UTF-8")
            }
            Self::TooLarge { offset } => write!(
                f,
                "entry ID at offset {offset:#x}: all IDs together take more than {MAX_IDS:#x} bytes"
            ),
            Self::Read { message } => write!(f, "cannot read: {message}"),
        }
    }
}

impl std::error::Error for TextBundleError {}

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

    fn parse_with(bytes: &[u8], comment: Comment) -> Result<Vec<TextEntry>, TextBundleError> {
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
        for comment in Comment::ALL {
            let text = comment.as_str();
            let bytes = to_bytes(&[(HOST, b"x")], comment).unwrap();
            assert_eq!(bytes[1..=text.len()], *text.as_bytes());
            let (inside, end) = ([b"12345", &bytes[..]].concat(), 5 + bytes.len() as u64);
            assert_eq!(Comment::at(&inside[..], 5..end), Some(comment));
            assert_eq!(Comment::at(&inside[..], 6..end), None);
            assert_eq!(Comment::at(&inside[..], 5..20), None);
            for other in Comment::ALL {
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
            "text bundle: missing end of entry `hip-amdgcn-amd-amdhsa--gfx906`, which starts at offset 0x8e"
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
    fn reads_a_stream_as_it_comes() {
        let bytes = [b"12345", LLVM].concat();
        let expected = parse(&bytes[..], 5..bytes.len() as u64, Comment::Semicolon).unwrap();
        assert_eq!(expected.len(), 2);
        for size in 1..80 {
            let stream = io::BufReader::with_capacity(size, LLVM);
            let found = parse_from(stream, 5, Comment::Semicolon);
            assert_eq!(found, Ok(expected.clone()), "{size}");
        }
    }

    #[test]
    fn refuses_ids_that_take_more_memory_than_allowed() {
        let start = "\n; __CLANG_OFFLOAD_BUNDLE____START__ ";
        // No line ends: it would all be an ID.
        let endless = io::Read::take(io::repeat(b'x'), MAX_IDS + 1);
        let endless = io::Read::chain(start.as_bytes(), endless);
        let found = parse_from(io::BufReader::new(endless), 0, Comment::Semicolon);
        let offset = start.len() as u64;
        assert_eq!(found, Err(TextBundleError::TooLarge { offset }));
        let entry = to_bytes(&[("x", b"")], Comment::Semicolon).unwrap();
        let many = entry.repeat(usize::try_from(MAX_IDS / 64).unwrap());
        let found = parse_with(&many, Comment::Semicolon);
        assert!(matches!(found, Err(TextBundleError::TooLarge { .. })));
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
