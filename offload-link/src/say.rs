//! Messages on standard error. The standard macros panic when it is full or closed.

use offload_formats::escape::{terminal, terminal_lines};

/// Prints the text and ignores failures: the exit status tells the result, too.
pub(crate) fn say(text: std::fmt::Arguments<'_>) {
    use std::io::Write as _;
    let _ = std::io::stderr().lock().write_fmt(text);
}

macro_rules! eprint {
    ($($part:tt)*) => {
        $crate::say::say(format_args!($($part)*))
    };
}

macro_rules! eprintln {
    ($($part:tt)*) => {
        $crate::say::say(format_args!("{}\n", format_args!($($part)*)))
    };
}

/// Reports the error that ends a tool. Escapes the text: it may contain names from files, which must not control a
/// terminal.
pub(crate) fn error(tool: &str, problem: &dyn std::fmt::Display) {
    let text = problem.to_string();
    let text = terminal_lines(text.strip_suffix('\n').unwrap_or(&text));
    match tool {
        "" => eprintln!("error: {text}"),
        _ => eprintln!("{}: error: {text}", terminal(tool)),
    }
}

/// Prints a warning; the tool continues.
pub(crate) fn warning(tool: &str, text: &str) {
    let text = terminal_lines(text.strip_suffix('\n').unwrap_or(text));
    eprintln!("{}: warning: {text}", terminal(tool));
}

/// Function that reports a warning or a note to the user.
pub(crate) type Warn<'a> = &'a dyn Fn(String);
