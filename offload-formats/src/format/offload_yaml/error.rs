//! Why texts are not documents, and documents not bytes.

use std::fmt;

use crate::escape::terminal;
use crate::format::bytes::OutOfBounds;
use crate::format::offload_binary::{self, InflateError};

/// Why a text is not a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlError {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What is wrong there.
    pub problem: YamlProblem,
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum YamlProblem {
    /// It is not the YAML that is read here.
    Expected {
        /// What should be there.
        what: &'static str,
    },
    /// Not a document of an offload binary.
    Tag {
        /// The tag of those.
        tag: &'static str,
    },
    /// Lists and maps are too deep in each other.
    Depth {
        /// How deep they may be.
        most: usize,
    },
    /// A key of a map is missing.
    Missing {
        /// Which.
        key: &'static str,
    },
    /// A key that is not known.
    Unknown {
        /// Which.
        key: String,
    },
    /// A key for the second time.
    Twice {
        /// Which.
        key: String,
    },
    /// Neither a name nor a number of the kind.
    Kind {
        /// What is there.
        found: String,
    },
    /// Not a number, or too large.
    Number {
        /// What is there.
        found: String,
        /// The largest one.
        most: u64,
    },
    /// Not pairs of hexadecimal digits.
    Content,
    /// Not a method of compression.
    Compression {
        /// What is there.
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

/// Why a file has no document.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// It does not consist of offload binaries.
    Binary(offload_binary::OffloadBinaryError),
    /// A compressed one is damaged.
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
