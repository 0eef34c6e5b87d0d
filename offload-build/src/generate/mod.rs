//! The Rust file that a crate includes: its images, its kernels, and whether they were built.
//!
//! `templates/` contains the text, with places that values fill; nothing else writes Rust code by hand but rows of tables.

mod file;
mod kernels;
mod linked;
mod template;

pub(crate) use crate::generate::file::{Content, Described, HostFile, Image, Place, Stub};

use crate::declare::skipped::Skipped;
use crate::generate::template::fill;
use std::fmt;

impl fmt::Display for HostFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kernels, constants) = kernels::constants(&self.described);
        let linked = linked::content(&self.content) + &kernels::stubs(&self.described);
        f.write_str(&fill(
            include_str!("templates/file.rs.in"),
            &[
                ("version", env!("CARGO_PKG_VERSION")),
                ("module", &self.module),
                ("names", &format!("{:?}", self.kernels)),
                ("skipped", &skipped(&self.skipped)),
                ("kernels", &kernels),
                ("constants", &constants.join(", ")),
                // Some of it is unused in each state of the build. A crate that forbids unsafe code refuses to allow it.
                (
                    "unsafe_code",
                    if self.is_safe() { "" } else { "unsafe_code, " },
                ),
                ("linked", &indented(&linked)),
            ],
        ))
    }
}

/// Returns a row for each target without an image, with the first line of the reason.
fn skipped(skipped: &[Skipped]) -> String {
    let row = |Skipped { target, reason, .. }: &Skipped| {
        let reason = reason.lines().next().unwrap_or_default();
        format!("    Skipped {{ target: {target:?}, reason: {reason:?} }},\n")
    };
    match skipped {
        [] => String::new(),
        _ => format!("\n{}", skipped.iter().map(row).collect::<String>()),
    }
}

/// Returns `text` as it stands in a block.
fn indented(text: &str) -> String {
    let line = |line: &str| match line {
        "" => "\n".to_owned(),
        line => format!("    {line}\n"),
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests;
