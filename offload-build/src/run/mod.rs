//! From settings to a finished build: modules checked, planned, executed, and Cargo told about it.

mod execute;
mod former_modules;
mod link;
pub(crate) mod modules;
pub(crate) mod prepare;
mod progress;
mod record;
mod runtimes;
mod stub;
mod system_compiler;
mod unique;
mod unused_flags;

use crate::messages;
use crate::out_dir::{ARTIFACTS, module_folder};
use crate::plan::{Plan, check_artifact_names, sorted};
use crate::steps::digests::Digests;
use crate::steps::step::Made;
use execute::{Outcome, ended_before, execute};
use link::tell_what_to_link;
use offload_build_core::declare::language::Language;
use offload_build_core::declare::layers::Declared;
use offload_build_core::declare::module::{Missing, Module, Target};
use offload_build_core::declare::skipped;
use offload_build_core::environment::Environment;
use offload_build_core::error::{self, BuildPart, Error};
use offload_build_core::files;
use offload_build_core::installed::native::Native;
use offload_build_core::process::jobserver::Jobs;
use offload_build_core::process::lock::ProcessLock;
use offload_build_core::process::parent::Parent;
use prepare::{Prepared, prepare};
use progress::Progress;
use record::Record;
use runtimes::RuntimeFolder;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use unused_flags::unused_flags;

/// One build of the modules of a package.
pub(crate) struct Run<'a> {
    environment: &'a Environment,
    modules: Vec<Module>,
    /// Names that code may ask for by `cfg`.
    cfg_names: BTreeSet<String>,
    out: PathBuf,
    cargo: Parent,
}

