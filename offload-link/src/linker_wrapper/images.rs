//! The images of the inputs: which of them are linked, and which of these together.
//!
//! | image in                                         | is linked                                      |
//! |--------------------------------------------------|------------------------------------------------|
//! | an object, a raw offload binary, a whole archive | always                                         |
//! | an archive member, an rlib's too                 | when the host link takes the member            |
//! | a member that the host link leaves               | when its processor is one of `--should-extract`, or a linked image needs a symbol of it |
//!
//! Whatever is not linked is a line of the report.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use object::{ReadCache, ReadRef};
use offload_build::container::archive::Archive;
use offload_build::format::offload_binary;
use offload_build::target::{ImageTarget, OffloadKind};
use offload_build::toolchain::Command;

use super::Error;
use super::arguments::{Arguments, Item, Load};
use super::elf;
use super::inputs::{FileKind, InputFile, Inputs, Pread, Unit, UnitKind, read_range};
use super::report::{Fate, Line, Report, target};
use super::symbols::{Candidate, Symbols, linked};

/// The images found, and the links to be made of them.
#[derive(Debug, Default)]
pub(super) struct Images {
    pub images: Vec<Image>,
    /// In order of first appearance.
    pub groups: Vec<Group>,
    /// For each unit of the inputs, whether the host link takes it.
    pub linked_units: Vec<bool>,
}

/// One image, as a compiler left it in a host object.
#[derive(Debug)]
pub(super) struct Image {
    /// `libk.a(k.o)`, for messages.
    pub from: String,
    /// Index among the units of the inputs.
    unit: usize,
    pub offload_kind: OffloadKind,
    pub triple: String,
    pub processor: String,
    /// The file that holds it, and where: an image that is not linked is never read.
    file: PathBuf,
    range: Range<u64>,
    bytes: OnceLock<Vec<u8>>,
}

/// Images that are linked into one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub triple: String,
    /// As the first image has it.
    pub processor: String,
    /// Indices of images.
    pub members: Vec<usize>,
}

impl Images {
    /// Reads every image and decides about it; what is decided goes into `report`.
    pub(super) fn select(
        inputs: &Inputs,
        arguments: &Arguments,
        report: &mut Report,
    ) -> Result<Self, Error> {
        let mut found = Self::read(inputs)?;
        found.linked_units = linked_units(inputs, arguments, report);
        let mut chosen: Vec<bool> = found
            .images
            .iter()
            .map(|image| {
                found.linked_units[image.unit]
                    || arguments.options.should_extract.contains(&image.processor)
            })
            .collect();
        found.choose_needed(&mut chosen)?;
        found.check_kinds(&chosen)?;
        let fates = found.drop_duplicates(&mut chosen)?;

        let units: Vec<(&InputFile, &Unit)> = inputs.units().collect();
        let from_object = |image: &Image| {
            let (file, _) = units[image.unit];
            file.kind != FileKind::Archive || file.load == Load::Whole
        };
        let mut groups: Vec<Group> = Vec::new();
        for objects in [true, false] {
            for (index, image) in found.images.iter().enumerate() {
                if chosen[index] && from_object(image) == objects {
                    join(&mut groups, image, index, objects);
                }
            }
        }
        for (image, fate) in found.images.iter().zip(fates) {
            report.lines.push(Line {
                from: image.from.clone(),
                kind: image.offload_kind.name().to_owned(),
                triple: image.triple.clone(),
                processor: image.processor.clone(),
                size: image.range.end - image.range.start,
                fate,
            });
        }
        found.groups = groups;
        Ok(found)
    }

