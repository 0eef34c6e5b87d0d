//! Response files: `@file` stands for the arguments in it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::platform::{self, is_absent};

/// Limit on response files for one argument, nested ones included. Above it, a file names itself.
const MOST: usize = 2000;

/// Limit on the size in bytes: more than any command line, less than `/dev/zero`.
const LARGEST: u64 = 1 << 28;

/// Returns the arguments that `argument` stands for: itself, unless it names a readable response file.
pub(crate) fn expand(argument: &OsStr, quoting: Quoting) -> Result<Vec<OsString>, ExpandError> {
    let mut expanded = Vec::new();
    // Arguments to expand, the next one last.
    let mut left = vec![argument.to_owned()];
    let mut files = 0;
    while let Some(argument) = left.pop() {
        let name = argument.as_encoded_bytes().strip_prefix(b"@");
        let content = match name.map(|name| read(Path::new(&platform::os_string(name.to_vec())))) {
            Some(Ok(content)) => content,
            Some(Err(problem)) if !is_plain(&problem) => {
                let problem = problem.to_string();
                return Err(ExpandError::Unread { argument, problem });
            }
            _ => {
                expanded.push(argument);
                continue;
            }
        };
        files += 1;
        if files > MOST {
            return Err(ExpandError::TooMany { argument });
        }
        if content.len() as u64 > LARGEST {
            return Err(ExpandError::TooLarge { argument });
        }
        left.extend(quoting.unquote(&to_utf8(content)).into_iter().rev());
    }
    Ok(expanded)
}

/// Tells whether the argument stands for itself, because no file has this name.
fn is_plain(problem: &io::Error) -> bool {
    is_absent(problem) || problem.kind() == io::ErrorKind::IsADirectory
}

/// Reads the file up to the limit and one byte more.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?
        .take(LARGEST + 1)
        .read_to_end(&mut content)?;
    Ok(content)
}

/// Converts UTF-16, which Microsoft's tools write, by its mark at the start.
fn to_utf8(content: Vec<u8>) -> Vec<u8> {
    match content.as_slice() {
        [0xff, 0xfe, units @ ..] => {
            let pairs = units.chunks_exact(2);
            let units: Vec<u16> = pairs
                .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
                .collect();
            String::from_utf16_lossy(&units).into_bytes()
        }
        [0xef, 0xbb, 0xbf, text @ ..] => text.to_vec(),
        _ => content,
    }
}

/// Rules for quoting in a response file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quoting {
    /// White space separates. A backslash escapes the next byte. Single and double quotes enclose text.
    Gnu,
    /// White space separates. Double quotes enclose text. Backslashes escape only before a double quote.
    Windows,
}

impl Quoting {
    fn unquote(self, content: &[u8]) -> Vec<OsString> {
        match self {
            Self::Gnu => unquote_gnu(content),
            Self::Windows => unquote_windows(content),
        }
    }

    /// Returns a response file that reads back as `arguments`.
    pub(crate) fn quote(self, arguments: &[OsString]) -> Vec<u8> {
        let mut content = Vec::new();
        for argument in arguments {
            content.push(b'"');
            let mut backslashes = 0;
            for byte in argument.as_encoded_bytes() {
                match (self, byte) {
                    (Self::Gnu, b'"' | b'\\') => content.push(b'\\'),
                    // Doubles the backslashes before the quote and escapes the quote.
                    (Self::Windows, b'"') => content.extend(vec![b'\\'; backslashes + 1]),
                    _ => {}
                }
                backslashes = if *byte == b'\\' { backslashes + 1 } else { 0 };
                content.push(*byte);
            }
            if self == Self::Windows {
                content.extend(vec![b'\\'; backslashes]);
            }
            content.extend(b"\"\n");
        }
        content
    }
}

fn unquote_windows(content: &[u8]) -> Vec<OsString> {
    let mut arguments = Vec::new();
    let mut present: Option<Vec<u8>> = None;
    let mut quoted = false;
    let mut bytes = content.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => {
                let mut count = 1;
                while bytes.next_if_eq(&b'\\').is_some() {
                    count += 1;
                }
                let argument = present.get_or_insert_default();
                let before_quote = bytes.peek() == Some(&b'"');
                let kept = if before_quote { count / 2 } else { count };
                argument.extend(std::iter::repeat_n(b'\\', kept));
                if before_quote && count % 2 == 1 {
                    argument.extend(bytes.next());
                }
            }
            b'"' if quoted && bytes.peek() == Some(&b'"') => {
                // Two quotes inside quotes stand for one.
                present.get_or_insert_default().extend(bytes.next());
            }
            b'"' => {
                quoted = !quoted;
                present.get_or_insert_default();
            }
            _ if !quoted && (byte.is_ascii_whitespace() || byte == 0) => {
                arguments.extend(present.take());
            }
            _ => present.get_or_insert_default().push(byte),
        }
    }
    arguments.extend(present);
    arguments.into_iter().map(platform::os_string).collect()
}

