//! Answers questions instead of linking.

use crate::linker_wrapper::actions::Actions;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use offload_build::tools::{Command, Search};
use offload_formats::names::LlvmRelease;

use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::line::options::{self, LinkerOptions, Question};
use crate::linker_wrapper::run::host_linker;
use crate::linker_wrapper::temporaries::Temporaries;
use crate::linker_wrapper::tool::LLVM_NAME;
use crate::llvm_tool::print;
use crate::options::response_file::Quoting;

/// Prints the answer, and returns the exit status.
pub(crate) fn answer(
    answer: Question,
    options: &LinkerOptions,
    tool: &OsStr,
) -> Result<u8, LinkError> {
    let version = env!("CARGO_PKG_VERSION");
    let text = match answer {
        Question::Abi => format!("offload-link {version}\n"),
        Question::Version => format!(
            "{LLVM_NAME} of offload-link {version}\n\
             follows clang-linker-wrapper 22.1; reads device code since LLVM 15\n"
        ),
        Question::Help => help(),
        Question::HelpHidden => help() + &crate::options::linker::help(options::INTERNAL),
        Question::Llvm => return ask_llvm(options, tool),
    };
    Ok(print(&text))
}

/// Command lines for each name of the tool.
pub(crate) const USAGE: &str = "\
usage: offload-link [options] <arguments of the compiler driver that links>
       offload-ld [options] [--linker-path=<linker>] <arguments of the linker>
       clang-linker-wrapper [options] --linker-path=<linker> [--] <arguments of the linker>
";

/// Line after the usage, unless the options follow.
pub(crate) const MORE: &str = "\nThe options: offload-link --help\n";

/// Returns the tool's introduction, which precedes the host linker's version.
pub(crate) fn introduction() -> String {
    let (version, release) = (env!("CARGO_PKG_VERSION"), LlvmRelease::default());
    format!(
        "offload-link {version} (writes what LLVM {release} writes), and the linker that it runs:\n"
    )
}

pub(crate) fn help() -> String {
    format!(
        "{USAGE}\n\
         Links device code, then the host program. Options that are not listed go to the linker unchanged.\n\
         Through a compiler driver, write -Wl,<option>. offload-link starts the driver of OFFLOAD_CC, CC, or cc.\n\n{}",
        crate::options::linker::help(options::OWN)
    )
}

/// Runs the device compiler, which contains LLVM and so can list LLVM's options (`docs/spec/linker-wrapper.md` §10.1
/// number 26).
fn ask_llvm(options: &LinkerOptions, tool: &OsStr) -> Result<u8, LinkError> {
    let question = options.llvm_questions().next();
    let question = question.cloned().unwrap_or_else(|| "--help".into());
    let Some(clang) = device_clang(tool) else {
        return Err(LinkError::Option(format!(
            "clang is needed to answer `{}`, but there is none beside this tool or in PATH",
            question.to_string_lossy()
        )));
    };
    let command = Command::new(clang).args(["-cc1", "-mllvm"]).arg(question);
    let actions = Actions::new(options, tool);
    actions.show(&command);
    if actions.are_dry() {
        return Ok(0);
    }
    let status = host_linker::run(&command, Quoting::Gnu, &Temporaries::default())?;
    Ok(host_linker::code(status).max(print(PASSES)))
}

/// Options that links of bitcode accept besides those of clang: lld and clang's helper for NVIDIA have them.
const PASSES: &str = "
For links of bitcode:
  --load-pass-plugin=<string>         - Plugin that has further passes
  --passes=<string>                   - Passes of the optimizer
";

fn device_clang(tool: &OsStr) -> Option<PathBuf> {
    let folder = Path::new(tool).parent().unwrap_or(Path::new(""));
    let beside = Some(folder.join("clang")).filter(|clang| clang.is_file());
    let search = Search {
        path: env::var_os("PATH").unwrap_or_default(),
        cuda: Vec::new(),
    };
    beside.or_else(|| Some(search.clangs().into_iter().next()?.clang))
}
