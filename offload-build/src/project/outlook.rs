//! Expected results of building each module for each target here.

use crate::check;
use crate::project::config::declared_modules;
use crate::run::{modules, prepare};
use offload_build_core::declare::language::Language;
use offload_build_core::declare::module::Module;
use offload_build_core::declare::settings::{Setting, Settings};
use offload_build_core::environment::Environment;
use offload_build_core::error::Error;
use offload_build_core::installed::all_processors;
use offload_build_core::installed::cuda;
use offload_build_core::installed::device_libraries::{self, DeviceLibraries};
use offload_build_core::installed::device_tools::DeviceTools;
use offload_build_core::installed::llvm::numbers;
use offload_build_core::installed::machine::Machine;
use offload_build_core::installed::native::Native;
use offload_build_core::installed::sdk;
use offload_build_core::process::command::Command;
use offload_formats::container::cubin;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// Expected result of building a module here.
#[derive(Debug)]
pub struct ModuleOutlook {
    /// Name of the module.
    pub name: String,
    /// Language, as declared; empty if there is none.
    pub language: String,
    /// False if the cargo feature that the module belongs to is off: nothing else is known then.
    pub is_on: bool,
    /// Targets in their order.
    pub targets: Vec<TargetOutlook>,
    /// The reason why no target can be examined.
    pub problem: Option<String>,
}

/// Expected result of building a module for one target.
#[derive(Debug)]
pub struct TargetOutlook {
    /// The target, as the manifest spells it.
    pub target: String,
    /// Compiler that makes the image: its path and version. `None` if nothing is compiled, or if there is a problem.
    pub compiler: Option<(PathBuf, String)>,
    /// Kernels that do not build although others do, and what to do.
    pub note: Option<String>,
    /// The reason why there would be no image, then hints, a line each.
    pub problem: Option<String>,
}

/// Finds out whether this machine can build the modules of a package. Nothing is compiled; programs are asked for their
/// versions. `variables` are those that the build script would have.
///
/// # Errors
///
/// If a manifest or variable is invalid.
pub fn outlook(variables: BTreeMap<OsString, OsString>) -> Result<Vec<ModuleOutlook>, Error> {
    let environment = Environment::new(variables.into_iter().collect());
    let declared = declared_modules(&environment)?;
    let native = Native::new(&environment);
    let modules = declared
        .into_iter()
        .map(|settings| of_module(settings, &environment, &native));
    Ok(modules.collect())
}

fn of_module(settings: Settings, environment: &Environment, native: &Native<'_>) -> ModuleOutlook {
    let mut found = ModuleOutlook {
        name: Module::name(&settings).to_owned(),
        language: settings.text("language").unwrap_or_default().to_owned(),
        is_on: !Module::is_off(&settings, environment),
        targets: Vec::new(),
        problem: None,
    };
    if !found.is_on {
        return found;
    }
    match targets(&settings, environment, native) {
        Ok(targets) => found.targets = targets,
        Err(error) => found.problem = Some(error.to_string()),
    }
    found
}

fn targets(
    settings: &Settings,
    environment: &Environment,
    native: &Native<'_>,
) -> Result<Vec<TargetOutlook>, Error> {
    let mut expanded = settings.clone();
    native.put_into(&mut expanded)?;
    all_processors::put_into(&mut expanded, environment)?;
    // Errors of the module as a whole are not repeated for each target.
    modules::checked(expanded.clone(), environment, native)?;
    let of_target = |target: &String| {
        let mut settings = expanded.clone();
        let one = Setting::List(vec![target.clone()]);
        settings.replace("targets", one);
        // One that is left out is what is asked for here.
        settings.set("missing", Setting::Text("error".to_owned()), "default");
        let target = target.clone();
        match prepared(settings, environment, native) {
            Ok((compiler, note)) => TargetOutlook {
                target,
                compiler,
                note,
                problem: None,
            },
            Err(error) => TargetOutlook {
                compiler: None,
                note: None,
                problem: Some(reason(&error.to_string(), &target)),
                target,
            },
        }
    };
    Ok(expanded.list("targets").iter().map(of_target).collect())
}

