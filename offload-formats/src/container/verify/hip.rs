//! Checks of bundles as HIP's runtime looks for their entries: `docs/spec/hip-runtime.md` §1.

use super::checked::{CheckedContainer, KINDS};
use super::codes::FindingCode;
use super::finding::Findings;
use crate::names::{EntryKind, TargetId};

/// Bytes of a plain bundle that the runtime passes to comgr.
const TABLE_LIMIT: u64 = 4096;
/// Number of fields of an entry ID after its kind: architecture, vendor, system, environment, target ID.
const FIELDS: usize = 5;

/// Checks that the runtime finds each entry by its ID.
pub(super) fn entry_ids(checked: &CheckedContainer<'_>, findings: &mut Findings) {
    let is_compressed = checked.container.compression.is_some();
    for image in &checked.container.images {
        let id = image.entry_id.as_deref().unwrap_or_default();
        let (kind, target) = id.split_once('-').unwrap_or((id, ""));
        if kind == EntryKind::Host.name() {
            continue;
        }
        let mut add = |code, text: &str| findings.add(code, checked.place.entry(image), &text);
        if !KINDS.contains(&kind) {
            add(
                FindingCode::UnknownKind,
                "expected the kind `hip`, `hipv4` or `hcc`",
            );
            continue;
        }
        let fields: Vec<&str> = target.splitn(FIELDS, '-').collect();
        let [arch, _, _, environment, target_id] = fields[..] else {
            let text = format!(
                "expected {FIELDS} fields after the kind, found {}",
                fields.len()
            );
            add(FindingCode::FieldCount, &text);
            continue;
        };
        let is_spirv = arch.starts_with("spirv");
        let is_processor = target_id.starts_with("gfx") || is_spirv;
        if !is_processor {
            add(
                FindingCode::FieldCount,
                "expected a processor in the fifth field after the kind",
            );
        } else if environment == "unknown" && !is_compressed && !is_spirv {
            add(
                FindingCode::UnknownEnvironment,
                "the bundle is not compressed",
            );
        } else if !environment.is_empty() && environment != "unknown" {
            add(
                FindingCode::FieldCount,
                "expected an empty fourth field after the kind",
            );
        }
        if !is_sorted(target_id) {
            add(
                FindingCode::FeatureOrder,
                "expected `sramecc` before `xnack`",
            );
        }
    }
}

/// Tells whether the features of a target ID are in the order that HIP expects.
fn is_sorted(target_id: &str) -> bool {
    // The list of a target ID is sorted; the text tells the order as written.
    let Ok(_) = TargetId::parse(target_id) else {
        return true;
    };
    let place = |name: &str| target_id.find(&format!(":{name}"));
    match (place("sramecc"), place("xnack")) {
        (Some(first), Some(second)) => first < second,
        _ => true,
    }
}

/// Checks the table of a plain bundle.
pub(super) fn table(checked: &CheckedContainer<'_>, findings: &mut Findings) {
    /// Size of the magic and the number of entries, and of an entry without its ID, in bytes.
    const HEAD: u64 = 32;
    const ENTRY: u64 = 24;
    let container = checked.container;
    if container.compression.is_some() {
        return;
    }
    let mut end = HEAD;
    for image in &container.images {
        let id = image.entry_id.as_deref().unwrap_or_default();
        end = end.saturating_add(ENTRY).saturating_add(id.len() as u64);
        if end > TABLE_LIMIT && !image.is_host {
            let text = format!("the entry's record ends at offset {end:#x} of the bundle");
            findings.add(FindingCode::LargeTable, checked.place.entry(image), &text);
        }
    }
    let last = container.images.last();
    let end = container.images.iter().map(|image| image.range.end).max();
    if let (Some(last), Some(end)) = (last, end) {
        if last.range.end < end {
            let text = format!(
                "the last entry ends at {:#x}, the bundle at {end:#x}",
                last.range.end
            );
            findings.add(FindingCode::TableOrder, checked.place.entry(last), &text);
        }
    }
}
