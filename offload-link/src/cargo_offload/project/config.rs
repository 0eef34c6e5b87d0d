//! `cargo offload config`: the effective keys of a package, with the place where each was written.

use std::io::Write;

use anstyle::Style;
use offload_build::tools::{self, KeyDescription, ModuleConfig};
use offload_formats::escape::terminal;
use serde::Serialize;

use crate::cargo_offload::error::CargoOffloadError;
use crate::cargo_offload::project::packages::{Package, PackageOptions};
use crate::cargo_offload::text::{Align, FAINT, NAME, TextTable};
use crate::json;

/// Shows the effective keys of `[package.metadata.offload]`, and where each was written.
///
/// Layers, each overriding those before it: the workspace's table and its profile, the package's table and its profile, the
/// module's table, variables of other build systems, OFFLOAD_* variables. Settings that build.rs makes by methods of `Build`
/// are not shown.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo offload config
  OFFLOAD_TARGETS=gfx90a cargo offload config --release
  cargo offload config --all --json")]
pub(crate) struct ConfigLine {
    /// Also show unset keys, with their defaults.
    #[arg(long)]
    all: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    options: PackageOptions,
}

/// Characters of a value up to which places are one below the other. Fifty macros are a value of 2,000.
const WIDEST_VALUE: usize = 60;

#[derive(Serialize)]
struct ConfigDocument {
    schema: u32,
    profile: &'static str,
    packages: Vec<ConfigPackage>,
}

#[derive(Serialize)]
struct ConfigPackage {
    name: String,
    version: String,
    modules: Vec<ConfigModule>,
}

#[derive(Serialize)]
struct ConfigModule {
    name: String,
    on: bool,
    keys: Vec<ConfigKey>,
}

#[derive(Serialize)]
struct ConfigKey {
    key: &'static str,
    target: Option<String>,
    /// The value, as TOML; of a key that nobody sets the default in words.
    value: String,
    origin: String,
}

pub(crate) fn run(line: &ConfigLine, out: &mut impl Write) -> Result<(), CargoOffloadError> {
    let packages = line.options.packages()?;
    if packages.is_empty() {
        return Err(CargoOffloadError::new(
            "no package here has a table [package.metadata.offload]\n\
             hint: `cargo offload schema` lists its keys",
        ));
    }
    let environment = line.options.environment()?;
    let mut found = Vec::new();
    for package in &packages {
        let modules = tools::config(environment.of_package(package));
        let modules = modules.map_err(|problem| {
            CargoOffloadError::new(format_args!("{}: {problem}", package.name))
        })?;
        found.push(config_of(package, modules, line.all));
    }
    if line.json {
        let document = ConfigDocument {
            schema: 1,
            profile: environment.profile(),
            packages: found,
        };
        return json::write(&document, out).map_err(CargoOffloadError::unwritten);
    }
    found
        .iter()
        .try_for_each(|package| print(package, out))
        .map_err(CargoOffloadError::unwritten)
}

fn config_of(package: &Package, modules: Vec<ModuleConfig>, all: bool) -> ConfigPackage {
    let known = tools::keys();
    let modules = modules.into_iter().map(|module| {
        let is_unset = |key: &&KeyDescription| {
            let mut set = module.keys.iter();
            all && !set.any(|own| own.name == key.name && own.target.is_none())
        };
        let unset = known.iter().filter(is_unset).map(|key| ConfigKey {
            key: key.name,
            target: None,
            value: key.default.to_owned(),
            origin: "default".to_owned(),
        });
        let unset: Vec<ConfigKey> = unset.collect();
        let set = module.keys.into_iter().map(|key| ConfigKey {
            key: key.name,
            target: key.target,
            value: key.value,
            origin: key.origin,
        });
        ConfigModule {
            name: module.name,
            on: module.is_on,
            keys: set.chain(unset).collect(),
        }
    });
    ConfigPackage {
        name: package.name.clone(),
        version: package.version.clone(),
        modules: modules.collect(),
    }
}

fn print(package: &ConfigPackage, out: &mut impl Write) -> std::io::Result<()> {
    let ConfigPackage { name, version, .. } = package;
    writeln!(
        out,
        "{NAME}{} {}{NAME:#}",
        terminal(name),
        terminal(version)
    )?;
    for module in &package.modules {
        let off = if module.on {
            ""
        } else {
            " (its feature is off)"
        };
        writeln!(out, "  module {}{off}", terminal(&module.name))?;
        let plain = Style::new();
        let mut table = TextTable::new([
            (Align::Left, plain),
            (Align::LeftWithin(WIDEST_VALUE), plain),
            (Align::Left, FAINT),
        ]);
        for key in &module.keys {
            let name = match &key.target {
                Some(target) => format!("target.{}.{}", terminal(target), key.key),
                None => key.key.to_owned(),
            };
            let is_default = key.origin == "default";
            let value = match is_default {
                true => format!("({})", key.value),
                false => format!("= {}", terminal(&key.value)),
            };
            table.push([name, value, terminal(&key.origin).to_string()]);
        }
        table.print("    ", out)?;
    }
    Ok(())
}