impl<'a> Run<'a> {
    /// Checks the settings of each module; modules of features that are off are left out.
    pub(crate) fn new<'d>(
        environment: &'a Environment,
        declared: impl Iterator<Item = &'d Declared>,
    ) -> Result<Self, Error> {
        let mut checked: Vec<Module> = Vec::new();
        let mut cfg_names = BTreeSet::new();
        let native = Native::new(environment);
        for settings in modules::effective(environment, declared)? {
            // A variable may add a target that only a table names.
            let tables = settings.targets.names();
            let listed = settings.listed.iter().chain(&settings.in_profiles);
            let named = listed.map(String::as_str).chain(tables);
            cfg_names.extend(named.filter_map(|text| Some(Target::parse(text).ok()?.cfg_name())));
            if Module::is_off(&settings, environment) {
                continue;
            }
            let module = modules::checked(settings.clone(), environment, &native)?;
            cfg_names.extend(module.targets.iter().map(Target::cfg_name));
            if checked.iter().any(|other| other.name == module.name) {
                let problem = format!(
                    "two modules are named `{}`: give each another `name`",
                    module.name
                );
                return Err(match settings.entry("name") {
                    Some(_) => settings.error_at("name", problem),
                    None => Error::new(problem),
                });
            }
            check_artifact_names(&module, &checked)?;
            checked.push(module);
        }
        modules::warn_of_other_targets(&mut checked);
        let out = PathBuf::from(environment.required("OUT_DIR")?);
        check_out_dir(&out)?;
        Ok(Self {
            environment,
            modules: checked,
            cfg_names,
            out,
            cargo: Parent::now(),
        })
    }

    /// Everything that [`Run::execute`] would do.
    pub(crate) fn plan(&self) -> Result<Plan, Error> {
        let mut plan = Plan::default();
        for module in &self.modules {
            let built = self.prepare(module);
            let built = built.map_err(|error| module.explained(error))?;
            plan.stages.extend(built.plan.stages);
            plan.skipped.extend(built.plan.skipped);
        }
        Ok(plan)
    }

    /// Builds every module, or what stands for it, and records what Cargo must know.
    pub(crate) fn execute(&self) -> Result<(), Error> {
        former_modules::once(&self.out, || self.build_all())
    }

    /// Takes the lock of the output folder.
    ///
    /// A build script outlives a Cargo that is killed, and starts no further step. Cargo may start the next one in the same folder:
    /// that waits until the first has ended. Without locks, on other systems than Linux, it does not.
    fn lock(&self) -> Result<Option<ProcessLock>, Error> {
        let lock = ProcessLock::wait(&self.out).ok();
        match self.cargo.has_ended() {
            true => Err(ended_before()),
            false => Ok(lock),
        }
    }

    fn build_all(&self) -> Result<(), Error> {
        let environment = self.environment;
        let dry_run = environment.variable("OFFLOAD_DRY_RUN");
        if let Some(dry_run) = dry_run.filter(|value| value != "0") {
            let plan = self.plan()?.to_string();
            let outcome = match Path::new(&dry_run).is_absolute() {
                true => {
                    let file = self.write_plan(Path::new(&dry_run), &plan)?;
                    format!("written to `{}`", file.display())
                }
                false => {
                    eprint!("{plan}");
                    "printed".to_owned()
                }
            };
            // Without a failure Cargo would compile what was not built.
            return Err(Error::new(format_args!(
                "OFFLOAD_DRY_RUN is set: the plan was {outcome}, and nothing was built"
            )));
        }
        let _lock = self.lock()?;
        // Cargo would run it again each time if a path did not exist; it watches the build script's sources itself.
        let folder = PathBuf::from(environment.required("CARGO_MANIFEST_DIR")?);
        if folder.join("build.rs").is_file() {
            environment.tell("rerun-if-changed", "build.rs");
        }
        environment.tell("rustc-check-cfg", "cfg(offload_stub)");
        for name in &self.cfg_names {
            environment.tell("rustc-check-cfg", format_args!("cfg({name})"));
        }
        former_modules::remove(&self.out, &self.modules)?;
        let record = self.out.join(record::FILE);
        files::remove(&record).map_err(error::io(&record))?;
        let digests = self.out.join("offload/digests.txt");
        let digests = Digests::kept_in(digests);
        let (mut finished, mut made) = (Vec::new(), Vec::new());
        for module in &self.modules {
            if let Some((prepared, files)) = self.finish(module, &digests)? {
                made.push(files);
                finished.push((module, prepared));
            }
        }
        digests.keep()?;
        let plans = finished.iter().map(|(_, built)| &built.plan);
        let artifacts = plans.flat_map(Plan::artifacts);
        clean_artifacts(&self.out, &artifacts.collect::<Vec<_>>())?;
        let mut runtimes = RuntimeFolder::below(&self.out);
        tell_what_to_link(environment, &self.out, &finished, &mut runtimes)?;
        runtimes.remove_others()?;
        let Some((_, first)) = finished.first() else {
            return Ok(());
        };
        let mut records = Vec::new();
        for ((module, built), made) in finished.iter().zip(&made) {
            records.push(Record {
                module,
                registration: built.registration,
                compiler: built.machine.as_ref().map(|machine| &machine.compiler),
                libraries: link::libraries(module, built),
                library_folder: link::runtime(module, built)
                    .and_then(|runtime| runtime.folder.as_deref().ok()),
                targets: &built.targets,
                skipped: &built.plan.skipped,
                made,
            });
        }
        let variable = |name| self.environment.cargo(name).unwrap_or_default();
        let package = record::RecordedPackage {
            name: &variable("CARGO_PKG_NAME"),
            version: &variable("CARGO_PKG_VERSION"),
            folder: &variable("CARGO_MANIFEST_DIR"),
        };
        let text = record::text(&package, &first.host, &records);
        files::write(&record, text.as_bytes()).map_err(error::io(&record))
    }

    /// Builds a module, or what stands for it: then nothing is returned.
    fn finish(
        &self,
        module: &Module,
        digests: &Digests,
    ) -> Result<Option<(Prepared, Vec<Made>)>, Error> {
        let (environment, out) = (self.environment, self.out.as_path());
        for text in &module.warnings {
            environment.report("warning", text);
        }
        for text in stub::host_code_left_out(module, &self.modules)? {
            environment.report("warning", &text);
        }
        if environment.variable("DOCS_RS").is_some() {
            let reason = "documentation is built without device code";
            former_modules::add(out, module)?;
            stub::build(module, environment, out, reason)?;
            return Ok(None);
        }
        match self.prepare(module) {
            Ok(prepared) => {
                former_modules::add(out, module)?;
                let made = self.build(module, &prepared, digests);
                let made = made.map_err(|error| module.explained(error))?;
                Ok(Some((prepared, made)))
            }
            Err(error) if error.is_missing() && module.missing == Missing::Stub => {
                let text = error.to_string();
                let effect = stub::effect(module);
                environment.report(
                    "warning",
                    &format!("{text}\nnote: the module is built without device code: {effect}"),
                );
                let reason = text.lines().next().unwrap_or_default();
                former_modules::add(out, module)?;
                stub::build(module, environment, out, reason)?;
                environment.look_again(out);
                Ok(None)
            }
            Err(error) => Err(module.explained(error)),
        }
    }

    fn build(
        &self,
        module: &Module,
        built: &Prepared,
        digests: &Digests,
    ) -> Result<Vec<Made>, Error> {
        let environment = self.environment;
        for text in skipped::warnings(module, &built.plan.skipped) {
            environment.report("warning", &text);
        }
        let machine = built.machine.as_ref();
        if let Some(text) = machine.and_then(|machine| unused_flags(module, machine, &built.host)) {
            environment.report("warning", &text);
        }
        if !built.plan.skipped.is_empty() {
            environment.look_again(&self.out);
        }
        let count = environment
            .cargo("NUM_JOBS")
            .and_then(|count| count.parse().ok())
            .unwrap_or(1);
        let jobs = Jobs::new(environment.cargo("CARGO_MAKEFLAGS").as_deref(), count);
        let steps = built.plan.stages.iter().flatten();
        let steps = steps.filter(|planned| !planned.step.commands().is_empty());
        let progress = Progress::new(environment, &module.name, steps.count());
        let folder = module_folder(&self.out, &module.name);
        let outcome = execute(&built.plan, &jobs, &progress, digests, self.cargo);
        let outcome = outcome.map_err(|error| {
            let file = folder.join("errors.txt");
            let error = BuildPart::Steps.coded()(Error::new(messages::shortened(
                &error.to_string(),
                &file,
            )));
            built.explained(module, error)
        })?;
        let Outcome {
            warnings,
            made,
            variables,
        } = outcome;
        for name in &variables {
            environment.variable(name);
        }
        let warnings = warnings.into_iter();
        let warnings: String = warnings
            .map(|(title, text)| format!("{title}:\n{text}"))
            .collect();
        let file = folder.join("warnings.txt");
        environment.report("warning", &messages::shortened(&warnings, &file));
        // The compiler's own headers change with it. Not all of its prefix: in `/usr` there are packages, too.
        let compiler = built.machine.as_ref().map(|machine| &machine.compiler);
        let reads = reads(module, &made);
        let headers = compiler.map(|compiler| compiler.headers(reads.iter().copied()));
        let headers = headers.unwrap_or_default();
        let is_compilers = |path: &Path| headers.iter().any(|headers| path.starts_with(headers));
        // This build wrote its outputs after the build script started, so Cargo would run the script again.
        let outputs = made.iter().flat_map(|made| &made.outputs);
        let outputs = sorted(outputs.map(PathBuf::as_path));
        let is_made = |path: &&Path| outputs.binary_search(path).is_ok();
        let is_own = |path: &&Path| path.starts_with(&self.out) || is_made(path);
        for path in reads.into_iter().filter(|path| !is_own(path)) {
            if !is_compilers(path) {
                environment.watch(path);
            }
        }
        module
            .watched
            .iter()
            .for_each(|folder| environment.watch(folder));
        if let Some(compiler) = compiler {
            environment.watch(&compiler.program);
            let behind = compiler.behind.iter();
            behind.for_each(|program| environment.watch(program));
        }
        let programs = built.plan.programs();
        programs.for_each(|program| environment.watch(program));
        Ok(made)
    }

    fn prepare(&self, module: &Module) -> Result<Prepared, Error> {
        prepare(module, self.modules.len(), self.environment, &self.out)
            .map_err(BuildPart::Declaration.coded())
    }

    /// Writes a plan to a file of the package in `folder`, for `cargo offload plan`, and returns the file.
    fn write_plan(&self, folder: &Path, plan: &str) -> Result<PathBuf, Error> {
        let names = ["CARGO_PKG_NAME", "CARGO_PKG_VERSION"];
        let name = names.map(|name| self.environment.cargo(name).unwrap_or_default());
        let path = folder.join(name.join(" "));
        fs::create_dir_all(folder).map_err(error::io(folder))?;
        fs::write(&path, plan).map_err(error::io(&path))?;
        Ok(path)
    }
}

