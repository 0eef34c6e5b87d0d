//! Parses command lines like LLVM's tools.
//!
//! Long names have one dash or two. A value follows `=` or is the next argument; a boolean's value must follow `=`.
//! Few positional arguments are accepted, or none. Every mistake is printed, not only the first. Parsing, help and
//! tests derive from the rows of a table.
//!
//! Specification: `docs/spec/bundler.md` §1.1 and §1.5, LLVM 22, `llvm/lib/Support/CommandLine.cpp`.

use crate::platform;
use offload_build::tools::distance;
use std::ffi::{OsStr, OsString};

/// One option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<Id: 'static> {
    /// Meaning of the option.
    pub id: Id,
    /// Name without dashes.
    pub name: &'static str,
    /// Kind of value.
    pub takes: Takes,
    /// Group in the help text.
    pub group: HelpGroup,
    /// Text in the help; further lines stand below the first.
    pub help: &'static str,
}

impl<Id: Copy> Row<Id> {
    /// Returns a row for an option of LLVM's tool.
    pub(crate) const fn new(id: Id, name: &'static str, takes: Takes, help: &'static str) -> Self {
        Self {
            id,
            name,
            takes,
            group: HelpGroup::Tool,
            help,
        }
    }

    /// Returns a row for an option that LLVM's tool does not have.
    pub(crate) const fn ours(id: Id, name: &'static str, takes: Takes, help: &'static str) -> Self {
        Self::new(id, name, takes, help).listed(HelpGroup::Ours)
    }

    /// Returns the row for another group of the help text.
    pub(crate) const fn listed(self, group: HelpGroup) -> Self {
        Self { group, ..self }
    }
}

/// Kind of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// No value, or a boolean after `=`.
    Bool,
    /// Like [`Takes::Bool`], or one of these words after `=`.
    BoolOr(&'static [&'static str]),
    /// Any text, for which help prints this word.
    Text(&'static str),
    /// Texts separated by commas.
    Texts(&'static str),
    /// A number from 0 to 2³²−1; `0x`, `0b` and a leading `0` choose the base.
    Uint(&'static str),
    /// A signed number of 32 bits.
    Int(&'static str),
}

/// Group of the help text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HelpGroup {
    /// Options of every tool of LLVM.
    Generic,
    /// Options of every tool of LLVM that only `--help-hidden` shows.
    GenericHidden,
    /// The tool's options.
    Tool,
    /// Options that LLVM's tool does not have.
    Ours,
    /// Accepted, but not listed.
    Unlisted,
}

/// Question that the tool answers instead of working.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// `--help`, the options by group.
    Help,
    /// `--help-hidden`.
    HelpHidden,
    /// `--help-list`, without groups.
    HelpList,
    /// `--help-list-hidden`.
    HelpListHidden,
    /// `--version`.
    Version,
}

/// Options that every tool of LLVM has.
pub(crate) const ANSWERS: [(&str, Answer, HelpGroup, &str); 5] = [
    (
        "help",
        Answer::Help,
        HelpGroup::Generic,
        "Display available options (--help-hidden for more)",
    ),
    (
        "help-hidden",
        Answer::HelpHidden,
        HelpGroup::GenericHidden,
        "Display all available options",
    ),
    (
        "help-list",
        Answer::HelpList,
        HelpGroup::Generic,
        "Display list of available options (--help-list-hidden for more)",
    ),
    (
        "help-list-hidden",
        Answer::HelpListHidden,
        HelpGroup::GenericHidden,
        "Display list of all available options",
    ),
    (
        "version",
        Answer::Version,
        HelpGroup::Generic,
        "Display the version of this program",
    ),
];

/// Value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Bool(bool),
    Text(OsString),
    Uint(u32),
    Int(i32),
}

