//! `cargo offload size` and `diff`: bytes of device code by target, container and image, and how they changed.

mod changes;
mod compression;
mod duplicates;
mod html;
mod json;
mod measure;
mod svg;
mod treemap;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anstyle::Style;
use offload_formats::container::inventory::ContainerFormat;
use offload_formats::escape::terminal;

use crate::cargo_offload::error::CargoOffloadError;
use crate::cargo_offload::find_options::FindOptions;
use crate::cargo_offload::images::FileImages;
use crate::cargo_offload::inputs;
use crate::cargo_offload::kernels::{FileKernels, shown_name};
use crate::cargo_offload::text::{self, Align, FAINT, NAME, TARGET, TextTable};
use crate::{files, say};
use compression::EstimatedCompression;
use duplicates::DuplicateImages;
use measure::{MeasuredContainer, MeasuredFile, MeasuredKernel};

/// Measures the device code of a file, by target and by container.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A compressed container's size is shared among its images by their unpacked sizes.

Examples:
  cargo offload size librocsparse.so.0
  cargo offload size librocsparse.so.0 --svg sizes.svg
  cargo offload size libkernels.so --kernels --top 50 --svg kernels.svg
  cargo offload size libkernels.so --duplicates --estimate-compression
  cargo offload size new/libkernels.so old/libkernels.so")]
pub(super) struct SizeLine {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Draw a treemap of the images.
    #[arg(long, value_name = "PATH", conflicts_with = "old")]
    svg: Option<PathBuf>,
    /// Write an HTML page with the treemap and a sortable table.
    #[arg(long, value_name = "PATH", conflicts_with = "old")]
    html: Option<PathBuf>,
    /// Measure the code of each kernel; the treemap then has kernels instead of images.
    #[arg(long)]
    kernels: bool,
    /// Find images with the same bytes. Reads all images.
    #[arg(long, conflicts_with = "old")]
    duplicates: bool,
    /// Compress the bundles that are not compressed, and show what that would save. Nothing is written.
    #[arg(long, conflicts_with = "old")]
    estimate_compression: bool,
    /// Number of largest containers and kernels to show; 0 shows none.
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    top: usize,
    #[command(flatten)]
    find: FindOptions,
    /// The file; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// An older version of the file, to show what changed.
    #[arg(value_name = "OLD")]
    old: Option<PathBuf>,
}

/// Shows how the device code of a file changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo offload diff old/libkernels.so new/libkernels.so
  cargo offload diff --kernels old/libkernels.so new/libkernels.so")]
pub(super) struct DiffLine {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Show the kernels whose code changed.
    #[arg(long)]
    kernels: bool,
    /// Number of kernels to show; 0 shows none.
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    top: usize,
    #[command(flatten)]
    find: FindOptions,
    /// The older file.
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The newer file.
    #[arg(value_name = "NEW")]
    new: PathBuf,
}

/// Prints the sizes of a file, or of the difference to an older one.
pub(super) fn run(line: &SizeLine, out: &mut impl Write) -> Result<(), CargoOffloadError> {
    if let Some(old) = &line.old {
        let parts = MeasuredParts {
            kernels: line.kernels,
            ..MeasuredParts::default()
        };
        return compare(
            (old, &line.file),
            &line.find,
            parts,
            (line.json, line.top),
            out,
        );
    }
    let parts = MeasuredParts {
        kernels: line.kernels,
        duplicates: line.duplicates,
        compression: line.estimate_compression,
    };
    let (file, is_whole) = measure(&line.file, &line.find, parts)?;
    if let Some(path) = &line.svg {
        write_file(path, &svg::draw(&file))?;
    }
    if let Some(path) = &line.html {
        write_file(path, &html::page(&file))?;
    }
    let written = match line.json {
        true => crate::json::write(&json::SizeDocument::of(&file), out),
        false => print(&file, line.top, out),
    };
    written.map_err(CargoOffloadError::unwritten)?;
    finish(is_whole)
}

