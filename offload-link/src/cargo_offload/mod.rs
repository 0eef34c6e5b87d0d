//! `cargo offload …`: commands for people.
//!
//! | file             | command |
//! |------------------|---------|
//! | `line.rs`        | the command line: each command's arguments are a type in the command's file |
//! | `archive.rs`     | `archive`: archives of bundles and device archives |
//! | `inspect.rs`     | `inspect`: the device images of any file |
//! | `size.rs`        | `size`, `diff`: bytes of device code, and how they changed |
//! | `extract.rs`     | `extract`: images as files |
//! | `compress.rs`    | `compress`, `decompress`: bundles with another compression |
//! | `verify.rs`      | `verify`: what is wrong with the device code of files |
//! | `explain.rs`     | `explain`: the meaning of a code of `verify`, or of an error |
//! | `error_codes.rs` | sections of `docs/troubleshooting.md` with a code |
//! | `prune.rs`       | `prune`: files without the images of some targets |
//! | `project.rs`     | `new`, `init`, `build`, `run`, `test`, `install`, `build-script`, `plan`, `config`, `doctor`, `targets`, `schema`: a package, and the machine that builds it |
//! | `selection.rs`   | options that select images |
//! | `find_options.rs` | options of the commands that find images |
//! | `target_name.rs` | names of targets on the command line |
//! | `inputs.rs`      | input files: named ones, folders, standard input |
//! | `images.rs`, `image_text.rs` | the images of an input, and facts about them for people |
//! | `packed.rs`      | compressed members of zip files |
//! | `digest.rs`      | digests of images and files |
//! | `unpacker.rs`    | images in compressed containers |
//! | `kernels.rs`     | the kernels of an input's images |
//! | `text.rs`        | numbers and tables for people |
//! | `limit_option.rs` | an option of commands that unpack images |
//! | `error.rs`       | errors |
//! | `pages.rs`       | `completions`, `man` |

mod archive;
mod compress;
mod digest;
mod error;
mod error_codes;
mod explain;
mod extract;
mod find_options;
mod image_text;
mod images;
mod inputs;
mod inspect;
mod kernels;
mod limit_option;
mod line;
mod packed;
mod pages;
mod project;
mod prune;
mod selection;
mod size;
mod target_name;
mod text;
mod unpacker;
mod verify;

use std::ffi::OsString;
use std::io::{BufWriter, Write};

use anstream::{AutoStream, ColorChoice};
use clap::{CommandFactory as _, FromArgMatches as _};

pub(crate) use error::CargoOffloadError;

use line::{CargoOffloadCommand, CargoOffloadLine, When};

/// Exit status for an invalid command line.
const USAGE_STATUS: u8 = 2;

/// Runs the command that `args` name, and writes its answer to standard output.
///
/// # Errors
///
/// Fails if the command fails. An invalid command line is not an error, but a status: it was reported.
pub(crate) fn run(args: impl Iterator<Item = OsString>) -> Result<u8, CargoOffloadError> {
    let mut args = args.peekable();
    let program = args.next().unwrap_or_else(|| "cargo-offload".into());
    // Cargo passes the name of the subcommand first.
    let by_cargo = args.next_if(|word| word == "offload").is_some();
    let mut command = CargoOffloadLine::command();
    if !by_cargo {
        command = command.bin_name("cargo-offload");
    }
    let matches = command.try_get_matches_from_mut(std::iter::once(program).chain(args));
    let line = matches.and_then(|matches| CargoOffloadLine::from_arg_matches(&matches));
    let line = match line {
        Ok(line) => line,
        Err(answer) => {
            answer.print().map_err(CargoOffloadError::unwritten)?;
            return Ok(if answer.use_stderr() { USAGE_STATUS } else { 0 });
        }
    };
    let mut out = output(line.color);
    let Some(command_line) = &line.command else {
        let help = command.render_help().ansi().to_string();
        write!(out, "{help}").map_err(CargoOffloadError::unwritten)?;
        return out
            .flush()
            .map_err(CargoOffloadError::unwritten)
            .map(|()| 0);
    };
    let done = match command_line {
        CargoOffloadCommand::Inspect(line) => inspect::run(line, &mut out),
        CargoOffloadCommand::Size(line) => size::run(line, &mut out),
        CargoOffloadCommand::Diff(line) => size::diff(line, &mut out),
        CargoOffloadCommand::Extract(line) => extract::run(line, &mut out),
        CargoOffloadCommand::Prune(line) => prune::run(line, &mut out),
        CargoOffloadCommand::Compress(line) => compress::run(line, &mut out),
        CargoOffloadCommand::Decompress(line) => compress::decompress(line, &mut out),
        CargoOffloadCommand::Verify(line) => verify::run(line, &mut out),
        CargoOffloadCommand::Explain(line) => explain::run(line, &mut out),
        CargoOffloadCommand::Archive(line) => archive::run(line, &mut out),
        CargoOffloadCommand::New(line) => project::new(line, &mut out),
        CargoOffloadCommand::Init(line) => project::init(line, &mut out),
        CargoOffloadCommand::Build(line) => return project::build(line, &mut out),
        CargoOffloadCommand::Run(line) => return project::cargo("run", line),
        CargoOffloadCommand::Test(line) => return project::cargo("test", line),
        CargoOffloadCommand::Install(line) => return project::cargo("install", line),
        CargoOffloadCommand::BuildScript(line) => project::build_script(line),
        CargoOffloadCommand::Plan(line) => project::plan(line, &mut out),
        CargoOffloadCommand::Config(line) => project::config(line, &mut out),
        CargoOffloadCommand::Doctor(line) => project::doctor(line, &mut out),
        CargoOffloadCommand::Targets(line) => project::targets(line, &mut out),
        CargoOffloadCommand::Schema(line) => project::schema(line, &mut out),
        CargoOffloadCommand::Completions(line) => {
            pages::completions(line, CargoOffloadLine::command(), &mut out)
        }
        CargoOffloadCommand::Man(line) => pages::man(line, CargoOffloadLine::command()),
    };
    let flushed = out.flush().map_err(CargoOffloadError::unwritten);
    done.and(flushed).map(|()| 0)
}

/// Returns standard output. It drops styles unless a terminal shows them or the user asks for color.
fn output(color: Option<When>) -> Box<dyn Write> {
    let stdout = std::io::stdout();
    let choice = match color {
        Some(When::Always) => ColorChoice::Always,
        Some(When::Never) => ColorChoice::Never,
        Some(When::Auto) => AutoStream::choice(&stdout),
        // Cargo's variable, as for Cargo itself.
        None => match std::env::var("CARGO_TERM_COLOR").as_deref() {
            Ok("always") => ColorChoice::Always,
            Ok("never") => ColorChoice::Never,
            _ => AutoStream::choice(&stdout),
        },
    };
    // Standard output flushes at each line; a buffer needs fewer writes. A stream that drops styles writes the text
    // between them piece by piece, so the buffer is below it.
    match choice {
        ColorChoice::Never => {
            let buffered: Box<dyn Write> = Box::new(BufWriter::with_capacity(1 << 16, stdout));
            Box::new(AutoStream::never(buffered))
        }
        choice => Box::new(BufWriter::new(AutoStream::new(stdout, choice))),
    }
}
