//! Response files: `@file` stands for the arguments in it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Response files may name others; so many in all. More is a file that names itself.
const MOST: usize = 2000;

/// What an argument stands for: itself, unless it names a file that can be read.
pub(crate) fn expand(argument: &OsStr) -> Result<Vec<OsString>, TooMany> {
    let mut expanded = Vec::new();
    // Arguments still to look at, the next one last.
    let mut left = vec![argument.to_owned()];
    let mut files = 0;
    while let Some(argument) = left.pop() {
        let content = argument
            .as_bytes()
            .strip_prefix(b"@")
            .and_then(|name| fs::read(Path::new(OsStr::from_bytes(name))).ok());
        let Some(content) = content else {
            expanded.push(argument);
            continue;
        };
        files += 1;
        if files > MOST {
            return Err(TooMany { argument });
        }
        left.extend(unquote(&content).into_iter().rev());
    }
    Ok(expanded)
}

/// The arguments in a response file, by GNU's rules: white space separates, a backslash takes the
/// next byte as it is, and either quote takes everything to its fellow.
fn unquote(content: &[u8]) -> Vec<OsString> {
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
    arguments.into_iter().map(OsString::from_vec).collect()
}

/// A response file that reads back as `arguments`.
pub(crate) fn quote(arguments: &[OsString]) -> Vec<u8> {
    let mut content = Vec::new();
    for argument in arguments {
        content.push(b'"');
        for byte in argument.as_bytes() {
            if matches!(byte, b'"' | b'\\') {
                content.push(b'\\');
            }
            content.push(*byte);
        }
        content.extend(b"\"\n");
    }
    content
}

/// Response files that name each other without end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TooMany {
    argument: OsString,
}

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let argument = self.argument.to_string_lossy();
        write!(
            f,
            "{argument}: more than {MOST} response files, one in another"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_gnu_quoting() {
        let content = br#"-o a\ b 'c "d' "e 'f\"" "" \\
            g"h"'i' "#;
        assert_eq!(
            unquote(content),
            ["-o", "a b", "c \"d", "e 'f\"", "", "\\", "ghi"]
        );
    }

    #[test]
    fn round_trips_any_argument() {
        let arguments = ["", "a b", "it's", "\"", "\\", "line\nline", "-Wl,a"].map(OsString::from);
        assert_eq!(unquote(&quote(&arguments)), arguments);
    }

    #[test]
    fn expands_files_in_files_and_keeps_what_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("inner");
        let outer = dir.path().join("outer");
        fs::write(&inner, "b @nonexistent").unwrap();
        fs::write(&outer, format!("a @{} c", inner.display())).unwrap();
        let argument = OsString::from(format!("@{}", outer.display()));
        assert_eq!(expand(&argument).unwrap(), ["a", "b", "@nonexistent", "c"]);
        assert_eq!(expand("plain".as_ref()).unwrap(), ["plain"]);
    }

    #[test]
    fn rejects_a_file_that_names_itself() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("own");
        let argument = OsString::from(format!("@{}", path.display()));
        fs::write(&path, argument.as_bytes()).unwrap();
        assert_eq!(
            expand(&argument).unwrap_err().to_string(),
            format!(
                "@{}: more than 2000 response files, one in another",
                path.display()
            )
        );
    }
}
