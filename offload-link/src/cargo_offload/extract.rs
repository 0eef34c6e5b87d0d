//! `cargo offload extract`: images as files.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use offload_formats::container::inventory::{ContainerData, ImageForm, PlacedImage};
use offload_formats::escape::terminal;
use offload_formats::format::compressed_bundle::CompressedBundle;
use offload_formats::format::pieces::Piece;

use crate::cargo_offload::error::CargoOffloadError;
use crate::cargo_offload::find_options::FindOptions;
use crate::cargo_offload::image_text;
use crate::cargo_offload::images::{self, FileImages, FilePart};
use crate::cargo_offload::inputs;
use crate::cargo_offload::kernels::FileKernels;
use crate::cargo_offload::selection::SelectionOptions;
use crate::cargo_offload::unpacker::{ImageUnpacker, is_unpacked};
use crate::llvm_tool::{Output, Sources, outputs};
use crate::{files, say};

/// Extracts device images to files.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Files are named by number and target, such as 03-gfx90a-xnack+.co, and are unpacked.

Examples:
  cargo offload extract libkernels.so --out images
  cargo offload extract libkernels.so --target gfx942 --kind hip
  cargo offload extract libkernels.so --index 0,4-7
  cargo offload extract libkernels.so --kernel 'ns::scale<float>'")]
pub(super) struct ExtractLine {
    #[command(flatten)]
    selection: SelectionOptions,
    /// Folder of the images; it is created if it is missing.
    #[arg(long, short, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    #[command(flatten)]
    find: FindOptions,
    /// The file; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Writes the selected images and prints their paths.
pub(super) fn run(line: &ExtractLine, out: &mut impl Write) -> Result<(), CargoOffloadError> {
    let input = inputs::open(&line.file)?;
    let limit = line.find.limit()?;
    let sources = Sources::default();
    let mut settings = line.find.settings(sources.scratch())?;
    let mut found = FileImages::find(&input, &mut settings);
    found.identify();
    let needs_kernels = line.selection.needs_kernels();
    let kernels = needs_kernels.then(|| FileKernels::read(&mut found, limit));
    CargoOffloadError::check_unpacked(&line.file)?;
    let name = images::shown(&line.file);
    for problem in &found.problems {
        say::error("", &format_args!("{name}: {problem}"));
    }
    let digits = found.count().saturating_sub(1).to_string().len();
    let mut plan = ExtractPlan {
        sources,
        outputs: Vec::new(),
        bundles: HashMap::new(),
        unpacker: ImageUnpacker::new(limit),
    };
    let (mut number, mut targets) = (0, BTreeSet::new());
    let (mut selected, mut failures) = (Vec::new(), 0);
    for part in &found.parts {
        let source = plan
            .sources
            .add_opened(&part.path, &part.reading, part.size);
        for placed in part.inventory.images() {
            targets.insert(image_text::target(&placed));
            if line.selection.selects(number, &placed, kernels.as_ref()) {
                let path = line.out.join(file_name(number, digits, &placed));
                if let Err(problem) = plan.add(source, part, &placed, path) {
                    // Parsers take a failed read for the end of the file.
                    files::check().map_err(CargoOffloadError::unread)?;
                    CargoOffloadError::check_unpacked(&line.file)?;
                    say::error("", &problem);
                    failures += 1;
                }
                selected.push((number, placed));
            }
            number += 1;
        }
    }
    if selected.is_empty() {
        let targets: Vec<String> = targets.into_iter().collect();
        return Err(line.selection.nothing(&name, &targets, line.find.hint()));
    }
    let left_out = plan.write(&line.out)?;
    failures += left_out.len();
    let outputs = plan.outputs.iter().enumerate();
    for (_, output) in outputs.filter(|(index, _)| !left_out.contains(index)) {
        let path = terminal(output.path.as_path());
        writeln!(out, "{path}").map_err(CargoOffloadError::unwritten)?;
    }
    let missing = line.selection.without_images(&selected, kernels.as_ref());
    if !missing.is_empty() {
        let missing = terminal(&missing.join(", ")).to_string();
        say::error("", &format_args!("{name}: no image matches {missing}"));
        return Err(CargoOffloadError::reported());
    }
    match found.problems.is_empty() && failures == 0 {
        true => Ok(()),
        false => Err(CargoOffloadError::reported()),
    }
}

/// Returns the name of an image's file: names sort in the order of images, and are unique.
fn file_name(number: usize, digits: usize, placed: &PlacedImage<'_>) -> String {
    let is_plain = |char: &char| char.is_ascii_alphanumeric() || "+-_.".contains(*char);
    let target = image_text::target(placed);
    let target: String = target
        .chars()
        .map(|char| if is_plain(&char) { char } else { '-' })
        .take(80)
        .collect();
    // The form of an image in a large compressed bundle is unknown; nearly all are code objects.
    let form = placed.image.form;
    let is_amd = placed.image.target.triple.starts_with("amdgcn");
    let form = form.or(is_amd.then_some(ImageForm::CodeObject));
    let extension = form.map_or("bin", ImageForm::extension);
    format!("{number:0digits$}-{target}.{extension}")
}

/// Outputs and what they are copied from.
struct ExtractPlan {
    sources: Sources,
    outputs: Vec<Output>,
    /// Sources of the contents of compressed bundles, by the addresses of these.
    bundles: HashMap<*const CompressedBundle, usize>,
    unpacker: ImageUnpacker,
}

impl ExtractPlan {
    /// Plans the output of an image in `part`, which is that source.
    fn add(
        &mut self,
        source: usize,
        part: &FilePart,
        placed: &PlacedImage<'_>,
        path: PathBuf,
    ) -> Result<(), CargoOffloadError> {
        let image = placed.image;
        let entry = image.fatbin_entry.as_ref();
        let unpacked = entry.filter(|entry| is_unpacked(entry));
        let failed = |problem: &dyn std::fmt::Display| {
            let place = image_text::place(placed);
            CargoOffloadError::of(&part.path, format_args!("image at {place}: {problem}"))
        };
        let piece = match (placed.data(), unpacked) {
            (ContainerData::Packed(bundle), _) => Piece::Copy {
                input: self.content_of(source, bundle),
                range: image.range.clone(),
            },
            (ContainerData::Unpacked(bytes), Some(entry)) => {
                let image = self
                    .unpacker
                    .fatbin_image(part, Some(bytes), &bytes.open(), entry);
                let image = image.map_err(|error| failed(&error))?;
                let kept = keep(&mut self.sources, &part.path, image);
                kept.map_err(|error| failed(&error))?
            }
            (ContainerData::Unpacked(bytes), None) => {
                let source = self.sources.add_unpacked(&part.path, bytes);
                Piece::Copy {
                    input: source.map_err(|error| failed(&error))?,
                    range: image.range.clone(),
                }
            }
            (ContainerData::File, Some(entry)) => {
                let data = self.sources.file(source).apart();
                let image = self.unpacker.fatbin_image(part, None, &data, entry);
                let image = image.map_err(|error| failed(&error))?;
                let kept = keep(&mut self.sources, &part.path, image);
                kept.map_err(|error| failed(&error))?
            }
            (ContainerData::File, None) => Piece::Copy {
                input: source,
                range: image.range.clone(),
            },
        };
        self.outputs.push(Output::plain(path, vec![piece]));
        Ok(())
    }

