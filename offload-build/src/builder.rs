//! `Build`: the one type that a build script names.

use crate::plan::Plan;
use crate::run::{Run, finish};
use offload_build_core::declare::layers::{self, Declared};
use offload_build_core::declare::module::Target;
use offload_build_core::declare::settings::{self, Setting, Settings};
use offload_build_core::environment::Environment;
use offload_build_core::error::{BuildPart, Error};
use offload_build_core::installed::native;
use offload_formats::by_name::ByName;
use std::path::Path;

/// The device code of a package: read from its manifest, changed by the build script, then built.
///
/// ```no_run
/// fn main() -> Result<(), offload_build::Error> {
///     offload_build::Build::from_manifest()?.run()
/// }
/// ```
///
/// Every key of `[package.metadata.offload]` has a method of the same name. It overrides the manifest
/// and `OFFLOAD_*` variables, in every module.
#[derive(Debug)]
pub struct Build {
    environment: Environment,
    declared: Declared,
    /// Modules that [`Build::module`] added.
    added: Vec<Declared>,
}

/// Keys for one target, which [`Build::target`] edits.
#[derive(Debug, Default)]
pub struct TargetBuild(Settings);

impl Build {
    /// Reads what `[package.metadata.offload]` of this package declares.
    ///
    /// # Errors
    ///
    /// If this is not a build script, or the manifest or an `OFFLOAD_*` variable is invalid.
    pub fn from_manifest() -> Result<Self, Error> {
        Self::of(layers::settings)
    }

    /// Starts a module of `language` that the build script declares; the manifest needs no table for it.
    ///
    /// ```no_run
    /// fn main() -> Result<(), offload_build::Error> {
    ///     offload_build::Build::new("hip")?
    ///         .sources(["kernels/*.hip"])
    ///         .targets(["gfx90a", "gfx1100"])?
    ///         .run()
    /// }
    /// ```
    ///
    /// `OFFLOAD_*` variables apply to it as to any module.
    ///
    /// # Errors
    ///
    /// If this is not a build script, the language is unknown or an `OFFLOAD_*` variable is invalid.
    pub fn new(language: &str) -> Result<Self, Error> {
        Self::of(|environment| layers::declared_in_code(environment, language))
    }

    fn of(
        settings: impl FnOnce(&Environment) -> Result<Vec<Settings>, Error>,
    ) -> Result<Self, Error> {
        let environment = Environment::of_process();
        check_rust_version(&environment).map_err(BuildPart::Declaration.coded())?;
        let modules = settings(&environment).map_err(BuildPart::Declaration.coded())?;
        let own = Settings::default();
        Ok(Self {
            environment,
            declared: Declared { modules, own },
            added: Vec::new(),
        })
    }

    /// Adds the modules of `other`, with their own settings: methods of `self` do not change them.
    ///
    /// A build script calls [`Build::run`] once, for all of its modules; each needs a [`name`](Build::name).
    ///
    /// ```no_run
    /// # fn main() -> Result<(), offload_build::Error> {
    /// use offload_build::Build;
    ///
    /// let generated = std::env::var("OUT_DIR").unwrap_or_default() + "/attention.hip";
    /// // … write that file …
    /// let attention = Build::new("hip")?.name("attention").sources([generated]).targets(["gfx942"])?;
    /// Build::from_manifest()?.module(attention).run()
    /// # }
    /// ```
    #[must_use]
    pub fn module(mut self, other: Self) -> Self {
        self.environment.adopt(&other.environment);
        self.added.push(other.declared);
        self.added.extend(other.added);
        self
    }

    /// Sets the language of the sources: `openmp`, `hip`, `cuda`, `bitcode`, `rust` or `prebuilt`.
    ///
    /// # Errors
    ///
    /// If the language is unknown.
    pub fn language(self, language: &str) -> Result<Self, Error> {
        self.choice("language", language)
    }

    /// Sets the sources: paths and patterns, relative to the package.
    #[must_use]
    pub fn sources<P: AsRef<Path>>(mut self, sources: impl IntoIterator<Item = P>) -> Self {
        paths(&mut self.declared.own, "sources", sources);
        self
    }

