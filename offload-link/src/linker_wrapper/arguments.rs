//! The command line: what is ours, what is an input, and the rest as it was spelled.
//!
//! Arguments are kept as given, with the response file that each came from. A walk over them marks
//! what is consumed and notes what the host link is made of; [`Arguments::render`] then gives the
//! host's command line back, changed in nothing but the marks and the insertions. A response file
//! in which nothing changed is passed on by its own name.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::Error;
use super::options::{ANSWERED, CC, Host, LD, OWN, Options, Own};
use crate::options::{Dashes, Found, find};
use crate::response_file;

/// Whose arguments these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// A linker's, as clang passes them. `answers` is set under LLVM's name.
    Linker { answers: bool },
    /// A compiler driver's, as rustc passes them.
    Driver,
}

impl Position {
    fn of(tool: &str, tokens: &[Token]) -> Self {
        match tool {
            super::LLVM_NAME => Self::Linker {
                answers: !tokens.iter().any(|token| linker_path(token).is_some()),
            },
            "offload-ld" | "ld.offload" => Self::Linker { answers: false },
            _ => match tokens.iter().find_map(linker_path) {
                Some(path) if !is_driver(path) => Self::Linker { answers: false },
                _ => Self::Driver,
            },
        }
    }
}

fn linker_path(token: &Token) -> Option<&OsStr> {
    let bytes = token.text.as_bytes().strip_prefix(b"--linker-path=")?;
    Some(OsStr::from_bytes(bytes))
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
pub(super) struct Arguments {
    pub position: Position,
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
    /// A compiler driver that only compiles, or answers a question: no option is ours.
    pub compiles: bool,
    tokens: Vec<Token>,
    argv: Vec<OsString>,
    /// Token before which objects are inserted.
    insertion: Option<usize>,
}

/// A part of the host link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
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
    },
    LibraryDir(OsString),
    Rpath(OsString),
    /// A toggle, for command lines that repeat the order of the items.
    WholeArchive(bool),
}

/// What brings the parts of an input into the host link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
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
    /// Understands `argv`, which is without the program's name; `tool` is that.
    pub(super) fn parse(argv: Vec<OsString>, tool: &str) -> Result<Self, Error> {
        let mut tokens = Vec::with_capacity(argv.len());
        for (origin, text) in argv.iter().enumerate() {
            let expanded =
                response_file::expand(text).map_err(|error| Error::Option(error.to_string()))?;
            tokens.extend(expanded.into_iter().map(|text| Token {
                text,
                origin,
                edit: Edit::Keep,
            }));
        }
        let position = Position::of(tool, &tokens);
        let mut walk = Walk {
            arguments: Self {
                position,
                options: Options::default(),
                items: Vec::new(),
                output: None,
                library_dirs: Vec::new(),
                sysroot: None,
                roots: Vec::new(),
                relocatable: false,
                chosen_linker: None,
                target: None,
                no_link: false,
                compiles: false,
                tokens: Vec::new(),
                argv,
                insertion: None,
            },
            state: State::default(),
            saved: Vec::new(),
            output_token: None,
            pending: [None, None],
            xlinker: None,
            compress: false,
        };
        walk.all(&mut tokens)?;
        let mut arguments = walk.arguments;
        arguments.insertion = arguments.insertion_point(walk.output_token, tokens.len());
        arguments.tokens = tokens;
        Ok(arguments)
    }

    /// Before the first input after `-o`, or the first of all; never inside what must stay first.
    fn insertion_point(&self, output: Option<usize>, end: usize) -> Option<usize> {
        let inputs = || {
            self.items.iter().filter_map(|item| match item {
                Item::File { token, .. } => Some(*token),
                _ => None,
            })
        };
        let after = output.filter(|_| !self.relocatable).unwrap_or(0);
        inputs()
            .find(|token| *token > after)
            .or_else(|| inputs().next())
            .or(Some(end))
    }

    /// Takes an input off the host's command line.
    pub(super) fn drop_input(&mut self, token: usize) {
        self.tokens[token].edit = Edit::Drop;
    }

    /// The command line as it was given.
    pub(super) fn given(&self) -> Vec<OsString> {
        self.argv.clone()
    }

    /// Where the output goes.
    #[must_use]
    pub(super) fn output_path(&self) -> PathBuf {
        PathBuf::from(self.output.clone().unwrap_or_else(|| "a.out".into()))
    }

    /// The host's command line, with `objects` among the inputs and `flags` at the end.
    ///
    /// `write` is called with the content of each response file that had to change, and returns
    /// its new name.
    pub(super) fn render(
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
                file.push(write(&response_file::quote(&part))?);
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
    pub(super) fn repacks(&self) -> bool {
        self.tokens
            .iter()
            .any(|token| token.edit != Edit::Keep && token.text != self.argv[token.origin])
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    whole: bool,
    only_static: bool,
    all_static: bool,
    lazy: bool,
}

/// Which of the two streams of arguments: a driver's, and the linker's inside it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stream {
    Linker = 0,
    Driver = 1,
}

