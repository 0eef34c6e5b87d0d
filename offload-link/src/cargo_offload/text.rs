//! Numbers and columns for people.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write;

use anstyle::{AnsiColor, Style};

/// Style of names of files.
pub(super) const NAME: Style = Style::new().bold();

/// Style of targets.
pub(super) const TARGET: Style = AnsiColor::Cyan.on_default();

/// Style of facts that seldom matter.
pub(super) const FAINT: Style = Style::new().dimmed();

/// Returns a size in bytes for people, such as `11.2 MiB`.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    // Tenths, rounded: exact for any number of bytes.
    let (mut unit, mut scale) = (0, 1024_u128);
    while u128::from(bytes) * 10 + scale / 2 >= scale * 10 * 1024 && unit + 1 < UNITS.len() {
        (unit, scale) = (unit + 1, scale * 1024);
    }
    let tenths = (u128::from(bytes) * 10 + scale / 2) / scale;
    let (whole, tenth) = (tenths / 10, tenths % 10);
    format!("{whole}.{tenth} {}", UNITS[unit])
}

/// Returns a share in percent, rounded, such as `14 %`, or `0.3 %` below 1 %.
pub(super) fn share(part: u64, whole: u64) -> String {
    let (part, whole) = (u128::from(part), u128::from(whole));
    let of = |parts: u128| (part * parts + whole / 2).checked_div(whole).unwrap_or(0);
    match of(1000) {
        tenths @ 0..10 => format!("0.{tenths} %"),
        _ => format!("{} %", of(100)),
    }
}

/// Returns a count with its noun: `1 image`, `2 images`.
pub(super) fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

/// Side of a column to which its cells are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
    /// To the left, in a column of at most that many characters: longer cells move what is after them.
    LeftWithin(usize),
}

/// A table whose columns are as wide as their widest cells.
pub(super) struct TextTable<'a, const COLUMNS: usize> {
    columns: [(Align, Style); COLUMNS],
    rows: Vec<[Cow<'a, str>; COLUMNS]>,
}

impl<'a, const COLUMNS: usize> TextTable<'a, COLUMNS> {
    pub(super) fn new(columns: [(Align, Style); COLUMNS]) -> Self {
        let rows = Vec::new();
        Self { columns, rows }
    }

    pub(super) fn push(&mut self, row: [impl Into<Cow<'a, str>>; COLUMNS]) {
        self.rows.push(row.map(Into::into));
    }

    /// Prints the rows, each after `indent`.
    pub(super) fn print(&self, indent: &str, out: &mut impl Write) -> std::io::Result<()> {
        let mut lines = self.lines(indent).into_iter();
        lines.try_for_each(|line| writeln!(out, "{line}"))
    }

    /// Returns the rows as lines, each after `indent`. Cells are two blanks apart; columns without text take no space.
    pub(super) fn lines(&self, indent: &str) -> Vec<String> {
        let mut widths = [0; COLUMNS];
        for row in &self.rows {
            for ((width, cell), (align, _)) in widths.iter_mut().zip(row).zip(self.columns) {
                let own = match align {
                    Align::Left | Align::Right => cell.chars().count(),
                    Align::LeftWithin(most) => cell.chars().count().min(most),
                };
                *width = own.max(*width);
            }
        }
        let lines = self.rows.iter().map(|row| {
            let mut line = indent.to_owned();
            // Blanks before the next cell with text.
            let mut blanks = 0;
            for ((cell, width), (align, style)) in row.iter().zip(widths).zip(self.columns) {
                if width == 0 {
                    continue;
                }
                let gap = width.saturating_sub(cell.chars().count());
                let (before, after) = match align {
                    Align::Left | Align::LeftWithin(_) => (0, gap),
                    Align::Right => (gap, 0),
                };
                blanks += before;
                if !cell.is_empty() {
                    line.extend(std::iter::repeat_n(' ', blanks));
                    blanks = 0;
                    // Writing to a string cannot fail.
                    let _ = write!(line, "{style}{cell}{style:#}");
                }
                blanks += after + 2;
            }
            line
        });
        lines.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_shares() {
        let shares = |parts: [u64; 3]| parts.map(|part| share(part, 3_000));
        assert_eq!(shares([1_000, 2_000, 3_000]), ["33 %", "67 %", "100 %"]);
        assert_eq!(shares([0, 2, 28]), ["0.0 %", "0.1 %", "0.9 %"]);
        assert_eq!(shares([29, 44, 45]), ["1 %", "1 %", "2 %"]);
        assert_eq!(share(0, 0), "0.0 %");
    }

    #[test]
    fn rounds_sizes_to_tenths() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (1_310_496_488, "1.2 GiB"),
            // 1023.95 KiB would be 1024.0 KiB.
            (1_048_525, "1.0 MiB"),
            (1_048_000, "1023.4 KiB"),
            (u64::MAX, "16777216.0 TiB"),
        ] {
            assert_eq!(size(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn aligns_columns_and_leaves_out_empty_ones() {
        let plain = Style::new();
        let mut table = TextTable::new([
            (Align::Left, plain),
            (Align::Left, plain),
            (Align::Right, plain),
            (Align::Left, plain),
        ]);
        let row = |cells: [&str; 4]| cells.map(str::to_owned);
        table.push(row(["a", "", "10", "x"]));
        table.push(row(["long", "", "9", ""]));
        table.push(row(["b", "", "", "y"]));
        let mut out = Vec::new();
        table.print("  ", &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "  a     10  x\n  long   9\n  b         y\n");
    }
    #[test]
    fn keeps_a_long_cell_from_widening_its_column() {
        let plain = Style::new();
        let mut table = TextTable::new([(Align::LeftWithin(4), plain), (Align::Left, plain)]);
        table.push(["a", "x"]);
        table.push(["much longer", "y"]);
        table.push(["four", "z"]);
        assert_eq!(table.lines(""), ["a     x", "much longer  y", "four  z"]);
    }
}
