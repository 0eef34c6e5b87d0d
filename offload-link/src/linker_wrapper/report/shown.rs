//! Formats the commands of a link for `--dry-run` and `--wrapper-verbose`.

use std::ffi::OsStr;

use offload_build::tools::{Command, Quoted};
use offload_formats::escape::terminal_lines;

use crate::linker_wrapper::tool::{LLVM_NAME, tool_name};

/// Form of printed commands. A shell reads both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Plain,
    /// The form of LLVM's tool and of clang's `-###`: after a space, with the program in quotes.
    Llvm,
}

impl Shown {
    /// Returns LLVM's form under LLVM's name, else ours.
    pub(crate) fn of(tool: &OsStr) -> Self {
        match tool_name(tool) == LLVM_NAME {
            true => Self::Llvm,
            false => Self::Plain,
        }
    }

    /// Returns the command as a line for the user.
    pub(crate) fn line(self, command: &Command) -> String {
        match self {
            Self::Plain => command.to_string(),
            Self::Llvm => {
                let program = command.program().to_string_lossy().into_owned();
                let program = program.replace('\\', "\\\\").replace('"', "\\\"");
                let arguments = command.arguments().iter().map(|argument| Quoted(argument));
                let arguments: String = arguments.map(|argument| format!(" {argument}")).collect();
                format!(" \"{program}\"{arguments}")
            }
        }
    }

    /// Prints the command on standard error, like LLVM, by one write.
    pub(crate) fn print(self, command: &Command) {
        eprint!("{}", terminal_lines(&self.line(command)) + "\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_lines_that_a_shell_reads() {
        let command = Command::new("/a \"b\"/ld").args(["-o", "x y"]);
        assert_eq!(Shown::Llvm.line(&command), r#" "/a \"b\"/ld" -o 'x y'"#);
        assert_eq!(Shown::Plain.line(&command), r#"'/a "b"/ld' -o 'x y'"#);
    }
}
