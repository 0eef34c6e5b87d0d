//! Features, libraries and dependencies in the tables of a `Cargo.toml` that are Cargo's own.

use crate::declare::manifest::{ManifestError, Source, Table};
use crate::declare::platform;
use crate::environment::feature_variable;
use crate::error::Error;
use std::collections::BTreeSet;
use std::path::PathBuf;
use toml::de::DeValue;

/// The cargo features that `package` declares: those of `[features]`, and those that optional dependencies are, unless a feature
/// names them with `dep:`.
///
/// # Errors
///
/// If the manifest is not valid TOML.
pub fn features(package: Source<'_>) -> Result<BTreeSet<String>, ManifestError> {
    let document = package.parse()?;
    let document = document.get_ref();
    let declared = || below(document, "features").into_iter().flatten();
    let parts = declared().flat_map(|(_, value)| texts(value.get_ref()));
    let explicit: BTreeSet<&str> = parts.filter_map(|part| part.strip_prefix("dep:")).collect();
    let mut found = BTreeSet::new();
    let tables = &["dependencies", "build-dependencies"];
    for (name, value) in dependencies(document, tables, &|_| true) {
        let table = value.as_table();
        if table.and_then(|table| flag(table, "optional")) == Some(true) && !explicit.contains(name)
        {
            found.insert(name.to_owned());
        }
    }
    found.extend(declared().map(|(name, _)| name.get_ref().clone().into_owned()));
    Ok(found)
}

/// Parts of the manifest of a crate with a library.
#[derive(Debug, PartialEq, Eq)]
pub struct CrateManifest {
    /// Name of the package.
    pub package: String,
    /// Name of the library, an identifier.
    pub library: String,
    /// Path of the library's root, relative to the manifest.
    pub source: String,
}

impl CrateManifest {
    /// Reads a manifest.
    ///
    /// # Errors
    ///
    /// If the manifest is not TOML or declares no package.
    pub fn read(source: Source<'_>) -> Result<Self, ManifestError> {
        let document = source.parse()?;
        let text = |section: &str, name: &str| {
            let value = below(document.get_ref(), section)?.get(name)?;
            value.get_ref().as_str().map(str::to_owned)
        };
        let package = text("package", "name")
            .ok_or_else(|| source.error(&(0..0), "expected a package, found no `package.name`"))?;
        let library = text("lib", "name").unwrap_or_else(|| package.replace('-', "_"));
        Ok(Self {
            package,
            library,
            source: text("lib", "path").unwrap_or_else(|| "src/lib.rs".to_owned()),
        })
    }
}

/// Tells whether the lints of `package` forbid unsafe code. `workspace` returns the manifest of its workspace.
///
/// # Errors
///
/// If a manifest cannot be read.
pub fn forbids_unsafe_code(
    package: Source<'_>,
    workspace: &dyn Fn() -> Result<Option<(PathBuf, String)>, Error>,
) -> Result<bool, Error> {
    let document = package.parse().map_err(Error::new)?;
    let Some(lints) = below(document.get_ref(), "lints") else {
        return Ok(false);
    };
    if flag(lints, "workspace") != Some(true) {
        return Ok(forbids(lints));
    }
    let Some((path, text)) = workspace()? else {
        return Ok(false);
    };
    let (file, text) = (path.display().to_string(), &text);
    let document = Source { file: &file, text }.parse().map_err(Error::new)?;
    let lints = below(document.get_ref(), "workspace").and_then(|table| below(table, "lints"));
    Ok(lints.is_some_and(forbids))
}

fn forbids(lints: &Table<'_>) -> bool {
    let level = below(lints, "rust").and_then(|lints| lints.get("unsafe_code"));
    let level = level.map(|level| level.get_ref());
    let level = level.and_then(|level| match level.as_table() {
        Some(table) => table.get("level")?.get_ref().as_str(),
        None => level.as_str(),
    });
    level == Some("forbid")
}

/// Features of a dependency.
#[derive(Debug, PartialEq, Eq)]
pub struct DependencyFeatures {
    pub features: BTreeSet<String>,
    pub has_default: bool,
}

/// Those of a dependency that asks for nothing.
impl Default for DependencyFeatures {
    fn default() -> Self {
        Self {
            features: BTreeSet::new(),
            has_default: true,
        }
    }
}

