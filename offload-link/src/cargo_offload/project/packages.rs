//! Packages that Cargo finds, and the variables that their build scripts would have.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use tempfile::TempDir;

use crate::cargo_offload::error::CargoOffloadError;
use crate::cargo_offload::project::cargo_settings::CargoSettings;
use crate::cargo_offload::project::rust_programs::{
    THIS_MACHINE, answer, cargo_program, cfg_of, host_of_rustc, is_missing, own_cfg, own_triple,
    rustc_program,
};

/// Options that select packages and say how they are built, as Cargo spells them.
#[derive(Debug, Default, clap::Args)]
pub(super) struct PackageOptions {
    /// Package of the workspace; without it the one in this folder, at a workspace's root all members.
    #[arg(short, long = "package", value_name = "NAME")]
    packages: Vec<String>,
    /// Path of a Cargo.toml.
    #[arg(long, value_name = "PATH")]
    manifest_path: Option<PathBuf>,
    /// Features to activate.
    #[arg(short = 'F', long, value_name = "FEATURES", value_delimiter = ',')]
    features: Vec<String>,
    /// Activate all features.
    #[arg(long)]
    all_features: bool,
    /// Do not activate the feature `default`.
    #[arg(long)]
    no_default_features: bool,
    /// Use the release profile.
    #[arg(short, long)]
    release: bool,
    /// Host triple that programs are built for.
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
}

/// A package that declares device code.
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) folder: PathBuf,
    features: BTreeSet<String>,
}

/// Environment of a build script that never runs.
pub(super) struct BuildEnvironment {
    variables: BTreeMap<OsString, OsString>,
    is_release: bool,
    /// Triple of the machine that builds.
    pub(super) machine: String,
    /// Triple that programs are built for.
    pub(super) host: String,
    pub(super) cargo: CargoSettings,
    /// Holds answers of programs; removed at the end.
    out: TempDir,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<MetadataPackage>,
    #[serde(default)]
    workspace_default_members: Vec<String>,
}

#[derive(Deserialize)]
struct MetadataPackage {
    id: String,
    name: String,
    version: String,
    manifest_path: PathBuf,
    features: BTreeMap<String, Vec<String>>,
    metadata: serde_json::Value,
}

impl PackageOptions {
    /// Returns the selected packages with a table `[package.metadata.offload]`; none outside a package.
    pub(super) fn packages(&self) -> Result<Vec<Package>, CargoOffloadError> {
        let Some(metadata) = self.metadata()? else {
            return Ok(Vec::new());
        };
        for name in &self.packages {
            if !metadata
                .packages
                .iter()
                .any(|package| package.name == *name)
            {
                return Err(CargoOffloadError::new(format_args!(
                    "`{name}` is no package of this workspace"
                )));
            }
        }
        let default = &metadata.workspace_default_members;
        let is_selected = |package: &&MetadataPackage| match self.packages.as_slice() {
            [] => default.is_empty() || default.contains(&package.id),
            names => names.contains(&package.name),
        };
        let declares = |package: &&MetadataPackage| package.metadata.get("offload").is_some();
        let packages = metadata.packages.iter().filter(is_selected);
        let packages = packages.filter(declares).map(|package| Package {
            name: package.name.clone(),
            version: package.version.clone(),
            folder: package
                .manifest_path
                .parent()
                .unwrap_or(Path::new("/"))
                .to_owned(),
            features: self.active_features(&package.features),
        });
        Ok(packages.collect())
    }

    /// Asks Cargo. Without `--manifest-path`, a folder that belongs to no package is no error.
    fn metadata(&self) -> Result<Option<Metadata>, CargoOffloadError> {
        let mut command = Command::new(cargo_program());
        command.args(["metadata", "--no-deps", "--format-version=1"]);
        if let Some(path) = &self.manifest_path {
            command.arg("--manifest-path").arg(path);
        } else if !has_manifest_above()? {
            if let Some(name) = self.packages.first() {
                return Err(CargoOffloadError::new(format_args!(
                    "no Cargo.toml in this folder or above, so there is no package `{name}`"
                )));
            }
            return Ok(None);
        }
        let answer = answer(&mut command)?;
        let metadata = serde_json::from_str(&answer);
        metadata.map(Some).map_err(|problem| {
            CargoOffloadError::new(format_args!(
                "cannot read what `cargo metadata` says: {problem}"
            ))
        })
    }

    /// Returns the active features of a package, with those that they activate.
    fn active_features(&self, declared: &BTreeMap<String, Vec<String>>) -> BTreeSet<String> {
        let mut left: Vec<String> = match self.all_features {
            true => declared.keys().cloned().collect(),
            false => self.features.clone(),
        };
        if !self.no_default_features {
            left.push("default".to_owned());
        }
        let mut active = BTreeSet::new();
        while let Some(name) = left.pop() {
            if let Some(more) = declared.get(&name) {
                if active.insert(name) {
                    left.extend(more.iter().cloned());
                }
            }
        }
        active
    }