    /// Sets the folder of a crate of kernels in Rust, relative to the package: the key `crate`.
    #[must_use]
    pub fn kernel_crate(mut self, folder: &str) -> Self {
        let folder = Setting::Text(folder.to_owned());
        self.declared
            .own
            .set("crate", folder, "Build::kernel_crate");
        self
    }

    /// Sets the Cargo features of the crate of kernels.
    #[must_use]
    pub fn features<S: Into<String>>(self, features: impl IntoIterator<Item = S>) -> Self {
        self.list("features", features)
    }

    /// Selects whether the crate of kernels has its default features.
    #[must_use]
    pub fn default_features(mut self, has: bool) -> Self {
        let has = Setting::Flag(has);
        self.declared
            .own
            .set("default-features", has, "Build::default_features");
        self
    }

    /// Replaces the targets: processors (`gfx90a:xnack-`, `sm_80`), PTX (`compute_80`), triples of CPU devices, and `native`,
    /// the GPUs of this machine.
    ///
    /// # Errors
    ///
    /// If a target is invalid; the error names the first one.
    pub fn targets<S: Into<String>>(
        self,
        targets: impl IntoIterator<Item = S>,
    ) -> Result<Self, Error> {
        let targets: Vec<String> = targets.into_iter().map(Into::into).collect();
        for target in targets.iter().filter(|target| *target != native::NAME) {
            Target::parse(target)
                .map_err(|problem| Error::new(format_args!("Build::targets: {problem}")))
                .map_err(BuildPart::Declaration.coded())?;
        }
        Ok(self.list("targets", targets))
    }

    /// Folders that `#include` searches, relative to the package.
    #[must_use]
    pub fn include<P: AsRef<Path>>(mut self, include: impl IntoIterator<Item = P>) -> Self {
        paths(&mut self.declared.own, "include", include);
        self
    }

    /// Defines a macro. If `value` is empty, the macro is defined as nothing.
    #[must_use]
    pub fn define(mut self, name: &str, value: &str) -> Self {
        define(&mut self.declared.own, name, value);
        self
    }

    /// Replaces the compiler options, which are passed as spelled.
    #[must_use]
    pub fn flags<S: Into<String>>(self, flags: impl IntoIterator<Item = S>) -> Self {
        self.list("flags", flags)
    }

    /// Sets the optimization level of host and device code: `0`, `1`, `2`, `3`, `s` or `z`. The default is 3 for device code
    /// and Cargo's level for host code.
    ///
    /// # Errors
    ///
    /// If the level is invalid.
    pub fn opt_level(self, level: &str) -> Result<Self, Error> {
        self.choice("opt-level", level)
    }

    /// Sets the language standard, such as `c11` or `c++20`.
    #[must_use]
    pub fn std(self, std: &str) -> Self {
        self.text("std", std)
    }

    /// Lets sources call device functions of other sources; without it, each file's functions are private.
    #[must_use]
    pub fn rdc(mut self, rdc: bool) -> Self {
        self.declared
            .own
            .set("rdc", Setting::Flag(rdc), "Build::rdc");
        self
    }

    /// Selects the sources of an image: with `module`, each target has one image of all sources. With `source`, each source has
    /// images of its own, and a Rust module in the generated file.
    ///
    /// # Errors
    ///
    /// If the choice is unknown.
    pub fn images(self, images: &str) -> Result<Self, Error> {
        self.choice("images", images)
    }

    /// Compiles host code of HIP or CUDA sources, too: functions that launch kernels, and kernels that are
    /// registered when the program starts.
    #[must_use]
    pub fn host(mut self, host: bool) -> Self {
        self.declared
            .own
            .set("host", Setting::Flag(host), "Build::host");
        self
    }

    /// Selects CUDA's runtime library in programs with host code: `shared`, `static`, or `none` if something else links one.
    ///
    /// # Errors
    ///
    /// If the value is none of these.
    pub fn cudart(self, cudart: &str) -> Result<Self, Error> {
        self.choice("cudart", cudart)
    }

