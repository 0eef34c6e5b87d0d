//! Bytes of an image, read on demand: an image that is not linked is never read.
//!
//! | bytes                                       | when and how they are read                          |
//! |---------------------------------------------|-----------------------------------------------------|
//! | of a small file                             | once, and stay in memory                            |
//! | of a large one                              | in requested ranges, and copied by the system |
//! | of a compressed bundle that was not unpacked | on demand; large images stay in a temporary file |
//! | of anything else that had to be unpacked    | not again: they are in a temporary file             |
//!
//! So the memory of a link does not grow with its archives. A second read of a file fails if the file has changed.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use offload_formats::format::bytes::{ReadAt, ReadCache, SourceError};
use offload_formats::format::compressed_bundle::{self, CompressedBundle};
use offload_formats::format::pieces::{Piece, PieceSource};
use offload_formats::format::unpacked::Unpacked;

use crate::decompressed;
use crate::files::{self, Opened, Reading, copy_range};
use crate::linker_wrapper::inputs::blocks::Blocks;
use crate::platform::FileExt;
use crate::stamp::Stamp;

/// Limit on an image of a compressed bundle that is unpacked to memory, in bytes.
const MAX_IN_MEMORY: u64 = 16 << 20;

/// Size in bytes of the largest image of a large file that one read gives to a parser whole. Its start and its end would
/// be two reads of blocks.
const SMALL: usize = 16 << 10;

/// The bytes of an image.
#[derive(Debug)]
pub(crate) struct ImageBytes {
    /// File that contains it.
    path: PathBuf,
    /// Stamp of the file at the first look.
    stamp: Option<Stamp>,
    place: ImagePlace,
    /// Size in bytes.
    size: u64,
}

/// Place of the bytes.
#[derive(Debug)]
enum ImagePlace {
    /// Bytes of a small file, or read from it.
    Small(Range<u64>, OnceLock<Vec<u8>>),
    /// Range of a large file, and the descriptor with which the link examined it.
    Large(Range<u64>, Option<Arc<File>>),
    /// Range in the content of a compressed bundle, and the temporary file of a large image.
    Packed(Arc<CompressedBundle>, Range<u64>, OnceLock<File>, Arc<Disk>),
    /// Range of unpacked data.
    Unpacked(Unpacked, Range<u64>),
}

/// Bytes that the link may still decompress to files.
#[derive(Debug)]
pub(crate) struct Disk {
    limit: u64,
    left: AtomicU64,
}

impl Disk {
    /// Returns a budget of `limit` bytes.
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        let left = AtomicU64::new(limit);
        Arc::new(Self { limit, left })
    }

    /// Takes `size` bytes from the budget, or fails.
    fn take(&self, size: u64) -> io::Result<()> {
        let order = Ordering::Relaxed;
        let taken = self
            .left
            .fetch_update(order, order, |left| left.checked_sub(size));
        let limit = self.limit;
        taken.map(drop).map_err(|_| {
            io::Error::other(format!(
                "the compressed images of this link are larger than the allowed {limit:#x}\nhint: {}",
                decompressed::hint()
            ))
        })
    }
}

impl ImageBytes {
    /// Returns the bytes of a range of a file.
    pub(crate) fn in_file(path: &Path, blocks: &Blocks, range: Range<u64>) -> Self {
        let size = range.end.saturating_sub(range.start);
        let place = match blocks.is_kept() {
            true => {
                let known = blocks.known(range.clone()).map(<[u8]>::to_vec);
                ImagePlace::Small(range, known.map_or_else(OnceLock::new, OnceLock::from))
            }
            false => ImagePlace::Large(range, blocks.descriptor()),
        };
        Self::new(path, blocks, place, size)
    }

    /// Returns the bytes of a range of unpacked data.
    pub(crate) fn unpacked(
        path: &Path,
        blocks: &Blocks,
        bytes: Unpacked,
        range: Range<u64>,
    ) -> Self {
        let size = range.end.saturating_sub(range.start);
        Self::new(path, blocks, ImagePlace::Unpacked(bytes, range), size)
    }

    /// Returns the bytes of a range in a compressed bundle, without unpacking it.
    pub(crate) fn packed(
        path: &Path,
        blocks: &Blocks,
        bundle: Arc<CompressedBundle>,
        range: Range<u64>,
        disk: &Arc<Disk>,
    ) -> Self {
        let size = range.end.saturating_sub(range.start);
        let place = ImagePlace::Packed(bundle, range, OnceLock::new(), Arc::clone(disk));
        Self::new(path, blocks, place, size)
    }

