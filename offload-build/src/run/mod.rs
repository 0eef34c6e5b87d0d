//! From settings to a finished build: modules checked, planned, executed, and Cargo told about it.

mod record;
mod stub;

use crate::builder::Declared;
use crate::declare::aliases;
use crate::declare::effect;
use crate::declare::family::Family;
use crate::declare::language::Language;
use crate::declare::module::{Missing, Module, Register, Target};
use crate::declare::settings::Reach;
use crate::declare::skipped::{self, Skipped};
use crate::environment::Environment;
use crate::error;
use crate::error::Error;
use crate::files;
use crate::generate::{Content, HostFile};
use crate::installed::answers::Answers;
use crate::installed::compilers::Compiler;
use crate::installed::host::Host;
use crate::installed::native::Native;
use crate::installed::runtimes::Runtime;
use crate::messages;
use crate::plan::artifacts;
use crate::plan::context::{self, Context};
use crate::plan::device_only;
use crate::plan::hosted;
use crate::plan::prebuilt;
use crate::plan::stages::{Made, Outcome, Plan};
use crate::process::command::Command;
use crate::process::jobserver::Jobs;
use crate::process::launcher::Launcher;
use crate::process::search::Search;
use md5::{Digest, Md5};
use record::Record;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Folders in which the loader looks anyway.
const LOADER_FOLDERS: [&str; 3] = ["/lib", "/usr/lib", "/usr/lib64"];

/// One build of the modules of a package.
pub(crate) struct Run<'a> {
    environment: &'a Environment,
    modules: Vec<Module>,
    /// Names of modules whose feature is off.
    off: Vec<String>,
    /// Names that code may ask for by `cfg`.
    cfg_names: BTreeSet<String>,
    out: PathBuf,
}

/// A module that is ready to be built.
struct Built {
    plan: Plan,
    answers: Answers,
    targets: Vec<Target>,
    /// None where nothing is compiled.
    compiler: Option<Compiler>,
    /// None where no host code calls any.
    runtime: Option<Runtime>,
    host: Host,
    unique: String,
    deferred: bool,
}

impl Built {
    /// With what the compiler does not know of the targets of `module`, if that is why it failed.
    fn explained(&self, module: &Module, error: Error) -> Error {
        let lacks_header = self.host.is_cross && error.to_string().contains("file not found");
        let error = match self.host.headers_package().filter(|_| lacks_header) {
            Some(package) => error.with_line(format_args!(
                "hint: headers of the C library for {} are in Debian's and Ubuntu's package {package}; \
                 `flags = [\"--sysroot=DIR\"]` names others",
                self.host.triple
            )),
            None => error,
        };
        let compiles_for_gpus = !matches!(module.language, Language::OpenMp | Language::Prebuilt);
        let compiler = self.compiler.as_ref().filter(|_| compiles_for_gpus);
        match compiler.and_then(|compiler| compiler.explain(module, &self.answers)) {
            Some(why) => Error::new(format_args!("{error}\n{why}")),
            None => error,
        }
    }
}

