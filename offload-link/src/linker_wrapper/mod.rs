//! The linker wrapper: what is done around a host link, so that its device code is linked too.
//!
//! | phase                                                        | file               |
//! |--------------------------------------------------------------|--------------------|
//! | understand the command line                                  | `arguments.rs`, by the tables of `options.rs`; `family.rs` |
//! | answer instead of linking                                    | `questions.rs`     |
//! | look for device code; none: become the host linker, done     | `inputs.rs`, `seen.rs`, `blocks.rs`, `libraries.rs`, `host_linker.rs` |
//! | make objects of what bundles have for the host               | `host_part.rs`, `host_archive.rs` |
//! | find the images in them, in bundles too                      | `images.rs`, `image_bytes.rs`         |
//! | which are linked: which archive members the host link takes  | `select.rs`, `symbols.rs`, `distinct.rs` |
//! | and which of them together                                   | `groups.rs`, `bundle_choice.rs` |
//! | what libraries for devices there are                         | `device_libraries.rs` |
//! | link them, in parallel                                       | `device_link.rs`, `linked_image.rs` |
//! | pack what was linked as runtimes load it                     | `containers.rs`    |
//! | write what registers them, or have it compiled               | `registration.rs`, `from_c.rs` |
//! | link the host program                                        | `host_linker.rs`, `rpath.rs` |
//! | say what became of each image                                | `report.rs`        |

mod arguments;
mod blocks;
mod bundle_choice;
mod containers;
mod device_libraries;
mod device_link;
mod distinct;
mod error;
mod family;
mod from_c;
mod groups;
mod host_archive;
mod host_linker;
mod host_objects;
mod host_part;
mod image_bytes;
mod images;
mod inputs;
mod libraries;
mod link;
mod linked_image;
mod options;
mod override_image;
mod questions;
mod registration;
mod relocatable;
mod report;
mod rpath;
mod runtime;
mod seen;
mod select;
mod shown;
mod symbols;
mod temporaries;
mod trace;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use offload_formats::names::OffloadKind;

use error::Error;

use arguments::{Arguments, Position};
use inputs::{Inputs, Unreadable};
use link::Link;
use temporaries::Temporaries;
use trace::Trace;

use crate::llvm_tool::print;
use crate::{files, say};

/// Names under which this tool is started.
const TOOL_NAMES: [&str; 4] = ["offload-link", "offload-ld", "ld.offload", LLVM_NAME];
const LLVM_NAME: &str = "clang-linker-wrapper";

/// The name that decides how this tool behaves: of its file, without a release (`-22`).
fn tool_name(path: &OsStr) -> std::borrow::Cow<'_, str> {
    let name = Path::new(path).file_name().unwrap_or_default();
    let digits = |c: char| c.is_ascii_digit() || c == '.';
    match name.to_string_lossy() {
        std::borrow::Cow::Borrowed(name) => {
            let trimmed = name.trim_end_matches(digits);
            let versioned = trimmed.len() < name.len();
            let short = trimmed.strip_suffix('-').filter(|_| versioned);
            short.unwrap_or(name).into()
        }
        owned => owned,
    }
}

/// Under LLVM's name commands are shown as LLVM shows them.
fn shown(tool: &OsStr) -> shown::Shown {
    match tool_name(tool) == LLVM_NAME {
        true => shown::Shown::Llvm,
        false => shown::Shown::Plain,
    }
}

/// Links. `name` is that under which the tool was started; the result is the exit status.
pub(crate) fn run(name: &OsStr, args: Vec<OsString>) -> u8 {
    let linked = link(name, args);
    // Parsers call a file damaged that could not be read, or found nothing in it.
    let linked = match files::check() {
        Ok(()) => linked,
        Err(failure) => Err(failure.into()),
    };
    match linked {
        Ok(code) => code,
        Err(error) => {
            say::error(&name.to_string_lossy(), &error);
            1
        }
    }
}

