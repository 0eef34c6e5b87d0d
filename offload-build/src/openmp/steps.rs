//! The steps of an OpenMP module that are done in this process: what registers it, and its library.

use crate::container::archive::{self, NewMember};
use crate::container::elf;
use crate::container::elf::Machine;
use crate::error::{self, Error};
use crate::host_file::{self, Content, HostFile, Place};
use crate::link;
use crate::planned_image::PlannedImage;
use crate::registration::Global;
use crate::registration::deferred::Deferred;
use crate::registration::openmp::{Blob, BlobSection, EntryTable, OpenMp};
use crate::target::OffloadKind;
use crate::toolchain::task::{self, Done};
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags};
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::PathBuf;

/// Sections of offload entries: LLVM 20 and before, 21 and after (spec linker-wrapper §5.1).
const ENTRY_SECTIONS: [&str; 2] = ["omp_offloading_entries", "llvm_offload_entries"];
/// The symbol of an offload entry is this and the name of the kernel or global.
const ENTRY_SYMBOL: &str = ".offloading.entry.";

/// Writes the registration object of a module, and the file that Rust includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Registration {
    pub(crate) module: String,
    pub(crate) images: Vec<PlannedImage>,
    pub(super) hosts: Vec<PathBuf>,
    pub(super) deferred: bool,
    pub(super) host: Machine,
    pub(super) unique: String,
    pub(super) version: String,
    pub(crate) output: PathBuf,
    pub(super) host_file: PathBuf,
}

impl Registration {
    pub(crate) fn outputs(&self) -> Vec<PathBuf> {
        vec![self.output.clone(), self.host_file.clone()]
    }

    pub(crate) fn inputs(&self) -> Vec<PathBuf> {
        let images = self.images.iter().map(|image| image.path().to_owned());
        images.chain(self.hosts.iter().cloned()).collect()
    }

    pub(crate) fn execute(&self) -> Result<Done, Error> {
        let entries = Entries::of(&self.hosts)?;
        let anchor = format!("{}_anchor", self.unique);
        let (object, content) = if self.deferred {
            self.deferred_object(&anchor)?
        } else {
            self.complete_object(&anchor, &entries)?
        };
        task::write(&self.output, &object).map_err(error::io(&self.output))?;
        let kernels = entries.names.into_iter().collect();
        let module = self.module.clone();
        let file = HostFile {
            module,
            kernels,
            described: Vec::new(),
            content,
        }
        .to_string();
        task::write(&self.host_file, file.as_bytes()).map_err(error::io(&self.host_file))?;
        Ok(Done::default())
    }

    fn complete_object(
        &self,
        anchor: &str,
        entries: &Entries,
    ) -> Result<(Vec<u8>, Content), Error> {
        let mut packed = Vec::new();
        for image in &self.images {
            let bytes = image.read()?;
            link::check(
                &bytes,
                &image.target.triple,
                &image.target.id,
                &entries.names,
            )
            .map_err(|error| Error::because(image, error))?;
            packed.push(image.pack(&bytes, OffloadKind::OPENMP)?);
        }
        let blobs: Vec<Blob<'_>> = packed
            .iter()
            .map(|(bytes, image)| Blob {
                bytes,
                image: image.clone(),
            })
            .collect();
        let container = format!("{}_container", self.unique);
        let symbols: Vec<String> = (0..blobs.len())
            .map(|index| format!("{}_image_{index}", self.unique))
            .collect();
        let mut globals = vec![Global::Anchor { name: anchor }];
        let mut shown = Vec::new();
        let mut base = 0;
        for ((planned, blob), symbol) in self.images.iter().zip(&blobs).zip(&symbols) {
            let size = blob.image.end - blob.image.start;
            globals.push(Global::Bytes {
                name: symbol,
                offset: base + blob.image.start,
                size,
            });
            shown.push(self.shown(planned, Place::Symbol(symbol.clone(), size)));
            // An offload binary's size is a multiple of 8, so the next one follows at once.
            base += blob.bytes.len() as u64;
        }
        globals.push(Global::Bytes {
            name: &container,
            offset: 0,
            size: base,
        });
        let registration = OpenMp {
            images: &blobs,
            table: EntryTable::SectionRange {
                section: &entries.section,
                size: entries.size,
                flags: entries.flags,
                alignment: entries.alignment,
            },
            section: BlobSection::Finished,
            globals: &globals,
        };
        let object = registration.to_object(self.host).map_err(Error::new)?;
        let anchor = anchor.to_owned();
        Ok((
            object,
            Content::Linked {
                anchor,
                container: (container, base),
                images: shown,
            },
        ))
    }

