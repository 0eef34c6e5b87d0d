//! Classifies each argument of the command line: option of this tool, input, value, or other argument of the host
//! linker.

use crate::options::response_file;
use crate::platform;
use offload_build::tools::distance;
use std::ffi::{OsStr, OsString};
use std::mem;
use std::path::PathBuf;

use super::{Arguments, Edit, Item, Load, Position, Token};
use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::line::family::Family;
use crate::linker_wrapper::line::options::{
    ANSWERED, CC, COFF, DARWIN, DROPPED_OPTIONS, Host, LD, OWN, Own, PREFIXES, Question,
};
use crate::options::linker::{Dashes, FoundOption, find};

/// Parses `tokens`, marks the options of this tool, and returns the token that names the output.
pub(crate) fn walk(
    arguments: Arguments,
    tokens: &mut [Token],
) -> Result<(Arguments, Option<usize>), LinkError> {
    let mut walk = Walk {
        arguments,
        state: State::default(),
        saved: Vec::new(),
        output_token: None,
        pending: [None, None],
        xlinker: None,
        only_ours: true,
        compress: false,
        group: None,
        default_libraries: Vec::new(),
        binary: false,
        has_language: false,
    };
    walk.all(tokens)?;
    Ok((walk.arguments, walk.output_token))
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    whole: bool,
    only_static: bool,
    lazy: bool,
    /// Nothing before the first option, as a driver may put one first.
    as_needed: Option<bool>,
}

/// Stream of arguments: a driver's, or the linker's inside it.
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
    /// For each stream, the option that waits for its value, and the index of its argument.
    pending: [Option<(Pending, usize)>; 2],
    /// Index of the `-Xlinker` before the current argument.
    xlinker: Option<usize>,
    /// Set while every argument so far was an option of this tool.
    only_ours: bool,
    /// Set after `-x c`: the driver compiles what follows, whatever it is.
    has_language: bool,
    /// Set after `--format=binary`: inputs are data, whatever they contain.
    binary: bool,
    /// Number of items before the `--start-group` of an open group.
    group: Option<usize>,
    /// Libraries that Microsoft's linkers search after all others.
    default_libraries: Vec<Item>,
    /// Set after `-compress`: LLVM 19's driver adds `-verbose` to it by mistake.
    compress: bool,
}

impl Walk {
    fn all(&mut self, tokens: &mut [Token]) -> Result<(), LinkError> {
        for index in 0..tokens.len() {
            let text = mem::take(&mut tokens[index].text);
            tokens[index].edit = match self.arguments.position {
                // LLVM 16 ends the wrapper's own options with it; users may, too.
                Position::Linker { .. } if self.only_ours && text == "--" => {
                    self.only_ours = false;
                    Edit::Drop
                }
                Position::Linker { .. } => match self.one(Stream::Linker, &text, index)? {
                    true => {
                        self.only_ours = false;
                        Edit::Keep
                    }
                    false => Edit::Drop,
                },
                Position::Driver => self.driver(tokens, &text, index)?,
            };
            tokens[index].text = text;
        }
        // GNU ld ends it there, with a warning.
        self.end_group();
        self.arguments.items.append(&mut self.default_libraries);
        // A driver puts `-static` first, wherever it stands; relocatable links load no shared libraries.
        if self.arguments.all_static || self.arguments.relocatable {
            for item in &mut self.arguments.items {
                if let Item::File { only_static, .. } | Item::Library { only_static, .. } = item {
                    *only_static = true;
                }
            }
        }
        self.arguments.options.ask();
        let alone = matches!(&*tokens, [token] if token.text == "--help");
        if alone && self.arguments.position == Position::Driver {
            self.arguments.options.answer = Some(Question::Help);
        }
        if self.arguments.family == Family::Coff && self.state.whole {
            // `/wholearchive` applies to the whole command line.
            for item in &mut self.arguments.items {
                if let Item::File { load, .. } | Item::Library { load, .. } = item {
                    *load = Load::Whole;
                }
            }
        }
        // What a driver gives to its linker may be followed by the value, as in `-Wl,-rpath DIR`.
        let is_driver = self.arguments.position == Position::Driver;
        let pending = [Stream::Linker, Stream::Driver]
            .into_iter()
            .zip(&self.pending);
        let mut pending = pending.filter_map(|(stream, pending)| Some((stream, pending.as_ref()?)));
        let incomplete = pending.find(|(stream, (pending, _))| match pending {
            Pending::Own(_) => true,
            Pending::Host(_) if is_driver && *stream == Stream::Linker => false,
            // Options that we append would become the argument.
            Pending::Host(
                Host::Output
                | Host::Library
                | Host::NamedLibrary
                | Host::DefaultLibrary
                | Host::LibraryDir
                | Host::Rpath,
            ) => true,
            Pending::Host(_) => false,
        });
        match incomplete.and_then(|(_, (_, at))| tokens.get(*at)) {
            Some(token) => Err(LinkError::Option(format!(
                "{}: missing argument",
                token.text.to_string_lossy()
            ))),
            None => Ok(()),
        }
    }