/// Prints the difference of two files.
pub(super) fn diff(line: &DiffLine, out: &mut impl Write) -> Result<(), CargoOffloadError> {
    let parts = MeasuredParts {
        kernels: line.kernels,
        ..MeasuredParts::default()
    };
    let files = (line.old.as_path(), line.new.as_path());
    compare(files, &line.find, parts, (line.json, line.top), out)
}

fn compare(
    (old, new): (&Path, &Path),
    find: &FindOptions,
    parts: MeasuredParts,
    (json, top): (bool, usize),
    out: &mut impl Write,
) -> Result<(), CargoOffloadError> {
    let (old, is_old_whole) = measure(old, find, parts)?;
    let (new, is_new_whole) = measure(new, find, parts)?;
    let written = match json {
        true => crate::json::write(&json::DiffDocument::of(&old, &new), out),
        false => changes::print(&old, &new, top, out),
    };
    written.map_err(CargoOffloadError::unwritten)?;
    finish(is_old_whole && is_new_whole)
}

/// Parts of a file that are measured besides its images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MeasuredParts {
    kernels: bool,
    duplicates: bool,
    compression: bool,
}

/// Measures a file, and tells whether all of it could be read; problems are reported.
fn measure(
    path: &Path,
    find: &FindOptions,
    parts: MeasuredParts,
) -> Result<(MeasuredFile, bool), CargoOffloadError> {
    let input = inputs::open(path)?;
    let limit = find.limit()?;
    let mut settings = find.settings(files::scratch())?;
    let mut found = FileImages::find(&input, &mut settings);
    let kernels = parts.kernels.then(|| FileKernels::read(&mut found, limit));
    let duplicates = parts
        .duplicates
        .then(|| DuplicateImages::find(&mut found, limit));
    let compression = parts
        .compression
        .then(|| EstimatedCompression::of(&mut found, limit.memory()));
    CargoOffloadError::check_unpacked(path)?;
    for problem in &found.problems {
        say::error("", &format_args!("{}: {problem}", terminal(path)));
    }
    let measured = MeasuredFile {
        duplicates,
        compression,
        ..MeasuredFile::of(&input, &found, kernels.as_ref())
    };
    Ok((measured, found.problems.is_empty()))
}

fn finish(is_whole: bool) -> Result<(), CargoOffloadError> {
    match is_whole {
        true => Ok(()),
        false => Err(CargoOffloadError::reported()),
    }
}

fn write_file(path: &Path, content: &str) -> Result<(), CargoOffloadError> {
    let written = files::write_beside(path, content.as_bytes());
    written.map_err(|problem| CargoOffloadError::of(path, problem))
}

fn print(file: &MeasuredFile, top: usize, out: &mut impl Write) -> io::Result<()> {
    let plain = Style::new();
    let (all, device) = (file.size, file.device());
    let name = &file.name;
    let (size, code) = (text::size(all), text::size(device));
    let share = text::share(device, all);
    writeln!(
        out,
        "{NAME}{name}{NAME:#}: {size}, device code {code} ({share})"
    )?;
    let columns = [
        (Align::Left, TARGET),
        (Align::Right, plain),
        (Align::Right, plain),
        (Align::Right, FAINT),
        (Align::Left, FAINT),
    ];
    let mut table = TextTable::new(columns);
    for (target, sizes) in &file.targets {
        let unpacked = match sizes.stored == sizes.unpacked {
            true => String::new(),
            false => format!("{} unpacked", text::size(sizes.unpacked)),
        };
        table.push([
            target.clone(),
            text::count(sizes.images, "image"),
            text::size(sizes.stored),
            text::share(sizes.stored, all),
            unpacked,
        ]);
    }
    table.print("  ", out)?;
    let largest = largest(file, top);
    if largest.len() > 1 {
        writeln!(out, "largest containers")?;
        let columns = [
            (Align::Right, plain),
            (Align::Right, FAINT),
            (Align::Left, plain),
            (Align::Left, FAINT),
            (Align::Left, FAINT),
        ];
        let mut table = TextTable::new(columns);
        for container in largest {
            table.push([
                text::size(container.stored),
                text::share(container.stored, all),
                container.place.clone(),
                format!("{} {}", container.format.name(), container.index),
                text::count(container.images.len(), "image"),
            ]);
        }
        table.print("  ", out)?;
    }
    if let Some(kernels) = &file.kernels {
        print_kernels(kernels, file.unpacked(), top, out)?;
    }
    if let Some(duplicates) = &file.duplicates {
        print_duplicates(duplicates, top, out)?;
    }
    print_savings(file, out)
}

