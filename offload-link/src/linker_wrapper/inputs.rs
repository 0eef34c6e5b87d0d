//! The inputs of the host link: which of them hold device code.
//!
//! Every build script is linked through here, so for an input without device code only the ELF
//! header and the section headers are read, and of an archive the headers of its members: no
//! names, no symbols. (COFF marks nothing but by names.) What cannot be read is left to the host linker, which will
//! say so, with a warning, as some linkers do not; where other inputs have device code it is an error. An input that
//! the system does not let us read is always an error: the host linker may read it a moment later.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use object::ReadRef;
use offload_formats::container::archive::Archive;
use offload_formats::container::elf::{Elf, Machine};
use offload_formats::escape::terminal;

use super::Error;
use super::arguments::{Arguments, Item, Load};
use super::blocks::Blocks;
use super::seen::Seen;
use crate::files::{self, Opened, is_absent, open_member};

/// Every file of the host link.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    pub files: Vec<InputFile>,
    /// Machine of the first object.
    pub host: Option<Machine>,
    /// The first `-l` that no folder of the command line has.
    pub missing_library: Option<OsString>,
    pub unreadable: Vec<Unreadable>,
}

/// An object or archive in which device code cannot be looked for. As a rule the host linker refuses it, too.
#[derive(Debug)]
pub(super) struct Unreadable {
    /// The file, with the archive member.
    pub from: String,
    pub problem: Problem,
}

pub(super) type Problem = Box<dyn std::error::Error + Send + Sync>;

/// A file of the host link that was found and could be opened.
#[derive(Debug)]
pub(super) struct InputFile {
    pub path: PathBuf,
    /// Index in the items of the command line.
    pub item: usize,
    pub load: Load,
    pub kind: FileKind,
    pub units: Vec<Unit>,
    /// What the host linker reads in its place: it has the host's parts of bundles.
    pub in_place: Option<PathBuf>,
    /// What was read of it, when it may hold images or was asked for again.
    blocks: OnceCell<Rc<Blocks>>,
    /// Of an archive: where members start, and their names, once one was asked for.
    names: OnceCell<Vec<(u64, String)>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Object,
    SharedObject,
    Archive,
    /// Offload binaries, which no host linker reads.
    OffloadBinary,
    /// Bundles, of which a host linker reads one entry at most.
    Bundle,
    Other,
}

/// What the host link takes or leaves as a whole: an object, or a member of an archive.
#[derive(Debug)]
pub(super) struct Unit {
    /// Of an archive member: where its header is.
    pub member: Option<u64>,
    /// Of a thin archive's member: the file that it names. Of a bundle's host part: the file that was made of it.
    pub outside: Option<PathBuf>,
    /// The object in the file.
    pub data: Range<u64>,
    pub kind: UnitKind,
    pub device_code: DeviceCode,
    /// Where its bundle is: in the sections of the object, or a bundle of which the object is the host's part, if there
    /// is one.
    pub bundle: Option<Place>,
}

/// A part of a file.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The file, when it is not the input.
    pub outside: Option<PathBuf>,
    pub range: Range<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnitKind {
    Elf,
    Coff,
    /// LLVM bitcode: host LTO.
    Bitcode,
    /// No object: metadata and the like. The linker takes nothing from it.
    Other,
}

/// What the headers of a unit say about images in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DeviceCode {
    #[default]
    None,
    /// In a section that programs have in memory: linked already, or a `static` of Rust's.
    Allocated,
    /// Waiting to be linked.
    Waiting,
}