    fn read(inputs: &Inputs) -> Result<Self, Error> {
        let mut found = Self::default();
        for (index, (file, unit)) in inputs.units().enumerate() {
            if unit.kind == UnitKind::BitcodeWithImages {
                return Err(Error::Input {
                    from: unit_name(file, unit),
                    source: "device code in host bitcode cannot be read\n\
                             hint: compile the host's side without -flto"
                        .into(),
                });
            }
            if unit.sections.is_empty() {
                continue;
            }
            let from = unit_name(file, unit);
            let path = unit.path(&file.path);
            let invalid = |source: Box<dyn std::error::Error + Send + Sync>| Error::Input {
                from: from.clone(),
                source,
            };
            let open = File::open(path).map_err(|source| invalid(source.into()))?;
            let cache = ReadCache::new(Pread::new(open));
            for section in &unit.sections {
                let binaries = offload_binary::walk(&cache, section.clone())
                    .map_err(|source| invalid(source.into()))?;
                if binaries.iter().any(|binary| binary.compressed.is_some()) {
                    let problem = "a compressed offload binary cannot be linked yet";
                    return Err(invalid(problem.into()));
                }
                for entry in binaries.into_iter().flat_map(|binary| binary.entries) {
                    found.images.push(Image {
                        from: from.clone(),
                        unit: index,
                        offload_kind: entry.offload_kind,
                        triple: entry.triple().to_owned(),
                        processor: entry.arch().to_owned(),
                        file: path.to_owned(),
                        range: entry.image.clone(),
                        bytes: OnceLock::new(),
                    });
                }
            }
        }
        Ok(found)
    }

    /// Adds the images that define what the chosen ones of their target leave undefined.
    fn choose_needed(&self, chosen: &mut [bool]) -> Result<(), Error> {
        let mut targets: Vec<(&str, &str)> = Vec::new();
        for (image, _) in self
            .images
            .iter()
            .zip(&*chosen)
            .filter(|(_, chosen)| **chosen)
        {
            if !targets.contains(&image.key()) {
                targets.push(image.key());
            }
        }
        for target in targets {
            let indices: Vec<usize> = (0..self.images.len())
                .filter(|index| self.images[*index].key() == target)
                .collect();
            if indices.iter().all(|index| chosen[*index]) {
                continue;
            }
            let mut symbols = Vec::new();
            for index in &indices {
                let bytes = self.images[*index].bytes()?;
                let range = 0..bytes.len() as u64;
                symbols.push(elf::symbols(bytes, range).unwrap_or_default());
            }
            let candidates: Vec<Candidate<'_>> = indices
                .iter()
                .zip(&symbols)
                .map(|(index, symbols)| Candidate {
                    symbols,
                    always: chosen[*index],
                })
                .collect();
            for (index, taken) in indices.iter().zip(linked(&candidates, [])) {
                chosen[*index] = taken;
            }
        }
        Ok(())
    }

    /// What becomes of each image. Of equal ones the first alone stays chosen.
    fn drop_duplicates(&self, chosen: &mut [bool]) -> Result<Vec<Fate>, Error> {
        let mut seen: HashMap<(&str, &str, &[u8]), usize> = HashMap::new();
        let mut fates = Vec::new();
        for (index, image) in self.images.iter().enumerate() {
            if !chosen[index] {
                fates.push(Fate::NotTaken);
                continue;
            }
            let (triple, processor) = image.key();
            let first = *seen
                .entry((triple, processor, image.bytes()?))
                .or_insert(index);
            fates.push(if first == index {
                Fate::Linked(Vec::new())
            } else {
                chosen[index] = false;
                let of = self.images[first].from.clone();
                Fate::Duplicate { of }
            });
        }
        Ok(fates)
    }

    fn check_kinds(&self, chosen: &[bool]) -> Result<(), Error> {
        let other = self.images.iter().zip(chosen).find(|(image, chosen)| {
            let known = [OffloadKind::OPENMP, OffloadKind::NONE];
            **chosen && !known.contains(&image.offload_kind)
        });
        match other {
            Some((image, _)) => Err(Error::Input {
                from: image.from.clone(),
                source: format!(
                    "{} image for {}: only OpenMP device code can be linked yet",
                    image.offload_kind,
                    target(&image.triple, &image.processor)
                )
                .into(),
            }),
            None => Ok(()),
        }
    }
}

impl Image {
    fn key(&self) -> (&str, &str) {
        (&self.triple, canonical(&self.processor))
    }

