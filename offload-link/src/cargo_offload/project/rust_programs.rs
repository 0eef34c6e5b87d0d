//! Cargo and rustc: which programs they are, and what rustc answers.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::cargo_offload::error::CargoOffloadError;
use crate::environment::variable;

/// Cargo's name for the triple of this machine.
pub(super) const THIS_MACHINE: &str = "host-tuple";

/// Returns the program that Cargo names for its subcommands.
pub(super) fn cargo_program() -> OsString {
    variable("CARGO").unwrap_or_else(|| "cargo".into())
}

pub(super) fn rustc_program() -> OsString {
    variable("RUSTC").unwrap_or_else(|| "rustc".into())
}

/// Returns the triple of the machine that builds.
pub(super) fn host_of_rustc() -> Result<String, CargoOffloadError> {
    let version = answer(Command::new(rustc_program()).arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or_else(|| CargoOffloadError::new("`rustc -vV` prints no line `host:`"))?;
    Ok(host.trim().to_owned())
}

/// Returns the variables that tell build scripts what a triple is.
pub(super) fn cfg_of(triple: &str) -> Result<BTreeMap<OsString, OsString>, CargoOffloadError> {
    let mut command = Command::new(rustc_program());
    let cfg = answer(command.args(["--print", "cfg", "--target"]).arg(triple))?;
    Ok(cfg_variables(&cfg))
}

/// Tells whether a program is missing.
pub(super) fn is_missing(program: &OsStr) -> bool {
    let started = Command::new(program)
        .arg("-vV")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    started.is_err_and(|problem| problem.kind() == io::ErrorKind::NotFound)
}

/// Returns the triple of this program, for machines without Rust.
pub(super) fn own_triple() -> String {
    let arch = std::env::consts::ARCH;
    let environment = if cfg!(target_env = "msvc") {
        "msvc"
    } else {
        "gnu"
    };
    match std::env::consts::OS {
        "macos" => format!("{arch}-apple-darwin"),
        "windows" => format!("{arch}-pc-windows-{environment}"),
        // Programs of this machine are rarely linked with musl, also where this one is.
        os => format!("{arch}-unknown-{os}-gnu"),
    }
}

/// Returns the variables for this program's target that builds need.
pub(super) fn own_cfg() -> BTreeMap<OsString, OsString> {
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    let environment = match os {
        "macos" => "",
        "windows" if cfg!(target_env = "msvc") => "msvc",
        _ => "gnu",
    };
    cfg_variables(&format!(
        "target_arch=\"{arch}\"\ntarget_os=\"{os}\"\ntarget_env=\"{environment}\"\ntarget_family=\"{}\"\n\
         target_pointer_width=\"{}\"\ntarget_endian=\"little\"\n",
        std::env::consts::FAMILY,
        usize::BITS
    ))
}

/// Runs a program and returns its answer.
pub(super) fn answer(command: &mut Command) -> Result<String, CargoOffloadError> {
    let program = command.get_program().to_owned();
    let name = Path::new(&program).display();
    let output = command
        .output()
        .map_err(|problem| CargoOffloadError::new(format_args!("{name}: {problem}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(CargoOffloadError::new(format_args!(
            "{}\nnote: `{command:?}` failed ({})",
            said.trim_end(),
            output.status
        )));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the variables `CARGO_CFG_*` for rustc's answer: values of one name are joined by commas.
fn cfg_variables(cfg: &str) -> BTreeMap<OsString, OsString> {
    let mut values: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for line in cfg.lines() {
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        let name = format!("CARGO_CFG_{}", name.to_uppercase());
        values
            .entry(name)
            .or_default()
            .push(value.trim_matches('"'));
    }
    let values = values.into_iter();
    values
        .map(|(name, values)| (name.into(), values.join(",").into()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_values_of_one_cfg() {
        let cfg = "unix\ntarget_os=\"linux\"\ntarget_feature=\"fxsr\"\ntarget_feature=\"sse\"\n";
        let found = cfg_variables(cfg);
        let value = |name: &str| found[OsStr::new(name)].to_str().unwrap();
        assert_eq!(value("CARGO_CFG_TARGET_FEATURE"), "fxsr,sse");
        assert_eq!(value("CARGO_CFG_TARGET_OS"), "linux");
        assert_eq!(value("CARGO_CFG_UNIX"), "");
    }
}
