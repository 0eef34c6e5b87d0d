//! The command line: options of this tool, inputs, and other arguments as spelled.
//!
//! Arguments are kept as given, with the response file of each. A pass over them marks consumed ones and collects the
//! items of the host link. [`Arguments::render`] then returns the host linker's command line, changed only by the
//! marks and the insertions. A response file without changes is passed on by its own name.

use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::linker_wrapper::error::{self, LinkError};
use crate::linker_wrapper::line::family::Family;
use crate::linker_wrapper::line::options::LinkerOptions;
use crate::options::response_file::Quoting;

mod parse;
mod put;
mod walk;

/// The syntax of the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// Arguments of a linker, as clang passes them. `answers` is set under LLVM's name.
    Linker { answers: bool },
    /// Arguments of a compiler driver, as rustc passes them.
    Driver,
}

/// Tells whether a program takes a compiler driver's arguments: `gcc`, `clang++-19`, `aarch64-…-cc`.
fn is_driver(path: &OsStr) -> bool {
    let name = name_without_release(path);
    ["cc", "c++", "gcc", "g++", "clang", "clang++"]
        .iter()
        .any(|driver| {
            name.strip_suffix(driver)
                .is_some_and(|before| before.is_empty() || before.ends_with('-'))
        })
}

/// Returns the name of a program, `clang++` for `/usr/bin/clang++-19`.
fn name_without_release(path: &OsStr) -> String {
    let name = Path::new(path).file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
        .to_owned()
}

/// Returns the target whose libraries rustc names: `…/lib/rustlib/<target>/lib`.
fn rustc_target(text: &OsStr) -> Option<OsString> {
    let mut parts = Path::new(text).iter();
    parts.find(|part| *part == "rustlib")?;
    let target = parts.next()?.to_owned();
    (parts.next()? == "lib").then_some(target)
}

/// The parsed command line.
#[derive(Clone, Debug)]
pub(crate) struct Arguments {
    pub position: Position,
    pub family: Family,
    pub options: LinkerOptions,
    /// Items of the host link, in order.
    pub items: Vec<Item>,
    pub output: Option<OsString>,
    pub library_dirs: Vec<OsString>,
    /// Number of `library_dirs` before those that a driver passes to its linker as they are (`-Wl,-L…`).
    pub own_library_dirs: usize,
    pub sysroot: Option<OsString>,
    /// Symbols that must be defined.
    pub roots: Vec<OsString>,
    /// Folders after a driver's `-B`.
    pub prefixes: Vec<OsString>,
    /// The first `--undefined-glob`.
    pub root_pattern: Option<OsString>,
    /// Symbols after `--wrap`.
    pub wrapped: Vec<OsString>,
    /// Ranges of items between `--start-group` and `--end-group`.
    pub groups: Vec<Range<usize>>,
    /// `--fortran-common` or its opposite.
    pub fortran_common: Option<bool>,
    /// The last `--dependency-file`, which the host linker writes.
    pub dependency_file: Option<PathBuf>,
    /// State of `--as-needed`, if known, from the item with that index on.
    pub as_needed: Vec<(usize, Option<bool>)>,
    pub relocatable: bool,
    /// The last `-fuse-ld=` or `--ld-path=`.
    pub chosen_linker: Option<OsString>,
    /// `--target=` of the driver.
    pub target: Option<OsString>,
    /// Set if the host linker reads inputs that this tool does not see.
    pub unread_inputs: bool,
    /// Set if the command links nothing; this tool has no work then.
    pub no_link: bool,
    /// `-static`: no library is loaded at run time.
    pub all_static: bool,
    /// `-nostdlib`: only the libraries that the user named. Does not apply to `-nodefaultlibs`, which rustc always
    /// passes, with the default libraries.
    pub no_libraries: bool,
    /// Set if a compiler driver only compiles or answers a question; then no option is ours.
    pub compiles: bool,
    tokens: Vec<Token>,
    argv: Vec<OsString>,
    /// Index of the token before which objects are inserted.
    insertion: Option<usize>,
}

