//! `cargo offload compress` and `decompress`: bundles and fat binaries with another compression.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use offload_formats::container::decompression_limit::DecompressionLimit;
use offload_formats::container::prune::{
    FatbinRecompression, PruneChoice, PtxChoice, Recompression, prune,
};
use offload_formats::escape::terminal;
use offload_formats::format::bytes::ReadCache;
use offload_formats::format::compressed_bundle::{
    CompressedBundleVersion, Compression, HipRuntime, Method,
};
use offload_formats::format::fatbin::FatbinCompressor;
use offload_formats::format::magic::Magic;
use serde::Serialize;

use super::error::CargoOffloadError;
use super::inputs::{InputLine, OpenInput, Origin};
use super::limit_option::LimitOption;
use super::prune::{passes_over, write};
use super::text::{self, NAME};
use crate::{decompressed, files, json, say};

/// Compresses images for HIP and CUDA: files of bundles and fat binaries, and those in programs and libraries.
///
/// Programs register the images as before, and the runtime unpacks them when it loads them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --runtime and --method, HIP's bundles get version 2 with zstd, which ROCm 6.3 and later
read (docs/verify.md has the table). Images of CUDA that are not compressed become LZ4, which every
driver reads. Drivers of CUDA 12.4 and later read zstd, too.

Examples:
  cargo offload compress --runtime rocm-6.4 libkernels.so -o small.so
  cargo offload compress --level 19 --in-place kernels.hipfb
  cargo offload compress --method zstd --level 19 libcuda_kernels.so -o small.so
  cargo offload compress --method zlib --runtime rocm-6.2 --in-place -r lib")]
pub(super) struct CompressLine {
    /// Release of ROCm that must read the bundles, such as rocm-6.4; CUDA's fat binaries stay as they are.
    #[arg(long, value_name = "RUNTIME")]
    runtime: Option<HipRuntime>,
    /// Compression method; containers with another method are compressed again. lz4 is for CUDA only, zlib for HIP only.
    #[arg(long, value_name = "METHOD")]
    method: Option<MethodOption>,
    /// Compression level: 1 to 22 for zstd, 1 to 9 for zlib [default: 3 for zstd, 6 for zlib].
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(i32).range(1..=22))]
    level: Option<i32>,
    #[command(flatten)]
    common: RecompressOptions,
}

/// Decompresses files of bundles and fat binaries.
///
/// Programs and libraries are refused: they have no room for larger images. Images of CUDA that are compressed together stay
/// so.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  cargo offload decompress kernels.hipfb -o plain.hipfb")]
pub(super) struct DecompressLine {
    #[command(flatten)]
    common: RecompressOptions,
}

/// Options of both commands.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("place").required(true).args(["output", "in_place"])))]
struct RecompressOptions {
    /// The new file; only for one input.
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Replace the files.
    #[arg(long)]
    in_place: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limit: LimitOption,
    #[command(flatten)]
    input: InputLine,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum MethodOption {
    Zstd,
    Zlib,
    Lz4,
}

#[derive(Serialize)]
struct RecompressDocument {
    schema: u32,
    files: Vec<RecompressedFile>,
}

/// Report of one file.
#[derive(Serialize)]
struct RecompressedFile {
    file: String,
    output: String,
    old_size: u64,
    new_size: u64,
    containers: usize,
}

impl CompressLine {
    /// Returns the compression that the options ask for.
    fn recompression(&self) -> Result<Recompression, CargoOffloadError> {
        let bundles = match self.method {
            Some(MethodOption::Lz4) if self.level.is_some() => {
                return Err(CargoOffloadError::new(
                    "lz4 has no levels\nhint: leave out --level",
                ));
            }
            Some(MethodOption::Lz4) => match self.runtime {
                None => None,
                Some(runtime) => return Err(unread_method(runtime)),
            },
            Some(MethodOption::Zlib) => Some(self.of_bundles(Some(Method::Zlib))?),
            Some(MethodOption::Zstd) => Some(self.of_bundles(Some(Method::Zstd))?),
            None => Some(self.of_bundles(None)?),
        };
        let level = self.level;
        let compressor = match self.method {
            Some(MethodOption::Zlib) => None,
            Some(MethodOption::Zstd) => Some(FatbinCompressor::Zstd { level }),
            Some(MethodOption::Lz4) | None => Some(FatbinCompressor::Lz4),
        };
        let fatbins = compressor.map(|compressor| FatbinRecompression {
            compressor,
            replaces: self.method.is_some(),
        });
        Ok(Recompression::Compress {
            bundles,
            fatbins: fatbins.filter(|_| self.runtime.is_none()),
        })
    }

