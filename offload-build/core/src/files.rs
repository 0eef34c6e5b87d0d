//! Files that are complete under their names: written beside their place and renamed.

use offload_formats_core::format::compressed_bundle::{Compression, compress_to};
use offload_formats_core::format::pieces::{self, Piece, PieceSource};
use offload_formats_core::format::unpacked::Scratch;
use offload_formats_core::md5::{self, Md5};
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufRead, Read, Seek, Write};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

/// Returns the path of the file beside `path` whose name has `ending` appended.
#[must_use]
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The name under which an output is made, before it is renamed: beside its place.
#[must_use]
pub fn part(output: &Path) -> PathBuf {
    beside(output, ".part")
}

/// Returns a path without `.`, and without `..` after a name, as Cargo and linkers do, which leave links as they are.
#[must_use]
pub fn normalized(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

/// Bytes of the largest program whose content identifies it. Scripts around compilers are small, and their sizes often stay.
const SMALL: u64 = 64 << 10;

/// Identifies a program without starting it: its real path, its size, when it was installed, and the content of a small one.
#[must_use]
pub fn identity(program: &Path) -> String {
    let real = program
        .canonicalize()
        .unwrap_or_else(|_| program.to_owned());
    let Ok(data) = fs::metadata(&real) else {
        return real.display().to_string();
    };
    let time = data
        .modified()
        .ok()
        .and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    let mut text = format!(
        "{} {} {}",
        real.display(),
        data.len(),
        time.unwrap_or_default().as_nanos()
    );
    if data.is_file() && data.len() <= SMALL {
        let content = fs::read(&real).unwrap_or_default();
        text += &format!(" {}", md5::hex(&Md5::digest(content)));
    }
    text
}

/// Removes a file, if it is there.
///
/// # Errors
///
/// When it stays.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Writes a file beside its place and renames it; a file that already holds `bytes` is left alone.
///
/// # Errors
///
/// When it cannot be written; what was there before is then untouched.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let same_size = fs::metadata(path).is_ok_and(|data| data.len() == bytes.len() as u64);
    if same_size && fs::read(path)? == bytes {
        return Ok(());
    }
    replace(path, |part| fs::write(part, bytes))
}

/// Writes `pieces`, which copy ranges of the files `inputs`, beside their place and renames them; a file that already has
/// these bytes is left alone. Nothing is held in memory.
///
/// # Errors
///
/// When an input cannot be read or is too short, or the file cannot be written; what was there before is then untouched.
pub fn write_pieces(path: &Path, pieces: &[Piece], inputs: &[impl AsRef<Path>]) -> io::Result<()> {
    replace(path, |part| copy_pieces(part, pieces, inputs))
}

/// Writes the bytes of a reader like [`write_pieces`].
///
/// # Errors
///
/// Those of [`write_pieces`].
pub fn write_from(path: &Path, reader: impl Read) -> io::Result<()> {
    replace(path, |part| {
        io::copy(&mut buffered(reader), &mut fs::File::create(part)?).map(drop)
    })
}

