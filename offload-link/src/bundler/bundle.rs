//! Bundling: makes one file of several.

use std::io::Read;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use offload_formats::container::object_bundle::{NewObjectEntry, ObjectKind, embed_bundle};
use offload_formats::format::bundle::BundleLayout;
use offload_formats::format::bundle_text::{self, Comment};
use offload_formats::format::pieces::{self, Piece};

use super::file_type::FileType;
use super::request::Manner;
use super::targets::Targets;
use crate::llvm_tool::{LlvmToolError, Output, Sources, Style};

/// Returns the pieces of the bundle.
pub(super) fn plan(
    inputs: &[PathBuf],
    targets: &Targets,
    output: &Path,
    sources: &mut Sources,
    manner: &Manner,
) -> Result<Vec<Output>, LlvmToolError> {
    let numbers = inputs.iter().map(|path| sources.open(path));
    let numbers = numbers.collect::<Result<Vec<usize>, LlvmToolError>>()?;
    let file_type = match manner.file_type()? {
        Some(given) => given,
        None => FileType::of_bundle(&numbers, output, sources)?,
    };
    let ids: Vec<&str> = targets.0.iter().map(|target| &*target.written).collect();
    let host = targets.hosts().next();
    let images = BundleImages {
        ids: &ids,
        sources,
        numbers: &numbers,
    };
    let mut style = match manner.compression {
        Some(how) => Style::Compressed {
            how,
            verbose: manner.verbose,
        },
        None => Style::Plain,
    };
    let pieces = match (file_type, host) {
        (FileType::Text(comment), _) => images.text(comment)?,
        // Like in LLVM, an object is not compressed: the host linker must read it.
        (FileType::Object, Some(host)) if images.is_object(host) => {
            style = Style::Object(inputs[host].clone());
            if manner.print {
                eprintln!("{}", super::objcopy::embed(&ids, inputs, host, output));
                return Ok(Vec::new());
            }
            images.object(host)?
        }
        _ => images.binary(manner.align)?,
    };
    Ok(vec![Output {
        path: output.to_owned(),
        pieces,
        style,
    }])
}

/// The files to bundle, each with its entry ID.
struct BundleImages<'a> {
    ids: &'a [&'a str],
    sources: &'a Sources,
    /// Numbers of the sources.
    numbers: &'a [usize],
}

impl BundleImages<'_> {
    fn sizes(&self) -> impl Iterator<Item = (&str, u64)> {
        let sizes = self
            .numbers
            .iter()
            .map(|number| self.sources.file(*number).size);
        self.ids.iter().copied().zip(sizes)
    }

    fn whole(&self, index: usize) -> Piece {
        let number = self.numbers[index];
        Piece::Copy {
            input: number,
            range: self.sources.file(number).whole(),
        }
    }

    fn binary(&self, align: u32) -> Result<Vec<Piece>, LlvmToolError> {
        let align = NonZeroU64::new(align.into()).expect("the options refuse an alignment of 0");
        let layout = BundleLayout::new(self.sizes(), align)
            .map_err(|error| LlvmToolError::new(error.to_string()))?;
        Ok(pieces::renumbered(layout.pieces(), |index| {
            self.numbers[index]
        }))
    }

    /// Reads the texts and refuses one that would not unbundle to the same bytes.
    fn text(&self, comment: Comment) -> Result<Vec<Piece>, LlvmToolError> {
        let mut texts = Vec::new();
        for index in 0..self.ids.len() {
            let mut text = Vec::new();
            let whole = [self.whole(index)];
            let read = self.sources.reader(&whole).read_to_end(&mut text);
            read.map_err(|error| LlvmToolError::new(error.to_string()))?;
            texts.push(text);
        }
        let entries: Vec<(&str, &[u8])> = self
            .ids
            .iter()
            .copied()
            .zip(texts.iter().map(Vec::as_slice))
            .collect();
        let bytes = bundle_text::to_bytes(&entries, comment);
        let bytes = bytes.map_err(|error| LlvmToolError::new(error.to_string()))?;
        Ok(vec![Piece::Bytes(bytes)])
    }

    fn is_object(&self, index: usize) -> bool {
        let file = self.sources.file(self.numbers[index]);
        ObjectKind::of(file.data(), file.whole()).is_some()
    }

    /// Returns the host object with a section for each image.
    fn object(&self, host: usize) -> Result<Vec<Piece>, LlvmToolError> {
        let entries: Vec<NewObjectEntry<'_>> = self
            .sizes()
            .enumerate()
            .map(|(index, (id, size))| NewObjectEntry {
                id,
                size: (index != host).then_some(size),
            })
            .collect();
        let number = self.numbers[host];
        let file = self.sources.file(number);
        let pieces = embed_bundle(file.data(), file.whole(), &entries);
        let name = self.sources.name(number);
        let pieces = pieces.map_err(|problem| LlvmToolError::input(name, problem))?;
        let of_image = |input: usize| Some(self.numbers[input.checked_sub(1)?]);
        Ok(pieces::renumbered(pieces, |input| {
            of_image(input).unwrap_or(number)
        }))
    }
}
