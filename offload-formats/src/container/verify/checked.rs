//! A container that is checked, and the runtime that gets it.

use super::finding::FindingPlace;
use crate::container::inventory::{ContainerFormat, ImageContainer, InventoryImage};
use crate::container::large;

/// Section of bundles that HIP's runtime gets.
pub(super) const HIP_SECTION: &[u8] = b".hip_fatbin";
/// Kinds that HIP's runtime looks for.
pub(super) const KINDS: [&str; 3] = ["hip", "hipv4", "hcc"];

/// A container that is checked.
pub(super) struct CheckedContainer<'a> {
    pub(super) container: &'a ImageContainer,
    pub(super) place: FindingPlace,
}

impl CheckedContainer<'_> {
    /// Tells whether HIP's runtime gets the container.
    pub(super) fn is_for_hip(&self) -> bool {
        is_for_hip(self.container)
    }
}

/// Tells whether HIP's runtime gets a bundle: by its section, or, for a file of its own, by the kinds of its entries.
pub(super) fn is_for_hip(container: &ImageContainer) -> bool {
    if container.format != ContainerFormat::Bundle {
        return false;
    }
    match &container.section {
        Some(name) => large::is_called(name, HIP_SECTION),
        None => container.members.is_empty() && container.images.iter().any(is_hip),
    }
}

/// Tells whether the kind of an entry is one of HIP's.
fn is_hip(image: &InventoryImage) -> bool {
    let id = image.entry_id.as_deref().unwrap_or_default();
    let kind = id.split('-').next().unwrap_or_default();
    KINDS.contains(&kind)
}
