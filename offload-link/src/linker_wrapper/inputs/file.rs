//! The files that the host link reads, and their parts.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use offload_formats::container::archive::Archive;
use offload_formats::container::elf::Machine;
use offload_formats::escape::terminal;

use crate::linker_wrapper::inputs::blocks::Blocks;
use crate::linker_wrapper::line::arguments::Load;

/// Every file of the host link.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    pub files: Vec<InputFile>,
    /// Machine of the first object.
    pub host: Option<Machine>,
    /// The first `-l` that no folder of the command line has.
    pub missing_library: Option<OsString>,
    pub unreadable: Vec<Unreadable>,
}

/// An object or archive in which device code cannot be looked for. As a rule the host linker refuses it, too.
#[derive(Debug)]
pub(crate) struct Unreadable {
    /// The file, with the archive member.
    pub from: String,
    pub problem: Problem,
}

pub(crate) type Problem = Box<dyn std::error::Error + Send + Sync>;

/// A file of the host link that was found and could be opened.
#[derive(Debug)]
pub(crate) struct InputFile {
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
pub(crate) enum FileKind {
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
pub(crate) struct Unit {
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
pub(crate) struct Place {
    /// The file, when it is not the input.
    pub outside: Option<PathBuf>,
    pub range: Range<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnitKind {
    Elf,
    Coff,
    /// LLVM bitcode: host LTO.
    Bitcode,
    /// No object: metadata and the like. The linker takes nothing from it.
    Other,
}

/// What the headers of a unit say about images in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DeviceCode {
    #[default]
    None,
    /// In a section that programs have in memory: linked already, or a `static` of Rust's.
    Allocated,
    /// Waiting to be linked.
    Waiting,
}

impl Inputs {
    /// Whether any input holds images that wait to be linked.
    #[must_use]
    pub(crate) fn have_device_code(&self) -> bool {
        self.files.iter().any(InputFile::has_device_code)
    }

    /// Every unit with its file.
    pub(crate) fn units(&self) -> impl Iterator<Item = (&InputFile, &Unit)> {
        self.files
            .iter()
            .flat_map(|file| file.units.iter().map(move |unit| (file, unit)))
    }
}

impl InputFile {
    /// A file for an item of the command line. What was read of it stays, if it may hold images.
    pub(crate) fn new(
        path: PathBuf,
        (item, load): (usize, Load),
        (kind, units): (FileKind, Vec<Unit>),
        blocks: Blocks,
    ) -> Self {
        let file = Self {
            path,
            item,
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
        file
    }

    fn keep(&self, blocks: Blocks) -> &Rc<Blocks> {
        blocks.close();
        self.blocks.get_or_init(|| Rc::new(blocks))
    }

    /// The file that has a unit, with what was read of it.
    ///
    /// # Errors
    ///
    /// When it cannot be read any more.
    pub(crate) fn blocks(&self, unit: &Unit) -> io::Result<Rc<Blocks>> {
        self.blocks_of(unit.outside.as_deref())
    }

    /// The same for a file outside of the input, or else the input.
    ///
    /// # Errors
    ///
    /// As [`Self::blocks`].
    pub(crate) fn blocks_of(&self, outside: Option<&Path>) -> io::Result<Rc<Blocks>> {
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
    pub(crate) fn unit_name(&self, unit: &Unit) -> String {
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
    pub(crate) fn is_for_devices(&self) -> bool {
        let other = |unit: &Unit| unit.kind == UnitKind::Other;
        self.kind == FileKind::Archive && self.has_device_code() && self.units.iter().all(other)
    }

    /// Whether a part of it may hold images.
    #[must_use]
    pub(crate) fn has_device_code(&self) -> bool {
        self.units.iter().any(Unit::has_device_code)
    }
}

impl Unit {
    /// Whether it may hold images.
    #[must_use]
    pub(crate) fn has_device_code(&self) -> bool {
        self.device_code != DeviceCode::None || self.bundle.is_some()
    }

    /// The file that holds the unit, given that of its input.
    #[must_use]
    pub(crate) fn path<'a>(&'a self, input: &'a Path) -> &'a Path {
        self.outside.as_deref().unwrap_or(input)
    }

    /// Whether it is a bundle of which nothing is there for a host linker, as far as is known.
    #[must_use]
    pub(crate) fn is_bundle_file(&self) -> bool {
        self.kind == UnitKind::Other && self.bundle.is_some()
    }
}