/// A compiler's path and version.
type FoundCompiler = (PathBuf, String);

/// Plans the module and returns its compiler, with a note about kernels that it does not build.
fn prepared(
    settings: Settings,
    environment: &Environment,
    native: &Native<'_>,
) -> Result<(Option<FoundCompiler>, Option<String>), Error> {
    let module = modules::checked(settings, environment, native)?;
    let out = PathBuf::from(environment.required("OUT_DIR")?);
    let prepared = prepare::prepare(&module, 1, environment, &out)?;
    let Some(machine) = &prepared.machine else {
        return Ok((None, None));
    };
    let compiler = &machine.compiler;
    let lacks = |target| device_libraries::sdk_lacks(&module, target, compiler);
    if let Some(problem) = prepared.targets.iter().find_map(lacks) {
        let hint = prepare::device_library_hint(&problem);
        let hint = hint.map_or(String::new(), |hint| format!("\nhint: {hint}"));
        return Err(Error::missing(format_args!("{problem}{hint}")));
    }
    let found = (compiler.program.clone(), compiler.version.clone());
    let note = without_mathematics(&module, machine);
    Ok((Some(found), note.or_else(|| ignored(&module, machine))))
}

/// Returns a note if libomptarget of the compiler's release does not load the image of OpenMP that `ptxas` makes.
fn ignored(module: &Module, machine: &Machine) -> Option<String> {
    let llvm = numbers(&machine.compiler.version)?;
    if module.language != Language::OpenMp || cubin::libomptarget_reads_newer(&llvm) {
        return None;
    }
    let nvidia = module
        .targets
        .iter()
        .filter(|target| target.triple.is_nvptx());
    let ignored = nvidia.filter(|target| {
        let of_target = |(written, _): &&(String, DeviceTools)| *written == target.written;
        let tools = machine.device_tools.iter().find(of_target);
        let ptxas = tools.and_then(|(_, tools)| tools.ptxas.as_ref().ok());
        let answer = ptxas.and_then(|ptxas| {
            let question = Command::new(ptxas).arg("--version");
            machine.answers.to(&question).ok()
        });
        answer.and_then(|answer| cuda::release(&answer)) >= Some((13, 0))
    });
    let ignored: Vec<&str> = ignored.map(|target| target.written.as_str()).collect();
    check::warning_of_ignored(&ignored, *llvm.first()?)
}

/// Returns a note if kernels of OpenMP cannot call mathematics, because the vendor's device libraries are missing.
fn without_mathematics(module: &Module, machine: &Machine) -> Option<String> {
    let mut targets = module.targets.iter();
    let are_left_out = targets.any(|target| sdk::without_libraries(target).is_some());
    let mut all = machine.device_libraries.iter().filter(|_| !are_left_out);
    all.find_map(|(_, libraries)| match libraries {
        DeviceLibraries::Found(_) => None,
        DeviceLibraries::Missing(reason) => Some(format!(
            "only kernels that call no function of the math library: {reason}"
        )),
    })
}

/// Returns the reason without what a build of all targets would add: the names of module and target, and hints to build
/// the others.
fn reason(error: &str, target: &str) -> String {
    let lines = error
        .lines()
        .filter(|line| !line.ends_with("leaves out the targets that cannot be built"));
    let lines: Vec<&str> = lines.collect();
    let text = lines.join("\n");
    let start = format!("no image for `{target}`: ");
    match text.split_once(&start) {
        Some((before, reason)) if before.starts_with("module ") => reason.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_reason_of_a_target() {
        let error = "module `kernels`: no image for `sm_80`: `ptxas` not found (searched: PATH) [OFF605]\nhint: install it\n\
                     hint: OFFLOAD_TARGETS= builds the other targets; OFFLOAD_MISSING=skip leaves out the targets that cannot be built";
        assert_eq!(
            reason(error, "sm_80"),
            "`ptxas` not found (searched: PATH) [OFF605]\nhint: install it"
        );
        assert_eq!(reason("no clang", "sm_80"), "no clang");
    }
}
