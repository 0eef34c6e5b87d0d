//! Writes the object that registers the images of a module, and the file that Rust includes.

use crate::generate::{Content, Described, HostFile, Place, Stub};
use crate::messages::Failure;
use crate::steps::digests::Digests;
use crate::steps::host_objects::entries::{Entries, EntryPlace, Named};
use crate::steps::host_objects::own::Own;
use crate::steps::images::lacking::warnings_of_lacking_kernels;
use crate::steps::images::planned::PlannedImage;
use crate::steps::images::{Images, Packed, consecutive, joined, no_kernel};
use crate::steps::placement::placement;
use crate::steps::step::{Done, Made, Step};
use offload_build_core::declare::language::Language;
use offload_build_core::declare::skipped::Skipped;
use offload_build_core::error;
use offload_build_core::error::Error;
use offload_build_core::files;
use offload_build_core::process::command::Quoted;
use offload_build_core::readable::Readable;
use offload_formats::container::definitions;
use offload_formats::format::offload_entry::EntryLayout;
use offload_formats::format::pieces::{self, Embedded, Piece};
use offload_formats::registration::deferred::Deferred;
use offload_formats::registration::fat_binary::{FatBinary, HostTable, Runtime};
use offload_formats::registration::hip_symbols::HipSymbols;
use offload_formats::registration::openmp::{Blob, BlobSection, EntryTable, OpenMp};
use offload_formats::registration::{Global, HostFormat};
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

/// Writes the registration object of a module, and the file that Rust includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Registration {
    pub(crate) module: String,
    pub(crate) images: Images,
    /// Targets without an image.
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) hosts: Vec<PathBuf>,
    pub(crate) host: HostFormat,
    /// Largest total of images in usual sections in bytes.
    pub(crate) largest_usual: u64,
    /// Unique in the whole program: prefix of symbols.
    pub(crate) unique: String,
    /// Its own names; nothing if the last link registers the images.
    pub(crate) own: Option<Own>,
    pub(crate) output: PathBuf,
    pub(crate) host_file: PathBuf,
}

/// Files to be written.
struct Written {
    object: Vec<Piece>,
    /// Files that the object copies.
    inputs: Vec<PathBuf>,
    described: Vec<Described>,
    content: Content,
    messages: String,
}

impl Registration {
    fn run(&self) -> Result<Done, Error> {
        let language = self.images.language;
        let entries = Entries::of(&self.hosts)?;
        let anchor = format!("{}_anchor", self.unique);
        let written = match (&self.own, language, &entries) {
            (None, ..) => self.deferred(anchor, entries.as_ref())?,
            (Some(_), _, None) => return Err(no_kernel(language)),
            (Some(_), Language::OpenMp, Some(entries)) => self.openmp(anchor, entries)?,
            (Some(own), _, Some(entries)) => self.fat_binary(anchor, entries, own)?,
        };
        files::write_pieces(&self.output, &written.object, &written.inputs)
            .map_err(error::io(&self.output))?;
        let file = HostFile {
            module: self.module.clone(),
            kernels: entries.iter().flat_map(Entries::names).collect(),
            described: written.described,
            skipped: self.skipped.clone(),
            content: written.content,
            sources: Vec::new(),
        }
        .to_string();
        files::write(&self.host_file, file.as_bytes()).map_err(error::io(&self.host_file))?;
        Ok(Done {
            messages: written.messages,
            ..Done::default()
        })
    }

    /// Writes each image in an offload binary of its own, which OpenMP's runtime does not see: it gets the images.
    fn openmp(&self, anchor: String, entries: &Entries) -> Result<Written, Error> {
        let images = self.images.open()?;
        self.images.check(&images, &entries.names())?;
        let warning = self.images.warning_of_ignored(&images);
        let packed = self.images.binaries(&images)?;
        let inputs = self.images.paths().collect();
        let size = packed.iter().map(|(binary, _)| pieces::size(binary)).sum();
        let blobs: Vec<Blob<'_>> = packed
            .iter()
            .map(|(binary, image)| Blob {
                bytes: Embedded::Pieces(binary),
                image: image.clone(),
            })
            .collect();
        let symbols = ImageSymbols::new(self, &anchor, size, consecutive(&packed));
        let guards = entries.guards();
        let mut globals = symbols.globals();
        globals.extend(guards.iter().map(|name| Global::Bytes {
            name,
            offset: 0,
            size: 0,
        }));
        let registration = OpenMp {
            images: &blobs,
            table: entries.table(),
            section: BlobSection::Finished,
            globals: &globals,
        };
        let placement = placement(self.host.elf(), size, self.largest_usual)?;
        let object = registration.to_host_pieces(self.host, placement);
        Ok(Written {
            object: object.map_err(Error::new)?,
            inputs,
            content: symbols.content(self),
            described: Vec::new(),
            messages: warning.unwrap_or_default(),
        })
    }

