//! Finds out whether a crate forbids unsafe code, which the generated file needs to name linked images.

use offload_build_core::declare::cargo_tables::forbids_unsafe_code;
use offload_build_core::declare::layers;
use offload_build_core::declare::manifest::Source;
use offload_build_core::environment::Environment;
use offload_build_core::error::{self, Error};
use offload_build_core::readable;
use std::fs;
use std::path::Path;

const MANIFEST: &str = "Cargo.toml";

/// Files in which crates forbid it, below the package.
const CRATE_ROOTS: [&str; 2] = ["src/lib.rs", "src/main.rs"];

/// Tells whether the package in `root` forbids unsafe code: in its lints, which may be those of its workspace, or at the start of
/// a line of a crate root. That decides only about a default; in other places the compiler finds it, and its error shows the
/// key.
///
/// # Errors
///
/// When a file cannot be read.
pub(crate) fn is_forbidden(root: &Path, environment: &Environment) -> Result<bool, Error> {
    let text = |file: &str| {
        let path = root.join(file);
        if !readable::is_file(&path)? {
            return Ok(String::new());
        }
        let bytes = fs::read(&path).map_err(error::io(&path))?;
        Ok::<_, Error>(String::from_utf8_lossy(&bytes).into_owned())
    };
    let manifest = Source {
        file: MANIFEST,
        text: &text(MANIFEST)?,
    };
    let workspace = || {
        let found = layers::workspace(environment, &root.join(MANIFEST))?;
        if let Some((path, _)) = &found {
            environment.watch(path);
        }
        Ok(found)
    };
    if forbids_unsafe_code(manifest, &workspace)? {
        return Ok(true);
    }
    for file in CRATE_ROOTS {
        if source_forbids(&text(file)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn source_forbids(text: &str) -> bool {
    const START: &str = "#![forbid(";
    let mut places = text.match_indices(START);
    places.any(|(place, _)| {
        let before = text[..place].rsplit('\n').next().unwrap_or_default();
        let lints = text[place + START.len()..].split(')').next();
        let mut lints = lints.unwrap_or_default().split(',');
        before.trim().is_empty() && lints.any(|lint| lint.trim() == "unsafe_code")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_attributes_of_crate_roots() {
        for (text, is_forbidden) in [
            ("//! A crate.\n#![forbid(unsafe_code)]\n", true),
            ("#![forbid(missing_docs, unsafe_code)]", true),
            (
                "#![forbid(\n    missing_docs,\n    unsafe_code,\n)]\n",
                true,
            ),
            ("#![deny(unsafe_code)]", false),
            ("// #![forbid(unsafe_code)]", false),
            ("", false),
        ] {
            assert_eq!(source_forbids(text), is_forbidden, "{text}");
        }
    }
}
