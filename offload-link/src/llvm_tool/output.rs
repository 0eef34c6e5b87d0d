//! An output as a value: its path, its pieces, and how it is written.

use std::path::PathBuf;

use offload_formats::format::compressed_bundle::{Compression, Method};
use offload_formats::format::pieces::Piece;

/// A file to write.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    /// `-` means standard output, except for an archive.
    pub path: PathBuf,
    pub pieces: Vec<Piece>,
    pub style: Style,
}

impl Output {
    pub(crate) fn plain(path: PathBuf, pieces: Vec<Piece>) -> Self {
        Self {
            path,
            pieces,
            style: Style::Plain,
        }
    }
}

/// How an output is written.
#[derive(Clone, Debug)]
pub(crate) enum Style {
    Plain,
    /// Like LLVM, takes `-` as a file name, and its messages do not name the file.
    Archive,
    Compressed {
        how: Compression,
        /// Prints facts about the result, as with `-verbose`.
        verbose: bool,
    },
    /// One offload binary, compressed.
    CompressedBinary {
        method: Method,
        /// Level of the method; `None` selects LLVM's default.
        level: Option<i32>,
    },
    /// Uses the mode of this host object.
    Object(PathBuf),
}
