//! Two tools on the same command lines, LLVM's and ours, and everything of them that can be seen.

use super::folder::Folder;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::tool;

/// What a tool did.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// `None` after a signal.
    pub status: Option<i32>,
    pub out: Vec<u8>,
    pub err: String,
    /// Of its folder, by name.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// Whether two outcomes are the same but for keys, which are collected: theirs, then ours.
pub type Explain<Key> = fn(&Outcome, &Outcome, &mut Vec<Key>) -> bool;

/// Both tools, and a folder for each.
pub struct Pair<Key> {
    /// Of LLVM: `22`.
    pub release: &'static str,
    /// Under which both are started.
    pub name: &'static str,
    theirs: PathBuf,
    ours: &'static Path,
    /// Theirs, then ours.
    pub folders: [Folder; 2],
    explain: Explain<Key>,
    seen: BTreeMap<Key, usize>,
    counts: BTreeMap<String, usize>,
}

impl<Key: Copy + Debug + Ord> Pair<Key> {
    /// LLVM's tool of that name, and ours; none when LLVM's is missing.
    pub fn new(
        word: &'static str,
        name: &'static str,
        ours: &'static str,
        explain: Explain<Key>,
    ) -> Option<Self> {
        let folder = || Folder::new();
        Some(Self {
            release: word.trim_start_matches("llvm"),
            name,
            theirs: tool(word, &[name])?,
            ours: Path::new(ours),
            folders: [folder(), folder()],
            explain,
            seen: BTreeMap::new(),
            counts: BTreeMap::new(),
        })
    }

    /// The same file for both.
    pub fn write(&self, name: &str, bytes: &[u8]) {
        for folder in &self.folders {
            fs::write(folder.root().join(name), bytes).unwrap();
        }
    }

    /// Removes all files but those of these names.
    pub fn clear_but(&self, kept: &[&str]) {
        for folder in &self.folders {
            for entry in fs::read_dir(folder.root()).unwrap() {
                let entry = entry.unwrap();
                if !kept.contains(&entry.file_name().to_str().unwrap()) {
                    fs::remove_file(entry.path()).unwrap();
                }
            }
        }
    }

    pub fn clear(&self) {
        self.clear_but(&[]);
    }

    /// Runs LLVM's tool.
    pub fn run_theirs(&self, args: &[&str]) -> Outcome {
        self.run(0, &self.theirs, args, &[])
    }

    fn run(
        &self,
        folder: usize,
        program: &Path,
        args: &[&str],
        variables: &[(&str, &str)],
    ) -> Outcome {
        let folder = self.folders[folder].root();
        let output = Command::new(program)
            .arg0(self.name)
            .args(args)
            .current_dir(folder)
            .env_clear()
            // Where LLVM's tools look for each other.
            .env("PATH", self.theirs.parent().unwrap())
            .env("OFFLOAD_LLVM", self.release)
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let files = fs::read_dir(folder).unwrap().map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        });
        Outcome {
            status: output.status.code(),
            out: output.stdout,
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
            files: files.collect(),
        }
    }

    /// Runs both and compares; `what` is how the case is counted. Gives theirs.
    pub fn compare(&mut self, what: &str, args: &[&str], variables: &[(&str, &str)]) -> Outcome {
        *self.counts.entry(what.to_owned()).or_default() += 1;
        let theirs = self.run(0, &self.theirs, args, variables);
        let ours = self.run(1, self.ours, args, variables);
        let mut keys = Vec::new();
        assert!(
            (self.explain)(&theirs, &ours, &mut keys),
            "{what}: {} {} and ours differ\n{args:?} {variables:?}\n{}\n{}",
            self.name,
            self.release,
            show(&theirs, &ours),
            show(&ours, &theirs)
        );
        for key in keys {
            *self.seen.entry(key).or_default() += 1;
        }
        theirs
    }

    /// Prints the counts.
    pub fn report(&self) {
        let total: usize = self.counts.values().sum();
        println!("llvm{}: {total} cases, {:?}", self.release, self.counts);
        println!("allowed differences: {:?}", self.seen);
    }
}

/// What differs from the other in files, and the rest whole.
fn show(outcome: &Outcome, other: &Outcome) -> String {
    let differs = |(name, bytes): &(&String, &Vec<u8>)| other.files.get(*name) != Some(*bytes);
    let files = outcome.files.iter().filter(differs).map(|(name, bytes)| {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned();
        format!("  {name}: {} bytes {text:?}", bytes.len())
    });
    format!(
        "status {:?}\nout {:?}\nerr {}\n{}",
        outcome.status,
        String::from_utf8_lossy(&outcome.out),
        outcome.err,
        files.collect::<Vec<_>>().join("\n")
    )
}
