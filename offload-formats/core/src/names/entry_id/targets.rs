//! Targets as the option `-targets` of bundlers spells them.

mod hint;
mod older;

use super::words::{FIELDS, is_environment};
use super::{EntryId, EntryIdError, EntryKind};
use crate::names::target_id::processor;
use crate::names::{LlvmRelease, Processor, Triple};

impl EntryId {
    /// Reads a target as `-targets` of `clang-offload-bundler` 22 does: the triple has four fields,
    /// and the target ID follows the fifth dash.
    ///
    /// # Errors
    ///
    /// Fails if dashes are missing, or features come before the fifth one; if the kind is not `host`,
    /// `openmp`, `hip` or `hipv4`; if LLVM does not know the architecture; or if a character cannot
    /// be in an entry ID.
    pub fn parse_target(text: &str) -> Result<Self, EntryIdError> {
        let short = || EntryIdError::Fields {
            text: text.to_owned(),
        };
        let (kind, rest) = text.split_once('-').ok_or_else(short)?;
        let mut words = rest.splitn(FIELDS + 1, '-');
        let fields: Vec<&str> = words.by_ref().take(FIELDS).collect();
        if fields.len() < FIELDS {
            return Err(short());
        }
        let triple = fields.join("-");
        let known = target_kind(text, kind, &triple)?;
        // LLVM accepts features in an environment; here they are an error.
        if triple.contains(':') {
            return Err(short());
        }
        let target_id = words.next().unwrap_or_default();
        Self::new(known, &triple, kind.len() + 1, target_id, text)
    }

    /// Reads a target as `-targets` of that release's bundler does.
    ///
    /// Up to LLVM 20 the triple may lack its environment, and a processor comes after the last
    /// dash. [`Self::display_for`] returns the entry ID that such a release writes.
    ///
    /// # Errors
    ///
    /// Fails as [`Self::parse_target`] does, except missing dashes up to LLVM 20.
    pub fn parse_target_for(text: &str, release: LlvmRelease) -> Result<Self, EntryIdError> {
        if release > LlvmRelease::V20 {
            return Self::parse_target(text);
        }
        let (kind, triple, _) = older::split(text, release);
        target_kind(text, kind, &triple)?;
        Self::parse(text)
    }

    /// Returns the processor if no release of LLVM knows it. LLVM 22 drops it; here it is kept.
    #[must_use]
    pub fn unknown_processor(&self) -> Option<&str> {
        let processor = processor(&self.target_id);
        (!processor.is_empty() && Processor::find(processor).is_none()).then_some(processor)
    }

    /// Returns the entry ID that the bundler of that release writes for this text; since LLVM 21 it
    /// equals [`Display`](std::fmt::Display).
    #[must_use]
    pub fn display_for(&self, release: LlvmRelease) -> String {
        if release > LlvmRelease::V20 {
            return self.to_string();
        }
        let (kind, triple, target_id) = older::split(&self.text, release);
        format!("{kind}-{triple}-{target_id}")
    }

    /// Returns a correction if the text of [`Self::parse_target`] lacks a dash, so that LLVM parses
    /// a processor as the environment.
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
}

/// Returns the kind of a target, if LLVM also knows its triple.
fn target_kind(text: &str, kind: &str, triple: &str) -> Result<EntryKind, EntryIdError> {
    let known = EntryKind::from_name(kind).filter(|kind| kind.is_target());
    let arch = triple.split_once('-').map_or(triple, |(arch, _)| arch);
    let arch = Triple::parse(arch).is_ok_and(|arch| arch.has_known_arch());
    known.filter(|_| arch).ok_or_else(|| EntryIdError::Target {
        text: text.to_owned(),
        kind: known.is_none().then(|| kind.to_owned()),
        triple: (!arch).then(|| triple.to_owned()),
    })
}
