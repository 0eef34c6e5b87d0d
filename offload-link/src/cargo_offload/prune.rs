//! `cargo offload prune`: files without the device images of some targets.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anstyle::Style;
use offload_formats::container::prune::{PruneChoice, PruneCounts, PrunedFile, PtxChoice, prune};
use offload_formats::escape::terminal;
use offload_formats::format::bytes::ReadCache;
use offload_formats::format::pieces::Piece;
use serde::Serialize;

use crate::cargo_offload::error::CargoOffloadError;
use crate::cargo_offload::inputs::{self, InputLine, OpenInput};
use crate::cargo_offload::limit_option::LimitOption;
use crate::cargo_offload::text::{self, Align, FAINT, NAME, TARGET, TextTable};
use crate::files::copy_range;
use crate::{decompressed, json as json_text, say};

/// Removes the device images of some targets from programs and libraries.
///
/// Kept images keep their bytes. Images for generic processors that can run on a kept processor, and PTX, are kept.
#[derive(Debug, clap::Args)]
#[command(
    group(clap::ArgGroup::new("choice").required(true).args(["keep", "drop"])),
    group(clap::ArgGroup::new("place").required(true).args(["output", "in_place"])),
    after_help = "\
Targets are processors (gfx90a, sm_80), target IDs (gfx90a:xnack+), major versions (gfx11) and patterns (gfx94*, sm_9*).

Examples:
  cargo offload prune --keep gfx942,gfx1100 librocsparse.so.0 -o small.so
  cargo offload prune --drop gfx9 --in-place libkernels.so
  cargo offload prune --keep sm_90 --ptx drop --in-place -r lib"
)]
pub(super) struct PruneLine {
    /// Targets whose images are kept.
    #[arg(long, value_name = "TARGETS", value_delimiter = ',')]
    keep: Vec<String>,
    /// Targets whose images are removed.
    #[arg(long, value_name = "TARGETS", value_delimiter = ',')]
    drop: Vec<String>,
    /// Keep or drop PTX, which runs on GPUs without an image of their own.
    #[arg(long, value_name = "WHAT", default_value = "keep")]
    ptx: PtxOption,
    /// The new file; only for one input.
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Replace the files.
    #[arg(long)]
    in_place: bool,
    /// Remove images even if none remain.
    #[arg(long)]
    allow_empty: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limit: LimitOption,
    #[command(flatten)]
    input: InputLine,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum PtxOption {
    Keep,
    Drop,
}

#[derive(Serialize)]
struct PruneDocument {
    schema: u32,
    files: Vec<PruneReport>,
}

/// Report of one pruned file.
#[derive(Serialize)]
struct PruneReport {
    file: String,
    output: String,
    old_size: u64,
    new_size: u64,
    kept: Vec<CountedImages>,
    removed: Vec<CountedImages>,
    empty: usize,
}

#[derive(Serialize)]
struct CountedImages {
    target: String,
    images: usize,
    size: u64,
}

/// Prunes each file and prints what became of it.
pub(super) fn run(line: &PruneLine, out: &mut impl Write) -> Result<(), CargoOffloadError> {
    let ptx = match line.ptx {
        PtxOption::Keep => PtxChoice::Keep,
        PtxOption::Drop => PtxChoice::Drop,
    };
    let choice = match line.keep.is_empty() {
        false => PruneChoice::keep(line.keep.clone(), ptx),
        true => PruneChoice::drop(line.drop.clone(), ptx),
    };
    let is_single = matches!(&line.input.files[..], [file] if !file.is_dir());
    if line.output.is_some() && !is_single {
        return Err(CargoOffloadError::new(
            "prune: `--output` needs exactly one input file\nhint: `--in-place` replaces several files",
        ));
    }
    let limit = line.limit.value()?.memory();
    let mut reports = Vec::new();
    let done = line.input.each(|input| {
        let report = prune_file(line, input, &choice, limit)?;
        if !line.json {
            print(&report, out).map_err(CargoOffloadError::unwritten)?;
        }
        reports.push(report);
        Ok(())
    });
    if line.json {
        let files = reports;
        let document = json_text::text(&PruneDocument { schema: 1, files });
        let written = out.write_all(document.as_bytes());
        written.map_err(CargoOffloadError::unwritten)?;
    }
    done
}

fn prune_file(
    line: &PruneLine,
    input: &OpenInput,
    choice: &PruneChoice,
    limit: u64,
) -> Result<PruneReport, CargoOffloadError> {
    let name = input.name.as_path();
    let wrong = |problem: &dyn std::fmt::Display| {
        CargoOffloadError::new(format_args!("{}: {problem}", terminal(name)))
    };
    let cache = ReadCache::new(input.reading.part(0..input.size));
    let pruned = prune(&cache, choice, limit).map_err(|error| {
        let hint = match error.problem.is_limit() {
            true => format!("\nhint: {}", decompressed::hint()),
            false => String::new(),
        };
        wrong(&format_args!("{error}{hint}"))
    })?;
    // Parsers take a failed read for the end of the file.
    crate::files::check().map_err(CargoOffloadError::unread)?;
    let counts = &pruned.counts;
    if counts.kept.is_empty() && !line.allow_empty {
        let targets: BTreeSet<&str> = counts.removed.keys().map(String::as_str).collect();
        let targets: Vec<&str> = targets.into_iter().collect();
        return Err(wrong(&format_args!(
            "no image would remain; the file has images for {}\nhint: --allow-empty removes all of them",
            terminal(&targets.join(", "))
        )));
    }
    if counts.empty > 0 {
        let units = text::count(counts.empty, "bundle");
        let name = terminal(name);
        say::warning(
            "cargo offload prune",
            &format!("{name}: {units} without images remain"),
        );
    }
    // One of the two is given.
    let output = line.output.as_deref().unwrap_or(name);
    write(input, &pruned, output)?;
    Ok(report(input, &pruned, output))
}

fn report(input: &OpenInput, pruned: &PrunedFile, output: &Path) -> PruneReport {
    let PruneCounts { kept, removed, .. } = &pruned.counts;
    let counted = |map: &std::collections::BTreeMap<String, (usize, u64)>| {
        let rows = map.iter().map(|(target, (images, size))| CountedImages {
            target: target.clone(),
            images: *images,
            size: *size,
        });
        rows.collect()
    };
    PruneReport {
        file: input.name.to_string_lossy().into_owned(),
        output: output.to_string_lossy().into_owned(),
        old_size: input.size,
        new_size: pruned.size,
        kept: counted(kept),
        removed: counted(removed),
        empty: pruned.counts.empty,
    }
}

/// Writes the new file beside its place, compares it with the old one, and renames it.
pub(super) fn write(
    input: &OpenInput,
    pruned: &PrunedFile,
    output: &Path,
) -> Result<(), CargoOffloadError> {
    let failed = |problem: &dyn std::fmt::Display| {
        CargoOffloadError::new(format_args!("{}: {problem}", terminal(output)))
    };
    let folder = match output.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let made = tempfile::Builder::new()
        .prefix(".prune-")
        .tempfile_in(folder);
    let made = made.map_err(|error| failed(&error))?;
    let written = input.reading.file.with(|old| {
        copy(old, &pruned.pieces, made.as_file())?;
        made.as_file()
            .set_permissions(old.metadata()?.permissions())?;
        compare(old, made.as_file(), &pruned.copied)
    });
    let is_same = written.map_err(|error| failed(&error))?;
    if !is_same {
        return Err(failed(
            &"an image changed while it was copied; the file was not written",
        ));
    }
    check(&made, pruned, output)?;
    made.persist(output).map_err(|error| failed(&error.error))?;
    Ok(())
}

/// Copies the pieces, of which input 0 is the old file.
fn copy(old: &File, pieces: &[Piece], new: &File) -> io::Result<()> {
    let mut position = 0;
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => new.write_all_at(bytes, position)?,
            Piece::Copy { range, .. } => {
                copy_range(old, range.clone(), new, position).map_err(io::Error::from)?;
            }
            Piece::Zeros(_) => {}
        }
        position += piece.size();
    }
    // Zeros are holes.
    new.set_len(position)
}

