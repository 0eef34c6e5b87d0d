//! Starts a link: answers a question, execs the host linker, or links device code.

use offload_build::tools::{Command, with_code};
use std::ffi::{OsStr, OsString};

use offload_formats::names::OffloadKind;

use crate::linker_wrapper::actions::Actions;
use crate::linker_wrapper::choose::host_entries::HostEntries;
use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::inputs::file::{Inputs, Unreadable};
use crate::linker_wrapper::installed::host_linker::HostLinker;
use crate::linker_wrapper::installed::{self, rpath_folders};
use crate::linker_wrapper::line::arguments::{Arguments, Position};
use crate::linker_wrapper::line::host;
use crate::linker_wrapper::plan::runtime;
use crate::linker_wrapper::report::fates::Report;
use crate::linker_wrapper::report::trace::Trace;
use crate::linker_wrapper::run::link::Link;
use crate::linker_wrapper::run::{host_linker, questions, unseen};
use crate::linker_wrapper::temporaries::Temporaries;
use crate::linker_wrapper::tool::{LLVM_NAME, tool_name};
use crate::llvm_tool::print;
use crate::{files, say};

/// Links. `name` is the name under which the tool was started. Returns the exit status.
pub(crate) fn run(name: &OsStr, args: Vec<OsString>) -> u8 {
    let linked = link(name, args);
    // After a failed read, a parser reports a damaged file or finds nothing.
    let linked = match files::check() {
        Ok(()) => linked,
        Err(failure) => Err(failure.into()),
    };
    match linked {
        Ok(code) => code,
        Err(error) => {
            // Messages under LLVM's name are those of LLVM's tool.
            let code = error.code().filter(|_| tool_name(name) != LLVM_NAME);
            let text = error.to_string();
            let text = code.map_or(text.clone(), |code| with_code(&text, code));
            say::error(&name.to_string_lossy(), &text);
            1
        }
    }
}

/// Fails if an input cannot be parsed and others have device code: a program with only a part of its device code
/// crashes. Without any device code, the host linker decides.
fn check_readable(tool: &OsStr, inputs: &mut Inputs) -> Result<(), LinkError> {
    if !inputs.have_device_code() {
        for Unreadable { from, problem } in &inputs.unreadable {
            let text = format!("{from}: device code in it would not be linked: {problem}");
            say::warning(&tool.to_string_lossy(), &text);
        }
        return Ok(());
    }
    let unreadable = std::mem::take(&mut inputs.unreadable).into_iter();
    let mut errors = unreadable.map(|Unreadable { from, problem }| LinkError::input(from, problem));
    errors.next().map_or(Ok(()), Err)
}

/// Answers a command line that is only a question.
fn introduce(args: &[OsString]) -> Option<u8> {
    match args {
        [] => {
            eprint!("{}{}", questions::USAGE, questions::MORE);
            Some(1)
        }
        [only] if only == "--help" => Some(print(&questions::help())),
        // The host linker's version follows, for compilers and build systems that parse it.
        [only] if only == "--version" => match print(&questions::introduction()) {
            0 => None,
            code => Some(code),
        },
        _ => None,
    }
}

