//! The plan of an OpenMP module: host objects with offload entries, an image for each target, and one
//! relocatable object that holds the host code together with what registers the images.

mod steps;

pub(crate) use steps::{Archive, PlannedImage, Registration};

use crate::artifacts::{self, Unit};
use crate::compiler::Compiler;
use crate::error::Error;
use crate::host::Host;
use crate::libraries;
use crate::link::{DeviceInput, DeviceLinker, LinkJob, LinkOptions, Way};
use crate::module::{Flags, Module, Target, excluded};
use crate::plan::{Plan, Step};
use crate::target::OffloadKind;
use crate::toolchain::clang::{self, Clang, Compile};
use crate::toolchain::task::{self, Task};
use crate::toolchain::{Command, NotFound, Search};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

const CRATES_HINT: &str = "device functions of other crates are found when offload-link is Cargo's linker: \
    it links the device code of all crates together";
const GPU_HINT: &str = "images for GPUs have no math library (`sin`) and no C library (`printf`) yet; \
    device functions of other crates are found when offload-link is Cargo's linker";

/// What the plan of a module is made from, besides the module.
pub(crate) struct Context<'a> {
    pub(crate) compiler: &'a Compiler,
    pub(crate) search: &'a Search,
    /// The package's folder.
    pub(crate) root: &'a Path,
    pub(crate) out: &'a Path,
    pub(crate) host: &'a Host,
    pub(crate) debug: bool,
    /// Variables that the compiler reads, for the keys of tasks.
    pub(crate) variables: &'a str,
    /// Unique in the whole program: prefix of symbols and name of the library.
    pub(crate) unique: &'a str,
    pub(crate) deferred: bool,
}

/// Plans a module, and says for which of its targets there will be an image.
pub(crate) fn plan(module: &Module, context: &Context<'_>) -> Result<(Plan, Vec<Target>), Error> {
    let folder = context.out.join("offload").join(&module.name);
    let mut notes = Vec::new();
    let mut compiles = Vec::new();
    let mut links = Vec::new();
    let mut images = Vec::new();
    let mut built = Vec::new();
    let mut units = Vec::new();
    for source in &module.sources {
        let stem = stem(context.root, source);
        let output = folder.join("host").join(&stem).with_extension("o");
        compiles.push(context.compile(
            module,
            source,
            &module.own,
            "the host",
            &output,
            |clang, compile| clang.host_object(compile),
        ));
        units.push(Unit {
            stem: stem.trim_end_matches('.').to_owned(),
            host: output,
            images: Vec::new(),
        });
    }
    for target in &module.targets {
        if let Some(reason) = foreign(target, context.host) {
            notes.push(no_image(module, target, &reason));
            continue;
        }
        let folder = folder.join(target.folder());
        let (tasks, inputs) = context.device_compiles(module, target, &folder, &mut units);
        if inputs.is_empty() {
            return Err(Error::new(format_args!(
                "module `{}`: `exclude` leaves `{}` without sources",
                module.name, target.written
            )));
        }
        // Those of a target without an image go into artifacts.
        let start = compiles.len();
        compiles.extend(tasks);
        let (extractions, libraries) = libraries::inputs(module, target, &folder)?;
        compiles.extend(extractions.into_iter().map(Step::Extract));
        let inputs = [inputs, libraries].concat();
        if context.deferred {
            images.extend(
                inputs
                    .into_iter()
                    .map(|input| PlannedImage::new(target, input)),
            );
        } else {
            let output = folder.join("image");
            match context.device_link(module, target, inputs, &output) {
                Ok(task) => links.push(Step::Run(task)),
                Err(unknown) if unknown.is_unsupported() => {
                    return Err(Error::new(no_image(module, target, &unknown)));
                }
                Err(missing) => {
                    notes.push(no_image(module, target, &missing));
                    if module.artifacts.is_empty() {
                        compiles.truncate(start);
                    }
                    continue;
                }
            }
            images.push(PlannedImage::new(target, DeviceInput::Object(output)));
        }
        built.push(target.clone());
    }
    if built.is_empty() {
        return Err(Error::missing(format_args!(
            "{}\nmodule `{}`: no image can be built",
            notes.join("\n"),
            module.name
        )));
    }
    let artifacts = artifacts::plan(module, &units, &context.host.triple, context.out)?;
    let hosts: Vec<PathBuf> = units.into_iter().map(|unit| unit.host).collect();
    let registration = Registration {
        module: module.name.clone(),
        images,
        hosts: hosts.clone(),
        deferred: context.deferred,
        host: context.host.machine,
        unique: context.unique.to_owned(),
        version: context.compiler.version.clone(),
        output: folder.join("registration.o"),
        host_file: context.out.join(format!("{}.rs", module.name)),
    };
    let object = folder.join("module.o");
    let inputs = [registration.output.clone()]
        .into_iter()
        .chain(hosts)
        .collect();
    let join = context.join(&module.name, inputs, &object);
    let archive = Archive {
        name: format!("{}_offload", context.unique),
        library: context.out.join(format!("lib{}_offload.a", context.unique)),
        object,
        // An entry table of its own: the table that another registration finds by the section's
        // name must not hold entries whose images it does not have.
        entries: (!context.deferred).then(|| context.unique.to_owned()),
    };
    let stages = vec![
        compiles,
        links,
        vec![Step::Register(registration)],
        vec![Step::Run(join)],
        [Step::Archive(archive)]
            .into_iter()
            .chain(artifacts.into_iter().map(Step::Artifact))
            .collect(),
    ];
    Ok((Plan { stages, notes }, built))
}

