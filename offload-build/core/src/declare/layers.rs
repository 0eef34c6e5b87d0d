//! The settings of each module: the manifest's layers, or what the build script starts from, then the variables.

use crate::declare::manifest::{self, Source};
use crate::declare::settings::{self, Form, KEYS, Reach, Setting, Settings, nearest};
use crate::declare::{cargo_tables, effect};
use crate::environment::Environment;
use crate::error;
use crate::error::Error;
use crate::process::command::Command;
use std::path::{Path, PathBuf};

/// Prefix of our variables.
const PREFIX: &str = "OFFLOAD_";

/// Modules, and what the build script says of all of them.
#[derive(Debug)]
pub struct Declared {
    /// Settings of each module, from the manifest (or `Build::new`) and from variables.
    pub modules: Vec<Settings>,
    /// Settings from methods of `Build`.
    pub own: Settings,
}

/// Returns those of the modules that the manifest declares.
pub fn settings(environment: &Environment) -> Result<Vec<Settings>, Error> {
    let (path, text) = manifest(environment)?;
    let workspace = workspace(environment, &path)?;
    let profile = match environment.cargo("PROFILE").as_deref() {
        Some("release") => "release",
        _ => "dev",
    };
    let source = Source {
        file: "Cargo.toml",
        text: &text,
    };
    let above = workspace.as_ref().map(|(above, text)| {
        let own = *above == path;
        let file = if own {
            source.file.to_owned()
        } else {
            above.display().to_string()
        };
        (file, text)
    });
    let above = above.as_ref().map(|(file, text)| Source { file, text });
    let mut modules = manifest::modules(source, above, profile).map_err(Error::new)?;
    environment.watch(&path);
    if let Some((path, _)) = &workspace {
        environment.watch(path);
    }
    overlay_variables(environment, &mut modules)?;
    check_features(source, &modules)?;
    Ok(modules)
}

/// Returns those of a module that the build script declares: its language, and the variables.
pub fn declared_in_code(environment: &Environment, language: &str) -> Result<Vec<Settings>, Error> {
    let (path, text) = manifest(environment)?;
    environment.watch(&path);
    let form = settings::find("language").map_or(Form::Text, |key| key.form);
    let language = form.check(Setting::Text(language.to_owned()));
    let language = language.map_err(|problem| Error::new(format_args!("Build::new: {problem}")))?;
    let mut module = Settings::default();
    module.set("language", language, "Build::new");
    let mut modules = vec![module];
    overlay_variables(environment, &mut modules)?;
    let source = Source {
        file: "Cargo.toml",
        text: &text,
    };
    check_features(source, &modules)?;
    Ok(modules)
}

/// The package's manifest: its path and its text.
pub(super) fn manifest(environment: &Environment) -> Result<(PathBuf, String), Error> {
    let path = PathBuf::from(environment.required("CARGO_MANIFEST_DIR")?).join("Cargo.toml");
    let text = std::fs::read_to_string(&path).map_err(error::io(&path))?;
    Ok((path, text))
}

/// Lays `OFFLOAD_<KEY>` over every module.
fn overlay_variables(environment: &Environment, modules: &mut [Settings]) -> Result<(), Error> {
    for key in KEYS.iter().filter(|key| key.name != "name") {
        let Some((variable, value)) = environment.setting(key.name) else {
            continue;
        };
        let setting = key
            .form
            .parse(&value)
            .map_err(|problem| Error::new(format_args!("{variable}: {problem}")))?;
        let mut over = Settings::default();
        over.set(key.name, setting, &variable);
        let over = over.reaching(Reach::World);
        modules.iter_mut().for_each(|module| module.overlay(&over));
    }
    for (variable, hint) in unknown(environment) {
        // Announced: without it there is no warning.
        environment.variable(&variable);
        let text =
            format!("`{variable}` has no effect: offload-build reads no such variable{hint}");
        environment.report("warning", &text);
    }
    Ok(())
}

/// Checks that the package has the features that modules name.
fn check_features(source: Source<'_>, modules: &[Settings]) -> Result<(), Error> {
    let features = cargo_tables::features(source).map_err(Error::new)?;
    modules
        .iter()
        .try_for_each(|module| effect::feature(module, &features))
}

/// Variables of ours that are no keys: of a build script, of the tools, and of tests.
const OTHERS: [&str; 10] = [
    "CC",
    "DRY_RUN",
    "KINDS",
    "LARGE_IMAGES",
    "LLVM",
    "LOG",
    "MAX_DECOMPRESSED_SIZE",
    "PROGRESS",
    "REQUIRE",
    "RUSTC",
];

/// Prefixes of groups of variables, after [`PREFIX`].
const GROUPS: [&str; 6] = [
    "LINK_",
    "BUNDLER_",
    "PACKAGER_",
    "DEVICE_",
    "TEST_",
    "BENCH_",
];

/// The variables that are called like ours and that nothing reads, each with the name that may be meant.
fn unknown(environment: &Environment) -> Vec<(String, String)> {
    let keys = KEYS.iter().filter(|key| key.name != "name");
    let keys = keys.map(|key| key.name.to_uppercase().replace('-', "_"));
    let known: Vec<String> = keys.chain(OTHERS.map(str::to_owned)).collect();
    let is_known = |name: &str| {
        // Behind a key there may be a target of Cargo.
        let is_key = |key: &String| match name.strip_prefix(key.as_str()) {
            Some("") => true,
            Some(rest) => rest.starts_with('_') && !rest.contains(|c: char| c.is_ascii_uppercase()),
            None => false,
        };
        GROUPS.iter().any(|group| name.starts_with(group)) || known.iter().any(is_key)
    };
    let names = environment.names(PREFIX).into_iter();
    let names = names.filter(|name| !name.strip_prefix(PREFIX).is_some_and(is_known));
    let hinted = names.map(|name| {
        let own = name.strip_prefix(PREFIX).expect("it has our prefix");
        let hint = nearest(own, known.iter().map(String::as_str));
        (
            name,
            hint.replace('`', "")
                .replace("mean ", "mean `OFFLOAD_")
                .replace('?', "`?"),
        )
    });
    hinted.collect()
}

/// The manifest of the workspace that a package is a member of; its own, when that is the root.
///
/// Cargo is asked: `exclude`, `package.workspace` and vendored packages are its to tell. Whatever runs this
/// build script in Cargo's place has no workspaces.
pub fn workspace(
    environment: &Environment,
    own: &Path,
) -> Result<Option<(PathBuf, String)>, Error> {
    let Some(cargo) = environment.cargo("CARGO") else {
        return Ok(None);
    };
    let locate =
        Command::new(cargo).args(["locate-project", "--workspace", "--message-format=plain"]);
    let found = match locate.arg("--manifest-path").arg(own).run() {
        Ok(found) => found,
        // It exits with 101 for a package below a workspace that does not list it as a member.
        Err(error) if error.status().is_some() && !error.was_killed() => return Ok(None),
        Err(error) => return Err(Error::new(error)),
    };
    let path = PathBuf::from(found.stdout.trim_end());
    let text = std::fs::read_to_string(&path).map_err(error::io(&path))?;
    Ok(Some((path, text)))
}