/// Prints the directives for Cargo.
///
/// If a build script fails, Cargo reads only warnings, and prints all lines again before the error.
pub(crate) fn finish<T>(environment: &Environment, result: Result<T, Error>) -> Result<T, Error> {
    for line in environment.take_directives() {
        if result.is_ok() || line.starts_with("cargo::warning=") {
            println!("{line}");
        }
    }
    result
}

/// Removes the libraries that an earlier build left, and that `artifacts` does not name.
fn clean_artifacts(out: &Path, artifacts: &[&Path]) -> Result<(), Error> {
    let folder = out.join(ARTIFACTS);
    let files = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        files => files.map_err(error::io(&folder))?,
    };
    for file in files {
        let path = file.map_err(error::io(&folder))?.path();
        if !artifacts.contains(&path.as_path()) {
            fs::remove_file(&path).map_err(error::io(&path))?;
        }
    }
    Ok(())
}

/// Checks that Cargo can be told of files in this folder.
fn check_out_dir(out: &Path) -> Result<(), Error> {
    match out.to_string_lossy().contains('\n') {
        true => Err(Error::new(format_args!(
            "OUT_DIR: {out:?} has a line break, which ends a line of the build script's output for Cargo\n\
             hint: name another folder with CARGO_TARGET_DIR, or move the package"
        ))),
        false => Ok(()),
    }
}

