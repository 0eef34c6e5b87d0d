//! The keys of `[package.metadata.offload]` for editors and tables: what each means, and its default.

use offload_build_core::declare::language::Language;
use offload_build_core::declare::settings::{Form, KEYS};

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
    /// Languages on whose modules the key has an effect; `None` means all.
    pub languages: Option<&'static [&'static str]>,
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
        let (_, default, languages, description) = row.expect("each key has a description");
        KeyDescription {
            name: key.name,
            form: match key.form {
                Form::Text => KeyForm::Text,
                Form::List | Form::Options => KeyForm::List,
                Form::Map => KeyForm::Map,
                Form::Choice(choices) => KeyForm::Choice(choices),
                Form::Flag => KeyForm::Flag,
            },
            is_per_target: key.per_target,
            default,
            languages: (*languages != ALL).then_some(*languages),
            description,
        }
    });
    described.collect()
}

const ALL: &[&str] = &Language::NAMES;

/// Languages with a preprocessor.
const TEXT: &[&str] = &["openmp", "hip", "cuda"];

/// Languages of a crate of kernels.
const RUST: &[&str] = &["rust"];

const CUDA: &[&str] = &["cuda"];

const HIP_AND_CUDA: &[&str] = &["hip", "cuda"];

const WITH_SOURCES: &[&str] = &["openmp", "hip", "cuda", "bitcode", "prebuilt"];

/// Languages whose images `offload-build` makes.
const COMPILED: &[&str] = &["openmp", "hip", "cuda", "bitcode", "rust"];

/// Languages whose modules may be without host code.
const GPU_IMAGES: &[&str] = &["hip", "cuda", "bitcode", "rust", "prebuilt"];

/// Languages whose sources may have images of their own.
const WITH_IMAGES_OF_SOURCES: &[&str] = &["hip", "cuda", "bitcode"];

/// Name, default, languages and description of a key.
type Row = (
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static str,
);

/// Descriptions of all keys; `docs/manifest.md` and the JSON schema have them, too.
const DESCRIPTIONS: &[Row] = &[
    ("language", "required", ALL, "Language of the sources."),
    (
        "sources",
        "required",
        WITH_SOURCES,
        "Source files: paths and patterns, relative to the package.",
    ),
    (
        "crate",
        "required for `rust`",
        RUST,
        "Folder of a crate of kernels in Rust, relative to the package.",
    ),
    (
        "features",
        "those of the package's own dependency on it",
        RUST,
        "Cargo features of the crate of kernels.",
    ),
    (
        "default-features",
        "as in the package's own dependency on it",
        RUST,
        "Default Cargo features of the crate of kernels.",
    ),
    (
        "targets",
        "required",
        ALL,
        "Targets: AMD GPUs by target ID (`gfx90a:xnack-`), NVIDIA GPUs by processor (`sm_80`), PTX by `compute_80`, CPU devices by triple, `native` for the GPUs of this machine.",
    ),
    (
        "include",
        "none",
        TEXT,
        "Folders that `#include` searches, relative to the package.",
    ),
    (
        "archives",
        "none",
        COMPILED,
        "Libraries of device code that device links take whole: archives of bundles, of one target, or of bitcode.",
    ),
    (
        "link",
        "none",
        COMPILED,
        "Libraries of device code by name, `foo` for `libfoo.a`, in `LIBRARY_PATH` and the package.",
    ),
    (
        "artifact",
        "none",
        COMPILED,
        "Libraries that the module also makes: `hda`, an archive of bundles; `device-archive`, an archive for each target.",
    ),
    (
        "container",
        "by language",
        ALL,
        "Container of all images: a HIP bundle, a CUDA fat binary, offload binaries, or none.",
    ),
    (
        "compress",
        "`none`",
        GPU_IMAGES,
        "Compression of the images in a bundle or a CUDA fat binary: `none`, `lz4`, `zlib`, `zstd`; the last two with a level after a colon, as in `zstd:19`.",
    ),
    (
        "embed",
        "`\"auto\"`",
        GPU_IMAGES,
        "Embedding of the images of a module without host code: linked from an object (`link`), or by `include_bytes!` (`include`).",
    ),
    (
        "define",
        "none",
        TEXT,
        "Macros; `false` removes one that a lower layer defines.",
    ),
    (
        "flags",
        "none",
        COMPILED,
        "Compiler options, as spelled, after all others.",
    ),
    (
        "opt-level",
        "3 for device code, Cargo's for host code",
        COMPILED,
        "Optimization level of host and device code, in every profile.",
    ),
    (
        "std",
        "the compiler's",
        TEXT,
        "Language standard: `c11`, `c++20`.",
    ),
    (
        "rdc",
        "`true`; with `host = true` `false`, as in hipcc and nvcc",
        HIP_AND_CUDA,
        "Relocatable device code: `true` lets the sources of a HIP or CUDA module call device functions of each other.",
    ),
    (
        "images",
        "`\"module\"`; CUDA with `rdc = false` and several sources or host code: `\"source\"`",
        WITH_IMAGES_OF_SOURCES,
        "The sources of an image: all sources of the module, or each source by itself.",
    ),
    (
        "host",
        "`false`",
        HIP_AND_CUDA,
        "Host code in HIP or CUDA sources, which launches kernels.",
    ),
    (
        "cudart",
        "`\"shared\"`",
        CUDA,
        "CUDA's runtime library in programs with host code: the shared one, the static one, or none.",
    ),
    (
        "exclude",
        "none",
        WITH_SOURCES,
        "Patterns of sources to leave out.",
    ),
    (
        "optional-kernels",
        "none",
        GPU_IMAGES,
        "Patterns of kernels that some targets may lack.",
    ),
    (
        "compiler",
        "the newest clang that supports all targets and fits the SDK",
        COMPILED,
        "Device compiler: a clang, `hipcc` for HIP, `nvcc` for CUDA, a rustc for `rust`; a name, or a path relative to the package.",
    ),
    (
        "launcher",
        "`sccache` if `RUSTC_WRAPPER` is sccache, else none",
        TEXT,
        "Program that starts compiles, such as `ccache`, with arguments; `none` for nothing.",
    ),
    (
        "register",
        "`\"auto\"`",
        TEXT,
        "Registration of the images: by this module (`complete`), by offload-link in the last link (`deferred`), or none (`none`).",
    ),
    (
        "missing",
        "`\"error\"`",
        COMPILED,
        "What to do if a target's tools are missing: fail, leave the target out, or build a stub without device code.",
    ),
    (
        "feature",
        "none",
        ALL,
        "Cargo feature of the package without which the module is not built.",
    ),
    (
        "name",
        "`\"kernels\"`",
        ALL,
        "Name of the module, a Rust identifier of at most 200 characters.",
    ),
];

