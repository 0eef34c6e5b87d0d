//! The crate of kernels of a module of `rust`.

use crate::declare::cargo_tables::{CrateManifest, DependencyFeatures, dependency_features};
use crate::declare::layers;
use crate::declare::manifest::Source;
use crate::declare::settings::{Reach, Setting, Settings};
use crate::environment::Environment;
use crate::error::{self, Error};
use std::path::{Path, PathBuf};

/// A crate of kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelCrate {
    /// Its folder, an absolute path.
    pub folder: PathBuf,
    /// Its package.
    pub package: String,
    /// Its library, as rustc names it.
    pub library: String,
    /// The root of the library.
    pub source: PathBuf,
    pub features: Vec<String>,
    pub has_default_features: bool,
    /// The declared rustc, a path or a name, and where it was written.
    pub rustc: Option<(String, String)>,
}

impl KernelCrate {
    /// Reads the manifest of the crate that `settings` name, below the package in `root`.
    pub fn new(
        settings: &Settings,
        module: &str,
        root: &Path,
        environment: &Environment,
    ) -> Result<Self, Error> {
        let Some(text) = settings.text("crate") else {
            return Err(Error::new(format_args!(
                "module `{module}` has no `crate` [OFF508]\n\
                 hint: `crate = \"kernels\"` names the folder of a crate of kernels, relative to the package"
            )));
        };
        let wrong = |problem: &str| settings.error_at("crate", format_args!("`{text}`: {problem}"));
        let folder = root.join(text);
        let manifest = folder.join("Cargo.toml");
        if !manifest.is_file() {
            // Cargo puts this file into the packages that it packs.
            let hint = match root.join("Cargo.toml.orig").is_file() {
                true => {
                    "\nhint: a published package has no other crate in it: publish that of kernels, too, and name its folder as in docs/rust-kernels.md"
                }
                false => "",
            };
            return Err(wrong(&format!(
                "expected the folder of a crate, found no Cargo.toml in it{hint}"
            )));
        }
        if folder.canonicalize().ok() == root.canonicalize().ok() {
            return Err(wrong(
                "this is the package itself: kernels need a separate crate",
            ));
        }
        let content = std::fs::read_to_string(&manifest).map_err(error::io(&manifest))?;
        let declared = CrateManifest::read(Source {
            file: &manifest.display().to_string(),
            text: &content,
        })
        .map_err(Error::new)?;
        let source = folder.join(&declared.source);
        if !source.is_file() {
            return Err(wrong(&format!(
                "expected a library, found no `{}`",
                declared.source
            )));
        }
        let (features, has_default_features) = features(settings, &declared.package, environment)?;
        Ok(Self {
            folder,
            package: declared.package,
            library: declared.library,
            source,
            features,
            has_default_features,
            rustc: rustc(settings, root),
        })
    }

    /// Returns its manifest.
    pub fn manifest(&self) -> PathBuf {
        self.folder.join("Cargo.toml")
    }
}

/// Returns the features of the crate `name`, and whether it has the default ones. What no key says is as in the package's own
/// dependency on it, so that the kernels that the program launches are those of the images.
fn features(
    settings: &Settings,
    name: &str,
    environment: &Environment,
) -> Result<(Vec<String>, bool), Error> {
    let own = settings
        .entry("features")
        .map(|_| settings.list("features"));
    let has_default = settings.flag("default-features");
    let asked = match (own, has_default) {
        (Some(_), Some(_)) => None,
        _ => features_of_dependency(name, environment)?,
    };
    let asked = asked.unwrap_or_default();
    let features = own.map_or_else(|| asked.features.into_iter().collect(), <[String]>::to_vec);
    Ok((features, has_default.unwrap_or(asked.has_default)))
}

fn features_of_dependency(
    name: &str,
    environment: &Environment,
) -> Result<Option<DependencyFeatures>, Error> {
    let (path, text) = layers::manifest(environment)?;
    let workspace = || {
        let found = layers::workspace(environment, &path)?;
        found.iter().for_each(|(path, _)| environment.watch(path));
        Ok(found)
    };
    let package = Source {
        file: "Cargo.toml",
        text: &text,
    };
    dependency_features(package, &workspace, name, &|variable| {
        environment.cargo(variable)
    })
}

/// Returns the declared rustc. A compiler that is set for other packages, too, may be a clang, which does not replace a rustc.
fn rustc(settings: &Settings, root: &Path) -> Option<(String, String)> {
    let entries = [
        settings.entry("compiler"),
        settings.replaced_compiler.as_ref(),
    ];
    entries.into_iter().flatten().find_map(|entry| {
        let Setting::Text(text) = &entry.setting else {
            return None;
        };
        let path = match text.contains('/') {
            true => root.join(text).to_string_lossy().into_owned(),
            false => text.clone(),
        };
        (entry.reach != Reach::World || is_rustc(text)).then(|| (path, entry.origin.clone()))
    })
}

/// Tells whether a compiler, a path or a name, is called like a rustc.
pub(super) fn is_rustc(compiler: &str) -> bool {
    let name = Path::new(compiler).file_name().unwrap_or_default();
    name.to_string_lossy().contains("rustc")
}
