//! Cargo's configuration, as far as it names a linker or the host that programs are built for.
//!
//! Source: The Cargo Book, "Configuration": variables win over files, files of inner folders over those of outer ones, and
//! all over the file in Cargo's home.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use crate::cargo_offload::error::CargoOffloadError;
use crate::platform::is_absent;

/// Settings of Cargo.
pub(super) struct CargoSettings {
    /// Linkers by triple, those that win first.
    linkers: Vec<LinkerSetting>,
    build_target: Option<String>,
}

/// A linker that a file of Cargo's configuration names for a triple.
struct LinkerSetting {
    triple: String,
    linker: PathBuf,
    file: PathBuf,
}

impl CargoSettings {
    /// Reads the files that hold for `folder`.
    ///
    /// # Errors
    ///
    /// Fails if one of them cannot be read or is not valid TOML.
    pub(super) fn read(folder: &Path) -> Result<Self, CargoOffloadError> {
        let mut settings = Self {
            linkers: Vec::new(),
            build_target: std::env::var("CARGO_BUILD_TARGET").ok(),
        };
        let folder = fs::canonicalize(folder).map_err(|problem| {
            CargoOffloadError::new(format_args!("{}: {problem}", folder.display()))
        })?;
        let mut folders: Vec<PathBuf> = folder
            .ancestors()
            .map(|above| above.join(".cargo"))
            .collect();
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
        folders.extend(home.filter(|home| !folders.contains(home)));
        for folder in folders {
            settings.read_file(&folder)?;
        }
        Ok(settings)
    }

    /// Adds the settings of the file in a folder `.cargo`; the name without an extension is the older one and wins.
    fn read_file(&mut self, folder: &Path) -> Result<(), CargoOffloadError> {
        for name in ["config", "config.toml"] {
            let file = folder.join(name);
            let failed = |problem: &dyn std::fmt::Display| {
                CargoOffloadError::new(format_args!("{}: {problem}", file.display()))
            };
            let text = match fs::read_to_string(&file) {
                Ok(text) => text,
                Err(problem) if is_absent(&problem) => continue,
                Err(problem) => return Err(failed(&problem)),
            };
            let document = DeTable::parse(&text).map_err(|problem| failed(&problem.message()))?;
            let document = document.get_ref();
            for (triple, value) in table(document, "target").into_iter().flatten() {
                let Some(linker) = value
                    .get_ref()
                    .as_table()
                    .and_then(|own| text_of(own, "linker"))
                else {
                    continue;
                };
                // A path with a slash is relative to the folder that contains `.cargo`.
                let linker = match folder.parent().filter(|_| linker.contains('/')) {
                    Some(parent) => parent.join(linker),
                    None => PathBuf::from(linker),
                };
                self.linkers.push(LinkerSetting {
                    triple: triple.get_ref().clone().into_owned(),
                    linker,
                    file: file.clone(),
                });
            }
            let target = table(document, "build").and_then(|build| text_of(build, "target"));
            self.build_target = self.build_target.take().or(target.map(str::to_owned));
            return Ok(());
        }
        Ok(())
    }

    /// Returns the linker for a triple: what the variable or a file names.
    pub(super) fn linker(&self, triple: &str) -> Option<PathBuf> {
        self.linker_variable(triple)
            .map(|(_, value)| PathBuf::from(value))
            .or_else(|| Some(self.setting(triple)?.linker.clone()))
    }

    /// Returns the place that names the linker for a triple.
    pub(super) fn linker_origin(&self, triple: &str) -> Option<String> {
        self.linker_variable(triple)
            .map(|(name, _)| name)
            .or_else(|| Some(self.setting(triple)?.file.display().to_string()))
    }

    fn linker_variable(&self, triple: &str) -> Option<(String, OsString)> {
        let name = linker_variable(triple);
        let value = std::env::var_os(&name).filter(|value| !value.is_empty())?;
        Some((name, value))
    }

    fn setting(&self, triple: &str) -> Option<&LinkerSetting> {
        let mut linkers = self.linkers.iter();
        linkers.find(|setting| setting.triple == triple)
    }

    /// Returns the host that programs are built for without the option `--target`, if it is not this machine.
    pub(super) fn build_target(&self) -> Option<String> {
        self.build_target.clone()
    }
}

/// Returns Cargo's variable for the linker of a triple.
pub(super) fn linker_variable(triple: &str) -> String {
    let triple = triple.to_uppercase().replace(['-', '.'], "_");
    format!("CARGO_TARGET_{triple}_LINKER")
}

fn table<'t, 'a>(table: &'t DeTable<'a>, name: &str) -> Option<&'t DeTable<'a>> {
    table.get(name)?.get_ref().as_table()
}

fn text_of<'t>(table: &'t DeTable<'_>, name: &str) -> Option<&'t str> {
    match table.get(name)?.get_ref() {
        DeValue::String(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIPLE: &str = "riscv64gc-unknown-linux-gnu";

    #[test]
    fn prefers_files_of_inner_folders() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        for (place, linker) in [("a/b", "inner-ld"), ("a", "./bin/ld"), ("", "outer-ld")] {
            let place = folder.path().join(place).join(".cargo");
            fs::create_dir_all(&place).unwrap();
            let text = format!("[target.{TRIPLE}]\nlinker = \"{linker}\"\n");
            fs::write(place.join("config.toml"), text).unwrap();
        }
        let linker = |folder: &Path| CargoSettings::read(folder).unwrap().linker(TRIPLE);
        assert_eq!(linker(&inner), Some("inner-ld".into()));
        let middle = folder.path().canonicalize().unwrap().join("a");
        assert_eq!(linker(&middle), Some(middle.join("./bin/ld")));
        fs::remove_file(middle.join(".cargo/config.toml")).unwrap();
        assert_eq!(linker(&middle), Some("outer-ld".into()));
        assert_eq!(CargoSettings::read(&middle).unwrap().linker("x"), None);
    }

    #[test]
    fn names_a_file_that_is_no_toml() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".cargo")).unwrap();
        let file = folder.path().join(".cargo/config.toml");
        fs::write(&file, "[target\n").unwrap();
        let error = CargoSettings::read(folder.path())
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("config.toml: "), "{error}");
    }

    #[test]
    fn spells_triples_as_cargo_does() {
        assert_eq!(
            linker_variable("thumbv8m.main-none-eabi"),
            "CARGO_TARGET_THUMBV8M_MAIN_NONE_EABI_LINKER"
        );
    }
}
