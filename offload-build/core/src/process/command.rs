//! A program and its arguments, as a value: the same one is printed, compared and run.

use offload_formats_core::escape::{self, Colors};
use std::error::Error as StdError;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write as _};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

/// Variables with which one compiler driver tells another where to look. Inherited by a device
/// compiler they make it run the wrong linker, ours among them (`docs/spec/linker-wrapper.md` §8.5).
const SCRUBBED: [&str; 9] = [
    "COMPILER_PATH",
    "LIBRARY_PATH",
    "GCC_EXEC_PREFIX",
    "COLLECT_GCC",
    "COLLECT_GCC_OPTIONS",
    "COLLECT_AS_OPTIONS",
    "COLLECT_LTO_WRAPPER",
    "COLLECT_NAMES",
    "COLLECT_NO_DEMANGLE",
];

/// Set for every program that is started, except Cargo: below it a linker wrapper only passes on what it is given.
pub const GUARD: &str = "OFFLOAD_LINK_ACTIVE";

/// An external program with its arguments.
///
/// ```
/// use offload_build_core::process::command::Command;
///
/// let command = Command::new("clang").arg("-c").arg("dir with space/k.c");
/// assert_eq!(command.to_string(), "clang -c 'dir with space/k.c'");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    program: PathBuf,
    args: Vec<OsString>,
    /// Kept if an option or a variable, which is not printed, asks the program for colors. They change no result, so they are no
    /// part of what keys are made from.
    colors: Colors,
    color_request: ColorRequest,
    extras: Option<Box<Extras>>,
}

/// The way in which a program is asked for colors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ColorRequest {
    /// By clang's option.
    #[default]
    ClangOption,
    /// By Cargo's variable.
    CargoVariable,
}

/// Properties that few commands have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Extras {
    /// Variables that differ from those of this process.
    set: Vec<(&'static str, OsString)>,
    removed: Vec<OsString>,
    /// A warning with these words is a failure.
    refused_warning: Option<&'static str>,
    /// The folder in which it starts, if not that of this process.
    folder: Option<PathBuf>,
    /// True if it links programs of its own, perhaps with a linker wrapper.
    links_programs: bool,
}

