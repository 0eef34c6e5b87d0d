//! The variables of a build script, and its directives for Cargo. The only `env::var`.

use crate::error::Error;
use offload_formats_core::escape::Colors;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// The variables of a build script, and the lines that it owes Cargo.
///
/// Every variable that a user may set is read through [`Environment::variable`], which announces it;
/// those that Cargo itself sets are read through [`Environment::cargo`] and are not.
#[derive(Debug)]
pub struct Environment {
    /// Names and values, sorted by name.
    variables: Vec<(OsString, OsString)>,
    announced: RefCell<BTreeSet<String>>,
    directives: RefCell<Vec<String>>,
}

/// Variables that name the root of CUDA's toolkit, the first first.
pub const CUDA_ROOTS: [&str; 4] = [
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_ROOT",
    "CUDA_TOOLKIT_ROOT_DIR",
];

/// The folder of CUDA's toolkit, searched after those that variables name.
pub const USUAL_CUDA: &str = "/usr/local/cuda";

/// Returns the variable by which Cargo tells build scripts that a feature of their package is enabled.
pub fn feature_variable(feature: &str) -> String {
    let name = feature.to_uppercase().replace('-', "_");
    format!("CARGO_FEATURE_{name}")
}

/// Returns a variable as the processes have it that this one starts.
#[must_use]
pub fn inherited(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

impl Environment {
    /// Returns the environment of this process.
    pub fn of_process() -> Self {
        Self::new(std::env::vars_os().collect())
    }

    /// Reads the variables of this process again: compilers inherit those that a build script has set since.
    pub fn update(&mut self) {
        self.variables = Self::of_process().variables;
    }

    pub fn new(mut variables: Vec<(OsString, OsString)>) -> Self {
        for (name, _) in &mut variables {
            *name = as_found(name);
        }
        variables.sort_unstable();
        Self {
            variables,
            announced: RefCell::default(),
            directives: RefCell::default(),
        }
    }

    /// A variable that Cargo sets for build scripts.
    pub fn cargo(&self, name: &str) -> Option<String> {
        let name = as_found(OsStr::new(name));
        let place = self
            .variables
            .binary_search_by(|(known, _)| known.cmp(&name));
        let (_, value) = self.variables.get(place.ok()?)?;
        Some(value.to_string_lossy().into_owned())
    }

    /// Tells whether a cargo feature of the package is enabled.
    pub fn has_feature(&self, feature: &str) -> bool {
        self.cargo(&feature_variable(feature)).is_some()
    }

    /// The colors that Cargo was asked for by its variable. Cargo hands neither `--color` nor `term.color` to build scripts.
    /// It is not announced: another answer must not build again.
    pub fn colors(&self) -> Colors {
        match self.cargo("CARGO_TERM_COLOR").as_deref() {
            Some("always") => Colors::Kept,
            _ => Colors::Removed,
        }
    }

    /// Returns a variable that every build script has.
    pub fn required(&self, name: &str) -> Result<String, Error> {
        self.cargo(name).ok_or_else(|| {
            Error::new(format_args!(
                "`{name}` is not set\nhint: Cargo sets it for build scripts; call this from build.rs"
            ))
        })
    }

    /// A variable that a user may set: Cargo runs the build script again when it changes.
    /// Empty counts as unset.
    pub fn variable(&self, name: &str) -> Option<String> {
        if self.announced.borrow_mut().insert(name.to_owned()) {
            self.tell("rerun-if-env-changed", name);
        }
        self.cargo(name).filter(|value| !value.is_empty())
    }

    /// `OFFLOAD_<KEY>_<target of Cargo>`, else `OFFLOAD_<KEY>`: the name that is set, and its value.
    pub fn setting(&self, key: &str) -> Option<(String, String)> {
        let plain = format!("OFFLOAD_{}", key.to_uppercase().replace('-', "_"));
        let target = self.cargo("TARGET");
        let own = target.map(|target| format!("{plain}_{}", target.replace('-', "_")));
        own.into_iter()
            .chain([plain])
            .find_map(|name| Some((name.clone(), self.variable(&name)?)))
    }

    /// The names of variables that start so.
    pub fn names(&self, prefix: &str) -> Vec<String> {
        let names = self.variables.iter();
        let names = names.map(|(name, _)| name.to_string_lossy());
        names
            .filter(|name| name.starts_with(prefix))
            .map(String::from)
            .collect()
    }

    /// Returns the variables that hold for the build of this package alone: Cargo's for build scripts, and flags, wrappers and
    /// profiles of rustc that users set. Cargo's own settings, such as `CARGO_HOME` and its jobserver, are not among them.
    pub fn of_this_package(&self) -> Vec<OsString> {
        const OF_CARGO: [&str; 7] = [
            "CARGO_HOME",
            "CARGO_HTTP_",
            "CARGO_MAKEFLAGS",
            "CARGO_NET_",
            "CARGO_REGISTR",
            "CARGO_SOURCE_",
            "CARGO_TERM_",
        ];
        const OTHERS: [&str; 11] = [
            "DEBUG",
            "HOST",
            "NUM_JOBS",
            "OPT_LEVEL",
            "OUT_DIR",
            "PROFILE",
            "RUSTC",
            "RUSTDOC",
            "RUSTDOCFLAGS",
            "RUSTFLAGS",
            "TARGET",
        ];
        let is_own = |name: &str| match name.starts_with("CARGO") {
            true => !OF_CARGO.iter().any(|start| name.starts_with(start)),
            false => {
                OTHERS.contains(&name) || name.starts_with("RUSTC_") || name.starts_with("DEP_")
            }
        };
        let names = self.variables.iter().map(|(name, _)| name);
        let own = names.filter(|name| is_own(&name.to_string_lossy()));
        own.cloned().collect()
    }

    /// Records `cargo::<key>=<value>`.
    pub fn tell(&self, key: &str, value: impl Display) {
        self.directives
            .borrow_mut()
            .push(format!("cargo::{key}={value}"));
    }

    /// Records an error or warning: a line for each line of `text`, as Cargo reads lines.
    pub fn report(&self, level: &str, text: &str) {
        text.lines().for_each(|line| self.tell(level, line));
    }

    /// Takes over the lines that `other`, of the same process, owes Cargo.
    pub fn adopt(&self, other: &Self) {
        // Both have announced the same variables, and warned of the same.
        let mut own = self.directives.borrow_mut();
        for line in other.take_directives() {
            if !own.contains(&line) {
                own.push(line);
            }
        }
    }

    /// The lines for Cargo so far, which are then forgotten.
    pub fn take_directives(&self) -> Vec<String> {
        std::mem::take(&mut self.directives.borrow_mut())
    }

    /// Folders named by `PATH`, for finding programs.
    pub fn search(&self) -> crate::process::search::Search {
        // It is not announced: it is another one in every editor, which would then compile the crate again. What was
        // found in it is watched, and what was not found is looked for in each build.
        let path = self.cargo("PATH").unwrap_or_default().into();
        let cuda = CUDA_ROOTS
            .iter()
            .filter_map(|name| self.variable(name))
            .chain([USUAL_CUDA.to_owned()])
            .map(PathBuf::from)
            .collect();
        crate::process::search::Search { path, cuda }
    }

    /// Watches a path in `out` that never exists: what was not found is looked for in the next build again.
    pub fn look_again(&self, out: &Path) {
        self.watch(&out.join("offload/looks-again-for-what-was-missing"));
    }

    /// Watches `path`, a file or a folder.
    pub fn watch(&self, path: &Path) {
        self.tell("rerun-if-changed", path.display());
    }
}

/// The name of a variable as it is looked up: Windows takes `Path` for `PATH`.
fn as_found(name: &OsStr) -> OsString {
    match cfg!(windows) {
        true => name.to_ascii_uppercase(),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        let pairs = variables
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        Environment::new(pairs.collect())
    }

    #[test]
    fn takes_what_the_build_script_has_set_since() {
        let mut environment = environment(&[("CPATH", "/x")]);
        environment.update();
        let path = inherited("PATH").map(|path| path.to_string_lossy().into_owned());
        assert_eq!(environment.cargo("PATH"), path);
        assert_ne!(environment.cargo("CPATH").as_deref(), Some("/x"));
    }

    #[test]
    fn tells_variables_of_this_package_from_those_of_all() {
        let own = [
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_FEATURE_GPU",
            "CARGO_PROFILE_RELEASE_LTO",
            "DEP_GPU_ROOT",
            "OUT_DIR",
            "RUSTC_WORKSPACE_WRAPPER",
            "RUSTC_WRAPPER",
        ];
        let of_all = [
            "CARGO_HOME",
            "CARGO_HTTP_PROXY",
            "CARGO_MAKEFLAGS",
            "CARGO_NET_OFFLINE",
            "CARGO_REGISTRIES_OWN_INDEX",
            "CARGO_TERM_COLOR",
            "PATH",
            "RUSTUP_TOOLCHAIN",
        ];
        let all = own.iter().chain(&of_all).map(|name| (*name, "1"));
        let environment = environment(&all.collect::<Vec<_>>());
        assert_eq!(environment.of_this_package(), own);
    }

    #[test]
    fn announces_a_variable_once_whether_set_or_not() {
        let environment = environment(&[("CPATH", "/x")]);
        assert_eq!(environment.variable("CPATH").as_deref(), Some("/x"));
        assert_eq!(environment.variable("CPATH").as_deref(), Some("/x"));
        assert_eq!(environment.variable("OFFLOAD_TARGETS"), None);
        assert_eq!(
            environment.take_directives(),
            [
                "cargo::rerun-if-env-changed=CPATH",
                "cargo::rerun-if-env-changed=OFFLOAD_TARGETS"
            ]
        );
    }

    #[test]
    fn prefers_the_setting_of_cargos_target() {
        let environment = environment(&[
            ("TARGET", "x86_64-unknown-linux-gnu"),
            ("OFFLOAD_OPT_LEVEL", "1"),
            ("OFFLOAD_OPT_LEVEL_x86_64_unknown_linux_gnu", "3"),
            ("OFFLOAD_TARGETS", "sm_80"),
        ]);
        let name = "OFFLOAD_OPT_LEVEL_x86_64_unknown_linux_gnu".to_owned();
        assert_eq!(
            environment.setting("opt-level"),
            Some((name, "3".to_owned()))
        );
        let plain = ("OFFLOAD_TARGETS".to_owned(), "sm_80".to_owned());
        assert_eq!(environment.setting("targets"), Some(plain));
        assert_eq!(environment.setting("std"), None);
    }

    #[test]
    fn reads_no_setting_of_a_target_without_a_target() {
        let environment = environment(&[("OFFLOAD_STD_", "c++17"), ("OFFLOAD_STD", "c++20")]);
        let plain = ("OFFLOAD_STD".to_owned(), "c++20".to_owned());
        assert_eq!(environment.setting("std"), Some(plain));
    }

    #[test]
    fn reports_each_line_as_one_of_cargos() {
        let environment = environment(&[]);
        environment.report("error", "no clang\nhint: install it");
        assert_eq!(
            environment.take_directives(),
            ["cargo::error=no clang", "cargo::error=hint: install it"]
        );
    }
}
