//! Selects the entries of a bundle that serve a target.

use super::{EntryId, EntryKind};
use crate::names::processor::Device;
use crate::names::triple::TripleParts;
use crate::names::{Processor, TargetId};

/// Kinds of entries that are compatible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KindRule {
    /// Equal kinds, and `hip` with `hipv4`.
    #[default]
    SameRuntime,
    /// Also HIP's kinds with `openmp`: `-hip-openmp-compatible` of the bundler.
    HipAndOpenmp,
}

impl KindRule {
    fn join(self, kind: EntryKind, wanted: EntryKind) -> bool {
        let hip = |kind| matches!(kind, EntryKind::Hip | EntryKind::Hipv4);
        let joined = |kind| hip(kind) || kind == EntryKind::Openmp;
        kind == wanted
            || (hip(kind) && hip(wanted))
            || (self == Self::HipAndOpenmp && joined(kind) && joined(wanted))
    }
}

impl EntryId {
    /// Returns true if the image of this entry serves the target `wanted`.
    ///
    /// Kinds and triples must be compatible. Target IDs must be equal as written, or have the same
    /// processor, and `wanted` must have all features that this entry sets. As in LLVM 22, an image
    /// for a family (`gfx9-generic`) serves only the family's name. Two processors that no table
    /// knows are equal if their spellings are.
    #[must_use]
    pub fn serves(&self, wanted: &Self, kinds: KindRule) -> bool {
        let [triple, wanted_triple] = [self, wanted].map(|id| TripleParts::new(id.fields()));
        if !triple.serve(&wanted_triple) || !kinds.join(self.kind, wanted.kind) {
            return false;
        }
        if self.kind == wanted.kind && self.target_id == wanted.target_id {
            return true;
        }
        let [image, wanted] = [self, wanted].map(|id| TargetId::parse(&id.target_id).ok());
        let (Some(image), Some(wanted)) = (image, wanted) else {
            return false;
        };
        let processor = resolve(&image, &triple);
        processor.is_some()
            && processor == resolve(&wanted, &wanted_triple)
            && image.features_serve(&wanted)
    }
}

/// Returns the main name of a processor, if it fits the triple and can have the features.
fn resolve<'a>(id: &'a TargetId, triple: &TripleParts<'_>) -> Option<&'a str> {
    let device = match triple.arch {
        Some("amdgcn") => Device::Amdgcn,
        Some("r600") => Device::R600,
        // For other processors LLVM only requires a name.
        _ => {
            let bare = id.features().next().is_none() && !id.processor().is_empty();
            return bare.then_some(id.processor());
        }
    };
    let Some(known) = Processor::find(id.processor()) else {
        return Some(id.processor()).filter(|processor| !processor.is_empty());
    };
    let supported = id
        .features()
        .all(|(name, _)| known.features().contains(&name));
    (known.device() == device && supported).then_some(known.name())
}
