//! Files that the host link reads, and their parts.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use offload_formats::container::archive::Archive;
use offload_formats::container::bundled::BundledEntry;
use offload_formats::container::elf::Machine;
use offload_formats::escape::terminal;

use crate::linker_wrapper::error::Problem;
use crate::linker_wrapper::inputs::archive_index::ArchiveIndex;
use crate::linker_wrapper::inputs::blocks::Blocks;
use crate::linker_wrapper::line::arguments::Load;

/// All files of the host link.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    pub files: Vec<InputFile>,
    /// Machine of the first object.
    pub host: Option<Machine>,
    /// The first library after `-l` that is in no folder of the command line.
    pub missing_library: Option<OsString>,
    /// Files and libraries that are not there, as the command line names them.
    pub missing: Vec<String>,
    pub unreadable: Vec<Unreadable>,
    /// Symbols that linker scripts need.
    pub roots: Vec<OsString>,
}

/// An object or archive that cannot be searched for device code. The host linker usually refuses it, too.
#[derive(Debug)]
pub(crate) struct Unreadable {
    /// Name of the file with the archive member.
    pub from: String,
    pub problem: Problem,
}

/// A file of the host link that was found and opened.
#[derive(Clone, Debug)]
pub(crate) struct InputFile {
    pub path: PathBuf,
    /// Index among the items of the command line.
    pub item: usize,
    /// True if the item is a linker script that names this file.
    pub in_script: bool,
    /// True if a linker script names this file in `AS_NEEDED`.
    pub as_needed: bool,
    pub load: Load,
    pub kind: FileKind,
    pub units: Vec<Unit>,
    /// File that the host linker reads instead: it contains the host parts of bundles.
    pub in_place: Option<PathBuf>,
    /// Blocks of the file, if it may contain images or was needed again.
    blocks: OnceCell<Rc<Blocks>>,
    /// Offsets and names of an archive's members, read on demand.
    names: OnceCell<Vec<(u64, String)>>,
    /// Symbol index of an archive, read on demand.
    index: OnceCell<ArchiveIndex>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Object,
    SharedObject,
    Archive,
    /// Offload binaries, which host linkers do not read.
    OffloadBinary,
    /// Bundles, of which a host linker reads one entry at most.
    Bundle,
    /// A text that names other inputs.
    LinkerScript,
    Other,
}

/// An object or an archive member, which the host link loads or skips as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    /// Offset of an archive member's header.
    pub member: Option<u64>,
    /// Escaped name of an archive member with device code; the names of others are read on demand.
    pub name: Option<String>,
    /// File that the member of a thin archive names, or that was made of a bundle's host part.
    pub outside: Option<PathBuf>,
    /// Range of the object in the file.
    pub data: Range<u64>,
    pub kind: UnitKind,
    pub device_code: DeviceCode,
    /// Place of its bundle: in the sections of the object, or around it, if the object is the bundle's host part.
    pub bundle: Option<Place>,
}

/// Place of a bundle: a range of a file.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The file, if it is not the input itself.
    pub outside: Option<PathBuf>,
    pub range: Range<u64>,
    /// Entries, if they are known from the object's section headers.
    pub entries: Option<Vec<BundledEntry>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnitKind {
    Elf,
    Coff,
    /// LLVM bitcode, for LTO of the host.
    Bitcode,
    /// Not an object, for example metadata. The host link ignores it.
    Other,
}

/// Images of a unit, according to its headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DeviceCode {
    #[default]
    None,
    /// Part of a section that is loaded into memory: linked already, or in a `static` of Rust.
    Allocated,
    /// To be linked.
    Waiting,
}

impl Inputs {
    /// Tells whether any input contains images to link.
    #[must_use]
    pub(crate) fn have_device_code(&self) -> bool {
        self.files.iter().any(InputFile::has_device_code)
    }

    /// Returns every unit with its file.
    pub(crate) fn units(&self) -> impl Iterator<Item = (&InputFile, &Unit)> {
        self.files
            .iter()
            .flat_map(|file| file.units.iter().map(move |unit| (file, unit)))
    }
}