    fn driver(&mut self, tokens: &mut [Token], text: &OsStr, at: usize) -> Result<Edit, LinkError> {
        let edit = |keep| if keep { Edit::Keep } else { Edit::Drop };
        if let Some(xlinker) = self.xlinker.take() {
            let kept = self.forwarded(text, text, at)?;
            if matches!(kept, Edit::Drop) {
                tokens[xlinker].edit = Edit::Drop;
            }
            return Ok(kept);
        }
        if self.pending[Stream::Driver as usize].is_none() {
            if let Some(word) = text.as_encoded_bytes().strip_prefix(b"--for-linker=") {
                return self.forwarded(text, &platform::os_string(word.to_vec()), at);
            }
            if let Some(list) = text.as_encoded_bytes().strip_prefix(b"-Wl,") {
                let mut kept = Vec::new();
                let mut all = true;
                for piece in list.split(|byte| *byte == b',') {
                    match self.words(&platform::os_string(piece.to_vec()), at)? {
                        None => kept.push(piece.to_vec()),
                        Some(words) => {
                            all = false;
                            let words = words.iter().map(|word| word.as_encoded_bytes());
                            kept.extend(words.map(<[u8]>::to_vec));
                        }
                    }
                }
                return match (all, kept.is_empty()) {
                    (true, _) => Ok(Edit::Keep),
                    (false, true) => Ok(Edit::Drop),
                    // The driver splits at commas.
                    (false, false) if kept.iter().any(|word| word.contains(&b',')) => {
                        Err(mixed(text))
                    }
                    (false, false) => {
                        let mut joined = b"-Wl,".to_vec();
                        joined.extend(kept.join(&b','));
                        Ok(Edit::Replace(platform::os_string(joined)))
                    }
                };
            }
        }
        self.one(Stream::Driver, text, at).map(edit)
    }

    /// Parses the argument `word` that a driver passes to its linker as a whole, because of `text`.
    fn forwarded(&mut self, text: &OsStr, word: &OsStr, at: usize) -> Result<Edit, LinkError> {
        match self.words(word, at)?.as_deref() {
            None => Ok(Edit::Keep),
            Some([]) => Ok(Edit::Drop),
            Some(_) => Err(mixed(text)),
        }
    }

    /// Parses an argument that a driver passes to its linker, or what the response file has that it names. Returns the words
    /// that stay on the host's command line; nothing if all do.
    fn words(&mut self, text: &OsStr, at: usize) -> Result<Option<Vec<OsString>>, LinkError> {
        let words = response_file::expand(text, self.arguments.quoting())
            .map_err(|error| LinkError::Option(error.to_string()))?;
        let count = words.len();
        let mut kept = Vec::new();
        for word in words {
            if self.one(Stream::Linker, &word, at)? {
                kept.push(word);
            }
        }
        Ok((kept.len() < count).then_some(kept))
    }

    /// Parses one argument, and tells whether it stays on the host's command line.
    fn one(&mut self, stream: Stream, text: &OsStr, at: usize) -> Result<bool, LinkError> {
        if !matches!(self.pending[stream as usize], Some((Pending::Host(_), _))) {
            return self.next(stream, text, at);
        }
        // No option of the linker takes one of our options as its value; LLVM's tool recognizes it there, too.
        let ours = self.arguments.position != Position::Driver
            && (text.as_encoded_bytes().starts_with(b"--") || text == "-mllvm")
            && self.own(stream, text).is_some();
        if !ours {
            return self.next(stream, text, at);
        }
        let pending = self.pending[stream as usize].take();
        let kept = self.next(stream, text, at);
        if self.pending[stream as usize].is_none() {
            self.pending[stream as usize] = pending;
        }
        kept
    }

