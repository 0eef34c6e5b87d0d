//! `cargo offload inspect`: the device images of any file, as a tree or as JSON.

mod json;
mod kernel_text;
mod tree;

use std::io::Write;

use crate::cargo_offload::error::CargoOffloadError;
use crate::cargo_offload::find_options::FindOptions;
use crate::cargo_offload::images::{self, FileImages};
use crate::cargo_offload::inputs::{InputLine, Origin};
use crate::cargo_offload::kernels::FileKernels;
use crate::{files, say};
use json::InspectedFile;

/// Shows the device images of files: containers, targets, kinds, sizes, offsets.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Reads ELF, PE, Mach-O, archives, wheels and zip files, bundles, offload binaries, CUDA fat
binaries, code objects, cubins, PTX, bitcode and SPIR-V. It needs no GPU, ROCm, CUDA or LLVM.

Examples:
  cargo offload inspect target/release/app
  cargo offload inspect --kernels libkernels.so
  cargo offload inspect --search-data target/release/app-with-ptx-strings
  cargo offload inspect -r /opt/rocm/lib
  cargo offload inspect --json libkernels.a > images.json")]
pub(super) struct InspectLine {
    /// Show the kernels of each image: arguments, registers, memory, limits.
    #[arg(long)]
    kernels: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    find: FindOptions,
    #[command(flatten)]
    input: InputLine,
}

/// Prints the images of each file and of the files that a thin archive names. Reads only headers, whatever the size
/// of the images; for their kernels, also symbols and notes.
pub(super) fn run(line: &InspectLine, out: &mut impl Write) -> Result<(), CargoOffloadError> {
    let limit = line.find.limit()?;
    let mut settings = line.find.settings(files::scratch())?;
    let mut totals = tree::Totals::default();
    let mut inspected = Vec::new();
    let mut without = 0;
    let done = line.input.each(|input| {
        let mut found = FileImages::find(input, &mut settings);
        found.identify();
        let kernels = line.kernels.then(|| FileKernels::read(&mut found, limit));
        CargoOffloadError::check_unpacked(&input.name)?;
        let name = images::shown(&input.name);
        if found.count() == 0 && found.problems.is_empty() && input.origin == Origin::Searched {
            without += 1;
            return Ok(());
        }
        if line.json {
            inspected.push(InspectedFile::of(input, &found, kernels));
        } else {
            let kernels = kernels.as_ref();
            let written = tree::print(&name, &found, kernels, out);
            written.map_err(CargoOffloadError::unwritten)?;
            if let (0, Some(hint)) = (found.count(), line.find.hint()) {
                let written = writeln!(out, "  hint: {hint}");
                written.map_err(CargoOffloadError::unwritten)?;
            }
            totals.add(&found, kernels);
        }
        for problem in &found.problems {
            say::error("", &format_args!("{name}: {problem}"));
        }
        match found.problems.is_empty() {
            true => Ok(()),
            false => Err(CargoOffloadError::reported()),
        }
    });
    let written = match line.json {
        true => crate::json::write(&json::InspectDocument::of(&inspected), out),
        false => totals.print(without, out),
    };
    written.map_err(CargoOffloadError::unwritten)?;
    done
}
