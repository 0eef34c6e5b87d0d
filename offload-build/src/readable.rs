//! Files that parsers read. A parser takes a failing disk for a damaged file, or for one without images; so the reader
//! keeps what the system said, and the caller asks for it before it believes the parser.

use crate::error::Error;
use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use offload_formats::format::bytes::ReadCache;

/// An open file.
pub(crate) struct Readable {
    path: PathBuf,
    cache: ReadCache<Reader>,
    failure: Rc<RefCell<Option<io::Error>>>,
}

impl Readable {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(crate::error::io(path))?;
        let failure = Rc::default();
        Ok(Self {
            path: path.to_owned(),
            cache: ReadCache::new(Reader {
                file,
                failure: Rc::clone(&failure),
            }),
            failure,
        })
    }

    /// Returns its bytes, as parsers read them.
    pub(crate) fn data(&self) -> &ReadCache<impl Read + Seek> {
        &self.cache
    }

    /// Fails if the system did not let a part of it be read.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.failure.take() {
            Some(failure) => Err(crate::error::io(&self.path)(failure)),
            None => Ok(()),
        }
    }
}

/// A file that keeps its first failure.
struct Reader {
    file: File,
    failure: Rc<RefCell<Option<io::Error>>>,
}

impl Reader {
    fn note<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            if kind != io::ErrorKind::Interrupted {
                self.failure.borrow_mut().get_or_insert(error);
            }
            kind.into()
        })
    }
}

impl Read for Reader {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let result = self.file.read(room);
        self.note(result)
    }
}

impl Seek for Reader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let result = self.file.seek(to);
        self.note(result)
    }
}

/// Tells whether there is a file of that name.
///
/// # Errors
///
/// When the system cannot say: another file may then be taken for it.
pub(crate) fn is_file(path: &Path) -> Result<bool, Error> {
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
