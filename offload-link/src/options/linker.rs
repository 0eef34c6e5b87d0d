//! Option tables of linkers, and the comparison of arguments with them.
//!
//! LLVM's tools and linkers write options in ways that `clap` cannot express: long names with one dash, values joined
//! without `=`, and unknown options that must be kept as spelled. So a row defines how its option is written, and
//! [`find`] returns the row of an argument. Parsing, help and tests derive from the rows.

use crate::platform;
use std::ffi::{OsStr, OsString};

/// How an option is written. A long name may follow one dash or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// `--name`.
    Flag,
    /// `--name=value` or `--name value`.
    Value,
    /// `--name=value` only.
    Equal,
    /// `-nvalue` or `-n value`: a letter, always one dash.
    Letter,
    /// `-n value` only, always one dash.
    Separate,
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opt<Id: 'static> {
    /// Meaning of the option.
    pub id: Id,
    /// Names without dashes.
    pub names: &'static [&'static str],
    /// Spelling of the option.
    pub form: Spelling,
    /// Text in `--help`; empty for options that the tool only passes on.
    pub help: &'static str,
}

/// Result of comparing an argument with a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FoundOption<Id> {
    /// An option without value.
    Flag(Id),
    /// An option and its value.
    Value(Id, OsString),
    /// An option whose value is the next argument.
    Next(Id),
}

/// Number of dashes before a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dashes {
    /// One or two dashes, as linkers read them: `-name` and `--name`.
    Either,
    /// Two dashes before a name, one before a letter: `--name`, `-n`.
    Two,
    /// One dash. Names with two contain the second: compiler drivers tell `-x` from `--x`.
    One,
}

/// Returns the row that `arg` is written as. The longest name wins.
pub(crate) fn find<Id: Copy>(
    table: &[Opt<Id>],
    arg: &OsStr,
    dashes: Dashes,
) -> Option<FoundOption<Id>> {
    let bytes = arg.as_encoded_bytes();
    let short = bytes.strip_prefix(b"-")?;
    let long = short.strip_prefix(b"-");
    let mut best: Option<(usize, FoundOption<Id>)> = None;
    for row in table {
        for name in row.names {
            let text = match (row.form, dashes) {
                (Spelling::Letter | Spelling::Separate, _) => Some(short),
                (_, Dashes::Either) => Some(long.unwrap_or(short)),
                (_, Dashes::Two) => long,
                (_, Dashes::One) => Some(short),
            };
            let Some(rest) = text.and_then(|text| text.strip_prefix(name.as_bytes())) else {
                continue;
            };
            let found = match (row.form, rest) {
                (Spelling::Flag, b"") => FoundOption::Flag(row.id),
                (Spelling::Value | Spelling::Letter | Spelling::Separate, b"") => {
                    FoundOption::Next(row.id)
                }
                (Spelling::Value | Spelling::Equal, [b'=', value @ ..]) => {
                    FoundOption::Value(row.id, platform::os_string(value.to_vec()))
                }
                (Spelling::Letter, value) => {
                    FoundOption::Value(row.id, platform::os_string(value.to_vec()))
                }
                _ => continue,
            };
            if best.as_ref().is_none_or(|(len, _)| name.len() > *len) {
                best = Some((name.len(), found));
            }
        }
    }
    best.map(|(_, found)| found)
}

/// Returns the help text: a line for each row with help.
pub(crate) fn help<Id>(table: &[Opt<Id>]) -> String {
    let mut text = String::new();
    for row in table.iter().filter(|row| !row.help.is_empty()) {
        let value = match row.form {
            Spelling::Flag => "",
            Spelling::Value | Spelling::Equal => "=<value>",
            Spelling::Letter | Spelling::Separate => " <value>",
        };
        for name in row.names {
            let dashes = match row.form {
                Spelling::Letter | Spelling::Separate => "-",
                _ => "--",
            };
            let spelled = format!("{dashes}{name}{value}");
            text += &format!("  {spelled:<36} {}\n", row.help);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Opt<u8>] = &[
        Opt {
            id: 0,
            names: &["l"],
            form: Spelling::Letter,
            help: "",
        },
        Opt {
            id: 1,
            names: &["library", "lib"],
            form: Spelling::Value,
            help: "search for a library",
        },
        Opt {
            id: 2,
            names: &["lto"],
            form: Spelling::Flag,
            help: "",
        },
        Opt {
            id: 3,
            names: &["mllvm"],
            form: Spelling::Separate,
            help: "",
        },
    ];

    #[test]
    fn finds_the_longest_name_in_each_form() {
        let value = |id, text: &str| Some(FoundOption::Value(id, text.into()));
        for (arg, expected) in [
            ("-lm", value(0, "m")),
            ("-l", Some(FoundOption::Next(0))),
            ("--library=m", value(1, "m")),
            ("-library=m", value(1, "m")),
            ("--library=", value(1, "")),
            ("--library", Some(FoundOption::Next(1))),
            ("-lto", Some(FoundOption::Flag(2))),
            ("-lto2", value(0, "to2")),
            ("-mllvm", Some(FoundOption::Next(3))),
            ("-mllvmx", None),
            ("--l", None),
            ("m", None),
            ("-", None),
        ] {
            assert_eq!(find(TABLE, arg.as_ref(), Dashes::Either), expected, "{arg}");
        }
        assert_eq!(find(TABLE, "-lto".as_ref(), Dashes::Two), value(0, "to"));
        assert_eq!(
            find(TABLE, "--lto".as_ref(), Dashes::Two),
            Some(FoundOption::Flag(2))
        );
        assert_eq!(find(TABLE, "--lto".as_ref(), Dashes::One), None);
    }
}