fn link(tool: &OsStr, args: Vec<OsString>) -> Result<u8, LinkError> {
    if tool_name(tool) != LLVM_NAME {
        if let Some(code) = introduce(&args) {
            return Ok(code);
        }
    }
    let mut arguments = Arguments::parse(args, &tool_name(tool))?;
    if let Some(answer) = arguments.options.answer {
        return questions::answer(answer, &arguments.options, tool);
    }
    let trace = Trace::new(&arguments.options);
    let actions = Actions::new(&arguments.options, tool);
    // In a child of this tool, the images are linked already.
    let nested = installed::host_linker::is_nested()
        && matches!(arguments.position, Position::Linker { .. });
    let mut inputs = if nested || arguments.no_link {
        Inputs::default()
    } else {
        let _phase = trace.phase("Look for device code", "");
        Inputs::scan(&arguments)?
    };
    let replaced = !arguments.options.override_images.is_empty();
    let must_find = tool_name(tool) == LLVM_NAME && !replaced;
    if let (Some(name), true) = (&inputs.missing_library, must_find) {
        // Otherwise the host linker reports it, because it may search other folders.
        let name = name.to_string_lossy();
        return Err(LinkError::Option(format!(
            "unable to find library -l{name}"
        )));
    }
    let linker = installed::host_linker::find(&arguments, inputs.host)?;
    check_readable(tool, &mut inputs)?;
    if inputs.have_device_code() || replaced {
        arguments.options.take_llvm_variable()?;
        let link = Link {
            arguments,
            inputs,
            linker: HostLinker::new(linker),
            tool,
            trace: &trace,
            actions,
        };
        let program = link.linker.command.program().to_owned();
        let code = link.run()?;
        return match tool_name(tool) == LLVM_NAME && code != 0 {
            true => Err(LinkError::HostLinker { program }),
            false => Ok(code),
        };
    }
    let host_link = HostLink {
        arguments,
        linker,
        inputs,
        nested,
        tool,
        actions,
        trace,
    };
    host_link.run()
}

/// A link without device code.
struct HostLink<'a> {
    arguments: Arguments,
    linker: Command,
    inputs: Inputs,
    /// Set in a child of this tool, which read the inputs.
    nested: bool,
    tool: &'a OsStr,
    actions: Actions,
    trace: Trace,
}

impl HostLink<'_> {
    /// Execs the host linker, or runs it if there is work after it.
    fn run(self) -> Result<u8, LinkError> {
        let (arguments, actions) = (&self.arguments, self.actions);
        let quoting = arguments.quoting();
        if arguments.compiles {
            let command = self.linker.args(arguments.given());
            return host_linker::become_or_run(&command, quoting);
        }
        if let (Some(request), false) =
            (&arguments.options.report, self.nested || arguments.no_link)
        {
            match Report::default().replace(request) {
                Err(error) if !matches!(error, LinkError::Option(_)) => {
                    let text = format!(
                        "the link has no device code, and its report is not written: {error}"
                    );
                    say::warning(&self.tool.to_string_lossy(), &text);
                }
                replaced => replaced?,
            }
        }
        if arguments.options.emit_fatbin_only {
            return Ok(0); // nothing to write, as in LLVM's tool
        }
        let flags = self.rpath();
        let becomes_linker =
            !actions.are_dry() && !self.trace.is_wanted() && !self.may_load_unseen_files();
        if becomes_linker && !arguments.repacks() {
            // The hot path: no temporary file is written, and the process becomes the linker.
            let line = arguments.render(&[], &flags, |_| Err(LinkError::Recursion))?;
            let command = self.linker.args(line);
            actions.show(&command);
            return host_linker::become_or_run(&command, quoting);
        }
        let files = Temporaries::default();
        let line = arguments.render(&[], &flags, |content| {
            actions.response_file(&files, content)
        })?;
        let command = self.linker.clone().args(line);
        actions.show(&command);
        if actions.are_dry() {
            return Ok(0);
        }
        files.watch_output(&arguments.output_path())?;
        let phase = self.trace.phase("Host link", &command);
        let status = host_linker::run(&command, quoting, &files)?;
        drop(phase);
        self.trace.write(arguments)?;
        let code = host_linker::code(status);
        if code == 0 && self.may_load_unseen_files() {
            unseen::check(arguments, &self.inputs, &HostEntries::default(), self.tool)?;
        }
        Ok(code)
    }

    fn may_load_unseen_files(&self) -> bool {
        let is_scanned = !self.nested && !self.arguments.no_link;
        self.arguments.unread_inputs && is_scanned && tool_name(self.tool) != LLVM_NAME
    }

    /// Returns rpaths to runtimes, which registrations by packages call, too.
    fn rpath(&self) -> Vec<OsString> {
        let arguments = &self.arguments;
        if arguments.no_link || tool_name(self.tool) == LLVM_NAME {
            return Vec::new();
        }
        let machine = host::machine(arguments, self.inputs.host);
        let folders = rpath_folders::find(&[OffloadKind::OPENMP], arguments, machine, &[]);
        runtime::rpaths(&folders, arguments.position)
    }
}
