//! Finds out whether a crate forbids unsafe code, which the generated file needs to name linked images.

use offload_build_core::error::{self, Error};
use offload_build_core::readable;
use std::fs;
use std::path::Path;

/// Files in which crates forbid it, below the package.
const CRATE_ROOTS: [&str; 2] = ["src/lib.rs", "src/main.rs"];

/// Tells whether the package in `root` forbids unsafe code: in `[lints.rust]` of its manifest, or at the start of a line of
/// a crate root. That decides only about a default; in other places the compiler finds it, and its error shows the key.
///
/// # Errors
///
/// When a file cannot be read.
pub(crate) fn is_forbidden(root: &Path) -> Result<bool, Error> {
    let text = |file: &str| {
        let path = root.join(file);
        if !readable::is_file(&path)? {
            return Ok(String::new());
        }
        let bytes = fs::read(&path).map_err(error::io(&path))?;
        Ok::<_, Error>(String::from_utf8_lossy(&bytes).into_owned())
    };
    if manifest_forbids(&text("Cargo.toml")?) {
        return Ok(true);
    }
    for file in CRATE_ROOTS {
        if source_forbids(&text(file)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn manifest_forbids(text: &str) -> bool {
    let mut in_lints = false;
    text.lines().map(str::trim).any(|line| {
        if line.starts_with('[') {
            in_lints = line == "[lints.rust]";
        }
        let value = line.strip_prefix("unsafe_code").map(str::trim_start);
        let value = value.and_then(|value| value.strip_prefix('='));
        in_lints && value.is_some_and(|value| value.contains("\"forbid\""))
    })
}

fn source_forbids(text: &str) -> bool {
    text.lines().any(|line| {
        let lints = line.trim().strip_prefix("#![forbid(");
        let lints = lints.and_then(|lints| lints.split_once(')'));
        let mut lints = lints.into_iter().flat_map(|(lints, _)| lints.split(','));
        lints.any(|lint| lint.trim() == "unsafe_code")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lints_of_manifests() {
        for (text, is_forbidden) in [
            ("[lints.rust]\nunsafe_code = \"forbid\"\n", true),
            (
                "[lints.rust]\nunused = \"allow\"\nunsafe_code={ level = \"forbid\" }\n",
                true,
            ),
            ("[lints.rust]\nunsafe_code = \"deny\"\n", false),
            (
                "[lints.rust]\n[lints.clippy]\nunsafe_code = \"forbid\"\n",
                false,
            ),
            ("", false),
        ] {
            assert_eq!(manifest_forbids(text), is_forbidden, "{text}");
        }
    }

    #[test]
    fn reads_attributes_of_crate_roots() {
        for (text, is_forbidden) in [
            ("//! A crate.\n#![forbid(unsafe_code)]\n", true),
            ("#![forbid(missing_docs, unsafe_code)]", true),
            ("#![deny(unsafe_code)]", false),
            ("// #![forbid(unsafe_code)]", false),
            ("", false),
        ] {
            assert_eq!(source_forbids(text), is_forbidden, "{text}");
        }
    }
}
