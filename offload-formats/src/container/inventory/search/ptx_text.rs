//! The ends of a PTX text that other data surrounds: strings of a program follow each other without a gap, and so do two texts.
//!
//! Specification: NVIDIA's "PTX ISA".

use std::ops::Range;

use crate::format::bytes::{Cursor, ReadAt};

/// First bytes of a text after its comments.
pub(super) const VERSION: &[u8] = b".version";

/// Number of bytes that are read at once.
const PART: u64 = 1 << 16;

/// Returns the size of the comments at the end of `text`, which belong to the directive that follows.
pub(super) fn comments_at_end(text: &[u8]) -> usize {
    let mut start = text.len();
    loop {
        let before = text.split_at(start).0.trim_ascii_end();
        let line = before
            .rsplit(|byte| *byte == b'\n')
            .next()
            .unwrap_or(before);
        let Some(slashes) = line.windows(2).position(|two| two == b"//") else {
            break;
        };
        start = before.len() - line.len() + slashes;
        let (other, _) = line.split_at(slashes);
        if !other.trim_ascii().is_empty() {
            break;
        }
    }
    text.len() - start
}

/// Returns the end of the text that a range of `data` starts with: after the last statement, and the lines and comments
/// that follow it. Lines of comments before another text belong to that one.
pub(super) fn end<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Option<u64> {
    let end = Cursor::new(data, range.clone()).end();
    let mut scan = Scan::default();
    let (mut position, mut buffer) = (range.start, Vec::new());
    while position < end {
        buffer.resize(PART.min(end - position) as usize, 0);
        data.read_once(&mut buffer, position)?;
        for byte in &buffer {
            if !scan.accepts(*byte) {
                return Some(range.start + scan.statements());
            }
        }
        position += buffer.len() as u64;
    }
    Some(range.start + scan.statements())
}

/// Part of the text that a byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Code,
    /// A slash that may start a comment.
    Slash,
    LineComment,
    BlockComment,
    /// A star in a comment that may end it.
    Star,
    String,
    /// A backslash in a string.
    Escape,
}

/// A scan of a text from its first byte on.
#[derive(Debug, Default)]
struct Scan {
    part: Part,
    /// Number of open braces and parentheses.
    depth: u64,
    /// True after a statement or line outside of braces: another may follow, or the text may end.
    between: bool,
    /// Number of bytes that were accepted.
    accepted: u64,
    /// Number of bytes up to the end of the last statement or line outside of braces.
    complete: u64,
    /// True if the line has no code so far.
    is_new_line: bool,
    /// Number of bytes before the lines of comments that follow the last statement.
    before_comments: Option<u64>,
    /// A directive that may start another text.
    directive: Option<NextDirective>,
}

/// A directive of which some letters were read.
#[derive(Debug)]
struct NextDirective {
    /// Number of letters that are those of `.version`.
    matched: usize,
    /// Number of bytes before it and its comments.
    start: u64,
}

impl Scan {
    /// Returns the size of the text. A text that ends in a statement is damaged; it has all bytes that may belong to it.
    fn statements(&self) -> u64 {
        match self.complete {
            0 => self.accepted,
            complete => complete,
        }
    }

    /// Returns false if the byte does not belong to the text.
    fn accepts(&mut self, byte: u8) -> bool {
        let is_text = byte >= b' ' && byte != 0x7f || matches!(byte, b'\t'..=b'\r');
        if !is_text || !self.scan(byte) {
            return false;
        }
        self.accepted += 1;
        self.is_new_line |= byte == b'\n';
        let is_line = byte == b'\n' && self.depth == 0 && self.part == Part::Code;
        let is_statement = matches!(byte, b'}' | b';') && self.depth == 0;
        if is_line || is_statement && self.part == Part::Code {
            (self.complete, self.between) = (self.accepted, true);
        }
        true
    }

    fn scan(&mut self, byte: u8) -> bool {
        self.part = match (self.part, byte) {
            (Part::Code, _) => return self.code(byte),
            (Part::Slash, b'/' | b'*') => {
                if self.between && self.is_new_line && self.before_comments.is_none() {
                    self.before_comments = Some(self.complete);
                }
                match byte {
                    b'/' => Part::LineComment,
                    _ => Part::BlockComment,
                }
            }
            (Part::Slash, _) if self.depth == 0 => return false,
            (Part::Slash, _) => {
                self.part = Part::Code;
                return self.code(byte);
            }
            (Part::LineComment, b'\n') => Part::Code,
            (Part::Star, b'/') => Part::Code,
            (Part::BlockComment | Part::Star, b'*') => Part::Star,
            (Part::BlockComment | Part::Star, _) => Part::BlockComment,
            (Part::String, b'\\') => Part::Escape,
            (Part::String, b'"') => Part::Code,
            (Part::String | Part::Escape, _) => Part::String,
            (Part::LineComment, _) => Part::LineComment,
        };
        true
    }

    fn code(&mut self, byte: u8) -> bool {
        let is_blank = byte.is_ascii_whitespace() || byte == 0x0b;
        if !is_blank && byte != b'/' {
            let comments = self.before_comments.take();
            self.is_new_line = false;
            // A directive, or what follows the name of a function on the next line.
            if self.between && !matches!(byte, b'.' | b'{' | b'(' | b')' | b';' | b'@') {
                return false;
            }
            if self.between && byte == b'.' {
                let start = comments.unwrap_or(self.complete);
                self.directive = Some(NextDirective { matched: 0, start });
            }
            self.between = false;
        }
        if !self.continues(byte) {
            return false;
        }
        match byte {
            b'/' => self.part = Part::Slash,
            b'"' => self.part = Part::String,
            b'{' | b'(' => self.depth += 1,
            b'}' | b')' => match self.depth.checked_sub(1) {
                Some(depth) => self.depth = depth,
                None => return false,
            },
            _ => return byte.is_ascii(),
        }
        true
    }

    /// Returns false if a byte of code completes the directive of another text; then this text ends before that.
    fn continues(&mut self, byte: u8) -> bool {
        let Some(directive) = &mut self.directive else {
            return true;
        };
        if VERSION.get(directive.matched) != Some(&byte) {
            self.directive = None;
            return true;
        }
        directive.matched += 1;
        if directive.matched < VERSION.len() {
            return true;
        }
        self.complete = directive.start;
        false
    }
}
