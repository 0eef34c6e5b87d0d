//! Extraction: the images that each `--image=` selects.

use std::path::{Path, PathBuf};

use offload_formats::container::archive::{self, Index, MemberPlan};
use offload_formats::container::definitions;
use offload_formats::escape::terminal;
use offload_formats::format::magic::Magic;
use offload_formats::format::pieces::Piece;
use offload_formats::names::{LlvmRelease, OffloadKind};

use super::image_argument::ImageArgument;
use super::inputs::{self, PackedImage};
use super::options::PackagerOptions;
use super::pack::known_to;
use crate::llvm_tool::{self, DistinctNames, LlvmToolError, Output, Sources, Style};
use crate::platform;

/// Returns the outputs with their images. `warn` reports warnings and notes.
pub(super) fn plan(
    input: &Path,
    images: &[PackedImage],
    sources: &Sources,
    options: &PackagerOptions,
    warn: &dyn Fn(String),
) -> Result<Vec<Output>, LlvmToolError> {
    if options.images.is_empty() {
        if options.llvm >= LlvmRelease::V23 {
            let all: Vec<&PackedImage> = images.iter().collect();
            return named(input, &all, sources, options.llvm);
        }
        if !images.is_empty() {
            let count = images.len();
            warn(format!(
                "note: nothing is extracted: the input has {count} images; select them with --image \
                 (--list shows them)"
            ));
        }
        return Ok(Vec::new());
    }
    let mut outputs = Vec::new();
    for argument in &options.images {
        let found: Vec<&PackedImage> = images
            .iter()
            .filter(|image| matches(image, argument, options.llvm))
            .collect();
        let Some(last) = found.last() else {
            let count = match images.len() {
                1 => "1 image".to_owned(),
                count => format!("{count} images"),
            };
            let [written, input] = [argument.written.as_ref(), input].map(terminal::<Path>);
            let text = format!("`--image={written}` matches none of the {count} in {input}");
            if options.require_match {
                return Err(LlvmToolError::new(text));
            }
            warn(format!("note: {text}"));
            continue;
        };
        match argument.value("file") {
            None if options.archive => {
                return Err(LlvmToolError::new("Image must have a 'file' argument."));
            }
            None => outputs.extend(named(input, &found, sources, options.llvm)?),
            Some(file) => {
                let path = PathBuf::from(platform::os_string(file));
                if options.archive {
                    outputs.push(to_archive(path, &found, sources, warn)?);
                    continue;
                }
                if found.len() > 1 {
                    let path = terminal(path.as_path());
                    warn(format!(
                        "warning: Multiple inputs match to a single file, '{path}'"
                    ));
                }
                outputs.push(Output::plain(path, last.pieces()));
            }
        }
    }
    Ok(outputs)
}

/// Tells whether the tool prints the names of files, because the user gave none.
pub(super) fn announces(options: &PackagerOptions) -> bool {
    options.input.is_some() && options.images.is_empty() && options.llvm >= LlvmRelease::V23
}

/// Tells whether the image satisfies every item of the argument.
fn matches(image: &PackedImage, argument: &ImageArgument, llvm: LlvmRelease) -> bool {
    let entry = &image.entry;
    argument.pairs().all(|(key, value)| match key {
        b"file" => true,
        b"kind" => {
            let wanted = std::str::from_utf8(&value).ok();
            let wanted = wanted.and_then(OffloadKind::from_name);
            let wanted = wanted.unwrap_or(OffloadKind::NONE);
            // Older releases pack images of SYCL without a kind.
            let unnamed = wanted == OffloadKind::SYCL && llvm < LlvmRelease::V21;
            entry.offload_kind == wanted || unnamed && entry.offload_kind == OffloadKind::NONE
        }
        key => {
            let stored = std::str::from_utf8(key).ok();
            let stored = stored.and_then(|key| entry.strings.value(key));
            match (key, stored) {
                // The name of the member that has the image, like LLVM 23.
                (b"member", None) => image.origin_name().as_bytes() == value,
                (_, stored) => stored.unwrap_or_default() == value,
            }
        }
    })
}

