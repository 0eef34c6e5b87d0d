//! The command line: what is ours, what is an input, and the rest as it was spelled.
//!
//! Arguments are kept as given, with the response file that each came from. A walk over them marks
//! what is consumed and notes what the host link is made of; [`Arguments::render`] then gives the
//! host's command line back, changed in nothing but the marks and the insertions. A response file
//! in which nothing changed is passed on by its own name.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::linker_wrapper::error::Error;
use crate::linker_wrapper::line::family::Family;
use crate::linker_wrapper::line::options::Options;
use crate::options::response_file::Quoting;

mod parse;
mod put;
mod walk;

/// Whose arguments these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// A linker's, as clang passes them. `answers` is set under LLVM's name.
    Linker { answers: bool },
    /// A compiler driver's, as rustc passes them.
    Driver,
}

/// Whether a program takes a compiler driver's arguments: `gcc`, `clang++-19`, `aarch64-…-cc`.
fn is_driver(path: &OsStr) -> bool {
    let name = Path::new(path).file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    ["cc", "c++", "gcc", "g++", "clang", "clang++"]
        .iter()
        .any(|driver| {
            name.strip_suffix(driver)
                .is_some_and(|before| before.is_empty() || before.ends_with('-'))
        })
}

/// The command line, understood.
#[derive(Clone, Debug)]
pub(crate) struct Arguments {
    pub position: Position,
    pub family: Family,
    pub options: Options,
    /// What is linked and how, in order.
    pub items: Vec<Item>,
    pub output: Option<OsString>,
    pub library_dirs: Vec<OsString>,
    pub sysroot: Option<OsString>,
    /// Names that must be defined.
    pub roots: Vec<OsString>,
    pub relocatable: bool,
    /// The last `-fuse-ld=` or `--ld-path=`.
    pub chosen_linker: Option<OsString>,
    /// `--target=` of the driver.
    pub target: Option<OsString>,
    /// Nothing will be linked: there is nothing for us to do.
    pub no_link: bool,
    /// `-static`: there is nothing to load at run time.
    pub all_static: bool,
    /// `-nostdlib`: no library is added to what the user named. Not `-nodefaultlibs`, which rustc
    /// always gives, with the default libraries.
    pub no_libraries: bool,
    /// A compiler driver that only compiles, or answers a question: no option is ours.
    pub compiles: bool,
    tokens: Vec<Token>,
    argv: Vec<OsString>,
    /// Token before which objects are inserted.
    insertion: Option<usize>,
}

/// A part of the host link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// A file given by path.
    File {
        path: PathBuf,
        /// What brings it into the link.
        load: Load,
        token: usize,
    },
    /// `-l`.
    Library {
        name: OsString,
        load: Load,
        /// Shared libraries are not looked for.
        only_static: bool,
        /// By `-l`, not by a longer name.
        by_letter: bool,
        /// The argument that names it.
        token: usize,
    },
    LibraryDir(OsString),
    Rpath(OsString),
    /// A toggle, for command lines that repeat the order of the items.
    WholeArchive(bool),
}

/// What brings the parts of an input into the host link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// As usual: objects always, archive members when a symbol of theirs is wanted.
    Usual,
    /// `--whole-archive`: every member.
    Whole,
    /// `--start-lib`: even an object, only when wanted.
    Wanted,
}

#[derive(Clone, Debug)]
struct Token {
    text: OsString,
    /// The argument of the command line that it came from.
    origin: usize,
    edit: Edit,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Edit {
    Keep,
    Drop,
    Replace(OsString),
}

impl Arguments {
    /// What a driver is told about the machine: `-m32`, `-march=…`, `--target=…`.
    pub(crate) fn machine_flags(&self) -> Vec<OsString> {
        let target = self.target.iter().map(|target| {
            let mut flag = OsString::from("--target=");
            flag.push(target);
            flag
        });
        let texts = self.tokens.iter().map(|token| &token.text);
        let flags = texts.filter(|text| {
            let bytes = text.as_encoded_bytes();
            bytes.starts_with(b"-m") && bytes != b"-mllvm"
        });
        target.chain(flags.cloned()).collect()
    }

    /// The command line as it was given.
    pub(crate) fn given(&self) -> Vec<OsString> {
        self.argv.clone()
    }

    /// How the host's response files are written.
    #[must_use]
    pub(crate) fn quoting(&self) -> Quoting {
        match self.family {
            Family::Coff => Quoting::Windows,
            _ => Quoting::Gnu,
        }
    }

    /// Where the output goes.
    #[must_use]
    pub(crate) fn output_path(&self) -> PathBuf {
        PathBuf::from(self.output.clone().unwrap_or_else(|| "a.out".into()))
    }

    /// The host's command line, with `objects` among the inputs and `flags` at the end.
    ///
    /// `write` is called with the content of each response file that had to change, and returns
    /// its new name.
    pub(crate) fn render(
        &self,
        objects: &[PathBuf],
        flags: &[OsString],
        mut write: impl FnMut(&[u8]) -> Result<PathBuf, Error>,
    ) -> Result<Vec<OsString>, Error> {
        let mut argv = Vec::with_capacity(self.argv.len() + objects.len() + flags.len());
        let insert = |part: &mut Vec<OsString>| part.extend(objects.iter().map(OsString::from));
        let mut index = 0;
        while let Some(first) = self.tokens.get(index) {
            let same = |token: &&Token| token.origin == first.origin;
            let end = index + self.tokens[index..].iter().take_while(same).count();
            let given = &self.argv[first.origin];
            let from_file = end - index != 1 || first.text != *given;
            let changed = self.tokens[index..end]
                .iter()
                .any(|token| token.edit != Edit::Keep);
            if from_file && !changed {
                // Before the whole file, which then need not change.
                if self.insertion.is_some_and(|at| (index..end).contains(&at)) {
                    insert(&mut argv);
                }
                argv.push(given.clone());
                index = end;
                continue;
            }
            let mut part = Vec::new();
            for (at, token) in self.tokens.iter().enumerate().take(end).skip(index) {
                if self.insertion == Some(at) {
                    insert(&mut part);
                }
                match &token.edit {
                    Edit::Keep => part.push(token.text.clone()),
                    Edit::Drop => {}
                    Edit::Replace(text) => part.push(text.clone()),
                }
            }
            if from_file {
                let mut file = OsString::from("@");
                file.push(write(&self.quoting().quote(&part))?);
                argv.push(file);
            } else {
                argv.append(&mut part);
            }
            index = end;
        }
        if self.insertion == Some(self.tokens.len()) {
            insert(&mut argv);
        }
        argv.extend(flags.iter().cloned());
        Ok(argv)
    }

    /// Whether a response file must be written again to give the host's command line.
    #[must_use]
    pub(crate) fn repacks(&self) -> bool {
        self.tokens
            .iter()
            .any(|token| token.edit != Edit::Keep && token.text != self.argv[token.origin])
    }
}
