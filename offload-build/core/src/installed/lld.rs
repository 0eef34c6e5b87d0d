//! The lld that links kernels in Rust for AMD GPUs if no clang reads the bitcode of the rustc.

use crate::installed::answers::Answers;
use crate::installed::llvm::RELEASES;
use crate::installed::rustc::Rustc;
use crate::process::command::Command;
use crate::process::search::{Search, program_in};
use std::path::{Path, PathBuf};

/// An lld that reads the bitcode of a rustc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lld {
    pub program: PathBuf,
    /// The line of `--version` that tells its release.
    pub version: String,
    /// The release of its LLVM, such as 22.
    release: u32,
}

impl Lld {
    /// Finds the lld of the rustc's own toolchain, else the newest in `PATH`, of the rustc's LLVM or newer.
    ///
    /// # Errors
    ///
    /// The problem of each lld found.
    pub fn find(rustc: &Rustc, search: &Search, answers: &Answers) -> Result<Self, Vec<String>> {
        let own = rustc.tools.first();
        let own = own.map(|folder| program_in(folder, "rust-lld"));
        let own = own.into_iter().filter(|path| path.is_file());
        let named = RELEASES.rev().map(|release| format!("ld.lld-{release}"));
        let named = named.chain(["ld.lld".to_owned()]);
        let in_path = named.flat_map(|name| search.programs(&name).collect::<Vec<_>>());
        let mut problems = Vec::new();
        for program in own.chain(in_path) {
            match Self::of(&program, answers) {
                Ok(lld) if lld.release >= rustc.llvm => return Ok(lld),
                Ok(lld) => {
                    problems.push(format!("`{}` (LLVM {})", program.display(), lld.release));
                }
                Err(problem) => problems.push(format!("`{}` ({problem})", program.display())),
            }
        }
        Err(problems)
    }

    /// Asks a program for its release.
    ///
    /// # Errors
    ///
    /// If it does not answer as an lld.
    pub fn of(program: &Path, answers: &Answers) -> Result<Self, String> {
        let answer = answers.to(&start(program).arg("--version"));
        let answer = answer.map_err(|_| "does not say what it is".to_owned())?;
        let version = answer.lines().next().unwrap_or_default().trim().to_owned();
        let release = release(&version).ok_or_else(|| format!("says `{version}`"))?;
        Ok(Self {
            program: program.to_owned(),
            version,
            release,
        })
    }

    /// Returns the command of a link.
    pub fn command(&self) -> Command {
        start(&self.program)
    }
}

/// Starts a command of lld, which takes what it is from its name: `rust-lld` is any of its linkers.
fn start(program: &Path) -> Command {
    let name = program.file_name().unwrap_or_default();
    let flavor = match name.to_string_lossy().starts_with("ld.lld") {
        true => None,
        false => Some(["-flavor", "gnu"]),
    };
    Command::new(program).args(flavor.into_iter().flatten())
}

/// Reads the release of LLVM in the answer of an lld.
fn release(version: &str) -> Option<u32> {
    let (_, number) = version.split_once("LLD ")?;
    number.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_release_of_an_lld() {
        // rust-lld of Rust 1.95, Debian's, and mold.
        let rows = [
            (
                "LLD 22.1.2 (/checkout/src/llvm-project/llvm 1cb4e38) (compatible with GNU linkers)",
                Some(22),
            ),
            ("Debian LLD 19.1.7 (compatible with GNU linkers)", Some(19)),
            ("mold 2.40.0 (compatible with GNU ld)", None),
        ];
        for (version, expected) in rows {
            assert_eq!(release(version), expected, "{version}");
        }
    }

    #[test]
    fn says_which_linker_a_program_shall_be() {
        for (program, expected) in [
            ("/bin/ld.lld-22", "/bin/ld.lld-22"),
            ("/bin/rust-lld", "/bin/rust-lld -flavor gnu"),
        ] {
            assert_eq!(start(Path::new(program)).to_string(), expected);
        }
    }
}
