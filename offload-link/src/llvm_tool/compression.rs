//! Writes and reads whole compressed bundles, and prints their facts for `-verbose`.

use std::fmt::Write as _;
use std::fs::File;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::{Duration, Instant};

use offload_formats::escape::terminal;
use offload_formats::format::compressed_bundle::{
    self, CompressedBundle, CompressedBundleVersion, CompressedBundleWriteError, CompressedHeader,
    Compression, Method, compress_to,
};
use offload_formats::format::offload_binary::{self, OffloadBinaryWriteError};
use offload_formats::format::pieces::Piece;

use super::error::LlvmToolError;
use super::output::Output;
use super::sources::Sources;
use crate::decompressed;

/// Compresses the pieces of an output into its file.
pub(crate) fn write(
    output: &Output,
    sources: &Sources,
    how: Compression,
    verbose: bool,
    mut out: &File,
) -> Result<(), LlvmToolError> {
    let size = output.pieces.iter().map(Piece::size).sum();
    let start = Instant::now();
    let written = compress_to(how, size, sources.reader(&output.pieces), &mut out);
    let written = written.map_err(|error| match error {
        // The message names the input.
        CompressedBundleWriteError::Input { message } => LlvmToolError::new(message),
        error => LlvmToolError::input(&output.path, error),
    })?;
    if verbose {
        eprint!("{}", after_writing(&written, how, size, start.elapsed()));
    }
    Ok(())
}

/// Compresses the pieces of an output, which are an offload binary, into its file.
pub(crate) fn write_binary(
    output: &Output,
    sources: &Sources,
    method: Method,
    level: Option<i32>,
    mut out: &File,
) -> Result<(), LlvmToolError> {
    let size = output.pieces.iter().map(Piece::size).sum();
    let binary = sources.reader(&output.pieces);
    let written = offload_binary::compress_to(binary, size, method, level, &mut out);
    written.map_err(|error| match error {
        // The message names the input.
        OffloadBinaryWriteError::Input { message } => LlvmToolError::new(message),
        error @ OffloadBinaryWriteError::Output { .. } => LlvmToolError::input(&output.path, error),
        error => LlvmToolError::new(error.to_string()),
    })
}

/// Returns the number of processors, at least one.
pub(crate) fn all_processors() -> NonZeroU32 {
    let count = std::thread::available_parallelism().ok();
    let count = count.and_then(|count| NonZeroU32::try_from(count).ok());
    count.unwrap_or(NonZeroU32::MIN)
}

/// Decompresses a source into a file of its own.
pub(crate) fn materialize(
    sources: &mut Sources,
    source: usize,
    limit: u64,
    verbose: bool,
) -> Result<(), compressed_bundle::CompressedBundleError> {
    let Some((bundle, _)) = sources.as_compressed(source) else {
        return Ok(());
    };
    let bundle = bundle.clone();
    let start = Instant::now();
    sources.materialize(source, limit)?;
    if verbose {
        eprint!("{}", after_reading(&bundle, start.elapsed()));
    }
    Ok(())
}

/// Prints, with `-verbose`, that nothing had to be decompressed.
pub(crate) fn say_uncompressed(verbose: bool, size: u64) {
    // LLVM skips smaller inputs.
    if verbose && size >= 8 {
        eprintln!("Uncompressed bundle.");
    }
}

/// Returns the error for a compressed bundle that cannot be read.
pub(crate) fn failed(
    name: &Path,
    problem: &compressed_bundle::CompressedBundleError,
) -> LlvmToolError {
    let text = format!("Failed to decompress input: {}: {problem}", terminal(name));
    LlvmToolError::new(text).with_hint(decompressed::hint_for(problem.remedy()))
}

fn after_writing(
    written: &CompressedHeader,
    how: Compression,
    size: u64,
    time: Duration,
) -> String {
    let data = written.size - written.header.len() as u64;
    let level = how.level.unwrap_or(match how.method {
        Method::Zstd => 3,
        Method::Zlib => 6,
    });
    let mut text = format!("Compressed bundle format version: {}\n", how.version.raw());
    if how.version != CompressedBundleVersion::V1 {
        let size = grouped(written.size);
        text += &format!("Total file size (including headers): {size} bytes\n");
    }
    text += &format!(
        "Compression method used: {}\n\
         Compression level: {level}\n\
         Binary size before compression: {} bytes\n\
         Binary size after compression: {} bytes\n",
        how.method,
        grouped(size),
        grouped(data)
    );
    text += &ratios(size, data, "Compression", time);
    text += &format!("Truncated MD5 hash: {}\n", shown(written.hash));
    text
}

/// Returns the facts after decompression. The hashes match: otherwise reading has failed.
fn after_reading(bundle: &CompressedBundle, time: Duration) -> String {
    let (size, data) = (
        bundle.uncompressed_size,
        bundle.data.end - bundle.data.start,
    );
    let mut text = format!(
        "Compressed bundle format version: {}\n",
        bundle.version.raw()
    );
    if bundle.version != CompressedBundleVersion::V1 {
        let range = bundle.range();
        let size = grouped(range.end - range.start);
        text += &format!("Total file size (from header): {size} bytes\n");
    }
    text += &format!(
        "Decompression method: {}\n\
         Size before decompression: {} bytes\n\
         Size after decompression: {} bytes\n",
        bundle.method,
        grouped(data),
        grouped(size)
    );
    text += &ratios(size, data, "Decompression", time);
    let hash = shown(bundle.hash);
    text += &format!("Stored hash: {hash}\nRecalculated hash: {hash}\nHashes match: Yes\n");
    text
}

fn ratios(size: u64, data: u64, what: &str, time: Duration) -> String {
    let rate = size as f64 / data as f64;
    let speed = size as f64 / f64::from(1 << 20) / time.as_secs_f64();
    format!(
        "Compression rate: {rate:.2}\nCompression ratio: {:.2}%\n{what} speed: {speed:.2} MB/s\n",
        100.0 / rate
    )
}

/// Formats a number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a hash like LLVM: as a number with at least 14 digits.
fn shown(hash: [u8; 8]) -> String {
    let mut text = String::new();
    let _ = write!(text, "{:#016x}", u64::from_le_bytes(hash));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by `clang-offload-bundler` 22.1, except the speed (`docs/spec/bundler.md` §7.7).
    #[test]
    fn says_what_llvm_says() {
        let written = CompressedHeader {
            header: vec![0; 32],
            size: 181,
            hash: [0xf4, 0x2b, 0x60, 0xc9, 0x9d, 0x30, 0xfa, 0x7a],
        };
        let how = Compression::default();
        let text = after_writing(&written, how, 172, Duration::from_secs(1));
        assert_eq!(
            text,
            "Compressed bundle format version: 3\n\
             Total file size (including headers): 181 bytes\n\
             Compression method used: zstd\n\
             Compression level: 3\n\
             Binary size before compression: 172 bytes\n\
             Binary size after compression: 149 bytes\n\
             Compression rate: 1.15\n\
             Compression ratio: 86.63%\n\
             Compression speed: 0.00 MB/s\n\
             Truncated MD5 hash: 0x7afa309dc9602bf4\n"
        );
    }

    #[test]
    fn groups_thousands() {
        for (number, expected) in [(0, "0"), (999, "999"), (300_007_048, "300,007,048")] {
            assert_eq!(grouped(number), expected);
        }
        assert_eq!(shown([1, 0, 0, 0, 0, 0, 0, 0]), "0x00000000000001");
    }
}
