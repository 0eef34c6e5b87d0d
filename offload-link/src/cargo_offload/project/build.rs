//! `cargo offload build`: runs Cargo and collects the libraries that its build scripts made.
//!
//! A module with the key `artifact` leaves libraries in its build folder. Cargo's messages name these folders, also
//! for packages that are up to date.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Deserialize;

use crate::cargo_offload::error::CargoOffloadError;
use crate::cargo_offload::project::cargo_command::{
    CargoCommand, CargoOptions, exit_status, unstarted,
};
use crate::cargo_offload::project::export::export;
use crate::platform::is_absent;

/// Builds with Cargo and lists the libraries of device code.
///
/// Modules with the key `artifact` make libraries: `hda`, an archive of bundles, and `device-archive`, an archive for
/// each target; `--out DIR` copies them to DIR, with files for CMake and pkg-config. All other options are those of
/// `cargo build`.
///
/// Programs are linked by offload-link. Shows the progress of device compiles. The exit status is Cargo's.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo offload build --release
  cargo offload build --out lib -p kernels")]
pub(crate) struct BuildLine {
    #[command(flatten)]
    cargo: CargoOptions,
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
    /// `OUT_DIR` of the package's build script.
    out_dir: PathBuf,
}

pub(crate) fn run(line: &BuildLine, out: &mut impl Write) -> Result<u8, CargoOffloadError> {
    let BuildOptions {
        out: folder,
        format,
        rest,
    } = read(&line.cargo.options)?;
    let (libraries, status) = build(&rest, format, out)?;
    if status != 0 {
        return Ok(status);
    }
    let Some(folder) = folder else {
        if format != MessageFormat::Json {
            libraries
                .values()
                .try_for_each(|library| say(&library.path, out))?;
        }
        return flush(out);
    };
    if libraries.is_empty() {
        return Err(CargoOffloadError::new(
            "build: no package has libraries to install\n\
             hint: `artifact = [\"hda\", \"device-archive\"]` in [package.metadata.offload] asks for them",
        ));
    }
    fs::create_dir_all(&folder).map_err(|problem| CargoOffloadError::of(&folder, problem))?;
    for (name, library) in libraries {
        let path = folder.join(name);
        install(&library.path, &path).map_err(|problem| CargoOffloadError::of(&path, problem))?;
        export(&library.path, &library.out_dir, &folder)?;
        if format != MessageFormat::Json {
            say(&path, out)?;
        }
    }
    flush(out)
}

fn flush(out: &mut impl Write) -> Result<u8, CargoOffloadError> {
    out.flush().map_err(CargoOffloadError::unwritten)?;
    Ok(0)
}

/// How Cargo writes its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageFormat {
    /// For people, on standard error; libraries are listed on standard output.
    Rendered,
    /// The same, a line for each.
    Short,
    /// JSON on standard output, which is passed on.
    Json,
}

/// The options of this command, and those of Cargo.
struct BuildOptions {
    out: Option<PathBuf>,
    format: MessageFormat,
    rest: Vec<OsString>,
}

/// Takes `--out` and message formats for people out of the options of Cargo, which then writes JSON that is read here.
fn read(args: &[OsString]) -> Result<BuildOptions, CargoOffloadError> {
    let mut options = BuildOptions {
        out: None,
        format: MessageFormat::Rendered,
        rest: Vec::new(),
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let text = arg.to_string_lossy();
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (text.as_ref(), None),
        };
        if name != "--out" && name != "--message-format" {
            options.rest.push(arg.clone());
            continue;
        }
        let value = value.or_else(|| args.next().cloned());
        let value = value
            .ok_or_else(|| CargoOffloadError::new(format_args!("build: `{name}` needs a value")))?;
        if name == "--out" {
            options.out = Some(PathBuf::from(value));
            continue;
        }
        options.format = match value.to_string_lossy().as_ref() {
            "human" => MessageFormat::Rendered,
            "short" => MessageFormat::Short,
            // Cargo says what is wrong with a format that it does not know.
            _ => MessageFormat::Json,
        };
        if options.format == MessageFormat::Json {
            options.rest.extend([name.into(), value]);
        }
    }
    Ok(options)
}

/// Runs Cargo, and returns the libraries by name and Cargo's exit status.
fn build(
    options: &[OsString],
    format: MessageFormat,
    out: &mut impl Write,
) -> Result<(BTreeMap<OsString, Library>, u8), CargoOffloadError> {
    let mut cargo = CargoCommand::new("build", options)?;
    cargo.command.args(match format {
        MessageFormat::Rendered => Some("--message-format=json-render-diagnostics"),
        MessageFormat::Short => {
            Some("--message-format=json-render-diagnostics,json-diagnostic-short")
        }
        MessageFormat::Json => None,
    });
    let mut child = cargo
        .command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(unstarted)?;
    let mut libraries = BTreeMap::new();
    let mut wrong = None;
    let messages = child.stdout.take().map(BufReader::new);
    for line in messages.into_iter().flat_map(BufRead::lines) {
        let line = line.map_err(unstarted)?;
        if format == MessageFormat::Json {
            writeln!(out, "{line}").map_err(CargoOffloadError::unwritten)?;
        }
        // Other lines were printed by programs that Cargo ran.
        let Ok(message) = serde_json::from_str::<Message>(&line) else {
            continue;
        };
        let (Some(package), Some(out_dir)) = (message.package_id, message.out_dir) else {
            continue;
        };
        if message.reason == "build-script-executed" && wrong.is_none() {
            wrong = add(&out_dir, &package, &mut libraries).err();
        }
    }
    let status = child.wait().map_err(unstarted)?;
    drop(cargo);
    match wrong {
        Some(error) if status.success() => Err(error),
        _ => Ok((libraries, exit_status(status))),
    }
}

fn add(
    out_dir: &Path,
    package: &str,
    libraries: &mut BTreeMap<OsString, Library>,
) -> Result<(), CargoOffloadError> {
    let wrong = |problem| CargoOffloadError::of(out_dir, problem);
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
            out_dir: out_dir.to_owned(),
        };
        if let Some(other) = libraries.get(&file.file_name()) {
            let name = file.file_name();
            let name = name.to_string_lossy();
            if other.package != package {
                return Err(CargoOffloadError::new(format_args!(
                    "build: two packages make a library `{name}`: {} and {package}\n\
                     hint: the key `name` of a module names its libraries",
                    other.package
                )));
            }
            // A package is built twice if a build script or a macro depends on it, too. Then what is for another host, in
            // a folder of its own, is what the user asked for.
            let depth = |folder: &Path| folder.components().count();
            match depth(&other.out_dir).cmp(&depth(out_dir)) {
                Ordering::Greater => continue,
                Ordering::Equal if !has_equal_bytes(&other.path, &library.path) => {
                    return Err(CargoOffloadError::new(format_args!(
                        "build: {package} is built with two settings, and makes two libraries `{name}`\n\
                         hint: name the host with --target"
                    )));
                }
                _ => {}
            }
        }
        libraries.insert(file.file_name(), library);
    }
    Ok(())
}

fn has_equal_bytes(one: &Path, two: &Path) -> bool {
    let read = |path: &Path| fs::read(path).ok();
    read(one).is_some_and(|bytes| Some(bytes) == read(two))
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
    writeln!(out, "{}", path.display()).map_err(CargoOffloadError::unwritten)
}