fn unquote_gnu(content: &[u8]) -> Vec<OsString> {
    let mut arguments = Vec::new();
    let mut present: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = content.iter();
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (b'\\', _) => present
                .get_or_insert_default()
                .extend(bytes.next().copied()),
            (b'"' | b'\'', None) => {
                quote = Some(byte);
                present.get_or_insert_default();
            }
            (_, Some(open)) if open == byte => quote = None,
            (_, None) if byte.is_ascii_whitespace() => arguments.extend(present.take()),
            _ => present.get_or_insert_default().push(*byte),
        }
    }
    arguments.extend(present);
    arguments.into_iter().map(platform::os_string).collect()
}

/// Error about a response file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ExpandError {
    /// Response files name each other without end.
    TooMany { argument: OsString },
    /// A response file is too large.
    TooLarge { argument: OsString },
    /// The system refuses to read a response file.
    Unread { argument: OsString, problem: String },
}

impl fmt::Display for ExpandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany { argument } => {
                let argument = argument.to_string_lossy();
                write!(f, "{argument}: more than {MOST} nested response files")
            }
            Self::TooLarge { argument } => {
                let argument = argument.to_string_lossy();
                write!(f, "{argument}: larger than {LARGEST:#x} bytes")
            }
            Self::Unread { argument, problem } => {
                let argument = argument.to_string_lossy();
                write!(f, "{argument}: cannot read: {problem}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn reads_gnu_quoting() {
        let content = br#"-o a\ b 'c "d' "e 'f\"" "" \\
            g"h"'i' "#;
        assert_eq!(
            Quoting::Gnu.unquote(content),
            ["-o", "a b", "c \"d", "e 'f\"", "", "\\", "ghi"]
        );
    }

    /// The rules of `CommandLineToArgvW`, which Microsoft documents with these arguments.
    #[test]
    fn reads_windows_quoting() {
        let content =
            br#""a b c" d e "ab\"c" "\\" d a\\\b d"e f"g h a\\\"b c d a\\\\"b c" d e 'x y'"#;
        assert_eq!(
            Quoting::Windows.unquote(content),
            [
                "a b c", "d", "e", "ab\"c", "\\", "d", "a\\\\\\b", "de fg", "h", "a\\\"b", "c",
                "d", "a\\\\b c", "d", "e", "'x", "y'"
            ]
        );
    }

    #[test]
    fn round_trips_any_argument() {
        let arguments = [
            "",
            "a b",
            "it's",
            "\"",
            "\\",
            "line\nline",
            "-Wl,a",
            "C:\\a b\\",
            "\\\"",
            "\\\\\"x",
            "\"\"",
        ];
        let mut arguments = arguments.map(OsString::from).to_vec();
        // Each pair of bytes, among them ends of lines, quotes and bytes of no text; NUL is in no argument.
        let bytes = || 1..=255_u8;
        let pairs = bytes().flat_map(|one| bytes().map(move |other| vec![one, other]));
        arguments.extend(pairs.map(platform::os_string));
        for quoting in [Quoting::Gnu, Quoting::Windows] {
            assert_eq!(quoting.unquote(&quoting.quote(&arguments)), arguments);
        }
    }

    #[test]
    fn reads_the_encodings_of_microsofts_tools() {
        let wide: Vec<u8> = "\u{feff}/out:\u{e4}.exe"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let marked = "\u{feff}/out:\u{e4}.exe".as_bytes().to_vec();
        for content in [wide, marked] {
            assert_eq!(to_utf8(content), "/out:\u{e4}.exe".as_bytes());
        }
    }

    #[test]
    fn expands_files_in_files_and_keeps_what_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("inner");
        let outer = dir.path().join("outer");
        fs::write(&inner, "b @nonexistent").unwrap();
        fs::write(&outer, format!("a @{} c", inner.display())).unwrap();
        let argument = OsString::from(format!("@{}", outer.display()));
        assert_eq!(
            expand(&argument, Quoting::Gnu).unwrap(),
            ["a", "b", "@nonexistent", "c"]
        );
        assert_eq!(expand("plain".as_ref(), Quoting::Gnu).unwrap(), ["plain"]);
    }

    #[test]
    fn rejects_a_file_that_names_itself() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("own");
        let argument = OsString::from(format!("@{}", path.display()));
        fs::write(&path, argument.as_encoded_bytes()).unwrap();
        assert_eq!(
            expand(&argument, Quoting::Gnu).unwrap_err().to_string(),
            format!("@{}: more than 2000 nested response files", path.display())
        );
    }

    #[test]
    fn rejects_a_file_without_an_end() {
        let error = expand("@/dev/zero".as_ref(), Quoting::Gnu).unwrap_err();
        assert_eq!(
            error.to_string(),
            "@/dev/zero: larger than 0x10000000 bytes"
        );
    }
}
