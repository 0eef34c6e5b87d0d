//! Members of thin archives, which are files that the archive names.
//!
//! The author of the archive chose these names, so a member is opened only if it is a regular file no larger than the
//! archive says. Nested archives are limited in depth and in number of members, and must not contain themselves.

use std::cell::Cell;
use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use offload_formats::escape::terminal;

use super::opened::Opened;
use crate::platform::{self, is_absent};
use crate::stamp::Stamp;

/// Limit on the depth of nested thin archives, the same as for other archives.
const MAX_DEPTH: usize = 16;

/// Limit on the members of nested thin archives of one input. `ar` writes no nested ones: it adds the members of the
/// inner archive to the outer one.
const MAX_NESTED: usize = 10_000;

/// Opens a member of the thin archive at `archive`. `size` is the size in the member's header.
pub(crate) fn open_member(
    archive: &Path,
    name: &[u8],
    size: u64,
) -> Result<ThinMember, MemberError> {
    let folder = archive.parent().unwrap_or(Path::new(""));
    let path = folder.join(platform::os_string(name.to_vec()));
    let opened = Opened::open(&path).and_then(|file| Ok((file.metadata()?, file)));
    let wrong = |problem| MemberError {
        path: path.clone(),
        problem,
    };
    let (metadata, file) = opened.map_err(|error| wrong(ThinProblem::Open(error)))?;
    if !metadata.is_file() {
        return Err(wrong(ThinProblem::NotRegular));
    }
    let found = metadata.len();
    if found > size {
        return Err(wrong(ThinProblem::Larger { found, size }));
    }
    Ok(ThinMember {
        path,
        file,
        metadata,
    })
}

/// An open member of a thin archive.
#[derive(Debug)]
pub(crate) struct ThinMember {
    pub path: PathBuf,
    pub file: File,
    pub metadata: Metadata,
}

/// The thin archives around a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nesting {
    /// Outermost archive first. The file of the command line is missing; if it is among its own members, it appears
    /// once more.
    archives: Vec<Stamp>,
    /// Number of members of nested thin archives that were opened for the same input.
    nested: Rc<Cell<usize>>,
}

impl Nesting {
    /// Opens a member of the innermost archive, which is at `archive`. Returns the nesting of the member's own
    /// members, too.
    pub(crate) fn open_member(
        &self,
        archive: &Path,
        name: &[u8],
        size: u64,
    ) -> Result<(ThinMember, Self), MemberError> {
        let member = open_member(archive, name, size)?;
        let stamp = Stamp::of(&member.metadata);
        let wrong = |problem| {
            let path = member.path.clone();
            Err(MemberError { path, problem })
        };
        if self.archives.contains(&stamp) {
            return wrong(ThinProblem::Cycle);
        }
        if self.archives.len() >= MAX_DEPTH {
            return wrong(ThinProblem::Depth);
        }
        if !self.archives.is_empty() {
            self.nested.set(self.nested.get() + 1);
        }
        if self.nested.get() > MAX_NESTED {
            return wrong(ThinProblem::TooMany);
        }
        let mut archives = self.archives.clone();
        archives.push(stamp);
        let nested = Rc::clone(&self.nested);
        Ok((member, Self { archives, nested }))
    }
}

/// A member of a thin archive that cannot be read.
#[derive(Debug)]
pub(crate) struct MemberError {
    path: PathBuf,
    problem: ThinProblem,
}

#[derive(Debug)]
enum ThinProblem {
    Open(io::Error),
    NotRegular,
    Larger { found: u64, size: u64 },
    Cycle,
    Depth,
    TooMany,
}

impl MemberError {
    /// Tells whether linkers can continue without the member: it does not exist, or it is newer than the archive.
    pub(crate) fn is_of_archive(&self) -> bool {
        match &self.problem {
            ThinProblem::Open(error) => is_absent(error),
            ThinProblem::Larger { .. } => true,
            _ => false,
        }
    }

    /// Returns the path and the system's error if the member cannot be opened.
    pub(crate) fn unopened(&self) -> Option<(&Path, &io::Error)> {
        match &self.problem {
            ThinProblem::Open(error) => Some((&self.path, error)),
            _ => None,
        }
    }
}

impl fmt::Display for MemberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = terminal(&*self.path);
        match &self.problem {
            ThinProblem::Open(error) => write!(f, "cannot open `{path}`: {error}"),
            ThinProblem::NotRegular => write!(f, "`{path}` is not a regular file"),
            ThinProblem::Larger { found, size } => write!(
                f,
                "`{path}` has {found:#x} bytes, expected at most {size:#x}, the size in the archive\n\
                 hint: create the archive again"
            ),
            ThinProblem::Cycle => write!(f, "the thin archive `{path}` contains itself"),
            ThinProblem::Depth => write!(f, "thin archives nested more than {MAX_DEPTH} deep"),
            ThinProblem::TooMany => {
                write!(f, "more than {MAX_NESTED} members of nested thin archives")
            }
        }
    }
}

impl std::error::Error for MemberError {}
