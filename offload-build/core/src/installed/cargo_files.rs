//! Files besides sources that decide how Cargo builds a crate of kernels: manifests, the lock, build scripts, and files of
//! settings.

use crate::declare::module::KernelCrate;
use crate::files::normalized;
use crate::installed::outer_cargo::OuterCargo;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// Files that decide how Cargo builds a crate of kernels.
#[derive(Clone, Debug, Default)]
pub struct CargoFiles {
    /// Files of settings, and manifests: of the crate, of crates that a path names, there or in settings, and of their workspaces;
    /// and build scripts of these crates. A new one is none that an earlier build has read.
    pub names: Vec<PathBuf>,
    /// Locks that exist, one of which Cargo reads.
    pub locks: Vec<PathBuf>,
}

impl CargoFiles {
    /// Finds those of a crate of kernels of the package in `root`, which `outer` builds.
    pub fn of(kernels: &KernelCrate, outer: &OuterCargo, root: &Path) -> Self {
        let mut documents = Documents::default();
        let settings = outer.settings(root);
        let mut manifests = documents.around(&normalized(&kernels.manifest()));
        let locks = manifests
            .iter()
            .map(|path| path.with_file_name("Cargo.lock"));
        let locks = locks.filter(|path| path.is_file()).collect();
        for file in &settings {
            // Paths in it are relative to the folder in which `.cargo` is.
            let folder = file.ancestors().nth(2).unwrap_or(Path::new(""));
            documents.add_crates(file, folder, &mut manifests);
        }
        let mut next = 0;
        while let Some(manifest) = manifests.get(next).cloned() {
            let folder = manifest.parent().unwrap_or(Path::new(""));
            documents.add_crates(&manifest, folder, &mut manifests);
            next += 1;
        }
        // Cargo finds them without any word in a manifest.
        let scripts = documents
            .crates
            .iter()
            .map(|path| path.with_file_name("build.rs"));
        let scripts: Vec<PathBuf> = scripts.filter(|path| path.is_file()).collect();
        let names = settings
            .into_iter()
            .chain(manifests)
            .chain(scripts)
            .collect();
        Self { names, locks }
    }
}

/// Manifests and files of settings, each of which is read once: crates share the folders around them.
#[derive(Debug, Default)]
struct Documents {
    read: HashMap<PathBuf, Document>,
    /// Manifests of crates that Cargo may compile.
    crates: Vec<PathBuf>,
}

/// A manifest or a file of settings: what counts of it; nothing if Cargo cannot read it, which reports that.
#[derive(Debug, Default)]
struct Document {
    has_workspace: bool,
    has_excludes: bool,
    /// The root of its workspace: `package.workspace`.
    root: Option<String>,
    /// Each `path`, and those of `paths`.
    paths: Vec<String>,
}

impl Document {
    fn read(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let mut found = Self::default();
        if let Ok(document) = DeTable::parse(&text) {
            let document = document.get_ref();
            let of = |table: &str, name: &str| document.get(table)?.get_ref().as_table()?.get(name);
            found.has_workspace = document.contains_key("workspace");
            found.has_excludes = of("workspace", "exclude").is_some();
            let root = of("package", "workspace").and_then(|root| root.get_ref().as_str());
            found.root = root.map(str::to_owned);
            add_paths(document, &mut found.paths);
        }
        found
    }
}

impl Documents {
    fn get(&mut self, file: &Path) -> &Document {
        let document = self.read.entry(file.to_owned());
        document.or_insert_with(|| Document::read(file))
    }

    /// Adds the manifests of the crates that a manifest or a file of settings names, where there is one, each with those around it.
    fn add_crates(&mut self, file: &Path, folder: &Path, all: &mut Vec<PathBuf>) {
        // One name for one file: `a/../b` and `b` are the same crate.
        let named = self.get(file).paths.iter();
        let named = named.map(|path| normalized(&folder.join(path).join("Cargo.toml")));
        for manifest in named.collect::<Vec<_>>() {
            if all.contains(&manifest) || !manifest.is_file() {
                continue;
            }
            for path in self.around(&manifest) {
                if !all.contains(&path) {
                    all.push(path);
                }
            }
        }
    }

    /// Returns a crate's manifest, and those of which one may be the root of its workspace: as Cargo searches for it, further out if a
    /// workspace has `exclude`.
    fn around(&mut self, manifest: &Path) -> Vec<PathBuf> {
        self.crates.push(manifest.to_owned());
        let mut found = vec![manifest.to_owned()];
        for folder in manifest.ancestors().skip(1) {
            let path = folder.join("Cargo.toml");
            let is_own = path == manifest;
            let document = self.get(&path);
            let (workspace, excludes) = (document.has_workspace, document.has_excludes);
            let root = document.root.as_ref();
            let root = root.map(|root| normalized(&folder.join(root).join("Cargo.toml")));
            if workspace && !is_own {
                found.push(path);
            }
            if root.is_some() || (workspace && (is_own || !excludes)) {
                // Cargo reports a root that is not there.
                found.extend(root.filter(|root| root.is_file()));
                break;
            }
        }
        found
    }
}

