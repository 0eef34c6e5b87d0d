//! The bundler: `clang-offload-bundler` without LLVM, and what its users miss.
//!
//! | phase                                             | file                                  |
//! |---------------------------------------------------|---------------------------------------|
//! | understand the command line                       | `options.rs`, with `llvm_tool/options.rs`  |
//! | check it, in LLVM's order                         | `request.rs`, `targets.rs`            |
//! | open the input, find its bundles and their images | `contents.rs`, with `llvm_tool/sources.rs`           |
//! | decide what goes where, as pieces                 | `bundle.rs`, `unbundle.rs`, `archive.rs`, `extract.rs` |
//! | or print it                                       | `list.rs`                             |
//! | write all outputs, or none                        | `llvm_tool/outputs.rs`        |

mod archive;
mod bundle;
mod contents;
mod extract;
mod file_type;
mod list;
mod objcopy;
mod options;
mod request;
mod targets;
mod unbundle;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;

use file_type::FileType;
use options::{Options, TABLE};
use request::Request;

use crate::llvm_tool::options::{Answer, Started};
use crate::llvm_tool::{Error, Sources, installation, outputs};
use crate::response_file;

/// Tells the user something, without stopping.
type Warn<'a> = &'a dyn Fn(String);

/// Runs the tool under the name that it was started with; the result is the exit status.
pub(crate) fn run(name: &OsStr, args: Vec<OsString>) -> u8 {
    let path = name.to_string_lossy();
    let base = Path::new(name)
        .file_name()
        .unwrap_or(name)
        .to_string_lossy();
    let started = Started {
        path: &path,
        base: &base,
    };
    match work(&started, args) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("{path}: error: {error}");
            1
        }
    }
}

fn work(started: &Started<'_>, args: Vec<OsString>) -> Result<u8, Error> {
    let mut warnings = Vec::new();
    let options = {
        let release = installation::stands_for(OsStr::new(started.path));
        Options::from_environment(release, |name| std::env::var_os(name), &mut warnings)
    };
    let mut expanded = Vec::new();
    for arg in &args {
        let these = response_file::expand(arg).map_err(|error| Error::new(error.to_string()))?;
        expanded.extend(these);
    }
    let parsed = TABLE.parse(&expanded, started);
    for line in &parsed.mistakes {
        eprintln!("{line}");
    }
    if let Some(answer) = parsed.answer {
        return Ok(print(&reply(answer, started)));
    }
    if !parsed.mistakes.is_empty() {
        return Ok(1);
    }
    let mut options = options?;
    options.apply(parsed.values)?;
    if options.help {
        return Ok(print(&reply(Answer::HelpList, started)));
    }
    for warning in warnings {
        eprintln!("{warning}");
    }
    let warn = |text: String| eprintln!("{}: warning: {text}", started.path);
    let manner = options.manner();
    let request = options.request(&warn)?;
    let mut sources = Sources::default();
    let outputs = match &request {
        Request::List { from, listing } => {
            let contents = contents::read(from, &mut sources, &manner)?;
            return Ok(print(&list::text(&contents, *listing)));
        }
        Request::ExtractAll { from, folder } => extract::plan(from, folder, &mut sources, &manner)?,
        Request::Bundle {
            inputs,
            targets,
            output,
        } => bundle::plan(inputs, targets, output, &mut sources, &manner)?,
        Request::Unbundle {
            from,
            targets,
            outputs,
            check_archive,
        } => unbundle::plan(
            from,
            targets,
            outputs,
            *check_archive,
            &mut sources,
            &manner,
        )?,
    };
    for text in outputs::clashes(&outputs) {
        warn(text);
    }
    outputs::write(&outputs, &sources, manner.verbose)?;
    if let Request::ExtractAll { .. } = request {
        let names = outputs.iter().map(|output| output.path.display());
        return Ok(print(
            &names.map(|name| format!("{name}\n")).collect::<String>(),
        ));
    }
    Ok(0)
}

/// Prints; a reader that has seen enough is no failure.
fn print(text: &str) -> u8 {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => 0,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(_) => 1,
    }
}

/// The name of LLVM's tool.
const LLVM_NAME: &str = "clang-offload-bundler";

fn reply(answer: Answer, started: &Started<'_>) -> String {
    let types = FileType::help();
    match answer {
        Answer::Version => {
            let version = env!("CARGO_PKG_VERSION");
            format!("{LLVM_NAME} version 22.1 (offload-bundler {version})\n")
        }
        help => format!(
            "OVERVIEW: A tool to bundle several input files of the specified type <type> \n\
             referring to the same source file but different targets into a single \n\
             one. The resulting file can also be unbundled into different files by \n\
             this tool if -unbundle is provided.\n\n\
             USAGE: {} [options]\n\nOPTIONS:\n{}{}",
            started.base,
            if help == Answer::HelpList || help == Answer::HelpListHidden {
                ""
            } else {
                "\n"
            },
            TABLE.help(help, LLVM_NAME, ("type", &types))
        ),
    }
}
