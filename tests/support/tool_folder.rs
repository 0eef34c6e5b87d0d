//! A folder with inputs, in which one of our tools runs under LLVM's name.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

pub struct Folder {
    pub folder: TempDir,
    /// Started as this.
    pub tool: PathBuf,
    pub variables: Vec<(&'static str, &'static str)>,
}

/// What the tool did.
pub struct Done {
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Folder {
    /// An empty one, in which `program` is called `name`.
    pub fn with_tool(program: &str, name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tool = folder.path().join(name);
        symlink(program, &tool).unwrap();
        Self {
            folder,
            tool,
            variables: Vec::new(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    pub fn run(&self, args: &[&str]) -> Done {
        let output = Command::new(&self.tool)
            .args(args)
            .current_dir(self.folder.path())
            .env_remove("OFFLOAD_LLVM")
            .envs(self.variables.iter().copied())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Done {
            status: output.status.code(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    /// Runs it, which must succeed.
    pub fn done(&self, args: &[&str]) -> Done {
        let done = self.run(args);
        assert_eq!(done.status, Some(0), "{args:?}\n{}", done.err);
        done
    }

    /// The text after `error: `, the hint left out.
    pub fn error(&self, args: &[&str]) -> String {
        let done = self.run(args);
        assert_eq!(done.status, Some(1), "{args:?}\n{}", done.err);
        let start = format!("{}: error: ", self.tool.display());
        let line = done.err.lines().find_map(|line| line.strip_prefix(&start));
        line.unwrap_or_else(|| panic!("{args:?}\n{}", done.err))
            .to_owned()
    }
}