impl<'a> Run<'a> {
    /// Checks the settings of each module; modules of features that are off are left out.
    pub(crate) fn new<'d>(
        environment: &'a Environment,
        declared: impl Iterator<Item = &'d Declared>,
    ) -> Result<Self, Error> {
        let mut checked: Vec<Module> = Vec::new();
        let mut off = Vec::new();
        let mut cfg_names = BTreeSet::new();
        let native = Native::new(environment);
        let mut modules = Vec::new();
        for Declared {
            modules: declared,
            own,
        } in declared
        {
            let mut declared = declared.clone();
            aliases::apply(environment, &mut declared, own.text("language"))?;
            let own = own.clone().reaching(Reach::Package);
            declared
                .iter_mut()
                .for_each(|settings| settings.overlay(&own));
            effect::check(&declared)?;
            modules.extend(declared);
        }
        for mut settings in modules {
            let listed = settings.listed.iter();
            cfg_names.extend(listed.filter_map(|text| Some(Target::parse(text).ok()?.cfg_name())));
            if Module::is_off(&settings, environment) {
                off.push(Module::name(&settings).to_owned());
                continue;
            }
            native.put_into(&mut settings)?;
            let module = Module::new(&settings, environment)?;
            cfg_names.extend(module.targets.iter().map(Target::cfg_name));
            if checked.iter().any(|other| other.name == module.name) {
                return Err(Error::new(format_args!(
                    "two modules are named `{}`",
                    module.name
                )));
            }
            checked.push(module);
        }
        let out = PathBuf::from(environment.required("OUT_DIR")?);
        Ok(Self {
            environment,
            modules: checked,
            off,
            cfg_names,
            out,
        })
    }

    /// Everything that [`Run::execute`] would do.
    pub(crate) fn plan(&self) -> Result<Plan, Error> {
        let mut plan = Plan::default();
        for module in &self.modules {
            let built = self.prepare(module)?;
            plan.stages.extend(built.plan.stages);
            plan.skipped.extend(built.plan.skipped);
        }
        Ok(plan)
    }

    /// Builds every module, or what stands for it, and records what Cargo must know.
    pub(crate) fn execute(&self) -> Result<(), Error> {
        let environment = self.environment;
        if environment
            .variable("OFFLOAD_DRY_RUN")
            .is_some_and(|value| value != "0")
        {
            eprint!("{}", self.plan()?);
            // Rust prints `Error: ` in front of it, and without a failure Cargo would compile what was not built.
            return Err(Error::new(
                "none: this is a dry run (OFFLOAD_DRY_RUN), the plan is above, and nothing was built",
            ));
        }
        environment.tell("rerun-if-changed", "build.rs");
        environment.tell("rustc-check-cfg", "cfg(offload_stub)");
        for name in &self.cfg_names {
            environment.tell("rustc-check-cfg", format_args!("cfg({name})"));
        }
        // What an earlier build wrote must not compile in the place of what a clean build does not have.
        for name in &self.off {
            let path = self.host_file(name);
            files::remove(&path).map_err(error::io(&path))?;
        }
        let record = self.out.join(record::FILE);
        files::remove(&record).map_err(error::io(&record))?;
        let (mut finished, mut made) = (Vec::new(), Vec::new());
        for module in &self.modules {
            module
                .warnings
                .iter()
                .for_each(|text| environment.report("warning", text));
            for text in stub::host_code_left_out(module)? {
                environment.report("warning", &text);
            }
            if environment.variable("DOCS_RS").is_some() {
                self.stub(module, "documentation is built without device code")?;
                continue;
            }
            match self.prepare(module) {
                Ok(built) => {
                    let built_module = self.build(module, &built);
                    made.push(built_module.map_err(|error| module.explained(error))?);
                    finished.push((module, built));
                }
                Err(error) if error.is_missing() && module.missing == Missing::Stub => {
                    let text = error.to_string();
                    environment.report("warning", &text);
                    self.stub(module, text.lines().next().unwrap_or_default())?;
                    self.look_again();
                }
                Err(error) => return Err(module.explained(error)),
            }
        }
        let plans = finished.iter().map(|(_, built)| &built.plan);
        let artifacts = plans.flat_map(Plan::artifacts);
        let libraries = artifacts.map(|artifact| &*artifact.library).collect();
        artifacts::clean(&self.out, &libraries)?;
        self.tell_what_to_link(&finished)?;
        let records = finished.iter().zip(&made);
        let records: Vec<Record<'_>> = records
            .map(|((module, built), made)| Record {
                module,
                deferred: built.deferred,
                compiler: built.compiler.as_ref(),
                targets: &built.targets,
                skipped: &built.plan.skipped,
                made,
            })
            .collect();
        let Some((_, built)) = finished.first() else {
            return Ok(());
        };
        let text = record::text(&built.host, &records);
        files::write(&record, text.as_bytes()).map_err(error::io(&record))
    }

    fn build(&self, module: &Module, built: &Built) -> Result<Vec<Made>, Error> {
        let environment = self.environment;
        for skipped in &built.plan.skipped {
            environment.report("warning", &skipped.to_string());
        }
        if !built.plan.skipped.is_empty() {
            self.look_again();
        }
        let count = environment
            .cargo("NUM_JOBS")
            .and_then(|count| count.parse().ok())
            .unwrap_or(1);
        let jobs = Jobs::new(environment.cargo("CARGO_MAKEFLAGS").as_deref(), count);
        let outcome = built.plan.execute(&jobs);
        let Outcome { warnings, made } = outcome.map_err(|error| {
            let file = self
                .out
                .join("offload")
                .join(&module.name)
                .join("errors.txt");
            let error = Error::new(messages::shortened(&error.to_string(), &file));
            built.explained(module, error)
        })?;
        let warnings = warnings.into_iter();
        let warnings: String = warnings
            .map(|(title, text)| format!("{title}:\n{text}"))
            .collect();
        let file = self
            .out
            .join("offload")
            .join(&module.name)
            .join("warnings.txt");
        environment.report("warning", &messages::shortened(&warnings, &file));
        // The compiler's own headers change with it. Not all of its prefix: in `/usr` there are packages, too.
        let compiler = built.compiler.as_ref();
        let reads: BTreeSet<&PathBuf> = made.iter().flat_map(|made| &made.inputs).collect();
        let headers = compiler.map(|compiler| compiler.headers(reads.iter().copied()));
        let headers = headers.unwrap_or_default();
        let is_compilers = |path: &PathBuf| headers.iter().any(|headers| path.starts_with(headers));
        let own = |path: &&PathBuf| !path.starts_with(&self.out) && !is_compilers(path);
        reads
            .into_iter()
            .filter(own)
            .for_each(|path| environment.watch(path));
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

    /// The libraries of the modules, then, once, what they need.
    fn tell_what_to_link(&self, finished: &[(&Module, Built)]) -> Result<(), Error> {
        let environment = self.environment;
        for (module, built) in finished {
            for target in &built.targets {
                environment.tell("rustc-cfg", target.cfg_name());
            }
            if module.has_host_code {
                let library = format!("static:+whole-archive={}_offload", built.unique);
                environment.tell("rustc-link-lib", library);
            }
        }
        if !finished.iter().any(|(module, _)| module.has_host_code) {
            return Ok(());
        }
        let search = |folder: &Path| {
            let folder = format!("native={}", folder.display());
            environment.tell("rustc-link-search", folder);
        };
        search(&self.out);
        let mut told: Vec<&[&str]> = Vec::new();
        let runtimes = finished.iter();
        let runtimes = runtimes.filter_map(|(_, built)| Some((built.runtime.as_ref()?, built)));
        for (runtime, built) in runtimes {
            if told.contains(&runtime.libraries) {
                continue;
            }
            told.push(runtime.libraries);
            if let Some(folder) = self.runtime(runtime, built)? {
                search(&folder);
            }
            for library in runtime.libraries {
                environment.tell("rustc-link-lib", format_args!("dylib={library}"));
            }
        }
        let mut modules = finished.iter().map(|(module, _)| module);
        let has_cpp = modules.any(|module| module.has_host_code && module.has_cpp());
        let mut hosts = finished.iter().map(|(_, built)| &built.host);
        if let Some(library) = hosts.next().filter(|_| has_cpp).and_then(Host::cpp_library) {
            environment.tell("rustc-link-lib", format_args!("dylib={library}"));
        }
        Ok(())
    }

    /// Where programs find a runtime, when they are linked and, as far as a build script can see to that, when they are
    /// started.
    fn runtime(&self, runtime: &Runtime, built: &Built) -> Result<Option<PathBuf>, Error> {
        let environment = self.environment;
        let folder = match &runtime.folder {
            Ok(folder) => folder,
            Err(missing) => {
                let text = missing.to_string();
                let mut skipped = built.plan.skipped.iter();
                if !skipped.any(|skipped| skipped.reason == text) {
                    environment.report("warning", &text);
                    self.look_again();
                }
                return Ok(None);
            }
        };
        if built.host.is_windows() {
            // Programs find DLLs in `PATH`.
            return Ok(Some(folder.clone()));
        }
        // What is built for another host finds nothing on this machine.
        let of_host =
            LOADER_FOLDERS.map(|known| format!("{known}/{}-linux-gnu", built.host.arch()));
        let known = LOADER_FOLDERS
            .into_iter()
            .chain(of_host.iter().map(|known| &**known));
        let is_known = known.into_iter().any(|known| folder == Path::new(known));
        let for_loader = !built.host.is_cross && !is_known;
        let place = self.out.join("offload/runtime");
        runtime.provide(folder, &place, for_loader)?;
        if for_loader {
            let copied = runtime.copied(folder)?;
            copied.iter().for_each(|file| environment.watch(file));
            // For this package's own programs; no build script can do it for those that depend on it.
            let rpath = format!("-Wl,-rpath,{}", folder.display());
            environment.tell("rustc-link-arg", rpath);
        }
        Ok(Some(place))
    }

    /// Watches a path that is never there: what was not found is looked for in the next build again.
    fn look_again(&self) {
        self.environment
            .watch(&self.out.join("offload/looks-again-for-what-was-missing"));
    }

    fn stub(&self, module: &Module, reason: &str) -> Result<(), Error> {
        self.environment.tell("rustc-cfg", "offload_stub");
        if module.has_host_code {
            let (host, unique) = (
                Host::of(self.environment)?,
                unique(self.environment, module),
            );
            let made = stub::host_library(module, self.environment, &host, &unique, &self.out);
            // Documentation links nothing.
            if let Err(error) = made {
                self.environment.report("warning", &error.to_string());
            }
        }
        let path = self.host_file(&module.name);
        let skipped = module.targets.iter();
        let skipped = skipped.map(|target| Skipped::missing(module, target, reason));
        let described = stub::kernels(module)?;
        let file = HostFile {
            module: module.name.clone(),
            kernels: described.iter().map(|kernel| kernel.name.clone()).collect(),
            described,
            skipped: skipped.collect(),
            content: Content::NotBuilt(reason.to_owned()),
        };
        files::write(&path, file.to_string().as_bytes()).map_err(error::io(&path))
    }

    /// The file that Rust includes.
    fn host_file(&self, module: &str) -> PathBuf {
        self.out.join(format!("{module}.rs"))
    }

    fn prepare(&self, module: &Module) -> Result<Built, Error> {
        let environment = self.environment;
        let root = PathBuf::from(environment.required("CARGO_MANIFEST_DIR")?);
        let host = Host::of(environment)?;
        if module.language == Language::Prebuilt {
            let (plan, targets) = prebuilt::plan(module, &root, &self.out)?;
            return Ok(Built {
                plan,
                answers: Answers::below(&self.out, ""),
                targets,
                compiler: None,
                runtime: None,
                host,
                unique: unique(environment, module),
                deferred: false,
            });
        }
        let search = environment.search();
        let variables = module.family().variables().iter();
        let variables: Vec<String> = variables
            .map(|name| format!("{name}={}", environment.variable(name).unwrap_or_default()))
            .collect();
        let variables = variables.join("\n");
        // hipcc tells which clang the variables name; others tell about themselves alone.
        let asked = match module.family() {
            Family::Hipcc => variables.as_str(),
            Family::Clang | Family::Nvcc => "",
        };
        let answers = Answers::below(&self.out, asked);
        let compiler = Compiler::find(module, &host, environment, &search, &answers)?;
        let behind = compiler.behind.iter();
        let behind = behind.map(|program| format!("\n{}", files::identity(program)));
        let variables = behind.fold(variables, |all, program| all + &program);
        let unique = unique(environment, module);
        let package = ["CARGO_PKG_NAME", "CARGO_PKG_VERSION"]
            .map(|name| environment.cargo(name).unwrap_or_default())
            .join(" ");
        let launcher = launcher(module, &root, environment, &search)?;
        let context = Context {
            compiler: &compiler,
            search: &compiler.search,
            root: &root,
            out: &self.out,
            host: &host,
            debug: environment
                .cargo("DEBUG")
                .is_some_and(|value| !["false", "0", "none"].contains(&value.as_str())),
            colors: environment.colors(),
            variables: &variables,
            package: &package,
            launcher: launcher.as_ref(),
            unique: &unique,
            deferred: match module.register {
                // A module of these is whole by itself, as with the vendors' compilers.
                Register::Auto if module.language != Language::OpenMp => false,
                Register::Auto => self.linked_by_us()?,
                register => register == Register::Deferred,
            },
        };
        let (plan, targets) = match module.has_host_code {
            true => hosted::plan(module, &context)?,
            false => device_only::plan(module, &context)?,
        };
        let is_only_module = self.modules.len() == 1;
        if let Some(error) = skipped::refused(module, &plan.skipped, &targets, is_only_module) {
            return Err(error);
        }
        Ok(Built {
            deferred: context.deferred,
            plan,
            answers,
            targets,
            runtime: Runtime::of(module, &compiler, &host, environment),
            compiler: Some(compiler),
            host,
            unique,
        })
    }

    /// Whether the last link is run by `offload-link` of this version, as far as Cargo says.
    fn linked_by_us(&self) -> Result<bool, Error> {
        let Some(linker) = self.environment.cargo("RUSTC_LINKER") else {
            return Ok(false);
        };
        let stem = Path::new(&linker)
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        Ok(match stem.as_str() {
            "offload-link" | "offload-ld" => true,
            "cc" | "gcc" | "clang" | "ld" | "lld" | "rust-lld" | "mold" | "wild" => false,
            _ => {
                match Command::new(linker).arg("--print-offload-abi").run() {
                    Ok(answer) => {
                        answer.stdout.trim() == concat!("offload-link ", env!("CARGO_PKG_VERSION"))
                    }
                    // A linker that is not there links nothing; any other refuses an option that it does not know.
                    Err(error) if error.was_killed() => return Err(Error::new(error)),
                    Err(_) => false,
                }
            }
        })
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

/// What compiles of `module` are started with: what somebody says, else what Cargo starts rustc with, where that is
/// one for C as well.
fn launcher(
    module: &Module,
    root: &Path,
    environment: &Environment,
    search: &Search,
) -> Result<Option<Launcher>, Error> {
    match &module.launcher {
        Some((text, _)) if ["", "none"].contains(&text.as_str()) => Ok(None),
        Some((text, origin)) => Launcher::find(text, root, search)
            .map(Some)
            .map_err(|missing| Error::new(format_args!("{origin}: `launcher`: {missing}"))),
        None => {
            let wrapper = environment.cargo("RUSTC_WRAPPER").unwrap_or_default();
            Ok(Launcher::of_rustc(&wrapper, search))
        }
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
    let names = format!("{package}_{}", module.name);
    match context::shortened(&names) {
        short if short == names => format!("{names}_{digest}"),
        // It starts with digits, and this names symbols.
        short => format!("m{}_{digest}", short.replace('-', "_")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declare::settings::{Setting, Settings};

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
}
