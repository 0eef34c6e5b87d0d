//! The bundler: `clang-offload-bundler` without LLVM, with additions.
//!
//! | phase                                             | file                                     |
//! |---------------------------------------------------|------------------------------------------|
//! | parse the command line                            | `options.rs`, with `options/llvm.rs`     |
//! | check it, in LLVM's order                         | `request.rs`, `targets.rs`               |
//! | open the input, find its bundles and their images | `contents.rs`, with `llvm_tool/sources.rs` |
//! | plan the outputs, as pieces                       | `bundle.rs`, `unbundle.rs`, `archive.rs`, `extract.rs` |
//! | or print it                                       | `list.rs`                                |
//! | write all outputs, or none                        | `llvm_tool/outputs.rs`                   |

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
use std::path::Path;

use offload_formats::escape::terminal_lines;
use offload_formats::names::LlvmRelease;

use file_type::FileType;
use options::{BundlerOptions, Listing, OWN_TABLE, TABLE};
use request::{From, Manner, Members, Request};
use targets::Targets;

use crate::llvm_tool::{
    self, CommandLine, LlvmToolError, Output, Sources, installation, outputs, print,
};
use crate::options::llvm::{Answer, Started};

pub(crate) use contents::{BundleForm, Contents};

/// Runs the tool under the name with which it was started, and returns the exit status.
pub(crate) fn run(name: &OsStr, args: Vec<OsString>) -> u8 {
    llvm_tool::run(name, args, work)
}

fn work(started: &Started<'_>, args: Vec<OsString>) -> Result<u8, LlvmToolError> {
    let table = if is_llvm(started) { &TABLE } else { &OWN_TABLE };
    let (values, files) = match llvm_tool::read_line(table, &args, started)? {
        CommandLine::Answer(answer) => return Ok(print(&reply(answer, started))),
        CommandLine::Mistaken => return Ok(1),
        CommandLine::Work(values, files) => (values, files),
    };
    let release = installation::stands_for(OsStr::new(started.path));
    let mut warnings = Vec::new();
    let variable = |name: &str| std::env::var_os(name);
    let mut options = BundlerOptions::from_environment(release, variable, &mut warnings)?;
    options.apply(values)?;
    options.files(files);
    if options.help {
        return Ok(print(&reply(Answer::HelpList, started)));
    }
    for warning in warnings {
        eprintln!("Warning: {warning}");
    }
    let warn = |text: String| eprintln!("{}: warning: {}", started.path, terminal_lines(&text));
    let manner = options.manner()?;
    let request = options.request(&warn)?;
    let mut sources = Sources::default();
    let outputs = match &request {
        Request::List { from, listing } => {
            let contents = contents::read(from, &mut sources, &manner)?;
            if *listing == Listing::Ids {
                contents.warn_of_rest(&warn);
            }
            return Ok(print(&list::text(&contents, *listing)));
        }
        Request::ExtractAll { from, folder } => {
            extract::plan(from, folder, &mut sources, &manner, &warn)?
        }
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
            &warn,
        )?,
    };
    for text in outputs::clashes(&outputs) {
        warn(text);
    }
    if let Request::ExtractAll { folder, .. } = &request {
        std::fs::create_dir_all(folder).map_err(|error| LlvmToolError::file(folder, &error))?;
    }
    outputs::write(&outputs, &sources)?;
    if let Request::ExtractAll { .. } = request {
        let names = outputs.iter().map(|output| output.path.display());
        return Ok(print(
            &names.map(|name| format!("{name}\n")).collect::<String>(),
        ));
    }
    Ok(0)
}

/// Reads the bundles in the members of an archive.
pub(crate) fn read_archive(
    path: &Path,
    limit: u64,
    sources: &mut Sources,
) -> Result<Contents, LlvmToolError> {
    let from = From {
        path: path.to_owned(),
        filter: Vec::new(),
        bundle: None,
    };
    contents::read(&from, sources, &archive_manner(limit))
}

/// Returns the archive for a target, with every image that serves it.
pub(crate) fn split_archive(
    contents: &Contents,
    target: &str,
    output: &Path,
    limit: u64,
    sources: &mut Sources,
    warn: &dyn Fn(String),
) -> Result<Vec<Output>, LlvmToolError> {
    let targets = Targets::parse(&[target.to_owned()], LlvmRelease::default())?;
    archive::plan(
        contents,
        &targets,
        &[output.to_owned()],
        sources,
        &archive_manner(limit),
        warn,
    )
}

/// Checks the entries of each member for conflicts.
pub(crate) fn check_archive(contents: &Contents) -> Result<(), LlvmToolError> {
    archive::check(contents)
}

/// Returns the settings of `-type=a -hip-openmp-compatible`.
fn archive_manner(limit: u64) -> Manner {
    Manner {
        file_type: Some("a".into()),
        allow_missing: false,
        hip_openmp: true,
        members: Members::All,
        align: 1,
        compression: None,
        limit,
        verbose: false,
        print: false,
    }
}

/// Name of LLVM's tool.
const LLVM_NAME: &str = "clang-offload-bundler";

/// Tells whether the tool was started under LLVM's name.
fn is_llvm(started: &Started<'_>) -> bool {
    started.base.contains(LLVM_NAME)
}

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
             this tool if -unbundle is provided.\n{}\n\
             USAGE: {} [options]{}\n\nOPTIONS:\n{}",
            if is_llvm(started) {
                ""
            } else {
                "\nA file alone is listed, as with --list=long. --type is optional: the type of a file \n\
                 that is read is detected; that of a bundle that is made is o if an input is an object, \n\
                 or else the extension of the output. Listings have sizes in decimal, offsets in hex.\n"
            },
            started.base,
            if is_llvm(started) {
                ""
            } else {
                " [<input file>...]"
            },
            TABLE.help(help, LLVM_NAME, ("type", &types))
        ),
    }
}