    /// Patterns of sources to leave out.
    #[must_use]
    pub fn exclude<S: Into<String>>(self, exclude: impl IntoIterator<Item = S>) -> Self {
        self.list("exclude", exclude)
    }

    /// Patterns of kernels that some targets may lack.
    #[must_use]
    pub fn optional_kernels<S: Into<String>>(
        mut self,
        kernels: impl IntoIterator<Item = S>,
    ) -> Self {
        optional_kernels(&mut self.declared.own, kernels);
        self
    }

    /// Libraries of device code to link: archives of bundles or of one target, by path.
    #[must_use]
    pub fn archives<P: AsRef<Path>>(mut self, archives: impl IntoIterator<Item = P>) -> Self {
        paths(&mut self.declared.own, "archives", archives);
        self
    }

    /// Libraries of device code to link, by name: looked for in `LIBRARY_PATH` and the package.
    #[must_use]
    pub fn link<S: Into<String>>(self, link: impl IntoIterator<Item = S>) -> Self {
        self.list("link", link)
    }

    /// Selects libraries that the module also makes: `hda`, an archive of bundles, and `device-archive`, an
    /// archive for each target.
    #[must_use]
    pub fn artifact<S: Into<String>>(self, artifact: impl IntoIterator<Item = S>) -> Self {
        self.list("artifact", artifact)
    }

    /// Packs all images in a container: `bundle` (HIP), `fatbin` (CUDA), `offload-binary`, or `raw`, none.
    ///
    /// # Errors
    ///
    /// If the value is none of these.
    pub fn container(self, container: &str) -> Result<Self, Error> {
        self.choice("container", container)
    }

    /// Compresses the images in a bundle or a CUDA fat binary: `zstd`, `zlib`, either with a level (`zstd:19`), `lz4`, or
    /// `none`.
    #[must_use]
    pub fn compress(self, compress: &str) -> Self {
        self.text("compress", compress)
    }

    /// Selects how Rust gets the images of a module without host code: by `link`, from an object in a static library, by
    /// `include`, which needs no unsafe code, or `auto`.
    ///
    /// # Errors
    ///
    /// If the value is none of these.
    pub fn embed(self, embed: &str) -> Result<Self, Error> {
        self.choice("embed", embed)
    }

    /// Sets the device compiler, by path or name.
    #[must_use]
    pub fn compiler(self, compiler: &str) -> Self {
        self.text("compiler", compiler)
    }

    /// Starts compiles with a launcher: `ccache`, `sccache`, another program with arguments, or `none`.
    #[must_use]
    pub fn launcher(self, launcher: &str) -> Self {
        self.text("launcher", launcher)
    }

    /// Selects who registers the images: `complete`, `deferred`, `none`, or `auto`.
    ///
    /// # Errors
    ///
    /// If the value is none of these.
    pub fn register(self, register: &str) -> Result<Self, Error> {
        self.choice("register", register)
    }

    /// Selects what to do when a target's tools are missing: `error`, `skip` the target, or `stub` if no image is left.
    ///
    /// # Errors
    ///
    /// If the value is none of these.
    pub fn missing(self, missing: &str) -> Result<Self, Error> {
        self.choice("missing", missing)
    }

    /// Sets the Cargo feature without which the module is not built.
    #[must_use]
    pub fn feature(self, feature: &str) -> Self {
        self.text("feature", feature)
    }

