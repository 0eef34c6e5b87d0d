//! Files: opens them, reads parts of them, copies them and writes whole ones.
//!
//! | file         | purpose                                                                 |
//! |--------------|-------------------------------------------------------------------------|
//! | `opened.rs`  | a file that stays open or is opened again for each read                |
//! | `reading.rs` | a file with a cache of its last blocks, for `ReadAt`                   |
//! | `failure.rs` | the first read that failed: parsers cannot tell it from a damaged file  |
//! | `stamp.rs`   | detects files that changed after the first look                         |
//! | `thin.rs`    | opens the members of thin archives, with limits                         |
//! | `copy.rs`    | copies bytes from file to file                                          |
//! | `write.rs`   | whole files under their names                                           |

mod copy;
mod failure;
mod opened;
mod reading;
mod stamp;
mod thin;
mod write;

pub(crate) use copy::{CopyError, copy_range, shrunk};
pub(crate) use failure::{ReadFailure, check};
pub(crate) use opened::Opened;
pub(crate) use reading::{Here, Reading};
pub(crate) use stamp::Stamp;
pub(crate) use thin::{MemberError, Nesting, ThinMember, open_member};
pub(crate) use write::{read_pieces, write_beside, write_pieces, write_pieces_beside};

use std::ops::Range;

/// Returns the bytes of a range that the parser of `bytes` checked.
pub(crate) fn part<'a>(bytes: &'a [u8], range: &Range<u64>) -> &'a [u8] {
    let place = |offset| usize::try_from(offset).ok();
    let part = place(range.start).zip(place(range.end));
    part.and_then(|(start, end)| bytes.get(start..end))
        .expect("the parser checked the range")
}
