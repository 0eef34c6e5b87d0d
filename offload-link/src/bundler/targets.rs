//! Targets of the command line.

use crate::llvm_tool::LlvmToolError;
use offload_formats::names::entry_id::{ConflictScope, conflict};
use offload_formats::names::{EntryId, EntryIdError, EntryKind, LlvmRelease};

/// Values of `-targets`, in order.
#[derive(Clone, Debug)]
pub(super) struct Targets(pub Vec<Target>);

/// One target.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub id: EntryId,
    /// Entry ID in the spelling of the selected release.
    pub written: String,
}

impl Targets {
    /// Parses and checks each target, then all against each other.
    pub(super) fn parse(given: &[String], llvm: LlvmRelease) -> Result<Self, LlvmToolError> {
        let twice = || LlvmToolError::new("Duplicate targets are not allowed");
        let mut ids: Vec<EntryId> = Vec::new();
        for text in given {
            if ids.iter().any(|id| id.as_str() == text) {
                return Err(twice());
            }
            let id = EntryId::parse_target_for(text, llvm);
            ids.push(id.map_err(|error| refused(text, &error))?);
        }
        // Up to LLVM 20, targets of three fields are compared in their written form.
        let compared: Vec<EntryId> = match llvm {
            LlvmRelease::V19 | LlvmRelease::V20 => {
                let written = ids.iter().map(|id| EntryId::parse(&id.display_for(llvm)));
                written.filter_map(Result::ok).collect()
            }
            _ => ids.clone(),
        };
        if let Some((first, second)) = conflict(&compared, ConflictScope::KindAndTriple) {
            let [first, second] = [first, second].map(|index| compared[index].as_str());
            return Err(LlvmToolError::new(format!(
                "Cannot bundle inputs with conflicting targets: '{first}' and '{second}'"
            )));
        }
        let targets: Vec<Target> = ids
            .into_iter()
            .map(|id| Target {
                written: id.display_for(llvm),
                id,
            })
            .collect();
        let mut written: Vec<&str> = targets.iter().map(|target| &*target.written).collect();
        written.sort_unstable();
        match written.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(twice().with_hint(Some(format!(
                "several of the targets are written as `{}`",
                pair[0]
            )))),
            None => Ok(Self(targets)),
        }
    }

    /// Returns the indices of the hosts.
    pub(super) fn hosts(&self) -> impl Iterator<Item = usize> {
        let kinds = self.0.iter().map(|target| target.id.kind());
        let kinds = kinds.enumerate();
        kinds.filter_map(|(index, kind)| (kind == EntryKind::Host).then_some(index))
    }

    /// Tells whether all kinds need no host.
    pub(super) fn only_hip(&self) -> bool {
        let hip = |target: &Target| matches!(target.id.kind(), EntryKind::Hip | EntryKind::Hipv4);
        self.0.iter().all(hip)
    }

    /// Returns warnings about the targets.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        let unknown = self.0.iter().filter_map(|target| {
            let processor = target.id.unknown_processor()?;
            Some(format!(
                "processor `{processor}` of '{}' is unknown; it is kept as written",
                target.id.as_str()
            ))
        });
        let doubtful = self.0.iter().filter_map(|target| {
            let hint = target.id.hint()?;
            Some(format!("'{}': {hint}", target.id.as_str()))
        });
        unknown.chain(doubtful)
    }
}

/// Returns the error, in LLVM's words if LLVM has some.
fn refused(given: &str, error: &EntryIdError) -> LlvmToolError {
    let text = match error {
        EntryIdError::Target { kind, triple, .. } => {
            let mut text = format!("invalid target '{given}'");
            if let Some(kind) = kind {
                text += &format!(", unknown offloading kind '{kind}'");
            }
            if let Some(triple) = triple {
                text += &format!(", unknown target triple '{triple}'");
            }
            text
        }
        EntryIdError::Fields { .. } => "Targets need to follow the format '<offload kind>-<target \
             triple>', where '<target triple>' follows the format \
             '<kind>-<arch>-<vendor>-<os>-<env>[-<target id>[:target features]]'."
            .to_owned(),
        other => format!("invalid target '{given}': {other}"),
    };
    LlvmToolError::new(text).with_hint(error.hint())
}
