//! `--extract-all`: writes every image of a file to a file of its own.

use std::path::Path;

use super::contents;
use super::request::{From, Manner};
use crate::llvm_tool::{DistinctNames, LlvmToolError, Output, Sources};
use crate::say::Warn;

/// Returns the outputs in `folder`.
pub(super) fn plan(
    from: &From,
    folder: &Path,
    sources: &mut Sources,
    manner: &Manner,
    warn: Warn<'_>,
) -> Result<Vec<Output>, LlvmToolError> {
    let contents = contents::read(from, sources, manner)?;
    contents.warn_of_rest(warn);
    let stem = contents.name.file_name().unwrap_or("stdin".as_ref());
    let stem = stem.to_string_lossy();
    let mut names = DistinctNames::default();
    let mut outputs = Vec::new();
    for bundle in &contents.bundles {
        for entry in &bundle.entries {
            // Names are like those of `llvm-objdump --offloading`.
            let name = harmless(&format!("{stem}.{}.{}", bundle.index, entry.id));
            let name = names.add(name, |name, count| format!("{name}.{}", count + 1));
            let pieces = entry.pieces(sources, bundle.member.as_deref())?;
            outputs.push(Output::plain(folder.join(name), pieces));
        }
    }
    Ok(outputs)
}

/// Makes a file name safe: entry IDs come from the file. Replaces separators and bytes that a plain file name should
/// not contain by `_`.
fn harmless(name: &str) -> String {
    let plain = |char: char| char.is_ascii_graphic() && !matches!(char, '/' | '\\' | ':');
    let name: String = name
        .chars()
        .map(|char| if plain(char) { char } else { '_' })
        .collect();
    // File systems limit names to 255 bytes.
    name.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makes_names_that_stay_in_the_folder() {
        for (name, expected) in [
            (
                "a.o.0.hip-amdgcn-amd-amdhsa--gfx90a:xnack+",
                "a.o.0.hip-amdgcn-amd-amdhsa--gfx90a_xnack+",
            ),
            ("a.0.../../b\0\n", "a.0..._.._b__"),
            ("a.0.ä", "a.0._"),
        ] {
            assert_eq!(harmless(name), expected);
        }
        assert_eq!(harmless(&"x".repeat(999)).len(), 200);
    }
}
