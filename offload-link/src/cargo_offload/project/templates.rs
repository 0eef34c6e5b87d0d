//! The packages of `templates/`, which `cargo generate` reads, too: `{{project-name}}` and `{{crate_name}}` stand for names.

/// A package to start from.
#[derive(Debug)]
pub(super) struct Template {
    /// Its `Cargo.toml`.
    pub(super) manifest: &'static str,
    /// Its other files: paths below the package, and texts.
    files: &'static [(&'static str, &'static str)],
}

macro_rules! template {
    ($folder:literal, $($file:literal),+) => {
        Template {
            manifest: include_str!(concat!("../../../templates/", $folder, "/Cargo.toml.liquid")),
            files: &[$((
                $file,
                include_str!(concat!("../../../templates/", $folder, "/", $file)),
            )),+],
        }
    };
}

/// OpenMP kernels that Rust calls.
pub(super) static OPENMP: Template = template!(
    "rust-openmp",
    ".gitignore",
    "README.md",
    "build.rs",
    "kernels/scale.c",
    "src/lib.rs",
    "src/main.rs"
);

/// Library crate with OpenMP kernels and safe functions.
pub(super) static LIBRARY: Template = template!(
    "library",
    ".gitignore",
    "README.md",
    "build.rs",
    "kernels/axpy.c",
    "kernels/dot.c",
    "kernels/vectors.h",
    "src/ffi.rs",
    "src/lib.rs",
    "tests/vectors.rs"
);

/// HIP kernels for the module API.
pub(super) static HIP: Template = template!(
    "rust-hip",
    ".gitignore",
    "README.md",
    "build.rs",
    "kernels/saxpy.hip",
    "src/lib.rs",
    "src/main.rs"
);

/// CUDA kernels for the module API.
pub(super) static CUDA: Template = template!(
    "rust-cuda",
    ".gitignore",
    "README.md",
    "build.rs",
    "kernels/saxpy.cu",
    "src/lib.rs",
    "src/main.rs"
);

/// Kernels in a Rust crate.
pub(super) static RUST: Template = template!(
    "rust-kernels",
    ".gitignore",
    "README.md",
    "build.rs",
    "kernels/Cargo.toml.liquid",
    "kernels/src/lib.rs",
    "src/lib.rs",
    "src/main.rs"
);

/// A C program with OpenMP kernels.
pub(super) static C: Template = template!(
    "c-openmp",
    ".gitignore",
    "README.md",
    "build.rs",
    "kernels/scale.c",
    "kernels/scale.h",
    "src/main.c",
    "src/main.rs"
);

impl Template {
    /// Tells whether its kernels are a crate.
    pub(super) fn has_crate(&self) -> bool {
        let mut files = self.files.iter();
        files.any(|(path, _)| path.ends_with("Cargo.toml.liquid"))
    }

    /// Returns the files of a package of that name, in their order.
    pub(super) fn files(&self, package: &str) -> impl Iterator<Item = (&'static str, String)> {
        let files = self.files.iter();
        files.map(|(path, text)| (path.trim_end_matches(".liquid"), filled(text, package)))
    }
}

/// Returns a text of a template with the names of a package.
pub(super) fn filled(text: &str, package: &str) -> String {
    let is_bare = |char: char| char.is_ascii_alphanumeric() || "-_".contains(char);
    let text = match package.chars().all(is_bare) {
        true => text.to_owned(),
        // TOML has other keys in quotes.
        false => text.replace(
            "{{project-name}}-kernels =",
            "\"{{project-name}}-kernels\" =",
        ),
    };
    let text = text.replace("{{project-name}}", package);
    let text = text.replace("{{crate_name}}", &package.replace('-', "_"));
    // The CPU device is that of this machine.
    match std::env::consts::ARCH {
        "x86_64" => text,
        arch => text.replace(
            "\"x86_64-pc-linux-gnu\"",
            &format!("\"{arch}-unknown-linux-gnu\""),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_manifests_for_names_that_are_no_bare_keys() {
        for (name, key) in [("a-b_1", "a-b_1-kernels ="), ("ünï", "\"ünï-kernels\" =")] {
            let text = filled(RUST.manifest, name);
            assert!(text.contains(key), "{text}");
            let document: toml_edit::DocumentMut = text.parse().unwrap();
            let kernels = &document["dependencies"][format!("{name}-kernels").as_str()];
            assert!(kernels.is_inline_table(), "{text}");
        }
    }

    #[test]
    fn contains_each_file_of_its_folder() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../templates");
        for (folder, template) in [
            ("rust-openmp", &OPENMP),
            ("library", &LIBRARY),
            ("rust-hip", &HIP),
            ("rust-cuda", &CUDA),
            ("rust-kernels", &RUST),
            ("c-openmp", &C),
        ] {
            let mut found = Vec::new();
            let mut folders = vec![std::path::Path::new(root).join(folder)];
            let top = folders[0].clone();
            while let Some(folder) = folders.pop() {
                for file in std::fs::read_dir(folder).unwrap() {
                    let path = file.unwrap().path();
                    match path.is_dir() {
                        true => folders.push(path),
                        false => found.push(path.strip_prefix(&top).unwrap().display().to_string()),
                    }
                }
            }
            found.sort();
            let mut known: Vec<&str> = template.files.iter().map(|(path, _)| *path).collect();
            known.push("Cargo.toml.liquid");
            known.sort_unstable();
            assert_eq!(known, found, "{folder}");
            for (path, text) in template.files("my-app") {
                assert!(!text.contains("{{"), "{folder}/{path}");
            }
        }
        let main = OPENMP
            .files("my-app")
            .find(|(path, _)| *path == "src/main.rs");
        assert!(main.unwrap().1.starts_with("use my_app::"));
    }
}
