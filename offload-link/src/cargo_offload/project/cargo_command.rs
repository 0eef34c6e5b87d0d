//! Cargo with our linker and with progress of device code.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use crate::cargo_offload::error::CargoOffloadError;
use crate::cargo_offload::project::cargo_settings::{CargoSettings, linker_variable};
use crate::cargo_offload::project::progress::{self, ProgressLines};
use crate::cargo_offload::project::rust_programs::{THIS_MACHINE, cargo_program, host_of_rustc};
use crate::environment::variable;

/// Exit status of a command that Cargo could not start, as of Cargo's own failures.
const FAILED: u8 = 101;

/// Options that are passed to Cargo.
#[derive(Debug, clap::Args)]
pub(crate) struct CargoOptions {
    /// Options of Cargo's command, passed unchanged.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CARGO-OPTIONS"
    )]
    pub(super) options: Vec<OsString>,
}

/// Runs a command of Cargo with our linker. The exit status is Cargo's.
pub(crate) fn run(name: &str, line: &CargoOptions) -> Result<u8, CargoOffloadError> {
    CargoCommand::new(name, &line.options)?.run()
}

/// Cargo, about to run a command with the user's options.
pub(super) struct CargoCommand {
    pub(super) command: Command,
    progress: Option<ProgressLines>,
}

impl CargoCommand {
    /// Returns `cargo NAME OPTIONS…`. Programs are linked by `offload-link`, unless a variable names another linker.
    pub(super) fn new(name: &str, options: &[OsString]) -> Result<Self, CargoOffloadError> {
        let mut command = Command::new(cargo_program());
        let (own, for_programs) = options.split_at(count_of_cargo(name, options));
        command.arg(name).args(own);
        let settings = CargoSettings::read(Path::new("."), &values(own, "--config"))?;
        match offload_link() {
            Some(linker) => {
                for host in hosts(own, &settings)? {
                    let variables = linker_variables(&host, &linker, &settings);
                    let is_set = variables
                        .iter()
                        .any(|(name, _)| *name == linker_variable(&host));
                    command.envs(variables);
                    if is_set && settings.is_on_the_line(&host) {
                        let path = toml_edit::Value::from(linker.to_string_lossy().into_owned());
                        let setting = format!("target.'{host}'.linker = {path}");
                        command.args(["--config", &setting]);
                    }
                }
            }
            None => eprintln!(
                "warning: `offload-link` is neither beside this program nor in PATH: Cargo's linker is used\n\
                 hint: `cargo install cargo-offload` installs it"
            ),
        }
        command.args(for_programs);
        let is_quiet = own
            .iter()
            .any(|option| option == "-q" || option == "--quiet");
        let progress = match is_quiet {
            true => None,
            false => Some(ProgressLines::start()?),
        };
        if let Some(progress) = &progress {
            command.env(progress::VARIABLE, progress.path());
        }
        Ok(Self { command, progress })
    }

    /// Runs it to its end, with the standard streams of this process.
    pub(super) fn run(mut self) -> Result<u8, CargoOffloadError> {
        let status = self.command.status().map_err(unstarted);
        drop(self.progress);
        status.map(exit_status)
    }
}

/// Returns the error of a Cargo that cannot be started or read.
pub(super) fn unstarted(problem: std::io::Error) -> CargoOffloadError {
    CargoOffloadError::new(format_args!(
        "{}: {problem}",
        Path::new(&cargo_program()).display()
    ))
}

/// Returns Cargo's status as ours.
pub(super) fn exit_status(status: ExitStatus) -> u8 {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.unwrap_or(FAILED)
}

/// Options of Cargo whose value is the next argument.
const WITH_VALUES: [&str; 23] = [
    "-C",
    "-F",
    "-Z",
    "-j",
    "-p",
    "--artifact-dir",
    "--bench",
    "--bin",
    "--color",
    "--config",
    "--example",
    "--exclude",
    "--features",
    "--jobs",
    "--lockfile-path",
    "--manifest-path",
    "--message-format",
    "--out-dir",
    "--package",
    "--profile",
    "--target",
    "--target-dir",
    "--test",
];

