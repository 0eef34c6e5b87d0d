//! Finds the inputs of the host link that contain device code.
//!
//! Every build script is linked through this file. So an input without device code costs only its ELF header and
//! section headers, and an archive also the headers of its members; no names and no symbols are read. (COFF marks
//! device code by names only.) An input that cannot be parsed is left to the host linker, with a warning, because
//! some linkers give none; if other inputs have device code, it is an error. An input that the system refuses to read
//! is always an error: the host linker may read it a moment later.

use crate::linker_wrapper::inputs::file::{
    DeviceCode, FileKind, InputFile, Inputs, Place, Unit, UnitKind, Unreadable,
};
use offload_formats::container::archive::{ArchiveMember, ArchiveMembers};
use offload_formats::container::bundled;
use offload_formats::container::elf::{Elf, Machine};
use offload_formats::escape::terminal;
use offload_formats::format::bytes::ReadAt;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::files::{self, Opened, open_member};
use crate::linker_wrapper::error::{LinkError, Problem};
use crate::linker_wrapper::inputs::blocks::{BLOCK, Blocks, read_first};
use crate::linker_wrapper::inputs::libraries::{Search, below_root, has_extension};
use crate::linker_wrapper::inputs::linker_script::{self, ScriptInput, is_source};
use crate::linker_wrapper::inputs::seen::Seen;
use crate::linker_wrapper::line::arguments::{Arguments, Item, Load, Position};
use crate::linker_wrapper::line::family::Family;
use crate::platform::is_absent;

/// Largest depth of linker scripts that name each other.
const MAX_SCRIPTS: usize = 8;

/// Largest size of a linker script in bytes.
const LARGEST_SCRIPT: u64 = 1 << 20;

/// A scan of the command line.
struct Scan<'a> {
    arguments: &'a Arguments,
    search: Option<Search>,
    /// Compilers name libraries such as libgcc twice.
    archives: HashMap<PathBuf, usize>,
    inputs: Inputs,
    /// Buffer for the first block of a file.
    first: Box<[u8; BLOCK]>,
    /// Linker scripts that are being read, each named by the one before.
    open_scripts: Vec<PathBuf>,
}

/// Item of the command line that leads to a file.
#[derive(Clone, Copy)]
struct FileItem {
    index: usize,
    load: Load,
    only_static: bool,
    /// Number of linker scripts between the item and the file.
    scripts: usize,
    /// Set in `AS_NEEDED` of a script.
    as_needed: bool,
}

impl FileItem {
    /// Returns a file with what the item and scripts say of it.
    fn mark(self, mut file: InputFile) -> InputFile {
        file.in_script = self.scripts > 0;
        file.as_needed = self.as_needed;
        file
    }
}