/// Parsed command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parsed<Id> {
    /// Values in order; a list with commas has one for each of its texts.
    pub values: Vec<(Id, Value)>,
    /// Arguments that are not options.
    pub positional: Vec<OsString>,
    /// Mistakes, each a line for standard error, some with a second line. With one, the tool does not work.
    pub mistakes: Vec<String>,
    /// The first question on the line; later arguments are not parsed.
    pub answer: Option<Answer>,
}

/// A table of options, and those that are required.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table<Id: 'static> {
    pub rows: &'static [Row<Id>],
    /// Names of the required options.
    pub required: &'static [&'static str],
    /// Highest number of positional arguments.
    pub positional: usize,
}

/// Name under which a tool was started.
#[derive(Clone, Debug)]
pub(crate) struct Started<'a> {
    /// Path as typed.
    pub path: &'a str,
    /// Last component of the path.
    pub base: &'a str,
}

impl<Id: Copy + PartialEq> Table<Id> {
    /// Parses arguments in which response files have been expanded.
    pub(crate) fn parse(&self, args: &[OsString], started: &Started<'_>) -> Parsed<Id> {
        let mut parsed = Parsed {
            values: Vec::new(),
            positional: Vec::new(),
            mistakes: Vec::new(),
            answer: None,
        };
        let mut seen: Vec<&str> = Vec::new();
        let mut args = args.iter();
        let mut only_positional = false;
        while let Some(arg) = args.next() {
            if !only_positional && arg == "--" {
                only_positional = true;
                continue;
            }
            let option = split(arg).filter(|_| !only_positional);
            let Some((name, value)) = option else {
                if self.positional > 0 {
                    parsed.positional.push(arg.clone());
                } else {
                    parsed.mistakes.push(unknown(arg, started));
                }
                continue;
            };
            if let Some((_, answer, ..)) = ANSWERS.iter().find(|(known, ..)| *known == name) {
                let Some(value) = value else {
                    parsed.answer = Some(*answer);
                    return parsed;
                };
                parsed.mistakes.push(format!(
                    "{}: for the --{} option: does not allow a value! '{}' specified.",
                    started.base,
                    name.to_string_lossy(),
                    value.to_string_lossy()
                ));
                continue;
            }
            let Some(row) = self.rows.iter().find(|row| row.name == name) else {
                let mistake = self.mistaken(arg, name, value, started);
                parsed.mistakes.push(mistake);
                continue;
            };
            let mistake = |text: String| {
                let name = dashed(row.name);
                format!("{}: for the {name} option: {text}", started.base)
            };
            let next = match (row.takes, value) {
                (Takes::Bool | Takes::BoolOr(_), None) => None,
                (_, Some(value)) => Some(value.to_owned()),
                (_, None) => match args.next() {
                    Some(next) => Some(next.clone()),
                    None => {
                        parsed.mistakes.push(mistake("requires a value!".into()));
                        continue;
                    }
                },
            };
            match values(row.takes, next) {
                Ok(values) => {
                    seen.push(row.name);
                    let values = values.into_iter().map(|value| (row.id, value));
                    parsed.values.extend(values);
                }
                Err(text) => parsed.mistakes.push(mistake(text)),
            }
        }
        let wrong_counts = self.wrong_counts(&seen, parsed.positional.len(), started);
        parsed.mistakes.extend(wrong_counts);
        parsed
    }

    /// Returns the mistakes of a line with the options `seen` and that many positional arguments.
    fn wrong_counts(&self, seen: &[&str], positional: usize, started: &Started<'_>) -> Vec<String> {
        let mut mistakes = Vec::new();
        if positional > self.positional {
            mistakes.push(format!(
                "{}: Too many positional arguments specified!\n\
                 Can specify at most {} positional arguments: See: {} --help",
                started.base, self.positional, started.path
            ));
        }
        let missing = self.required.iter().filter(|name| !seen.contains(name));
        mistakes.extend(missing.map(|name| {
            format!(
                "{}: for the --{name} option: must be specified at least once!",
                started.base
            )
        }));
        mistakes
    }