impl Command {
    /// A command without arguments.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            colors: Colors::Removed,
            color_request: ColorRequest::default(),
            extras: None,
        }
    }

    /// This command, which also fails if it succeeds with a warning that has these words.
    #[must_use]
    pub fn refuse_warning(mut self, words: &'static str) -> Self {
        self.extras.get_or_insert_default().refused_warning = Some(words);
        self
    }

    /// This command, which starts in another folder: for programs whose output depends on it.
    #[must_use]
    pub fn starting_in(mut self, folder: PathBuf) -> Self {
        self.extras.get_or_insert_default().folder = Some(folder);
        self
    }

    /// This command, which links programs of its own, as Cargo does: a linker wrapper below it works as ever.
    #[must_use]
    pub fn linking_programs(mut self) -> Self {
        self.extras.get_or_insert_default().links_programs = true;
        self
    }

    /// The command that another program starts, which gets `args` and then this command. All else stays, such as a refused warning.
    #[must_use]
    pub fn started_by(&self, program: &Path, args: &[String]) -> Self {
        let mut all: Vec<OsString> = args.iter().map(OsString::from).collect();
        all.push(self.program.clone().into());
        all.extend_from_slice(&self.args);
        Self {
            program: program.to_owned(),
            args: all,
            ..self.clone()
        }
    }

    /// This command with a value for a variable.
    #[must_use]
    pub fn variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        let extras = self.extras.get_or_insert_default();
        extras.set.push((name, value.into()));
        self
    }

    /// This command without variables that it would inherit. They are not printed: a shell does not have them.
    #[must_use]
    pub fn without_variables(mut self, names: &[OsString]) -> Self {
        let extras = self.extras.get_or_insert_default();
        extras.removed.extend_from_slice(names);
        self
    }

    /// This command, which is clang's, with colors in its messages or without them.
    #[must_use]
    pub fn with_colors(mut self, colors: Colors) -> Self {
        self.colors = colors;
        self
    }

    /// This command, which is Cargo's, with colors in its messages and those of rustc or without them.
    #[must_use]
    pub fn with_cargo_colors(mut self, colors: Colors) -> Self {
        self.color_request = ColorRequest::CargoVariable;
        self.with_colors(colors)
    }

    /// Returns whether its messages have colors.
    #[must_use]
    pub fn colors(&self) -> Colors {
        self.colors
    }

    /// This command with one more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// This command with more arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        // A loop: `extend` is compiled for each type of list, and there are many.
        for arg in args {
            self.args.push(arg.into());
        }
        self
    }

    /// Returns the program: a path, or a name that the system looks up in `PATH`.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The arguments, without the program.
    #[must_use]
    pub fn arguments(&self) -> &[OsString] {
        &self.args
    }

    /// Runs the program to its end, without standard input, its output captured.
    ///
    /// # Errors
    ///
    /// When the program cannot be started, ends in any way but success, or writes a warning that is refused.
    pub fn run(&self) -> Result<Output, CommandError> {
        self.run_with(&[])
    }

    /// The same with other values of some variables. Arguments that the kernel may refuse on a command line are in `file` for as long
    /// as the program runs: a compiler, or a linker of device code, which reads them there.
    ///
    /// # Errors
    ///
    /// Those of [`Self::run`].
    pub fn run_in_file(
        &self,
        variables: &[(&str, OsString)],
        file: &Path,
    ) -> Result<Output, CommandError> {
        let sizes = self.args.iter().map(|arg| arg.len() + 16);
        let program = self.program.file_name().unwrap_or_default();
        let is_nvidias = program.as_encoded_bytes().starts_with(b"nv");
        // NVIDIA's programs read no quotes inside of arguments.
        let has_quotes = |arg: &OsString| {
            arg.as_encoded_bytes()
                .iter()
                .any(|byte| b"\"\\".contains(byte))
        };
        if sizes.sum::<usize>() < SHORT || is_nvidias && self.args.iter().any(has_quotes) {
            return self.run_with(variables);
        }
        let of_this = |cause| CommandError {
            command: self.clone(),
            cause,
        };
        std::fs::write(file, response_file(&self.args))
            .map_err(|source| of_this(Cause::Start(source)))?;
        let args = match is_nvidias {
            true => vec!["-optf".into(), file.as_os_str().to_owned()],
            false => {
                let mut arg = OsString::from("@");
                arg.push(file);
                vec![arg]
            }
        };
        let short = Self {
            args,
            ..self.clone()
        };
        let result = short.run_with(variables);
        // A file that stays only takes space.
        let _ = std::fs::remove_file(file);
        result.map_err(|error| of_this(error.cause))
    }

    /// The same with other values of some variables.
    ///
    /// # Errors
    ///
    /// Those of [`Self::run`].
    pub fn run_with(&self, variables: &[(&str, OsString)]) -> Result<Output, CommandError> {
        let mut process = self.process();
        process.envs(variables.iter().map(|(name, value)| (name, value)));
        let output = process.output().map_err(|source| CommandError {
            command: self.clone(),
            cause: Cause::Start(source),
        })?;
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        let stderr = escape::messages(&stderr, self.colors);
        let extras = self.extras.as_deref();
        let refused = extras.and_then(|extras| extras.refused_warning);
        if output.status.success() && !refused.is_some_and(|words| stderr.contains(words)) {
            return Ok(Output { stdout, stderr });
        }
        Err(CommandError {
            command: self.clone(),
            cause: Cause::Failed {
                status: output.status,
                output: escape::messages(&stdout, self.colors) + &stderr,
            },
        })
    }
}