/// A program with a part of its device code crashes: what cannot be read may have some. Without any device code
/// the host linker decides.
fn check_readable(tool: &OsStr, inputs: &mut Inputs) -> Result<(), Error> {
    if !inputs.have_device_code() {
        for Unreadable { from, problem } in &inputs.unreadable {
            let text = format!("{from}: device code in it would not be linked: {problem}");
            say::warning(&tool.to_string_lossy(), &text);
        }
        return Ok(());
    }
    let unreadable = std::mem::take(&mut inputs.unreadable).into_iter();
    let mut errors = unreadable.map(|Unreadable { from, problem }| Error::Input {
        from,
        source: problem,
    });
    errors.next().map_or(Ok(()), Err)
}

fn link(tool: &OsStr, args: Vec<OsString>) -> Result<u8, Error> {
    if tool_name(tool) != LLVM_NAME {
        match args.as_slice() {
            [] => {
                eprint!("{}{}", questions::USAGE, questions::MORE);
                return Ok(1);
            }
            [only] if only == "--help" => return Ok(print(&questions::help())),
            // The host linker's version follows, which compilers and build systems ask for.
            [only] if only == "--version" => _ = print(&questions::introduction()),
            _ => {}
        }
    }
    let arguments = Arguments::parse(args, &tool_name(tool))?;
    if let Some(answer) = arguments.options.answer {
        return questions::answer(answer, &arguments.options, tool);
    }
    let trace = Trace::new(&arguments.options);
    // Below another of us the images are linked already.
    let nested = host_linker::is_nested() && matches!(arguments.position, Position::Linker { .. });
    let mut inputs = if nested || arguments.no_link {
        Inputs::default()
    } else {
        let _phase = trace.phase("Look for device code", "");
        Inputs::scan(&arguments)?
    };
    if let (Some(name), true) = (&inputs.missing_library, tool_name(tool) == LLVM_NAME) {
        // Elsewhere that is the host linker's to say, which knows folders of its own.
        let name = name.to_string_lossy();
        return Err(Error::Option(format!("unable to find library -l{name}")));
    }
    let linker = host_linker::find(&arguments, inputs.host)?;
    let replaced = !arguments.options.override_images.is_empty();
    check_readable(tool, &mut inputs)?;
    if inputs.have_device_code() || replaced {
        let link = Link {
            arguments,
            inputs,
            linker,
            tool,
            trace: &trace,
        };
        let program = link.linker.program().to_owned();
        let code = link.run()?;
        return match tool_name(tool) == LLVM_NAME && code != 0 {
            true => Err(Error::HostLinker { program }),
            false => Ok(code),
        };
    }
    let quoting = arguments.quoting();
    if arguments.compiles {
        return host_linker::become_or_run(&linker.args(arguments.given()), quoting);
    }
    if arguments.options.emit_fatbin_only {
        return Ok(0); // nothing to write, as in LLVM's tool
    }
    // What a package registered itself calls the runtime, too.
    let mut flags = Vec::new();
    if !arguments.no_link && tool_name(tool) != LLVM_NAME {
        let machine = host_linker::machine(&arguments, inputs.host);
        let rpaths = rpath::folders(&[OffloadKind::OPENMP], &arguments, machine, &[]);
        flags = rpath::options(&rpaths, arguments.position);
    }
    let options = &arguments.options;
    if !options.dry_run && !trace.is_wanted() && !arguments.repacks() {
        // The hot path: no file is made, and this process ends by becoming the linker.
        let line = arguments.render(&[], &flags, |_| Err(Error::Recursion))?;
        let command = linker.args(line);
        if options.verbose {
            shown(tool).print(&command);
        }
        return host_linker::become_or_run(&command, quoting);
    }
    let files = Temporaries::default();
    let line = arguments.render(&[], &flags, |content| files.response_file(content))?;
    let command = linker.args(line);
    if options.dry_run || options.verbose {
        shown(tool).print(&command);
    }
    if options.dry_run {
        return Ok(0);
    }
    files.watch_output(&arguments.output_path())?;
    let phase = trace.phase("Host link", &command);
    let status = host_linker::run(&command, quoting, &files)?;
    drop(phase);
    trace.write(options)?;
    Ok(host_linker::code(status))
}