fn add_paths(table: &DeTable<'_>, paths: &mut Vec<String>) {
    for (name, value) in table {
        let name: &str = name.get_ref();
        match value.get_ref() {
            DeValue::Table(table) => add_paths(table, paths),
            DeValue::String(path) if name == "path" => paths.push(path.to_string()),
            DeValue::Array(all) if name == "paths" => {
                let all = all.iter().filter_map(|path| path.get_ref().as_str());
                paths.extend(all.map(str::to_owned));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is found for the crate `kernels` beside the package, of files with these texts.
    fn found(files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path();
        for (name, text) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let kernels = KernelCrate {
            folder: root.join("package/../kernels"),
            package: String::new(),
            library: String::new(),
            source: PathBuf::new(),
            features: Vec::new(),
            has_default_features: true,
            rustc: None,
        };
        let files = CargoFiles::of(&kernels, &OuterCargo::default(), &root.join("package"));
        let names = |paths: Vec<PathBuf>| {
            let names = paths.iter().filter_map(|path| path.strip_prefix(root).ok());
            names.map(|name| name.display().to_string()).collect()
        };
        (names(files.names), names(files.locks))
    }

    #[test]
    fn lists_the_manifests_of_crates_that_a_path_names() {
        let (names, locks) = found(&[
            ("Cargo.lock", ""),
            (
                "Cargo.toml",
                "[workspace.dependencies]\nshared = { path = \"shared\" }\n[patch.crates-io]\nlibm.path = \"libm\"\n",
            ),
            (
                "kernels/Cargo.toml",
                "[dependencies]\nlibm = \"0.2\"\nmath = { path = \"../other/math\" }\ngone = { path = \"../gone\" }\n\
                 [target.'cfg(unix)'.dependencies.only]\npath = \"../only\"\n[lib]\npath = \"lib.rs\"\n",
            ),
            // A circle, as of a dependency for tests.
            (
                "other/math/Cargo.toml",
                "[dev-dependencies]\nkernels.path = \"../../kernels\"\n[build-dependencies]\nonly.path = \"../../only\"\n",
            ),
            ("other/math/build.rs", ""),
            ("other/Cargo.toml", "[workspace]\n"),
            ("other/build.rs", ""),
            ("other/Cargo.lock", ""),
            ("shared/Cargo.toml", "invalid"),
            ("only/Cargo.toml", ""),
            ("libm/Cargo.toml", ""),
            (
                ".cargo/config.toml",
                "include = [\"more.toml\", { path = \"none.toml\", optional = true }]\npaths = [\"over\"]\n",
            ),
            (
                ".cargo/more.toml",
                "[patch.crates-io]\nb.path = \"patched\"\n",
            ),
            ("over/Cargo.toml", ""),
            ("patched/Cargo.toml", ""),
        ]);
        let expected = [
            ".cargo/config.toml",
            ".cargo/more.toml",
            "kernels/Cargo.toml",
            "Cargo.toml",
            "over/Cargo.toml",
            "patched/Cargo.toml",
            "other/math/Cargo.toml",
            "other/Cargo.toml",
            "only/Cargo.toml",
            "libm/Cargo.toml",
            "shared/Cargo.toml",
            "other/math/build.rs",
        ];
        assert_eq!(names, expected);
        assert_eq!(locks, ["Cargo.lock"]);
    }

    #[test]
    fn finds_the_workspace_as_cargo_does() {
        let found = |kernels: &str, around: &str| {
            let (names, locks) = found(&[
                ("Cargo.toml", around),
                ("Cargo.lock", ""),
                ("kernels/Cargo.toml", kernels),
                ("kernels/Cargo.lock", ""),
                ("elsewhere/Cargo.toml", "[workspace]\n"),
                ("elsewhere/Cargo.lock", ""),
            ]);
            (names.join(" "), locks.join(" "))
        };
        let of = |names: &[&str]| {
            let list = |file: &str| {
                let paths = names.iter().map(|name| Path::new(name).join(file));
                let paths: Vec<_> = paths.map(|path| path.display().to_string()).collect();
                paths.join(" ")
            };
            (list("Cargo.toml"), list("Cargo.lock"))
        };
        // A member may have a lock of earlier times.
        assert_eq!(found("", "[workspace]"), of(&["kernels", ""]));
        assert_eq!(found("", "[package]"), of(&["kernels"]));
        assert_eq!(found("[workspace]", "[workspace]"), of(&["kernels"]));
        let named = "[package]\nworkspace = \"../elsewhere\"";
        assert_eq!(found(named, "[workspace]"), of(&["kernels", "elsewhere"]));
        let named = "[package]\nworkspace = \"elsewhere\"";
        assert_eq!(found("", named), of(&["kernels", "elsewhere"]));
        // A root that is not there is not watched.
        let named = "[package]\nworkspace = \"../gone\"";
        assert_eq!(found(named, "[workspace]"), of(&["kernels"]));
    }
}
