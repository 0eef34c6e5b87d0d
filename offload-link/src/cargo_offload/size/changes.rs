//! The difference of two files, by target.

use std::collections::BTreeSet;
use std::io::{self, Write};

use anstyle::Style;

use super::measure::{ImageSizes, MeasuredFile};
use crate::cargo_offload::text::{self, Align, FAINT, NAME, TARGET, TextTable};

/// Sizes for a target in both files, by the target's name.
pub(super) fn by_target<'a>(
    old: &'a MeasuredFile,
    new: &'a MeasuredFile,
) -> Vec<(&'a str, ImageSizes, ImageSizes)> {
    let targets: BTreeSet<&String> = old.targets.keys().chain(new.targets.keys()).collect();
    let sizes = |file: &MeasuredFile, target| file.targets.get(target).copied();
    let rows = targets.into_iter().map(|target| {
        // A target that a file lacks has no images there.
        let [old, new] = [old, new].map(|file| sizes(file, target).unwrap_or_default());
        (target.as_str(), old, new)
    });
    rows.collect()
}

/// Returns the difference for people, with its sign.
fn change(old: u64, new: u64) -> String {
    match new.checked_sub(old) {
        Some(0) => "same".to_owned(),
        Some(more) => format!("+{}", text::size(more)),
        None => format!("-{}", text::size(old - new)),
    }
}

fn images(old: usize, new: usize) -> String {
    match old == new {
        true => text::count(new, "image"),
        false => format!("{old} → {}", text::count(new, "image")),
    }
}

pub(super) fn print(
    old: &MeasuredFile,
    new: &MeasuredFile,
    out: &mut impl Write,
) -> io::Result<()> {
    let plain = Style::new();
    let (old_name, new_name) = (&old.name, &new.name);
    writeln!(
        out,
        "{NAME}{old_name}{NAME:#} {} → {NAME}{new_name}{NAME:#} {}: {}",
        text::size(old.size),
        text::size(new.size),
        change(old.size, new.size)
    )?;
    let columns = [
        (Align::Left, TARGET),
        (Align::Right, FAINT),
        (Align::Right, plain),
        (Align::Right, plain),
        (Align::Right, plain),
    ];
    let mut table = TextTable::new(columns);
    for (target, old, new) in by_target(old, new) {
        table.push([
            target.to_owned(),
            images(old.images, new.images),
            text::size(old.stored),
            text::size(new.stored),
            change(old.stored, new.stored),
        ]);
    }
    let remainders = [old, new].map(|file| file.size.saturating_sub(file.device()));
    let [old, new] = remainders;
    table.push([
        "host code and data".to_owned(),
        String::new(),
        text::size(old),
        text::size(new),
        change(old, new),
    ]);
    table.print("  ", out)
}