    fn next(&mut self, stream: Stream, text: &OsStr, at: usize) -> Result<bool, LinkError> {
        if let Some((pending, _)) = self.pending[stream as usize].take() {
            return match pending {
                Pending::Own(id) => {
                    self.apply(stream, id, text.to_owned())?;
                    Ok(false)
                }
                Pending::Host(id) => {
                    self.value(stream, id, text.to_owned(), at);
                    Ok(true)
                }
            };
        }
        if let Some(found) = self.coff(stream, text) {
            self.found(stream, Some(found), at);
            return Ok(true);
        }
        if text.as_encoded_bytes().first() != Some(&b'-') || text.len() == 1 {
            self.input(text, at);
            return Ok(true);
        }
        if let Some(found) = self.own(stream, text) {
            let (id, value) = match found {
                FoundOption::Flag(id) => (id, OsString::new()),
                FoundOption::Value(id, value) => (id, value),
                FoundOption::Next(id) => {
                    self.pending[stream as usize] = Some((Pending::Own(id), at));
                    return Ok(false);
                }
            };
            self.apply(stream, id, value)?;
            self.compress = text == "-compress";
            return Ok(false);
        }
        refuse_mistaken(text)?;
        if std::mem::take(&mut self.compress) && text == "-verbose" {
            return Ok(false);
        }
        let found = match (stream, self.arguments.family) {
            (Stream::Driver, _) => find(CC, text, Dashes::One),
            (Stream::Linker, Family::Coff) => separate(find(LD, text, Dashes::Either)),
            (Stream::Linker, Family::Darwin) => {
                find(DARWIN, text, Dashes::One).or_else(|| find_ld(text))
            }
            (Stream::Linker, _) => find_ld(text),
        };
        let is_unknown = found.is_none() && stream == Stream::Linker;
        self.arguments.unread_inputs |= is_unknown && is_shortened(text);
        self.found(stream, found, at);
        Ok(true)
    }

    fn found(&mut self, stream: Stream, found: Option<FoundOption<Host>>, at: usize) {
        match found {
            Some(FoundOption::Flag(Host::NoLink) | FoundOption::Value(Host::NoLink, _)) => {
                self.arguments.no_link = true;
                self.arguments.compiles |= stream == Stream::Driver;
            }
            Some(FoundOption::Flag(id)) => self.flag(id),
            Some(FoundOption::Value(id, value)) => self.value(stream, id, value, at),
            Some(FoundOption::Next(Host::Xlinker)) => self.xlinker = Some(at),
            Some(FoundOption::Next(id)) => {
                self.pending[stream as usize] = Some((Pending::Host(id), at));
            }
            None => {}
        }
    }

    /// Parses an option of Microsoft's linkers: after a slash or a dash, with its value after a colon.
    fn coff(&self, stream: Stream, text: &OsStr) -> Option<FoundOption<Host>> {
        if self.arguments.family != Family::Coff || stream != Stream::Linker {
            return None;
        }
        let (b'/' | b'-', bytes) = text.as_encoded_bytes().split_first()? else {
            return None;
        };
        let mut words = bytes.splitn(2, |byte| *byte == b':');
        let mut option = b"-".to_vec();
        option.extend(words.next()?.to_ascii_lowercase());
        if let Some(value) = words.next() {
            option.push(b'=');
            option.extend(value);
        }
        find(COFF, &platform::os_string(option), Dashes::One)
    }

    fn apply(&mut self, stream: Stream, id: Own, value: OsString) -> Result<(), LinkError> {
        let inside = self.arguments.position == Position::Driver && stream == Stream::Linker;
        if inside && id == Own::LinkerPath && !super::is_driver(&value) {
            return Err(LinkError::Option(format!(
                "--linker-path={}: among arguments of a compiler driver\n\
                 hint: for a linker's own arguments, give it to this tool itself, not through the driver",
                value.to_string_lossy()
            )));
        }
        self.arguments.options.apply(id, value)
    }

