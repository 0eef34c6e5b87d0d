//! The modules of a package: settings of all layers, then checked values.

use crate::declare::aliases;
use crate::declare::effect;
use crate::declare::layers::Declared;
use crate::declare::module::Module;
use crate::declare::settings::{Reach, Settings};
use crate::environment::Environment;
use crate::error::Error;
use crate::inputs::without_sdk;
use crate::installed::all_processors;
use crate::installed::native::Native;
use crate::installed::path_variables;

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