/// Returns the features that `package` asks for where it depends on the package `name`; `None` if it does not depend on it.
///
/// `workspace` returns the manifest of its workspace, and `cargo` what Cargo tells the package's build script.
///
/// # Errors
///
/// If a manifest cannot be read.
pub fn dependency_features(
    package: Source<'_>,
    workspace: &dyn Fn() -> Result<Option<(PathBuf, String)>, Error>,
    name: &str,
    cargo: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<DependencyFeatures>, Error> {
    let is_on = |feature: &str| cargo(&feature_variable(feature)).is_some();
    let is_for = |table: &str| platform::holds(table, cargo);
    let document = package.parse().map_err(Error::new)?;
    let document = document.get_ref();
    let mut found: Option<DependencyFeatures> = None;
    for (key, value) in dependencies(document, &["dependencies"], &is_for) {
        let mut asked = Asked::new(key, value);
        let inherits = value.as_table().and_then(|table| flag(table, "workspace"));
        if inherits == Some(true) {
            // Whatever runs this build script in Cargo's place has no workspaces.
            if let Some((path, text)) = workspace()? {
                let file = path.display().to_string();
                let text = &text;
                asked.inherit(key, Source { file: &file, text })?;
            }
        }
        if asked.package != name {
            continue;
        }
        let all = found.get_or_insert(DependencyFeatures {
            features: BTreeSet::new(),
            has_default: false,
        });
        all.has_default |= asked.has_default.unwrap_or(true);
        all.features.extend(asked.features);
        all.features.extend(passed_on(document, key, &is_on));
    }
    Ok(found)
}

/// Returns the features of the dependency `key` that enabled features of the package enable.
fn passed_on<'t>(
    document: &'t Table<'_>,
    key: &'t str,
    is_on: &'t dyn Fn(&str) -> bool,
) -> impl Iterator<Item = String> + 't {
    let features = below(document, "features").into_iter().flatten();
    let enabled = features.filter(|(feature, _)| is_on(feature.get_ref()));
    let parts = enabled.flat_map(|(_, value)| texts(value.get_ref()));
    parts.filter_map(move |part| {
        let (of, feature) = part.split_once('/')?;
        (of.strip_suffix('?').unwrap_or(of) == key).then(|| feature.to_owned())
    })
}

/// Features that one table asks of a dependency, and the package that it is.
struct Asked {
    package: String,
    features: BTreeSet<String>,
    has_default: Option<bool>,
}

impl Asked {
    fn new(key: &str, value: &DeValue<'_>) -> Self {
        let table = value.as_table();
        let get = |name: &str| Some(table?.get(name)?.get_ref());
        let default = ["default-features", "default_features"];
        let package = get("package").and_then(DeValue::as_str);
        let features = get("features").into_iter().flat_map(texts);
        Self {
            package: package.unwrap_or(key).to_owned(),
            features: features.map(str::to_owned).collect(),
            has_default: default.iter().find_map(|name| flag(table?, name)),
        }
    }

    /// Adds what the workspace asks of the dependency `key`.
    fn inherit(&mut self, key: &str, workspace: Source<'_>) -> Result<(), Error> {
        let document = workspace.parse().map_err(Error::new)?;
        let shared = below(document.get_ref(), "workspace");
        let shared = shared.and_then(|table| below(table, "dependencies")?.get(key));
        let Some(shared) = shared else { return Ok(()) };
        let shared = Self::new(key, shared.get_ref());
        self.package = shared.package;
        self.features.extend(shared.features);
        if self.has_default != Some(true) {
            self.has_default = shared.has_default;
        }
        Ok(())
    }
}

/// Returns the dependencies in the tables `names`, also of platforms for which `is_for` is true.
fn dependencies<'t, 'a>(
    document: &'t Table<'a>,
    names: &'static [&'static str],
    is_for: &'t dyn Fn(&str) -> bool,
) -> impl Iterator<Item = (&'t str, &'t DeValue<'a>)> {
    let platforms = below(document, "target").into_iter().flatten();
    let platforms = platforms.filter(|(name, _)| is_for(name.get_ref()));
    let platforms = platforms.filter_map(|(_, value)| value.get_ref().as_table());
    let declaring = std::iter::once(document).chain(platforms);
    let tables =
        declaring.flat_map(move |table| names.iter().filter_map(|name| below(table, name)));
    tables
        .flatten()
        .map(|(name, value)| (&**name.get_ref(), value.get_ref()))
}

fn below<'t, 'a>(table: &'t Table<'a>, name: &str) -> Option<&'t Table<'a>> {
    table.get(name)?.get_ref().as_table()
}

fn flag(table: &Table<'_>, name: &str) -> Option<bool> {
    table.get(name)?.get_ref().as_bool()
}

