//! Errors of entry IDs.

use std::fmt;

use super::kind::EntryKind;

/// An error in an entry ID.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryIdError {
    /// The kind or the triple is missing.
    Shape {
        /// The text.
        text: String,
    },
    /// The first word is not an allowed kind.
    Kind {
        /// The word.
        kind: String,
    },
    /// LLVM rejects the kind or the triple of a target; at least one of the two is present here.
    Target {
        /// The text.
        text: String,
        /// The first word, if it is not the kind of a target.
        kind: Option<String>,
        /// The four fields of the triple, if LLVM does not know the first.
        triple: Option<String>,
    },
    /// The triple has fewer than four fields.
    Fields {
        /// The text.
        text: String,
    },
    /// A character that no entry ID contains.
    Character {
        /// The character.
        char: char,
        /// Offset in bytes from the start of the text.
        offset: usize,
    },
}

impl fmt::Display for EntryIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape { text } => write!(
                f,
                "{text:?} is not an entry ID; expected `<kind>-<triple>[-<target ID>]`"
            ),
            Self::Kind { kind } => {
                write!(f, "{kind:?} is not the kind of an entry ID; expected")?;
                write_kinds(f, |_| true)
            }
            Self::Target { text, kind, triple } => {
                write!(f, "{text:?} cannot be a target")?;
                if let Some(kind) = kind {
                    write!(f, "; its kind {kind:?} is not one of")?;
                    write_kinds(f, EntryKind::is_target)?;
                }
                let arch = triple.as_ref().and_then(|triple| triple.split('-').next());
                arch.map_or(Ok(()), |arch| {
                    write!(f, "; LLVM does not know its architecture {arch:?}")
                })
            }
            Self::Fields { text } => write!(
                f,
                "{text:?} has too few fields; expected \
                 `<kind>-<arch>-<vendor>-<os>-<environment>[-<target ID>]`"
            ),
            Self::Character { char, offset } => {
                write!(f, "{char:?} at offset {offset:#x} cannot be in an entry ID")
            }
        }
    }
}

impl std::error::Error for EntryIdError {}

fn write_kinds(f: &mut fmt::Formatter<'_>, of: fn(EntryKind) -> bool) -> fmt::Result {
    let mut separator = " ";
    for kind in EntryKind::ALL.into_iter().filter(|kind| of(*kind)) {
        write!(f, "{separator}`{kind}`")?;
        separator = ", ";
    }
    Ok(())
}
