//! Compiler launchers: programs that stand in front of a compile and keep its result or send it elsewhere, such as
//! ccache, sccache, distcc and icecc.
//!
//! Effects on each language and tested releases: `docs/caches.md`.

use crate::process::command::Command;
use crate::process::search::NotFound;
use crate::process::search::Search;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// Programs that preprocess here and compile on another machine.
const SENDERS: [&str; 2] = ["distcc", "icecc"];

/// A cache with a sender behind it would get the host's code for a device: clang compiles preprocessed text for the
/// host alone.
const VARIABLES: [(&str, &str); 1] = [("CCACHE_PREFIX", "")];

/// Words of sccache for a compiler that failed on another machine. By default clang gets text there that
/// `-x hip-cpp-output` calls preprocessed.
const SCCACHE_ELSEWHERE: &str = "sccache: Job failed on server";

/// A program with its arguments, to which a command line is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    program: PathBuf,
    args: Vec<String>,
}

impl Launcher {
    /// The launcher that `text` names: a program and its arguments, divided by blanks; a path is relative to `root`.
    ///
    /// # Errors
    ///
    /// If the program is not installed.
    pub fn find(text: &str, root: &Path, search: &Search) -> Result<Self, NotFound> {
        let whole = search.programs(&from(root, text)).next();
        if let Some(program) = whole {
            let args = Vec::new();
            return Ok(Self { program, args });
        }
        let mut words = text.split_whitespace();
        let name = from(root, words.next().unwrap_or_default());
        let program = search.program(&name).ok_or_else(|| {
            let searched = match name.contains('/') {
                true => name.clone(),
                false => format!("PATH for `{name}`"),
            };
            NotFound::new(
                text,
                vec![searched],
                "install it (Debian: `apt install ccache`), or set `launcher = \"none\"` or OFFLOAD_LAUNCHER=none to \
                 compile without one",
            )
        })?;
        let args = words.map(str::to_owned).collect();
        Ok(Self { program, args })
    }

    /// The one that Cargo starts rustc with, where it is one for C as well.
    #[must_use]
    pub fn of_rustc(wrapper: &str, search: &Search) -> Option<Self> {
        let stem = Path::new(wrapper).file_stem()?;
        let program = (stem == "sccache").then(|| search.program(wrapper))??;
        let args = Vec::new();
        Some(Self { program, args })
    }

    /// Tells whether it sends preprocessed text to other machines, instead of keeping results.
    #[must_use]
    pub fn sends(&self) -> bool {
        let stem = self.program.file_stem().unwrap_or_default();
        SENDERS.iter().any(|known| stem == *known)
    }

    /// The same command, started by it.
    #[must_use]
    pub fn launch(&self, command: &Command) -> Command {
        command.started_by(&self.program, &self.args)
    }
}

/// Paths are from the package.
fn from(root: &Path, name: &str) -> String {
    match name.contains('/') {
        true => root.join(name).to_string_lossy().into_owned(),
        false => name.to_owned(),
    }
}

/// How the commands of a task are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// Without a launcher.
    Plain,
    /// Without the launcher that there is, for this reason.
    Here(&'static str),
    /// With a launcher.
    Launched(Launched),
}

/// Commands in the place of others, with the same result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// The commands; those that the launcher starts come last.
    pub commands: Vec<Command>,
}

impl Launched {
    /// Variables of those commands.
    #[must_use]
    pub fn variables(&self) -> Vec<(&'static str, OsString)> {
        let pairs = VARIABLES.iter();
        pairs.map(|(name, value)| (*name, value.into())).collect()
    }

    /// Returns a hint for messages of a launcher that failed, or nothing.
    #[must_use]
    pub fn hint(messages: &str) -> &'static str {
        match messages.contains(SCCACHE_ELSEWHERE) {
            true => {
                "\nhint: other machines of sccache compile device code only with `rewrite_includes_only = true` \
                 under `[dist]` of its configuration"
            }
            false => "",
        }
    }
}

/// Prints the commands as a POSIX shell takes them, a line each.
impl fmt::Display for Launched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.commands.iter().try_for_each(|command| {
            for (name, value) in VARIABLES {
                write!(f, "{name}={value} ")?;
            }
            writeln!(f, "{command}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_program_with_arguments_a_path_and_a_path_with_a_blank() {
        let root = std::env::temp_dir().join(format!("offload-launcher-{}", std::process::id()));
        std::fs::create_dir_all(root.join("my tools")).unwrap();
        for name in ["my tools/ccache", "distcc", "sccache"] {
            std::fs::copy("/bin/true", root.join(name)).unwrap();
        }
        let search = Search {
            path: root.clone().into(),
            cuda: Vec::new(),
        };
        let line = |text: &str| {
            let found = Launcher::find(text, &root, &search).map_err(|error| error.to_string())?;
            let line = found.launch(&Command::new("clang").arg("-c")).to_string();
            let prefix = format!("{}/", root.display());
            Ok::<_, String>((line.replace(&prefix, ""), found.sends()))
        };
        let plain = |line: &str, sends| Ok((line.to_owned(), sends));
        assert_eq!(line("distcc -v"), plain("distcc -v clang -c", true));
        assert_eq!(line("./distcc"), plain("./distcc clang -c", true));
        assert_eq!(
            line("my tools/ccache"),
            plain("'my tools/ccache' clang -c", false)
        );
        let error = line("ccache -x").unwrap_err();
        assert!(
            error.starts_with(
                "`ccache -x` not found (searched: PATH for `ccache`) [OFF605]\nhint: "
            ),
            "{error}"
        );
        let of_rustc = |wrapper: &str| Launcher::of_rustc(wrapper, &search).is_some();
        assert!(of_rustc("sccache") && of_rustc(&root.join("sccache").to_string_lossy()));
        assert!(!of_rustc("distcc") && !of_rustc("/nonexistent/sccache"));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
