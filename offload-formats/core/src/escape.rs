//! Strings from files, escaped for the place where they are written.
//!
//! A name in an object file, an archive or a bundle may contain any bytes. Unescaped, they could
//! end a comment of generated code, forge a line of a listing, or control the reader's terminal.
//! This module has one function for each kind of output; no other code escapes.

use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::path::Path;

/// Displays `text` on one line of a terminal, a log or a text listing.
///
/// Escapes control characters (C0, DEL, C1), line and paragraph separators, and characters that
/// change the direction of writing. They become `\n`, `\t`, `\r`, `\0`, `\x1b` or `\u{202e}`. Bytes
/// that are not UTF-8 become `\xff`. Backslashes and quotes stay, so that paths remain readable.
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

/// Returns `text` with its line feeds, and everything else escaped as by [`terminal`]. Use it for
/// whole messages that may contain text from a file. Names are escaped by [`terminal`] when they
/// join a message; this is the last defense before a terminal.
#[must_use]
#[cfg(feature = "tools")]
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

/// Treatment of the colors in messages of compilers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colors {
    /// Removes them.
    #[default]
    Removed,
    /// Keeps them.
    Kept,
}

/// Returns a compiler's messages with their line feeds and tabs. Sequences for colors and styles
/// (`ESC [ … m`) are kept or removed; other terminal controls are escaped as by [`terminal`].
#[must_use]
pub fn messages(text: &str, colors: Colors) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            escaped.push('\n');
        }
        let mut left = line.strip_suffix('\r').unwrap_or(line);
        while let Some(at) = left.find(['\x1b', '\t']) {
            let (plain, active) = left.split_at(at);
            let size = match active.starts_with('\t') {
                true => 1,
                false => style(active),
            };
            let (kept, _) = active.split_at(size);
            let _ = write!(escaped, "{}", terminal(plain));
            if size == 0 {
                escaped.push_str("\\x1b");
            } else if kept == "\t" || colors == Colors::Kept {
                escaped.push_str(kept);
            }
            left = active.split_at(size.max(1)).1;
        }
        let _ = write!(escaped, "{}", terminal(left));
    }
    escaped
}

/// Returns the length of the color or style sequence at the start of `text`, or 0.
fn style(text: &str) -> usize {
    let is_part = |c: char| c.is_ascii_digit() || c == ';';
    let Some(numbers) = text.strip_prefix("\x1b[") else {
        return 0;
    };
    let end = numbers.trim_start_matches(is_part);
    match end.starts_with('m') {
        true => text.len() - end.len() + 1,
        false => 0,
    }
}

/// Tells whether a terminal may act on `c` instead of showing it, or may show later text elsewhere:
/// Unicode 16, general categories `Cc`, `Zl`, `Zp` and the property `Bidi_Control`.
fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns a C string literal with these bytes, quotes included. No escape runs into the next
/// character, and no trigraph remains.
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

/// Returns an LLVM IR string with these bytes, quotes included.
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

/// A value whose bytes can be displayed: a string, a path, bytes.
pub trait Bytes {
    /// Returns the bytes, UTF-8 or not.
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

    #[test]
    fn keeps_colors_of_messages_and_nothing_else() {
        let text = "\x1b[1mk.c:1:\x1b[0m\x1b[0;1;31m error: \x1b[m\tx\r\n\x1b]0;title\x07\x1b[2J\x1b[1;3H\x1b[31";
        let rest = "\\x1b]0;title\\x07\\x1b[2J\\x1b[1;3H\\x1b[31";
        assert_eq!(
            messages(text, Colors::Kept),
            format!("\x1b[1mk.c:1:\x1b[0m\x1b[0;1;31m error: \x1b[m\tx\n{rest}")
        );
        let plain = messages(text, Colors::Removed);
        assert_eq!(plain, format!("k.c:1: error: \tx\n{rest}"));
        assert_eq!(messages(&plain, Colors::Kept), plain);
        assert_eq!(
            messages("a\rb\u{9b}m\u{202e}\n", Colors::Kept),
            "a\\rb\\u{9b}m\\u{202e}\n"
        );
    }
}