    fn new(path: &Path, blocks: &Blocks, place: ImagePlace, size: u64) -> Self {
        Self {
            path: path.to_owned(),
            stamp: blocks.stamp().cloned(),
            place,
            size,
        }
    }

    /// Returns the file that contains it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Tells whether both are the same range of the same file.
    pub(crate) fn is_same_place(&self, other: &Self) -> bool {
        let same = match (&self.place, &other.place) {
            (ImagePlace::Small(one, _), ImagePlace::Small(two, _)) => one == two,
            (ImagePlace::Large(one, _), ImagePlace::Large(two, _)) => one == two,
            (ImagePlace::Packed(one, range, ..), ImagePlace::Packed(two, other, ..)) => {
                (one, range) == (two, other)
            }
            _ => false,
        };
        same && self.stamp == other.stamp && self.path == other.path
    }

    /// Returns all bytes.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or has changed.
    pub(crate) fn all(&self) -> io::Result<Cow<'_, [u8]>> {
        Ok(match &self.place {
            ImagePlace::Small(range, known) => Cow::Borrowed(match known.get() {
                Some(known) => known,
                None => {
                    let read = self.with_file(|file| range_of(file, range))?;
                    known.get_or_init(|| read)
                }
            }),
            ImagePlace::Large(range, _) => {
                Cow::Owned(self.with_file(|file| range_of(file, range))?)
            }
            ImagePlace::Packed(..) if self.is_spooled() => {
                Cow::Owned(range_of(self.spooled()?, &(0..self.size))?)
            }
            ImagePlace::Packed(..) => {
                let mut bytes = Vec::new();
                self.unpack(&mut bytes)?;
                Cow::Owned(bytes)
            }
            ImagePlace::Unpacked(bytes, range) => {
                let read = bytes.read(range);
                Cow::Owned(read.ok_or(io::ErrorKind::UnexpectedEof)?)
            }
        })
    }

    /// Passes the bytes to `read`, which reads some of them. Offsets start at 0.
    ///
    /// # Errors
    ///
    /// Fails like [`Self::all`].
    pub(crate) fn read<T>(&self, read: impl FnOnce(&ImageData<'_>) -> T) -> io::Result<T> {
        match &self.place {
            ImagePlace::Large(range, Some(file)) => {
                let data = match usize::try_from(self.size) {
                    Ok(size @ ..=SMALL) => {
                        let mut bytes = vec![0; size];
                        let done = file.read_exact_at(&mut bytes, range.start);
                        done.map(|()| ImageData::Known(Cow::Owned(bytes)))
                    }
                    _ => Ok(self.cached(Arc::clone(file), range.clone())),
                };
                self.unchanged(file, data.map(|data| read(&data)))
            }
            ImagePlace::Packed(..) if self.is_spooled() => {
                let spooled = self.spooled()?.try_clone()?;
                Ok(read(&self.cached(spooled, 0..self.size)))
            }
            ImagePlace::Unpacked(bytes, range) => {
                let source = PieceSource::new(pieces(range), vec![bytes.source()]);
                Ok(read(&ImageData::Cached(ReadCache::new(source))))
            }
            _ => Ok(read(&ImageData::Known(self.all()?))),
        }
    }

    /// Writes the bytes to a new file.
    ///
    /// # Errors
    ///
    /// Fails like [`Self::all`], and if the file cannot be written.
    pub(crate) fn copy_to(&self, path: &Path) -> io::Result<()> {
        match &self.place {
            ImagePlace::Large(range, _) => {
                let out = File::create(path)?;
                self.with_file(|file| Ok(copy_range(file, range.clone(), &out, 0)?))
            }
            ImagePlace::Packed(_, _, spooled, disk) => {
                let mut out = File::create(path)?;
                match spooled.get() {
                    Some(file) => Ok(copy_range(file, 0..self.size, &out, 0)?),
                    None => {
                        disk.take(self.size)?;
                        self.unpack(&mut out)
                    }
                }
            }
            ImagePlace::Unpacked(bytes, range) => {
                let source = PieceSource::new(pieces(range), vec![bytes.source()]);
                let mut source = BufReader::with_capacity(1 << 17, source);
                io::copy(&mut source, &mut File::create(path)?).map(drop)
            }
            ImagePlace::Small(..) => fs::write(path, self.all()?),
        }
    }

    /// Tells whether it is unpacked to a file because it is too large for memory.
    fn is_spooled(&self) -> bool {
        self.size > MAX_IN_MEMORY
    }

    /// Returns the unnamed file with the unpacked image, and unpacks it at the first call.
    fn spooled(&self) -> io::Result<&File> {
        let ImagePlace::Packed(_, _, spooled, disk) = &self.place else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        if let Some(file) = spooled.get() {
            return Ok(file);
        }
        disk.take(self.size)?;
        let mut file = files::temporary()?;
        self.unpack(&mut file)?;
        Ok(spooled.get_or_init(|| file))
    }

    /// Unpacks the image from its compressed bundle.
    fn unpack(&self, out: &mut impl Write) -> io::Result<()> {
        let ImagePlace::Packed(bundle, range, ..) = &self.place else {
            return Ok(());
        };
        self.with_file(|mut source| {
            source.seek(SeekFrom::Start(bundle.data.start))?;
            let size = bundle.data.end.saturating_sub(bundle.data.start);
            let source = BufReader::with_capacity(1 << 17, source.take(size));
            let done = bundle.extract_from(source, range.clone(), out);
            done.map_err(|problem| match problem {
                compressed_bundle::CompressedBundleError::Output { .. } => {
                    io::Error::other(format!("{problem}\nhint: {}", decompressed::FULL))
                }
                problem => io::Error::other(problem),
            })
        })
    }

    /// Returns a range of an open file for a parser.
    fn cached(&self, file: impl Into<Arc<File>>, range: Range<u64>) -> ImageData<'static> {
        let file = Reading::new(Opened::new(&self.path, file, None));
        ImageData::Cached(ReadCache::new(file.part(range)))
    }

    /// Opens the file for `read`, and fails if the file has changed after that.
    fn with_file<T>(&self, read: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        let file = Opened::open(&self.path)?;
        let found = read(&file);
        self.unchanged(&file, found)
    }

    /// Returns what was found in the file, or the error for a file that has changed since the link examined it.
    fn unchanged<T>(&self, file: &File, found: io::Result<T>) -> io::Result<T> {
        let now = Stamp::of(&file.metadata()?);
        match &self.stamp {
            Some(stamp) if *stamp != now => {
                Err(io::Error::other("the file changed while it was linked"))
            }
            _ => found,
        }
    }
}

