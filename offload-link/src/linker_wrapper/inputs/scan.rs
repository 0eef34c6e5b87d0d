//! Finds the inputs of the host link that contain device code.
//!
//! Every build script is linked through this file. So an input without device code costs only its ELF header and
//! section headers, and an archive also the headers of its members; no names and no symbols are read. (COFF marks
//! device code by names only.) An input that cannot be parsed is left to the host linker, with a warning, because
//! some linkers give none; if other inputs have device code, it is an error. An input that the system refuses to read
//! is always an error: the host linker may read it a moment later.

use crate::linker_wrapper::inputs::file::{
    DeviceCode, FileKind, InputFile, Inputs, Place, Problem, Unit, UnitKind, Unreadable,
};
use offload_formats::container::archive::{ArchiveMember, ArchiveMembers};
use offload_formats::container::bundled;
use offload_formats::container::elf::{Elf, Machine};
use offload_formats::escape::terminal;
use offload_formats::format::bytes::ReadAt;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::files::{self, Opened, open_member};
use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::inputs::blocks::Blocks;
use crate::linker_wrapper::inputs::seen::Seen;
use crate::linker_wrapper::line::arguments::{Arguments, Item};
use crate::platform::is_absent;

impl Inputs {
    /// Reads every input of the command line.
    ///
    /// # Errors
    ///
    /// Fails if the system refuses to read an input that the host linker may read.
    pub(crate) fn scan(arguments: &Arguments) -> Result<Self, LinkError> {
        let mut inputs = Self::default();
        let mut search = None;
        // Compilers name libraries such as libgcc twice.
        let mut archives: HashMap<PathBuf, usize> = HashMap::new();
        for (index, item) in arguments.items.iter().enumerate() {
            let (path, file, load) = match item {
                Item::File { path, load, .. } => match Opened::open(path) {
                    Ok(file) => (path.clone(), file, *load),
                    // The host linker does not find such a file, either.
                    Err(problem) if is_absent(&problem) => continue,
                    Err(problem) => return Err(LinkError::unopened(path, &problem)),
                },
                Item::Library {
                    name,
                    load,
                    only_static,
                    by_letter,
                    ..
                } => {
                    let search = search.get_or_insert_with(|| {
                        crate::linker_wrapper::inputs::libraries::Search::new(arguments)
                    });
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
            if let Some(known) = archives
                .get(&path)
                .and_then(|known| inputs.files.get(*known))
            {
                let again = known.again(index, load);
                inputs.files.push(again);
                continue;
            }
            let blocks = match Blocks::of(&path, file) {
                Ok(blocks) => blocks,
                Err(problem) if problem.kind() == io::ErrorKind::IsADirectory => continue,
                Err(problem) if is_stream(&problem) => {
                    if !arguments.compiles {
                        inputs.note_unreadable(terminal(&*path).to_string(), problem.into());
                    }
                    continue;
                }
                Err(problem) => return Err(LinkError::unopened(&path, &problem)),
            };
            let Some((kind, units)) = inputs.look(&path, &blocks)? else {
                continue;
            };
            if kind == FileKind::Archive {
                archives.insert(path.clone(), inputs.files.len());
            }
            let file = InputFile::new(path, (index, load), (kind, units), blocks);
            inputs.files.push(file);
        }
        files::check()?;
        Ok(inputs)
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
            member: None,
            name: None,
            outside: None,
            data: 0..size,
            kind,
            device_code,
            bundle: bundle.then_some(Place {
                outside: None,
                range: 0..size,
                entries: None,
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
                    Err(problem) => {
                        return Err(LinkError::Input {
                            from: member_name(place),
                            source: problem.into(),
                        });
                    }
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
