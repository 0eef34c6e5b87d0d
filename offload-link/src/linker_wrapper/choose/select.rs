//! Decides which images are linked.
//!
//! | image in                                         | is linked                                      |
//! |--------------------------------------------------|------------------------------------------------|
//! | an object, a raw offload binary, a whole archive | always                                         |
//! | an archive member, an rlib's too                 | if the host link loads the member              |
//! | a member that the host link does not load         | if `--should-extract` names its processor, or a linked image needs one of its symbols |
//! | under LLVM's name, from 20: any archive member   | if it shares a group with an object's image, or by `--should-extract` |
//! | a bundle in an archive without a symbol index, or whose symbols cannot be read | if a linked image has its target |
//! | under LLVM's name: a bundle in any archive        | if a linked image has its target, as in clang's older driver |
//! | any, if an image of its target is LLVM IR or assembly | always: the symbols that these need are unknown |
//! | under LLVM's name, to 19: any archive member     | if such an object's image needs one of its symbols, or it defines a visible one |
//!
//! LLVM links nothing in some cases where the host link loads members with images. Then the first rules apply,
//! because a program with offload entries and no image crashes. Images that are not linked are lines of the report.
//! Specification: `docs/spec/linker-wrapper.md` §2.3, §8.4.

use crate::linker_wrapper::tool::Rules;
use std::collections::{HashMap, HashSet};

use offload_formats::names::{LlvmRelease, OffloadKind};

use crate::linker_wrapper::choose::bundle_choice;
use crate::linker_wrapper::choose::distinct::Distinct;
use crate::linker_wrapper::choose::groups::{Group, Groups, Joining};
use crate::linker_wrapper::choose::host_entries::HipNames;
use crate::linker_wrapper::choose::linked_units::linked_units;
use crate::linker_wrapper::choose::needed::{has_unknown_symbols, needed};
use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::inputs::file::{InputFile, Inputs, UnitKind};
use crate::linker_wrapper::inputs::images::Image;
use crate::linker_wrapper::inputs::symbols::Symbols;
use crate::linker_wrapper::installed::host_linker::HostLinker;
use crate::linker_wrapper::line::arguments::Arguments;
use crate::linker_wrapper::report::fates::{Fate, NOT_IN_LINK, Report};

/// The images of the inputs, and their groups for device links.
#[derive(Debug, Default)]
pub(crate) struct Images {
    pub images: Vec<Image>,
    /// Groups in order of first appearance.
    pub groups: Vec<Group>,
    /// Tells for each unit of the inputs whether the host link loads it.
    pub linked_units: Vec<bool>,
}

impl Images {
    /// Reads every image, decides whether it is linked, and records that in `report`.
    pub(crate) fn select(
        inputs: &Inputs,
        arguments: &Arguments,
        rules: Rules,
        linker: &HostLinker,
        report: &mut Report,
    ) -> Result<Self, LinkError> {
        let limit = arguments.options.max_decompressed_size()?;
        let mut images = Image::all(inputs, limit, report)?;
        let linked_units = linked_units(inputs, &images, arguments, linker, report)?;
        let selection = Selection {
            images: &images,
            indexed: indexed(inputs, &images)?,
            linked_units: &linked_units,
            should_extract: &arguments.options.should_extract,
        };
        let (mut groups, mut fates) = match rules {
            Rules::Ours => selection.by_host_link(Bundles::OnDemand)?,
            Rules::Llvm(release) => selection.as_llvm(release)?,
        };
        bundle_choice::settle(&images, &mut groups, &mut fates)?;
        for image in &mut images {
            let taken = linked_units.get(image.unit) == Some(&true);
            image.library = image.bundled && image.in_archive && !taken;
        }
        let groups = groups.finish(&images);
        for (image, fate) in images.iter().zip(fates) {
            report.lines.push(image.line(fate));
        }
        Ok(Self {
            images,
            groups,
            linked_units,
        })
    }
}

impl Images {
    /// Decides about HIP objects of clang's older driver, which register themselves: their images are linked if no
    /// object defines the fat binary that they name. Records whether there are other images to register.
    pub(crate) fn settle_hip(
        &mut self,
        inputs: &Inputs,
        names: &mut HipNames,
        report: &mut Report,
    ) {
        let kinds: Vec<UnitKind> = inputs.units().map(|(_, unit)| unit.kind).collect();
        let of_object = |image: &Image| {
            let in_sections = kinds
                .get(image.unit)
                .is_some_and(|kind| *kind != UnitKind::Other);
            image.bundled && (in_sections || image.in_archive)
        };
        let is_hip = |image: &Image| image.offload_kind == OffloadKind::HIP && !image.library;
        let members = self.groups.iter().flat_map(|group| &group.members);
        let mut linked = members.filter_map(|index| self.images.get(*index));
        names.registered = linked.any(|image| is_hip(image) && !of_object(image));
        if names.registered || !names.is_empty() {
            return;
        }
        for group in &mut self.groups {
            group.members.retain(|index| {
                let image = self.images.get(*index);
                let finished = image.is_some_and(|image| is_hip(image) && of_object(image));
                if let (true, Some(line)) = (finished, report.lines.get_mut(*index)) {
                    line.fate = Fate::NotLinked { reason: FINISHED };
                }
                !finished
            });
        }
        self.groups.retain(|group| !group.members.is_empty());
    }
}