    /// Returns the compression of bundles.
    fn of_bundles(&self, method: Option<Method>) -> Result<Compression, CargoOffloadError> {
        let (mut version, mut best) = (CompressedBundleVersion::V2, Method::Zstd);
        if let Some(runtime) = self.runtime {
            let newest = runtime.versions().last().zip(runtime.methods().last());
            let Some((newest, newest_method)) = newest else {
                return Err(CargoOffloadError::new(format_args!(
                    "{runtime} reads no compressed bundles\nhint: ROCm 6.2 and later do"
                )));
            };
            (version, best) = (*newest, *newest_method);
            if method.is_some_and(|method| !runtime.reads(version, method)) {
                return Err(unread_method(runtime));
            }
        }
        let method = method.unwrap_or(best);
        if let Some(level) = self.level.filter(|level| !method.levels().contains(level)) {
            let last = *method.levels().end();
            return Err(CargoOffloadError::new(format_args!(
                "{method} has no level {level}\nhint: its levels are 1 to {last}"
            )));
        }
        Ok(Compression {
            version,
            method,
            level: self.level,
            ..Compression::default()
        })
    }
}

fn unread_method(runtime: HipRuntime) -> CargoOffloadError {
    CargoOffloadError::new(format_args!(
        "{runtime} does not read this method\nhint: leave out --method"
    ))
}

/// Compresses each file and prints its sizes.
pub(super) fn run(line: &CompressLine, out: &mut impl Write) -> Result<(), CargoOffloadError> {
    recompress(&line.common, line.recompression()?, out)
}

/// Decompresses each file and prints its sizes.
pub(super) fn decompress(
    line: &DecompressLine,
    out: &mut impl Write,
) -> Result<(), CargoOffloadError> {
    recompress(&line.common, Recompression::Decompress, out)
}

fn recompress(
    options: &RecompressOptions,
    how: Recompression,
    out: &mut impl Write,
) -> Result<(), CargoOffloadError> {
    let is_stream = |path: &Path| path == Path::new("-");
    if options.output.as_deref().is_some_and(is_stream) {
        return Err(CargoOffloadError::usage(
            "`--output -`: the new file cannot be written to standard output, which has the report\nhint: name a file",
        ));
    }
    if options.in_place && options.input.files.iter().any(|path| is_stream(path)) {
        return Err(CargoOffloadError::usage(
            "`--in-place`: standard input has no place\nhint: pass -o",
        ));
    }
    let is_single = matches!(&options.input.files[..], [file] if !file.is_dir());
    if options.output.is_some() && !is_single {
        return Err(CargoOffloadError::new(
            "`--output` needs exactly one input file\nhint: `--in-place` replaces several files",
        ));
    }
    let limit = options.limit.value()?;
    let mut files = Vec::new();
    let done = options.input.each(|input| {
        let Some(file) = recompress_file(options, input, how, limit)? else {
            return Ok(());
        };
        if !options.json {
            print(&file, out).map_err(CargoOffloadError::unwritten)?;
        }
        files.push(file);
        Ok(())
    });
    if options.json {
        let document = RecompressDocument { schema: 1, files };
        json::write(&document, out).map_err(CargoOffloadError::unwritten)?;
    }
    done
}

/// Recompresses a file. `None` if it was found in a folder, and has no images or is of a kind that is not changed.
fn recompress_file(
    options: &RecompressOptions,
    input: &OpenInput,
    how: Recompression,
    limit: DecompressionLimit,
) -> Result<Option<RecompressedFile>, CargoOffloadError> {
    let name = input.name.as_path();
    let wrong = |problem: &dyn std::fmt::Display| CargoOffloadError::of(name, problem);
    let cache = ReadCache::new(input.reading.part(0..input.size));
    let is_searched = input.origin == Origin::Searched;
    let refused = || {
        wrong(
            &"decompressed images do not fit into a program, library or object\n\
            hint: `cargo offload extract` writes the images to files",
        )
    };
    let is_full =
        how == Recompression::Decompress && Magic::at(&cache, 0..input.size) == Magic::Elf;
    if is_full && !is_searched {
        return Err(refused());
    }
    let choice = match is_full {
        true => PruneChoice::drop(Vec::new(), PtxChoice::Keep),
        false => PruneChoice::recompress(how),
    };
    let command = match how {
        Recompression::Decompress => "cargo offload decompress",
        _ => "cargo offload compress",
    };
    let contents = files::scratch();
    let changed = match prune(&cache, &choice, limit, &contents) {
        Err(error) if passes_over(command, input, &cache, &error) => return Ok(None),
        _ if is_full => return Err(refused()),
        Ok(changed) => changed,
        Err(error) => {
            return Err(wrong(&decompressed::with_hint(
                &error,
                error.problem.remedy(),
            )));
        }
    };
    // Parsers take a failed read for the end of the file.
    files::check().map_err(CargoOffloadError::unread)?;
    for left in &changed.left {
        say::warning(command, &format!("{}: {left}", terminal(name)));
    }
    // One of the two is given.
    let output = options.output.as_deref().unwrap_or(name);
    if options.output.is_some() || changed.counts.recompressed > 0 {
        write(input, &changed, &contents, output)?;
    }
    Ok(Some(RecompressedFile {
        file: input.name.to_string_lossy().into_owned(),
        output: output.to_string_lossy().into_owned(),
        old_size: input.size,
        new_size: changed.size,
        containers: changed.counts.recompressed,
    }))
}

fn print(file: &RecompressedFile, out: &mut impl Write) -> io::Result<()> {
    let name = terminal(&file.file);
    let (old, new) = (text::size(file.old_size), text::size(file.new_size));
    match file.containers {
        0 => writeln!(out, "{NAME}{name}{NAME:#}: {old}, no container changes"),
        count => {
            let containers = text::count(count, "container");
            writeln!(out, "{NAME}{name}{NAME:#}: {old} → {new}, {containers}")
        }
    }
}