/// Returns the number of arguments that are Cargo's own. The others are for programs: those from `--` on, and for
/// `cargo run` those from the first one that is no option.
fn count_of_cargo(name: &str, options: &[OsString]) -> usize {
    let mut is_value = false;
    let first = options.iter().position(|option| {
        let text = option.to_string_lossy();
        let is_program = name == "run" && !is_value && !text.starts_with('-');
        let is_end = text == "--" || is_program;
        is_value = !is_value && WITH_VALUES.contains(&&*text);
        is_end
    });
    first.unwrap_or(options.len())
}

/// Returns the linker of this installation.
fn offload_link() -> Option<PathBuf> {
    let name = format!("offload-link{}", std::env::consts::EXE_SUFFIX);
    let own = std::env::current_exe().ok();
    let beside = own.and_then(|own| Some(own.parent()?.join(&name)));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path: Vec<PathBuf> = std::env::split_paths(&path)
        .map(|folder| folder.join(&name))
        .collect();
    beside
        .into_iter()
        .chain(in_path)
        .find(|path| path.is_file())
}

/// Tells whether there is a program at an absolute path, or PATH has one of this name.
fn is_installed(program: &Path) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // A folder joined with an absolute path is that path.
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Returns the triples that programs are built for: those of `--target`, else the configured one, else this machine's.
fn hosts(options: &[OsString], settings: &CargoSettings) -> Result<Vec<String>, CargoOffloadError> {
    let mut named = values(options, "--target");
    if named.is_empty() {
        named.extend_from_slice(settings.build_targets());
    }
    if named.is_empty() {
        named.push(THIS_MACHINE.to_owned());
    }
    let named = named.into_iter().map(|name| match name == THIS_MACHINE {
        true => host_of_rustc(),
        false => Ok(name),
    });
    named.collect()
}

/// Returns the values of an option that may stand several times.
fn values(options: &[OsString], name: &str) -> Vec<String> {
    let mut values = Vec::new();
    let mut options = options.iter().map(|option| option.to_string_lossy());
    while let Some(option) = options.next() {
        let value = option.strip_prefix(name);
        match value.map(|value| value.strip_prefix('=').ok_or(value)) {
            Some(Ok(value)) => values.push(value.to_owned()),
            Some(Err("")) => values.extend(options.next().map(|value| value.into_owned())),
            _ => {}
        }
    }
    values
}

/// Returns the variables that make `linker` link for `host`. A linker that Cargo's files name is the one that it drives, or
/// an `offload-link` that takes its place: under another path Cargo would compile all dependencies again.
fn linker_variables(
    host: &str,
    linker: &Path,
    settings: &CargoSettings,
) -> Vec<(String, OsString)> {
    let name = linker_variable(host);
    if variable(&name).is_some() && !settings.is_on_the_line(host) {
        return Vec::new();
    }
    let mut variables = vec![(name, linker.into())];
    let driver = format!("OFFLOAD_CC_{}", host.replace(['-', '.'], "_"));
    if let Some(configured) = settings.linker(host) {
        let is_ours = configured.file_stem() == linker.file_stem();
        if is_ours && is_installed(&configured) {
            return Vec::new();
        }
        if !is_ours && variable(&driver).is_none() {
            variables.push((driver, configured.into()));
        }
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_hosts_that_options_and_settings_name() {
        let folder = tempfile::tempdir().unwrap();
        let found = |line: &str, config: &str| {
            let options: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let config: Vec<String> = config.split(';').map(str::to_owned).collect();
            let settings = CargoSettings::read(folder.path(), &config).unwrap();
            let (name, options) = options.split_first().unwrap();
            let count = count_of_cargo(&name.to_string_lossy(), options);
            hosts(&options[..count], &settings).unwrap()
        };
        let here = host_of_rustc().unwrap();
        let one = "build.target = 'one'";
        assert_eq!(found("build", ""), [&*here]);
        assert_eq!(found("build --target host-tuple", one), [&*here]);
        assert_eq!(
            found("build --target=a --target b -- --target c", one),
            ["a", "b"]
        );
        assert_eq!(found("build --targets", one), ["one"]);
        // The program of `cargo run` gets what follows its first argument.
        assert_eq!(
            found("run --bin app --target a serve --target b", one),
            ["a"]
        );
        assert_eq!(found("test name --target a", one), ["a"]);
        // Cargo reports it.
        assert_eq!(found("build", "app.yaml;build.target = 'one'"), ["one"]);
        // The last one wins.
        let several = "build.target = 'x';build.target = ['one', 'host-tuple']";
        assert_eq!(found("run", several), ["one", &*here]);
    }
}