impl Scan<'_> {
    fn item(&mut self, index: usize, item: &Item) -> Result<(), LinkError> {
        let at = |load: &Load, only_static: &bool| FileItem {
            index,
            load: *load,
            only_static: *only_static,
            scripts: 0,
            as_needed: false,
        };
        match item {
            Item::File {
                path,
                load,
                only_static,
                ..
            } => match self.opened(path, *only_static)? {
                Some((path, file)) => self.file(path, file, at(load, only_static)),
                // The host linker does not find such a file, either.
                None => {
                    self.inputs
                        .missing
                        .push(terminal(path.as_path()).to_string());
                    Ok(())
                }
            },
            Item::Library {
                name,
                load,
                only_static,
                by_letter,
                ..
            } => match self.find(name, *only_static)? {
                Some((path, file)) => self.file(path, file, at(load, only_static)),
                None => {
                    let text = format!("-l{}", terminal(name.as_os_str()));
                    self.inputs.missing.push(text);
                    if *by_letter {
                        let missing = &mut self.inputs.missing_library;
                        missing.get_or_insert_with(|| name.clone());
                    }
                    Ok(())
                }
            },
            _ => Ok(()),
        }
    }

    /// Opens an input that may be missing. Microsoft's linkers search their folders for it, too, and add an extension.
    fn opened(
        &mut self,
        path: &Path,
        only_static: bool,
    ) -> Result<Option<(PathBuf, File)>, LinkError> {
        let found = opened(path.to_owned())?;
        if found.is_some() || self.arguments.family != Family::Coff {
            return Ok(found);
        }
        let name = match has_extension(path.as_os_str()) {
            true => path.to_owned(),
            false => path.with_extension("obj"),
        };
        self.find(name.as_os_str(), only_static)
    }

    fn search(&mut self) -> &mut Search {
        let arguments = self.arguments;
        self.search.get_or_insert_with(|| Search::new(arguments))
    }

    /// Finds the library after `-l` that is for the host.
    fn find(
        &mut self,
        name: &OsStr,
        only_static: bool,
    ) -> Result<Option<(PathBuf, File)>, LinkError> {
        let host = self.inputs.host.filter(|_| self.arguments.family.is_elf());
        self.search().find(name, only_static, host)
    }

    fn file(&mut self, path: PathBuf, file: File, at: FileItem) -> Result<(), LinkError> {
        let inputs = &mut self.inputs;
        let known = self.archives.get(&path);
        if let Some(known) = known.and_then(|known| inputs.files.get(*known)) {
            let again = at.mark(known.again(at.index, at.load));
            inputs.files.push(again);
            return Ok(());
        }
        let read = read_first(&file, &mut self.first);
        let first = &self.first[..*read.as_ref().unwrap_or(&0)];
        if let Some(found) = inputs.plain(first) {
            let file = InputFile::new(path, (at.index, at.load), found, None);
            inputs.files.push(at.mark(file));
            return Ok(());
        }
        let blocks = match read.and_then(|_| Blocks::after(&path, file, first)) {
            Ok(blocks) => blocks,
            Err(problem) if problem.kind() == io::ErrorKind::IsADirectory => return Ok(()),
            Err(problem) if is_stream(&problem) => {
                if !self.arguments.compiles {
                    inputs.note_unreadable(terminal(&*path).to_string(), problem.into());
                }
                return Ok(());
            }
            Err(problem) => return Err(LinkError::unopened(&path, &problem)),
        };
        let Some((mut kind, units)) = inputs.look(&path, &blocks)? else {
            return Ok(());
        };
        let mut named = None;
        if kind == FileKind::Other && self.arguments.family == Family::Gnu {
            let size = blocks.size();
            let is_source = self.arguments.position == Position::Driver && is_source(&path);
            let text = (size <= LARGEST_SCRIPT && !is_source).then(|| (&blocks).read_at(0, size));
            named = text.flatten().and_then(linker_script::inputs);
        }
        match kind {
            FileKind::Archive => {
                self.archives.insert(path.clone(), inputs.files.len());
            }
            FileKind::Other if named.is_some() => kind = FileKind::LinkerScript,
            _ => {}
        }
        let found = (kind, units);
        let file = InputFile::new(path.clone(), (at.index, at.load), found, Some(blocks));
        inputs.files.push(at.mark(file));
        let Some(named) = named else {
            return Ok(());
        };
        // A script may include itself.
        if !self.open_scripts.contains(&path) {
            self.open_scripts.push(path.clone());
            let mut of_name = at;
            for name in named {
                match name {
                    ScriptInput::AsNeeded(true) => of_name.as_needed = true,
                    ScriptInput::AsNeeded(false) => of_name.as_needed = at.as_needed,
                    name => self.named(&path, name, of_name)?,
                }
            }
            self.open_scripts.pop();
        }
        Ok(())
    }

    /// Returns the path of a file of the sysroot.
    fn below_root(&self, path: &Path) -> PathBuf {
        let mut whole = self.arguments.sysroot.clone().unwrap_or_default();
        whole.push(path);
        whole.into()
    }

    /// Adds an input that a linker script names. Files called `*.so.*` are shared libraries without device code to link, and are
    /// not opened, because every C library is a script that names one. `libx.so` may be a script.
    fn named(&mut self, script: &Path, name: ScriptInput, at: FileItem) -> Result<(), LinkError> {
        let at = FileItem {
            scripts: at.scripts + 1,
            ..at
        };
        if at.scripts > MAX_SCRIPTS {
            return Ok(());
        }
        let found = match name {
            ScriptInput::Folder(folder) => {
                let root = self.arguments.sysroot.as_deref();
                let folder = below_root(&folder, root).unwrap_or(folder);
                self.search().add(folder);
                return Ok(());
            }
            ScriptInput::Root(name) => {
                self.inputs.roots.push(name);
                return Ok(());
            }
            ScriptInput::AsNeeded(_) => None,
            ScriptInput::Library(name) => self.find(&name, at.only_static)?,
            ScriptInput::File(path) | ScriptInput::BelowRoot(path) if is_shared(&path) => None,
            ScriptInput::BelowRoot(path) => opened(self.below_root(&path))?,
            ScriptInput::File(path) | ScriptInput::Script(path) => {
                // A script of a sysroot names files of that.
                let root = self.arguments.sysroot.as_ref();
                let is_inside = root.is_some_and(|root| script.starts_with(root));
                if path.is_absolute() && is_inside {
                    if let Some((path, file)) = opened(self.below_root(&path))? {
                        return self.file(path, file, at);
                    }
                }
                let mut exact = OsString::from(":");
                exact.push(&path);
                // GNU ld and lld look beside the script first.
                match opened(script.with_file_name(&path))? {
                    Some(found) => Some(found),
                    None => match opened(path)? {
                        Some(found) => Some(found),
                        None => self.find(&exact, at.only_static)?,
                    },
                }
            }
        };
        match found {
            Some((path, file)) => self.file(path, file, at),
            None => Ok(()),
        }
    }
}

