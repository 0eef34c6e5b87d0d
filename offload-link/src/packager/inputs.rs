//! The images of an input, whatever it is, and where their bytes are.

use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};

use offload_formats::container::{self, FoundImage, Item};
use offload_formats::escape::terminal;
use offload_formats::format::bytes::OutOfBounds;
use offload_formats::format::magic::Magic;
use offload_formats::format::offload_binary::{self, BinaryEntry, Problem};
use offload_formats::format::pieces::Piece;

use crate::decompressed::{self, DecompressionLimit};
use crate::files::Nesting;
use crate::llvm_tool::sources::wrong_member;
use crate::llvm_tool::{Error, Sources};

/// An image of the input.
#[derive(Clone, Debug)]
pub(super) struct PackedImage {
    /// What is said about it.
    pub entry: BinaryEntry,
    /// The archive member that it is in, else the input, as LLVM names it.
    pub origin: String,
    /// Its bytes.
    pub pieces: Vec<Piece>,
    pub found: FoundImage,
}

/// Offload binaries in each other: no more than archives.
const MAX_DEPTH: usize = 16;

/// Opens the input and finds its images, of which nothing is read; compressed offload binaries are inflated in memory. Members of thin archives are
/// opened too; `warn` takes what is not looked into.
pub(super) fn read(
    path: &Path,
    limit: DecompressionLimit,
    sources: &mut Sources,
    warn: &dyn Fn(String),
) -> Result<Vec<PackedImage>, Error> {
    let mut images = Vec::new();
    let mut memory = limit.memory();
    let source = sources.open(path)?;
    let around = Nesting::default();
    let mut left = vec![(source, path.to_owned(), path.display().to_string(), around)];
    while let Some((source, file, name, around)) = left.pop() {
        let found = container::find_within(sources.file(source).data(), &mut memory);
        let found = found.map_err(|problem| match problem.problem {
            container::Problem::OffloadBinary { problem: of, .. } => refused(&file, &of, &problem),
            _ => {
                let hint = decompressed::hint_for(&problem);
                Error::input(&file, problem).with_hint(hint)
            }
        })?;
        let mut outside = Vec::new();
        for item in found {
            match item {
                Item::Image(found) => images.push(PackedImage::new(found, source, &name)),
                Item::Outside { members, size } => {
                    let member = members.last().map_or(&[][..], Vec::as_slice);
                    let opened = around.open_member(&file, member, size);
                    let (opened, around) =
                        opened.map_err(|problem| wrong_member(&problem, &file, member))?;
                    let path = opened.path.clone();
                    let name = path.file_name().unwrap_or_default();
                    let name = name.to_string_lossy().into_owned();
                    outside.push((sources.add_member(opened), path, name, around));
                }
                Item::Unread { members, format } => {
                    let names = members.iter().map(|name| terminal(&name[..]).to_string());
                    let names: Vec<_> = names.collect();
                    let file = terminal(file.as_path());
                    warn(format!(
                        "note: {file}{}{}: images in {format:?} files are not found by any tool",
                        if names.is_empty() { "" } else { ": member " },
                        names.join(", ")
                    ));
                }
                _ => {}
            }
        }
        // Taken from the end, so that they come in the order of the archive.
        left.extend(outside.into_iter().rev());
    }
    Ok(images)
}

/// In LLVM's words, which say what sort of damage it is, and then what and where it is.
fn refused(path: &Path, of: &offload_binary::Error, problem: &dyn Display) -> Error {
    let text = match of.problem {
        Problem::Magic { .. } | Problem::Version { .. } => INVALID,
        // LLVM does not look at what is shorter than the headers of version 1.
        Problem::Outside(OutOfBounds { what, .. }) if what.ends_with("of header") => INVALID,
        _ => "The end of the file was unexpectedly encountered",
    };
    let hint = format!("{}: {problem}", terminal(path));
    Error::new(text).with_hint(Some(hint))
}

const INVALID: &str = "Invalid data was encountered while parsing the file";

