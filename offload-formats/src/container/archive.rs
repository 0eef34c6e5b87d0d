//! The ar archive: objects for the linker, and an index of their symbols.
//!
//! | offset | size | field                                                         |
//! |-------:|-----:|---------------------------------------------------------------|
//! | `0x00` |    8 | magic, `!<arch>\n`, or `!<thin>\n`                            |
//! |        |      | then each member, at a multiple of 2:                         |
//! |   `+0` |   16 | name: `name/`, `/<offset in the long names>`, `#1/<length>`   |
//! |  `+16` |   32 | date, owner, group, mode; not read                            |
//! |  `+48` |   10 | size of the content, decimal                                  |
//! |  `+58` |    2 | a grave accent and a line feed                                |
//!
//! Special members come first: `/`, `/SYM64/` or `__.SYMDEF…` is the index, `//` contains long names.
//! If the name field is `#1/<length>`, the name is the first bytes of the content. In a thin archive only the
//! special members have content; the others name a file.
//!
//! Archives of AIX (`<bigaf>\n`) are read, too, without their index; `big.rs` has the layout.
//!
//! [`Archive::parse`] reads only headers and long names. The crate `object` reads the index, but not
//! the headers, because its errors have no offsets.
//!
//! Specification: <https://www.gnu.org/software/binutils>, `include/aout/ar.h`; the BSD form:
//! <https://man.freebsd.org/cgi/man.cgi?query=ar&sektion=5>.

mod big;
mod error;
mod member;
mod write;

use object::read::archive::ArchiveFile;
use std::ops::Range;

use crate::container::view::View;
use crate::format::bytes::{Cursor, OutOfBounds, ReadAt};
use crate::format::magic::Magic;
use member::{MemberHeader, TERMINATOR, decimal, padding};

pub use error::ArchiveError;
pub use member::ArchiveMember;
pub use write::{ArchiveWriteError, Index, MemberPlan, NewMember, layout, plain_name, write};

/// An archive in a range of some data.
#[derive(Clone, Debug)]
pub struct Archive<'d, R> {
    /// Members in file order, without the special ones.
    pub members: Vec<ArchiveMember<'d>>,
    /// True if the members are other files.
    pub thin: bool,
    /// Symbol indices.
    #[cfg(feature = "tools")]
    indices: Vec<ArchiveMember<'d>>,
    data: R,
    range: Range<u64>,
}

/// A symbol in an archive's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexedSymbol<'d> {
    /// The symbol's name.
    pub name: &'d [u8],
    /// [`ArchiveMember::header_offset`] of the member that defines it.
    pub header_offset: u64,
}

/// Reads the members of an archive one after the other, without the special ones.
///
/// Ends after the first error.
#[derive(Clone, Debug)]
pub struct ArchiveMembers<'d, R> {
    thin: bool,
    /// Symbol indices so far.
    indices: Vec<ArchiveMember<'d>>,
    long_names: &'d [u8],
    cursor: Cursor<'d, R>,
    /// Members of an AIX archive, which are a chain, or the only error.
    listed: std::vec::IntoIter<Result<ArchiveMember<'d>, ArchiveError>>,
    data: R,
    range: Range<u64>,
}

impl<'d, R: ReadAt<'d>> Archive<'d, R> {
    /// Reads the members of the archive that a range of `data` consists of.
    ///
    /// # Errors
    ///
    /// Fails if the range is not an archive, or a member is not inside the range.
    pub fn parse(data: R, range: Range<u64>) -> Result<Self, ArchiveError> {
        let mut members = ArchiveMembers::new(data, range);
        let list = members.by_ref().collect::<Result<_, _>>()?;
        Ok(Self {
            members: list,
            thin: members.thin,
            #[cfg(feature = "tools")]
            indices: members.indices,
            data,
            range: members.range,
        })
    }

    /// Lists the members that are symbol indices, in file order.
    #[cfg(feature = "tools")]
    pub(crate) fn indices(&self) -> &[ArchiveMember<'d>] {
        &self.indices
    }

    /// Reads the symbol index. It is empty for an archive without an index, and for a big archive of AIX.
    ///
    /// # Errors
    ///
    /// Fails if the index is damaged.
    pub fn symbols(&self) -> Result<Vec<IndexedSymbol<'d>>, ArchiveError> {
        symbol_index(self.data, self.range.clone())
    }
}

