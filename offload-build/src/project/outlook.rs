//! Expected results of building each module for each target here.

use crate::project::config::declared_modules;
use crate::run::{modules, prepare};
use offload_build_core::declare::module::Module;
use offload_build_core::declare::settings::{Setting, Settings};
use offload_build_core::environment::Environment;
use offload_build_core::error::Error;
use offload_build_core::installed::all_processors;
use offload_build_core::installed::native::Native;
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
    let origin = expanded.origin("targets").to_owned();
    let of_target = |target: &String| {
        let mut settings = expanded.clone();
        let one = Setting::List(vec![target.clone()]);
        settings.set("targets", one, &origin);
        // One that is left out is what is asked for here.
        settings.set("missing", Setting::Text("error".to_owned()), "default");
        let (compiler, problem) = match prepared(settings, environment, native) {
            Ok(compiler) => (compiler, None),
            Err(error) => (None, Some(reason(&error.to_string(), target))),
        };
        TargetOutlook {
            target: target.clone(),
            compiler,
            problem,
        }
    };
    Ok(expanded.list("targets").iter().map(of_target).collect())
}

/// Plans the module and returns its compiler.
fn prepared(
    settings: Settings,
    environment: &Environment,
    native: &Native<'_>,
) -> Result<Option<(PathBuf, String)>, Error> {
    let module = modules::checked(settings, environment, native)?;
    let out = PathBuf::from(environment.required("OUT_DIR")?);
    let prepared = prepare::prepare(&module, 1, environment, &out)?;
    let machine = prepared.machine.as_ref();
    Ok(machine.map(|machine| {
        let compiler = &machine.compiler;
        (compiler.program.clone(), compiler.version.clone())
    }))
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
