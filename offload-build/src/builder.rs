//! `Build`: the one type that a build script names.

use crate::compiler::Compiler;
use crate::environment::Environment;
use crate::error::{self, Error};
use crate::host_file::{Content, HostFile};
use crate::manifest::{self, Source};
use crate::module::{Module, Register, Target};
use crate::openmp::{self, Context};
use crate::plan::{Outcome, Plan};
use crate::registration::Host;
use crate::settings::{self, Setting, Settings};
use crate::toolchain::jobserver::Jobs;
use crate::toolchain::{Command, clang, task};
use md5::{Digest, Md5};
use std::path::{Path, PathBuf};

/// The device code of a package: read from its manifest, changed by the build script, then built.
///
/// ```no_run
/// fn main() -> Result<(), offload_build::Error> {
///     offload_build::Build::from_manifest()?.run()
/// }
/// ```
///
/// Every key of `[package.metadata.offload]` is a method of the same name, which wins over the manifest
/// and over `OFFLOAD_*` variables, in every module.
#[derive(Debug)]
pub struct Build {
    environment: Environment,
    /// Those of each module, as the manifest and the variables have them.
    modules: Vec<Settings>,
    /// What the build script said.
    own: Settings,
}

/// Keys that hold for one target: what [`Build::target`] edits.
#[derive(Debug, Default)]
pub struct TargetBuild(Settings);

impl Build {
    /// What `[package.metadata.offload]` of this package declares.
    ///
    /// # Errors
    ///
    /// When this is not a build script, or the manifest or an `OFFLOAD_*` variable is wrong.
    pub fn from_manifest() -> Result<Self, Error> {
        let environment = Environment::of_process();
        let modules = modules(&environment);
        let modules = finish(&environment, modules)?;
        Ok(Self {
            environment,
            modules,
            own: Settings::default(),
        })
    }

    /// The language of the sources: `openmp`.
    ///
    /// # Errors
    ///
    /// When there is no such language.
    pub fn language(self, language: &str) -> Result<Self, Error> {
        self.choice("language", language)
    }

    /// Paths and patterns of sources, relative to the package.
    #[must_use]
    pub fn sources<S: Into<String>>(self, sources: impl IntoIterator<Item = S>) -> Self {
        self.list("sources", sources)
    }

    /// Processors (`gfx90a:xnack-`, `sm_80`) and triples of CPU devices, in the place of those declared.
    ///
    /// # Errors
    ///
    /// At the first that is no target.
    pub fn targets<S: Into<String>>(
        self,
        targets: impl IntoIterator<Item = S>,
    ) -> Result<Self, Error> {
        let targets: Vec<String> = targets.into_iter().map(Into::into).collect();
        for target in &targets {
            let parsed = Target::parse(target);
            let parsed =
                parsed.map_err(|problem| Error::new(format_args!("Build::targets: {problem}")));
            finish(&self.environment, parsed)?;
        }
        Ok(self.list("targets", targets))
    }

    /// Folders that `#include` searches, relative to the package.
    #[must_use]
    pub fn include<S: Into<String>>(self, include: impl IntoIterator<Item = S>) -> Self {
        self.list("include", include)
    }

    /// Defines a macro; without a value when `value` is empty.
    #[must_use]
    pub fn define(mut self, name: &str, value: &str) -> Self {
        define(&mut self.own, name, value);
        self
    }

    /// Compiler options, as spelled, in the place of those declared.
    #[must_use]
    pub fn flags<S: Into<String>>(self, flags: impl IntoIterator<Item = S>) -> Self {
        self.list("flags", flags)
    }

    /// `0`, `1`, `2`, `3`, `s` or `z`; Cargo's, when nobody says.
    ///
    /// # Errors
    ///
    /// When there is no such level.
    pub fn opt_level(self, level: &str) -> Result<Self, Error> {
        self.choice("opt-level", level)
    }

    /// The standard of the language: `c11`, `c++20`.
    #[must_use]
    pub fn std(self, std: &str) -> Self {
        self.text("std", std)
    }

