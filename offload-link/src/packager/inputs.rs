//! Finds the images of an input of any format, and where their bytes are.

use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};

use offload_formats::container::bundled::Unpacking;
use offload_formats::container::{self, FoundImage, FoundItem};
use offload_formats::escape::terminal;
use offload_formats::format::bytes::OutOfBounds;
use offload_formats::format::magic::Magic;
use offload_formats::format::offload_binary::{self, BinaryEntry, OffloadBinaryProblem};
use offload_formats::format::pieces::Piece;
use offload_formats::format::unpacked::Unpacked;

use crate::decompressed::{self, DecompressionLimit};
use crate::files::Nesting;
use crate::llvm_tool::sources::wrong_member;
use crate::llvm_tool::{LlvmToolError, Sources};

/// An image of the input.
#[derive(Clone, Debug)]
pub(super) struct PackedImage {
    /// Kinds and strings of the image.
    pub entry: BinaryEntry,
    /// The archive member that contains it, else the input, in LLVM's words.
    pub origin: String,
    /// Source that has the image.
    pub source: usize,
    pub found: FoundImage,
}

/// Limit on the depth of nested offload binaries, the same as for archives.
const MAX_DEPTH: usize = 16;

/// Opens the input and finds its images without reading them. Inflates compressed offload binaries to a temporary file. Opens
/// members of thin archives, too. `warn` reports inputs that are skipped.
pub(super) fn read(
    path: &Path,
    limit: DecompressionLimit,
    sources: &mut Sources,
    warn: &dyn Fn(String),
) -> Result<Vec<PackedImage>, LlvmToolError> {
    let mut images = Vec::new();
    let mut unpacking = Unpacking::within(limit.files(), sources.scratch());
    let source = sources.open(path)?;
    let around = Nesting::default();
    let mut left = vec![(source, path.to_owned(), path.display().to_string(), around)];
    while let Some((source, file, name, around)) = left.pop() {
        let found = container::find_within(sources.file(source).data(), &mut unpacking);
        let found = found.map_err(|problem| match problem.problem {
            container::FindProblem::OffloadBinary { problem: of, .. } => {
                refused(&file, &of, &problem)
            }
            _ => {
                let hint = decompressed::hint_for(problem.remedy());
                LlvmToolError::input(&file, problem).with_hint(hint)
            }
        })?;
        let (mut outside, mut unpacked) = (Vec::new(), LastUnpacked::default());
        for item in found {
            match item {
                FoundItem::Image(found) => {
                    let source = match &found.bytes {
                        Some(bytes) => unpacked.source(bytes, &file, sources)?,
                        None => source,
                    };
                    images.push(PackedImage::new(found, source, &name));
                }
                FoundItem::Outside { members, size } => {
                    let member = members.last().map_or(&[][..], Vec::as_slice);
                    let opened = around.open_member(&file, member, size);
                    let (opened, around) =
                        opened.map_err(|problem| wrong_member(&problem, &file, member))?;
                    let path = opened.path.clone();
                    let name = path.file_name().unwrap_or_default();
                    let name = name.to_string_lossy().into_owned();
                    outside.push((sources.add_member(opened), path, name, around));
                }
                FoundItem::Unread { members, format } => {
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
        // The last one is taken next, so this keeps the order of the archive.
        left.extend(outside.into_iter().rev());
    }
    Ok(images)
}

/// Range of the unpacked offload binary that was found last, and its source.
#[derive(Default)]
struct LastUnpacked(Option<(Range<u64>, usize)>);

impl LastUnpacked {
    /// Returns the source of an offload binary that was unpacked.
    fn source(
        &mut self,
        bytes: &Unpacked,
        file: &Path,
        sources: &mut Sources,
    ) -> Result<usize, LlvmToolError> {
        let range = bytes.range();
        if let Some((last, source)) = self.0.take_if(|(last, _)| *last == range) {
            return Ok(self.0.insert((last, source)).1);
        }
        let source = sources.add_unpacked(file, bytes);
        let source = source.map_err(|error| LlvmToolError::file(file, &error))?;
        Ok(self.0.insert((range, source)).1)
    }
}

/// Returns an error with LLVM's words for the sort of damage, and with the exact problem and place.
fn refused(
    path: &Path,
    of: &offload_binary::OffloadBinaryError,
    problem: &dyn Display,
) -> LlvmToolError {
    let text = match of.problem {
        OffloadBinaryProblem::Magic { .. } | OffloadBinaryProblem::Version { .. } => INVALID,
        // LLVM skips inputs shorter than the header of version 1.
        OffloadBinaryProblem::Outside(OutOfBounds { what, .. }) if what.ends_with("of header") => {
            INVALID
        }
        _ => "The end of the file was unexpectedly encountered",
    };
    let hint = format!("{}: {problem}", terminal(path));
    LlvmToolError::new(text).with_hint(Some(hint))
}

const INVALID: &str = "Invalid data was encountered while parsing the file";

/// Returns the image, or the images in it if it is an offload binary.
pub(super) fn leaves(
    path: &Path,
    image: &PackedImage,
    sources: &Sources,
) -> Result<Vec<PackedImage>, LlvmToolError> {
    let nodes = tree(path, 0, image, sources)?.into_iter();
    let leaves = nodes.filter(|node| node.leaf).map(|node| node.image);
    Ok(leaves.collect())
}

/// An image and its place in nested offload binaries.
pub(super) struct Node {
    /// Index of the image in the input, then its index in each enclosing offload binary.
    pub indices: Vec<usize>,
    pub image: PackedImage,
    /// Set if the image is not an offload binary.
    pub leaf: bool,
}

/// Returns the image with this index and all nested images, in file order.
pub(super) fn tree(
    path: &Path,
    index: usize,
    image: &PackedImage,
    sources: &Sources,
) -> Result<Vec<Node>, LlvmToolError> {
    let mut nodes = Vec::new();
    // Images to visit, the next one last.
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
    /// Creates an image. `name` is the name of the file that contains it.
    fn new(found: FoundImage, source: usize, name: &str) -> Self {
        let member = found.members.last();
        let member = member.map(|name| String::from_utf8_lossy(name).into_owned());
        Self {
            entry: found.entry.clone(),
            origin: member.unwrap_or_else(|| name.to_owned()),
            source,
            found,
        }
    }

    /// Returns the nested images if it is an offload binary.
    fn inner(&self, path: &Path, sources: &Sources) -> Result<Option<Vec<Self>>, LlvmToolError> {
        let (data, range) = (sources.file(self.source).data(), self.entry.image.clone());
        if Magic::at(data, range.clone()) != Magic::OffloadBinary {
            return Ok(None);
        }
        let walked = offload_binary::walk(data, range)
            .map_err(|problem| refused(path, &problem, &problem))?;
        let entries = walked.into_iter().flat_map(|binary| binary.entries);
        let images = entries.map(|entry| Self {
            entry,
            ..self.clone()
        });
        Ok(Some(images.collect()))
    }

    /// Returns the last component of the origin.
    pub(super) fn origin_name(&self) -> String {
        let path = PathBuf::from(&self.origin);
        let name = path.file_name().unwrap_or(path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// Describes the place for people: archive members, a section, or just the file.
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

    /// Returns the strings other than triple and architecture.
    pub(super) fn more_strings(&self) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| terminal(bytes).to_string();
        let strings = self.entry.strings.iter();
        let more = strings.filter(|(key, _)| !matches!(*key, b"triple" | b"arch"));
        more.map(|(key, value)| (text(key), text(value))).collect()
    }

    /// Returns the bytes of the image.
    pub(super) fn pieces(&self) -> Vec<Piece> {
        vec![Piece::Copy {
            input: self.source,
            range: self.entry.image.clone(),
        }]
    }
}
