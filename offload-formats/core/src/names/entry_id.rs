//! Entry IDs: the target of an image in a bundle, such as `hip-amdgcn-amd-amdhsa--gfx906`.
//!
//! ```text
//! <kind>-<arch>-<vendor>-<os>-<environment>-<target ID>
//! ```
//!
//! The environment is empty for AMD's GPUs, hence the two dashes. Releases write different forms:
//!
//! - up to LLVM 16 the text as given, with three or four fields in the triple, without a last dash;
//! - LLVM 17 to 20 four fields and a dash, perhaps with an empty environment;
//! - since LLVM 21 the normalized triple.
//!
//! [`EntryId::parse`] reads them all, [`EntryId::parse_target`] only targets that LLVM 22 accepts.
//! An entry ID is displayed as LLVM 22 writes it.
//!
//! Specification: <https://clang.llvm.org/docs/ClangOffloadBundler.html#bundle-entry-id>. LLVM 22
//! drops a processor that its table lacks; here every processor is kept.

mod conflict;
mod error;
mod kind;
#[cfg(feature = "tools")]
mod serves;
#[cfg(feature = "tools")]
mod targets;
mod words;

use std::fmt;

use words::{FIELDS, is_environment};

use super::target_id::processor;
use super::{LlvmRelease, Processor, Triple, TripleError};

pub use conflict::{ConflictScope, conflict};
pub use error::EntryIdError;
pub use kind::EntryKind;
#[cfg(feature = "tools")]
pub use serves::KindRule;

/// The target of an image in a bundle.
///
/// Equality compares the displayed forms. So all spellings of the host entry that releases have
/// written for a triple are equal.
#[derive(Clone, Debug)]
pub struct EntryId {
    text: String,
    kind: EntryKind,
    triple: Triple,
    target_id: String,
}

impl EntryId {
    /// Reads an entry ID that any release may have written.
    ///
    /// With three dashes after the kind there are two readings. The last word is the environment if
    /// it is a known one or empty, or if the kind is the host's; otherwise it is the target ID.
    ///
    /// # Errors
    ///
    /// Fails if the kind is unknown, the triple is missing, or a character cannot be in an entry ID.
    pub fn parse(text: &str) -> Result<Self, EntryIdError> {
        let (kind, rest) = split_kind(text)?;
        let offset = text.len() - rest.len();
        // Only dashes before the processor count: features may end in one.
        let (named, features) = rest
            .split_once(':')
            .map_or((rest, false), |(named, _)| (named, true));
        let mut dashes = named.match_indices('-').map(|(dash, _)| dash);
        let (third, fourth) = (dashes.nth(2), dashes.next());
        let processor = match (third, fourth) {
            (_, Some(dash)) => Some(dash),
            // Features require a processor.
            _ if features => named.rfind('-'),
            (Some(dash), None) => {
                let (_, last) = rest.split_at(dash + 1);
                let environment = kind == EntryKind::Host || is_environment(last);
                (!environment).then_some(dash)
            }
            // `sycl-spir64`, and the host of ROCm 4 and 5, `x86_64-unknown-linux`.
            (None, _) => None,
        };
        let (triple, target_id) = processor.map_or((rest, ""), |dash| rest.split_at(dash));
        let target_id = target_id.strip_prefix('-').unwrap_or_default();
        // LLVM 17 to 20 parsed a target that ended in a dash as a target ID only. They parsed an
        // unknown processor as the environment, and wrote a dash after it.
        let target_id = if target_id.starts_with(&format!("{kind}-")) {
            ""
        } else if target_id.contains(':') {
            target_id
        } else {
            target_id.strip_suffix('-').unwrap_or(target_id)
        };
        Self::new(kind, triple, offset, target_id, text)
    }

    fn new(
        kind: EntryKind,
        triple: &str,
        offset: usize,
        target_id: &str,
        text: &str,
    ) -> Result<Self, EntryIdError> {
        let foreign = |char: char| !char.is_ascii_graphic() || matches!(char, ',' | '/' | '\\');
        if let Some((offset, char)) = text.char_indices().find(|(_, char)| foreign(*char)) {
            return Err(EntryIdError::Character { char, offset });
        }
        let triple = Triple::parse(triple).map_err(|problem| match problem {
            TripleError::Character { char, offset: at } => EntryIdError::Character {
                char,
                offset: offset + at,
            },
            TripleError::Empty => EntryIdError::Shape {
                text: text.to_owned(),
            },
        })?;
        // LLVM 22 drops an unknown processor, and a target ID of the host has no meaning.
        let known = Processor::find(processor(target_id));
        let known = known.is_some_and(|processor| processor.known_to(LlvmRelease::V22));
        let kept = known || kind != EntryKind::Host;
        Ok(Self {
            text: text.to_owned(),
            kind,
            triple,
            target_id: if kept { target_id } else { "" }.to_owned(),
        })
    }

    /// Returns the text as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> EntryKind {
        self.kind
    }

    /// Returns the triple with the fields that were written.
    #[must_use]
    pub fn triple(&self) -> &Triple {
        &self.triple
    }

    /// Returns the target ID as written, perhaps invalid or empty.
    #[must_use]
    pub fn target_id(&self) -> &str {
        &self.target_id
    }

    /// Returns kind and triple as a target spells them.
    fn kind_and_triple(&self) -> &str {
        let end = self.text.match_indices('-').nth(FIELDS);
        end.map_or(&*self.text, |(dash, _)| self.text.split_at(dash).0)
    }

    /// Returns the triple as LLVM 22 writes it: four fields, the last empty for AMD's GPUs.
    fn fields(&self) -> [&str; FIELDS] {
        fn named(field: &str) -> &str {
            if field.is_empty() { "unknown" } else { field }
        }
        let triple = &self.triple;
        // LLVM examines the field before it normalizes the triple.
        let os = triple.as_str().split('-').nth(2).unwrap_or_default();
        let environment = if os.starts_with("amdhsa") {
            ""
        } else {
            named(triple.environment())
        };
        let [arch, vendor, os] = [triple.arch(), triple.vendor(), triple.os()].map(named);
        [arch, vendor, os, environment]
    }
}

impl PartialEq for EntryId {
    fn eq(&self, other: &Self) -> bool {
        let parts = |id: &Self| (id.kind, id.fields().map(str::to_owned));
        parts(self) == parts(other) && self.target_id == other.target_id
    }
}

impl Eq for EntryId {}

/// Displays the entry ID as LLVM 22 writes it.
impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.fields().join("-");
        write!(f, "{}-{fields}-{}", self.kind, self.target_id)
    }
}

fn split_kind(text: &str) -> Result<(EntryKind, &str), EntryIdError> {
    let shape = || EntryIdError::Shape {
        text: text.to_owned(),
    };
    let (kind, rest) = text.split_once('-').ok_or_else(shape)?;
    let unknown = || EntryIdError::Kind {
        kind: kind.to_owned(),
    };
    Ok((EntryKind::from_name(kind).ok_or_else(unknown)?, rest))
}

#[cfg(test)]
mod tests;
