//! The effective keys of each module, with the place where each was written.

use crate::run::modules;
use offload_build_core::compile::rust::quoted;
use offload_build_core::declare::layers::{self, Declared};
use offload_build_core::declare::module::Module;
use offload_build_core::declare::settings::{KEYS, Setting, Settings};
use offload_build_core::environment::Environment;
use offload_build_core::error::Error;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Effective keys of a module.
#[derive(Debug)]
pub struct ModuleConfig {
    /// Name of the module.
    pub name: String,
    /// False if the cargo feature that the module belongs to is off.
    pub is_on: bool,
    /// Keys that some layer sets, those of single targets at the end.
    pub keys: Vec<EffectiveKey>,
}

/// An effective key.
#[derive(Debug)]
pub struct EffectiveKey {
    /// Name of the key.
    pub name: &'static str,
    /// Target of `[….target."<target>"]`; `None` if the key holds for all.
    pub target: Option<String>,
    /// Value, as TOML.
    pub value: String,
    /// Place where the value was written: `Cargo.toml:12:1`, `OFFLOAD_TARGETS`.
    pub origin: String,
}

/// Returns the effective keys of the modules of a package; `variables` are those that its build script would have.
///
/// # Errors
///
/// If a manifest or variable is invalid.
pub fn config(variables: BTreeMap<OsString, OsString>) -> Result<Vec<ModuleConfig>, Error> {
    let environment = Environment::new(variables.into_iter().collect());
    let modules = declared_modules(&environment)?.into_iter();
    Ok(modules
        .map(|settings| ModuleConfig {
            name: Module::name(&settings).to_owned(),
            is_on: !Module::is_off(&settings, &environment),
            keys: effective_keys(&settings),
        })
        .collect())
}

/// Returns the settings of the modules that the manifest declares.
pub(crate) fn declared_modules(environment: &Environment) -> Result<Vec<Settings>, Error> {
    let declared = Declared {
        modules: layers::settings(environment)?,
        own: Settings::default(),
    };
    modules::effective(environment, [&declared].into_iter())
}

fn effective_keys(settings: &Settings) -> Vec<EffectiveKey> {
    let mut found = Vec::new();
    let own = std::iter::once((None, settings));
    let targets = settings.targets.iter();
    let places = own.chain(targets.map(|(target, own)| (Some(target), own)));
    for (target, settings) in places {
        for key in KEYS {
            let Some(entry) = settings.entry(key.name) else {
                continue;
            };
            found.push(EffectiveKey {
                name: key.name,
                target: target.map(str::to_owned),
                value: toml(&entry.setting),
                origin: entry.origin.clone(),
            });
        }
    }
    found
}

/// Returns a value as TOML.
fn toml(setting: &Setting) -> String {
    match setting {
        Setting::Text(text) => quoted(text),
        Setting::Flag(flag) => flag.to_string(),
        Setting::List(list) => {
            let items: Vec<String> = list.iter().map(|item| quoted(item)).collect();
            format!("[{}]", items.join(", "))
        }
        Setting::Map(map) => {
            let pairs = map.iter().map(|(name, value)| match value.as_deref() {
                None => format!("{} = false", quoted(name)),
                Some(text) => format!("{} = {}", quoted(name), quoted(text)),
            });
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_values_that_toml_reads_again() {
        let list = vec!["a\"b\\".to_owned(), "tab\there\u{7f}".to_owned()];
        let text = format!("v = {}", toml(&Setting::List(list.clone())));
        let document = toml::de::DeTable::parse(&text).unwrap();
        let value = document.get_ref().get("v").unwrap().get_ref();
        let items = value.as_array().unwrap().iter();
        let items: Vec<&str> = items.map(|item| item.get_ref().as_str().unwrap()).collect();
        assert_eq!(items, list);
        let map = [("A", Some("1")), ("B", Some("")), ("C", None)];
        let map = map.map(|(name, value)| (name.to_owned(), value.map(str::to_owned)));
        assert_eq!(
            toml(&Setting::Map(map.into_iter().collect())),
            "{ \"A\" = \"1\", \"B\" = \"\", \"C\" = false }"
        );
        assert_eq!(toml(&Setting::Flag(true)), "true");
    }
}