/// Reason for an image whose object uses the fat binary of another object.
const FINISHED: &str = "its object finds a linked fat binary in another object";

/// When bundles in archives are linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bundles {
    /// Links them like other archive members, if their archive has a symbol index.
    OnDemand,
    /// Links all of a target, like clang's older driver, by `--whole-archive`.
    Whole,
}

struct Selection<'a> {
    images: &'a [Image],
    /// Tells for each bundle's image whether it is in an archive with a symbol index.
    indexed: Vec<bool>,
    linked_units: &'a [bool],
    should_extract: &'a [String],
}

type Selected = Result<(Groups, Vec<Fate>), LinkError>;

impl Selection<'_> {
    fn named(&self, image: &Image) -> bool {
        self.should_extract.contains(&image.processor)
    }

    fn by_host_link(&self, bundles: Bundles) -> Selected {
        let taken = |image: &Image| self.linked_units.get(image.unit) == Some(&true);
        let mut chosen: Vec<bool> = self
            .images
            .iter()
            .map(|image| taken(image) || self.named(image))
            .collect();
        self.choose_bundled(&mut chosen, bundles);
        self.choose_needed(&mut chosen)?;
        let mut fates = Vec::new();
        let mut seen = Distinct::default();
        for (image, chosen) in self.images.iter().zip(&mut chosen) {
            fates.push(if *chosen {
                match seen.add(image)? {
                    None => Fate::LINKED,
                    Some(first) => {
                        *chosen = false;
                        Fate::Duplicate {
                            of: first.from.clone(),
                        }
                    }
                }
            } else {
                Fate::NotLinked {
                    reason: NOT_IN_LINK,
                }
            });
        }
        let groups = Groups::of_host_link(self.images, &chosen);
        Ok((groups, fates))
    }

    /// Returns groups of the chosen images.
    fn targets(&self, chosen: &[bool]) -> Groups {
        let mut targets = Groups::new(Joining::Main);
        for (index, image) in self.images.iter().enumerate() {
            if chosen.get(index) == Some(&true) {
                targets.open(image);
                targets.join(image, index);
            }
        }
        targets
    }

    /// Adds the images that define undefined symbols of chosen images for the same target.
    fn choose_needed(&self, chosen: &mut [bool]) -> Result<(), LinkError> {
        let targets = self.targets(chosen);
        let takers = targets.takers(self.images);
        for target in 0..targets.list.len() {
            let (mut given, mut others) = (Vec::new(), Vec::new());
            for (index, image) in self.images.iter().enumerate() {
                if !takers.of(image).contains(&target) {
                    continue;
                }
                match chosen.get(index) {
                    Some(true) => given.push(image),
                    _ => others.push((index, image)),
                }
            }
            for index in needed(&given, &others)? {
                if let Some(chosen) = chosen.get_mut(index) {
                    *chosen = true;
                }
            }
        }
        Ok(())
    }

    /// Adds the bundles in archives that fit a target of the link and have no index to choose by.
    fn choose_bundled(&self, chosen: &mut [bool], bundles: Bundles) {
        let takers = self.targets(chosen).takers(self.images);
        for ((image, chosen), indexed) in self.images.iter().zip(chosen).zip(&self.indexed) {
            let whole = bundles == Bundles::Whole || !indexed;
            let fits = !takers.of(image).is_empty();
            *chosen |= whole && image.bundled && image.in_archive && fits;
        }
    }

    fn as_llvm(&self, release: LlvmRelease) -> Selected {
        let mut groups = Groups::new(match release {
            LlvmRelease::Main => Joining::Main,
            _ => Joining::Until23,
        });
        for (index, image) in self.images.iter().enumerate() {
            if !image.in_archive {
                groups.open(image);
                groups.join(image, index);
            }
        }
        let known = |image: &Image| {
            let mut list = groups.list.iter();
            list.any(|group| groups.takes(group, image)) || self.named(image)
        };
        if !self.images.iter().any(known) {
            return self.by_host_link(Bundles::Whole);
        }
        let (members, mut fates) = self.distinct_members()?;
        if release == LlvmRelease::V19 {
            self.wanted_members(members, &mut groups)?;
        } else {
            for index in members {
                let Some(image) = self.images.get(index) else {
                    continue;
                };
                if self.named(image) {
                    groups.open(image);
                }
                groups.join(image, index);
            }
        }
        let linked: HashSet<usize> = groups
            .list
            .iter()
            .flat_map(|group| group.members.iter().copied())
            .collect();
        for (index, fate) in fates.iter_mut().enumerate() {
            if *fate == Fate::LINKED && !linked.contains(&index) {
                let reason = match release {
                    LlvmRelease::V19 => NOT_WANTED,
                    _ => NO_OBJECT,
                };
                *fate = Fate::NotLinked { reason };
            }
        }
        Ok((groups, fates))
    }

    /// Returns the images of archive members, each once even if its archive is named twice.
    fn distinct_members(&self) -> Result<(Vec<usize>, Vec<Fate>), LinkError> {
        // Most images are unique by size and place, and need no reading.
        let mut seen: HashMap<_, Vec<&Image>> = HashMap::new();
        let mut members = Vec::new();
        let mut fates = Vec::new();
        for (index, image) in self.images.iter().enumerate() {
            if image.in_archive {
                let target = (&image.triple, &image.processor);
                let key = (image.offload_kind, &image.from, target, image.size());
                let others = seen.entry(key).or_default();
                let mut same = None;
                for other in others.iter() {
                    if other.is_same(image)? {
                        same = Some(other.from.clone());
                    }
                }
                if let Some(of) = same {
                    fates.push(Fate::Duplicate { of });
                    continue;
                }
                others.push(image);
                members.push(index);
            }
            fates.push(Fate::LINKED);
        }
        Ok((members, fates))
    }

    /// Chooses archive members like LLVM 19: repeatedly, until no more are needed.
    fn wanted_members(&self, members: Vec<usize>, groups: &mut Groups) -> Result<(), LinkError> {
        let count = groups.list.len();
        for at in 0..count {
            let Some(group) = groups.list.get(at) else {
                continue;
            };
            let mut unknown = false;
            let (mut own, mut others) = (Vec::new(), Vec::new());
            for index in &group.members {
                if let Some(image) = self.images.get(*index) {
                    unknown |= has_unknown_symbols(image)?;
                    own.push(image.names()?.unwrap_or_default());
                }
            }
            for index in &members {
                if let Some(image) = self.images.get(*index) {
                    if groups.takes(group, image) {
                        let names = image.names()?.unwrap_or_default();
                        others.push((*index, image.offload_kind, names));
                    }
                }
            }
            let mut known: HashMap<&[u8], Known> = HashMap::new();
            for names in &own {
                note(&mut known, &names.symbols());
            }
            let others = others.iter();
            let mut left: Vec<_> = others
                .map(|(index, kind, names)| (*index, *kind, names.symbols()))
                .collect();
            let mut taken = Vec::new();
            loop {
                let before = left.len();
                left.retain(|(index, kind, symbols)| {
                    let bundled = self.images.get(*index).is_some_and(|image| image.bundled);
                    let wanted = unknown || bundled || is_wanted(&known, *kind, symbols);
                    if wanted {
                        note(&mut known, symbols);
                        taken.push(*index);
                    }
                    !wanted
                });
                if left.len() == before {
                    break;
                }
            }
            if let Some(group) = groups.list.get_mut(at) {
                group.members.extend(taken);
            }
        }
        Ok(())
    }
}