impl Inputs {
    /// Looks at every input of the command line.
    ///
    /// # Errors
    ///
    /// If the system does not let us read an input that the host linker may read.
    pub(super) fn scan(arguments: &Arguments) -> Result<Self, Error> {
        let mut inputs = Self::default();
        let mut search = None;
        for (index, item) in arguments.items.iter().enumerate() {
            let (path, file, load) = match item {
                Item::File { path, load, .. } => match Opened::open(path) {
                    Ok(file) => (path.clone(), file, *load),
                    // The host linker finds no such file, either.
                    Err(problem) if is_absent(&problem) => continue,
                    Err(problem) => return Err(Error::unopened(path, &problem)),
                },
                Item::Library {
                    name,
                    load,
                    only_static,
                    by_letter,
                    ..
                } => {
                    let search =
                        search.get_or_insert_with(|| super::libraries::Search::new(arguments));
                    match search.find(name, *only_static)? {
                        Some((path, file)) => (path, file, *load),
                        None => {
                            if *by_letter {
                                inputs.missing_library.get_or_insert_with(|| name.clone());
                            }
                            continue;
                        }
                    }
                }
                _ => continue,
            };
            let blocks = match Blocks::of(&path, file) {
                Ok(blocks) => blocks,
                Err(problem) if problem.kind() == io::ErrorKind::IsADirectory => continue,
                Err(problem) if is_stream(&problem) => {
                    if !arguments.compiles {
                        inputs.note_unreadable(terminal(&*path).to_string(), problem.into());
                    }
                    continue;
                }
                Err(problem) => return Err(Error::unopened(&path, &problem)),
            };
            let Some((kind, units)) = inputs.look(&path, &blocks)? else {
                continue;
            };
            let file = InputFile {
                path,
                item: index,
                load,
                kind,
                units,
                in_place: None,
                blocks: OnceCell::new(),
                names: OnceCell::new(),
            };
            if file.has_device_code() {
                file.keep(blocks);
            }
            inputs.files.push(file);
        }
        files::check()?;
        Ok(inputs)
    }

    /// Whether any input holds images that wait to be linked.
    #[must_use]
    pub(super) fn have_device_code(&self) -> bool {
        self.files.iter().any(InputFile::has_device_code)
    }

    /// Every unit with its file.
    pub(super) fn units(&self) -> impl Iterator<Item = (&InputFile, &Unit)> {
        self.files
            .iter()
            .flat_map(|file| file.units.iter().map(move |unit| (file, unit)))
    }

