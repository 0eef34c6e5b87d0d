//! Outputs: written beside their place, and put there when everything is written.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use offload_build::format::compressed_bundle::Compression;
use offload_build::format::pieces::Piece;
use tempfile::NamedTempFile;

use super::compression;
use super::error::Error;
use super::sources::{Parts, Sources};
use crate::files;

/// A file that is to be written.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    /// `-` is standard output, unless it is an archive.
    pub path: PathBuf,
    pub pieces: Vec<Piece>,
    pub style: Style,
}

/// How an output is written.
#[derive(Clone, Debug)]
pub(crate) enum Style {
    Plain,
    /// `-` is a name like others, and messages do not say which file it was: both as LLVM.
    Archive,
    Compressed(Compression),
    /// With the mode of the host's object, which this is.
    Object(PathBuf),
}

/// Writes all outputs, or none: they get their names when the last one is complete.
pub(crate) fn write(outputs: &[Output], sources: &Sources, verbose: bool) -> Result<(), Error> {
    let mut places = Vec::new();
    for output in outputs {
        let place = Place::new(output).map_err(|error| match output.style {
            Style::Archive => Error::new(super::error::system_message(&error)),
            _ => Error::file(&output.path, &error),
        })?;
        places.push(place);
    }
    for (output, place) in outputs.iter().zip(&mut places) {
        let file = place.file_mut();
        if let Style::Compressed(how) = output.style {
            compression::write(&output.pieces, sources, how, verbose, file)?;
        } else {
            copy(output, sources, file)?;
        }
    }
    decompress(outputs, &places, sources)?;
    files::check()?;
    for (output, place) in outputs.iter().zip(places) {
        place
            .finish()
            .map_err(|error| Error::file(&output.path, &error))?;
    }
    Ok(())
}

/// Warnings about files that several images would go to, of which the last one stays.
pub(crate) fn clashes(outputs: &[Output]) -> Vec<String> {
    let mut texts = Vec::new();
    for (index, output) in outputs.iter().enumerate() {
        let same = |other: &&Output| other.path == output.path && other.pieces != output.pieces;
        let later = outputs.iter().skip(index + 1).any(|other| same(&other));
        let special = fs::metadata(&output.path).is_ok_and(|file| !file.is_file());
        if later && !special && output.path != Path::new("-") {
            let path = output.path.display();
            texts.push(format!(
                "'{path}' is the output for several images; the last one stays"
            ));
        }
    }
    texts.dedup();
    texts
}

/// Everything but what is compressed; zeros are left out, as the file is as large as all.
fn copy(output: &Output, sources: &Sources, file: &File) -> Result<(), Error> {
    let written =
        |result: io::Result<()>| result.map_err(|error| Error::file(&output.path, &error));
    let mut offset = 0;
    written(file.set_len(output.pieces.iter().map(Piece::size).sum()))?;
    for piece in &output.pieces {
        match piece {
            Piece::Zeros(_) => {}
            Piece::Bytes(bytes) => written(file.write_all_at(bytes, offset))?,
            Piece::Copy { input, range } if sources.as_compressed(*input).is_none() => {
                sources
                    .file(*input)
                    .copy(range.clone(), file, offset)
                    .map_err(|error| Error::file(sources.name(*input), &error))?;
            }
            Piece::Copy { .. } => {}
        }
        offset += piece.size();
    }
    Ok(())
}

/// Each compressed bundle once, to all who want a part of it.
fn decompress(outputs: &[Output], places: &[Place], sources: &Sources) -> Result<(), Error> {
    let mut wanted: Vec<usize> = Vec::new();
    for piece in outputs.iter().flat_map(|output| &output.pieces) {
        if let Piece::Copy { input, .. } = piece {
            if sources.as_compressed(*input).is_some() && !wanted.contains(input) {
                wanted.push(*input);
            }
        }
    }
    for source in wanted {
        let Some((bundle, file)) = sources.as_compressed(source) else {
            continue;
        };
        let mut parts = Vec::new();
        for (output, place) in outputs.iter().zip(places) {
            let mut offset = 0;
            for piece in &output.pieces {
                match piece {
                    Piece::Copy { input, range } if *input == source => {
                        parts.push((range.clone(), place.file(), offset));
                    }
                    _ => {}
                }
                offset += piece.size();
            }
        }
        let name = sources.name(source);
        let compressed = file.stream(bundle.data.clone());
        bundle
            .decompress_from(compressed, &mut Parts::new(parts))
            .map_err(|problem| compression::failed(name, &problem))?;
    }
    Ok(())
}

/// Where an output is while it is written.
enum Place {
    /// Beside its place.
    Beside(NamedTempFile, PathBuf),
    /// In a file without a name, to be copied to what cannot be renamed to: standard output,
    /// devices, pipes, files in folders where no other can be made.
    Apart(File, Option<PathBuf>),
}

impl Place {
    fn new(output: &Output) -> io::Result<Self> {
        let path = &output.path;
        let archive = matches!(output.style, Style::Archive);
        if path == Path::new("-") && !archive {
            return Ok(Self::Apart(tempfile::tempfile()?, None));
        }
        let existing = fs::metadata(path).ok();
        if let Some(existing) = &existing {
            // Pipes and devices are opened once, when there is something to write.
            if !existing.is_file() && !existing.is_dir() {
                return Ok(Self::Apart(tempfile::tempfile()?, Some(path.clone())));
            }
            // Folders, and files that are not ours to write: the system says it best.
            OpenOptions::new().write(true).open(path)?;
        }
        // What a link points to is replaced, not the link.
        let path = match existing {
            Some(_) => fs::canonicalize(path)?,
            None => path.clone(),
        };
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        fs::metadata(folder)?;
        let host = match &output.style {
            Style::Object(host) => fs::metadata(host).ok().filter(fs::Metadata::is_file),
            _ => None,
        };
        let mode = host.or(existing).map(|file| file.permissions());
        let new = Permissions::from_mode(0o666);
        let file = tempfile::Builder::new()
            .permissions(new)
            .tempfile_in(folder);
        match file {
            Ok(file) => {
                if let Some(mode) = mode {
                    file.as_file().set_permissions(mode)?;
                }
                Ok(Self::Beside(file, path))
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                // Says what is wrong, if something is, before any work is done.
                OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(false)
                    .open(&path)?;
                Ok(Self::Apart(tempfile::tempfile()?, Some(path)))
            }
            Err(error) => Err(error),
        }
    }

    fn file(&self) -> &File {
        match self {
            Self::Beside(file, _) => file.as_file(),
            Self::Apart(file, _) => file,
        }
    }

    fn file_mut(&mut self) -> &mut File {
        match self {
            Self::Beside(file, _) => file.as_file_mut(),
            Self::Apart(file, _) => file,
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Beside(file, path) => file.persist(path).map(drop).map_err(|error| error.error),
            Self::Apart(mut file, place) => {
                file.seek(SeekFrom::Start(0))?;
                match place {
                    None => io::copy(&mut file, &mut io::stdout().lock()).map(drop),
                    Some(path) => {
                        let mut out = OpenOptions::new().write(true).truncate(true).open(path)?;
                        io::copy(&mut file, &mut out).map(drop)
                    }
                }
            }
        }
    }
}
