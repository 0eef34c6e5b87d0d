//! A task: the commands that make one file, run only when something they read has changed.
//!
//! Beside the output lies `<output>.key`: the digest of how it was made, then a line
//! `<MD5> <path>` for the output, and one for each file that was read, and `<MD5> $<name>` for variables. In `<output>.messages` are warnings, which
//! Cargo forgets when a build script runs again. The output is made under another name and renamed, the key
//! is written last and removed first: whatever is interrupted, an output with a key is whole and its own.
//!
//! A launcher is not part of how an output is made: with and without one it is the same. What comes back from it is
//! looked at, and made again without it where it cannot be right.

mod cargo_lists;
mod cargo_reads;
mod cargo_variables;
pub(crate) mod depfile;
pub(crate) mod file_numbers;
pub(crate) mod finish;
mod hints;
pub(crate) mod joined;
pub(crate) mod regions;
pub(crate) mod returned;
mod temporary_names;

pub(crate) use crate::steps::task::hints::SymbolHints;

use crate::messages::Failure;
use crate::steps::atomic_orders::OrderLoss;
use crate::steps::digests::{Digests, hex};
use crate::steps::key::{KeyFiles, is_older};
use crate::steps::step::{Done, Made, Step};
use crate::steps::task::finish::Finish;
use crate::steps::task::joined::Joined;
use offload_build_core::environment;
use offload_build_core::error::{self, Error};
use offload_build_core::files;
use offload_build_core::process::command::{Command, CommandError, Output, Quoted};
use offload_build_core::process::launcher::{Launched, Start};
use offload_build_core::process::temporary;
use offload_formats::escape;
use offload_formats::md5::{self, Md5};
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Commands that make the file `output`, the last of them under the name [`part`](offload_build_core::files::part) gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    /// Title: `kernels/saxpy.c for gfx90a`.
    pub title: String,
    /// Commands, run in order.
    pub commands: Vec<Command>,
    /// Programs that the commands start in turn, and that decide the content.
    pub inner_programs: Vec<PathBuf>,
    /// How they are started.
    pub start: Start,
    /// Files that the commands are known to read, besides those that `depfile` names.
    pub inputs: Vec<PathBuf>,
    /// The file in which a command lists the files that it read, for `make`.
    pub depfile: Option<PathBuf>,
    /// The folder of a Cargo that is started, whose crates may read variables.
    pub cargo_folder: Option<PathBuf>,
    /// The file that is made.
    pub output: PathBuf,
    /// Libraries that join the output if it calls them.
    pub joined: Vec<Joined>,
    /// Work of this process on the output before it gets its name.
    pub finish: Finish,
    /// Variables that compilers read, which decide the content, too.
    pub environment: String,
    /// Hints if a command fails because of symbols.
    pub hints: SymbolHints,
    /// Reason for which LLVM drops the order of atomic operations; bitcode with such operations is an error.
    pub order_loss: Option<OrderLoss>,
}

impl Task {
    /// Makes the output unless it is up to date.
    ///
    /// # Errors
    ///
    /// When a command fails or a file cannot be written; the output and its key are then absent.
    pub(crate) fn run(&self, digests: &Digests) -> Result<Done, Failure> {
        let recipe = self.recipe();
        if let Some(done) = self.fresh(&recipe, digests) {
            return Ok(done);
        }
        let key = KeyFiles::of(&self.output);
        // A compiler that did not run leaves no dependencies: those of an earlier run are not its own.
        let stale = [&key.key, &key.messages, &self.output];
        let stale = stale.into_iter().chain(&self.depfile);
        for stale in stale {
            files::remove(stale).map_err(error::io(stale))?;
            digests.forget(stale);
        }
        let folder = self.output.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(error::io(folder))?;
        let part = files::part(&self.output);
        let started = SystemTime::now();
        let mut messages = match self.launch(&part) {
            Some(Ok(messages)) => messages,
            Some(Err(problem)) => problem + &self.run_plainly(&part)?,
            None => match &self.cargo_folder {
                Some(folder) => self.run_cargo(folder, &part, digests)?,
                None => self.run_plainly(&part)?,
            },
        };
        let kind = returned::Kind::of(&self.output, self.finish);
        returned::check_whole(&part, kind).map_err(|problem| {
            // What could be taken for the output goes.
            let _ = fs::remove_file(&part);
            self.incomplete(&problem)
        })?;
        for joined in &self.joined {
            messages += &joined.run(&part)?;
        }
        // While names still hold the numbers of files.
        let named = match &self.depfile {
            Some(_) => file_numbers::named_files(&part).map_err(error::io(&part))?,
            None => BTreeSet::new(),
        };
        self.finish(&part)?;
        fs::rename(&part, &self.output).map_err(error::io(&part))?;
        let reads = self.reads().map_err(in_file)?;
        let cargo_folder = self.cargo_folder.as_deref();
        let variables = cargo_folder.map(cargo_variables::names).unwrap_or_default();
        key.keep_messages(&messages)?;
        let paths = std::iter::once(&self.output).chain(&reads);
        let lines = paths.map(|path| {
            let digest = digests.of_now(path)? + &name_in(&named, path);
            Some(format!("{digest} {}\n", path.display()))
        });
        // Without a file that cannot be read there is no key: its changes would not count. A file that changed since the compiler
        // started may not be the one that it read: no key, so the next build runs this again.
        let lines = lines.collect::<Option<String>>();
        let lines = lines.filter(|_| reads.iter().all(|path| is_older(path, started)));
        if let Some(mut lines) = lines {
            lines.extend(variables.iter().map(|name| variable_line(name) + "\n"));
            key.write(&recipe, &lines)?;
        }
        Ok(Done {
            fresh: false,
            messages,
            reads,
            variables,
        })
    }