/// Reads the symbol index of the archive that a range of `data` consists of, and no member. It is empty for an archive
/// without an index, and for a big archive of AIX.
///
/// # Errors
///
/// Fails if the range is not an archive, or the index is damaged.
pub fn symbol_index<'d, R: ReadAt<'d>>(
    data: R,
    range: Range<u64>,
) -> Result<Vec<IndexedSymbol<'d>>, ArchiveError> {
    if Magic::at(data, range.clone()) == Magic::BigArchive {
        return Ok(Vec::new());
    }
    let window = View::new(data, range.clone());
    let file = ArchiveFile::parse(window).map_err(damaged_index)?;
    let Some(symbols) = file.symbols().map_err(damaged_index)? else {
        return Ok(Vec::new());
    };
    let symbols = symbols.map(|symbol| {
        let symbol = symbol.map_err(damaged_index)?;
        let header_offset = range.start.saturating_add(symbol.offset().0);
        Ok(IndexedSymbol {
            name: symbol.name(),
            header_offset,
        })
    });
    symbols.collect()
}

impl<'d, R: ReadAt<'d>> ArchiveMembers<'d, R> {
    /// Starts with the archive that a range of `data` consists of. If it is not an archive, the first item says so.
    pub fn new(data: R, range: Range<u64>) -> Self {
        let cursor = Cursor::new(data, range.clone());
        let range = range.start..cursor.end();
        let mut members = Self {
            thin: false,
            indices: Vec::new(),
            long_names: &[],
            cursor: cursor.at(range.start.saturating_add(8)),
            listed: Vec::new().into_iter(),
            data,
            range: range.clone(),
        };
        let listed = match Magic::at(data, range.clone()) {
            Magic::Archive => return members,
            Magic::ThinArchive => {
                members.thin = true;
                return members;
            }
            Magic::BigArchive => match big::members(data, range) {
                Ok(list) => list.into_iter().map(Ok).collect(),
                Err(problem) => vec![Err(problem)],
            },
            _ => vec![Err(ArchiveError::Magic {
                offset: range.start,
            })],
        };
        members.listed = listed.into_iter();
        members.end();
        members
    }

    /// Reads no further member.
    fn end(&mut self) {
        self.cursor = self.cursor.at(self.cursor.end());
    }

    /// Reads up to the next member that is not special.
    fn advance(&mut self) -> Result<Option<ArchiveMember<'d>>, ArchiveError> {
        while self.cursor.position() < self.cursor.end() {
            let member = self.member()?;
            match member.name {
                b"//" => {
                    let offset = member.header_offset;
                    let content = member.content.clone();
                    let content = content.ok_or(ArchiveError::LongName { offset })?;
                    let names = Cursor::new(self.data, content).read(member.size, "long names");
                    self.long_names = names.map_err(ArchiveError::Outside)?;
                }
                name if is_index(name) => self.indices.push(member),
                _ => return Ok(Some(member)),
            }
        }
        Ok(None)
    }

    fn member(&mut self) -> Result<ArchiveMember<'d>, ArchiveError> {
        let cursor = &mut self.cursor;
        let offset = cursor.position();
        let header = cursor
            .read(MemberHeader::LEN, "member header")
            .map_err(ArchiveError::Outside)?;
        // The name is borrowed from the file; the record has the other fields.
        let record = MemberHeader::read(&mut Cursor::new(header, 0..MemberHeader::LEN));
        let MemberHeader {
            size: field,
            terminator: found,
            ..
        } = record.map_err(ArchiveError::Outside)?;
        if found != TERMINATOR {
            return Err(ArchiveError::Terminator { offset, found });
        }
        let size = decimal(&field).ok_or(ArchiveError::Size { offset, field })?;
        let written = header.get(..16).expect("the header is complete");

        let special =
            written.starts_with(b"/ ") || written.starts_with(b"//") || written.starts_with(b"/S");
        let mut content = if self.thin && !special {
            None
        } else {
            let range = OutOfBounds::check("content", cursor.position(), size, cursor.end());
            let range = range.map_err(|problem| ArchiveError::Content { offset, problem })?;
            let relative = range.end.saturating_sub(self.range.start);
            // The padding of the last member may be absent.
            *cursor = cursor.at(range.end.saturating_add(padding(relative)));
            Some(range)
        };
        let missing = ArchiveError::LongName { offset };
        let name = match written {
            [b'/', b'0'..=b'9', ..] => {
                // GNU's thin archives leave the slash behind a name of 15 bytes in the last byte of the field.
                let at = written.get(1..).map(|field| until(field, b' '));
                if at.is_some_and(|at| at.contains(&b':')) {
                    return Err(ArchiveError::Nested { offset });
                }
                let at = at.and_then(decimal);
                let name = at.and_then(|at| long_name(self.long_names, at));
                name.ok_or(missing)?
            }
            [b'#', b'1', b'/', b'0'..=b'9', ..] => {
                let len = written.get(3..).and_then(decimal);
                let (Some(len), Some(content)) = (len, &mut content) else {
                    return Err(missing);
                };
                self.name_in_content(len, content)
                    .map_err(|problem| ArchiveError::Content { offset, problem })?
            }
            [b'/', ..] => until(written, b' '),
            // GNU ends the name with a slash, so that it may contain spaces; BSD does not.
            _ if written.contains(&b'/') => until(written, b'/'),
            _ => written.trim_ascii_end(),
        };
        let size = content
            .as_ref()
            .map_or(size, |range| range.end.saturating_sub(range.start));
        Ok(ArchiveMember {
            name,
            header_offset: offset,
            size,
            content,
        })
    }

    /// Takes a name of `len` bytes from the start of a member's content.
    fn name_in_content(&self, len: u64, content: &mut Range<u64>) -> Result<&'d [u8], OutOfBounds> {
        let mut start = Cursor::new(self.data, content.clone());
        let name = start.read(len, "name")?;
        content.start = start.position();
        // NULs after the name align the content.
        Ok(until(name, 0))
    }
}