    /// Returns the mistake for an unknown option.
    fn mistaken(
        &self,
        arg: &OsStr,
        name: &OsStr,
        value: Option<&OsStr>,
        started: &Started<'_>,
    ) -> String {
        let mut text = String::new();
        if let Some(letter) = self.letter(name) {
            text += &format!(
                "{}: for the -{letter} option: may not occur within a group!\n",
                started.base
            );
        }
        text += &unknown(arg, started);
        text += &format!(
            "\n{}: Did you mean '{}'?",
            started.base,
            self.nearest(name, value)
        );
        text
    }

    /// Returns the nearest known option, with the value.
    fn nearest(&self, name: &OsStr, value: Option<&OsStr>) -> String {
        let name = name.to_string_lossy();
        let shown = self
            .rows
            .iter()
            .filter(|row| row.group != HelpGroup::Unlisted);
        let answers = ANSWERS.iter().map(|(name, ..)| *name);
        let mut names: Vec<&str> = shown.map(|row| row.name).chain(answers).collect();
        names.sort_unstable();
        let nearest = names
            .into_iter()
            .min_by_key(|known| distance(known, &name))
            .expect("each tool has `--help`");
        let value = value.map(|value| format!("={}", value.to_string_lossy()));
        dashed(nearest) + &value.unwrap_or_default()
    }

    /// Returns the option of one letter with a value that `name` begins with. LLVM reads the remaining bytes as more
    /// options of one letter.
    fn letter(&self, name: &OsStr) -> Option<&'static str> {
        let begins = |row: &&Row<Id>| {
            let letter = row.name.len() == 1 && !matches!(row.takes, Takes::Bool);
            letter && name.as_encoded_bytes().starts_with(row.name.as_bytes())
        };
        self.rows.iter().find(begins).map(|row| row.name)
    }

    /// Returns the list of options; groups follow an empty line. `more` is an option with further lines below its help.
    pub(crate) fn help(&self, which: Answer, tool: &str, more: (&str, &str)) -> String {
        let hidden = matches!(which, Answer::HelpHidden | Answer::HelpListHidden);
        let grouped = matches!(which, Answer::Help | Answer::HelpHidden);
        let mut lines: Vec<(HelpGroup, String, String)> = Vec::new();
        for (name, _, group, help) in ANSWERS {
            // The list without groups does not list itself.
            let listed = grouped || hidden || name != "help-list";
            if listed && (hidden || group == HelpGroup::Generic) {
                lines.push((HelpGroup::Generic, format!("--{name}"), help.to_owned()));
            }
        }
        for row in self.rows {
            let group = match row.group {
                HelpGroup::Unlisted => continue,
                HelpGroup::GenericHidden if !hidden => continue,
                HelpGroup::GenericHidden => HelpGroup::Generic,
                group => group,
            };
            let value = match row.takes {
                Takes::Bool | Takes::BoolOr(_) => String::new(),
                Takes::Text(word) | Takes::Texts(word) | Takes::Uint(word) | Takes::Int(word) => {
                    let separator = if row.name.len() == 1 { ' ' } else { '=' };
                    format!("{separator}<{word}>")
                }
            };
            let below = if row.name == more.0 { more.1 } else { "" };
            let help = format!("{}{below}", row.help);
            lines.push((group, dashed(row.name) + &value, help));
        }
        let bare = |name: &str| name.trim_start_matches('-').to_owned();
        lines.sort_by_cached_key(|(_, name, _)| bare(name));
        let width = lines.iter().map(|(_, name, _)| name.len()).max();
        let width = width.unwrap_or(0);
        let list = |group: Option<HelpGroup>| {
            let mut text = String::new();
            let lines = lines
                .iter()
                .filter(|(of, ..)| group.is_none_or(|group| group == *of));
            for (_, name, help) in lines {
                let mut help = help.lines();
                text += &format!("  {name:<width$} - {}\n", help.next().unwrap_or_default());
                for line in help {
                    text += &format!("  {:<width$}   {line}\n", "");
                }
            }
            text
        };
        if !grouped {
            return list(None);
        }
        let mut text = "\n".to_owned();
        for (group, title) in [
            (HelpGroup::Generic, "Generic Options".to_owned()),
            (HelpGroup::Tool, format!("{tool} options")),
            (HelpGroup::Ours, format!("Beyond LLVM's {tool}")),
        ] {
            text += &format!("{title}:\n\n{}\n", list(Some(group)));
        }
        text.pop();
        text
    }
}

