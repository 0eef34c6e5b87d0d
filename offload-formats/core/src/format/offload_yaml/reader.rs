//! Reads the YAML of object files: one document with a tag, maps and lists in block and flow style,
//! plain and quoted scalars on one line, comments.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::{YamlError, YamlProblem};

/// A position in a text; both numbers start at 1, columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct YamlPosition {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl YamlPosition {
    pub(super) fn error(self, problem: YamlProblem) -> YamlError {
        let Self { line, column } = self;
        YamlError {
            line,
            column,
            problem,
        }
    }
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) place: YamlPosition,
    pub(super) content: YamlContent,
}

#[derive(Debug)]
pub(super) enum YamlContent {
    /// Not even a scalar, as after `Key:`.
    Nothing,
    Scalar(Scalar),
    List(Vec<Node>),
    /// Each key with its position and its value.
    Map(Map),
}

pub(super) type Map = BTreeMap<String, (YamlPosition, Node)>;

#[derive(Debug)]
pub(super) struct Scalar {
    pub(super) text: String,
    pub(super) quoted: bool,
}

/// Maximum nesting of lists and maps; documents need six levels.
const DEPTH: usize = 16;

/// Reads the only document, whose tag is `tag`.
pub(super) fn read(text: &str, tag: &'static str) -> Result<Node, YamlError> {
    let mut reader = YamlReader {
        // The mark of UTF-8 with which some editors begin files.
        rest: text.strip_prefix('\u{feff}').unwrap_or(text),
        place: YamlPosition { line: 1, column: 1 },
    };
    reader.skip();
    if reader.rest.starts_with("---") {
        reader.advance(3);
        reader.skip();
    }
    if !reader.rest.starts_with(tag) {
        return Err(reader.place.error(YamlProblem::Tag { tag }));
    }
    reader.advance(tag.len());
    if !reader.is_blank_at(0) {
        return Err(reader.place.error(YamlProblem::Tag { tag }));
    }
    let line = reader.place.line;
    reader.skip();
    if reader.place.line == line && !reader.rest.is_empty() && !reader.rest.starts_with(['{', '['])
    {
        return reader.expected("the end of the line");
    }
    let root = reader.block(1, NodeStart::Anywhere, DEPTH)?;
    reader.skip();
    if reader.rest.starts_with("...") && reader.is_at_marker() {
        reader.advance(3);
        reader.skip();
    }
    if reader.rest.is_empty() {
        Ok(root)
    } else {
        reader.expected("the end of the document, and of the file")
    }
}

struct YamlReader<'t> {
    rest: &'t str,
    place: YamlPosition,
}

/// Style of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum YamlStyle {
    /// Indentation shows its structure.
    Block,
    /// Brackets show its structure.
    Flow,
}

/// Place where a node may start.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NodeStart {
    /// On any line.
    Anywhere,
    /// On the line of its key, or on a later one.
    AfterKey,
}

