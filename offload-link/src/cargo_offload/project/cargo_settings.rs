//! Cargo's configuration, as far as it names a linker or the host that programs are built for.
//!
//! Source: The Cargo Book, "Configuration": variables win over files, files of inner folders over those of outer ones, and
//! all over the file in Cargo's home.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use offload_build::tools::holds_for_platform;
use toml::de::{DeTable, DeValue};

use crate::cargo_offload::error::CargoOffloadError;
use crate::cargo_offload::project::rust_programs::cfg_of;
use crate::environment::variable;
use crate::platform::is_absent;

/// Settings of Cargo.
pub(super) struct CargoSettings {
    /// Linkers, those that win first.
    linkers: Vec<LinkerSetting>,
    build_targets: Vec<String>,
}

/// A linker that Cargo's configuration names.
struct LinkerSetting {
    /// A triple, or `cfg(…)`.
    condition: String,
    linker: PathBuf,
    /// The file; `None` for the option `--config`.
    file: Option<PathBuf>,
}

impl CargoSettings {
    /// Reads the values of options `--config`, and the files that hold for `folder`.
    ///
    /// # Errors
    ///
    /// Fails if one of them cannot be read or is not valid TOML.
    pub(super) fn read(folder: &Path, line: &[String]) -> Result<Self, CargoOffloadError> {
        let mut settings = Self {
            linkers: Vec::new(),
            build_targets: Vec::new(),
        };
        let folder =
            fs::canonicalize(folder).map_err(|problem| CargoOffloadError::of(folder, problem))?;
        // The last one wins.
        for value in line.iter().rev() {
            settings.read_option(value, &folder);
        }
        let target = variable("CARGO_BUILD_TARGET").and_then(|target| target.into_string().ok());
        settings.add_targets(target.into_iter().collect());
        let mut folders: Vec<PathBuf> = folder
            .ancestors()
            .map(|above| above.join(".cargo"))
            .collect();
        let home = variable("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cargo")));
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
            let text = match fs::read_to_string(&file) {
                Ok(text) => text,
                Err(problem) if is_absent(&problem) => continue,
                Err(problem) => return Err(CargoOffloadError::of(&file, problem)),
            };
            self.add(&text, folder.parent(), Some(&file))
                .map_err(|problem| CargoOffloadError::of(&file, problem))?;
            return Ok(());
        }
        Ok(())
    }

    /// Adds the value of an option `--config`: a path, or TOML, whose paths are relative to `current`. Cargo reports one that
    /// cannot be read.
    fn read_option(&mut self, value: &str, current: &Path) {
        let path = current.join(value);
        let folder = path.parent().and_then(Path::parent);
        let _ = match path.is_file() {
            true => fs::read_to_string(&path)
                .map_err(|problem| problem.to_string())
                .and_then(|text| self.add(&text, folder, None)),
            false => self.add(value, Some(current), None),
        };
    }

    /// Adds the settings of a text; paths with a slash are relative to `folder`.
    fn add(
        &mut self,
        text: &str,
        folder: Option<&Path>,
        file: Option<&Path>,
    ) -> Result<(), String> {
        let document = DeTable::parse(text).map_err(|problem| problem.message().to_owned())?;
        let document = document.get_ref();
        for (condition, value) in table(document, "target").into_iter().flatten() {
            let table = value.get_ref().as_table();
            let Some(linker) = table.and_then(|own| text_of(own, "linker")) else {
                continue;
            };
            let linker = match folder.filter(|_| linker.contains('/')) {
                Some(folder) => folder.join(linker),
                None => PathBuf::from(linker),
            };
            self.linkers.push(LinkerSetting {
                condition: condition.get_ref().clone().into_owned(),
                linker,
                file: file.map(Path::to_owned),
            });
        }
        let targets = table(document, "build").and_then(|build| build.get("target"));
        let targets = targets.into_iter().flat_map(|value| match value.get_ref() {
            DeValue::Array(several) => several.iter().map(|value| value.get_ref()).collect(),
            one => vec![one],
        });
        let targets = targets.filter_map(|value| value.as_str().map(str::to_owned));
        self.add_targets(targets.collect());
        Ok(())
    }

    /// Adds hosts to build for, unless a place that wins names some.
    fn add_targets(&mut self, targets: Vec<String>) {
        if self.build_targets.is_empty() {
            self.build_targets = targets;
        }
    }

    /// Returns the linker for a triple: what the option `--config`, the variable or a file names.
    pub(super) fn linker(&self, triple: &str) -> Option<PathBuf> {
        let variable = self.linker_variable(triple);
        variable
            .filter(|_| !self.is_on_the_line(triple))
            .map(|(_, value)| PathBuf::from(value))
            .or_else(|| Some(self.setting(triple)?.linker.clone()))
    }

    /// Returns the place that names the linker for a triple.
    pub(super) fn linker_origin(&self, triple: &str) -> Option<String> {
        self.linker_variable(triple)
            .map(|(name, _)| name)
            .or_else(|| {
                let file = self.setting(triple)?.file.as_ref();
                Some(file.map_or("--config".to_owned(), |file| file.display().to_string()))
            })
    }

    fn linker_variable(&self, triple: &str) -> Option<(String, OsString)> {
        let name = linker_variable(triple);
        let value = variable(&name)?;
        Some((name, value))
    }

    /// Tells whether an option `--config` names the linker for a triple: it wins over variables.
    pub(super) fn is_on_the_line(&self, triple: &str) -> bool {
        self.setting(triple)
            .is_some_and(|setting| setting.file.is_none())
    }

    /// Returns the setting for a triple. A table of its name wins over those of conditions.
    fn setting(&self, triple: &str) -> Option<&LinkerSetting> {
        let mut linkers = self.linkers.iter();
        if let Some(own) = linkers.find(|setting| setting.condition == triple) {
            return Some(own);
        }
        let linkers = self.linkers.iter();
        let mut linkers = linkers.filter(|setting| setting.condition.starts_with("cfg"));
        let first = linkers.next()?;
        let told = cfg_of(triple).ok()?;
        let variable = |name: &str| told.get(OsStr::new(name))?.to_str().map(str::to_owned);
        let mut linkers = std::iter::once(first).chain(linkers);
        linkers.find(|setting| holds_for_platform(&setting.condition, &variable))
    }

    /// Returns the hosts that programs are built for without the option `--target`; none if it is this machine.
    pub(super) fn build_targets(&self) -> &[String] {
        &self.build_targets
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
        let linker = |folder: &Path| CargoSettings::read(folder, &[]).unwrap().linker(TRIPLE);
        assert_eq!(linker(&inner), Some("inner-ld".into()));
        let middle = folder.path().canonicalize().unwrap().join("a");
        assert_eq!(linker(&middle), Some(middle.join("./bin/ld")));
        fs::remove_file(middle.join(".cargo/config.toml")).unwrap();
        assert_eq!(linker(&middle), Some("outer-ld".into()));
        assert_eq!(CargoSettings::read(&middle, &[]).unwrap().linker("x"), None);
    }

    #[test]
    fn names_a_file_that_is_no_toml() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".cargo")).unwrap();
        let file = folder.path().join(".cargo/config.toml");
        fs::write(&file, "[target\n").unwrap();
        let error = CargoSettings::read(folder.path(), &[])
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