/// Returns the unit that is a whole file.
fn whole(size: u64, kind: UnitKind, device_code: DeviceCode) -> Unit {
    Unit {
        member: None,
        name: None,
        outside: None,
        data: 0..size,
        kind,
        device_code,
        bundle: None,
    }
}

/// Tells whether a file has the name of a shared library with a version, such as `libc.so.6`.
fn is_shared(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.windows(4).any(|part| part == b".so.")
}

/// Opens a file that may be missing.
fn opened(path: PathBuf) -> Result<Option<(PathBuf, File)>, LinkError> {
    match Opened::open(&path) {
        Ok(file) => Ok(Some((path, file))),
        Err(problem) if is_absent(&problem) => Ok(None),
        Err(problem) => Err(LinkError::unopened(&path, &problem)),
    }
}

impl Inputs {
    /// Reads every input of the command line, and those that linker scripts name.
    ///
    /// # Errors
    ///
    /// Fails if the system refuses to read an input that the host linker may read.
    pub(crate) fn scan(arguments: &Arguments) -> Result<Self, LinkError> {
        let mut scan = Scan {
            arguments,
            search: None,
            archives: HashMap::new(),
            inputs: Self::default(),
            first: Box::new([0; BLOCK]),
            open_scripts: Vec::new(),
        };
        for (index, item) in arguments.items.iter().enumerate() {
            scan.item(index, item)?;
        }
        files::check()?;
        Ok(scan.inputs)
    }

    /// Returns the format and the unit of a file that its first block contains and that has no device code; of any
    /// other file, returns `None`. Most inputs are such files, and no phase reads them again.
    fn plain(&mut self, first: &[u8]) -> Option<(FileKind, Vec<Unit>)> {
        if first.len() == BLOCK {
            return None;
        }
        let size = first.len() as u64;
        match Seen::of(first, 0..size).ok()? {
            Seen::Object {
                kind,
                device_code: DeviceCode::None,
                bundle: false,
            } => {
                self.note_host(kind, first, 0..size);
                let unit = whole(size, kind, DeviceCode::None);
                Some((FileKind::Object, vec![unit]))
            }
            Seen::SharedObject => Some((FileKind::SharedObject, Vec::new())),
            _ => None,
        }
    }

    /// Returns the format of a file and its units. A file that cannot be parsed has none and is recorded.
    pub(crate) fn look(
        &mut self,
        path: &Path,
        data: &Blocks,
    ) -> Result<Option<(FileKind, Vec<Unit>)>, LinkError> {
        let size = data.size();
        let seen = match Seen::of(data, 0..size) {
            Ok(seen) => seen,
            Err(problem) => {
                self.note_unreadable(terminal(path).to_string(), problem);
                return Ok(None);
            }
        };
        let unit = |kind, device_code, bundle: bool| Unit {
            bundle: bundle.then_some(Place {
                outside: None,
                range: 0..size,
                entries: None,
            }),
            ..whole(size, kind, device_code)
        };
        Ok(Some(match seen {
            Seen::Archive => (FileKind::Archive, self.members(path, data)?),
            Seen::OffloadBinary => {
                let units = vec![unit(UnitKind::Other, DeviceCode::Waiting, false)];
                (FileKind::OffloadBinary, units)
            }
            Seen::Bundle => {
                let units = vec![unit(UnitKind::Other, DeviceCode::None, true)];
                (FileKind::Bundle, units)
            }
            Seen::Object {
                kind,
                device_code,
                bundle,
            } => {
                self.note_host(kind, data, 0..size);
                (FileKind::Object, vec![unit(kind, device_code, bundle)])
            }
            Seen::SharedObject => (FileKind::SharedObject, Vec::new()),
            Seen::Other => (FileKind::Other, Vec::new()),
        }))
    }

