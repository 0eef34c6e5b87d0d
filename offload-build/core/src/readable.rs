//! Files that parsers read. A parser cannot tell a failed read from a damaged file, or from one without images; so the
//! cache keeps the error of the system, and the caller checks for it before it trusts the parser.

use crate::error::Error;
use std::error::Error as StdError;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use offload_formats_core::format::bytes::{ReadAt as _, ReadCache};
use offload_formats_core::format::pieces::{self, Piece, PieceSource};

/// An open file.
pub struct Readable {
    path: PathBuf,
    /// Size in bytes.
    size: u64,
    cache: ReadCache,
}

impl Readable {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let size = fs::metadata(path).map_err(crate::error::io(path))?.len();
        let range = 0..size;
        Self::edited(path, vec![Piece::Copy { input: 0, range }])
    }

    /// Opens a file whose bytes are edited: parsers read `pieces`, of which input 0 is the file.
    pub fn edited(path: &Path, pieces: Vec<Piece>) -> Result<Self, Error> {
        Self::edited_of(&[path], pieces)
    }

    /// Opens files for parsers that read `pieces` of them. Messages name the first.
    pub fn edited_of(paths: &[impl AsRef<Path>], pieces: Vec<Piece>) -> Result<Self, Error> {
        let open = |path: &Path| File::open(path).map_err(crate::error::io(path));
        let files = paths.iter().map(|path| open(path.as_ref()));
        let files: Vec<File> = files.collect::<Result<_, Error>>()?;
        let path = paths.first().map(|path| path.as_ref().to_owned());
        Ok(Self {
            path: path.unwrap_or_default(),
            size: pieces::size(&pieces),
            cache: ReadCache::new(PieceSource::new(pieces, files)),
        })
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the piece that copies all of it from input 0.
    pub fn all(&self) -> Vec<Piece> {
        let range = 0..self.size;
        vec![Piece::Copy { input: 0, range }]
    }

    /// Returns its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns all its bytes; `None` if they cannot be read. For texts, which parsers read as a whole.
    pub fn text(&self) -> Option<&[u8]> {
        self.data().read_at(0, self.size)
    }

    /// Returns its bytes, as parsers read them.
    pub fn data(&self) -> &ReadCache {
        &self.cache
    }

    /// Returns the result of `parser`, which gets all of the file. Errors name the file.
    pub fn parse<'s, T, E: Into<Box<dyn StdError + Send + Sync>>>(
        &'s self,
        parser: impl FnOnce(&'s ReadCache, Range<u64>) -> Result<T, E>,
    ) -> Result<T, Error> {
        let parsed = parser(self.data(), 0..self.size);
        self.check()?;
        parsed.map_err(|problem| Error::because(self.path.display(), problem))
    }

    /// Fails if the system did not let a part of it be read.
    pub fn check(&self) -> Result<(), Error> {
        match self.cache.take_error() {
            Some(failure) => Err(crate::error::io(&self.path)(failure)),
            None => Ok(()),
        }
    }
}

/// Tells whether there is a file of that name.
///
/// # Errors
///
/// When the system cannot say: another file may then be taken for it.
pub fn is_file(path: &Path) -> Result<bool, Error> {
    match fs::metadata(path) {
        Ok(data) => Ok(data.is_file()),
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(crate::error::io(path)(error)),
    }
}

fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | InvalidInput)
}