#[derive(Clone, Copy)]
enum Pending {
    Own(Own),
    Host(Host),
}

struct Walk {
    arguments: Arguments,
    state: State,
    saved: Vec<State>,
    output_token: Option<usize>,
    /// In each stream, the option whose value comes next, and the argument it is in.
    pending: [Option<(Pending, usize)>; 2],
    /// The `-Xlinker` that the present argument is for.
    xlinker: Option<usize>,
    /// The option before was `-compress`: LLVM 19's driver adds `-verbose` to it by mistake.
    compress: bool,
}

impl Walk {
    fn all(&mut self, tokens: &mut [Token]) -> Result<(), Error> {
        for index in 0..tokens.len() {
            let text = tokens[index].text.clone();
            tokens[index].edit = match self.arguments.position {
                Position::Linker { .. } => match self.one(Stream::Linker, &text, index)? {
                    true => Edit::Keep,
                    false => Edit::Drop,
                },
                Position::Driver => self.driver(tokens, &text, index)?,
            };
        }
        match self.pending.iter().flatten().next() {
            Some((Pending::Own(_), at)) => Err(Error::Option(format!(
                "{}: missing argument",
                tokens[*at].text.to_string_lossy()
            ))),
            _ => Ok(()),
        }
    }

    fn driver(&mut self, tokens: &mut [Token], text: &OsStr, at: usize) -> Result<Edit, Error> {
        let edit = |keep| if keep { Edit::Keep } else { Edit::Drop };
        if let Some(xlinker) = self.xlinker.take() {
            let keep = self.one(Stream::Linker, text, at)?;
            if !keep {
                tokens[xlinker].edit = Edit::Drop;
            }
            return Ok(edit(keep));
        }
        if self.pending[Stream::Driver as usize].is_none() {
            if let Some(list) = text.as_bytes().strip_prefix(b"-Wl,") {
                let mut kept = Vec::new();
                let mut all = true;
                for piece in list.split(|byte| *byte == b',') {
                    if self.one(Stream::Linker, OsStr::from_bytes(piece), at)? {
                        kept.push(piece);
                    } else {
                        all = false;
                    }
                }
                return Ok(match (all, kept.is_empty()) {
                    (true, _) => Edit::Keep,
                    (false, true) => Edit::Drop,
                    (false, false) => {
                        let mut joined = b"-Wl,".to_vec();
                        joined.extend(kept.join(&b','));
                        Edit::Replace(OsString::from_vec(joined))
                    }
                });
            }
        }
        self.one(Stream::Driver, text, at).map(edit)
    }