impl Command {
    /// Returns the process, with the environment that device compilers get.
    fn process(&self) -> std::process::Command {
        let mut process = std::process::Command::new(&self.program);
        process.args(&self.args).stdin(Stdio::null());
        match (self.color_request, self.colors) {
            (ColorRequest::ClangOption, Colors::Removed) => {}
            (ColorRequest::ClangOption, Colors::Kept) => {
                process.arg("-fcolor-diagnostics");
            }
            (ColorRequest::CargoVariable, colors) => {
                let is_kept = colors == Colors::Kept;
                process.env("CARGO_TERM_COLOR", if is_kept { "always" } else { "never" });
            }
        }
        for name in SCRUBBED {
            process.env_remove(name);
        }
        if let Some(extras) = &self.extras {
            for name in &extras.removed {
                process.env_remove(name);
            }
            let set = extras.set.iter();
            process.envs(set.map(|(name, value)| (name, value)));
            if let Some(folder) = &extras.folder {
                process.current_dir(folder);
            }
        }
        match self
            .extras
            .as_ref()
            .is_some_and(|extras| extras.links_programs)
        {
            true => process.env_remove(GUARD),
            false => process.env(GUARD, "1"),
        };
        process
    }
}

/// Number of argument bytes that every kernel accepts. Windows limits a command line to 32,767 characters.
const SHORT: usize = if cfg!(windows) { 30_000 } else { 100_000 };

/// Returns the text of a file of options that GCC and LLVM's programs read back as `args`, and NVIDIA's if no argument has quotes or
/// backslashes.
fn response_file(args: &[OsString]) -> Vec<u8> {
    let mut text = Vec::new();
    for arg in args {
        text.push(b'"');
        for byte in arg.as_encoded_bytes() {
            if matches!(byte, b'"' | b'\\') {
                text.push(b'\\');
            }
            text.push(*byte);
        }
        text.extend(b"\"\n");
    }
    text
}

/// The value of `LD_LIBRARY_PATH` without the folders of Rust's sysroots: rustc puts its own there, in which an
/// LLVM of its own release may be.
#[must_use]
#[cfg(feature = "tools")]
pub fn without_rustc(path: &OsStr) -> OsString {
    let is_sysroot = |folder: &PathBuf| {
        folder.iter().any(|part| part == "rustlib") || folder.join("rustlib").is_dir()
    };
    let rest = std::env::split_paths(path).filter(|folder| !is_sysroot(folder));
    std::env::join_paths(rest).expect("a path that was split at separators has none in its parts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Prints the command as a POSIX shell takes it: pasted into one, the line runs the same command.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self
            .extras
            .as_ref()
            .and_then(|extras| extras.folder.as_ref());
        if let Some(folder) = folder {
            write!(f, "(cd {} && ", Quoted(folder.as_os_str()))?;
        }
        for (name, value) in self.extras.iter().flat_map(|extras| &extras.set) {
            write!(f, "{name}={} ", Quoted(value))?;
        }
        write!(f, "{}", Quoted(self.program.as_os_str()))?;
        self.args
            .iter()
            .try_for_each(|arg| write!(f, " {}", Quoted(arg)))?;
        match folder {
            Some(_) => f.write_char(')'),
            None => Ok(()),
        }
    }
}

/// An argument as a POSIX shell reads it back.
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(pub &'a OsStr);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "%+,-./:=@_".contains(c);
        if !text.is_empty() && text.chars().all(plain) {
            return f.write_str(&text);
        }
        f.write_char('\'')?;
        for char in text.chars() {
            match char {
                '\'' => f.write_str(r"'\''")?,
                // A terminal neither shows nor pastes it. A newline stays, because a substitution removes one at its end.
                char if char.is_ascii_control() && char != '\n' => {
                    write!(f, r#"'"$(printf '\{:03o}')"'"#, u32::from(char))?;
                }
                char => f.write_char(char)?,
            }
        }
        f.write_char('\'')
    }
}