/// Lists the files that the steps of a module read, and the sources of prebuilt images: one that has none for a target today may
/// get one.
fn reads<'a>(module: &'a Module, made: &'a [Made]) -> Vec<&'a Path> {
    let unused: &[PathBuf] = match module.language {
        Language::Prebuilt => &module.sources,
        _ => &[],
    };
    let inputs = made.iter().flat_map(|made| &made.inputs).chain(unused);
    sorted(inputs.map(PathBuf::as_path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use offload_build_core::declare::settings::{Setting, Settings};

    #[test]
    fn reads_variables_of_others_for_the_language_that_the_build_script_says() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("k.cu"), "").unwrap();
        let root = folder.path().display().to_string();
        let variables = [
            ("CARGO_MANIFEST_DIR", &*root),
            ("OUT_DIR", "/out"),
            ("GPU_TARGETS", "gfx942"),
            ("CUDAARCHS", "90-real"),
        ];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let environment = Environment::new(variables.into());
        let mut module = Settings::default();
        let list = |text: &str| Setting::List(vec![text.into()]);
        module.set("language", Setting::Text("hip".into()), "Cargo.toml");
        module.set("sources", list("k.cu"), "Cargo.toml");
        module.set("targets", list("gfx90a"), "Cargo.toml");
        let mut own = Settings::default();
        let targets = |own: &Settings| {
            let declared = Declared {
                modules: vec![module.clone()],
                own: own.clone(),
            };
            let run = Run::new(&environment, [&declared].into_iter()).unwrap();
            run.modules[0].targets[0].written.clone()
        };
        assert_eq!(targets(&own), "gfx942");
        own.set("language", Setting::Text("cuda".into()), "Build::language");
        assert_eq!(targets(&own), "sm_90");
        own.set("targets", list("sm_80"), "Build::targets");
        assert_eq!(targets(&own), "sm_80");
    }

    #[test]
    fn refuses_a_folder_whose_name_has_a_line_break() {
        assert!(check_out_dir(Path::new("/a b\\n\t/out")).is_ok());
        let error = check_out_dir(Path::new("/a\nb/out")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "OUT_DIR: \"/a\\nb/out\" has a line break, which ends a line of the build script's output for Cargo\n\
             hint: name another folder with CARGO_TARGET_DIR, or move the package"
        );
    }

    #[test]
    fn refuses_libraries_of_one_name_from_two_modules() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("k.ll"), "").unwrap();
        let root = folder.path().display().to_string();
        let variables = [
            ("CARGO_MANIFEST_DIR", &*root),
            ("CARGO_PKG_NAME", "math"),
            ("OUT_DIR", "/out"),
        ];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let environment = Environment::new(variables.into());
        let refused = |name: &str, target: &str| {
            let mut unnamed = Settings::default();
            let mut set = |key, value: Setting| unnamed.set(key, value, "Cargo.toml");
            let list = |text: &str| Setting::List(vec![text.into()]);
            set("language", Setting::Text("bitcode".into()));
            set("sources", list("k.ll"));
            set("targets", list("gfx90a"));
            set("artifact", list("device-archive"));
            let mut named = unnamed.clone();
            named.set("name", Setting::Text(name.into()), "Cargo.toml");
            named.set("targets", list(target), "Cargo.toml");
            let declared = Declared {
                modules: vec![unnamed, named],
                own: Settings::default(),
            };
            let run = Run::new(&environment, [&declared].into_iter());
            run.err().map(|error| error.to_string())
        };
        let expected = "modules `kernels` and `math` make a library `libbc-math-amdgcn-gfx90a.a`\n\
            hint: the key `name` of a module names its libraries";
        assert_eq!(refused("math", "gfx90a").as_deref(), Some(expected));
        assert_eq!(refused("math", "gfx942"), None);
        let same = "Cargo.toml: two modules are named `kernels`: give each another `name`";
        assert_eq!(refused("kernels", "gfx942").as_deref(), Some(same));
        assert_eq!(refused("more", "gfx90a"), None);
    }
}
