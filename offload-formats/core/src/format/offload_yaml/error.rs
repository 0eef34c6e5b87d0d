//! Errors of YAML documents.

use std::fmt;

use crate::escape::terminal;
use crate::format::bytes::OutOfBounds;
use crate::format::offload_binary::{self, InflateError};

/// An error in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct YamlError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Cause of the error.
    pub problem: YamlProblem,
}

/// Cause of a [`YamlError`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum YamlProblem {
    /// Other text than expected.
    Expected {
        /// The expected text.
        what: &'static str,
    },
    /// Not a document of an offload binary.
    Tag {
        /// The expected tag.
        tag: &'static str,
    },
    /// Lists and maps are nested too deeply.
    Depth {
        /// Maximum nesting.
        most: usize,
    },
    /// A key of a map is missing.
    Missing {
        /// The key.
        key: &'static str,
    },
    /// An unknown key.
    Unknown {
        /// The key.
        key: String,
    },
    /// A duplicate key.
    Twice {
        /// The key.
        key: String,
    },
    /// Neither a name nor a number of a kind.
    Kind {
        /// The text found.
        found: String,
    },
    /// Not a number, or too large.
    Number {
        /// The text found.
        found: String,
        /// Maximum number.
        most: u64,
    },
    /// Not pairs of hexadecimal digits.
    Content,
    /// Not a compression method.
    Compression {
        /// The text found.
        found: String,
    },
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.problem)
    }
}

impl fmt::Display for YamlProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expected { what } => write!(f, "expected {what}"),
            Self::Tag { tag } => write!(f, "expected a document that starts with `--- {tag}`"),
            Self::Depth { most } => {
                write!(f, "lists and maps are nested more than {most} levels deep")
            }
            Self::Missing { key } => write!(f, "missing required key '{}'", terminal(*key)),
            Self::Unknown { key } => write!(f, "unknown key '{}'", terminal(key)),
            Self::Twice { key } => write!(f, "duplicated mapping key '{}'", terminal(key)),
            Self::Kind { found } => {
                write!(
                    f,
                    "expected a kind or its number, up to 0xffff, found `{}`",
                    terminal(found)
                )
            }
            Self::Number { found, most } => {
                let found = terminal(found);
                write!(f, "expected a number up to {most:#x}, found `{found}`")
            }
            Self::Content => write!(f, "expected hexadecimal digits, two for each byte"),
            Self::Compression { found } => {
                write!(f, "expected `zstd` or `zlib`, found `{}`", terminal(found))
            }
        }
    }
}

impl std::error::Error for YamlError {}

/// An error while converting a file to a document.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The file does not consist of offload binaries.
    Binary(offload_binary::OffloadBinaryError),
    /// A compressed offload binary is damaged.
    Inflate(InflateError),
    /// An image cannot be read.
    Outside(OutOfBounds),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Binary(problem) => problem.fmt(f),
            Self::Inflate(problem) => problem.fmt(f),
            Self::Outside(problem) => problem.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {}
