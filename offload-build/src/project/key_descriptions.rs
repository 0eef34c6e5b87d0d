//! The keys of `[package.metadata.offload]` for editors and tables: what each means, and its default.

use crate::declare::settings::{Form, KEYS};

/// A key for people.
#[derive(Debug)]
pub struct KeyDescription {
    /// Name of the key.
    pub name: &'static str,
    /// Form of its value.
    pub form: KeyForm,
    /// True if it may stand in `[….target."<target>"]`.
    pub is_per_target: bool,
    /// The default in words, as in `docs/manifest.md`.
    pub default: &'static str,
    /// Meaning of the value, a sentence.
    pub description: &'static str,
}

/// Form of a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// A string.
    Text,
    /// An array of strings.
    List,
    /// A table of names with strings, numbers or booleans.
    Map,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// A boolean.
    Flag,
}

/// Returns all keys in the order of `docs/manifest.md`.
#[must_use]
pub fn keys() -> Vec<KeyDescription> {
    let described = KEYS.iter().map(|key| {
        let row = DESCRIPTIONS.iter().find(|(name, ..)| *name == key.name);
        let (_, default, description) = row.expect("each key has a description");
        KeyDescription {
            name: key.name,
            form: match key.form {
                Form::Text => KeyForm::Text,
                Form::List => KeyForm::List,
                Form::Map => KeyForm::Map,
                Form::Choice(choices) => KeyForm::Choice(choices),
                Form::Flag => KeyForm::Flag,
            },
            is_per_target: key.per_target,
            default,
            description,
        }
    });
    described.collect()
}

/// Name, default and description of each key.
const DESCRIPTIONS: &[(&str, &str, &str)] = &[
    ("language", "required", "Language of the sources."),
    (
        "sources",
        "required",
        "Source files: paths and patterns, relative to the package.",
    ),
    (
        "crate",
        "required for `rust`",
        "Folder of a crate of kernels in Rust, relative to the package.",
    ),
    (
        "features",
        "none",
        "Cargo features of the crate of kernels.",
    ),
    (
        "default-features",
        "`true`",
        "Whether the crate of kernels has its default features.",
    ),
    (
        "targets",
        "required",
        "Targets: AMD GPUs by target ID (`gfx90a:xnack-`), NVIDIA GPUs by processor (`sm_80`), PTX by `compute_80`, CPU \
         devices by triple, `native` for the GPUs of this machine.",
    ),
    (
        "include",
        "none",
        "Folders that `#include` searches, relative to the package.",
    ),
    (
        "archives",
        "none",
        "Libraries of device code that device links take whole: archives of bundles, of one target, or of bitcode.",
    ),
    (
        "link",
        "none",
        "The same by name, `foo` for `libfoo.a`, in `LIBRARY_PATH` and the package.",
    ),
    (
        "artifact",
        "none",
        "Libraries that the module also makes: `hda`, an archive of bundles; `device-archive`, an archive for each target.",
    ),
    (
        "define",
        "none",
        "Macros; `false` removes one that a lower layer defines.",
    ),
    (
        "flags",
        "none",
        "Compiler options, as spelled, after all others.",
    ),
    (
        "opt-level",
        "3 for device code, Cargo's for host code",
        "Optimization level of host and device code, in every profile.",
    ),
    ("std", "compiler's", "Language standard: `c11`, `c++20`."),
    (
        "host",
        "`false`",
        "Whether HIP or CUDA sources also have host code, which launches kernels.",
    ),
    (
        "rdc",
        "`true`; with `host = true` `false`, as in hipcc and nvcc",
        "Relocatable device code: whether sources of HIP and CUDA call device functions of each other.",
    ),
    (
        "images",
        "`\"module\"`; CUDA with `rdc = false`: `\"source\"`",
        "The sources of an image: all sources of the module, or each source by itself.",
    ),
    ("exclude", "none", "Patterns of sources to leave out."),
    (
        "container",
        "by language",
        "What all images are packed in: a HIP bundle, a CUDA fat binary, offload binaries, or nothing.",
    ),
    (
        "compress",
        "`none`",
        "Compression of a HIP module's bundle: `none`, `zlib`, `zstd`, with a level after a colon, as in `zstd:19`.",
    ),
    (
        "embed",
        "`\"auto\"`",
        "How Rust gets the images of a module without host code: from an object that is linked (`link`), or by `include_bytes!` (`include`).",
    ),
    (
        "compiler",
        "the newest clang that will do",
        "Device compiler: a clang, `hipcc` for HIP, `nvcc` for CUDA, a rustc for `rust`; a name, or a path relative to the package.",
    ),
    (
        "launcher",
        "`sccache`, where it is `RUSTC_WRAPPER`",
        "Program that starts compiles, such as `ccache`, with arguments; `none` for nothing.",
    ),
    (
        "register",
        "`\"auto\"`",
        "Who registers the images: this module (`complete`), the last link by offload-link (`deferred`), or nobody.",
    ),
    (
        "missing",
        "`\"error\"`",
        "What to do if a target's tools are missing: fail, leave the target out, or build a stub without device code.",
    ),
    (
        "feature",
        "none",
        "Cargo feature of the package without which the module is not built.",
    ),
    (
        "name",
        "`\"kernels\"`",
        "Name of the module, a Rust identifier of at most 200 characters.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describes_each_key_with_the_default_of_its_page() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/manifest.md");
        let page = std::fs::read_to_string(page).unwrap();
        assert_eq!(keys().len(), DESCRIPTIONS.len());
        for key in keys() {
            let start = format!("\n| `{}` | ", key.name);
            let row = page.split_once(&start).map(|(_, rest)| rest);
            let row = row.and_then(|rest| rest.lines().next());
            let row = row.unwrap_or_else(|| panic!("no row for `{}`", key.name));
            let default = row.split(" | ").nth(1).unwrap();
            assert_eq!(key.default, default, "{}", key.name);
            assert!(key.description.ends_with('.'), "{}", key.name);
        }
    }
}