#[cfg(test)]
#[path = "../../core/src/declare/effect/cases.rs"]
mod cases;

#[cfg(test)]
mod tests {
    use super::cases::{LANGUAGES, TABLE};
    use super::*;
    use offload_build_core::declare::manifest::{self, Source};

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/manifest.md");

    /// Text of a key's section up to its example.
    fn head(key: &KeyDescription) -> String {
        let form = match key.form {
            KeyForm::Text => "string".to_owned(),
            KeyForm::List => "array of strings".to_owned(),
            KeyForm::Map => "table of names and values".to_owned(),
            KeyForm::Choice(choices) => {
                let choices: Vec<String> = choices.iter().map(|c| format!("`\"{c}\"`")).collect();
                choices.join(", ")
            }
            KeyForm::Flag => "boolean".to_owned(),
        };
        let languages = key
            .languages
            .map_or_else(|| "all".to_owned(), |names| names.join(", "));
        let per_target = if key.is_per_target { "yes" } else { "no" };
        format!(
            "### `{}`\n\n{}\n\n| type | default | languages | per target |\n|---|---|---|---|\n| {form} | {} | {languages} | {per_target} |\n\n",
            key.name, key.description, key.default
        )
    }

    #[test]
    fn documents_type_default_and_languages_of_each_key() {
        let page = std::fs::read_to_string(PAGE).unwrap();
        assert_eq!(keys().len(), DESCRIPTIONS.len());
        let sections: Vec<&str> = page.split("\n### `").skip(1).collect();
        assert_eq!(sections.len(), KEYS.len(), "sections of docs/manifest.md");
        for (key, section) in keys().iter().zip(sections) {
            let section = format!("### `{section}");
            let head = head(key);
            assert!(
                section.starts_with(&head),
                "expected {head}\nfound {section}"
            );
            assert!(key.description.ends_with('.'), "{}", key.name);
        }
    }

    #[test]
    fn names_the_languages_that_accept_a_key() {
        // The value decides, or another key.
        const OTHER_VALUES: [&str; 4] = ["artifact", "container", "cudart", "register"];
        for ((name, value, problems), (_, _, languages, _)) in TABLE.iter().zip(DESCRIPTIONS) {
            for (language, problem) in LANGUAGES.iter().zip(problems) {
                let is_described = languages.contains(language);
                if OTHER_VALUES.contains(name) {
                    assert!(is_described || !problem.is_empty(), "{name} {language}");
                } else if !value.is_empty() {
                    assert_eq!(is_described, problem.is_empty(), "{name} {language}");
                }
            }
        }
    }

    /// Each key has an example, and the reader of manifests accepts all examples of the page.
    #[test]
    fn shows_an_example_of_each_key() {
        let page = std::fs::read_to_string(PAGE).unwrap();
        for (index, block) in page.split("```toml\n").skip(1).enumerate() {
            let text = block.split("```").next().unwrap();
            let text = match text.starts_with(['[', '#']) {
                true => text.to_owned(),
                false => format!("[package.metadata.offload]\n{text}"),
            };
            let source = |text| Source {
                file: "docs/manifest.md",
                text,
            };
            // Defaults for a workspace need a package.
            let package = "[package.metadata.offload]\nname = \"kernels\"\n";
            let read = match text.contains("[workspace.metadata") {
                true => manifest::modules(source(package), Some(source(&text)), "dev"),
                false => manifest::modules(source(&text), None, "dev"),
            };
            assert!(
                read.is_ok(),
                "example {index}: {}\n{text}",
                read.unwrap_err()
            );
        }
        for (key, section) in KEYS.iter().zip(page.split("\n### `").skip(1)) {
            let example = section.split("```toml\n").nth(1).unwrap_or_default();
            let example = example.split("```").next().unwrap();
            let start = format!("{} = ", key.name);
            let is_shown = example.lines().any(|line| line.starts_with(&start));
            assert!(is_shown, "no example of `{}`", key.name);
        }
    }
}
