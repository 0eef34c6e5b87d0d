//! Tables for people.

use std::io::Write;

/// Prints a table; the column `right` contains numbers.
pub(crate) fn print_columns(
    header: &[String; 5],
    rows: &[[String; 5]],
    right: usize,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let all = || std::iter::once(header).chain(rows);
    let mut widths = [0; 5];
    for row in all() {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = text.len().max(*width);
        }
    }
    for row in all() {
        let mut line = String::new();
        for ((column, text), width) in row.iter().enumerate().zip(widths) {
            line += &match column == right {
                true => format!("  {text:>width$}"),
                false => format!("  {text:<width$}"),
            };
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}
