//! What tools say on standard error, in the place of the standard macros, which panic when it is full or closed.

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
