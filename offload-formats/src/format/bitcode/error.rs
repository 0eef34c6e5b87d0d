//! Why bitcode cannot be read.

use std::fmt;

use crate::format::bytes::OutOfBounds;

/// Why the symbols of bitcode, or the objects embedded in it, cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BitcodeError {
    /// It starts with something else.
    Magic {
        /// From the start of the file.
        offset: u64,
    },
    /// Something is not inside the file or its block.
    Outside(OutOfBounds),
    /// A symbol or a name is not inside its table, from whose start the offset is.
    Table(OutOfBounds),
    /// An abbreviation that is not defined, or cannot be.
    Abbreviation {
        /// From the start of the file.
        offset: u64,
    },
    /// A number that is too large.
    Number {
        /// From the start of the file.
        offset: u64,
    },
    /// A module of a version that keeps its names elsewhere: LLVM 4 and older.
    Version {
        /// The version.
        version: u64,
    },
    /// No table of strings follows.
    Strings,
    /// What is said about an embedded object is not understood.
    Embedded {
        /// Which of those of the module.
        operand: usize,
        /// What is odd about it.
        problem: EmbeddedProblem,
    },
    /// A record of metadata that no known release writes: what is embedded cannot be told.
    Metadata {
        /// Its code.
        code: u64,
    },
    /// The embedded objects together are far larger than the file.
    Shared {
        /// In bytes.
        size: u64,
    },
}

/// What is odd about an embedded object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EmbeddedProblem {
    /// The operand is no list of a value and a string.
    Operand,
    /// The value is no variable of the module.
    NoVariable {
        /// The number of the value.
        value: u64,
    },
    /// The variable has its content elsewhere.
    Declared,
    /// The content of the variable is no list of bytes.
    Content {
        /// Of the constant.
        code: u64,
    },
    /// The variable is an array of something else.
    NoBytes,
}

impl fmt::Display for BitcodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic { offset } => write!(f, "expected bitcode at offset {offset:#x}"),
            Self::Outside(problem) => write!(f, "bitcode: {problem}"),
            Self::Table(problem) => write!(f, "bitcode: table of symbols: {problem}"),
            Self::Abbreviation { offset } => {
                write!(f, "bitcode: invalid abbreviation at offset {offset:#x}")
            }
            Self::Number { offset } => {
                write!(f, "bitcode: number at offset {offset:#x} is too large")
            }
            Self::Version { version } => write!(
                f,
                "bitcode: module version {version} is not supported (2 is)"
            ),
            Self::Strings => write!(f, "bitcode: its strings are missing"),
            Self::Embedded { operand, problem } => {
                write!(f, "bitcode: embedded object {operand}: ")?;
                match problem {
                    EmbeddedProblem::Operand => write!(f, "expected a variable and a string"),
                    EmbeddedProblem::NoVariable { value } => {
                        write!(f, "value {value} is not a variable")
                    }
                    EmbeddedProblem::Declared => write!(f, "its variable is only declared"),
                    EmbeddedProblem::Content { code } => {
                        write!(f, "a constant of code {code} is not a list of bytes")
                    }
                    EmbeddedProblem::NoBytes => write!(f, "its variable is no array of bytes"),
                }
            }
            Self::Metadata { code } => {
                write!(f, "bitcode: metadata of code {code} is not supported")
            }
            Self::Shared { size } => {
                write!(
                    f,
                    "bitcode: embedded objects take {size:#x} bytes, most of them shared"
                )
            }
        }
    }
}

impl std::error::Error for BitcodeError {}
