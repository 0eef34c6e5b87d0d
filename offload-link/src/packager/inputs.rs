//! The images of an input, whatever it is, and where their bytes are.

use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};

use offload_build::container::{self, FoundImage};
use offload_build::format::bytes::OutOfBounds;
use offload_build::format::magic::Magic;
use offload_build::format::offload_binary::{self, BinaryEntry, Problem};
use offload_build::format::pieces::Piece;

use crate::llvm_tool::{Error, Sources};

/// An image of the input.
#[derive(Clone, Debug)]
pub(super) struct Image {
    /// What is said about it.
    pub entry: BinaryEntry,
    /// The archive member that it is in, else the input, as LLVM names it.
    pub origin: String,
    /// Its bytes.
    pub pieces: Vec<Piece>,
    pub found: FoundImage,
}

/// Opens the input and finds its images, of which nothing is read.
pub(super) fn read(path: &Path, sources: &mut Sources) -> Result<Vec<Image>, Error> {
    let source = sources.open(path)?;
    let found = container::images(sources.file(source).data());
    let found = found.map_err(|problem| match problem.problem {
        container::Problem::OffloadBinary { problem: of, .. } => refused(path, &of, &problem),
        _ => Error::input(path, problem),
    })?;
    let images = found.into_iter().map(|found| {
        let member = found.members.last();
        let member = member.map(|name| String::from_utf8_lossy(name).into_owned());
        Image {
            entry: found.entry.clone(),
            origin: member.unwrap_or_else(|| path.display().to_string()),
            pieces: vec![match found.bytes {
                Some(_) => Piece::Bytes(found.content(&[][..]).unwrap_or_default().to_vec()),
                None => Piece::Copy {
                    input: source,
                    range: found.entry.image.clone(),
                },
            }],
            found,
        }
    });
    Ok(images.collect())
}

/// In LLVM's words, which say what sort of damage it is, and then what and where it is.
fn refused(path: &Path, of: &offload_binary::Error, problem: &dyn Display) -> Error {
    let text = match of.problem {
        Problem::Magic { .. } | Problem::Version { .. } => INVALID,
        // LLVM does not look at what is shorter than the headers of version 1.
        Problem::Outside(OutOfBounds { what, .. }) if what.ends_with("of header") => INVALID,
        _ => "The end of the file was unexpectedly encountered",
    };
    let hint = format!("{}: {problem}", path.display());
    Error::new(text).with_hint(Some(hint))
}

const INVALID: &str = "Invalid data was encountered while parsing the file";

/// Images in offload binaries that are images themselves, at any depth.
const MAX_DEPTH: usize = 16;

/// An image, or if it is an offload binary those in it.
pub(super) fn leaves(path: &Path, image: &Image, sources: &Sources) -> Result<Vec<Image>, Error> {
    let mut leaves = Vec::new();
    open(path, image, sources, MAX_DEPTH, &mut leaves)?;
    Ok(leaves)
}

fn open(
    path: &Path,
    image: &Image,
    sources: &Sources,
    depth: usize,
    leaves: &mut Vec<Image>,
) -> Result<(), Error> {
    let walked = match image.place() {
        Some((source, range)) => {
            let data = sources.file(source).data();
            let nested = Magic::at(data, range.clone()) == Magic::OffloadBinary;
            nested.then(|| offload_binary::walk(data, range))
        }
        None => {
            let bytes = image.bytes();
            let nested = Magic::of(bytes) == Magic::OffloadBinary;
            nested.then(|| offload_binary::walk(bytes, 0..bytes.len() as u64))
        }
    };
    let Some(walked) = walked.filter(|_| depth > 0) else {
        leaves.push(image.clone());
        return Ok(());
    };
    let walked = walked.map_err(|problem| refused(path, &problem, &problem))?;
    for entry in walked.into_iter().flat_map(|binary| binary.entries) {
        let pieces = match image.place() {
            Some((input, _)) => Piece::Copy {
                input,
                range: entry.image.clone(),
            },
            None => {
                let place = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
                let range = place(entry.image.start)..place(entry.image.end);
                Piece::Bytes(image.bytes().get(range).unwrap_or_default().to_vec())
            }
        };
        let inner = Image {
            entry,
            pieces: vec![pieces],
            ..image.clone()
        };
        open(path, &inner, sources, depth - 1, leaves)?;
    }
    Ok(())
}

impl Image {
    /// The last part of where it was found.
    pub(super) fn origin_name(&self) -> String {
        let path = PathBuf::from(&self.origin);
        let name = path.file_name().unwrap_or(path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// Where it is, for people: members of archives, a section, or just the file.
    pub(super) fn container(&self) -> String {
        let members = self.found.members.iter();
        let members = members.map(|name| String::from_utf8_lossy(name).into_owned());
        let mut places: Vec<String> = members.collect();
        places.extend(
            self.found
                .section
                .map(|section| format!("section {section}")),
        );
        if places.is_empty() {
            places.push("file".to_owned());
        }
        places.join(", ")
    }

    /// What is said about it besides triple and architecture.
    pub(super) fn more_strings(&self) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).escape_debug().to_string();
        let strings = self.entry.strings.iter();
        let more = strings.filter(|(key, _)| !matches!(*key, b"triple" | b"arch"));
        more.map(|(key, value)| (text(key), text(value))).collect()
    }

    /// The source and the range that it is, unless its bytes are elsewhere.
    pub(super) fn place(&self) -> Option<(usize, Range<u64>)> {
        match &self.pieces[..] {
            [Piece::Copy { input, range }] => Some((*input, range.clone())),
            _ => None,
        }
    }

    /// Its bytes, when they are at hand.
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.pieces[..] {
            [Piece::Bytes(bytes)] => bytes,
            _ => &[],
        }
    }
}
