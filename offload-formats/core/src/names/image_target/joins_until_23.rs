//! The rule of LLVM 19 to 23.

use super::ImageTarget;
use crate::names::Triple;
use crate::names::target_id::processor;

impl ImageTarget<'_> {
    /// Returns true if LLVM 19 to 23 link an image for `self` together with images for `other`, a
    /// different target. Returns false if both are equal as written. Symmetric.
    ///
    /// The rule compares text, like LLVM's `areTargetsCompatible`: two spellings of a triple are
    /// different, and a family of processors does not serve its members.
    #[must_use]
    pub fn joins_until_23(&self, other: &Self) -> bool {
        if self == other || self.triple != other.triple {
            return false;
        }
        if self.has_any_processor() || other.has_any_processor() {
            return true;
        }
        let is_amdgpu = Triple::parse(self.triple).is_ok_and(|triple| triple.is_amdgpu());
        let same = processor(self.arch) == processor(other.arch);
        let conflict = |on: &str, off: &str| {
            let says =
                |feature, without| self.arch.contains(feature) && other.arch.contains(without);
            says(on, off) || says(off, on)
        };
        is_amdgpu && same && !conflict("xnack+", "xnack-") && !conflict("sramecc+", "sramecc-")
    }
}
