//! The crate of kernels of a module of `rust`.

use crate::declare::manifest::{CrateManifest, Source};
use crate::declare::settings::{Reach, Settings};
use crate::error::{self, Error};
use std::path::{Path, PathBuf};

/// A crate of kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelCrate {
    /// Its folder, an absolute path.
    pub(crate) folder: PathBuf,
    /// Its package.
    pub(crate) package: String,
    /// Its library, as rustc names it.
    pub(crate) library: String,
    /// The root of the library.
    pub(crate) source: PathBuf,
    pub(crate) features: Vec<String>,
    pub(crate) has_default_features: bool,
    /// The declared rustc, a path or a name, and where it was written.
    pub(crate) rustc: Option<(String, String)>,
}

impl KernelCrate {
    /// Reads the manifest of the crate that `settings` name, below the package in `root`.
    pub(crate) fn new(settings: &Settings, module: &str, root: &Path) -> Result<Self, Error> {
        let Some(text) = settings.text("crate") else {
            return Err(Error::new(format_args!(
                "module `{module}` has no `crate`\n\
                 hint: `crate = \"kernels\"` names the folder of a crate of kernels, relative to the package"
            )));
        };
        let wrong = |problem: &str| settings.error_at("crate", format_args!("`{text}`: {problem}"));
        let folder = root.join(text);
        let manifest = folder.join("Cargo.toml");
        if !manifest.is_file() {
            return Err(wrong(
                "expected the folder of a crate, found no Cargo.toml in it",
            ));
        }
        if folder.canonicalize().ok() == root.canonicalize().ok() {
            return Err(wrong(
                "this is the package itself: kernels need a crate of their own",
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
                "kernels are a library, and there is no `{}`",
                declared.source
            )));
        }
        Ok(Self {
            folder,
            package: declared.package,
            library: declared.library,
            source,
            features: settings.list("features").to_vec(),
            has_default_features: settings.flag("default-features").unwrap_or(true),
            rustc: rustc(settings, root),
        })
    }

    /// Returns the manifests and the lock that decide how it is built: its own, and those of folders around it up to the lock.
    pub(crate) fn manifests(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for folder in self.folder.ancestors() {
            let [manifest, lock] = ["Cargo.toml", "Cargo.lock"].map(|name| folder.join(name));
            found.extend([manifest].into_iter().filter(|path| path.is_file()));
            if lock.is_file() {
                found.push(lock);
                return found;
            }
        }
        vec![self.manifest()]
    }

    /// Returns its manifest.
    pub(crate) fn manifest(&self) -> PathBuf {
        self.folder.join("Cargo.toml")
    }
}

/// Returns the declared rustc. A compiler that is set for other packages, too, may be a clang.
fn rustc(settings: &Settings, root: &Path) -> Option<(String, String)> {
    let entry = settings.entry("compiler")?;
    let text = settings.text("compiler")?;
    let name = Path::new(text).file_name().unwrap_or_default();
    let is_rustc = name.to_string_lossy().contains("rustc");
    let path = match text.contains('/') {
        true => root.join(text).to_string_lossy().into_owned(),
        false => text.to_owned(),
    };
    (entry.reach != Reach::World || is_rustc).then(|| (path, entry.origin.clone()))
}