fn no_image(module: &Module, target: &Target, reason: &dyn fmt::Display) -> String {
    let (name, written) = (&module.name, &target.written);
    format!("module `{name}`: no image for `{written}`: {reason}")
}

/// Why programs for `host` take no image for `target`: OpenMP's CPU device is the processor that runs them.
fn foreign(target: &Target, host: &Host) -> Option<String> {
    let is_foreign = target.triple.is_cpu() && target.triple.arch() != host.arch();
    is_foreign.then(|| {
        let (triple, variable) = (&host.triple, host.triple.replace('-', "_"));
        format!(
            "programs for `{triple}` load none of another processor\n\
             hint: OFFLOAD_TARGETS_{variable} lists the targets of builds for this host"
        )
    })
}

impl Context<'_> {
    /// One relocatable object of what registers the images, which comes first, and the host objects.
    fn join(&self, module: &str, inputs: Vec<PathBuf>, object: &Path) -> Task {
        let mut link = Command::new(&self.compiler.llvm.clang).arg("--no-default-config");
        if self.host.is_cross {
            link = link.arg(format!("--target={}", self.host.triple));
            // Without it clang takes the linker for that host when there is one, otherwise this machine's.
            if self.compiler.llvm.sibling("ld.lld").is_ok() {
                link = link.arg("-fuse-ld=lld");
            }
        }
        let link = link
            .args(["-r", "-nostdlib", "-o"])
            .arg(task::part(object))
            .args(&inputs);
        Task {
            title: format!("host code and registration of `{module}`"),
            commands: vec![link],
            inputs,
            depfile: None,
            output: object.to_owned(),
            environment: String::new(),
            undefined_hint: "",
        }
    }

    fn device_compiles(
        &self,
        module: &Module,
        target: &Target,
        folder: &Path,
        units: &mut [Unit],
    ) -> (Vec<Step>, Vec<DeviceInput>) {
        let bitcode = !target.triple.is_cpu();
        let mut tasks = Vec::new();
        let mut inputs = Vec::new();
        for (source, unit) in module.sources.iter().zip(units) {
            if excluded(&target.own.exclude, self.root, source) {
                continue;
            }
            let extension = if bitcode { "bc" } else { "o" };
            let output = folder
                .join(stem(self.root, source))
                .with_extension(extension);
            tasks.push(self.compile(
                module,
                source,
                &target.own,
                &target.written,
                &output,
                |clang, compile| {
                    clang.device_image(&target.triple, &target.id.to_string(), compile)
                },
            ));
            unit.images.push((target.clone(), output.clone()));
            inputs.push(if bitcode {
                DeviceInput::Bitcode(output)
            } else {
                DeviceInput::Object(output)
            });
        }
        (tasks, inputs)
    }

    fn compile(
        &self,
        module: &Module,
        source: &Path,
        own: &Flags,
        what_for: &str,
        output: &Path,
        command: impl Fn(&Clang<'_>, &Compile<'_>) -> Command,
    ) -> Step {
        let clang = Clang {
            clang: &self.compiler.llvm.clang,
            host: &self.host.triple,
            is_cross: self.host.is_cross,
            std: module.std.as_deref(),
            include: &module.include,
            debug: self.debug,
        };
        let compile = Compile {
            source,
            output,
            opt_level: &own.opt_level,
            define: &own.define,
            flags: &own.flags,
        };
        let shown = source.strip_prefix(self.root).unwrap_or(source);
        Step::Run(Task {
            title: format!("{} for {what_for}", shown.display()),
            commands: vec![command(&clang, &compile)],
            inputs: Vec::new(),
            depfile: Some(clang::depfile(output)),
            output: output.to_owned(),
            environment: self.variables.to_owned(),
            undefined_hint: "",
        })
    }

    fn device_link(
        &self,
        module: &Module,
        target: &Target,
        inputs: Vec<DeviceInput>,
        output: &Path,
    ) -> Result<Task, NotFound> {
        let files = inputs.iter().map(|input| input.path().to_owned()).collect();
        let job = LinkJob {
            triple: target.triple.clone(),
            processor: target.id.to_string(),
            kinds: vec![OffloadKind::OPENMP],
            // The bitcode is not there yet when this is planned.
            uses_openmp_runtime: true,
            inputs,
        };
        let (host_libraries, sysroot) = match target.triple.is_cpu() {
            true => (
                self.compiler.host_libraries(module)?,
                self.compiler.sysroot.as_ref(),
            ),
            false => (Vec::new(), None),
        };
        let sysroot = sysroot.map(|root| format!("--sysroot={}", root.display()).into());
        let sysroot: Vec<OsString> = sysroot.into_iter().collect();
        let linker = DeviceLinker {
            llvm: Some(&self.compiler.llvm),
            search: self.search,
            cc: Path::new("cc"),
            opt_level: &target.own.opt_level,
            host_libraries: &host_libraries,
            compiler_args: &sysroot,
            linker_args: &[],
            way: Way::Own,
            options: LinkOptions::default(),
        };
        Ok(Task {
            title: format!("device link for {}", target.written),
            commands: linker.plan(&job, &task::part(output))?.commands,
            inputs: files,
            depfile: None,
            output: output.to_owned(),
            environment: self.variables.to_owned(),
            undefined_hint: if target.triple.is_cpu() {
                CRATES_HINT
            } else {
                GPU_HINT
            },
        })
    }
}

/// A name for the files made from `source`: its path in the package, in one word.
fn stem(root: &Path, source: &Path) -> String {
    let relative = source
        .strip_prefix(root)
        .unwrap_or(source)
        .to_string_lossy();
    // The dot goes as well: what is behind the last one is replaced by each file's own extension.
    relative.replace('-', "--").replace(['/', '\\'], "-") + "."
}
