//! `cargo offload prune`: files without the device images of some targets.
//!
//! | file | purpose |
//! |---|---|
//! | `new_file.rs` | new files: written, compared with the old ones, and renamed |
//! | `wheel.rs`, `record.rs` | zip files, and the `RECORD` of wheels |
//! | `tree.rs` | folders |
//! | `unchanged.rs` | what stays as it is |
//! | `report.rs` | what became of each file |

mod new_file;
mod record;
mod report;
mod tree;
mod unchanged;
mod wheel;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use offload_formats::container::prune::{
    PruneChoice, PruneCounts, PruneError, PruneProblem, PrunedFile, PtxChoice, prune,
};
use offload_formats::escape::terminal;
use offload_formats::format::bytes::{ReadAt, ReadCache};
use offload_formats::format::unpacked::Scratch;

use crate::cargo_offload::error::CargoOffloadError;
use crate::cargo_offload::inputs::{InputLine, OpenInput, Origin};
use crate::cargo_offload::limit_option::LimitOption;
use crate::cargo_offload::{target_name, text};
use crate::decompressed::DecompressionLimit;
use crate::{decompressed, files, json, say};

/// The hint for a file without images that can be pruned.
const IN_DATA: &str = "images in the middle of data, such as `include_bytes!`, are not pruned; `cargo offload inspect --search-data` \
    lists them";
use report::{PruneDocument, PruneReport};
use tree::PrunedTree;
use unchanged::{contains_images, images_stay, warn_of_left};
use wheel::ZipPruning;

/// Removes the device images of some targets from programs, libraries, objects, archives, wheels and folders.
///
/// Kept images keep their bytes. Also kept are images for generic processors that can run on a kept processor, PTX, SPIR-V, and images for CPUs.
#[derive(Debug, clap::Args)]
#[command(
    group(clap::ArgGroup::new("choice").required(true).args(["keep", "drop"])),
    group(clap::ArgGroup::new("place").required(true).args(["output", "in_place"])),
    after_help = "\
Targets are processors (gfx90a, sm_80), target IDs (gfx90a:xnack+), major versions (gfx11) and patterns (gfx94*, sm_9*).

Examples:
  cargo offload prune --keep gfx942,gfx1100 librocsparse.so.0 -o small.so
  cargo offload prune --drop gfx9 --in-place libkernels.so
  cargo offload prune --keep gfx942 pkg-1.0-py3-none-linux_x86_64.whl -o small/pkg-1.0-py3-none-linux_x86_64.whl
  cargo offload prune --keep sm_90 --ptx drop -r lib -o small"
)]
pub(super) struct PruneLine {
    /// Targets whose images are kept.
    #[arg(long, value_name = "TARGETS", value_delimiter = ',', value_parser = target_name::parse)]
    keep: Vec<String>,
    /// Targets whose images are removed.
    #[arg(long, value_name = "TARGETS", value_delimiter = ',', value_parser = target_name::parse)]
    drop: Vec<String>,
    /// Keep or drop PTX, which runs on GPUs without an image of their own. PTX stays if a kept GPU has no other image.
    #[arg(long, value_name = "WHAT", default_value = "keep")]
    ptx: PtxOption,
    /// The new file, or with -r the new folder, which gets a copy of all other files, too; only for one input.
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
    let tree = match (&line.output, &line.input.files[..]) {
        (None, _) => None,
        (Some(to), _) if to.as_os_str() == "-" => {
            return Err(CargoOffloadError::usage(
                "prune: `--output -`: the new file cannot be written to standard output, which has the report\nhint: name a file",
            ));
        }
        (Some(to), [from]) => {
            (from.is_dir() && line.input.recursive).then_some(PrunedTree { from, to })
        }
        (Some(_), _) => {
            return Err(CargoOffloadError::usage(
                "prune: `--output` needs exactly one input\nhint: `--in-place` replaces several files",
            ));
        }
    };
    if let Some(tree) = &tree {
        tree.prepare()?;
    }
    let pruner = Pruner {
        line,
        choice,
        limit: line.limit.value()?,
        tree,
    };
    let mut reports = Vec::new();
    let mut has_removed = false;
    let done = line.input.each(|input| {
        let Some(report) = pruner.file(input)? else {
            return Ok(());
        };
        has_removed |= report.has_removed();
        if !line.json {
            report::print(&report, out).map_err(CargoOffloadError::unwritten)?;
        }
        reports.push(report);
        Ok(())
    });
    if line.json {
        let files = reports;
        let document = PruneDocument { schema: 1, files };
        json::write(&document, out).map_err(CargoOffloadError::unwritten)?;
    }
    if done.is_ok() && !has_removed && !line.drop.is_empty() {
        let text = format!(
            "no image was removed: none is for {}",
            terminal(&line.drop.join(", "))
        );
        say::warning("cargo offload prune", &text);
    }
    done
}