    /// Returns the environment that the build scripts of packages would have.
    pub(super) fn environment(&self) -> Result<BuildEnvironment, CargoOffloadError> {
        let rustc = rustc_program();
        let is_missing = self.target.is_none() && is_missing(&rustc);
        let machine = match is_missing {
            true => own_triple(),
            false => host_of_rustc()?,
        };
        let folder = match self.manifest_path.as_deref().and_then(Path::parent) {
            Some(folder) if folder.as_os_str().is_empty() => PathBuf::from("."),
            Some(folder) => folder.to_owned(),
            None => PathBuf::from("."),
        };
        let cargo = CargoSettings::read(&folder, &[])?;
        let configured = cargo.build_targets().first();
        let host = self.target.as_ref().or(configured);
        let host = host
            .filter(|host| *host != THIS_MACHINE)
            .unwrap_or(&machine);
        let host = host.clone();
        let cfg = match is_missing {
            true => own_cfg(),
            false => cfg_of(&host)?,
        };
        let out = TempDir::with_prefix("cargo-offload-").map_err(|problem| {
            CargoOffloadError::new(format_args!("no temporary folder: {problem}"))
        })?;
        let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        // Cargo's own would make documentation of this.
        variables.remove(OsStr::new("DOCS_RS"));
        variables.extend(cfg);
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let pairs = [
            ("CARGO", cargo_program()),
            ("RUSTC", rustc),
            ("HOST", machine.clone().into()),
            ("TARGET", host.clone().into()),
            ("NUM_JOBS", jobs.to_string().into()),
            ("OUT_DIR", out.path().into()),
        ];
        variables.extend(pairs.map(|(name, value)| (name.into(), value)));
        if let Some(linker) = cargo.linker(&host) {
            variables.insert("RUSTC_LINKER".into(), linker.into());
        }
        let (profile, level, debug) = match self.release {
            true => ("release", "3", "false"),
            false => ("debug", "0", "true"),
        };
        for (name, value) in [("PROFILE", profile), ("OPT_LEVEL", level), ("DEBUG", debug)] {
            variables.insert(name.into(), value.into());
        }
        Ok(BuildEnvironment {
            variables,
            is_release: self.release,
            machine,
            host,
            cargo,
            out,
        })
    }
}

impl BuildEnvironment {
    /// Returns the variables that are the same for every package.
    pub(super) fn variables(&self) -> BTreeMap<OsString, OsString> {
        self.variables.clone()
    }

    /// Returns the variables for the build script of a package.
    pub(super) fn of_package(&self, package: &Package) -> BTreeMap<OsString, OsString> {
        let mut variables = self.variables.clone();
        let pairs = [
            (
                "CARGO_MANIFEST_DIR",
                package.folder.clone().into_os_string(),
            ),
            ("CARGO_PKG_NAME", package.name.clone().into()),
            ("CARGO_PKG_VERSION", package.version.clone().into()),
        ];
        variables.extend(pairs.map(|(name, value)| (name.into(), value)));
        for feature in &package.features {
            let name = feature.to_uppercase().replace('-', "_");
            variables.insert(format!("CARGO_FEATURE_{name}").into(), "1".into());
        }
        variables
    }

    /// Returns the profile's name in manifests.
    pub(super) fn profile(&self) -> &'static str {
        match self.is_release {
            true => "release",
            false => "dev",
        }
    }

    /// Removes the path of the temporary folder of answers from a text.
    pub(super) fn without_out(&self, text: &str) -> String {
        text.replace(&self.out.path().display().to_string(), "$OUT_DIR")
    }
}

/// Tells whether Cargo would find a package from this folder.
fn has_manifest_above() -> Result<bool, CargoOffloadError> {
    let here = std::env::current_dir()
        .map_err(|problem| CargoOffloadError::new(format_args!("no current folder: {problem}")))?;
    let mut folders = here.ancestors();
    Ok(folders.any(|folder| folder.join("Cargo.toml").is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activates_features_of_features() {
        let declared = [
            ("default", vec!["fast"]),
            ("fast", vec!["dep:x", "math"]),
            ("math", vec![]),
            ("other", vec![]),
        ];
        let declared = declared.map(|(name, more)| {
            (
                name.to_owned(),
                more.into_iter().map(str::to_owned).collect(),
            )
        });
        let mut options = PackageOptions::default();
        let active = |options: &PackageOptions| {
            let active = options.active_features(&declared.clone().into());
            active.into_iter().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(active(&options), "default fast math");
        options.no_default_features = true;
        assert_eq!(active(&options), "");
        options.features = vec!["other".to_owned(), "x/y".to_owned()];
        assert_eq!(active(&options), "other");
        options.all_features = true;
        assert_eq!(active(&options), "default fast math other");
    }
}
