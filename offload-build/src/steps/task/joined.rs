//! Libraries of device functions that join bitcode which calls them.

use crate::messages::Failure;
use offload_build_core::error;
use offload_build_core::files;
use offload_build_core::process::command::Command;
use offload_build_core::process::temporary;
use offload_formats::format::bitcode;
use std::fs;
use std::path::{Path, PathBuf};

/// Libraries that join the output of a compile if it calls one of their functions. Without such a call the output keeps its bytes,
/// whether the libraries are installed or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    /// Prefixes of the functions' names.
    pub prefixes: &'static [&'static str],
    /// A library in LLVM IR: the file that it is written to before the commands run, and its text.
    pub source: Option<(PathBuf, &'static str)>,
    /// Read the compile's output, and write the file that [`joined`] names.
    pub commands: Vec<Command>,
    /// The libraries.
    pub files: Vec<PathBuf>,
}

/// Returns the file that the command writes, for the compile's output.
#[must_use]
pub(crate) fn joined(compiled: &Path) -> PathBuf {
    files::beside(compiled, ".joined")
}

impl Joined {
    /// Joins the libraries with the bitcode in the file `compiled` if it calls them; returns the messages.
    pub(crate) fn run(&self, compiled: &Path) -> Result<String, Failure> {
        let bytes = fs::read(compiled).map_err(error::io(compiled))?;
        if !self.is_called(&bytes) {
            return Ok(String::new());
        }
        if let Some((path, text)) = &self.source {
            files::write(path, text.as_bytes()).map_err(error::io(path))?;
        }
        let variables = temporary::variables(compiled.parent().unwrap_or(Path::new(".")));
        let mut messages = String::new();
        for command in &self.commands {
            let output = command.run_with(&variables).map_err(|error| {
                let _ = fs::remove_file(joined(compiled));
                Failure::Command(Box::new(error), String::new())
            })?;
            messages += &output.stderr;
        }
        fs::rename(joined(compiled), compiled).map_err(error::io(compiled))?;
        Ok(messages)
    }

    /// Tells whether bitcode calls a function of the libraries. Bitcode whose symbols cannot be read may call one.
    fn is_called(&self, bytes: &[u8]) -> bool {
        let Ok(symbols) = bitcode::symbols(bytes, 0..bytes.len() as u64) else {
            return true;
        };
        let has_prefix = |name: &[u8]| {
            let mut prefixes = self.prefixes.iter();
            prefixes.any(|prefix| name.starts_with(prefix.as_bytes()))
        };
        let mut undefined = symbols.iter().filter(|symbol| !symbol.defined);
        undefined.any(|symbol| has_prefix(symbol.name))
    }

    /// Returns what the output depends on, for its key.
    pub(crate) fn recipe(&self) -> String {
        let commands = self.commands.iter().map(|command| {
            let program = files::identity(command.program());
            format!("{command}\0{program}")
        });
        let files = self.files.iter().map(|file| files::identity(file));
        let text = self.source.as_ref().map(|(_, text)| (*text).to_owned());
        let parts: Vec<String> = commands.chain(files).chain(text).collect();
        parts.join("\0")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_bitcode_that_nobody_can_read_for_a_caller() {
        let joined = Joined {
            prefixes: &["__nv_"],
            source: None,
            commands: Vec::new(),
            files: Vec::new(),
        };
        assert!(joined.is_called(b"of a release with another format"));
    }
}
