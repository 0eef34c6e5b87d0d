//! `OUT_DIR/offload/manifest.json`: what was built from what, for people and for other programs.
//!
//! It is there only after a build that succeeded. Its page is `docs/json.md`.

use crate::declare::module::{Module, Register, Target};
use crate::declare::skipped::Skipped;
use crate::installed::compilers::Compiler;
use crate::installed::host::Host;
use crate::plan::stages::Made;
use std::fmt::{self, Display, Write as _};

/// Where it is, below `OUT_DIR`.
pub(crate) const FILE: &str = "offload/manifest.json";

/// What is recorded of a module.
pub(crate) struct Record<'a> {
    pub(crate) module: &'a Module,
    pub(crate) deferred: bool,
    pub(crate) compiler: Option<&'a Compiler>,
    /// Those that have an image.
    pub(crate) targets: &'a [Target],
    /// The others.
    pub(crate) skipped: &'a [Skipped],
    pub(crate) made: &'a [Made],
}

/// The whole text.
pub(crate) fn text(host: &Host, records: &[Record<'_>]) -> String {
    let mut text = String::new();
    // Nothing fails that writes to a string.
    let _ = write!(
        text,
        "{{\n  \"schema\": 1,\n  \"host\": {},\n  \"modules\": {}\n}}\n",
        Text(&host.triple),
        List(records, 2)
    );
    text
}

impl Display for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let module = self.module;
        let compiler = self
            .compiler
            .map(|compiler| compiler.program.to_string_lossy());
        let version = self.compiler.map(|compiler| &*compiler.version);
        let register = match module.register {
            Register::None => "none",
            _ if self.deferred => "deferred",
            _ => "complete",
        };
        let left_out: Vec<String> = self.skipped.iter().map(ToString::to_string).collect();
        write!(
            f,
            "{{\n      \"name\": {},\n      \"language\": {},\n      \"register\": {},\n      \"container\": {},\n      \
             \"compiler\": {},\n      \"compiler_version\": {},\n      \"targets\": {},\n      \"left_out\": {},\n      \
             \"files\": {}\n    }}",
            Text(&module.name),
            Text(module.language.name()),
            Text(register),
            Text(module.container.name()),
            Text(&compiler.unwrap_or_default()),
            Text(version.unwrap_or_default()),
            List(self.targets, 6),
            List(
                &left_out.iter().map(|text| Text(text)).collect::<Vec<_>>(),
                6
            ),
            List(self.made, 6),
        )
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let processor = self.id.to_string();
        write!(
            f,
            "{{ \"target\": {}, \"triple\": {}, \"processor\": {} }}",
            Text(&self.written),
            Text(self.triple.as_str()),
            Text(&processor)
        )
    }
}

impl Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths = |paths: &[std::path::PathBuf]| -> Vec<String> {
            paths
                .iter()
                .map(|path| path.to_string_lossy().into_owned())
                .collect()
        };
        let (outputs, inputs) = (paths(&self.outputs), paths(&self.inputs));
        let texts = |texts: &[String]| {
            List(&texts.iter().map(|text| Text(text)).collect::<Vec<_>>(), 10).to_string()
        };
        write!(
            f,
            "{{\n          \"what\": {},\n          \"outputs\": {},\n          \"inputs\": {},\n          \"commands\": {}\n        }}",
            Text(&self.title),
            texts(&outputs),
            texts(&inputs),
            texts(&self.commands)
        )
    }
}

/// A text, quoted.
struct Text<'a>(&'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                c if c.is_control() && c.is_ascii() => write!(f, "\\u{:04x}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

/// Values, each on a line of its own, in brackets that are indented so far.
struct List<'a, T>(&'a [T], usize);

impl<T: Display> Display for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(values, indent) = self;
        f.write_char('[')?;
        for (index, value) in values.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}\n{:width$}{value}", "", width = indent + 2)?;
        }
        match values.is_empty() {
            true => f.write_char(']'),
            false => write!(f, "\n{:indent$}]", ""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_what_json_has_signs_for() {
        let text = "a \"b\" \\ c\n\t\u{7f}é".to_owned();
        assert_eq!(
            Text(&text).to_string(),
            "\"a \\\"b\\\" \\\\ c\\n\\u0009\\u007fé\""
        );
        assert_eq!(List::<Text<'_>>(&[], 2).to_string(), "[]");
        assert_eq!(List(&[1, 2], 2).to_string(), "[\n    1,\n    2\n  ]");
    }
}