    /// Records the machine of the first object.
    fn note_host<'d, R: ReadAt<'d>>(&mut self, kind: UnitKind, data: R, range: Range<u64>) {
        if self.host.is_none() && kind == UnitKind::Elf {
            self.host = Elf::parse(data, range).ok().map(|elf| Machine {
                number: elf.machine,
                flags: elf.flags,
            });
        }
    }

    fn note_unreadable(&mut self, from: String, problem: Problem) {
        self.unreadable.push(Unreadable { from, problem });
    }

    /// Returns the members of an archive. Each is examined when its header is read: its section headers are often in
    /// the same block as the next member's header.
    fn members(&mut self, path: &Path, data: &Blocks) -> Result<Vec<Unit>, LinkError> {
        let mut units = Vec::new();
        let known = self.unreadable.len();
        for member in ArchiveMembers::new(data, 0..data.size()) {
            let member = match member {
                Ok(member) => member,
                Err(problem) => {
                    self.unreadable.truncate(known);
                    self.note_unreadable(terminal(path).to_string(), problem.into());
                    return Ok(Vec::new());
                }
            };
            let place = (path, &member);
            let Some(range) = member.content.clone() else {
                let outside = match open_member(path, member.name, member.size) {
                    Ok(outside) => outside,
                    Err(problem) if problem.is_of_archive() => {
                        // GNU's linker does not report this.
                        self.note_unreadable(member_name(place), problem.into());
                        continue;
                    }
                    Err(problem) => return Err(LinkError::input(member_name(place), problem)),
                };
                let blocks = Blocks::of(&outside.path, outside.file);
                let blocks =
                    blocks.map_err(|problem| LinkError::unopened(&outside.path, &problem))?;
                let range = 0..blocks.size();
                units.extend(self.unit(place, Some(outside.path), &blocks, range));
                continue;
            };
            units.extend(self.unit(place, None, &data.apart(), range));
        }
        Ok(units)
    }

    /// Adds a member of an archive: in the archive, or a file that a thin one names. Linkers ignore nested archives.
    fn unit<'d, R: ReadAt<'d>>(
        &mut self,
        place: (&Path, &ArchiveMember<'_>),
        outside: Option<PathBuf>,
        data: R,
        range: Range<u64>,
    ) -> Option<Unit> {
        let seen = Seen::of(data, range.clone()).unwrap_or_else(|problem| {
            self.note_unreadable(member_name(place), problem);
            Seen::Other
        });
        let (kind, device_code, bundle) = match seen {
            Seen::Object {
                kind,
                device_code,
                bundle,
            } => {
                self.note_host(kind, data, range.clone());
                (kind, device_code, bundle)
            }
            Seen::OffloadBinary => (UnitKind::Other, DeviceCode::Waiting, false),
            Seen::Bundle => (UnitKind::Other, DeviceCode::None, true),
            _ if outside.is_some() => return None,
            _ => (UnitKind::Other, DeviceCode::None, false),
        };
        let (_, member) = place;
        let has_images = bundle || device_code != DeviceCode::None;
        Some(Unit {
            member: Some(member.header_offset),
            name: has_images.then(|| terminal(member.name).to_string()),
            kind,
            device_code,
            bundle: bundle.then(|| Place {
                outside: outside.clone(),
                range: range.clone(),
                // The headers would be read again for each member. A damaged object is reported when its images are read.
                entries: match kind {
                    UnitKind::Elf => bundled::object_entries(data, range.clone()).ok(),
                    _ => None,
                },
            }),
            outside,
            data: range,
        })
    }
}

/// Tells whether the error means a pipe, a socket or a device, which cannot be read twice.
fn is_stream(problem: &io::Error) -> bool {
    problem.kind() == io::ErrorKind::NotSeekable
}

fn member_name((archive, member): (&Path, &ArchiveMember<'_>)) -> String {
    format!("{}({})", terminal(archive), terminal(member.name))
}