    /// Writes all images in the one file that HIP's or CUDA's runtime loads.
    fn fat_binary(&self, anchor: String, entries: &Entries, own: &Own) -> Result<Written, Error> {
        let images = self.images.open()?;
        let mut described = self.images.kernels(&images)?;
        if described.is_empty() {
            return Err(no_kernel(self.images.language));
        }
        // The runtimes look for a kernel when the program launches it, so one that a target lacks does no harm before.
        let mut names = entries.names();
        for kernel in &described {
            names.remove(&kernel.name);
        }
        let is_kernel = |name: &String| entries.named.get(name).is_some_and(|it| it.is_kernel);
        let (absent, others): (Vec<String>, Vec<String>) = names.into_iter().partition(is_kernel);
        self.images.check(&images, &others.into_iter().collect())?;
        let stub = |kernel: &mut Described| {
            let named = entries.named.get(&kernel.name);
            kernel.stub = named.map(|named| entries.stub(named, Some(own)));
        };
        described.iter_mut().for_each(stub);
        let lacking = [(self.images.planned.as_slice(), described.as_slice())];
        let mut messages = warnings_of_lacking_kernels(lacking, &absent, &self.skipped);
        let packed = self.images.pack(&images)?;
        let warning = packed.warning.iter();
        messages.extend(warning.map(|text| format!("warning: {text}\n")));
        let (container, inputs) = self.container(&packed)?;
        let ranges = packed.ranges;
        let symbols = ImageSymbols::new(self, &anchor, pieces::size(&container), ranges);
        let entry_symbols = entries.symbols(own);
        let tables = entries.tables(&entry_symbols);
        let registration = FatBinary {
            runtime: match self.images.language {
                Language::Cuda => Runtime::Cuda,
                _ => Runtime::Hip,
            },
            bytes: Embedded::Pieces(&container),
            tables: &tables,
            symbols: HipSymbols::default(),
            globals: &symbols.globals(),
        };
        let size = pieces::size(&container);
        let placement = placement(self.host.elf(), size, self.largest_usual)?;
        let object = registration.to_host_pieces(self.host, placement);
        Ok(Written {
            object: object.map_err(Error::new)?,
            inputs,
            content: symbols.content(self),
            described,
            messages,
        })
    }

    /// Returns the pieces of the container and the files that they copy. A compressed one gets a file of its own first.
    fn container(&self, packed: &Packed) -> Result<(Vec<Piece>, Vec<PathBuf>), Error> {
        let images: Vec<PathBuf> = self.images.paths().collect();
        if packed.compression.is_none() {
            return Ok((packed.pieces.clone(), images));
        }
        let file = self.output.with_extension("images");
        let range = 0..packed.write(&file, &images)?;
        Ok((vec![Piece::Copy { input: 0, range }], vec![file]))
    }

    /// Writes what the last link makes the images from. There may be no kernel: those of other packages may call its functions.
    fn deferred(&self, anchor: String, entries: Option<&Entries>) -> Result<Written, Error> {
        let language = self.images.language;
        let images = self.images.open()?;
        if entries.is_none() && !defines_any(&images)? {
            return Err(no_kernel(language));
        }
        let binaries = joined(&self.images.binaries(&images)?);
        let inputs = self.images.paths().collect();
        let mut seen: Vec<&str> = Vec::new();
        let mut shown = Vec::new();
        for image in &self.images.planned {
            let target = image.target.written.as_str();
            if !seen.contains(&target) {
                seen.push(target);
                shown.push(self.images.shown(image, Place::Nowhere));
            }
        }
        let registration = Deferred {
            binaries: Embedded::Pieces(&binaries),
            anchor: &anchor,
        };
        // The images are not linked yet, so their descriptions are unknown.
        let entries = entries.filter(|_| language != Language::OpenMp);
        let described = entries.into_iter().flat_map(|entries| {
            let kernels = entries.named.iter().filter(|(_, named)| named.is_kernel);
            kernels.map(|(name, named)| Described {
                name: name.to_owned(),
                arguments: Vec::new(),
                images: Vec::new(),
                stub: Some(entries.stub(named, None)),
            })
        });
        let object = registration.to_host_pieces(self.host);
        Ok(Written {
            object: object.map_err(Error::new)?,
            inputs,
            described: described.collect(),
            content: Content::Deferred {
                anchor,
                images: shown,
            },
            messages: String::new(),
        })
    }
}

impl Step for Registration {
    fn title(&self) -> String {
        format!("registration of `{}`", self.module)
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let output = Quoted(self.output.as_os_str());
        writeln!(f, "# {}, in this process: {output}", self.title())?;
        let mut images = self.images.planned.iter();
        images.try_for_each(|image| writeln!(f, "#   {image}"))
    }

