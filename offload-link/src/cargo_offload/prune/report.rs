//! Reports of pruned files, as text and as JSON; `docs/json.md` describes the latter.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use anstyle::Style;
use offload_formats::container::prune::{ImageSizes, PruneCounts};
use offload_formats::escape::terminal;
use serde::Serialize;

use crate::cargo_offload::text::{self, Align, FAINT, NAME, TARGET, TextTable};

#[derive(Serialize)]
pub(super) struct PruneDocument {
    pub(super) schema: u32,
    pub(super) files: Vec<PruneReport>,
}

/// Report of one pruned file.
#[derive(Serialize)]
pub(super) struct PruneReport {
    file: String,
    output: String,
    old_size: u64,
    new_size: u64,
    kept: Vec<CountedImages>,
    removed: Vec<CountedImages>,
    empty: usize,
    /// Members that stay as they are.
    left: Vec<String>,
}

#[derive(Serialize)]
struct CountedImages {
    target: String,
    images: usize,
    size: u64,
    unpacked: u64,
}

impl PruneReport {
    pub(super) fn new(
        (file, old_size): (&Path, u64),
        (output, new_size): (&Path, u64),
        counts: &PruneCounts,
        left: Vec<String>,
    ) -> Self {
        let counted = |map: &BTreeMap<String, ImageSizes>| {
            let rows = map.iter().map(|(target, sizes)| CountedImages {
                target: target.clone(),
                images: sizes.images,
                size: sizes.stored,
                unpacked: sizes.unpacked,
            });
            rows.collect()
        };
        Self {
            file: file.to_string_lossy().into_owned(),
            output: output.to_string_lossy().into_owned(),
            old_size,
            new_size,
            kept: counted(&counts.kept),
            removed: counted(&counts.removed),
            empty: counts.empty,
            left,
        }
    }

    /// Tells whether the new file lacks an image.
    pub(super) fn has_removed(&self) -> bool {
        !self.removed.is_empty()
    }
}

/// Prints a report for people.
pub(super) fn print(report: &PruneReport, out: &mut impl Write) -> io::Result<()> {
    let plain = Style::new();
    let name = terminal(&report.file);
    let (old, new) = (text::size(report.old_size), text::size(report.new_size));
    let share = text::share(report.new_size, report.old_size);
    writeln!(out, "{NAME}{name}{NAME:#}: {old} → {new} ({share})")?;
    let columns = [
        (Align::Left, plain),
        (Align::Left, TARGET),
        (Align::Right, plain),
        (Align::Right, FAINT),
    ];
    let mut table = TextTable::new(columns);
    for (what, rows) in [("kept", &report.kept), ("removed", &report.removed)] {
        for row in rows {
            table.push([
                what.to_owned(),
                terminal(&row.target).to_string(),
                text::count(row.images, "image"),
                text::size(row.size),
            ]);
        }
    }
    table.print("  ", out)
}