/// Tells whether the images that were copied are the same in both files.
fn compare(old: &File, new: &File, copied: &[(Range<u64>, Range<u64>)]) -> io::Result<bool> {
    const PART: u64 = 1 << 20;
    let (mut one, mut two) = (vec![0; PART as usize], vec![0; PART as usize]);
    for (before, after) in copied {
        let mut done = 0;
        let size = before.end - before.start;
        while done < size {
            let count = PART.min(size - done) as usize;
            old.read_exact_at(&mut one[..count], before.start + done)?;
            new.read_exact_at(&mut two[..count], after.start + done)?;
            if one[..count] != two[..count] {
                return Ok(false);
            }
            done += count as u64;
        }
    }
    Ok(true)
}

/// Reads the new file again: every pointer leads to a bundle, and the images are those that were kept.
fn check(
    made: &tempfile::NamedTempFile,
    pruned: &PrunedFile,
    output: &Path,
) -> Result<(), CargoOffloadError> {
    let failed = |problem: &dyn std::fmt::Display| {
        CargoOffloadError::new(format_args!(
            "{}: the pruned file is not valid, and was not written: {problem}",
            terminal(output)
        ))
    };
    let again = inputs::open(made.path())?;
    let cache = ReadCache::new(again.reading.part(0..again.size));
    let keep_all = PruneChoice::drop(Vec::new(), PtxChoice::Keep);
    let read = prune(&cache, &keep_all, u64::MAX).map_err(|error| failed(&error))?;
    match read.counts.kept == pruned.counts.kept && read.size == pruned.size {
        true => Ok(()),
        false => Err(failed(&"its images are not those that were kept")),
    }
}

fn print(report: &PruneReport, out: &mut impl Write) -> io::Result<()> {
    let plain = Style::new();
    let name = terminal(&report.file);
    let (old, new) = (text::size(report.old_size), text::size(report.new_size));
    let share = text::share(report.new_size, report.old_size);
    writeln!(out, "{NAME}{name}{NAME:#}: {old} → {new} ({share})")?;
    let columns = [
        (Align::Left, plain),
        (Align::Left, TARGET),
        (Align::Right, plain),
        (Align::Right, FAINT),
    ];
    let mut table = TextTable::new(columns);
    for (what, rows) in [("kept", &report.kept), ("removed", &report.removed)] {
        for row in rows {
            table.push([
                what.to_owned(),
                terminal(&row.target).to_string(),
                text::count(row.images, "image"),
                text::size(row.size),
            ]);
        }
    }
    table.print("  ", out)
}