/// Reason why LLVM does not link a member that the host link would load.
const NO_OBJECT: &str = "no object has device code for this target (`--should-extract` \
                         with its processor links it)";
const NOT_WANTED: &str = "no object has device code for this target that needs a symbol of \
                          it, and it defines no visible one";

/// State of a symbol in a device link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Undefined,
    Defined,
}

fn note<'d>(known: &mut HashMap<&'d [u8], Known>, symbols: &Symbols<'d>) {
    for name in &symbols.undefined {
        known.entry(name).or_insert(Known::Undefined);
    }
    for name in &symbols.defined {
        known.insert(name, Known::Defined);
    }
}

/// Tells whether it defines an undefined symbol, or a new symbol that the host can find.
fn is_wanted<'d>(
    known: &HashMap<&'d [u8], Known>,
    kind: OffloadKind,
    symbols: &Symbols<'d>,
) -> bool {
    let needed = |name: &&[u8]| known.get(name) == Some(&Known::Undefined);
    let new = |name: &&[u8]| known.get(name) != Some(&Known::Defined);
    symbols.defined.iter().any(needed)
        || kind != OffloadKind::NONE && symbols.visible.iter().any(new)
}

/// Tells for each bundle's image whether it is in an archive with a symbol index.
fn indexed(inputs: &Inputs, images: &[Image]) -> Result<Vec<bool>, LinkError> {
    let files: Vec<&InputFile> = inputs.units().map(|(file, _)| file).collect();
    let indexed = images.iter().map(|image| {
        let file = files.get(image.unit);
        let Some(file) = file.filter(|_| image.bundled && image.in_archive) else {
            return Ok(false);
        };
        let index = file.index();
        let index = index.map_err(|problem| LinkError::unopened(&file.path, &problem))?;
        Ok(!index.is_empty())
    });
    indexed.collect()
}
