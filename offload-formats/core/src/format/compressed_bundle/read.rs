//! Decompresses bundles: whole, or only their headers.

use std::io::{self, BufRead, Read, Write};
use std::ops::Range;
use std::sync::mpsc;
use std::thread;

use crate::md5::Md5;

use super::{CompressedBundle, CompressedBundleError, head_of};
use crate::format::bundle::{self, Bundle};
use crate::format::bytes::{Cursor, OutOfBounds, ReadAt, SourceError};
use crate::format::codec::{self, BoundedStream, Decoder, OnceStream};
use crate::format::magic::Magic;
use crate::format::unpacked::{Scratch, Unpacked};

/// Maximum size of a bundle's headers for [`CompressedBundle::contents`].
const MAX_HEADERS: u64 = 16 << 20;

/// Size from which a thread of its own hashes a bundle. Hashing takes longer than decompressing;
/// below this size starting a thread takes longer.
const THREADED: u64 = 4 << 20;

/// Maximum number of buffers that wait for the hash.
const AHEAD: usize = 8;

/// Runs `work`, which outputs bytes, and hashes them in their order.
fn hashed<T>(size: u64, work: impl FnOnce(&mut dyn FnMut(&[u8])) -> T) -> (T, Md5) {
    thread::scope(|scope| {
        let (full, waiting) = mpsc::sync_channel::<Vec<u8>>(AHEAD);
        let (hashed, empty) = mpsc::channel::<Vec<u8>>();
        let hasher = (size >= THREADED).then(|| {
            thread::Builder::new().spawn_scoped(scope, move || {
                let mut hash = Md5::new();
                for bytes in waiting {
                    hash.update(&bytes);
                    // The receiver is gone after the last buffer.
                    let _ = hashed.send(bytes);
                }
                hash
            })
        });
        // Without a thread, or for small sizes, hashes in this thread.
        let Some(Ok(hasher)) = hasher else {
            let mut hash = Md5::new();
            let done = work(&mut |bytes| hash.update(bytes));
            return (done, hash);
        };
        let done = work(&mut |bytes| {
            let mut buffer = empty.try_recv().unwrap_or_default();
            buffer.clear();
            buffer.extend_from_slice(bytes);
            // The thread ends only after `full` is dropped.
            let _ = full.send(buffer);
        });
        drop(full);
        (done, hasher.join().expect("hashing does not panic"))
    })
}

impl CompressedBundle {
    /// Decompresses the bundle in `data`, the file that it was parsed from, to `out`. Compares size
    /// and hash; the error comes after the output. Returns the end of the compressed data, from the
    /// start of the file. With zlib in version 1, [`Self::data`] may continue after it.
    ///
    /// Writes no more than the uncompressed size in the header. Memory grows with the decompressed
    /// data, not with the size in the header. Callers that do not trust the header compare
    /// [`Self::uncompressed_size`] first.
    ///
    /// # Errors
    ///
    /// Fails if the data is damaged, or has another size or hash; if `out` fails; if the method is not
    /// built in.
    pub fn decompress_to<'d, R: ReadAt<'d>>(
        &self,
        data: R,
        out: &mut impl Write,
    ) -> Result<u64, CompressedBundleError> {
        self.decompress_from(self.stream(data), out)
    }

    /// Decompresses a stream, which starts at [`Self::data`]; nothing of it is kept. See
    /// [`Self::decompress_to`].
    ///
    /// # Errors
    ///
    /// Fails as [`Self::decompress_to`] does.
    pub fn decompress_from(
        &self,
        source: impl BufRead,
        out: &mut impl Write,
    ) -> Result<u64, CompressedBundleError> {
        let mut decoder = self.decoder(source)?;
        let claimed = self.uncompressed_size;
        let (written, hash) = hashed(claimed, |hash| {
            let (mut written, mut buffer) = (0_u64, vec![0; codec::BUFFER]);
            loop {
                let count = decoder.read(&mut buffer).map_err(damaged)?;
                if count == 0 {
                    return Ok(written);
                }
                written = written.saturating_add(count as u64);
                if written > claimed {
                    return Err(CompressedBundleError::Longer { claimed });
                }
                let bytes = buffer.get(..count);
                let bytes = bytes.expect("the decoder fills no more than the buffer");
                hash(bytes);
                out.write_all(bytes)?;
            }
        });
        let written = written?;
        if written < claimed {
            return Err(CompressedBundleError::Shorter {
                claimed,
                found: written,
            });
        }
        let found = head_of(hash);
        if found != self.hash {
            let claimed = self.hash;
            return Err(CompressedBundleError::Hash { claimed, found });
        }
        Ok(decoder.into_source().position)
    }

    /// Decompresses a stream, like [`Self::decompress_from`], and writes one range of it to `out`.
    /// Memory does not grow with either.
    ///
    /// # Errors
    ///
    /// Fails as [`Self::decompress_from`] does.
    pub fn extract_from(
        &self,
        source: impl BufRead,
        range: Range<u64>,
        out: &mut impl Write,
    ) -> Result<(), CompressedBundleError> {
        let mut part = RangeWriter {
            position: 0,
            range,
            out,
        };
        self.decompress_from(source, &mut part).map(drop)
    }

