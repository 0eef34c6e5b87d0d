//! The packager: `llvm-offload-binary` (formerly `clang-offload-packager`) without LLVM.
//!
//! | phase                                          | file                                |
//! |------------------------------------------------|-------------------------------------|
//! | parse the command line                         | `options.rs`, `image_argument.rs`   |
//! | pack: which file becomes which entry           | `pack.rs`                           |
//! | or find the images of any file                 | `inputs.rs`                         |
//! | and extract the selected images                | `extract.rs`                        |
//! | or print them                                  | `list.rs`                           |
//! | write all outputs, or none                     | `llvm_tool/outputs.rs`              |

mod extract;
mod image_argument;
mod inputs;
mod list;
mod options;
mod pack;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use offload_formats::escape::{terminal, terminal_lines};
use offload_formats::names::LlvmRelease;

use crate::decompressed;
use crate::llvm_tool::{self, CommandLine, LlvmToolError, Sources, installation, outputs, print};
use crate::options::llvm::{Answer, Started};
use options::{PackagerOptions, TABLE};

/// Runs the tool under the name with which it was started, and returns the exit status.
pub(crate) fn run(name: &OsStr, args: Vec<OsString>) -> u8 {
    llvm_tool::run(name, args, work)
}

/// Names since LLVM 22 and before.
const NAMES: [&str; 2] = ["llvm-offload-binary", "clang-offload-packager"];

fn work(started: &Started<'_>, args: Vec<OsString>) -> Result<u8, LlvmToolError> {
    let (values, positional) = match llvm_tool::read_line(&TABLE, &args, started)? {
        CommandLine::Answer(answer) => return Ok(print(&reply(answer, started))),
        CommandLine::Mistaken => return Ok(1),
        CommandLine::Work(values, positional) => (values, positional),
    };
    let options = PackagerOptions::new(installation::release(started)?, values, positional)?;
    if options.help {
        return Ok(print(&reply(Answer::Help, started)));
    }
    let warn = |text: String| eprintln!("{}: {}", started.path, terminal_lines(&text));
    let stem = Path::new(started.base).file_stem().unwrap_or_default();
    if stem.to_string_lossy().ends_with(NAMES[1]) && options.llvm >= LlvmRelease::V22 {
        eprintln!(
            "warning: '{}' is deprecated. Use '{}' instead.",
            NAMES[1], NAMES[0]
        );
    }
    let mut sources = Sources::default();
    let planned = match (&options.output, &options.input) {
        (Some(_), Some(_)) => {
            return Err(LlvmToolError::new(
                "Packaging to an output file and extracting from an input file are mutually exclusive.",
            ));
        }
        (Some(output), None) => vec![pack::plan(output, &options, &mut sources)?],
        (None, Some(input)) => {
            let limit =
                decompressed::limit(options.limit.as_deref()).map_err(LlvmToolError::new)?;
            let images = inputs::read(input, limit, &mut sources, &warn)?;
            if let Some(listing) = options.listing {
                return Ok(print(&list::text(input, &images, &sources, listing)?));
            }
            extract::plan(input, &images, &sources, &options, &warn)?
        }
        // Before LLVM 22, the tool did not warn when it had nothing to do.
        (None, None) if options.llvm < LlvmRelease::V22 => return Ok(0),
        (None, None) => return Ok(print(&reply(Answer::HelpList, started))),
    };
    for text in outputs::clashes(&planned) {
        warn(format!("warning: {text}"));
    }
    outputs::write(&planned, &sources)?;
    if extract::announces(&options) {
        let names = planned.iter().map(|output| terminal(output.path.as_path()));
        let lines = names.map(|name| format!("Extracted: {name}\n"));
        return Ok(print(&lines.collect::<String>()));
    }
    Ok(0)
}

fn reply(answer: Answer, started: &Started<'_>) -> String {
    let old = started.base.contains(NAMES[1]);
    let name = if old { NAMES[1] } else { NAMES[0] };
    match answer {
        Answer::Version => {
            let version = env!("CARGO_PKG_VERSION");
            match old {
                true => format!("{name} version 22.1 (offload-packager {version})\n"),
                false => format!("LLVM version 22.1 (offload-packager {version})\n"),
            }
        }
        help => format!(
            "OVERVIEW: A utility for bundling several object files into a single binary.\n\
             The output binary can then be embedded into the host section table\n\
             to create a fatbinary containing offloading code.\n\n\
             USAGE: {} [options] Extract from <file>.\n\nOPTIONS:\n{}",
            started.base,
            TABLE.help(help, name, ("", ""))
        ),
    }
}