/// Returns the name of an option with dashes, for messages.
fn dashed(name: &str) -> String {
    let dashes = if name.len() == 1 { "-" } else { "--" };
    format!("{dashes}{name}")
}

/// Splits an argument into name and value if it looks like an option.
fn split(arg: &OsStr) -> Option<(&OsStr, Option<&OsStr>)> {
    let bytes = arg.as_encoded_bytes();
    let name = bytes.strip_prefix(b"-")?;
    let name = name.strip_prefix(b"-").unwrap_or(name);
    if bytes == b"-" {
        return None;
    }
    Some(match name.iter().position(|byte| *byte == b'=') {
        Some(place) => {
            let (name, value) = (&name[..place], &name[place + 1..]);
            (platform::os_str(name)?, Some(platform::os_str(value)?))
        }
        None => (platform::os_str(name)?, None),
    })
}

fn unknown(arg: &OsStr, started: &Started<'_>) -> String {
    format!(
        "{}: Unknown command line argument '{}'.  Try: '{} --help'",
        started.base,
        arg.to_string_lossy(),
        started.path
    )
}

fn values(takes: Takes, given: Option<OsString>) -> Result<Vec<Value>, String> {
    let Some(given) = given else {
        return Ok(vec![Value::Bool(true)]);
    };
    let text = given.to_string_lossy();
    let value = match takes {
        Takes::BoolOr(words) if words.contains(&&*text) => Value::Text(given),
        Takes::Bool | Takes::BoolOr(_) => match &*text {
            "" | "true" | "TRUE" | "True" | "1" => Value::Bool(true),
            "false" | "FALSE" | "False" | "0" => Value::Bool(false),
            _ => {
                return Err(format!(
                    "'{text}' is invalid value for boolean argument! Try 0 or 1"
                ));
            }
        },
        Takes::Text(_) => Value::Text(given),
        Takes::Texts(_) => {
            let bytes = given.as_encoded_bytes();
            let texts = bytes.split(|byte| *byte == b',');
            return Ok(texts
                .map(|text| Value::Text(platform::os_string(text.to_vec())))
                .collect());
        }
        Takes::Uint(_) => match number(&text).and_then(|value| u32::try_from(value).ok()) {
            Some(value) => Value::Uint(value),
            None => return Err(format!("'{text}' value invalid for uint argument!")),
        },
        Takes::Int(_) => {
            let (sign, digits) = match text.strip_prefix('-') {
                Some(digits) => (-1, digits),
                None => (1, &*text),
            };
            let value = number(digits).and_then(|value| i64::try_from(value).ok());
            match value.and_then(|value| i32::try_from(sign * value).ok()) {
                Some(value) => Value::Int(value),
                None => return Err(format!("'{text}' value invalid for integer argument!")),
            }
        }
    };
    Ok(vec![value])
}

/// Parses a number like LLVM's tools: its prefix determines the base.
pub(crate) fn number(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (base, digits) = [("0x", 16), ("0b", 2), ("0o", 8)]
        .into_iter()
        .find_map(|(start, base)| Some((base, lower.strip_prefix(start)?)))
        .unwrap_or(match lower.strip_prefix('0') {
            Some(rest) if rest.starts_with(|char: char| char.is_ascii_digit()) => (8, rest),
            _ => (10, &*lower),
        });
    // Excludes a sign, which `from_str_radix` accepts.
    let plain = !digits.starts_with(['+', '-']);
    u64::from_str_radix(digits, base).ok().filter(|_| plain)
}

#[cfg(test)]
mod tests;