struct Pruner<'a> {
    line: &'a PruneLine,
    choice: PruneChoice,
    limit: DecompressionLimit,
    tree: Option<PrunedTree<'a>>,
}

impl Pruner<'_> {
    /// Prunes a file. `None` if it was found in a folder and has no images.
    fn file(&self, input: &OpenInput) -> Result<Option<PruneReport>, CargoOffloadError> {
        let name = input.name.as_path();
        if self.line.in_place && name.as_os_str() == "-" {
            return Err(CargoOffloadError::of(
                name,
                "standard input has no place; pass -o",
            ));
        }
        let output: PathBuf = match (&self.tree, &self.line.output) {
            (Some(tree), _) => tree.place(name),
            (None, Some(output)) => output.clone(),
            (None, None) => name.to_owned(),
        };
        let done = self.prune(input, &output);
        // A folder is complete, whatever its files are.
        if self.tree.is_some() && !matches!(done, Ok(Some(_))) {
            tree::copy_file(name, &output)?;
        }
        done
    }

    fn prune(
        &self,
        input: &OpenInput,
        output: &Path,
    ) -> Result<Option<PruneReport>, CargoOffloadError> {
        let name = input.name.as_path();
        let cache = ReadCache::new(input.reading.part(0..input.size));
        if wheel::is_zip(&cache, input.size) {
            drop(cache);
            return self.zip(input, output);
        }
        let contents = files::scratch();
        let pruned = match prune(&cache, &self.choice, self.limit, &contents) {
            Ok(pruned) => pruned,
            Err(error) if passes_over("cargo offload prune", input, &cache, &error) => {
                return Ok(None);
            }
            Err(error) if matches!(error.problem, PruneProblem::NoImages) => {
                return Err(CargoOffloadError::of(
                    name,
                    format_args!("{error}\nhint: {IN_DATA}"),
                ));
            }
            Err(error) => {
                return Err(CargoOffloadError::of(
                    name,
                    decompressed::with_hint(&error, error.problem.remedy()),
                ));
            }
        };
        self.check(name, &pruned.counts)?;
        if !self.is_unchanged(&pruned.counts) {
            write(input, &pruned, &contents, output)?;
        }
        let (old, new) = ((name, input.size), (output, pruned.size));
        let left = pruned.left.iter().map(ToString::to_string).collect();
        Ok(Some(Self::report(old, new, &pruned.counts, left)))
    }

    fn zip(
        &self,
        input: &OpenInput,
        output: &Path,
    ) -> Result<Option<PruneReport>, CargoOffloadError> {
        let name = input.name.as_path();
        let pruned = wheel::prune_zip(&input.reading, input.size, &self.choice, &self.limit);
        let pruned = match pruned.map_err(|problem| CargoOffloadError::of(name, &problem))? {
            ZipPruning::Pruned(pruned) => pruned,
            ZipPruning::Nothing(left) => {
                warn_of_left(name, &left);
                let hint = match left.is_empty() {
                    true => format!("\nhint: {IN_DATA}"),
                    false => String::new(),
                };
                let nothing =
                    format!("no device images that can be pruned are in the zip file{hint}");
                return match input.origin {
                    Origin::Named => Err(CargoOffloadError::of(name, nothing)),
                    Origin::Searched => Ok(None),
                };
            }
        };
        self.check(name, &pruned.counts)?;
        if !self.is_unchanged(&pruned.counts) {
            let made = new_file::create(output)?;
            let new = made.open();
            let new = new.map_err(|error| CargoOffloadError::of(output, &error))?;
            let written = pruned.write(&input.reading, &new, &self.limit);
            written.map_err(|problem| CargoOffloadError::of(output, &problem))?;
            new_file::finish(made, &input.reading.file, output)?;
        }
        let (old, new) = ((name, input.size), (output, pruned.size));
        Ok(Some(Self::report(old, new, &pruned.counts, pruned.left)))
    }

    fn report(
        old: (&Path, u64),
        new: (&Path, u64),
        counts: &PruneCounts,
        left: Vec<String>,
    ) -> PruneReport {
        warn_of_left(old.0, &left);
        PruneReport::new(old, new, counts, left)
    }

    /// Tells whether the old file stays as it is.
    fn is_unchanged(&self, counts: &PruneCounts) -> bool {
        self.line.in_place && counts.removed.is_empty()
    }

    /// Checks that images remain, and that all reads succeeded.
    fn check(&self, name: &Path, counts: &PruneCounts) -> Result<(), CargoOffloadError> {
        // Parsers take a failed read for the end of the file.
        files::check().map_err(CargoOffloadError::unread)?;
        let removes_all = counts.kept.is_empty() && !counts.removed.is_empty();
        if removes_all && !self.line.allow_empty {
            let targets: BTreeSet<&str> = counts.removed.keys().map(String::as_str).collect();
            let targets: Vec<&str> = targets.into_iter().collect();
            return Err(CargoOffloadError::of(
                name,
                format_args!(
                    "no image would remain; the file has images for {}\nhint: --allow-empty removes all of them",
                    terminal(&targets.join(", "))
                ),
            ));
        }
        if counts.empty > 0 {
            let units = text::count(counts.empty, "container");
            let name = terminal(name);
            say::warning(
                "cargo offload prune",
                &format!(
                    "{name}: {units} without images: none was for a kept target, and their kernels cannot start"
                ),
            );
        }
        Ok(())
    }
}