    /// What a file is, and its units; nothing when it cannot be read, which is noted.
    pub(super) fn look(
        &mut self,
        path: &Path,
        data: &Blocks,
    ) -> Result<Option<(FileKind, Vec<Unit>)>, Error> {
        let size = data.size();
        let seen = match Seen::of(data, 0..size) {
            Ok(seen) => seen,
            Err(problem) => {
                self.note_unreadable(terminal(path).to_string(), problem);
                return Ok(None);
            }
        };
        let unit = |kind, device_code, bundle: bool| Unit {
            member: None,
            outside: None,
            data: 0..size,
            kind,
            device_code,
            bundle: bundle.then_some(Place {
                outside: None,
                range: 0..size,
            }),
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

    /// Remembers the machine of the first object.
    fn note_host<'d, R: ReadRef<'d>>(&mut self, kind: UnitKind, data: R, range: Range<u64>) {
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

    fn members(&mut self, path: &Path, data: &Blocks) -> Result<Vec<Unit>, Error> {
        let mut units = Vec::new();
        let archive = match Archive::parse(data, 0..data.size()) {
            Ok(archive) => archive,
            Err(problem) => {
                self.note_unreadable(terminal(path).to_string(), problem.into());
                return Ok(units);
            }
        };
        for member in archive.members {
            let header = Some(member.header_offset);
            let name = member_name(path, member.name);
            let Some(range) = member.content else {
                let outside = match open_member(path, member.name, member.size) {
                    Ok(outside) => outside,
                    Err(problem) if problem.is_of_archive() => {
                        // GNU's linker says nothing about that.
                        self.note_unreadable(name, problem.into());
                        continue;
                    }
                    Err(problem) => {
                        return Err(Error::Input {
                            from: name,
                            source: problem.into(),
                        });
                    }
                };
                let blocks = Blocks::of(&outside.path, outside.file);
                let blocks = blocks.map_err(|problem| Error::unopened(&outside.path, &problem))?;
                let range = 0..blocks.size();
                units.extend(self.unit(name, header, Some(outside.path), &blocks, range));
                continue;
            };
            units.extend(self.unit(name, header, None, &data.apart(), range));
        }
        Ok(units)
    }

    /// A member of an archive: in the archive, or a file outside of it. Archives in archives are nothing to linkers.
    fn unit<'d, R: ReadRef<'d>>(
        &mut self,
        name: String,
        member: Option<u64>,
        outside: Option<PathBuf>,
        data: R,
        range: Range<u64>,
    ) -> Option<Unit> {
        let seen = Seen::of(data, range.clone()).unwrap_or_else(|problem| {
            self.note_unreadable(name, problem);
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
        Some(Unit {
            member,
            kind,
            device_code,
            bundle: bundle.then(|| Place {
                outside: outside.clone(),
                range: range.clone(),
            }),
            outside,
            data: range,
        })
    }
}

/// Tells whether the error is of a pipe, a socket or a device, of which no part can be read again.
fn is_stream(problem: &io::Error) -> bool {
    problem.kind() == io::ErrorKind::NotSeekable
}

fn member_name(archive: &Path, name: &[u8]) -> String {
    format!("{}({})", terminal(archive), terminal(name))
}

impl InputFile {
    fn keep(&self, blocks: Blocks) -> &Rc<Blocks> {
        blocks.close();
        self.blocks.get_or_init(|| Rc::new(blocks))
    }

    /// The file that has a unit, with what was read of it.
    ///
    /// # Errors
    ///
    /// When it cannot be read any more.
    pub(super) fn blocks(&self, unit: &Unit) -> io::Result<Rc<Blocks>> {
        self.blocks_of(unit.outside.as_deref())
    }

    /// The same for a file outside of the input, or else the input.
    ///
    /// # Errors
    ///
    /// As [`Self::blocks`].
    pub(super) fn blocks_of(&self, outside: Option<&Path>) -> io::Result<Rc<Blocks>> {
        if let Some(outside) = outside {
            let blocks = Blocks::open(outside)?;
            blocks.close();
            return Ok(Rc::new(blocks));
        }
        if let Some(known) = self.blocks.get() {
            return Ok(Rc::clone(known));
        }
        Ok(Rc::clone(self.keep(Blocks::open(&self.path)?)))
    }

    /// The file, with the archive member: `libk.a(k.o)`. For messages, so it is escaped.
    pub(super) fn unit_name(&self, unit: &Unit) -> String {
        let path = terminal(&*self.path);
        let Some(header) = unit.member else {
            return path.to_string();
        };
        let names = self.names.get_or_init(|| self.member_names());
        let found = names.binary_search_by_key(&header, |(offset, _)| *offset);
        match found.ok().and_then(|index| names.get(index)) {
            Some((_, name)) => format!("{path}({name})"),
            None => format!("{path}(member at offset {header:#x})"),
        }
    }

    /// By their offsets. For messages, which do without if the file cannot be read.
    fn member_names(&self) -> Vec<(u64, String)> {
        let blocks = match self.blocks.get() {
            Some(known) => Ok(Rc::clone(known)),
            None => Blocks::open(&self.path).map(Rc::new),
        };
        let Ok(blocks) = blocks else {
            return Vec::new();
        };
        let data = blocks.apart();
        let archive = Archive::parse(&data, 0..blocks.size());
        let members = archive.map(|archive| archive.members).unwrap_or_default();
        let names = members
            .iter()
            .map(|member| (member.header_offset, terminal(member.name).to_string()));
        let mut names: Vec<(u64, String)> = names.collect();
        names.sort_unstable();
        names
    }

    /// Whether a host linker finds nothing in it: an archive of bundles and the like.
    #[must_use]
    pub(super) fn is_for_devices(&self) -> bool {
        let other = |unit: &Unit| unit.kind == UnitKind::Other;
        self.kind == FileKind::Archive && self.has_device_code() && self.units.iter().all(other)
    }

    /// Whether a part of it may hold images.
    #[must_use]
    pub(super) fn has_device_code(&self) -> bool {
        self.units.iter().any(Unit::has_device_code)
    }
}

impl Unit {
    /// Whether it may hold images.
    #[must_use]
    pub(super) fn has_device_code(&self) -> bool {
        self.device_code != DeviceCode::None || self.bundle.is_some()
    }

    /// The file that holds the unit, given that of its input.
    #[must_use]
    pub(super) fn path<'a>(&'a self, input: &'a Path) -> &'a Path {
        self.outside.as_deref().unwrap_or(input)
    }

    /// Whether it is a bundle of which nothing is there for a host linker, as far as is known.
    #[must_use]
    pub(super) fn is_bundle_file(&self) -> bool {
        self.kind == UnitKind::Other && self.bundle.is_some()
    }
}