    fn own(&self, stream: Stream, text: &OsStr) -> Option<FoundOption<Own>> {
        let position = self.arguments.position;
        let dashes = match (position, stream) {
            (Position::Driver, Stream::Driver) => Dashes::Two,
            _ => Dashes::Either,
        };
        let name = text.to_str().and_then(|text| text.strip_prefix('-'));
        let dashes = match name.is_some_and(|name| DROPPED_OPTIONS.contains(&name)) {
            true => Dashes::Either,
            false => dashes,
        };
        let found = find(OWN, text, dashes);
        if position == Position::Driver && found == Some(FoundOption::Next(Own::Mllvm)) {
            return None; // for the host's LTO
        }
        if found.is_none() && position == (Position::Linker { answers: true }) {
            return find(ANSWERED, text, dashes);
        }
        found
    }

    fn input(&mut self, text: &OsStr, token: usize) {
        if self.binary {
            return;
        }
        let load = self.load();
        self.input_as(text, load, token);
    }

    fn input_as(&mut self, text: &OsStr, load: Load, token: usize) {
        // A path below GNU ld's sysroot.
        self.arguments.unread_inputs |= text.as_encoded_bytes().starts_with(b"=");
        let item = match self.arguments.family == Family::Coff && is_library(text) {
            true => Item::Library {
                name: text.to_owned(),
                load,
                by_letter: false,
                token,
                only_static: false,
            },
            false => Item::File {
                path: PathBuf::from(text),
                load,
                only_static: self.state.only_static,
                takes_objects: load != Load::Wanted && !self.has_language,
                token,
            },
        };
        self.arguments.items.push(item);
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
            Host::WholeArchive | Host::NoWholeArchive => self.whole(id == Host::WholeArchive),
            Host::Static => self.state.only_static = true,
            Host::Dynamic => self.state.only_static = false,
            Host::AllStatic => self.arguments.all_static = true,
            Host::StartLib => self.state.lazy = true,
            Host::EndLib => self.state.lazy = false,
            Host::AsNeeded | Host::NoAsNeeded => self.as_needed(Some(id == Host::AsNeeded)),
            Host::FortranCommon | Host::NoFortranCommon => {
                self.arguments.fortran_common = Some(id == Host::FortranCommon);
            }
            Host::PushState => self.saved.push(self.state),
            Host::PopState => {
                let whole = self.state.whole;
                self.state = self.saved.pop().unwrap_or_default();
                if self.state.whole != whole {
                    self.whole(self.state.whole);
                }
                self.as_needed(self.state.as_needed);
            }
            Host::StartGroup => self.group = Some(self.arguments.items.len()),
            Host::EndGroup => self.end_group(),
            Host::Relocatable => self.arguments.relocatable = true,
            Host::NoLibraries => self.arguments.no_libraries = true,
            _ => {}
        }
    }

    fn end_group(&mut self) {
        let end = self.arguments.items.len();
        let group = self.group.take().map(|start| start..end);
        let group = group.filter(|group| !group.is_empty());
        self.arguments.groups.extend(group);
    }

    fn as_needed(&mut self, on: Option<bool>) {
        self.state.as_needed = on;
        let start = self.arguments.items.len();
        self.arguments.as_needed.push((start, on));
    }

    fn whole(&mut self, on: bool) {
        self.state.whole = on;
        self.arguments.items.push(Item::WholeArchive(on));
    }

    fn value(&mut self, stream: Stream, id: Host, value: OsString, at: usize) {
        let arguments = &mut self.arguments;
        match id {
            Host::Output => {
                arguments.output = Some(value);
                self.output_token = Some(at);
            }
            Host::Library | Host::NamedLibrary | Host::DefaultLibrary => {
                let only_static = self.state.only_static;
                let library = Item::Library {
                    name: value,
                    load: self.load(),
                    only_static,
                    by_letter: id == Host::Library,
                    token: at,
                };
                match id {
                    Host::DefaultLibrary => self.default_libraries.push(library),
                    _ => self.arguments.items.push(library),
                }
            }
            Host::WholeLibrary => self.input_as(&value, Load::Whole, at),
            Host::LibraryDir => {
                let is_own = arguments.position != Position::Driver || stream == Stream::Driver;
                let place = match is_own {
                    true => arguments.own_library_dirs,
                    false => arguments.library_dirs.len(),
                };
                arguments.own_library_dirs += usize::from(is_own);
                arguments.library_dirs.insert(place, value.clone());
                arguments.items.push(Item::LibraryDir(value));
            }
            Host::Sysroot => arguments.sysroot = Some(value),
            Host::Rpath => arguments.items.push(Item::Rpath(value)),
            Host::Root => arguments.roots.push(value),
            Host::RootPattern => {
                arguments.root_pattern.get_or_insert(value);
            }
            Host::InputLanguage => self.has_language = value != "none",
            Host::Format => self.binary = value == "binary",
            Host::Prefix => arguments.prefixes.push(value),
            Host::DefSym => arguments.roots.extend(symbols_of(&value)),
            Host::Wrap => arguments.wrapped.push(value),
            Host::FuseLd | Host::LdPath => arguments.chosen_linker = Some(value),
            Host::Target => arguments.target = Some(value),
            Host::DependencyFile => arguments.dependency_file = Some(PathBuf::from(value)),
            Host::UnreadInputs => arguments.unread_inputs = true,
            _ => {}
        }
    }
}

