//! The modules of a package: settings of all layers, then checked values.

use crate::inputs::without_sdk;
use offload_build_core::declare::aliases;
use offload_build_core::declare::effect;
use offload_build_core::declare::language::Language;
use offload_build_core::declare::layers::Declared;
use offload_build_core::declare::module::{Module, Register};
use offload_build_core::declare::settings::{Reach, Settings};
use offload_build_core::environment::Environment;
use offload_build_core::error::Error;
use offload_build_core::installed::all_processors;
use offload_build_core::installed::native::Native;
use offload_build_core::installed::path_variables;
use std::collections::BTreeSet;

/// Returns the settings of every module, those of features that are off included: the layers, then variables of other build
/// systems, then methods of the build script.
///
/// # Errors
///
/// If a variable is invalid or a key has no effect.
pub(crate) fn effective<'d>(
    environment: &Environment,
    declared: impl Iterator<Item = &'d Declared>,
) -> Result<Vec<Settings>, Error> {
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
    Ok(modules)
}

/// Checks the settings of a module: `native`, `all` and variables in values are replaced first.
pub(crate) fn checked(
    mut settings: Settings,
    environment: &Environment,
    native: &Native<'_>,
) -> Result<Module, Error> {
    native.put_into(&mut settings)?;
    all_processors::put_into(&mut settings, environment)?;
    let missing_sdk = path_variables::expand(&mut settings, environment)?;
    let mut module = Module::new(&settings, environment)?;
    module.missing_sdk = missing_sdk;
    module.sources_without_sdk = without_sdk::sources(&module)?;
    Ok(module)
}

/// Adds a warning to each OpenMP module whose targets differ from those of the first one. On a device that only one module has an
/// image for, libomptarget 19 ends the program at a kernel of the other module, or starts a kernel of the wrong module.
pub(crate) fn warn_of_other_targets(modules: &mut [Module]) {
    let is_openmp = |module: &&mut Module| {
        module.language == Language::OpenMp && module.register != Register::None
    };
    let targets = |module: &Module| -> BTreeSet<String> {
        let targets = module.targets.iter();
        targets.map(|target| target.written.clone()).collect()
    };
    let mut openmp = modules.iter_mut().filter(is_openmp);
    let Some(first) = openmp.next() else {
        return;
    };
    let (name, expected) = (first.name.clone(), targets(first));
    for module in openmp.filter(|module| targets(module) != expected) {
        module.warnings.push(format!(
            "modules `{name}` and `{}` have different `targets`: on a device that only one has an image for, libomptarget can end the \
             program, or start a wrong kernel. Set the same `targets` in both",
            module.name
        ));
    }
}
