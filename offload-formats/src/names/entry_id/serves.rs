//! Which entries of a bundle are handed out for a target.

use super::{EntryId, EntryKind};
use crate::names::processor::Device;
use crate::names::triple::TripleParts;
use crate::names::{Processor, TargetId};

/// Which kinds of entries go together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KindRule {
    /// Equal ones, and `hip` with `hipv4`.
    #[default]
    SameRuntime,
    /// Those of HIP with `openmp` too: `-hip-openmp-compatible` of the bundler.
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
    /// Whether the image of this entry is handed out where `wanted` is asked for.
    ///
    /// Kinds go together and triples are compatible; then target IDs are equal as written, or the
    /// processors are the same and `wanted` has all that is said here about features. As LLVM
    /// 22, so that what is built for a family (`gfx9-generic`) serves the family's name only. Two
    /// processors that no table knows are the same when they are written the same.
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

/// The one name of a processor, if it can be that of the triple and can have the features.
fn resolve<'a>(id: &'a TargetId, triple: &TripleParts<'_>) -> Option<&'a str> {
    let device = match triple.arch {
        Some("amdgcn") => Device::Amdgcn,
        Some("r600") => Device::R600,
        // Of others LLVM asks for a name only.
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