    /// Patterns of sources to leave out.
    #[must_use]
    pub fn exclude<S: Into<String>>(self, exclude: impl IntoIterator<Item = S>) -> Self {
        self.list("exclude", exclude)
    }

    /// The device compiler, by path or name.
    #[must_use]
    pub fn compiler(self, compiler: &str) -> Self {
        self.text("compiler", compiler)
    }

    /// Who registers the images: `complete`, `deferred`, or `auto`.
    ///
    /// # Errors
    ///
    /// When it is none of these.
    pub fn register(self, register: &str) -> Result<Self, Error> {
        self.choice("register", register)
    }

    /// What a missing compiler is: an `error`, or reason for a `stub` without images.
    ///
    /// # Errors
    ///
    /// When it is none of these.
    pub fn missing(self, missing: &str) -> Result<Self, Error> {
        self.choice("missing", missing)
    }

    /// The cargo feature without which nothing is built.
    #[must_use]
    pub fn feature(self, feature: &str) -> Self {
        self.text("feature", feature)
    }

    /// The name of the module, and of the file that Rust includes.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        self.text("name", name)
    }

    /// Edits what holds for one target only.
    #[must_use]
    pub fn target(mut self, target: &str, edit: impl FnOnce(TargetBuild) -> TargetBuild) -> Self {
        let settings = self.own.targets.remove(target).unwrap_or_default();
        let edited = edit(TargetBuild(settings)).0;
        self.own.targets.insert(target.to_owned(), edited);
        self
    }

    /// Everything that [`Build::run`] would do; its `Display` is the dry run.
    ///
    /// # Errors
    ///
    /// When a setting is wrong or a compiler is missing.
    pub fn plan(&self) -> Result<Plan, Error> {
        let mut plan = Plan::default();
        for module in self.checked()? {
            let built = self.module(&module)?;
            plan.stages.extend(built.plan.stages);
            plan.notes.extend(built.plan.notes);
        }
        Ok(plan)
    }

    /// Compiles, packs, embeds, registers, and tells Cargo what to link and what to watch.
    ///
    /// With `OFFLOAD_DRY_RUN=1` it prints the plan and fails instead.
    ///
    /// # Errors
    ///
    /// At whatever goes wrong, which is also reported to Cargo. What was built before stays whole.
    pub fn run(self) -> Result<(), Error> {
        let done = self.build();
        finish(&self.environment, done)
    }

    fn build(&self) -> Result<(), Error> {
        let environment = &self.environment;
        let modules = self.checked()?;
        if environment
            .variable("OFFLOAD_DRY_RUN")
            .is_some_and(|value| value != "0")
        {
            eprint!("{}", self.plan()?);
            return Err(Error::new(
                "OFFLOAD_DRY_RUN is set: the plan is printed, nothing is built",
            ));
        }
        environment.tell("rerun-if-changed", "build.rs");
        environment.tell("rustc-check-cfg", "cfg(offload_stub)");
        for module in &modules {
            for target in &module.targets {
                environment.tell(
                    "rustc-check-cfg",
                    format_args!("cfg({})", target.cfg_name()),
                );
            }
            if environment.variable("DOCS_RS").is_some() {
                self.stub(module, "documentation is built without device code")?;
                continue;
            }
            match self.module(module) {
                Ok(built) => self.execute(module, &built)?,
                Err(error) if error.is_missing() && module.stub_when_missing => {
                    let text = error.to_string();
                    environment.report("warning", &text);
                    self.stub(module, text.lines().next().unwrap_or_default())?;
                    environment
                        .watch(&self.out()?.join("offload/looks-again-for-what-was-missing"));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn execute(&self, module: &Module, built: &Built) -> Result<(), Error> {
        let environment = &self.environment;
        for note in &built.plan.notes {
            environment.report("warning", note);
        }
        if !built.plan.notes.is_empty() {
            // A path that is never there: what was not found is looked for in the next build again.
            environment.watch(&self.out()?.join("offload/looks-again-for-what-was-missing"));
        }
        let count = environment
            .cargo("NUM_JOBS")
            .and_then(|count| count.parse().ok())
            .unwrap_or(1);
        let jobs = Jobs::new(environment.cargo("CARGO_MAKEFLAGS").as_deref(), count);
        let Outcome { warnings, reads } = built.plan.execute(&jobs)?;
        for (title, text) in warnings {
            environment.report("warning", &format!("{title}:\n{text}"));
        }
        let out = self.out()?;
        let own = |path: &&PathBuf| {
            !path.starts_with(&out) && !path.starts_with(&built.compiler.llvm.prefix)
        };
        reads
            .iter()
            .filter(own)
            .for_each(|path| environment.watch(path));
        module
            .watched
            .iter()
            .for_each(|folder| environment.watch(folder));
        environment.watch(&built.compiler.llvm.clang);

        for target in &built.targets {
            environment.tell("rustc-cfg", target.cfg_name());
        }
        environment.tell(
            "rustc-link-search",
            format_args!("native={}", out.display()),
        );
        environment.tell(
            "rustc-link-lib",
            format_args!("static:+whole-archive={}_offload", built.unique),
        );
        let links = out.join("offload/runtime");
        built.compiler.link_runtime(&links)?;
        environment.tell(
            "rustc-link-search",
            format_args!("native={}", links.display()),
        );
        environment.tell("rustc-link-lib", "dylib=omptarget");
        environment.tell("rustc-link-lib", "dylib=omp");
        let cpp = |path: &PathBuf| {
            path.extension()
                .is_some_and(|e| ["cc", "cpp", "cxx", "C"].iter().any(|c| e == *c))
        };
        if module.sources.iter().any(cpp) {
            environment.tell("rustc-link-lib", "dylib=stdc++");
        }
        // For this package's own programs; no build script can do it for those that depend on it.
        if !["/lib", "/usr/lib", "/usr/lib64"]
            .iter()
            .any(|known| built.compiler.runtime == Path::new(known))
        {
            environment.tell(
                "rustc-link-arg",
                format_args!("-Wl,-rpath,{}", built.compiler.runtime.display()),
            );
        }
        Ok(())
    }

    fn stub(&self, module: &Module, reason: &str) -> Result<(), Error> {
        self.environment.tell("rustc-cfg", "offload_stub");
        let path = self.out()?.join(format!("{}.rs", module.name));
        let file = HostFile {
            module: module.name.clone(),
            kernels: Vec::new(),
            content: Content::NotBuilt(reason.to_owned()),
        };
        task::write(&path, file.to_string().as_bytes()).map_err(error::io(&path))
    }

    /// The modules, checked, without those of features that are off.
    fn checked(&self) -> Result<Vec<Module>, Error> {
        let mut modules: Vec<Module> = Vec::new();
        for settings in &self.modules {
            let mut settings = settings.clone();
            settings.overlay(&self.own);
            let Some(module) = Module::new(&settings, &self.environment)? else {
                continue;
            };
            if modules.iter().any(|other| other.name == module.name) {
                return Err(Error::new(format_args!(
                    "two modules are named `{}`",
                    module.name
                )));
            }
            modules.push(module);
        }
        Ok(modules)
    }

    fn module(&self, module: &Module) -> Result<Built, Error> {
        let environment = &self.environment;
        let out = self.out()?;
        let root = PathBuf::from(environment.required("CARGO_MANIFEST_DIR")?);
        let target = environment.required("TARGET")?;
        let host = host(&target)?;
        let search = environment.search();
        let compiler = Compiler::find(module, &search, &out)?;
        let variables: Vec<String> = clang::VARIABLES
            .iter()
            .map(|name| format!("{name}={}", environment.variable(name).unwrap_or_default()))
            .collect();
        let cross = (target != environment.required("HOST")?).then_some(target.as_str());
        let unique = unique(environment, module);
        let context = Context {
            compiler: &compiler,
            search: &search,
            root: &root,
            out: &out,
            cross,
            host,
            debug: environment
                .cargo("DEBUG")
                .is_some_and(|value| !["false", "0", "none"].contains(&value.as_str())),
            variables: &variables.join("\n"),
            unique: &unique,
            deferred: match module.register {
                Register::Auto => self.linked_by_us(),
                register => register == Register::Deferred,
            },
        };
        let (plan, targets) = openmp::plan(module, &context)?;
        Ok(Built {
            plan,
            targets,
            compiler,
            unique,
        })
    }

    /// Whether the last link is run by `offload-link` of this version, as far as Cargo says.
    fn linked_by_us(&self) -> bool {
        let Some(linker) = self.environment.cargo("RUSTC_LINKER") else {
            return false;
        };
        let stem = Path::new(&linker)
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        match stem.as_str() {
            "offload-link" | "offload-ld" => true,
            "cc" | "gcc" | "clang" | "ld" | "lld" | "rust-lld" | "mold" | "wild" => false,
            _ => {
                let answer = Command::new(linker).arg("--print-offload-abi").run();
                answer.is_ok_and(|answer| {
                    answer.stdout.trim() == concat!("offload-link ", env!("CARGO_PKG_VERSION"))
                })
            }
        }
    }

    fn out(&self) -> Result<PathBuf, Error> {
        Ok(PathBuf::from(self.environment.required("OUT_DIR")?))
    }

    fn choice(mut self, name: &'static str, value: &str) -> Result<Self, Error> {
        let form = settings::find(name).map_or(settings::Form::Text, |key| key.form);
        let method = name.replace('-', "_");
        let setting = form.check(Setting::Text(value.to_owned()));
        let setting =
            setting.map_err(|problem| Error::new(format_args!("Build::{method}: {problem}")));
        let setting = finish(&self.environment, setting)?;
        self.own.set(name, setting, format_args!("Build::{method}"));
        Ok(self)
    }

    fn text(mut self, name: &'static str, value: &str) -> Self {
        self.own.set(
            name,
            Setting::Text(value.to_owned()),
            format_args!("Build::{name}"),
        );
        self
    }

    fn list<S: Into<String>>(
        mut self,
        name: &'static str,
        values: impl IntoIterator<Item = S>,
    ) -> Self {
        list(&mut self.own, name, values);
        self
    }
}

impl TargetBuild {
    /// Defines a macro for this target; without a value when `value` is empty.
    #[must_use]
    pub fn define(mut self, name: &str, value: &str) -> Self {
        define(&mut self.0, name, value);
        self
    }

    /// Compiler options for this target, behind those of the module.
    #[must_use]
    pub fn flags<S: Into<String>>(mut self, flags: impl IntoIterator<Item = S>) -> Self {
        list(&mut self.0, "flags", flags);
        self
    }

    /// Patterns of sources that this target does without.
    #[must_use]
    pub fn exclude<S: Into<String>>(mut self, exclude: impl IntoIterator<Item = S>) -> Self {
        list(&mut self.0, "exclude", exclude);
        self
    }
}

fn define(settings: &mut Settings, name: &str, value: &str) {
    let map = [(name.to_owned(), value.to_owned())].into();
    settings.set("define", Setting::Map(map), "Build::define");
}

fn list<S: Into<String>>(
    settings: &mut Settings,
    name: &'static str,
    values: impl IntoIterator<Item = S>,
) {
    let values = values.into_iter().map(Into::into).collect();
    settings.set(name, Setting::List(values), format_args!("Build::{name}"));
}

/// A module that is ready to be built.
struct Built {
    plan: Plan,
    targets: Vec<Target>,
    compiler: Compiler,
    unique: String,
}

/// Gives Cargo the lines that it is owed, whatever the result, and the error as its own.
fn finish<T>(environment: &Environment, result: Result<T, Error>) -> Result<T, Error> {
    if let Err(error) = &result {
        environment.report("error", &error.to_string());
    }
    for line in environment.take_directives() {
        println!("{line}");
    }
    result.map_err(Error::reported)
}

/// The settings of each module: the manifest's layers, then the variables.
fn modules(environment: &Environment) -> Result<Vec<Settings>, Error> {
    let root = PathBuf::from(environment.required("CARGO_MANIFEST_DIR")?);
    let path = root.join("Cargo.toml");
    let text = std::fs::read_to_string(&path).map_err(error::io(&path))?;
    let workspace = workspace(&root)?;
    let profile = match environment.cargo("PROFILE").as_deref() {
        Some("release") => "release",
        _ => "dev",
    };
    let source = Source {
        file: "Cargo.toml",
        text: &text,
    };
    let above = workspace
        .as_ref()
        .map(|(path, text)| (path.display().to_string(), text));
    let above = above.as_ref().map(|(file, text)| Source { file, text });
    let mut modules = manifest::modules(source, above, profile).map_err(Error::new)?;
    environment.watch(&path);
    if let Some((path, _)) = &workspace {
        environment.watch(path);
    }
    for key in settings::KEYS.iter().filter(|key| key.name != "name") {
        let Some((variable, value)) = environment.setting(key.name) else {
            continue;
        };
        let setting = key
            .form
            .parse(&value)
            .map_err(|problem| Error::new(format_args!("{variable}: {problem}")))?;
        for module in &mut modules {
            module.set(key.name, setting.clone(), &variable);
        }
    }
    Ok(modules)
}

/// The manifest of the workspace that a package is in, if that is another one than its own.
fn workspace(root: &Path) -> Result<Option<(PathBuf, String)>, Error> {
    for folder in root.ancestors().skip(1) {
        let path = folder.join("Cargo.toml");
        if path.is_file() {
            let text = std::fs::read_to_string(&path).map_err(error::io(&path))?;
            if text
                .lines()
                .any(|line| line.trim_start().starts_with("[workspace"))
            {
                return Ok(Some((path, text)));
            }
        }
    }
    Ok(None)
}

fn host(target: &str) -> Result<Host, Error> {
    let linux = target.contains("-linux-");
    match target.split('-').next() {
        Some("x86_64") if linux => Ok(Host::X86_64),
        Some("aarch64") if linux => Ok(Host::AARCH64),
        _ => Err(Error::new(format_args!(
            "`{target}` is not supported as a host yet (x86_64 and aarch64 Linux are)"
        ))),
    }
}

/// A name that no other module in any program has: two versions of a package, and two modules of one,
/// may meet in one link. Cargo's folder for the package tells what the version alone does not.
fn unique(environment: &Environment, module: &Module) -> String {
    let package = environment
        .cargo("CARGO_PKG_NAME")
        .unwrap_or_default()
        .replace('-', "_");
    let out = environment.cargo("OUT_DIR").unwrap_or_default();
    let folders: Vec<_> = Path::new(&out).components().rev().skip(1).take(2).collect();
    let mut hash = Md5::new();
    hash.update(environment.cargo("CARGO_PKG_VERSION").unwrap_or_default());
    for folder in folders {
        hash.update("/");
        hash.update(folder.as_os_str().to_string_lossy().as_bytes());
    }
    let digest: String = hash
        .finalize()
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{package}_{}_{digest}", module.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_a_method_for_every_key() {
        let source = include_str!("builder.rs");
        let (build, target) = source.split_once("impl TargetBuild {").unwrap();
        for key in settings::KEYS {
            let method = format!("pub fn {}", key.name.replace('-', "_"));
            let has = |text: &str| {
                [format!("{method}("), format!("{method}<")]
                    .iter()
                    .any(|m| text.contains(m))
            };
            assert!(has(build), "Build has no method for `{}`", key.name);
            if key.per_target {
                assert!(has(target), "TargetBuild has no method for `{}`", key.name);
            }
        }
    }
}
