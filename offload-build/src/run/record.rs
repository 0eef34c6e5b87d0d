//! `OUT_DIR/offload/manifest.json`: what was built from what, for people and for other programs.
//!
//! It is there only after a build that succeeded. Its page is `docs/json.md`.

use crate::steps::step::Made;
use offload_build_core::declare::module::{Module, Register, Target};
use offload_build_core::declare::skipped::Skipped;
use offload_build_core::installed::compilers::Compiler;
use offload_build_core::installed::host::Host;
use offload_build_core::installed::machine::Registrar;
use std::fmt::{self, Display, Write as _};
use std::path::Path;

/// Path of the record, below `OUT_DIR`.
pub(crate) const FILE: &str = "offload/manifest.json";

/// The record of a module.
pub(crate) struct Record<'a> {
    pub(crate) module: &'a Module,
    pub(crate) registration: Registrar,
    pub(crate) compiler: Option<&'a Compiler>,
    /// Libraries that programs with the module's host code need, in the order of a link.
    pub(crate) libraries: Vec<String>,
    /// Folder of the runtime among them, if it was found.
    pub(crate) library_folder: Option<&'a Path>,
    /// Targets that have an image.
    pub(crate) targets: &'a [Target],
    /// The others.
    pub(crate) skipped: &'a [Skipped],
    pub(crate) made: &'a [Made],
}

/// The package of the build script.
pub(crate) struct RecordedPackage<'a> {
    pub(crate) name: &'a str,
    pub(crate) version: &'a str,
    /// Absolute path of the folder of its `Cargo.toml`.
    pub(crate) folder: &'a str,
}

/// The whole text.
pub(crate) fn text(package: &RecordedPackage<'_>, host: &Host, records: &[Record<'_>]) -> String {
    let mut text = String::new();
    // Nothing fails that writes to a string.
    let _ = write!(
        text,
        "{{\n  \"schema\": 1,\n  \"package\": {},\n  \"host\": {},\n  \"modules\": {}\n}}\n",
        Json(package),
        Json(&host.triple),
        List(records, 2)
    );
    text
}

/// A value as JSON.
struct Json<'a, T: ?Sized>(&'a T);

impl Display for Json<'_, RecordedPackage<'_>> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RecordedPackage {
            name,
            version,
            folder,
        } = *self.0;
        write!(
            f,
            "{{ \"name\": {}, \"version\": {}, \"folder\": {} }}",
            Json(name),
            Json(version),
            Json(folder)
        )
    }
}

impl Display for Json<'_, Record<'_>> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = self.0;
        let module = record.module;
        let compiler = record
            .compiler
            .map(|compiler| compiler.program.to_string_lossy());
        let version = record.compiler.map(|compiler| &*compiler.version);
        let register = match module.register {
            Register::None => "none",
            _ if record.registration == Registrar::LastLink => "deferred",
            _ => "complete",
        };
        let left_out: Vec<String> = record.skipped.iter().map(ToString::to_string).collect();
        let include = module.include.iter();
        let include: Vec<String> = include
            .map(|folder| folder.to_string_lossy().into_owned())
            .collect();
        let folder = record.library_folder.map(Path::to_string_lossy);
        write!(
            f,
            "{{\n      \"name\": {},\n      \"language\": {},\n      \"register\": {},\n      \"container\": {},\n      \
             \"compiler\": {},\n      \"compiler_version\": {},\n      \"targets\": {},\n      \"left_out\": {},\n      \
             \"include\": {},\n      \"libraries\": {},\n      \"library_folder\": {},\n      \
             \"files\": {}\n    }}",
            Json(&module.name),
            Json(module.language.name()),
            Json(register),
            Json(module.container.name()),
            Json(&*compiler.unwrap_or_default()),
            Json(version.unwrap_or_default()),
            List(record.targets, 6),
            List(&left_out, 6),
            List(&include, 6),
            List(&record.libraries, 6),
            Json(&*folder.unwrap_or_default()),
            List(record.made, 6),
        )
    }
}

impl Display for Json<'_, Target> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let processor = self.0.id.to_string();
        write!(
            f,
            "{{ \"target\": {}, \"triple\": {}, \"processor\": {} }}",
            Json(self.0.written.as_str()),
            Json(self.0.triple.as_str()),
            Json(&processor)
        )
    }
}

impl Display for Json<'_, Made> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths = |paths: &[std::path::PathBuf]| -> Vec<String> {
            paths
                .iter()
                .map(|path| path.to_string_lossy().into_owned())
                .collect()
        };
        let (outputs, inputs) = (paths(&self.0.outputs), paths(&self.0.inputs));
        let texts = |texts: &[String]| List(texts, 10).to_string();
        write!(
            f,
            "{{\n          \"what\": {},\n          \"outputs\": {},\n          \"inputs\": {},\n          \"commands\": {}\n        }}",
            Json(self.0.title.as_str()),
            texts(&outputs),
            texts(&inputs),
            texts(&self.0.commands)
        )
    }
}

impl Display for Json<'_, String> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Json(self.0.as_str()).fmt(f)
    }
}

impl Display for Json<'_, str> {
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

impl<'a, T> Display for List<'a, T>
where
    Json<'a, T>: Display,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(values, indent) = self;
        f.write_char('[')?;
        for (index, value) in values.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(
                f,
                "{comma}\n{:width$}{}",
                "",
                Json(value),
                width = indent + 2
            )?;
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
            Json(&text).to_string(),
            "\"a \\\"b\\\" \\\\ c\\n\\u0009\\u007fé\""
        );
        assert_eq!(List::<String>(&[], 2).to_string(), "[]");
        let texts = ["a".to_owned(), "b".to_owned()];
        assert_eq!(List(&texts, 2).to_string(), "[\n    \"a\",\n    \"b\"\n  ]");
    }
}