    /// Writes the outputs, if any, to files in `folder`. Reports bundles that cannot be unpacked, and returns the indices of
    /// their outputs.
    fn write(&self, folder: &Path) -> Result<BTreeSet<usize>, CargoOffloadError> {
        if self.outputs.is_empty() {
            return Ok(BTreeSet::new());
        }
        let made = std::fs::create_dir_all(folder);
        made.map_err(|problem| CargoOffloadError::of(folder, &problem))?;
        // After a failed read, a bundle looks damaged.
        let written = outputs::write_readable(&self.outputs, &self.sources, &mut |problem| {
            files::check()
                .map(|()| say::error("", &problem))
                .map_err(|_| problem)
        });
        match files::check() {
            Ok(()) => written.map_err(CargoOffloadError::new),
            Err(failure) => Err(CargoOffloadError::unread(failure)),
        }
    }

    /// Returns the source of a compressed bundle's content.
    fn content_of(&mut self, source: usize, bundle: &Arc<CompressedBundle>) -> usize {
        let key = Arc::as_ptr(bundle);
        if let Some(content) = self.bundles.get(&key) {
            return *content;
        }
        let content = self.sources.compressed(source, bundle.as_ref().clone());
        self.bundles.insert(key, content);
        content
    }
}

/// Writes an unpacked image to the scratch of the sources: only one is in memory.
fn keep(sources: &mut Sources, name: &Path, image: &[u8]) -> io::Result<Piece> {
    let size = image.len() as u64;
    let kept = sources.scratch().keep(size, |out| out.write_all(image))?;
    let source = sources.add_unpacked(name, &kept)?;
    Ok(sources.all(source))
}
