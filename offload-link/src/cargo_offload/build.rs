//! `cargo offload build`: runs Cargo and collects the libraries that its build scripts made.
//!
//! A module with the key `artifact` leaves libraries in its build folder. Cargo's messages name these folders, also
//! for packages that are up to date.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::cargo_offload::error::CargoOffloadError;
use crate::files::is_absent;

/// Builds with Cargo and lists the libraries of device code.
///
/// Modules with the key `artifact` make libraries: `hda`, an archive of bundles, and `device-archive`, an archive for
/// each target.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo offload build --release
  cargo offload build --out dist -p kernels")]
pub(super) struct BuildLine {
    /// Options of `cargo build`, and `--out DIR`, which copies the libraries to DIR.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "OPTIONS"
    )]
    options: Vec<OsString>,
}

/// Folder of the libraries in `OUT_DIR`.
const FOLDER: &str = "offload/artifacts";

/// Cargo's message about a build script; of other messages, only the reason is parsed.
#[derive(Deserialize)]
struct Message {
    reason: String,
    package_id: Option<String>,
    out_dir: Option<PathBuf>,
}

/// A library and the package that made it.
struct Library {
    path: PathBuf,
    package: String,
}

pub(super) fn run(line: &BuildLine, out: &mut impl Write) -> Result<(), CargoOffloadError> {
    let (folder, rest) = read(&line.options)?;
    let libraries = build(&rest)?;
    let Some(folder) = folder else {
        return libraries
            .values()
            .try_for_each(|library| say(&library.path, out));
    };
    if libraries.is_empty() {
        return Err(CargoOffloadError::new(
            "build: no package has libraries to install\n\
             hint: `artifact = [\"hda\", \"device-archive\"]` in [package.metadata.offload] asks for them",
        ));
    }
    let failed = |path: &Path, problem| {
        CargoOffloadError::new(format_args!("{}: {problem}", path.display()))
    };
    fs::create_dir_all(&folder).map_err(|problem| failed(&folder, problem))?;
    for (name, library) in libraries {
        let path = folder.join(name);
        install(&library.path, &path).map_err(|problem| failed(&path, problem))?;
        say(&path, out)?;
    }
    Ok(())
}

/// Returns the value of `--out` and the arguments for Cargo.
fn read(args: &[OsString]) -> Result<(Option<PathBuf>, Vec<&OsStr>), CargoOffloadError> {
    let (mut folder, mut rest) = (None, Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let text = arg.to_string_lossy();
        if text == "--message-format" || text.starts_with("--message-format=") {
            let problem =
                "build: `--message-format` cannot be used: this command reads Cargo's messages";
            return Err(CargoOffloadError::new(problem));
        }
        if text == "--out" {
            let value = args.next();
            let value =
                value.ok_or_else(|| CargoOffloadError::new("build: `--out` needs a folder"))?;
            folder = Some(PathBuf::from(value));
        } else if let Some(value) = text.strip_prefix("--out=") {
            folder = Some(PathBuf::from(value));
        } else {
            rest.push(arg.as_os_str());
        }
    }
    Ok((folder, rest))
}

/// Runs Cargo and returns the libraries by name.
fn build(args: &[&OsStr]) -> Result<BTreeMap<OsString, Library>, CargoOffloadError> {
    // Cargo sets this variable for its subcommands.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    command
        .arg("build")
        .arg("--message-format=json-render-diagnostics")
        .args(args)
        .stdout(Stdio::piped());
    let started = |problem| {
        CargoOffloadError::new(format_args!("{}: {problem}", Path::new(&cargo).display()))
    };
    let mut child = command.spawn().map_err(started)?;
    let mut libraries = BTreeMap::new();
    let messages = child.stdout.take().map(BufReader::new);
    for line in messages.into_iter().flat_map(BufRead::lines) {
        let line = line.map_err(started)?;
        // Other lines were printed by programs that Cargo ran.
        let Ok(message) = serde_json::from_str::<Message>(&line) else {
            continue;
        };
        let (Some(package), Some(out_dir)) = (message.package_id, message.out_dir) else {
            continue;
        };
        if message.reason == "build-script-executed" {
            add(&out_dir, &package, &mut libraries)?;
        }
    }
    let status = child.wait().map_err(started)?;
    match status.success() {
        true => Ok(libraries),
        // Cargo has printed the reason.
        false => Err(CargoOffloadError::new("build: Cargo failed")),
    }
}

fn add(
    out_dir: &Path,
    package: &str,
    libraries: &mut BTreeMap<OsString, Library>,
) -> Result<(), CargoOffloadError> {
    let wrong = |problem| CargoOffloadError::new(format_args!("{}: {problem}", out_dir.display()));
    let files = match fs::read_dir(out_dir.join(FOLDER)) {
        Ok(files) => files,
        // The package has no libraries.
        Err(problem) if is_absent(&problem) => return Ok(()),
        Err(problem) => return Err(wrong(problem)),
    };
    for file in files {
        let file = file.map_err(wrong)?;
        let library = Library {
            path: file.path(),
            package: package.to_owned(),
        };
        if let Some(other) = libraries.insert(file.file_name(), library) {
            return Err(CargoOffloadError::new(format_args!(
                "build: two packages make a library `{}`: {} and {package}\n\
                 hint: the key `name` of a module names its libraries",
                file.file_name().to_string_lossy(),
                other.package
            )));
        }
    }
    Ok(())
}

/// Copies to a temporary file beside the final path and renames it.
fn install(from: &Path, to: &Path) -> std::io::Result<()> {
    let folder = to.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    std::io::copy(&mut fs::File::open(from)?, &mut file)?;
    fs::set_permissions(file.path(), fs::metadata(from)?.permissions())?;
    file.persist(to)?;
    Ok(())
}

fn say(path: &Path, out: &mut impl Write) -> Result<(), CargoOffloadError> {
    writeln!(out, "{}", path.display())
        .map_err(|problem| CargoOffloadError::new(format_args!("cannot write: {problem}")))
}
