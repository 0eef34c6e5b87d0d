//! A temporary folder with files, in which tests and benches run programs.

#![allow(dead_code, reason = "each test and each bench uses a part of it")]
#![allow(
    unreachable_pub,
    reason = "a module of several crates, none of which exports it"
)]
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

pub struct Folder(TempDir);

impl Folder {
    /// An empty one.
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// An empty one in memory, if this system has `/dev/shm`.
    pub fn in_memory() -> Self {
        Self(TempDir::new_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap()))
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root().join(name)
    }

    /// Writes a file, in a folder that may be new, and returns its path. A script can be started.
    pub fn write(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &bytes).unwrap();
        if bytes.as_ref().starts_with(b"#!") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        path
    }

    /// Writes a shell script.
    pub fn script(&self, name: impl AsRef<Path>, body: &str) -> PathBuf {
        self.write(name, format!("#!/bin/sh\n{body}\n"))
    }

    pub fn read(&self, name: impl AsRef<Path>) -> Vec<u8> {
        let path = self.path(name);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub fn exists(&self, name: impl AsRef<Path>) -> bool {
        self.path(name).exists()
    }

    /// A command that runs here.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.root());
        command
    }

    /// Runs a program here, which must succeed, and returns its output.
    pub fn run<A: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        arguments: impl IntoIterator<Item = A>,
    ) -> String {
        run(self.command(program).args(arguments))
    }
}

/// Runs a command, which must succeed, and gives its standard output.
pub fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{out}{err}",
        output.status
    );
    out
}