/// Output of a program that succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Standard output; bytes that are not UTF-8 replaced.
    pub stdout: String,
    /// Standard error, likewise: a compiler's warnings; control characters escaped, but colors that were asked for.
    pub stderr: String,
}

/// A command that could not be started or that failed.
///
/// Prints the status, the command line ready to paste, and what the program wrote.
#[derive(Debug)]
pub struct CommandError {
    command: Command,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    Start(io::Error),
    Failed { status: ExitStatus, output: String },
}

impl CommandError {
    /// The command that failed.
    #[must_use]
    pub fn command(&self) -> &Command {
        &self.command
    }

    /// Returns what the program wrote; nothing if it did not start.
    #[must_use]
    pub fn output(&self) -> &str {
        match &self.cause {
            Cause::Start(_) => "",
            Cause::Failed { output, .. } => output,
        }
    }

    /// Returns how the program ended; nothing if it did not start.
    #[must_use]
    pub fn status(&self) -> Option<ExitStatus> {
        match &self.cause {
            Cause::Start(_) => None,
            Cause::Failed { status, .. } => Some(*status),
        }
    }
}

impl CommandError {
    /// The program and how it ended, in one line.
    pub fn headline(&self) -> String {
        let program = self.command.program.display();
        match &self.cause {
            Cause::Start(source) if source.kind() == io::ErrorKind::NotFound => {
                format!("cannot start `{program}`: not found")
            }
            Cause::Start(source) => format!("cannot start `{program}`: {source}"),
            Cause::Failed { status, .. } if status.success() => {
                format!("`{program}` only warned of an error")
            }
            Cause::Failed { status, .. } => format!("`{program}` failed ({status})"),
        }
    }

    /// Tells whether a signal ended the program: its answer is unknown.
    #[must_use]
    pub fn was_killed(&self) -> bool {
        self.status().is_some_and(|status| status.code().is_none())
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.headline())?;
        let output = self.output().trim_end();
        if !output.is_empty() {
            write!(f, "\n{output}")?;
        }
        write!(f, "\ncommand: {}", self.command)
    }
}

impl StdError for CommandError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.cause {
            Cause::Start(source) => Some(source),
            Cause::Failed { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_a_line_that_a_shell_reads_back() {
        let args = [
            "plain",
            "",
            "two words",
            "it's",
            "$HOME",
            "a\\b",
            "-DX=\"y\"",
            "*",
            "~",
            "one\x1ftwo\ttwo\nthree",
        ];
        let command = Command::new("printf").arg("%s\\n").args(args);
        let line = command.to_string();
        let is_shown = |char: char| !char.is_control() || char == '\n';
        assert!(line.chars().all(is_shown), "{line:?}");
        let shell = std::process::Command::new("sh")
            .arg("-c")
            .arg(line)
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8(shell.stdout).unwrap(),
            args.map(|arg| format!("{arg}\n")).concat()
        );
    }