/// Tells whether a command passes over a file that it cannot change: one of a folder. Warns if the file has device images.
pub(super) fn passes_over<'d>(
    command: &str,
    input: &OpenInput,
    data: impl ReadAt<'d>,
    error: &PruneError,
) -> bool {
    let (problem, name) = (&error.problem, terminal(&*input.name));
    if input.origin != Origin::Searched {
        return false;
    }
    if problem.is_unsupported() {
        say::warning(command, &format!("{name}: {error}"));
    } else if problem.is_without_images() {
        if contains_images(data, input.size) {
            say::warning(command, &format!("{name}: {}", images_stay(error)));
        }
    } else {
        return false;
    }
    true
}

/// Writes the new file, whose input 1 is `contents`, beside its place, compares it with the old one, and gives it its name.
pub(super) fn write(
    input: &OpenInput,
    pruned: &PrunedFile,
    contents: &Scratch,
    output: &Path,
) -> Result<(), CargoOffloadError> {
    let made = new_file::create(output)?;
    let written = input.reading.file.with(|old| {
        Ok(new_file::write_checked(
            old,
            0,
            pruned,
            contents,
            &made.open()?,
        ))
    });
    written
        .unwrap_or_else(|error| Err(error.to_string()))
        .map_err(|problem| CargoOffloadError::of(output, &problem))?;
    new_file::finish(made, &input.reading.file, output)
}