/// Returns what keeps unpacked data: a file in the folder for temporary files, which has no name once it is open. Nobody else
/// can guess the name or read the file.
pub fn scratch() -> Scratch {
    Scratch::new(|| {
        for count in 0_u64.. {
            let number = RandomState::new().hash_one(count);
            let path = std::env::temp_dir().join(format!("offload-build-{number:016x}.unpacked"));
            let mut options = fs::OpenOptions::new();
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            match options.read(true).write(true).create_new(true).open(&path) {
                Ok(file) => {
                    fs::remove_file(&path)?;
                    return Ok(Box::new(file));
                }
                // Another build has just created it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    })
}

/// Writes a bundle of `pieces` like [`write_pieces`], compressed.
///
/// # Errors
///
/// Those of [`write_pieces`], and when the bundle is too large for its format.
pub fn write_compressed(
    path: &Path,
    pieces: Vec<Piece>,
    inputs: &[impl AsRef<Path>],
    how: Compression,
) -> io::Result<()> {
    let opened = inputs.iter().map(|input| open(input.as_ref()));
    let opened = opened.collect::<io::Result<Vec<fs::File>>>()?;
    let size = pieces::size(&pieces);
    let source = PieceSource::new(pieces, opened);
    replace(path, |part| {
        let mut file = fs::File::create(part)?;
        let written = compress_to(how, size, source, &mut file);
        written.map(drop).map_err(io::Error::other)
    })
}

/// Makes a file beside its place by `make`, and renames it; a file that already has these bytes is left alone.
fn replace(path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let part = part(path);
    let written = make(&part).and_then(|()| match is_equal(&part, path)? {
        true => fs::remove_file(&part),
        false => fs::rename(&part, path),
    });
    written.inspect_err(|_| {
        let _ = fs::remove_file(&part);
    })
}

/// Opens a file; the error names it.
fn open(path: &Path) -> io::Result<fs::File> {
    fs::File::open(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

fn copy_pieces(output: &Path, pieces: &[Piece], inputs: &[impl AsRef<Path>]) -> io::Result<()> {
    let mut file = fs::File::create(output)?;
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => file.write_all(bytes)?,
            Piece::Zeros(size) => {
                io::copy(&mut io::repeat(0).take(*size), &mut file)?;
            }
            Piece::Copy { input, range } => {
                let path = inputs.get(*input).expect("pieces copy known inputs");
                let path = path.as_ref();
                let named = |error: io::Error| {
                    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
                };
                let mut source = open(path)?;
                source
                    .seek(io::SeekFrom::Start(range.start))
                    .map_err(named)?;
                let copied = io::copy(&mut source.take(piece.size()), &mut file);
                let copied = copied.map_err(|error| match error.kind() {
                    // Only the new file can be too large.
                    io::ErrorKind::StorageFull
                    | io::ErrorKind::QuotaExceeded
                    | io::ErrorKind::FileTooLarge => error,
                    _ => named(error),
                });
                if copied? != piece.size() {
                    return Err(named(io::ErrorKind::UnexpectedEof.into()));
                }
            }
        }
    }
    Ok(())
}

/// Tells whether both files have the same bytes; `old` may be missing.
fn is_equal(new: &Path, old: &Path) -> io::Result<bool> {
    let size = fs::metadata(new)?.len();
    if !fs::metadata(old).is_ok_and(|data| data.len() == size) {
        return Ok(false);
    }
    have_same_bytes(fs::File::open(new)?, fs::File::open(old)?)
}

/// Tells whether two readers have the same bytes.
///
/// # Errors
///
/// When one cannot be read.
pub fn have_same_bytes(one: impl Read, other: impl Read) -> io::Result<bool> {
    let (mut new, mut old) = (buffered(one), buffered(other));
    loop {
        let (one, other) = (new.fill_buf()?, old.fill_buf()?);
        let count = one.len().min(other.len());
        if one.split_at(count).0 != other.split_at(count).0 {
            return Ok(false);
        }
        if count == 0 {
            return Ok(one.len() == other.len());
        }
        new.consume(count);
        old.consume(count);
    }
}

fn buffered<R: Read>(reader: R) -> io::BufReader<R> {
    io::BufReader::with_capacity(1 << 17, reader)
}

/// Returns the real path of a file, links resolved. On Windows it starts with `\\?\`, which compilers do not take.
pub fn real_path(path: &Path) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    let plain = real.to_str().and_then(|real| real.strip_prefix(r"\\?\"));
    let plain = plain.filter(|plain| cfg!(windows) && plain.get(1..3) == Some(r":\"));
    Some(plain.map_or(real.clone(), PathBuf::from))
}

/// `name`, or where file systems would refuse it with an extension, its end behind a hash of all of it.
pub fn short_name(name: &str) -> String {
    match name.len() <= LONGEST_NAME {
        true => name.to_owned(),
        false => behind_hash(name.as_bytes(), name),
    }
}

/// Largest length of a name in bytes.
const LONGEST_NAME: usize = 160;

/// `name`, or its end, behind a hash of what it stands for.
pub fn behind_hash(of: &[u8], name: &str) -> String {
    let digits = md5::hex(&Md5::digest(of));
    let mut start = (name.len() + digits.len() + 1).saturating_sub(LONGEST_NAME);
    while !name.is_char_boundary(start) {
        start += 1;
    }
    format!("{digits}-{}", name.split_at(start).1)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn names_the_input_only_for_errors_of_the_input() {
        let folder = std::env::temp_dir();
        let piece = |range| [Piece::Copy { input: 0, range }];
        let this = std::env::current_exe().unwrap();
        let inputs = [&this];
        let full = copy_pieces(Path::new("/dev/full"), &piece(0..4096), &inputs).unwrap_err();
        assert_eq!(full.to_string(), "No space left on device (os error 28)");
        let error = copy_pieces(Path::new("/dev/null"), &piece(0..1), &[folder]).unwrap_err();
        let name = std::env::temp_dir().display().to_string();
        assert!(error.to_string().starts_with(&name), "{error}");
    }
}