/// An image, or if it is an offload binary those in it.
pub(super) fn leaves(
    path: &Path,
    image: &PackedImage,
    sources: &Sources,
) -> Result<Vec<PackedImage>, Error> {
    let nodes = tree(path, 0, image, sources)?.into_iter();
    let leaves = nodes.filter(|node| node.leaf).map(|node| node.image);
    Ok(leaves.collect())
}

/// An image, and where it is in those that are offload binaries themselves.
pub(super) struct Node {
    /// Of the image in the input, then of each in the one before.
    pub indices: Vec<usize>,
    pub image: PackedImage,
    /// Whether it is none of those.
    pub leaf: bool,
}

/// The image of that index, and all that is in it, as they lie.
pub(super) fn tree(
    path: &Path,
    index: usize,
    image: &PackedImage,
    sources: &Sources,
) -> Result<Vec<Node>, Error> {
    let mut nodes = Vec::new();
    // What is still to be looked at, the next one last.
    let mut left = vec![(vec![index], image.clone())];
    while let Some((indices, image)) = left.pop() {
        let inner = match indices.len() <= MAX_DEPTH {
            true => image.inner(path, sources)?,
            false => None,
        };
        let leaf = inner.is_none();
        let inner = inner.unwrap_or_default().into_iter().enumerate();
        let inner: Vec<(Vec<usize>, PackedImage)> = inner
            .map(|(index, image)| ([&indices[..], &[index]].concat(), image))
            .collect();
        left.extend(inner.into_iter().rev());
        nodes.push(Node {
            indices,
            image,
            leaf,
        });
    }
    Ok(nodes)
}

impl PackedImage {
    /// `name` is that of the file it was found in.
    fn new(found: FoundImage, source: usize, name: &str) -> Self {
        let member = found.members.last();
        let member = member.map(|name| String::from_utf8_lossy(name).into_owned());
        let piece = match found.bytes {
            Some(_) => Piece::Bytes(found.content(&[][..]).unwrap_or_default().to_vec()),
            None => Piece::Copy {
                input: source,
                range: found.entry.image.clone(),
            },
        };
        Self {
            entry: found.entry.clone(),
            origin: member.unwrap_or_else(|| name.to_owned()),
            pieces: vec![piece],
            found,
        }
    }

    /// The images in it, when it is an offload binary.
    fn inner(&self, path: &Path, sources: &Sources) -> Result<Option<Vec<Self>>, Error> {
        let walked = match self.place() {
            Some((source, range)) => {
                let data = sources.file(source).data();
                let nested = Magic::at(data, range.clone()) == Magic::OffloadBinary;
                nested.then(|| offload_binary::walk(data, range))
            }
            None => {
                let bytes = self.bytes();
                let nested = Magic::of(bytes) == Magic::OffloadBinary;
                nested.then(|| offload_binary::walk(bytes, 0..bytes.len() as u64))
            }
        };
        let Some(walked) = walked else {
            return Ok(None);
        };
        let walked = walked.map_err(|problem| refused(path, &problem, &problem))?;
        let entries = walked.into_iter().flat_map(|binary| binary.entries);
        let images = entries.map(|entry| {
            let piece = match self.place() {
                Some((input, _)) => Piece::Copy {
                    input,
                    range: entry.image.clone(),
                },
                None => {
                    let place = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
                    let range = place(entry.image.start)..place(entry.image.end);
                    Piece::Bytes(self.bytes().get(range).unwrap_or_default().to_vec())
                }
            };
            Self {
                entry,
                pieces: vec![piece],
                ..self.clone()
            }
        });
        Ok(Some(images.collect()))
    }

    /// The last part of where it was found.
    pub(super) fn origin_name(&self) -> String {
        let path = PathBuf::from(&self.origin);
        let name = path.file_name().unwrap_or(path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// Where it is, for people: members of archives, a section, or just the file.
    pub(super) fn container(&self) -> String {
        let members = self.found.members.iter();
        let members = members.map(|name| terminal(&name[..]).to_string());
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
        let text = |bytes: &[u8]| terminal(bytes).to_string();
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