/// Returns the symbols that the expression in `<symbol>=<expression>` has.
fn symbols_of(text: &OsStr) -> Vec<OsString> {
    let bytes = text.as_encoded_bytes();
    let start = bytes.iter().position(|byte| *byte == b'=');
    let expression = start.and_then(|start| bytes.get(start + 1..));
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.$".contains(byte);
    let words = expression
        .unwrap_or_default()
        .split(|byte| !is_letter(byte));
    let is_symbol = |word: &&[u8]| word.first().is_some_and(|first| !first.is_ascii_digit());
    let symbols = words.filter(is_symbol);
    symbols
        .map(|word| platform::os_string(word.to_vec()))
        .collect()
}

/// Returns the error for a response file whose words cannot take its place.
fn mixed(text: &OsStr) -> LinkError {
    LinkError::Option(format!(
        "{}: has options of this tool among others for the linker\nhint: give them to this tool itself",
        text.to_string_lossy()
    ))
}

/// Finds an option of a linker. Names that begin with `o` need two dashes: `-omagic` names the output `magic` in GNU
/// ld, gold and lld.
fn find_ld(text: &OsStr) -> Option<FoundOption<Host>> {
    let dashes = match text.as_encoded_bytes().starts_with(b"-o") {
        true => Dashes::Two,
        false => Dashes::Either,
    };
    find(LD, text, dashes)
}

/// Tells whether GNU ld may take it for an option about inputs: it knows long options by any start of theirs.
fn is_shortened(text: &OsStr) -> bool {
    let bytes = text.as_encoded_bytes();
    let name = bytes.strip_prefix(b"--").or(bytes.strip_prefix(b"-"));
    let name = name.and_then(|name| name.split(|byte| *byte == b'=').next());
    let about_inputs = LD.iter().filter(|row| row.id != Host::Value);
    let mut names = about_inputs.flat_map(|row| row.names);
    name.is_some_and(|name| name.len() > 2 && names.any(|full| full.as_bytes().starts_with(name)))
}

/// Excludes `-o` joined with a value: among the options of Microsoft's linkers, `-opt:ref` is not `-o`.
fn separate(found: Option<FoundOption<Host>>) -> Option<FoundOption<Host>> {
    found.filter(|found| {
        matches!(
            found,
            FoundOption::Next(_) | FoundOption::Flag(Host::WholeArchive | Host::NoWholeArchive)
        )
    })
}

/// Tells whether Microsoft's linkers search their folders for this name.
fn is_library(text: &OsStr) -> bool {
    let text = text.to_string_lossy();
    text.to_ascii_lowercase().ends_with(".lib") && !text.contains(['/', '\\'])
}

/// Refuses an unknown option that only this tool could have.
fn refuse_mistaken(text: &OsStr) -> Result<(), LinkError> {
    let text = text.to_string_lossy();
    let name = text.strip_prefix("--").or_else(|| text.strip_prefix('-'));
    let name = name.unwrap_or_default();
    let name = name.split_once('=').map_or(name, |(name, _)| name);
    if !PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        return Ok(());
    }
    let names = OWN.iter().flat_map(|row| row.names);
    let nearest = names.min_by_key(|known| distance(known, name));
    let nearest = nearest.filter(|known| distance(known, name) <= name.len() / 2);
    let hint = nearest.map_or(String::new(), |known| {
        format!("\nhint: did you mean `--{known}`?")
    });
    Err(LinkError::Option(format!("unknown option `{text}`{hint}")))
}
