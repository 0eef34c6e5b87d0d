//! Strings from files, escaped for the place where they are written.
//!
//! A name in an object file, an archive or a bundle may hold any bytes. Written as they are, they could end a comment of
//! generated code, forge a line of a listing, or drive the reader's terminal. One function for each kind of output
//! prevents that; no other code escapes.

use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::path::Path;

/// Displays `text` on one line of a terminal, a log or a text listing.
///
/// Control characters (C0, DEL, C1), line and paragraph separators and characters that change the direction of writing
/// become `\n`, `\t`, `\r`, `\0`, `\x1b` or `\u{202e}`; bytes that are not UTF-8 become `\xff`. Backslashes and quotes
/// stay, so that paths read as usual.
#[must_use]
pub fn terminal<T: Bytes + ?Sized>(text: &T) -> Terminal<'_> {
    Terminal(text.bytes())
}

/// Displays a string on one line: see [`terminal`].
#[derive(Clone, Copy, Debug)]
pub struct Terminal<'a>(&'a [u8]);

impl fmt::Display for Terminal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            let valid = chunk.valid();
            let mut shown = 0;
            for (index, active) in valid.match_indices(is_active) {
                f.write_str(&valid[shown..index])?;
                for c in active.chars() {
                    write_escape(f, c)?;
                }
                shown = index + active.len();
            }
            f.write_str(&valid[shown..])?;
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

fn write_escape(f: &mut fmt::Formatter<'_>, c: char) -> fmt::Result {
    match c {
        '\0' | '\n' | '\r' | '\t' => write!(f, "{}", c.escape_debug()),
        _ if c.is_ascii() => write!(f, "\\x{:02x}", u32::from(c)),
        _ => write!(f, "{}", c.escape_unicode()),
    }
}

/// Displays `text` with its lines kept, everything else as [`terminal`] has it: for whole messages, of which some part may
/// come from a file. The last defence before a terminal; names are escaped by [`terminal`] when they join a message.
#[must_use]
pub fn terminal_lines(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            escaped.push('\n');
        }
        let _ = write!(escaped, "{}", terminal(line));
    }
    escaped
}

/// Tells whether a terminal may act on `c` instead of showing it, or shows what follows elsewhere: Unicode 16, general
/// category `Cc`, `Zl`, `Zp` and the property `Bidi_Control`.
fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the string literal of C whose bytes are `bytes`, quotes included. No escape runs into the character after it,
/// and no trigraph is left.
#[cfg(feature = "tools")]
#[must_use]
pub fn c_string(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' | b'\\' | b'?' | ..=0x1f | 0x7f.. => {
                let _ = write!(text, "\\{byte:03o}");
            }
            _ => text.push(char::from(*byte)),
        }
    }
    text.push('"');
    text
}

/// Returns the string of LLVM IR whose bytes are `bytes`, quotes included.
#[cfg(feature = "tools")]
#[must_use]
pub fn llvm_ir_string(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' | ..=0x1f | 0x7f.. => {
                let _ = write!(text, "\\{byte:02X}");
            }
            _ => text.push(char::from(*byte)),
        }
    }
    text.push('"');
    text
}

/// Something whose bytes are displayed: a string, a path, bytes.
pub trait Bytes {
    /// The bytes, UTF-8 or not.
    fn bytes(&self) -> &[u8];
}

impl Bytes for str {
    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl Bytes for String {
    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl Bytes for [u8] {
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl Bytes for OsStr {
    fn bytes(&self) -> &[u8] {
        self.as_encoded_bytes()
    }
}

impl Bytes for Path {
    fn bytes(&self) -> &[u8] {
        self.as_os_str().as_encoded_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown<T: Bytes + ?Sized>(text: &T) -> String {
        terminal(text).to_string()
    }

    #[test]
    fn shows_plain_text_as_it_is() {
        let text = "libk.a(größe \\ \"k\".o) 漢 ,'";
        assert_eq!(shown(text), text);
        assert_eq!(shown(Path::new("a/b c")), "a/b c");
    }

    #[test]
    fn escapes_whatever_a_terminal_acts_on() {
        assert_eq!(shown("a\nb\r\tc\0"), "a\\nb\\r\\tc\\0");
        assert_eq!(shown("\x1b]0;title\x07\x7f"), "\\x1b]0;title\\x07\\x7f");
        assert_eq!(
            shown("\u{9b}31m \u{202e}x\u{2066}\u{2028}"),
            "\\u{9b}31m \\u{202e}x\\u{2066}\\u{2028}"
        );
        assert_eq!(shown(b"k\xff\xc3.o".as_slice()), "k\\xff\\xc3.o");
    }

    #[test]
    fn keeps_the_lines_of_a_message() {
        assert_eq!(terminal_lines("a\x1bb\nc\r\n"), "a\\x1bb\nc\\r\n");
    }
}