    fn deferred_object(&self, anchor: &str) -> Result<(Vec<u8>, Content), Error> {
        let mut binaries = Vec::new();
        let mut shown: Vec<host_file::Image> = Vec::new();
        for image in &self.images {
            binaries.extend(image.pack(&image.read()?, OffloadKind::OPENMP)?.0);
            if shown
                .iter()
                .all(|other| other.target != image.target.written)
            {
                shown.push(self.shown(image, Place::Nowhere));
            }
        }
        let deferred = Deferred {
            binaries: &binaries,
            anchor,
        };
        let object = deferred.to_object(self.host).map_err(Error::new)?;
        let anchor = anchor.to_owned();
        Ok((
            object,
            Content::Deferred {
                anchor,
                images: shown,
            },
        ))
    }

    fn shown(&self, image: &PlannedImage, place: Place) -> host_file::Image {
        host_file::Image {
            target: image.target.written.clone(),
            kind: image.kind().name(),
            compiler: self.version.clone(),
            place,
        }
    }
}

/// The offload entries of host objects, all in one section.
#[derive(Debug, PartialEq, Eq)]
struct Entries {
    section: String,
    /// Bytes, in all objects together.
    size: u64,
    flags: u64,
    alignment: u64,
    names: BTreeSet<String>,
}

impl Entries {
    fn of(objects: &[PathBuf]) -> Result<Self, Error> {
        let mut found: Option<Self> = None;
        for path in objects {
            let bytes = fs::read(path).map_err(error::io(path))?;
            let wrong = |problem: &dyn fmt::Display| {
                Error::new(format_args!("{}: {problem}", path.display()))
            };
            let file = object::File::parse(bytes.as_slice()).map_err(|error| wrong(&error))?;
            let sections = ENTRY_SECTIONS
                .iter()
                .filter_map(|name| file.section_by_name(name));
            for section in sections.filter(|section| section.size() > 0) {
                let name = section.name().map_err(|error| wrong(&error))?;
                let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
                    return Err(wrong(&"is not an ELF object"));
                };
                let entries = found.get_or_insert_with(|| Self {
                    section: name.to_owned(),
                    size: 0,
                    flags: sh_flags.0,
                    alignment: section.align(),
                    names: BTreeSet::new(),
                });
                if entries.section != name || entries.alignment != section.align() {
                    return Err(wrong(&format_args!(
                        "`{name}` is of another LLVM release than `{}`",
                        entries.section
                    )));
                }
                entries.size += section.size();
            }
            let names = file.symbols().filter_map(|symbol| {
                let name = symbol.name().ok()?.strip_prefix(ENTRY_SYMBOL)?;
                // `requires` makes an entry without a name, which no image defines.
                (!symbol.is_undefined() && !name.is_empty()).then(|| name.to_owned())
            });
            let names: Vec<String> = names.collect();
            if let Some(entries) = &mut found {
                entries.names.extend(names);
            }
        }
        found.ok_or_else(|| {
            Error::new("no target region and no `declare target` variable in any source\nhint: write `#pragma omp target` in one of `sources`")
        })
    }
}

/// Puts the object of a module into its static library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Archive {
    /// As `-l` wants it.
    pub(crate) name: String,
    pub(crate) library: PathBuf,
    pub(crate) object: PathBuf,
    /// Renames the section of offload entries: to its name, an underscore, and this.
    pub(super) entries: Option<String>,
}

impl Archive {
    pub(crate) fn execute(&self) -> Result<Done, Error> {
        let mut object = fs::read(&self.object).map_err(error::io(&self.object))?;
        let wrong = |error| Error::because(self.object.display(), error);
        if let Some(suffix) = &self.entries {
            let section = entry_section(&object).map_err(wrong)?;
            object = elf::rename_section(&object, section, &format!("{section}_{suffix}"))
                .map_err(|error| Error::because(self.object.display(), error))?;
        }
        let symbols: Vec<String> = {
            let file = object::File::parse(object.as_slice()).map_err(wrong)?;
            let defined = file
                .symbols()
                .filter(|symbol| symbol.is_global() && !symbol.is_undefined());
            defined
                .map(|symbol| symbol.name().map(str::to_owned))
                .collect::<Result<_, _>>()
                .map_err(wrong)?
        };
        let symbols: Vec<&str> = symbols.iter().map(String::as_str).collect();
        let name = format!("{}.o", self.name);
        let member = NewMember {
            name: &name,
            bytes: &object,
            symbols: &symbols,
        };
        task::write(&self.library, &archive::write(&[member])).map_err(error::io(&self.library))?;
        Ok(Done::default())
    }
}

/// Which of the entry sections an object has.
fn entry_section(object: &[u8]) -> Result<&'static str, object::Error> {
    let file = object::File::parse(object)?;
    let has = |name: &&str| file.section_by_name(name).is_some();
    // The objects joined in it had one, or there would have been no registration.
    Ok(ENTRY_SECTIONS.into_iter().find(has).unwrap_or_default())
}
