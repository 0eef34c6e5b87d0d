//! Entry IDs: who an image of a bundle is for, as `hip-amdgcn-amd-amdhsa--gfx906`.
//!
//! ```text
//! <kind>-<arch>-<vendor>-<os>-<environment>-<target ID>
//! ```
//!
//! The environment is empty for AMD's GPUs, hence the two dashes. Releases differ in what they
//! write: up to LLVM 16 the text as given, with three or four fields in the triple and no dash at
//! the end; 17 to 20 four fields and a dash, the environment perhaps empty; since 21 the triple
//! normalized. [`EntryId::parse`] reads them all, [`EntryId::parse_target`] only what LLVM 22
//! takes as a target, and what is displayed is what LLVM 22 writes.
//!
//! Specification: <https://clang.llvm.org/docs/ClangOffloadBundler.html#bundle-entry-id>. Unlike
//! LLVM 22, which forgets a processor that its table lacks, every processor is kept.

mod conflict;
mod error;
mod hint;
mod kind;
mod older;
mod serves;
mod words;

use std::fmt;

use words::{FIELDS, is_environment, processor};

use super::{LlvmRelease, Processor, TargetId, TargetIdError, Triple, TripleError};

pub use conflict::{ConflictScope, conflict};
pub use error::EntryIdError;
pub use kind::EntryKind;
pub use serves::KindRule;

/// Who an image of a bundle is for.
///
/// Equality is that of the displayed forms: every spelling of the host entry that a release has
/// written for a triple equals the others.
#[derive(Clone, Debug)]
pub struct EntryId {
    text: String,
    kind: EntryKind,
    triple: Triple,
    target_id: String,
}

impl EntryId {
    /// Reads the entry ID of a file that any release may have written.
    ///
    /// With three dashes behind the kind there are two readings. The last word is the environment
    /// when it is known as one, or empty, or the kind is the host's; otherwise the target ID.
    ///
    /// # Errors
    ///
    /// When the kind is unknown, there is no triple, or a character cannot be in an entry ID.
    pub fn parse(text: &str) -> Result<Self, EntryIdError> {
        let (kind, rest) = split_kind(text)?;
        let offset = text.len() - rest.len();
        // No more dashes count than those before the processor: features may end in one.
        let (named, features) = rest
            .split_once(':')
            .map_or((rest, false), |(named, _)| (named, true));
        let mut dashes = named.match_indices('-').map(|(dash, _)| dash);
        let (third, fourth) = (dashes.nth(2), dashes.next());
        let processor = match (third, fourth) {
            (_, Some(dash)) => Some(dash),
            // Features need something that has them.
            _ if features => named.rfind('-'),
            (Some(dash), None) => {
                let last = rest.get(dash + 1..).unwrap_or_default();
                let environment = kind == EntryKind::Host || is_environment(last);
                (!environment).then_some(dash)
            }
            // `sycl-spir64`, and the host of ROCm 4 and 5, `x86_64-unknown-linux`.
            (None, _) => None,
        };
        let (triple, target_id) = processor.map_or((rest, ""), |dash| rest.split_at(dash));
        let target_id = target_id.strip_prefix('-').unwrap_or_default();
        // LLVM 17 to 20 took all of a target that ended in a dash for the target ID, and a processor
        // that they did not know for the environment, which a dash follows.
        let target_id = if target_id.starts_with(&format!("{kind}-")) {
            ""
        } else if target_id.contains(':') {
            target_id
        } else {
            target_id.strip_suffix('-').unwrap_or(target_id)
        };
        Self::new(kind, triple, offset, target_id, text)
    }

    /// Reads a target as `-targets` of `clang-offload-bundler` 22 takes it: four fields in the
    /// triple, and what follows the fifth dash is the target ID.
    ///
    /// # Errors
    ///
    /// When there are fewer dashes, or features before the fifth; when the kind is not one of `host`, `openmp`, `hip` and `hipv4`,
    /// LLVM does not know the architecture, or a character cannot be in an entry ID.
    pub fn parse_target(text: &str) -> Result<Self, EntryIdError> {
        let short = || EntryIdError::Fields {
            text: text.to_owned(),
        };
        let mut words = text.splitn(FIELDS + 2, '-');
        let kind = words.next().unwrap_or_default();
        let fields: Vec<&str> = words.by_ref().take(FIELDS).collect();
        if fields.len() < FIELDS {
            return Err(short());
        }
        let triple = fields.join("-");
        let known = target_kind(text, kind, &triple)?;
        // Features are no part of an environment, though LLVM takes them for one.
        if triple.contains(':') {
            return Err(short());
        }
        let target_id = words.next().unwrap_or_default();
        Self::new(known, &triple, kind.len() + 1, target_id, text)
    }