    /// Sets the name of the module, and of the file `$OUT_DIR/<name>.rs` that Rust includes. Default: `kernels`.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        self.text("name", name)
    }

    /// Edits the keys of one target.
    #[must_use]
    pub fn target(mut self, target: &str, edit: impl FnOnce(TargetBuild) -> TargetBuild) -> Self {
        let settings = self.declared.own.targets.remove(target).unwrap_or_default();
        let edited = edit(TargetBuild(settings)).0;
        self.declared.own.targets.insert(target.to_owned(), edited);
        self
    }

    /// Returns everything that [`Build::run`] would do; its `Display` is the dry run. Variables that the build script has set since
    /// `self` was made count only in [`Build::run`].
    ///
    /// # Errors
    ///
    /// If a setting is invalid or a compiler is missing.
    pub fn plan(&self) -> Result<Plan, Error> {
        self.checked()?.plan()
    }

    /// Compiles, packs, embeds, registers, and tells Cargo what to link and what to watch. Writes `$OUT_DIR/<name>.rs` for
    /// `include!`; the [crate's page](crate) lists its items.
    ///
    /// With `OFFLOAD_DRY_RUN=1` it prints the plan and fails instead.
    ///
    /// # Errors
    ///
    /// If any step fails. Return the error from `main`, and Cargo prints it. Files of earlier builds stay complete.
    pub fn run(mut self) -> Result<(), Error> {
        self.environment.update();
        finish(
            &self.environment,
            self.checked().and_then(|run| run.execute()),
        )
    }

    fn checked(&self) -> Result<Run<'_>, Error> {
        self.check_paths()
            .and_then(|()| Run::new(&self.environment, self.declared()))
            .map_err(BuildPart::Declaration.coded())
    }

    /// Fails if a path from code is not UTF-8.
    fn check_paths(&self) -> Result<(), Error> {
        let of = |own: &Settings| {
            let targets = own.targets.values();
            let mut all = [own].into_iter().chain(targets);
            all.find_map(|settings| settings.invalid_path.clone())
        };
        let invalid = self.declared().find_map(|declared| of(&declared.own));
        invalid.map_or(Ok(()), |problem| Err(Error::new(problem)))
    }

    fn declared(&self) -> impl Iterator<Item = &Declared> {
        [&self.declared].into_iter().chain(&self.added)
    }

    fn choice(mut self, name: &'static str, value: &str) -> Result<Self, Error> {
        let form = settings::find(name).map_or(settings::Form::Text, |key| key.form);
        let method = name.replace('-', "_");
        let setting = form.check(Setting::Text(value.to_owned()));
        let setting = setting
            .map_err(|problem| Error::new(format_args!("Build::{method}: {problem}")))
            .map_err(BuildPart::Declaration.coded())?;
        self.declared
            .own
            .set(name, setting, format_args!("Build::{method}"));
        Ok(self)
    }

    fn text(mut self, name: &'static str, value: &str) -> Self {
        self.declared.own.set(
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
        list(&mut self.declared.own, name, values);
        self
    }
}

impl TargetBuild {
    /// Defines a macro for this target. If `value` is empty, the macro is defined as nothing.
    #[must_use]
    pub fn define(mut self, name: &str, value: &str) -> Self {
        define(&mut self.0, name, value);
        self
    }

    /// Sets compiler options for this target, after those of the module.
    #[must_use]
    pub fn flags<S: Into<String>>(mut self, flags: impl IntoIterator<Item = S>) -> Self {
        list(&mut self.0, "flags", flags);
        self
    }

    /// Sets patterns of sources to leave out for this target.
    #[must_use]
    pub fn exclude<S: Into<String>>(mut self, exclude: impl IntoIterator<Item = S>) -> Self {
        list(&mut self.0, "exclude", exclude);
        self
    }

    /// Patterns of kernels that this target may lack.
    #[must_use]
    pub fn optional_kernels<S: Into<String>>(
        mut self,
        kernels: impl IntoIterator<Item = S>,
    ) -> Self {
        optional_kernels(&mut self.0, kernels);
        self
    }

    /// Libraries of device code for this target, after those of the module, by path.
    #[must_use]
    pub fn archives<P: AsRef<Path>>(mut self, archives: impl IntoIterator<Item = P>) -> Self {
        paths(&mut self.0, "archives", archives);
        self
    }

    /// Libraries of device code for this target, after those of the module, by name.
    #[must_use]
    pub fn link<S: Into<String>>(mut self, link: impl IntoIterator<Item = S>) -> Self {
        list(&mut self.0, "link", link);
        self
    }
}

fn define(settings: &mut Settings, name: &str, value: &str) {
    let mut map = ByName::default();
    map.insert(name.to_owned(), Some(value.to_owned()));
    settings.set("define", Setting::Map(map), "Build::define");
}