impl<'d, R: ReadAt<'d>> Iterator for ArchiveMembers<'d, R> {
    type Item = Result<ArchiveMember<'d>, ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(member) = self.listed.next() {
            return Some(member);
        }
        let member = self.advance();
        if member.is_err() {
            self.end();
        }
        member.transpose()
    }
}

fn damaged_index(error: object::read::Error) -> ArchiveError {
    ArchiveError::Index {
        cause: error.to_string(),
    }
}

/// Returns true for the name of an index of GNU, BSD or Windows.
fn is_index(name: &[u8]) -> bool {
    const INDICES: [&[u8]; 7] = [
        b"/",
        b"/SYM64/",
        b"/<ECSYMBOLS>/",
        b"__.SYMDEF",
        b"__.SYMDEF SORTED",
        b"__.SYMDEF_64",
        b"__.SYMDEF_64 SORTED",
    ];
    INDICES.contains(&name)
}

fn until(bytes: &[u8], end: u8) -> &[u8] {
    let mut parts = bytes.split(|byte| *byte == end);
    parts.next().expect("a split has a first part")
}

/// Returns the long name at `at`. GNU ends long names with a slash and a line feed, Windows with a NUL.
fn long_name(names: &[u8], at: u64) -> Option<&[u8]> {
    let rest = names.get(usize::try_from(at).ok()?..)?;
    let end = rest.iter().position(|byte| matches!(byte, b'\n' | 0))?;
    let name = rest.get(..end)?;
    Some(name.strip_suffix(b"/").unwrap_or(name))
}

#[cfg(test)]
mod tests;