    /// Reads a target as `-targets` of the bundler of that release takes it.
    ///
    /// Up to LLVM 20 the triple may lack its environment, and a processor comes after the last
    /// dash. [`Self::display_for`] writes what such a release makes of it.
    ///
    /// # Errors
    ///
    /// As [`Self::parse_target`], but up to LLVM 20 dashes are not counted.
    pub fn parse_target_for(text: &str, release: LlvmRelease) -> Result<Self, EntryIdError> {
        if release > LlvmRelease::V20 {
            return Self::parse_target(text);
        }
        let (kind, triple, _) = older::split(text, release);
        target_kind(text, kind, &triple)?;
        Self::parse(text)
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
        // LLVM 22 forgets what it takes for no processor, and for the host nothing else is meant.
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

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> EntryKind {
        self.kind
    }

    /// The triple, with the fields it was written with.
    #[must_use]
    pub fn triple(&self) -> &Triple {
        &self.triple
    }

    /// The target ID as written, which need not be valid; empty when there is none.
    #[must_use]
    pub fn target_id(&self) -> &str {
        &self.target_id
    }

    /// The processor, when no release of LLVM knows it; LLVM 22 forgets it, here it is kept.
    #[must_use]
    pub fn unknown_processor(&self) -> Option<&str> {
        let processor = processor(&self.target_id);
        (!processor.is_empty() && Processor::find(processor).is_none()).then_some(processor)
    }

    /// As the bundler of that release writes a target of this text; since LLVM 21 it is
    /// what [`fmt::Display`] gives.
    #[must_use]
    pub fn display_for(&self, release: LlvmRelease) -> String {
        if release > LlvmRelease::V20 {
            return self.to_string();
        }
        let (kind, triple, target_id) = older::split(&self.text, release);
        format!("{kind}-{triple}-{target_id}")
    }

    /// With a target ID as its producer should have written it: features sorted.
    ///
    /// # Errors
    ///
    /// When the target ID is not valid.
    pub fn canonical(&self) -> Result<Self, TargetIdError> {
        let mut canonical = self.clone();
        canonical.target_id = TargetId::parse(&self.target_id)?.to_string();
        canonical.text = canonical.to_string();
        Ok(canonical)
    }

    /// What the author of [`Self::parse_target`]'s text has probably meant, when LLVM takes it for
    /// something else: a processor where the environment should be, for want of a dash.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let last = self.triple.as_str().split('-').nth(FIELDS - 1)?;
        let wanted = self.kind != EntryKind::Host && !is_environment(last);
        (wanted && self.target_id.is_empty()).then(|| {
            let fields: Vec<&str> = self.triple.as_str().split('-').take(FIELDS - 1).collect();
            let fields = fields.join("-");
            format!("`{last}` is read as the environment; for a processor write `{}-{fields}--{last}`, with two dashes", self.kind)
        })
    }

    /// Kind and triple as written in a target.
    fn kind_and_triple(&self) -> &str {
        let end = self.text.match_indices('-').nth(FIELDS);
        let end = end.map_or(self.text.len(), |(dash, _)| dash);
        self.text.get(..end).unwrap_or_default()
    }

    /// The triple as LLVM 22 writes it: four fields, the last empty for AMD's GPUs.
    fn fields(&self) -> [&str; FIELDS] {
        fn named(field: &str) -> &str {
            if field.is_empty() { "unknown" } else { field }
        }
        let triple = &self.triple;
        // LLVM looks at the field before it normalizes.
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

/// As LLVM 22 writes it.
impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.fields().join("-");
        write!(f, "{}-{fields}-{}", self.kind, self.target_id)
    }
}

/// The kind of a target, whose triple LLVM has to know.
fn target_kind(text: &str, kind: &str, triple: &str) -> Result<EntryKind, EntryIdError> {
    let known = EntryKind::from_name(kind).filter(|kind| kind.is_target());
    let arch = triple.split('-').next().unwrap_or_default();
    let arch = Triple::parse(arch).is_ok_and(|arch| arch.has_known_arch());
    known.filter(|_| arch).ok_or_else(|| EntryIdError::Target {
        text: text.to_owned(),
        kind: known.is_none().then(|| kind.to_owned()),
        triple: (!arch).then(|| triple.to_owned()),
    })
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
