//! The Rust file that a crate includes: its images, its kernels, and whether they were built.
//!
//! `templates/` contains the text, with places that values fill; nothing else writes Rust code by hand but rows of tables.

mod file;
mod kernels;
mod linked;
mod source_name;
mod template;
mod words;

pub(crate) use crate::generate::file::{
    Content, Described, HostFile, Image, PartFile, Place, Ptx, SourceFile, Stub,
};
pub(crate) use crate::generate::source_name::{SourceName, source_names};

use crate::generate::template::fill;
use offload_build_core::declare::skipped::Skipped;
use offload_formats::escape::terminal;
use std::fmt;

/// The text of a host file.
const TEMPLATE: &str = include_str!("templates/file.rs.in");

/// Says whether `text` is a host file that some release wrote.
pub(crate) fn is_host_file(text: &[u8]) -> bool {
    let start = TEMPLATE.split('$').next();
    start.is_some_and(|start| text.starts_with(start.as_bytes()))
}

impl fmt::Display for HostFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kernels, constants) = match self.sources.as_slice() {
            [] => kernels::constants(&self.described, ""),
            sources => kernels::forwarded(&self.described, sources),
        };
        let mut linked = linked::content(&self.content, "");
        if self.sources.is_empty() {
            linked += &kernels::stubs(&self.described);
        }
        // Some of it is unused in each state of the build. A crate that forbids unsafe code refuses to allow it.
        let unsafe_code = match (self.is_safe(), self.only_names_images()) {
            (true, _) => "",
            // The compiler's error shows the line.
            (false, true) => {
                "unsafe_code /* forbidden? set `embed = \"include\"` in [package.metadata.offload] */, "
            }
            (false, false) => "unsafe_code, ",
        };
        let sources = self.sources.iter();
        let sources = sources.map(|source| source.text(unsafe_code));
        f.write_str(&fill(
            TEMPLATE,
            &[
                ("version", env!("CARGO_PKG_VERSION")),
                ("module", &self.module),
                ("names", &format!("{:?}", self.kernels)),
                ("skipped", &skipped(&self.skipped)),
                ("kernels", &kernels),
                ("constants", &constants.join(", ")),
                ("sources", &sources.collect::<String>()),
                ("unsafe_code", unsafe_code),
                ("linked", &indented(&linked)),
            ],
        ))
    }
}

impl SourceFile {
    /// Returns the Rust module of the source.
    fn text(&self, unsafe_code: &str) -> String {
        let visibility = "pub(in super::super) ";
        let (kernels, constants) = kernels::constants(&self.described, visibility);
        let linked = linked::content(&self.content, visibility);
        let linked = linked + &kernels::stubs(&self.described);
        fill(
            include_str!("templates/source.rs.in"),
            &[
                ("path", &terminal(&self.name.path).to_string()),
                ("module", &self.name.module),
                ("ptx", &self.ptx()),
                ("kernels", &indented(&kernels)),
                ("constants", &constants.join(", ")),
                ("unsafe_code", unsafe_code),
                ("linked", &indented(&indented(&linked))),
            ],
        )
    }

    /// Returns a constant for each PTX text: `PTX`, or if there are several `PTX_COMPUTE_80`.
    fn ptx(&self) -> String {
        let constant = |ptx: &Ptx| {
            let name = match self.ptx.len() {
                1 => "PTX".to_owned(),
                _ => format!("PTX_{}", ptx.target.to_uppercase()),
            };
            let text = match &ptx.file {
                Some(file) => format!(
                    "include_str!(concat!(env!(\"OUT_DIR\"), {:?}))",
                    format!("/{file}")
                ),
                None => "\"\"".to_owned(),
            };
            let target = &ptx.target;
            format!(
                "\n    /// PTX of this source for `{target}`; empty in a build without device code.\n    \
                 pub const {name}: &str = {text};\n"
            )
        };
        self.ptx.iter().map(constant).collect()
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
