//! Names of the Rust modules that a module with `images = "source"` has for its sources.

use crate::generate::words::raw;
use offload_formats::by_name::ByName;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A source that has images of its own, as the generated file names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceName {
    /// Name of its Rust module.
    pub(crate) module: String,
    /// Path from the package, or from `OUT_DIR` with this word in front, with `/`.
    pub(crate) path: String,
}

/// Items of the generated file that a module of a source must not have the name of, and words that `r#` cannot make names.
const TAKEN: [&str; 14] = [
    "Argument",
    "ArgumentKind",
    "Image",
    "Kernel",
    "KernelImage",
    "NotBuilt",
    "Skipped",
    "kernel",
    "linked",
    "self",
    "Self",
    "super",
    "crate",
    "_",
];

/// Returns a name for each of `sources` of the package in `root`: the file's name without its extension. Sources that share it get
/// the names of their folders, too, and those that still share one get a number. `out` is Cargo's `OUT_DIR`.
pub(crate) fn source_names(root: &Path, out: &Path, sources: &[PathBuf]) -> Vec<SourceName> {
    let shown = |path: &PathBuf| {
        let (start, path) = match path.strip_prefix(out) {
            // The same one wherever Cargo's target folder is.
            Ok(inside) => ("OUT_DIR/", inside),
            Err(_) => ("", path.strip_prefix(root).unwrap_or(path)),
        };
        format!("{start}{}", path.to_string_lossy().replace('\\', "/"))
    };
    let paths: Vec<String> = sources.iter().map(shown).collect();
    let longest = paths.iter().map(|path| parts(path).len()).max();
    let mut names: Vec<String> = paths.iter().map(|path| module_name(path, 1)).collect();
    for count in 2..=longest.unwrap_or(1) {
        let counted = ByName::counted(&names);
        for (name, path) in names.iter_mut().zip(&paths) {
            if counted.get(name) > Some(&1) {
                *name = module_name(path, count);
            }
        }
    }
    let counted = ByName::counted(&names);
    let mut numbers: ByName<usize> = ByName::default();
    let mut known: BTreeSet<String> = names.iter().cloned().collect();
    for name in &mut names {
        while counted.get(name) > Some(&1) {
            let number = numbers.or_insert(name, 0);
            *number += 1;
            let numbered = format!("{name}_{number}");
            if known.insert(numbered.clone()) {
                *name = numbered;
            }
        }
    }
    let named = names.into_iter().zip(paths);
    named
        .map(|(module, path)| SourceName { module, path })
        .collect()
}

/// Returns the folders and the file name of `path`, without the extension.
fn parts(path: &str) -> Vec<&str> {
    let path = path.strip_prefix("OUT_DIR/").unwrap_or(path);
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    if let Some(file) = parts.last_mut() {
        *file = file.rsplit_once('.').map_or(*file, |(stem, _)| stem);
    }
    parts
}

/// Returns an identifier made of the last `count` parts of `path`.
fn module_name(path: &str, count: usize) -> String {
    let parts = parts(path);
    let first = parts.len().saturating_sub(count);
    let text = parts[first..].join("_");
    let letter = |c: char| match c.is_ascii_alphanumeric() {
        true => c,
        false => '_',
    };
    let name: String = text.chars().map(letter).collect();
    let starts_well = |c: char| c.is_ascii_alphabetic() || c == '_';
    match name.as_str() {
        name if TAKEN.contains(&name) => format!("{name}_"),
        name if name.starts_with(starts_well) => raw(name),
        name => format!("_{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(sources: &[&str]) -> Vec<String> {
        let sources = sources.iter().map(|path| Path::new("/p").join(path));
        let (root, out) = (Path::new("/p"), Path::new("/p/target/out"));
        let names = source_names(root, out, &sources.collect::<Vec<_>>());
        names.into_iter().map(|name| name.module).collect()
    }

    #[test]
    fn names_modules_after_files() {
        let sources = ["k/affine.cu", "k/flash-attn.hdim64.cu", "k/3d.cu", "k/ä.cu"];
        assert_eq!(
            modules(&sources),
            ["affine", "flash_attn_hdim64", "_3d", "__"]
        );
        let words = ["kernel.cu", "match.cu", "self.cu", "linked.cu", "Image.cu"];
        assert_eq!(
            modules(&words),
            ["kernel_", "r#match", "self_", "linked_", "Image_"]
        );
    }

    #[test]
    fn shows_generated_sources_alike_in_all_folders() {
        for out in ["/p/target/release/build/p-01/out", "/elsewhere/out"] {
            let (root, out) = (Path::new("/p"), Path::new(out));
            let sources = [out.join("made/k.cu"), root.join("k/l.cu")];
            let names = source_names(root, out, &sources).into_iter();
            let paths: Vec<String> = names.map(|name| name.path).collect();
            assert_eq!(paths, ["OUT_DIR/made/k.cu", "k/l.cu"]);
        }
    }

    #[test]
    fn tells_equal_names_apart() {
        let sources = ["a/x.cu", "b/x.cu", "y.cu", "z/a/x.cu"];
        assert_eq!(modules(&sources), ["a_x", "b_x", "y", "z_a_x"]);
        let sources = ["k/a-b.cu", "k/a_b.cu", "k/c.cu", "k/c.cc", "x.cu"];
        assert_eq!(
            modules(&sources),
            ["k_a_b_1", "k_a_b_2", "k_c_1", "k_c_2", "x"]
        );
        let sources = ["a-b.cu", "a_b.cu", "a_b_1.cu", "a_b_2.cc", "a_b_2.cu"];
        assert_eq!(
            modules(&sources),
            ["a_b_3", "a_b_4", "a_b_1", "a_b_2_1", "a_b_2_2"]
        );
    }
}
