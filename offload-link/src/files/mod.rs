//! Files: opens them, reads parts of them, copies them and writes whole ones.
//!
//! | file         | purpose                                                                 |
//! |--------------|-------------------------------------------------------------------------|
//! | `opened.rs`  | a file that stays open or is opened again for each read                |
//! | `reading.rs` | a file with a cache of its last blocks, for `ReadAt`                   |
//! | `failure.rs` | reads and temporary files that failed: parsers cannot tell them from a damaged file |
//! | `scratch.rs` | temporary files without names, and that for unpacked data               |
//! | `thin.rs`    | opens the members of thin archives, with limits                         |
//! | `copy.rs`    | copies bytes from file to file                                          |
//! | `new_file.rs` | a new file in the place of an old one                                 |
//! | `replacement.rs` | a file under a temporary name, until it is complete              |
//! | `write.rs`   | whole files under their names                                           |

mod copy;
mod failure;
mod new_file;
mod opened;
mod reading;
mod replacement;
mod scratch;
mod thin;
mod write;

pub(crate) use copy::{CopyError, copy_range};
pub(crate) use failure::{ReadFailure, check, check_unpacked};
pub(crate) use new_file::{NewFile, follow};
pub(crate) use opened::{Opened, fill};
pub(crate) use reading::Reading;
pub(crate) use scratch::{file_of, reading_of, scratch, temporary};
pub(crate) use thin::{MemberError, Nesting, ThinMember, open_member};
pub(crate) use write::{
    print_pieces, read_pieces, write_beside, write_pieces, write_pieces_beside, write_pieces_by,
};
