//! Wine with a folder (`WINEPREFIX`) of its own, which ends with the value.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};

use tempfile::TempDir;

/// Where Wine's libraries are: in Debian from `/usr/lib` on, whose `wine` has the program, elsewhere from `/usr` on.
const LIBRARIES: [&str; 3] = [
    "x86_64-linux-gnu/wine/x86_64-windows",
    "lib64/wine/x86_64-windows",
    "lib/wine/x86_64-windows",
];

pub struct Wine {
    program: PathBuf,
    prefix: TempDir,
}

impl Wine {
    /// `None` if Wine is not installed.
    pub fn start() -> Option<Self> {
        let wine = Self {
            program: super::tool("wine", &["wine64", "wine"])?,
            prefix: TempDir::new().unwrap(),
        };
        wine.link_libraries();
        // Debian's server ends with the last program, and a program that starts at that moment loses its connection.
        assert!(wine.server("-p").success());
        Some(wine)
    }

    /// Wine copies 700 MB of libraries into a new folder, for 10 seconds. With a link to them it does not.
    fn link_libraries(&self) {
        let program = fs::canonicalize(&self.program).unwrap();
        let above = program.parent().and_then(Path::parent).unwrap();
        let mut folders = LIBRARIES.iter().map(|folder| above.join(folder));
        let Some(libraries) = folders.find(|folder| folder.join("kernel32.dll").is_file()) else {
            return;
        };
        let at = |name: &str| self.prefix.path().join(name);
        fs::create_dir_all(at("drive_c/windows")).unwrap();
        fs::create_dir(at("dosdevices")).unwrap();
        symlink(libraries, at("drive_c/windows/system32")).unwrap();
        symlink("../drive_c", at("dosdevices/c:")).unwrap();
        symlink("/", at("dosdevices/z:")).unwrap();
        fs::write(at(".update-timestamp"), "disable\n").unwrap();
    }

    /// Starts Wine's server for all programs (`-p`), or ends it (`-k`).
    fn server(&self, option: &str) -> ExitStatus {
        let mut server = Command::new(self.program.with_file_name("wineserver"));
        let server = self.with_folder(server.arg(option));
        let server = server.stdout(Stdio::null()).stderr(Stdio::null());
        server.status().unwrap()
    }

    fn with_folder<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.env("WINEPREFIX", self.prefix.path())
    }

    /// Returns the command that starts a program for Windows.
    pub fn command(&self, program: &Path) -> Command {
        let mut wine = Command::new(&self.program);
        self.with_folder(wine.arg(program))
            .env("WINEDEBUG", "-all")
            .env("WINEDLLOVERRIDES", "mscoree,mshtml=")
            .stdin(Stdio::null());
        wine
    }

    /// Output goes into files: what Wine starts in the background would keep pipes open.
    pub fn output(&self, command: &mut Command) -> Output {
        let [stdout, stderr] = ["stdout", "stderr"].map(|name| self.prefix.path().join(name));
        let file = |path: &Path| File::create(path).unwrap();
        let status = command.stdout(file(&stdout)).stderr(file(&stderr)).status();
        Output {
            status: status.unwrap(),
            stdout: fs::read(&stdout).unwrap(),
            stderr: fs::read(&stderr).unwrap(),
        }
    }
}

impl Drop for Wine {
    /// Wine's server stays otherwise, and writes into its folder.
    fn drop(&mut self) {
        self.server("-k");
    }
}