    /// Takes in one argument; says whether it stays on the host's command line.
    fn one(&mut self, stream: Stream, text: &OsStr, at: usize) -> Result<bool, Error> {
        if let Some((pending, _)) = self.pending[stream as usize].take() {
            return match pending {
                Pending::Own(id) => {
                    let spelled = text.to_string_lossy();
                    self.arguments
                        .options
                        .apply(id, text.to_owned(), &spelled)?;
                    Ok(false)
                }
                Pending::Host(id) => {
                    self.value(id, text.to_owned(), at);
                    Ok(true)
                }
            };
        }
        if text.as_bytes().first() != Some(&b'-') || text.len() == 1 {
            self.input(text, at);
            return Ok(true);
        }
        if let Some(found) = self.own(stream, text) {
            let (id, value) = match found {
                Found::Flag(id) => (id, OsString::new()),
                Found::Value(id, value) => (id, value),
                Found::Next(id) => {
                    self.pending[stream as usize] = Some((Pending::Own(id), at));
                    return Ok(false);
                }
            };
            let spelled = text.to_string_lossy();
            self.arguments.options.apply(id, value, &spelled)?;
            self.compress = text == "-compress";
            return Ok(false);
        }
        if std::mem::take(&mut self.compress) && text == "-verbose" {
            return Ok(false);
        }
        let found = match stream {
            Stream::Linker => find(LD, text, Dashes::Either),
            Stream::Driver => find(CC, text, Dashes::One),
        };
        match found {
            Some(Found::Flag(Host::NoLink) | Found::Value(Host::NoLink, _)) => {
                self.arguments.no_link = true;
                self.arguments.compiles |= stream == Stream::Driver;
            }
            Some(Found::Flag(id)) => self.flag(id),
            Some(Found::Value(id, value)) => self.value(id, value, at),
            Some(Found::Next(Host::Xlinker)) => self.xlinker = Some(at),
            Some(Found::Next(id)) => {
                self.pending[stream as usize] = Some((Pending::Host(id), at));
            }
            None => {}
        }
        Ok(true)
    }

    fn own(&self, stream: Stream, text: &OsStr) -> Option<Found<Own>> {
        let position = self.arguments.position;
        let dashes = match (position, stream) {
            (Position::Driver, Stream::Driver) => Dashes::Two,
            _ => Dashes::Either,
        };
        let found = find(OWN, text, dashes);
        if position == Position::Driver && found == Some(Found::Next(Own::Mllvm)) {
            return None; // for the host's LTO
        }
        if found.is_none() && position == (Position::Linker { answers: true }) {
            return find(ANSWERED, text, dashes);
        }
        found
    }

    fn input(&mut self, text: &OsStr, token: usize) {
        let path = PathBuf::from(text);
        let load = self.load();
        self.arguments.items.push(Item::File { path, load, token });
    }

    fn load(&self) -> Load {
        match self.state {
            State { whole: true, .. } => Load::Whole,
            State { lazy: true, .. } => Load::Wanted,
            _ => Load::Usual,
        }
    }

    fn flag(&mut self, id: Host) {
        match id {
            Host::WholeArchive => self.whole(true),
            Host::NoWholeArchive => self.whole(false),
            Host::Static => self.state.only_static = true,
            Host::Dynamic => self.state.only_static = false,
            Host::AllStatic => self.state.all_static = true,
            Host::StartLib => self.state.lazy = true,
            Host::EndLib => self.state.lazy = false,
            Host::PushState => self.saved.push(self.state),
            Host::PopState => {
                let whole = self.state.whole;
                self.state = self.saved.pop().unwrap_or_default();
                if self.state.whole != whole {
                    self.whole(self.state.whole);
                }
            }
            Host::Relocatable => self.arguments.relocatable = true,
            _ => {}
        }
    }

    fn whole(&mut self, on: bool) {
        self.state.whole = on;
        self.arguments.items.push(Item::WholeArchive(on));
    }

    fn value(&mut self, id: Host, value: OsString, at: usize) {
        let arguments = &mut self.arguments;
        match id {
            Host::Output => {
                arguments.output = Some(value);
                self.output_token = Some(at);
            }
            Host::Library => {
                let only_static = self.state.only_static || self.state.all_static;
                let load = self.load();
                self.arguments.items.push(Item::Library {
                    name: value,
                    load,
                    only_static,
                });
            }
            Host::LibraryDir => {
                arguments.library_dirs.push(value.clone());
                arguments.items.push(Item::LibraryDir(value));
            }
            Host::Sysroot => arguments.sysroot = Some(value),
            Host::Rpath => arguments.items.push(Item::Rpath(value)),
            Host::Root => arguments.roots.push(value),
            Host::FuseLd | Host::LdPath => arguments.chosen_linker = Some(value),
            Host::Target => arguments.target = Some(value),
            _ => {}
        }
    }
}