/// An item of the host link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// A file given by path.
    File {
        path: PathBuf,
        /// When its parts are loaded.
        load: Load,
        /// Set if shared libraries that it names are ignored, as a linker script may.
        only_static: bool,
        /// Set if an object before it is an object that is always linked.
        takes_objects: bool,
        token: usize,
    },
    /// A library named by `-l`.
    Library {
        name: OsString,
        load: Load,
        /// Set if shared libraries are ignored.
        only_static: bool,
        /// Set if `-l` names it, not a longer option.
        by_letter: bool,
        /// Index of the argument that names it.
        token: usize,
    },
    LibraryDir(OsString),
    Rpath(OsString),
    /// Start or end of `--whole-archive`, for command lines that repeat the items in order.
    WholeArchive(bool),
}

/// When the host link loads the parts of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// Objects always; archive members if one of their symbols is needed.
    Usual,
    /// `--whole-archive`: every member.
    Whole,
    /// `--start-lib`: objects, too, only if one of their symbols is needed.
    Wanted,
}

#[derive(Clone, Debug)]
struct Token {
    text: OsString,
    /// Index of the original argument.
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
    /// Returns a driver's options about the machine: `-m32`, `-march=…`, `--target=…`.
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

    /// Returns the command line as given.
    pub(crate) fn given(&self) -> Vec<OsString> {
        self.argv.clone()
    }

    /// Returns a driver's options that select its linker: `-fuse-ld=`, `--ld-path=`, `-B`.
    pub(crate) fn linker_flags(&self) -> Vec<OsString> {
        let mut flags = Vec::new();
        let mut texts = self.tokens.iter().map(|token| &token.text);
        while let Some(text) = texts.next() {
            let selects = |start: &&str| text.as_encoded_bytes().starts_with(start.as_bytes());
            if !["-fuse-ld=", "--ld-path=", "-B"].iter().any(selects) {
                continue;
            }
            flags.push(text.clone());
            if text == "-B" {
                flags.extend(texts.next().cloned());
            }
        }
        flags
    }

    /// Tells whether the program contains the C library.
    pub(crate) fn is_fully_static(&self) -> bool {
        let has = |options: &[&str]| {
            let mut texts = self.tokens.iter().map(|token| &token.text);
            texts.any(|text| options.iter().any(|option| text == option))
        };
        match self.position {
            Position::Driver => self.all_static,
            // `-static` is `-Bstatic`, too, so a program with a dynamic linker may have it.
            Position::Linker { .. } => {
                has(&[
                    "-static",
                    "--static",
                    "-no-dynamic-linker",
                    "--no-dynamic-linker",
                ]) && !has(&["-dynamic-linker", "--dynamic-linker", "-shared", "--shared"])
            }
        }
    }

