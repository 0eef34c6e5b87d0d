//! A folder with inputs, in which one of our tools runs under LLVM's name.

use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Stdio;

use super::folder::Folder;

pub struct ToolFolder {
    folder: Folder,
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

impl Deref for ToolFolder {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.folder
    }
}

impl ToolFolder {
    /// An empty one, in which `program` is called `name`.
    pub fn with_tool(program: &str, name: &str) -> Self {
        let folder = Folder::new();
        let tool = folder.path(name);
        symlink(program, &tool).unwrap();
        Self {
            folder,
            tool,
            variables: Vec::new(),
        }
    }

    pub fn run(&self, args: &[&str]) -> Done {
        let output = self
            .command(&self.tool)
            .args(args)
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
