//! Errors of bitcode.

use std::fmt;

use crate::format::bytes::OutOfBounds;

/// An error in the symbols of bitcode, or in the objects embedded in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BitcodeError {
    /// The magic is wrong.
    Magic {
        /// Offset of the magic from the start of the file.
        offset: u64,
    },
    /// Something exceeds the file or its block.
    Outside(OutOfBounds),
    /// A symbol or a name exceeds its table; the offset is relative to the table.
    Table(OutOfBounds),
    /// An undefined or invalid abbreviation.
    Abbreviation {
        /// Offset from the start of the file.
        offset: u64,
    },
    /// A number is too large.
    Number {
        /// Offset from the start of the file.
        offset: u64,
    },
    /// An unsupported module version: LLVM 4 and older keep names elsewhere.
    Version {
        /// Version of the module.
        version: u64,
    },
    /// The string table is missing.
    Strings,
    /// An embedded object is described in an unknown way.
    Embedded {
        /// Index of the object in the module's list.
        operand: usize,
        /// The unknown property.
        problem: EmbeddedProblem,
    },
    /// An unknown metadata record, so that embedded objects cannot be found.
    Metadata {
        /// Code of the record.
        code: u64,
    },
    /// The embedded objects together are far larger than the file.
    Shared {
        /// Size in bytes.
        size: u64,
    },
}

/// An unknown property of an embedded object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EmbeddedProblem {
    /// The operand is not a list of a value and a string.
    Operand,
    /// The value is not a variable of the module.
    NoVariable {
        /// Number of the value.
        value: u64,
    },
    /// The variable is only declared.
    Declared,
    /// The variable's content is not a list of bytes.
    Content {
        /// Code of the constant.
        code: u64,
    },
    /// The variable is not an array of bytes.
    NoBytes,
}

impl fmt::Display for BitcodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic { offset } => write!(f, "expected bitcode at offset {offset:#x}"),
            Self::Outside(problem) => write!(f, "bitcode: {problem}"),
            Self::Table(problem) => write!(f, "bitcode: symbol table: {problem}"),
            Self::Abbreviation { offset } => {
                write!(f, "bitcode: invalid abbreviation at offset {offset:#x}")
            }
            Self::Number { offset } => {
                write!(f, "bitcode: number at offset {offset:#x} is too large")
            }
            Self::Version { version } => {
                write!(f, "bitcode: expected module version 2, found {version}")
            }
            Self::Strings => write!(f, "bitcode: missing string table"),
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
                    EmbeddedProblem::NoBytes => write!(f, "its variable is not an array of bytes"),
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
