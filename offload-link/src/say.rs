//! What tools say on standard error, in the place of the standard macros, which panic when it is full or closed.

use offload_formats::escape::{terminal, terminal_lines};

/// Says it, where somebody listens. What happened is also in the exit status.
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

/// Reports the error with which a tool ends. Names from files may be in the text, so no line of it can drive a terminal.
pub(crate) fn error(tool: &str, problem: &dyn std::fmt::Display) {
    let text = problem.to_string();
    let text = terminal_lines(text.strip_suffix('\n').unwrap_or(&text));
    match tool {
        "" => eprintln!("error: {text}"),
        _ => eprintln!("{}: error: {text}", terminal(tool)),
    }
}

/// Warns, and goes on.
pub(crate) fn warning(tool: &str, text: &str) {
    let text = terminal_lines(text.strip_suffix('\n').unwrap_or(text));
    eprintln!("{}: warning: {text}", terminal(tool));
}

/// Tells the user something, without stopping.
pub(crate) type Warn<'a> = &'a dyn Fn(String);