    /// The commands that are run, if all goes well.
    #[must_use]
    pub(crate) fn started(&self) -> &[Command] {
        match &self.start {
            Start::Launched(launched) => &launched.commands,
            Start::Plain | Start::Here(_) => &self.commands,
        }
    }

    /// Returns the files and variables that the output was made from, and the warnings, when it is still the one that would be made
    /// now.
    fn fresh(&self, recipe: &str, digests: &Digests) -> Option<Done> {
        let key = KeyFiles::of(&self.output);
        let lines = key.lines(recipe)?;
        let (mut reads, mut variables) = (Vec::new(), BTreeSet::new());
        for line in lines.lines() {
            let (digest, path) = line.split_once(' ')?;
            if let Some(name) = path.strip_prefix('$') {
                if line != variable_line(name) {
                    return None;
                }
                variables.insert(name.to_owned());
                continue;
            }
            let path = PathBuf::from(path);
            let (digest, number) = digest.split_once('@').unwrap_or((digest, ""));
            let is_same_file = || file_numbers::number(&path).is_some_and(|found| found == number);
            if digests.of(&path)? != digest || (!number.is_empty() && !is_same_file()) {
                return None;
            }
            reads.push(path);
        }
        // A power cut may leave the output shorter than it was written.
        let is_whole = !reads.is_empty() && reads.remove(0) == self.output;
        let messages = key.messages()?;
        // They may have been kept with colors.
        let colors = self.commands.first().map(Command::colors);
        let messages = escape::messages(&messages, colors.unwrap_or_default());
        is_whole.then_some(Done {
            fresh: true,
            messages,
            reads,
            variables,
        })
    }

    /// Edits what the commands made, and removes the assembly that they made it from.
    fn finish(&self, part: &Path) -> Result<(), Failure> {
        self.finish.run(part).map_err(error::io(part))?;
        if let Some(assembly) = self.finish.assembly(&self.output) {
            // A file that stays only takes space.
            let _ = fs::remove_file(assembly);
        }
        Ok(())
    }

    /// Returns the error of an output that is incomplete, although all commands succeeded.
    fn incomplete(&self, problem: &str) -> Error {
        let output = self.output.display();
        let mut text = format!("`{output}`: its compiler succeeded, but {problem}");
        for command in self.started() {
            text += &format!("\ncommand: {command}");
        }
        Error::new(text)
    }

    /// Returns the file that has the arguments of a command while it runs, if they are too long for a command line.
    fn arguments_file(&self) -> PathBuf {
        files::beside(&self.output, ".rsp")
    }

    fn run_plainly(&self, part: &Path) -> Result<String, Failure> {
        let variables = temporary::variables(part.parent().unwrap_or(Path::new(".")));
        let run = |command: &Command| command.run_in_file(&variables, &self.arguments_file());
        run_all(&self.commands, run).map_err(|error| {
            let _ = fs::remove_file(part);
            let hint = self.hints.of(error.output());
            Failure::Command(Box::new(error), hint)
        })
    }

    /// Runs commands that start a Cargo, which notices all changes.
    fn run_cargo(&self, folder: &Path, part: &Path, digests: &Digests) -> Result<String, Failure> {
        let mut reads = cargo_reads::take(folder, digests)?;
        let messages = self.run_plainly(part);
        match messages.is_ok() {
            true => reads = self.reads().map_err(in_file)?,
            // It compiles what it has made no second time.
            false => match cargo_reads::of_parts(folder, &self.inputs) {
                Some(parts) => reads = self.own([reads, self.inputs.clone(), parts].concat()),
                None => reads.clear(),
            },
        }
        cargo_reads::keep(folder, &reads, digests)?;
        messages
    }

    /// Runs what stands for the commands where there is a launcher: their messages, or why its result is not taken,
    /// as a warning.
    fn launch(&self, part: &Path) -> Option<Result<String, String>> {
        let Start::Launched(launched) = &self.start else {
            return None;
        };
        let mut variables = launched.variables();
        variables.extend(temporary::variables(
            part.parent().unwrap_or(Path::new(".")),
        ));
        let run = |command: &Command| command.run_with(&variables);
        let problem = match run_all(&launched.commands, run) {
            Ok(messages) => match self.check_returned(part) {
                Ok(()) => return Some(Ok(messages)),
                Err(problem) => format!("{problem}\ncommand: {launched}"),
            },
            // The compiler's messages are warnings of their own, so the command stands before them.
            Err(error) => format!(
                "{}\ncommand: {}\n{}",
                error.headline(),
                error.command(),
                error.output()
            ),
        };
        let left = [Some(part), self.depfile.as_deref()];
        for path in left.into_iter().flatten() {
            let _ = fs::remove_file(path);
        }
        Some(Err(format!(
            "warning: compiled without the launcher: {}{}\n",
            problem.trim_end(),
            Launched::hint(&problem)
        )))
    }