    /// The command that does what we do without one: writes the image to a file.
    pub(super) fn extraction(&self, path: &Path) -> Command {
        let mut image = format!("--image=file={},triple={}", path.display(), self.triple);
        if !self.processor.is_empty() {
            image += &format!(",arch={}", self.processor);
        }
        image += &format!(",kind={}", self.offload_kind);
        Command::new("offload-packager").arg(&self.file).arg(image)
    }

    /// The image itself, read when first asked for.
    pub(super) fn bytes(&self) -> Result<&[u8], Error> {
        if let Some(bytes) = self.bytes.get() {
            return Ok(bytes);
        }
        let read = read_range(&self.file, self.range.clone());
        let bytes = read.map_err(|source| Error::Input {
            from: self.from.clone(),
            source: source.into(),
        })?;
        Ok(self.bytes.get_or_init(|| bytes))
    }
}

/// LLVM 19 writes nothing where 22 writes `generic`.
fn canonical(processor: &str) -> &str {
    match processor {
        "generic" => "",
        other => other,
    }
}

/// Adds an image to its group and to those that exist already and are compatible with it.
fn join(groups: &mut Vec<Group>, image: &Image, index: usize, is_object: bool) {
    let mut joined = false;
    let mut own = false;
    for group in groups.iter_mut() {
        let same = group.triple == image.triple && canonical(&group.processor) == image.key().1;
        let target = |triple, arch| ImageTarget { triple, arch };
        let group_target = target(&group.triple, &group.processor);
        if same || group_target.joins_until_23(&target(&image.triple, &image.processor)) {
            group.members.push(index);
            joined = true;
            own |= same;
        }
    }
    if !own && (is_object || !joined) {
        groups.push(Group {
            triple: image.triple.clone(),
            processor: image.processor.clone(),
            members: vec![index],
        });
    }
}

/// Which units the host link takes. Symbols are read only when that is in question.
fn linked_units(inputs: &Inputs, arguments: &Arguments, report: &mut Report) -> Vec<bool> {
    let always = |file: &InputFile| match file.load {
        Load::Whole => true,
        Load::Usual => file.kind != FileKind::Archive,
        Load::Wanted => false,
    };
    let open = inputs
        .units()
        .any(|(file, unit)| !always(file) && !unit.sections.is_empty());
    if !open {
        return inputs.units().map(|(file, _)| always(file)).collect();
    }
    // A source, as a compiler driver takes it: nobody knows yet what its object will need.
    let source = |file: &&InputFile| {
        let named = matches!(arguments.items.get(file.item), Some(Item::File { .. }));
        named && file.kind == FileKind::Other
    };
    let source = inputs.files.iter().find(source);
    let mut unread = source.map(|file| file.path.display().to_string());
    let symbols: Vec<Symbols> = inputs
        .units()
        .map(|(file, unit)| {
            let symbols = elf::with_unit(&file.path, unit, |data, range| elf::symbols(data, range));
            if symbols.is_none() && unit.kind != UnitKind::Other {
                unread.get_or_insert_with(|| unit_name(file, unit));
            }
            symbols.unwrap_or_default()
        })
        .collect();
    if let Some(name) = unread {
        report.warnings.push(format!(
            "the symbols of {name} cannot be read: images of all archive members are linked"
        ));
        return vec![true; symbols.len()];
    }
    let candidates: Vec<Candidate<'_>> = inputs
        .units()
        .zip(&symbols)
        .map(|((file, _), symbols)| Candidate {
            symbols,
            always: always(file),
        })
        .collect();
    let roots = arguments.roots.iter().map(|root| root.as_encoded_bytes());
    let entry = [&b"main"[..], b"_start"];
    linked(&candidates, roots.chain(entry))
}

/// The file, with the archive member: `libk.a(k.o)`.
pub(super) fn unit_name(file: &InputFile, unit: &Unit) -> String {
    let path = file.path.display();
    let Some(header) = unit.member else {
        return path.to_string();
    };
    match member_name(&file.path, header) {
        Some(name) => format!("{path}({name})"),
        None => format!("{path}(member at offset {header:#x})"),
    }
}

