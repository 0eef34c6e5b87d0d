//! LLVM's tools that link kernels in Rust for NVIDIA GPUs if no clang reads the bitcode of the rustc.

use crate::installed::answers::Answers;
use crate::installed::llvm::{RELEASES, numbers};
use crate::installed::rustc::Rustc;
use crate::process::command::Command;
use crate::process::search::{Search, program_in};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// `llvm-link`, `opt` and `llc` of one LLVM, which reads the bitcode of a rustc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LlvmTools {
    pub llvm_link: PathBuf,
    pub opt: PathBuf,
    pub llc: PathBuf,
    /// The line of `llc --version` that tells its release.
    pub version: String,
    /// The numbers of its LLVM, such as 22, 1 and 8.
    release: Vec<u32>,
    /// NVIDIA's processors that it knows.
    processors: BTreeSet<String>,
}

impl LlvmTools {
    /// Finds the tools of the rustc's own toolchain, else the newest of rustup's other toolchains, else the newest in `PATH`, of the
    /// rustc's LLVM or newer.
    ///
    /// # Errors
    ///
    /// The problem of each `llc` found.
    pub fn find(rustc: &Rustc, search: &Search, answers: &Answers) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let mut reads = |llc: &Path| match Self::of(llc, answers) {
            Ok(tools) if tools.major() >= rustc.llvm => Some(tools),
            Ok(tools) => {
                problems.push(format!("`{}` (LLVM {})", llc.display(), tools.major()));
                None
            }
            Err(problem) => {
                problems.push(format!("`{}` ({problem})", llc.display()));
                None
            }
        };
        let mut folders = rustc.tools.iter();
        let own = folders.next().map(|folder| program_in(folder, "llc"));
        let own = own.filter(|llc| llc.is_file());
        if let Some(tools) = own.as_deref().and_then(&mut reads) {
            return Ok(tools);
        }
        let others = rustc.tools.iter().flat_map(|folder| in_toolchains(folder));
        let mut others: Vec<PathBuf> = others.filter(|llc| Some(llc) != own.as_ref()).collect();
        others.sort();
        others.dedup();
        let mut newest: Option<Self> = None;
        for tools in others.iter().filter_map(|llc| reads(llc)) {
            if newest
                .as_ref()
                .is_none_or(|known| tools.release > known.release)
            {
                newest = Some(tools);
            }
        }
        if let Some(newest) = newest {
            return Ok(newest);
        }
        let names = RELEASES.rev().map(|release| format!("llc-{release}"));
        let mut names = names.chain(["llc".to_owned()]);
        let in_path = names.find_map(|name| search.programs(&name).find_map(|llc| reads(&llc)));
        in_path.ok_or(problems)
    }

    /// Asks an `llc` for its release and the processors that it knows, and finds the other tools beside it.
    ///
    /// # Errors
    ///
    /// If it does not answer as an `llc` for NVIDIA GPUs, or is alone.
    pub fn of(llc: &Path, answers: &Answers) -> Result<Self, String> {
        let ask = |args: &[&str]| {
            let answer = answers.to(&Command::new(llc).args(args.iter().copied()));
            answer.map_err(|_| "does not say what it is".to_owned())
        };
        let answer = ask(&["--version"])?;
        let version = answer.lines().map(str::trim);
        let version = version.filter(|line| line.contains("LLVM version "));
        let first = || answer.lines().next().unwrap_or_default().trim();
        let version = version.into_iter().next().unwrap_or_else(first).to_owned();
        let release = numbers(&version).ok_or_else(|| format!("says `{version}`"))?;
        let mut words = answer
            .lines()
            .filter_map(|line| line.split_whitespace().next());
        if !words.any(|word| word == "nvptx64") {
            return Err("has no back end for `nvptx64`".to_owned());
        }
        let name = llc.file_name().unwrap_or_default().to_string_lossy();
        let suffix = name.strip_prefix("llc").unwrap_or_default();
        let beside = |name: &str| {
            let path = llc.with_file_name(format!("{name}{suffix}"));
            let missing = || format!("has no `{name}{suffix}` beside it");
            path.is_file().then_some(path).ok_or_else(missing)
        };
        Ok(Self {
            llvm_link: beside("llvm-link")?,
            opt: beside("opt")?,
            llc: llc.to_owned(),
            version,
            release,
            processors: processors(&ask(&["-march=nvptx64", "-mcpu=help"])?),
        })
    }

    /// Returns the reason why it makes no code for a processor. `llc` would warn, and take another processor.
    pub fn problem(&self, processor: &str) -> Option<String> {
        let (llc, release) = (self.llc.display(), self.major());
        let is_unknown = !self.processors.contains(processor);
        is_unknown.then(|| format!("`{llc}` (LLVM {release}) does not know `{processor}` [OFF602]"))
    }

    /// Returns the number of its LLVM's release.
    #[must_use]
    pub fn major(&self) -> u32 {
        self.release.first().copied().unwrap_or_default()
    }
}

/// Returns the `llc` of each toolchain of rustup, if `tools` is the folder of LLVM programs in one of them.
fn in_toolchains(tools: &Path) -> Vec<PathBuf> {
    let root = tools.ancestors().nth(4);
    let all = root.and_then(Path::parent);
    let all = all.filter(|folder| folder.file_name().is_some_and(|name| name == "toolchains"));
    let (Some(root), Some(all)) = (root, all) else {
        return Vec::new();
    };
    let (Ok(place), Ok(entries)) = (tools.strip_prefix(root), fs::read_dir(all)) else {
        return Vec::new();
    };
    let roots = entries.flatten().map(|entry| entry.path());
    let programs = roots.map(|root| program_in(&root.join(place), "llc"));
    programs.filter(|llc| llc.is_file()).collect()
}

/// Reads the processors in the answer of an `llc`: one on each line, before a dash.
fn processors(answer: &str) -> BTreeSet<String> {
    let names = answer.lines().filter_map(|line| line.split_once(" - "));
    let names = names.map(|(name, _)| name.trim());
    let names = names.filter(|name| name.starts_with("sm_"));
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_processors_that_llc_lists() {
        // llc 22.1, shortened.
        let answer = "Available CPUs for this target:\n\n  sm_100  - Select the sm_100 processor.\n  sm_100a - Select the sm_100a \
            processor.\n\nAvailable features for this target:\n\n  ptx32   - Use PTX version 32.\n  sm_100  - Target SM 100.\n\n\
            Use +feature to enable a feature, or -feature to disable it.\n";
        assert_eq!(
            processors(answer),
            ["sm_100", "sm_100a"].map(str::to_owned).into()
        );
    }
}