    /// Returns the option for the C++ library that `driver` adds to the link by itself.
    pub(crate) fn cpp_library(&self, driver: &OsStr) -> Option<&'static str> {
        const WITHOUT: [&str; 3] = ["-nostdlib", "-nodefaultlibs", "-nostdlib++"];
        let mut texts = self.tokens.iter().map(|token| &token.text);
        let is_cpp =
            self.position == Position::Driver && name_without_release(driver).ends_with("++");
        if !is_cpp || texts.any(|text| WITHOUT.iter().any(|option| text == option)) {
            return None;
        }
        let mut texts = self.tokens.iter().map(|token| &token.text);
        Some(match texts.any(|text| text == "-stdlib=libc++") {
            true => "-lc++",
            false => "-lstdc++",
        })
    }

    /// Tells whether an argument has this text in it.
    pub(crate) fn mentions(&self, part: &str) -> bool {
        let mut texts = self.tokens.iter().map(|token| token.text.to_string_lossy());
        texts.any(|text| text.contains(part))
    }

    /// Tells whether the host link removes sections that nothing uses.
    pub(crate) fn collects_sections(&self) -> bool {
        self.mentions("-gc-sections") && !self.mentions("no-gc-sections")
    }

    /// Tells whether rustc runs this link. Every one names the folder of its target's libraries.
    pub(crate) fn is_by_rustc(&self) -> bool {
        let mut folders = self.library_dirs.iter();
        folders.any(|folder| rustc_target(folder).is_some())
    }

    /// Returns the title of the error about images that are not linked, or `None` if they are a warning.
    pub(crate) fn error_if_dropped(&self) -> Option<&'static str> {
        match self.options.dropped_image_is_error {
            Some(is_error) => is_error.then_some(error::DROPPED),
            None => self.is_by_rustc().then_some(error::DROPPED_UNDER_RUSTC),
        }
    }

    /// Returns the quoting rules of the host's response files.
    #[must_use]
    pub(crate) fn quoting(&self) -> Quoting {
        match self.family {
            Family::Coff => Quoting::Windows,
            _ => Quoting::Gnu,
        }
    }

    /// Tells whether the linker drops the shared library of an item unless it defines what is undefined before it. Drivers may say
    /// so first, as Debian's and Ubuntu's GCC do.
    pub(crate) fn is_as_needed(&self, item: usize) -> bool {
        let mut before = self.as_needed.iter().rev();
        let last = before.find(|(start, _)| *start <= item);
        let known = last.and_then(|(_, state)| *state);
        known.unwrap_or(self.position == Position::Driver)
    }

    /// Returns the number of the group of an item: that of the first item in it.
    pub(crate) fn group(&self, item: usize) -> usize {
        let group = self.groups.iter().find(|group| group.contains(&item));
        group.map_or(item, |group| group.start)
    }

    /// Returns the path of the output.
    #[must_use]
    pub(crate) fn output_path(&self) -> PathBuf {
        PathBuf::from(self.output.clone().unwrap_or_else(|| "a.out".into()))
    }

    /// Returns the host linker's command line, with `objects` among the inputs and `flags` at the end.
    ///
    /// Calls `write` with the content of each response file that must change. It returns the file's new name, or `None` for
    /// the arguments in its place.
    pub(crate) fn render(
        &self,
        objects: &[PathBuf],
        flags: &[OsString],
        mut write: impl FnMut(&[u8]) -> Result<Option<PathBuf>, LinkError>,
    ) -> Result<Vec<OsString>, LinkError> {
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
                // Inserted before the whole file, so the file need not change.
                if self.insertion.is_some_and(|at| (index..end).contains(&at)) {
                    insert(&mut argv);
                }
                argv.push(given.clone());
                index = end;
                continue;
            }
            let start = argv.len();
            for (at, token) in self.tokens.iter().enumerate().take(end).skip(index) {
                if self.insertion == Some(at) {
                    insert(&mut argv);
                }
                match &token.edit {
                    Edit::Keep => argv.push(token.text.clone()),
                    Edit::Drop => {}
                    Edit::Replace(text) => argv.push(text.clone()),
                }
            }
            let file = match from_file {
                true => write(&self.quoting().quote(&argv[start..]))?,
                false => None,
            };
            if let Some(path) = file {
                argv.truncate(start);
                let mut file = OsString::from("@");
                file.push(path);
                argv.push(file);
            }
            index = end;
        }
        if self.insertion == Some(self.tokens.len()) {
            insert(&mut argv);
        }
        argv.extend(flags.iter().cloned());
        Ok(argv)
    }

    /// Tells whether the host's command line needs a changed copy of a response file.
    #[must_use]
    pub(crate) fn repacks(&self) -> bool {
        self.tokens
            .iter()
            .any(|token| token.edit != Edit::Keep && token.text != self.argv[token.origin])
    }
}