/// Returns the strings of an array.
fn texts<'t>(value: &'t DeValue<'_>) -> impl Iterator<Item = &'t str> {
    let items = value.as_array().into_iter().flat_map(|items| items.iter());
    items.filter_map(|item| item.get_ref().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: &str = "[workspace.dependencies]\nshared = { package = \"kernels\", path = \"k\", features = [\"w\"], \
        default-features = false }\n";

    #[test]
    fn reads_lints_of_packages_and_workspaces() {
        for (text, shared, expected) in [
            ("[lints.rust]\nunsafe_code = \"forbid\"\n", "", true),
            (
                "[lints.rust]\nunused = \"allow\"\nunsafe_code={ level = \"forbid\", priority = 1 }\n",
                "",
                true,
            ),
            ("[lints]\nrust.unsafe_code = \"forbid\"\n", "", true),
            (
                "lints = { rust = { unsafe_code = \"forbid\" } }\n",
                "",
                true,
            ),
            ("[lints.rust]\nunsafe_code = \"deny\"\n", "", false),
            (
                "[lints.rust]\n[lints.clippy]\nunsafe_code = \"forbid\"\n",
                "",
                false,
            ),
            (
                "",
                "[workspace.lints.rust]\nunsafe_code = \"forbid\"\n",
                false,
            ),
            (
                "[lints]\nworkspace = true\n",
                "[workspace.lints.rust]\nunsafe_code = \"forbid\"\n",
                true,
            ),
            (
                "lints.workspace = true\n",
                "[workspace.lints.rust]\nunsafe_code = \"warn\"\n",
                false,
            ),
        ] {
            let package = Source {
                file: "Cargo.toml",
                text,
            };
            let workspace = || Ok(Some((PathBuf::from("../Cargo.toml"), shared.to_owned())));
            let found = forbids_unsafe_code(package, &workspace).unwrap();
            assert_eq!(found, expected, "{text}{shared}");
        }
    }

    fn asked(package: &str, on: &[&str]) -> Option<(Vec<String>, bool)> {
        let source = Source {
            file: "Cargo.toml",
            text: package,
        };
        let workspace = || Ok(Some((PathBuf::from("../Cargo.toml"), WORKSPACE.to_owned())));
        let cargo = |name: &str| match name.strip_prefix("CARGO_FEATURE_") {
            Some(feature) => on.contains(&&*feature.to_lowercase()).then(String::new),
            None => (name == "CARGO_CFG_UNIX").then(String::new),
        };
        let found = dependency_features(source, &workspace, "kernels", &cargo).unwrap();
        found.map(|found| (found.features.into_iter().collect(), found.has_default))
    }

    #[test]
    fn finds_the_features_that_a_package_asks_of_a_dependency() {
        let passing = "\n[features]\nfast = [\"dep:kernels\", \"kernels/f\", \"other/o\"]\nwide = [\"kernels?/w\"]\n";
        for (dependency, on, expected, has_default) in [
            ("kernels = \"1\"", &[][..], &[][..], true),
            ("kernels = \"1\"", &["fast"], &["f"], true),
            (
                "kernels = { path = \"k\", features = [\"a\"] }",
                &["fast", "wide"],
                &["a", "f", "w"],
                true,
            ),
            (
                "kernels = { path = \"k\", default-features = false }",
                &[],
                &[],
                false,
            ),
            // Its name here is what features of the package call it.
            (
                "k = { package = \"kernels\", path = \"k\", features = [\"a\"] }",
                &["fast"],
                &["a"],
                true,
            ),
            (
                "shared = { workspace = true, features = [\"a\"] }",
                &[],
                &["a", "w"],
                false,
            ),
            (
                "shared = { workspace = true, default-features = true }",
                &[],
                &["w"],
                true,
            ),
        ] {
            for head in ["[dependencies]\n", "[target.'cfg(unix)'.dependencies]\n"] {
                let found = asked(&format!("{head}{dependency}{passing}"), on);
                let expected = expected.iter().map(|name| (*name).to_owned());
                assert_eq!(
                    found,
                    Some((expected.collect(), has_default)),
                    "{dependency}"
                );
            }
        }
        let others = "[dependencies]\nothers = \"1\"\n[dev-dependencies]\nkernels = { path = \"k\", features = [\"a\"] }\n";
        assert_eq!(asked(others, &[]), None);
        let elsewhere = "[dependencies]\nkernels = \"1\"\n[target.'cfg(windows)'.dependencies]\n\
            kernels = { version = \"1\", features = [\"a\"] }\n";
        assert_eq!(asked(elsewhere, &[]), Some((Vec::new(), true)));
    }
}