fn member_name(path: &Path, header: u64) -> Option<String> {
    let cache = ReadCache::new(Pread::new(File::open(path).ok()?));
    let size = (&cache).len().ok()?;
    let archive = Archive::parse(&cache, 0..size).ok()?;
    let mut members = archive.members.iter();
    let member = members.find(|member| member.header_offset == header)?;
    Some(String::from_utf8_lossy(member.name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(images: &[(&str, &str, bool)]) -> Vec<(String, Vec<usize>)> {
        let mut groups = Vec::new();
        for objects in [true, false] {
            for (index, (triple, processor, is_object)) in images.iter().enumerate() {
                let image = Image {
                    from: String::new(),
                    unit: 0,
                    offload_kind: OffloadKind::OPENMP,
                    triple: (*triple).to_owned(),
                    processor: (*processor).to_owned(),
                    file: PathBuf::new(),
                    range: 0..0,
                    bytes: OnceLock::new(),
                };
                if *is_object == objects {
                    join(&mut groups, &image, index, objects);
                }
            }
        }
        groups
            .into_iter()
            .map(|group| (group.processor, group.members))
            .collect()
    }

    const AMD: &str = "amdgcn-amd-amdhsa";

    fn group(processor: &str, members: &[usize]) -> (String, Vec<usize>) {
        (processor.to_owned(), members.to_vec())
    }

    #[test]
    fn groups_objects_as_llvm_22_does() {
        // The table of spec/offload-binary.md §4.2, observed with 22.1.8.
        for (images, expected) in [
            (
                [(AMD, "gfx90a"), (AMD, "gfx90a:xnack+")],
                [group("gfx90a", &[0, 1]), group("gfx90a:xnack+", &[1])],
            ),
            (
                [(AMD, "gfx90a:xnack+"), (AMD, "gfx90a")],
                [group("gfx90a:xnack+", &[0, 1]), group("gfx90a", &[1])],
            ),
            (
                [(AMD, "gfx90a:xnack+"), (AMD, "gfx90a:xnack-")],
                [group("gfx90a:xnack+", &[0]), group("gfx90a:xnack-", &[1])],
            ),
            (
                [(AMD, "gfx90a"), (AMD, "generic")],
                [group("gfx90a", &[0, 1]), group("generic", &[1])],
            ),
            (
                [(AMD, "generic"), (AMD, "gfx90a")],
                [group("generic", &[0, 1]), group("gfx90a", &[1])],
            ),
            (
                [(AMD, "gfx90a"), (AMD, "gfx906")],
                [group("gfx90a", &[0]), group("gfx906", &[1])],
            ),
            (
                [
                    ("nvptx64-nvidia-cuda", "sm_70"),
                    ("nvptx64-nvidia-cuda", "generic"),
                ],
                [group("sm_70", &[0, 1]), group("generic", &[1])],
            ),
        ] {
            let images = images.map(|(triple, processor)| (triple, processor, true));
            assert_eq!(groups(&images), expected, "{images:?}");
        }
    }

    #[test]
    fn makes_one_image_for_a_cpu_of_objects_of_19_and_of_22() {
        let cpu = "x86_64-pc-linux-gnu";
        assert_eq!(
            groups(&[(cpu, "", true), (cpu, "generic", true)]),
            [group("", &[0, 1])]
        );
    }

    #[test]
    fn adds_archive_members_to_every_group_that_they_serve() {
        assert_eq!(
            groups(&[
                (AMD, "gfx90a", false),
                (AMD, "gfx90a:xnack+", true),
                (AMD, "gfx90a:xnack-", true),
                (AMD, "gfx1100", false),
            ]),
            [
                group("gfx90a:xnack+", &[1, 0]),
                group("gfx90a:xnack-", &[2, 0]),
                group("gfx1100", &[3]),
            ]
        );
    }
}