fn optional_kernels<S: Into<String>>(
    settings: &mut Settings,
    kernels: impl IntoIterator<Item = S>,
) {
    let kernels = kernels.into_iter().map(Into::into).collect();
    let method = "Build::optional_kernels";
    settings.set("optional-kernels", Setting::List(kernels), method);
}

/// Sets a list of paths, as the manifest spells them: in UTF-8.
fn paths<P: AsRef<Path>>(
    settings: &mut Settings,
    name: &'static str,
    paths: impl IntoIterator<Item = P>,
) {
    let mut texts = Vec::new();
    for path in paths {
        let path = path.as_ref();
        match path.to_str() {
            Some(text) => texts.push(text.to_owned()),
            None => {
                let problem = || format!("Build::{name}: expected a path in UTF-8, found {path:?}");
                settings.invalid_path.get_or_insert_with(problem);
            }
        }
    }
    list(settings, name, texts);
}

fn list<S: Into<String>>(
    settings: &mut Settings,
    name: &'static str,
    values: impl IntoIterator<Item = S>,
) {
    let values = values.into_iter().map(Into::into).collect();
    settings.set(name, Setting::List(values), format_args!("Build::{name}"));
}

/// Checks that Cargo reads the lines of this crate from the build script: they need `rust-version` 1.77 in the manifest.
fn check_rust_version(environment: &Environment) -> Result<(), Error> {
    let version = environment
        .cargo("CARGO_PKG_RUST_VERSION")
        .unwrap_or_default();
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    let known = parts.next().flatten().zip(parts.next().flatten());
    match known.is_some_and(|known| known < (1, 77)) {
        true => Err(Error::new(format_args!(
            "`rust-version = \"{version}\"` in Cargo.toml: Cargo refuses the output of `offload-build` below 1.77\n\
             hint: set it to {} or newer, which `offload-build` needs",
            env!("CARGO_PKG_RUST_VERSION")
        ))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_kernels_that_one_target_may_lack() {
        let target = TargetBuild::default().optional_kernels(["wmma_*"]);
        assert_eq!(target.0.list("optional-kernels"), ["wmma_*"]);
        assert_eq!(
            target.0.origin("optional-kernels"),
            "Build::optional_kernels"
        );
    }

    #[cfg(unix)]
    #[test]
    fn rejects_paths_that_are_not_utf_8() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;

        let invalid = [Path::new(OsStr::from_bytes(b"k/\xff.ptx"))];
        let build = || Build {
            environment: Environment::new(Vec::new()),
            declared: Declared {
                modules: vec![Settings::default()],
                own: Settings::default(),
            },
            added: Vec::new(),
        };
        type Edit = fn(Build, [&Path; 1]) -> Build;
        let edits: [(&str, Edit); 4] = [
            ("sources", |build, path| build.sources(path)),
            ("include", |build, path| build.include(path)),
            ("archives", |build, path| build.archives(path)),
            ("archives", |build, path| {
                build.target("sm_90", |target| target.archives(path))
            }),
        ];
        for (name, edit) in edits {
            let expected =
                format!("Build::{name}: expected a path in UTF-8, found \"k/\\xFF.ptx\"");
            for build in [
                edit(build(), invalid),
                build().module(edit(build(), invalid)),
            ] {
                assert_eq!(build.check_paths().unwrap_err().to_string(), expected);
                let planned = build.plan().unwrap_err().to_string();
                assert_eq!(planned, format!("{expected} [OFF500]"));
            }
            assert!(edit(build(), [Path::new("k/a.ptx")]).check_paths().is_ok());
        }
    }

    #[test]
    fn has_a_method_for_every_key() {
        let source = include_str!("builder.rs");
        let (build, target) = source.split_once("impl TargetBuild {").unwrap();
        for key in settings::KEYS {
            let name = match key.name {
                // A word of Rust.
                "crate" => "kernel_crate",
                name => name,
            };
            let method = format!("pub fn {}", name.replace('-', "_"));
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