    #[test]
    fn starts_in_another_folder() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap().join("a folder");
        std::fs::create_dir(&folder).unwrap();
        let command = Command::new("pwd").starting_in(folder.clone());
        let printed = format!("{}\n", folder.display());
        assert_eq!(command.run().unwrap().stdout, printed);
        let mut shell = std::process::Command::new("sh");
        let output = shell.arg("-c").arg(command.to_string()).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), printed);
    }

    #[test]
    fn refuses_a_warning_also_of_what_a_launcher_starts() {
        let warns = Command::new("sh").args(["-c", "echo 'warning: lost' >&2"]);
        let launched = |command: &Command| command.started_by(Path::new("env"), &["A=b".into()]);
        assert!(launched(&warns).run().is_ok());
        let refusing = warns.refuse_warning("lost");
        let error = launched(&refusing).run().unwrap_err();
        assert_eq!(error.output(), "warning: lost\n");
        let line = "env A=b sh -c 'echo '\\''warning: lost'\\'' >&2'";
        assert_eq!(error.command().to_string(), line);
    }

    #[test]
    fn fails_with_the_status_the_command_and_the_output() {
        let command = Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]);
        let error = command.run().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`sh` failed (exit status: 3)\n\
             out\n\
             err\n\
             command: sh -c 'echo out; echo err >&2; exit 3'"
        );
        assert_eq!(error.status().and_then(|status| status.code()), Some(3));
    }

    #[cfg(unix)]
    #[test]
    fn passes_arguments_that_the_kernel_refuses_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let deep = at(&["d"; 12].map(|letter| letter.repeat(240)).join("/"));
        std::fs::create_dir_all(&deep).unwrap();
        let object = deep.join("a \"b\\.o");
        std::fs::write(at("k.c"), "").unwrap();
        let compile = Command::new("cc").arg("-c").arg(at("k.c"));
        compile.arg("-o").arg(&object).run().unwrap();
        // Nearly 3 MiB.
        let many = vec![object; 1000];
        let file = at("k.rsp");
        let run = |command: &Command| command.run_in_file(&[], &file);
        let link = Command::new("cc").args(["-r", "-nostdlib", "-o"]);
        let link = link.arg(at("linked.o")).args(many.clone());
        assert_eq!(run(&link).unwrap(), Output::default());
        assert!(at("linked.o").is_file());
        let wrong = link.arg("-nonsense");
        let error = run(&wrong).unwrap_err();
        assert!(error.output().contains("-nonsense"), "{}", error.output());
        // What to paste is the command, not a file that was removed.
        assert!(*error.command() == wrong);
        assert!(!file.exists());
        // NVIDIA's programs have an option.
        std::os::unix::fs::symlink("/bin/echo", at("nvlink")).unwrap();
        let link = Command::new(at("nvlink"));
        let printed = run(&link.clone().args(vec![deep; 1000])).unwrap().stdout;
        assert_eq!(printed, format!("-optf {}\n", file.display()));
        // It would drop the quotes.
        assert!(run(&link.clone().args(many)).is_err());
        assert_eq!(run(&link.arg("few")).unwrap().stdout, "few\n");
    }

    #[test]
    fn fails_to_start_what_is_not_there() {
        let error = Command::new("/nonexistent/clang")
            .arg("-c")
            .run()
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot start `/nonexistent/clang`: not found\ncommand: /nonexistent/clang -c"
        );
    }

    #[test]
    fn hides_the_variables_that_lead_a_driver_to_our_own_linker() {
        let process = Command::new("clang").process();
        let removed: Vec<_> = process
            .get_envs()
            .filter(|(_, value)| value.is_none())
            .collect();
        assert!(
            removed.iter().any(|(name, _)| *name == "COMPILER_PATH"),
            "{removed:?}"
        );
        assert_eq!(removed.len(), SCRUBBED.len());
        let guard = process.get_envs().find(|(name, _)| *name == GUARD);
        assert_eq!(guard, Some((OsStr::new(GUARD), Some(OsStr::new("1")))));
        // Cargo may link proc macros with the linker wrapper.
        let process = Command::new("cargo").linking_programs().process();
        let guard = process.get_envs().find(|(name, _)| *name == GUARD);
        assert_eq!(guard, Some((OsStr::new(GUARD), None)));
    }

    #[test]
    fn hides_the_libraries_of_rustc() {
        let sysroot = std::env::temp_dir().join(format!("offload-rustc-{}", std::process::id()));
        std::fs::create_dir_all(sysroot.join("lib/rustlib")).unwrap();
        let path = |folders: &[&Path]| std::env::join_paths(folders).unwrap();
        let lib = sysroot.join("lib");
        let target = Path::new("/rust/lib/rustlib/x86_64-unknown-linux-gnu/lib");
        let other = Path::new("/opt/lib");
        let given = path(&[&lib, other, target]);
        assert_eq!(without_rustc(&given), other);
        assert_eq!(without_rustc(&path(&[&lib, target])), "");
        std::fs::remove_dir_all(&sysroot).unwrap();
    }
}