    /// Checks that a launcher gave all that the compiler writes, of the files that are here.
    fn check_returned(&self, part: &Path) -> Result<(), String> {
        let reads = self
            .reads()
            .map_err(|(path, _)| format!("it gave no `{}`", path.display()))?;
        let kind = returned::Kind::of(&self.output, self.finish);
        returned::check(part, kind, &reads)
    }

    fn reads(&self) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
        let mut reads = self.inputs.clone();
        if let Some(depfile) = &self.depfile {
            let known = || self.inputs.iter().chain([&self.output]);
            let named = depfile::read(depfile)?.into_iter();
            reads.extend(
                named.map(|path| depfile::with_backslashes(path, known().map(PathBuf::as_path))),
            );
        }
        Ok(self.own(reads))
    }

    /// Returns these files once each, without those in Cargo's folder.
    fn own(&self, mut reads: Vec<PathBuf>) -> Vec<PathBuf> {
        if let Some(folder) = &self.cargo_folder {
            // What build scripts made of other files, which are in the list, too.
            reads.retain(|path| !path.starts_with(folder));
        }
        reads.sort();
        reads.dedup();
        reads
    }

    /// Returns a digest of how the output is made: commands, variables, and the programs' identities.
    fn recipe(&self) -> String {
        let mut hash = Md5::new();
        hash.update(concat!(
            env!("CARGO_PKG_NAME"),
            " ",
            env!("CARGO_PKG_VERSION"),
            "\0"
        ));
        hash.update(&self.environment);
        for command in &self.commands {
            hash.update(format!(
                "\0{command}\0{}",
                files::identity(command.program())
            ));
        }
        for program in &self.inner_programs {
            hash.update(format!("\0{}", files::identity(program)));
        }
        for joined in &self.joined {
            hash.update(format!("\0{}", joined.recipe()));
        }
        hash.update(format!("\0{:?}", self.finish));
        hex(hash)
    }
}

/// Returns the error of a file that could not be read.
fn in_file((path, problem): (PathBuf, io::Error)) -> Error {
    error::io(&path)(problem)
}

/// Runs commands to the first that fails: what they wrote on standard error.
fn run_all(
    commands: &[Command],
    run: impl Fn(&Command) -> Result<Output, CommandError>,
) -> Result<String, CommandError> {
    let mut messages = String::new();
    for command in commands {
        messages += &run(command)?.stderr;
    }
    Ok(messages)
}

/// Returns what a key says of a variable, as it is now.
fn variable_line(name: &str) -> String {
    let value = environment::inherited(name);
    let digest = md5::hex(&Md5::digest(format!("{value:?}")));
    format!("{digest} ${name}")
}

/// Returns what a key says of a file whose number is in names of the output.
fn name_in(named: &BTreeSet<String>, path: &Path) -> String {
    match file_numbers::number(path).filter(|number| named.contains(number)) {
        Some(number) => format!("@{number}"),
        None => String::new(),
    }
}

impl Step for Task {
    fn title(&self) -> String {
        self.title.clone()
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# {}", self.title)?;
        if let Start::Here(reason) = self.start {
            writeln!(f, "# without the launcher: {reason}")?;
        }
        match &self.start {
            Start::Launched(launched) => write!(f, "{launched}")?,
            Start::Plain | Start::Here(_) => self
                .commands
                .iter()
                .try_for_each(|command| writeln!(f, "{command}"))?,
        }
        let part = files::part(&self.output);
        for joined in &self.joined {
            let prefixes = joined.prefixes.join("…`, `");
            for command in &joined.commands {
                writeln!(f, "# if the output calls `{prefixes}…`: {command}")?;
            }
        }
        if let Some(what) = self.finish.what() {
            let part = Quoted(part.as_os_str());
            writeln!(f, "# {what}, in this process: {part}")?;
        }
        writeln!(f, "{}", Command::new("mv").arg(&part).arg(&self.output))
    }

    fn folder(&self) -> Option<&Path> {
        self.output.parent()
    }

    fn commands(&self) -> &[Command] {
        &self.commands
    }

    fn inner_programs(&self) -> &[PathBuf] {
        &self.inner_programs
    }

    fn made(&self) -> Made {
        Made {
            commands: self.started().iter().map(ToString::to_string).collect(),
            ..Made::in_process(self.title(), vec![self.output.clone()], Vec::new())
        }
    }

    fn execute(&self, digests: &Digests) -> Result<Done, Failure> {
        let done = self.run(digests)?;
        if let Some(loss) = self.order_loss {
            loss.check(&self.output)?;
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests;