/// Returns a file in the current folder for each image, named after its facts. Since LLVM 23, nested offload binaries
/// are unpacked.
fn named(
    input: &Path,
    images: &[&PackedImage],
    sources: &Sources,
    llvm: LlvmRelease,
) -> Result<Vec<Output>, LlvmToolError> {
    let mut leaves = Vec::new();
    for image in images {
        match llvm >= LlvmRelease::V23 {
            true => leaves.extend(inputs::leaves(input, image, sources)?),
            false => leaves.push((*image).clone()),
        }
    }
    let stem = input.file_stem().unwrap_or_default().to_string_lossy();
    let outputs = leaves.into_iter().enumerate().map(|(index, image)| {
        let (entry, arch) = (&image.entry, image.entry.arch());
        let dash = if arch.is_empty() && llvm >= LlvmRelease::V23 {
            ""
        } else {
            "-"
        };
        let extension = known_to(entry.image_kind, llvm).extension();
        let triple = entry.triple();
        let name = format!("{stem}-{triple}{dash}{arch}.{index}.{extension}");
        Output::plain(PathBuf::from(harmless(&name)), image.pieces())
    });
    Ok(outputs.collect())
}

/// Makes a file name safe: triples and architectures come from the file and must not name another folder.
fn harmless(name: &str) -> String {
    let foreign = |char: char| matches!(char, '/' | '\\') || char.is_control();
    name.replace(foreign, "_")
}

/// Returns a static archive of the images with a symbol index.
fn to_archive(
    path: PathBuf,
    images: &[&PackedImage],
    sources: &Sources,
    warn: &dyn Fn(String),
) -> Result<Output, LlvmToolError> {
    let names = distinct(images.iter().map(|image| image.origin.clone()));
    let mut symbols: Vec<Vec<&[u8]>> = Vec::new();
    for (image, name) in images.iter().zip(&names) {
        let file = sources.file(image.source);
        let found = definitions(file.data(), image.entry.image.clone());
        symbols.push(found.unwrap_or_else(|problem| {
            let text = llvm_tool::without_symbols(name, &problem);
            warn(format!("warning: {text}"));
            Vec::new()
        }));
    }
    let contents: Vec<Vec<Piece>> = images.iter().map(|image| image.pieces()).collect();
    let members = contents.iter().zip(&names).zip(&symbols);
    let members: Vec<MemberPlan<'_>> = members
        .map(|((content, name), symbols)| MemberPlan {
            name,
            content,
            symbols,
        })
        .collect();
    let magics = images.iter().map(|image| {
        let data = sources.file(image.source).data();
        Magic::at(data, image.entry.image.clone())
    });
    let pieces = archive::layout(&members, Index::of(magics));
    let pieces = pieces.map_err(|problem| LlvmToolError::input(&path, problem))?;
    Ok(Output {
        path,
        pieces,
        style: Style::Archive,
    })
}

/// Makes names distinct: LLVM repeats them, here the second one gets a number.
fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut distinct = DistinctNames::default();
    let names = names.map(|name| {
        distinct.add(name, |name, count| match name.rsplit_once('.') {
            Some((stem, extension)) if !extension.contains('/') => {
                format!("{stem}.{count}.{extension}")
            }
            _ => format!("{name}.{count}"),
        })
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makes_distinct_and_harmless_names() {
        let names = ["a.o", "a.o", "b", "./d.x/b", "b", "a.o"].map(str::to_owned);
        assert_eq!(
            distinct(names.into_iter()),
            ["a.o", "a.1.o", "b", "./d.x/b", "b.1", "a.2.o"]
        );
        let names = ["a.1.o", "a.o", "a.o", "a.1.o"].map(str::to_owned);
        assert_eq!(
            distinct(names.into_iter()),
            ["a.1.o", "a.o", "a.2.o", "a.1.1.o"]
        );
        assert_eq!(
            harmless("in-../../x\0-gfx90a:xnack+.0.o"),
            "in-.._.._x_-gfx90a:xnack+.0.o"
        );
    }
}