    /// Decompresses the bundle in `data`, like [`Self::decompress_to`], and writes one range of it
    /// to `out`.
    ///
    /// # Errors
    ///
    /// Fails as [`Self::decompress_to`] does.
    #[doc(hidden)]
    pub fn extract<'d, R: ReadAt<'d>>(
        &self,
        data: R,
        range: Range<u64>,
        out: &mut impl Write,
    ) -> Result<(), CompressedBundleError> {
        self.extract_from(self.stream(data), range, out)
    }

    /// Decompresses the bundle into `scratch`.
    ///
    /// # Errors
    ///
    /// Fails as [`Self::decompress_to`] does, and if the uncompressed size exceeds `limit` or `scratch` fails.
    pub fn unpack<'d, R: ReadAt<'d>>(
        &self,
        data: R,
        limit: u64,
        scratch: &Scratch,
    ) -> Result<Unpacked, CompressedBundleError> {
        let claimed = self.uncompressed_size;
        if claimed > limit {
            return Err(CompressedBundleError::Limit { claimed, limit });
        }
        scratch.keep(claimed, |out| self.decompress_to(data, out).map(drop))
    }

    /// Reads the binary bundle inside; `None` if the content is not a binary bundle. Decompresses
    /// only its headers. Offsets are from the start of the uncompressed bundle. Ranges are checked
    /// against the uncompressed size in the header; neither that size nor the hash is checked.
    ///
    /// # Errors
    ///
    /// Fails if the data or a header is damaged, an image exceeds the bundle, the headers exceed 16 MiB,
    /// or the method is not built in.
    pub fn contents<'d, R: ReadAt<'d>>(
        &self,
        data: R,
    ) -> Result<Option<Bundle>, CompressedBundleError> {
        let mut decoder = self.decoder(self.stream(data))?;
        let (mut bytes, mut wanted) = (Vec::new(), codec::BUFFER as u64);
        let claimed = self.uncompressed_size;
        loop {
            let missing = wanted.saturating_sub(bytes.len() as u64);
            let mut more = decoder.by_ref().take(missing);
            more.read_to_end(&mut bytes).map_err(damaged)?;
            let found = bytes.len() as u64;
            if found > claimed {
                return Err(CompressedBundleError::Longer { claimed });
            }
            if found < wanted && found < claimed {
                return Err(CompressedBundleError::Shorter { claimed, found });
            }
            if Magic::of(&bytes) != Magic::Bundle {
                return Ok(None);
            }
            let start = PartialData {
                bytes: &bytes,
                size: claimed,
            };
            match Bundle::parse(start, 0, claimed) {
                Err(bundle::BundleError {
                    problem: bundle::BundleProblem::Outside(OutOfBounds { offset, size, .. }),
                    ..
                }) if offset.checked_add(size).is_some_and(|end| end <= claimed) => {
                    // Decompresses twice as much as needed, so that headers are read only a few
                    // times.
                    let end = offset.saturating_add(size);
                    if end > MAX_HEADERS {
                        let (claimed, limit) = (end, MAX_HEADERS);
                        return Err(CompressedBundleError::Limit { claimed, limit });
                    }
                    wanted = end.max(wanted.saturating_mul(2)).min(MAX_HEADERS);
                }
                parsed => return parsed.map(Some).map_err(CompressedBundleError::Bundle),
            }
        }
    }

    fn stream<'d, R: ReadAt<'d>>(&self, data: R) -> OnceStream<'d, R> {
        OnceStream::new(Cursor::new(data, self.data.clone()))
    }

    fn decoder<B: BufRead>(
        &self,
        source: B,
    ) -> Result<Decoder<BoundedStream<B>>, CompressedBundleError> {
        let source = BoundedStream {
            source,
            position: self.data.start,
            end: self.data.end,
        };
        let method = self.method;
        let decoder = Decoder::new(method, source).map_err(damaged)?;
        decoder.ok_or(CompressedBundleError::NotBuilt { method })
    }
}

fn damaged(problem: io::Error) -> CompressedBundleError {
    let message = problem.to_string();
    CompressedBundleError::Data { message }
}

/// Forwards the bytes of a range, and counts the others.
struct RangeWriter<'a, W> {
    position: u64,
    range: Range<u64>,
    out: &'a mut W,
}

impl<W: Write> Write for RangeWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let place = |offset: u64| {
            let place = offset.saturating_sub(self.position);
            usize::try_from(place).map_or(bytes.len(), |place| place.min(bytes.len()))
        };
        let wanted = place(self.range.start)..place(self.range.end);
        let wanted = bytes.get(wanted).expect("both ends are in the buffer");
        self.position = self.position.saturating_add(bytes.len() as u64);
        self.out.write_all(wanted)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The first bytes of data that has `size` bytes according to a header.
#[derive(Clone, Copy)]
struct PartialData<'a> {
    bytes: &'a [u8],
    size: u64,
}

impl<'a> ReadAt<'a> for PartialData<'a> {
    fn size(self) -> Option<u64> {
        Some(self.size)
    }

    fn first_error(self) -> Option<SourceError> {
        None
    }

    fn read_at(self, offset: u64, size: u64) -> Option<&'a [u8]> {
        self.bytes.read_at(offset, size)
    }

    fn read_until(self, range: Range<u64>, end: u8) -> Option<&'a [u8]> {
        self.bytes.read_until(range, end)
    }
}
