//! The difference of two files, by target.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use anstyle::Style;
use offload_formats::escape::terminal;
use serde::Serialize;

use super::measure::{ImageSizes, MeasuredFile};
use crate::cargo_offload::kernels::shown_name;
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

/// Images and code size of a kernel in both files.
pub(super) struct ChangedKernel<'a> {
    pub(super) symbol: &'a str,
    pub(super) old: KernelSizes,
    pub(super) new: KernelSizes,
}

/// Images and code size of a kernel in a file. JSON has these fields.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct KernelSizes {
    images: usize,
    code_size: u64,
}

/// Lists the kernels that differ, those with the largest change first; `None` if kernels were not read.
pub(super) fn changed_kernels<'a>(
    old: &'a MeasuredFile,
    new: &'a MeasuredFile,
) -> Option<Vec<ChangedKernel<'a>>> {
    let (old, new) = (old.kernels.as_ref()?, new.kernels.as_ref()?);
    let mut kernels: BTreeMap<&str, [KernelSizes; 2]> = BTreeMap::new();
    for (place, list) in [old, new].into_iter().enumerate() {
        for kernel in list {
            let sizes = kernels.entry(&kernel.symbol).or_default();
            sizes[place] = KernelSizes {
                images: kernel.images,
                code_size: kernel.code_size,
            };
        }
    }
    let changed = kernels.into_iter().filter(|(_, [old, new])| old != new);
    let changed = changed.map(|(symbol, [old, new])| ChangedKernel { symbol, old, new });
    let mut changed: Vec<ChangedKernel<'a>> = changed.collect();
    // Stable: kernels with the same change stay in the order of their symbols.
    changed.sort_by_key(|kernel| Reverse(kernel.old.code_size.abs_diff(kernel.new.code_size)));
    Some(changed)
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
    top: usize,
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
    let kernels = changed_kernels(old, new);
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
    table.print("  ", out)?;
    match kernels {
        Some(kernels) => print_kernels(&kernels, top, out),
        None => Ok(()),
    }
}

fn print_kernels(
    kernels: &[ChangedKernel<'_>],
    top: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let count = text::count(kernels.len(), "kernel");
    writeln!(out, "{count} changed")?;
    let plain = Style::new();
    let columns = [
        (Align::Right, FAINT),
        (Align::Right, plain),
        (Align::Right, plain),
        (Align::Right, plain),
        (Align::Left, plain),
    ];
    let mut table = TextTable::new(columns);
    for kernel in kernels.iter().take(top) {
        table.push([
            images(kernel.old.images, kernel.new.images),
            text::size(kernel.old.code_size),
            text::size(kernel.new.code_size),
            change(kernel.old.code_size, kernel.new.code_size),
            terminal(&shown_name(kernel.symbol)).to_string(),
        ]);
    }
    table.print("  ", out)
}
