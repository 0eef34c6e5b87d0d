//! The Cargo that runs this build script: what of it also holds for a Cargo that compiles kernels, as far as the system tells.

use crate::environment::Environment;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// The Cargo that runs this build script.
#[derive(Clone, Debug, Default)]
pub struct OuterCargo {
    /// Options of its command line.
    pub options: Vec<String>,
    /// A folder from which Cargo finds the files of settings that it uses, if from the package's folder it finds others: those of a
    /// project hold for packages elsewhere, too.
    pub settings_folder: Option<PathBuf>,
    /// The folder of the user's settings.
    home: Option<PathBuf>,
}

impl OuterCargo {
    /// Reads its command line and its folder from the system; `package` is the folder of the package.
    pub(super) fn of(package: &Path, environment: &Environment) -> Self {
        let home = environment.cargo("CARGO_HOME").map(PathBuf::from);
        // As Cargo: a shell on Windows may set `HOME`, too.
        let user = match cfg!(windows) {
            true => environment.cargo("USERPROFILE"),
            false => environment.cargo("HOME"),
        };
        Self {
            home: home.or_else(|| Some(Path::new(&user?).join(".cargo"))),
            ..Self::of_parent(package)
        }
    }

    #[cfg(target_os = "linux")]
    fn of_parent(package: &Path) -> Self {
        let parent = PathBuf::from(format!("/proc/{}", std::os::unix::process::parent_id()));
        let line = std::fs::read(parent.join("cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        let is_cargo = words
            .next()
            .is_some_and(|program| program.ends_with(b"cargo"));
        let folder = std::fs::read_link(parent.join("cwd"));
        let (true, Ok(folder)) = (is_cargo, folder) else {
            return Self::default();
        };
        let words = words.map(|word| String::from_utf8_lossy(word).into_owned());
        let words: Vec<String> = words.collect();
        // It takes the settings of the packages that it installs.
        let mut commands = words.iter().filter(|word| !word.starts_with(['-', '+']));
        Self {
            settings_folder: match commands.next().is_some_and(|word| word == "install") {
                true => None,
                false => settings_folder(package, &folder),
            },
            options: shared_options(words.into_iter(), &folder),
            home: None,
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn of_parent(_package: &Path) -> Self {
        Self::default()
    }

    /// Returns the files of settings that hold for a Cargo which it starts in the folder of a package.
    pub(super) fn settings(&self, package: &Path) -> Vec<PathBuf> {
        let mut found = settings(package);
        found.extend(
            self.settings_folder
                .iter()
                .flat_map(|folder| settings(folder)),
        );
        let of_user = self
            .home
            .iter()
            .flat_map(|home| SETTINGS.map(|name| home.join(name)));
        let named = self.options.iter().map(PathBuf::from);
        found.extend(with_included(of_user.chain(named)));
        // That of the user may lie around the package.
        found.sort();
        found.dedup();
        found
    }
}

/// Names of a file of settings.
const SETTINGS: [&str; 2] = ["config.toml", "config"];

/// Returns the files of settings that a Cargo in a folder reads, the nearest first.
fn settings(folder: &Path) -> Vec<PathBuf> {
    let folders = folder.ancestors().map(|folder| folder.join(".cargo"));
    with_included(folders.flat_map(|folder| SETTINGS.map(|name| folder.join(name))))
}

/// Returns those files that exist, each with the files that it includes.
fn with_included(files: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for file in files {
        add_included(file, &mut found);
    }
    found
}

fn add_included(file: PathBuf, found: &mut Vec<PathBuf>) {
    if !file.is_file() || found.contains(&file) {
        return;
    }
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let folder = file.parent().unwrap_or(Path::new("")).to_owned();
    found.push(file);
    let Ok(document) = DeTable::parse(&text) else {
        return;
    };
    let included = document.get_ref().get("include");
    let included = included.map(|value| value.get_ref());
    let included = included.and_then(DeValue::as_array).into_iter().flatten();
    for value in included {
        let value = value.get_ref();
        let path = value.as_table().and_then(|table| table.get("path"));
        let path = path.map_or(value, |path| path.get_ref()).as_str();
        path.into_iter()
            .for_each(|path| add_included(folder.join(path), found));
    }
}

/// Tells whether a file of settings replaces packages: those of the lock that belongs to a crate of kernels elsewhere must not change.
#[cfg(target_os = "linux")]
fn has_patches(file: &Path) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut lines = text
        .lines()
        .map(|line| line.trim_start_matches(['[', ' ', '\t']));
    lines.any(|line| line.starts_with("patch"))
}

/// Returns a folder with the settings of `outer`, if `package` has others; the same one for all folders with these settings.
#[cfg(target_os = "linux")]
fn settings_folder(package: &Path, outer: &Path) -> Option<PathBuf> {
    let found = settings(outer);
    if found == settings(package) || found.iter().any(|file| has_patches(file)) {
        return None;
    }
    let nearest = found.first().and_then(|path| path.ancestors().nth(2));
    let folder = nearest.or(outer.ancestors().last())?;
    Some(folder.to_owned())
}

/// Chooses from the words of a Cargo in `folder`. `--config` may name a file from there.
#[cfg(target_os = "linux")]
fn shared_options(words: impl Iterator<Item = String>, folder: &Path) -> Vec<String> {
    const PLAIN: [&str; 3] = ["--frozen", "--locked", "--offline"];
    let mut shared = Vec::new();
    let mut words = words.take_while(|word| word != "--");
    while let Some(word) = words.next() {
        let config = match word.as_str() {
            "--config" => words.next(),
            plain if PLAIN.contains(&plain) => {
                shared.push(word);
                continue;
            }
            _ => word.strip_prefix("--config=").map(str::to_owned),
        };
        if let Some(config) = config {
            let file = folder.join(&config);
            let config = match file.is_file() {
                true => file.to_string_lossy().into_owned(),
                false => config,
            };
            shared.extend(["--config".to_owned(), config]);
        }
    }
    shared
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn takes_the_options_of_cargo_that_another_cargo_needs() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("my.toml"), "").unwrap();
        let line = "build --release --offline --config a.b=1 -p x --config=my.toml --config c='d' --locked -- --frozen --config e=2";
        let words = line.split(' ').map(str::to_owned);
        let file = folder.path().join("my.toml");
        let config = |text: &str| ["--config".to_owned(), text.to_owned()];
        let expected: Vec<String> = ["--offline".to_owned()]
            .into_iter()
            .chain(config("a.b=1"))
            .chain(config(file.to_str().unwrap()))
            .chain(config("c='d'"))
            .chain(["--locked".to_owned()])
            .collect();
        assert_eq!(shared_options(words, folder.path()), expected);
    }

    #[test]
    fn lists_settings_of_the_package_of_options_and_of_the_user() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for folder in ["p/.cargo", "app/.cargo", "home", "elsewhere"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        let names = [
            "app/.cargo/config.toml",
            "elsewhere/inner.toml",
            "elsewhere/my.toml",
            "home/config",
            "p/.cargo/config.toml",
        ];
        for name in names {
            std::fs::write(at(name), "").unwrap();
        }
        // A circle.
        let include = "include = [{ path = \"inner.toml\" }, \"my.toml\", \"none.toml\"]";
        std::fs::write(at("elsewhere/my.toml"), include).unwrap();
        let file = at("elsewhere/my.toml").display().to_string();
        let options = ["--offline", "--config", &file, "--config", "a.b=1"];
        let cargo = OuterCargo {
            options: options.map(str::to_owned).to_vec(),
            settings_folder: Some(at("app")),
            home: Some(at("home")),
        };
        assert_eq!(cargo.settings(&at("p")), names.map(at));
    }

    #[test]
    fn has_a_folder_for_settings_that_the_package_lacks() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for folder in ["app/.cargo", "app/src", "app/inside/.cargo", "library"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::fs::write(at("app/.cargo/config.toml"), "").unwrap();
        let folder = |package: &str, outer: &str| settings_folder(&at(package), &at(outer));
        assert_eq!(folder("app", "app"), None);
        assert_eq!(folder("app/inside", "app/src"), None);
        assert_eq!(folder("library", "app"), Some(at("app")));
        assert_eq!(folder("library", "app/src"), Some(at("app")));
        // Cargo does not read what lies below its folder.
        std::fs::write(at("app/inside/.cargo/config.toml"), "").unwrap();
        assert_eq!(folder("app/inside", "app"), Some(at("app")));
        assert_eq!(folder("app", "library"), Some(PathBuf::from("/")));
        let patch = "[ patch.crates-io ]\nx = { path = \"x\" }\n";
        std::fs::write(at("app/.cargo/config.toml"), patch).unwrap();
        assert_eq!(folder("library", "app"), None);
    }
}