impl YamlReader<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Skips and returns `len` bytes without a line feed.
    fn advance(&mut self, len: usize) -> &str {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        self.place.column = self.place.column.saturating_add(taken.chars().count());
        taken
    }

    /// Skips spaces, comments and line feeds.
    fn skip(&mut self) {
        loop {
            let blanks = self.rest.len() - self.rest.trim_start_matches([' ', '\t', '\r']).len();
            self.advance(blanks);
            match self.peek() {
                Some('\n') => {
                    self.rest = self.rest.split_at(1).1;
                    self.place.line = self.place.line.saturating_add(1);
                    self.place.column = 1;
                }
                // A comment: the `#` starts a line or follows a blank, because callers end there.
                Some('#') => {
                    let end = self.rest.find('\n').unwrap_or(self.rest.len());
                    self.advance(end);
                }
                _ => return,
            }
        }
    }

    /// Tells whether the character after `len` bytes ends a word.
    fn is_blank_at(&self, len: usize) -> bool {
        let (_, rest) = self.rest.split_at(len);
        rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n'])
    }

    fn is_at_marker(&self) -> bool {
        let marker = self.rest.starts_with("---") || self.rest.starts_with("...");
        self.place.column == 1 && marker && self.is_blank_at(3)
    }

    fn is_at_item(&self) -> bool {
        self.rest.starts_with('-') && self.is_blank_at(1)
    }

    fn expected<T>(&self, what: &'static str) -> Result<T, YamlError> {
        Err(self.place.error(YamlProblem::Expected { what }))
    }

    /// Reads the next node if it starts at `column` or further right. No block map
    /// or list can start on the line of its key.
    fn block(&mut self, column: usize, start: NodeStart, depth: usize) -> Result<Node, YamlError> {
        let line = self.place.line;
        self.skip();
        let place = self.place;
        let inline = start == NodeStart::AfterKey && place.line == line;
        let depth = depth
            .checked_sub(1)
            .ok_or(place.error(YamlProblem::Depth { most: DEPTH }))?;
        if self.rest.is_empty() || self.is_at_marker() || (!inline && place.column < column) {
            let content = YamlContent::Nothing;
            return Ok(Node { place, content });
        }
        let content = if self.is_at_item() {
            if inline {
                return self.expected("a list to start on its own line");
            }
            self.block_list(place.column, depth)?
        } else if self.rest.starts_with(['[', '{']) {
            let content = self.flow(depth)?.content;
            self.end_of_line()?;
            content
        } else {
            let scalar = self.scalar(YamlStyle::Block)?;
            if self.is_at_colon(YamlStyle::Block) {
                if inline {
                    return self.expected("a map to start on its own line");
                }
                self.block_map(place, scalar.text, depth)?
            } else {
                self.end_of_line()?;
                YamlContent::Scalar(scalar)
            }
        };
        Ok(Node { place, content })
    }

    fn block_list(&mut self, column: usize, depth: usize) -> Result<YamlContent, YamlError> {
        let mut items = Vec::new();
        while self.place.column == column && self.is_at_item() {
            self.advance(1);
            items.push(self.block(column.saturating_add(1), NodeStart::Anywhere, depth)?);
            self.skip();
        }
        self.no_deeper_than(column)?;
        Ok(YamlContent::List(items))
    }

    /// Reads a block map from the colon after its first key.
    fn block_map(
        &mut self,
        first: YamlPosition,
        key: String,
        depth: usize,
    ) -> Result<YamlContent, YamlError> {
        let mut entries = Map::new();
        let (mut place, mut key) = (first, key);
        loop {
            self.advance(1);
            // A list may start at the column of its key.
            let mut ahead = YamlReader { ..*self };
            ahead.skip();
            let under = ahead.is_at_item() && ahead.place.column == first.column;
            let column = first.column.saturating_add(usize::from(!under));
            let value = self.block(column, NodeStart::AfterKey, depth)?;
            add(&mut entries, key, place, value)?;
            self.skip();
            if self.place.column != first.column || self.rest.is_empty() || self.is_at_marker() {
                break;
            }
            place = self.place;
            key = self.scalar(YamlStyle::Block)?.text;
            if !self.is_at_colon(YamlStyle::Block) {
                return self.expected("`:` after a key");
            }
        }
        self.no_deeper_than(first.column)?;
        Ok(YamlContent::Map(entries))
    }

    /// Fails if more indented text follows a list or map.
    fn no_deeper_than(&self, column: usize) -> Result<(), YamlError> {
        if !self.rest.is_empty() && self.place.column > column {
            return self.expected("a line with less indentation");
        }
        Ok(())
    }

    fn end_of_line(&mut self) -> Result<(), YamlError> {
        let line = self.place.line;
        self.skip();
        if self.place.line == line && !self.rest.is_empty() {
            return self.expected("the end of the line");
        }
        Ok(())
    }

    /// Reads a list, a map or a scalar between brackets.
    fn flow(&mut self, depth: usize) -> Result<Node, YamlError> {
        let place = self.place;
        let depth = depth
            .checked_sub(1)
            .ok_or(place.error(YamlProblem::Depth { most: DEPTH }))?;
        let content = match self.peek() {
            Some('[') => {
                let mut items = Vec::new();
                self.flow_items(']', |reader| {
                    items.push(reader.flow(depth)?);
                    Ok(())
                })?;
                YamlContent::List(items)
            }
            Some('{') => {
                let mut entries = Map::new();
                self.flow_items('}', |reader| {
                    let place = reader.place;
                    let key = reader.scalar(YamlStyle::Flow)?.text;
                    if !reader.is_at_colon(YamlStyle::Flow) {
                        return reader.expected("`:` after a key");
                    }
                    reader.advance(1);
                    reader.skip();
                    let value = if reader.rest.starts_with([',', '}']) {
                        let (place, content) = (reader.place, YamlContent::Nothing);
                        Node { place, content }
                    } else {
                        reader.flow(depth)?
                    };
                    add(&mut entries, key, place, value)
                })?;
                YamlContent::Map(entries)
            }
            _ => YamlContent::Scalar(self.scalar(YamlStyle::Flow)?),
        };
        Ok(Node { place, content })
    }

    /// Reads items from the opening bracket to the closing one.
    fn flow_items(
        &mut self,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<(), YamlError>,
    ) -> Result<(), YamlError> {
        self.advance(1);
        self.skip();
        while !self.rest.starts_with(close) {
            item(self)?;
            self.skip();
            match self.peek() {
                Some(',') => {
                    self.advance(1);
                    self.skip();
                }
                Some(found) if found == close => {}
                _ if close == ']' => return self.expected("`,` or `]`"),
                _ => return self.expected("`,` or `}`"),
            }
        }
        self.advance(1);
        Ok(())
    }

    fn is_at_colon(&self, style: YamlStyle) -> bool {
        let ends =
            |rest: &str| style == YamlStyle::Flow && rest.starts_with([',', ']', '}', '[', '{']);
        let rest = self.rest.strip_prefix(':');
        rest.is_some_and(|rest| self.is_blank_at(1) || ends(rest))
    }

    /// Reads a scalar, and skips blanks after it.
    fn scalar(&mut self, style: YamlStyle) -> Result<Scalar, YamlError> {
        let scalar = match self.peek() {
            Some('\'') => self.single_quoted()?,
            Some('"') => self.double_quoted()?,
            _ => self.plain(style)?,
        };
        let blanks = self.rest.len() - self.rest.trim_start_matches([' ', '\t']).len();
        if self
            .rest
            .get(blanks..)
            .is_some_and(|rest| rest.starts_with('#'))
            && blanks == 0
        {
            return self.expected("a blank before a comment");
        }
        self.advance(blanks);
        Ok(scalar)
    }

    fn plain(&mut self, style: YamlStyle) -> Result<Scalar, YamlError> {
        let indicator = match self.peek() {
            Some('-' | '?' | ':') => self.is_blank_at(1),
            Some(first) => ",[]{}#&*!|>'\"%@`".contains(first),
            None => true,
        };
        if indicator {
            return self.expected("a scalar, a list or a map");
        }
        let in_flow = style == YamlStyle::Flow;
        let mut len = 0;
        let mut before = 'x';
        for char in self.rest.chars() {
            let blank_follows = self.is_blank_at(len + char.len_utf8());
            let (_, next) = self.rest.split_at(len + char.len_utf8());
            let ends = match char {
                '\n' | '\r' => true,
                '#' => matches!(before, ' ' | '\t'),
                ':' => blank_follows || (in_flow && next.starts_with([',', ']', '}', '[', '{'])),
                ',' | '[' | ']' | '{' | '}' => in_flow,
                _ => false,
            };
            if ends {
                break;
            }
            len += char.len_utf8();
            before = char;
        }
        let (text, _) = self.rest.split_at(len);
        let text = text.trim_end_matches([' ', '\t']).to_owned();
        self.advance(text.len());
        Ok(Scalar {
            text,
            quoted: false,
        })
    }

    fn single_quoted(&mut self) -> Result<Scalar, YamlError> {
        self.advance(1);
        let mut text = String::new();
        loop {
            let end = self.rest.find(['\'', '\n']);
            let end = end.filter(|end| self.rest.as_bytes().get(*end) == Some(&b'\''));
            let Some(end) = end else {
                return self.expected("`'` at the end of the scalar, on its line");
            };
            text += self.advance(end);
            self.advance(1);
            if !self.rest.starts_with('\'') {
                return Ok(Scalar { text, quoted: true });
            }
            text += self.advance(1);
        }
    }

    fn double_quoted(&mut self) -> Result<Scalar, YamlError> {
        self.advance(1);
        let mut text = String::new();
        loop {
            match self.peek() {
                Some('"') => {
                    self.advance(1);
                    return Ok(Scalar { text, quoted: true });
                }
                None | Some('\n') => {
                    return self.expected("`\"` at the end of the scalar, on its line");
                }
                Some('\\') => text.push(self.escape()?),
                Some(char) => {
                    text.push(char);
                    self.advance(char.len_utf8());
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, YamlError> {
        let place = self.place;
        self.advance(1);
        let escape = self.peek().unwrap_or('\n');
        let wrong = place.error(YamlProblem::Expected {
            what: "an escape sequence",
        });
        if let Some((_, char)) = ESCAPES.iter().find(|(known, _)| *known == escape) {
            self.advance(1);
            return Ok(*char);
        }
        let digits = match escape {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => return Err(wrong),
        };
        self.advance(1);
        let number = self.rest.get(..digits);
        // `from_str_radix` would accept a sign.
        let number = number.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let number = number.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let char = number.and_then(char::from_u32).ok_or(wrong)?;
        self.advance(digits);
        Ok(char)
    }
}

/// The character after a backslash, and its meaning.
pub(super) const ESCAPES: [(char, char); 19] = [
    ('0', '\0'),
    ('a', '\x07'),
    ('b', '\x08'),
    ('t', '\t'),
    ('n', '\n'),
    ('v', '\x0b'),
    ('f', '\x0c'),
    ('r', '\r'),
    ('e', '\x1b'),
    ('"', '"'),
    ('\\', '\\'),
    ('N', '\u{85}'),
    ('_', '\u{a0}'),
    ('L', '\u{2028}'),
    ('P', '\u{2029}'),
    // These are only read.
    ('/', '/'),
    (' ', ' '),
    ('\t', '\t'),
    ('\'', '\''),
];

/// Adds a key to a map; rejects a duplicate.
fn add(entries: &mut Map, key: String, place: YamlPosition, value: Node) -> Result<(), YamlError> {
    match entries.entry(key) {
        Entry::Vacant(free) => {
            free.insert((place, value));
            Ok(())
        }
        Entry::Occupied(known) => {
            let key = known.key().clone();
            Err(place.error(YamlProblem::Twice { key }))
        }
    }
}