impl InputFile {
    /// Returns a file for an item of the command line. Keeps its blocks if it may contain images; without blocks, it
    /// contains none.
    pub(crate) fn new(
        path: PathBuf,
        (item, load): (usize, Load),
        (kind, units): (FileKind, Vec<Unit>),
        blocks: Option<Blocks>,
    ) -> Self {
        let file = Self {
            path,
            item,
            in_script: false,
            as_needed: false,
            load,
            kind,
            units,
            in_place: None,
            blocks: OnceCell::new(),
            names: OnceCell::new(),
            index: OnceCell::new(),
        };
        if let Some(blocks) = blocks.filter(|_| file.has_device_code()) {
            file.keep(blocks);
        }
        file
    }

    /// Returns the same file for another item of the command line.
    pub(crate) fn again(&self, item: usize, load: Load) -> Self {
        Self {
            item,
            load,
            ..self.clone()
        }
    }

    fn keep(&self, blocks: Blocks) -> &Rc<Blocks> {
        blocks.close();
        self.blocks.get_or_init(|| Rc::new(blocks))
    }

    /// Returns the file of a unit with its blocks.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read any more.
    pub(crate) fn blocks(&self, unit: &Unit) -> io::Result<Rc<Blocks>> {
        self.blocks_of(unit.outside.as_deref())
    }

    /// Returns the blocks of `outside`, or of the input if there is none.
    ///
    /// # Errors
    ///
    /// Fails like [`Self::blocks`].
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

    /// Returns the symbol index of an archive. It is empty if it is missing or damaged, and for other files.
    ///
    /// # Errors
    ///
    /// Fails like [`Self::blocks`].
    pub(crate) fn index(&self) -> io::Result<&ArchiveIndex> {
        if let Some(known) = self.index.get() {
            return Ok(known);
        }
        let index = match self.kind {
            FileKind::Archive => {
                let blocks = self.blocks_of(None)?;
                ArchiveIndex::read(&blocks.apart(), blocks.size()).unwrap_or_default()
            }
            _ => ArchiveIndex::default(),
        };
        Ok(self.index.get_or_init(|| index))
    }

    /// Returns the escaped name for messages: the file with the archive member, `libk.a(k.o)`.
    pub(crate) fn unit_name(&self, unit: &Unit) -> String {
        let path = terminal(&*self.path);
        let Some(header) = unit.member else {
            return path.to_string();
        };
        if let Some(name) = &unit.name {
            return format!("{path}({name})");
        }
        let names = self.names.get_or_init(|| self.member_names());
        let found = names.binary_search_by_key(&header, |(offset, _)| *offset);
        match found.ok().and_then(|index| names.get(index)) {
            Some((_, name)) => format!("{path}({name})"),
            None => format!("{path}(member at offset {header:#x})"),
        }
    }

    /// Returns members' names by their offsets. Messages need them; failed reads give no names.
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

    /// Tells whether a host linker finds nothing in it: an offload binary, a bundle, or an archive of them.
    #[must_use]
    pub(crate) fn is_for_devices(&self) -> bool {
        let other = |unit: &Unit| unit.kind == UnitKind::Other;
        match self.kind {
            FileKind::OffloadBinary | FileKind::Bundle => true,
            FileKind::Archive => self.has_device_code() && self.units.iter().all(other),
            _ => false,
        }
    }

    /// Tells whether any unit may contain images.
    #[must_use]
    pub(crate) fn has_device_code(&self) -> bool {
        self.units.iter().any(Unit::has_device_code)
    }
}

impl Unit {
    /// Tells whether it may contain images.
    #[must_use]
    pub(crate) fn has_device_code(&self) -> bool {
        self.device_code != DeviceCode::None || self.bundle.is_some()
    }

    /// Returns the path of the file with the unit; `input` is the path of its input.
    #[must_use]
    pub(crate) fn path<'a>(&'a self, input: &'a Path) -> &'a Path {
        self.outside.as_deref().unwrap_or(input)
    }

    /// Tells whether it is a bundle file without a known host part.
    #[must_use]
    pub(crate) fn is_bundle_file(&self) -> bool {
        self.kind == UnitKind::Other && self.bundle.is_some()
    }
}
