//! Prints documents as `obj2yaml` does.

use std::fmt;

use super::reader::ESCAPES;
use super::{Document, IMAGE_KINDS, OFFLOAD_KINDS, TAG, YamlMember, is_number};
use crate::names::LlvmRelease;

/// Prints like `obj2yaml` 22, which omits all header fields.
impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "--- {TAG}")?;
        let header = [
            ("Version", self.version.map(u64::from)),
            ("Size", self.size),
            ("EntriesOffset", self.entries_offset),
            ("EntriesCount", self.entries),
        ];
        for (key, value) in header {
            if let Some(value) = value {
                line(f, "", key, &value.to_string())?;
            }
        }
        if let Some(method) = self.compression {
            line(f, "", "Compression", method.name())?;
        }
        if self.members.is_empty() {
            line(f, "", "Members", "[]")?;
        } else {
            writeln!(f, "Members:")?;
        }
        self.members.iter().try_for_each(|member| member.fmt(f))?;
        writeln!(f, "...")
    }
}

impl fmt::Display for YamlMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (image, offload) = (
            self.image_kind.raw(),
            self.offload_kind.raw(LlvmRelease::V22),
        );
        line(f, "  - ", "ImageKind", &kind(image, &IMAGE_KINDS))?;
        line(f, "    ", "OffloadKind", &kind(offload, &OFFLOAD_KINDS))?;
        line(f, "    ", "Flags", &self.flags.to_string())?;
        if !self.strings.is_empty() {
            writeln!(f, "    String:")?;
        }
        for (key, value) in &self.strings {
            line(f, "      - ", "Key", &quoted(key))?;
            line(f, "        ", "Value", &quoted(value))?;
        }
        if !self.content.is_empty() {
            let digits = self.content.iter().map(|byte| format!("{byte:02X}"));
            line(f, "    ", "Content", &quoted(&digits.collect::<String>()))?;
        }
        Ok(())
    }
}

fn line(f: &mut fmt::Formatter<'_>, indent: &str, key: &str, value: &str) -> fmt::Result {
    let key = format!("{key}:");
    writeln!(f, "{indent}{key:<16} {value}")
}

fn kind(raw: u16, names: &[(&str, u16)]) -> String {
    let row = names.iter().find(|(_, number)| *number == raw);
    row.map_or_else(
        || format!("{raw:#X}").replace("0X", "0x"),
        |(name, _)| (*name).to_owned(),
    )
}

/// Returns a scalar, quoted as LLVM does.
fn quoted(text: &str) -> String {
    // Not in single quotes: they cannot contain these characters, or LLVM does not use them.
    let escaped = |char: char| (char < ' ' && char != '\t') || char >= '\x7f';
    if text.chars().any(escaped) {
        return double_quoted(text);
    }
    let plain = |char: char| char.is_ascii_alphanumeric() || "_-^., \t".contains(char);
    let word = matches!(
        text,
        "null" | "Null" | "NULL" | "~" | "true" | "True" | "TRUE" | "false" | "False" | "FALSE"
    );
    let edge = |char: char| matches!(char, ' ' | '\t');
    if text.is_empty()
        || text.starts_with('-')
        || text.starts_with(',')
        || text.starts_with(edge)
        || text.ends_with(edge)
        || word
        || is_number(text)
        || !text.chars().all(plain)
    {
        return format!("'{}'", text.replace('\'', "''"));
    }
    text.to_owned()
}

fn double_quoted(text: &str) -> String {
    let mut out = "\"".to_owned();
    for char in text.chars() {
        let code = u32::from(char);
        match ESCAPES.iter().find(|(_, known)| *known == char) {
            Some((escape, _)) if !matches!(char, '/' | ' ' | '\'') => {
                out.extend(['\\', *escape]);
            }
            _ if char < ' ' => out += &format!("\\x{code:02X}"),
            _ if char < '\u{80}' => out.push(char),
            // Printable, according to the standard library.
            _ if char.escape_debug().count() == 1 => out.push(char),
            _ if code <= 0xff => out += &format!("\\x{code:02X}"),
            _ if code <= 0xffff => out += &format!("\\u{code:04X}"),
            _ => out += &format!("\\U{code:08X}"),
        }
    }
    out + "\""
}
