//! An output as a value: where it goes, what it consists of, how it is written.

use std::path::PathBuf;

use offload_formats::format::compressed_bundle::Compression;
use offload_formats::format::pieces::Piece;

/// A file that is to be written.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    /// `-` is standard output, unless it is an archive.
    pub path: PathBuf,
    pub pieces: Vec<Piece>,
    pub style: Style,
}

/// How an output is written.
#[derive(Clone, Debug)]
pub(crate) enum Style {
    Plain,
    /// `-` is a name like others, and messages do not say which file it was: both as LLVM.
    Archive,
    Compressed(Compression),
    /// With the mode of the host's object, which this is.
    Object(PathBuf),
}