/// Prints the largest kernels; `all` is the size of all images, unpacked.
fn print_kernels(
    kernels: &[MeasuredKernel],
    all: u64,
    top: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let sizes = kernels.iter().map(|kernel| kernel.code_size);
    let code = sizes.fold(0, u64::saturating_add);
    let (count, size) = (text::count(kernels.len(), "kernel"), text::size(code));
    let share = text::share(code, all);
    writeln!(out, "{count}, code {size} ({share} of the unpacked images)")?;
    let plain = Style::new();
    let columns = [
        (Align::Right, plain),
        (Align::Right, FAINT),
        (Align::Right, FAINT),
        (Align::Left, plain),
    ];
    let mut table = TextTable::new(columns);
    for kernel in kernels.iter().take(top) {
        table.push([
            text::size(kernel.code_size),
            text::share(kernel.code_size, all),
            text::count(kernel.images, "image"),
            terminal(&shown_name(&kernel.symbol)).to_string(),
        ]);
    }
    table.print("  ", out)
}

/// Prints the images that are the same.
fn print_duplicates(
    duplicates: &[DuplicateImages],
    top: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let wasted = duplicates.iter().map(DuplicateImages::wasted);
    let wasted = text::size(wasted.fold(0, u64::saturating_add));
    let copies = duplicates.iter().map(|same| same.images.len() - 1).sum();
    match copies {
        0 => return writeln!(out, "no duplicate images"),
        1 => writeln!(out, "1 image is a copy of another one: {wasted} unpacked")?,
        _ => writeln!(
            out,
            "{copies} images are copies of others: {wasted} unpacked"
        )?,
    }
    let plain = Style::new();
    let columns = [
        (Align::Right, plain),
        (Align::Left, TARGET),
        (Align::Left, FAINT),
    ];
    let mut table = TextTable::new(columns);
    for same in duplicates.iter().take(top) {
        let numbers = same.images.iter();
        let numbers: Vec<String> = numbers.map(ToString::to_string).collect();
        table.push([
            text::size(same.wasted()),
            same.target.clone(),
            format!("images {}", numbers.join(", ")),
        ]);
    }
    table.print("  ", out)
}

fn largest(file: &MeasuredFile, top: usize) -> Vec<&MeasuredContainer> {
    let mut containers: Vec<&MeasuredContainer> = file.containers.iter().collect();
    containers.sort_by_key(|container| std::cmp::Reverse(container.stored));
    containers.truncate(top);
    containers
}

/// Prints how much smaller the file is without a target.
fn print_savings(file: &MeasuredFile, out: &mut impl Write) -> io::Result<()> {
    if file.targets.len() > 1 {
        let largest = file
            .targets
            .iter()
            .max_by_key(|(_, sizes)| sizes.stored)
            .expect("there are targets");
        let all: u64 = file.targets.values().map(|sizes| sizes.stored).sum();
        let (target, sizes) = largest;
        writeln!(
            out,
            "keeping only {TARGET}{target}{TARGET:#} would save {}",
            text::size(all.saturating_sub(sizes.stored))
        )?;
    }
    if let Some(all) = file.compression.filter(|all| all.bundles > 0) {
        let [plain, packed] = [all.plain, all.packed].map(text::size);
        let saved = text::size(all.plain.saturating_sub(all.packed));
        return writeln!(
            out,
            "{} of {plain} would have {packed} compressed: saves {saved}",
            text::count(all.bundles, "bundle"),
        );
    }
    let plain: u64 = file
        .containers
        .iter()
        .filter(|container| !container.is_compressed && container.format == ContainerFormat::Bundle)
        .map(|container| container.unpacked)
        .sum();
    if plain > 0 {
        let plain = text::size(plain);
        writeln!(out, "{plain} are in bundles that are not compressed")?;
    }
    Ok(())
}