/// Bytes of an image for a parser.
pub(crate) enum ImageData<'a> {
    /// All bytes.
    Known(Cow<'a, [u8]>),
    /// A cache of the ranges that were read.
    Cached(ReadCache),
}

impl<'d> ReadAt<'d> for &'d ImageData<'_> {
    fn size(self) -> Option<u64> {
        match self {
            ImageData::Known(bytes) => Some(bytes.len() as u64),
            ImageData::Cached(cache) => cache.size(),
        }
    }

    fn first_error(self) -> Option<SourceError> {
        match self {
            ImageData::Known(_) => None,
            ImageData::Cached(cache) => cache.first_error(),
        }
    }

    fn read_at(self, offset: u64, size: u64) -> Option<&'d [u8]> {
        match self {
            ImageData::Known(bytes) => (&**bytes).read_at(offset, size),
            ImageData::Cached(cache) => cache.read_at(offset, size),
        }
    }

    fn read_until(self, range: Range<u64>, delimiter: u8) -> Option<&'d [u8]> {
        match self {
            ImageData::Known(bytes) => (&**bytes).read_until(range, delimiter),
            ImageData::Cached(cache) => cache.read_until(range, delimiter),
        }
    }
}

/// Returns the piece that is a range of the only input.
fn pieces(range: &Range<u64>) -> Vec<Piece> {
    let range = range.clone();
    vec![Piece::Copy { input: 0, range }]
}

/// Reads a range of a file. Allocates memory only after a check that the file is long enough.
fn range_of(file: &File, range: &Range<u64>) -> io::Result<Vec<u8>> {
    let end = file.metadata()?.len();
    let size = range.end.checked_sub(range.start);
    let size = size.filter(|_| range.end <= end);
    let size = size.and_then(|size| usize::try_from(size).ok());
    let mut bytes = vec![0; size.ok_or(io::ErrorKind::UnexpectedEof)?];
    file.read_exact_at(&mut bytes, range.start)?;
    Ok(bytes)
}