    fn execute(&self, _digests: &Digests) -> Result<Done, Failure> {
        Ok(self.run()?)
    }

    fn made(&self) -> Made {
        Made::in_process(
            self.title(),
            vec![self.output.clone(), self.host_file.clone()],
            self.images
                .paths()
                .chain(self.hosts.iter().cloned())
                .collect(),
        )
    }
}

impl Entries {
    /// Returns the table that the registration finds, if they are in one section.
    fn table(&self) -> EntryTable<'_> {
        let section = self.section();
        match self.place {
            EntryPlace::Section {
                size,
                flags,
                alignment,
            } => EntryTable::SectionRange {
                section,
                size,
                flags,
                alignment,
            },
            EntryPlace::Symbols => EntryTable::StartStop {
                section,
                entries: &[],
            },
        }
    }

    /// Returns the symbols of entries that have a place of their own.
    fn symbols(&self, own: &Own) -> Vec<String> {
        match self.place {
            EntryPlace::Section { .. } => Vec::new(),
            EntryPlace::Symbols => {
                let named = self.named.values();
                named.map(|named| own.name(&named.symbol)).collect()
            }
        }
    }

    /// Returns the tables that the registration finds; `symbols` name the entries, unless they are in one section.
    fn tables<'a>(&'a self, symbols: &'a [String]) -> Vec<HostTable<'a>> {
        let layout = self.layout;
        let table = |table| HostTable { layout, table };
        match self.place {
            EntryPlace::Section { .. } => vec![table(self.table())],
            EntryPlace::Symbols => {
                let size = layout.stride();
                let at = |symbol: &'a String| table(EntryTable::Symbol { symbol, size });
                symbols.iter().map(at).collect()
            }
        }
    }

    /// Returns a symbol for each variable that the program has once: linkers refuse a second definition. The images of two modules
    /// would have a variable each, and only one of them would be the host's.
    fn guards(&self) -> Vec<String> {
        let shared = self.named.iter().filter(|(_, named)| named.is_shared);
        shared
            .map(|(name, _)| {
                format!("{name}.in_two_complete_modules.set_register_to_deferred_in_both")
            })
            .collect()
    }

    /// Returns where the program reads what stands for a kernel on the host.
    fn stub(&self, named: &Named, own: Option<&Own>) -> Stub {
        let symbol = own.map(|own| own.name(&named.symbol));
        Stub::Entry {
            symbol: symbol.unwrap_or_else(|| named.seen_as.clone()),
            words: (self.layout.stride() / WORD) as usize,
            address: match self.layout {
                EntryLayout::V19 => 0,
                _ => 2,
            },
        }
    }
}

/// Tells whether any of them defines a function or variable for others. Names with two underscores are the compiler's own.
fn defines_any(images: &[Readable]) -> Result<bool, Error> {
    for image in images {
        let found = image.parse(definitions)?;
        if found.iter().any(|name| !name.starts_with(b"__")) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Bytes of a pointer on every host that is registered for.
const WORD: u64 = 8;

/// The symbols by which a program finds its own images.
struct ImageSymbols {
    anchor: String,
    container: String,
    size: u64,
    /// Symbol of each image, and its range in the container.
    images: Vec<(String, Range<u64>)>,
}

impl ImageSymbols {
    fn new(of: &Registration, anchor: &str, size: u64, ranges: Vec<Range<u64>>) -> Self {
        let symbol = |(index, range)| (format!("{}_image_{index}", of.unique), range);
        Self {
            anchor: anchor.to_owned(),
            container: format!("{}_container", of.unique),
            size,
            images: ranges.into_iter().enumerate().map(symbol).collect(),
        }
    }

    fn globals(&self) -> Vec<Global<'_>> {
        let anchor = Global::Anchor { name: &self.anchor };
        let bytes = |name, range: Range<u64>| Global::Bytes {
            name,
            offset: range.start,
            size: range.end - range.start,
        };
        let images = self.images.iter();
        let images = images.map(|(symbol, range)| bytes(symbol, range.clone()));
        let container = bytes(&self.container, 0..self.size);
        [anchor]
            .into_iter()
            .chain(images)
            .chain([container])
            .collect()
    }

    fn content(self, of: &Registration) -> Content {
        let shown = |(index, image): (usize, &PlannedImage)| {
            let place = self.images.get(index);
            let place = place.map_or(Place::Nowhere, |(symbol, range)| {
                Place::Symbol(symbol.clone(), range.end - range.start)
            });
            of.images.shown(image, place)
        };
        let images = of.images.planned.iter().enumerate();
        Content::Linked {
            images: images.map(shown).collect(),
            anchor: Some(self.anchor),
            container: (self.container, self.size),
            is_container: true,
        }
    }
}
