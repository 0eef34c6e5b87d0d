//! Merges device archives into one archive of bundles.
//!
//! Members are combined by the names that splitting gives them, or by their stems. With the host's archive, images go
//! into its objects, like with clang's older driver; a member without a host object becomes a bundle without a host
//! part. Two members for the same entry, and members that are bundles already, are errors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use object::elf;
use offload_formats::container::archive::{Archive, Index, MemberPlan, layout, plain_name};
use offload_formats::container::definitions;
use offload_formats::container::device_archive::bundle_stem;
use offload_formats::container::elf::Elf;
use offload_formats::container::object_bundle::{
    NewObjectEntry, embed_bundle, whole_bundle_sections,
};
use offload_formats::escape::terminal;
use offload_formats::format::bundle::BundleLayout;
use offload_formats::format::magic::Magic;
use offload_formats::format::pieces::Piece;
use offload_formats::names::{ConflictScope, EntryId, EntryKind, conflict};

use super::line::MergeLine;
use crate::cargo_offload::error::CargoOffloadError;
use crate::llvm_tool::{Output, Sources, outputs};

/// Entry ID for an unknown host.
const NO_HOST: &str = "host-x86_64-unknown-linux-gnu-";

/// Values of `e_machine` for hosts, with their entry IDs.
const HOSTS: [(u16, &str); 5] = [
    (elf::EM_X86_64.0, NO_HOST),
    (elf::EM_AARCH64.0, "host-aarch64-unknown-linux-gnu-"),
    (elf::EM_RISCV.0, "host-riscv64-unknown-linux-gnu-"),
    (elf::EM_PPC64.0, "host-powerpc64le-unknown-linux-gnu-"),
    (elf::EM_S390.0, "host-s390x-unknown-linux-gnu-"),
];

pub(super) fn run(line: &MergeLine) -> Result<(), CargoOffloadError> {
    let path = &line.out;
    let mut sources = Sources::default();
    let mut merged = Merged::default();
    if let Some(host) = &line.host {
        for member in members(host, &mut sources)? {
            merged.add_host(member)?;
        }
    }
    for text in &line.archives {
        let Some((target, file)) = text.split_once('=') else {
            return Err(CargoOffloadError::new(format_args!(
                "archive merge: `{text}` is not TARGET=FILE"
            )));
        };
        let id = EntryId::parse_target(target);
        let id =
            id.map_err(|problem| CargoOffloadError::new(format_args!("`{target}`: {problem}")))?;
        for member in members(Path::new(file), &mut sources)? {
            merged.add(&id, member)?;
        }
    }
    let mut plans = Vec::new();
    for group in &merged.groups {
        plans.push(group.plan(&sources)?);
    }
    let index = Index::of(plans.iter().map(|plan| plan.host));
    let members: Vec<MemberPlan<'_>> = plans
        .iter()
        .map(|plan| MemberPlan {
            name: &plan.name,
            content: &plan.pieces,
            symbols: &plan.symbols,
        })
        .collect();
    let pieces = layout(&members, index);
    let pieces = pieces.map_err(|problem| CargoOffloadError::of(path, problem))?;
    let output = Output::plain(path.clone(), pieces);
    outputs::write(&[output], &sources).map_err(CargoOffloadError::new)
}

/// A member of one of the archives.
struct MergedMember {
    /// Path of the archive.
    path: PathBuf,
    name: String,
    content: Piece,
}

impl MergedMember {
    fn wrong(&self, problem: impl std::fmt::Display) -> CargoOffloadError {
        let (path, name) = (terminal(self.path.as_path()), terminal(&self.name));
        CargoOffloadError::new(format_args!("{path}: member `{name}`: {problem}"))
    }

    /// Checks that the member can be an entry of a bundle.
    ///
    /// # Errors
    ///
    /// Fails if the member is or contains a bundle, or is truncated.
    fn check(&self, sources: &Sources) -> Result<(), CargoOffloadError> {
        let Piece::Copy { input, range } = &self.content else {
            return Ok(());
        };
        let data = sources.file(*input).apart();
        let has_bundle = match Magic::at(&data, range.clone()) {
            Magic::Bundle | Magic::CompressedBundle | Magic::TextBundle => true,
            Magic::Elf => {
                let sections = whole_bundle_sections(&data, range.clone());
                !sections.map_err(|problem| self.wrong(problem))?.is_empty()
            }
            _ => false,
        };
        match has_bundle {
            true => Err(self.wrong(
                "expected an object or bitcode, found a bundle\nhint: `cargo offload archive split` splits archives of bundles",
            )),
            false => Ok(()),
        }
    }
}

fn members(path: &Path, sources: &mut Sources) -> Result<Vec<MergedMember>, CargoOffloadError> {
    let source = sources.open(path).map_err(CargoOffloadError::new)?;
    let found: Vec<(Vec<u8>, u64, Option<std::ops::Range<u64>>)> = {
        let file = sources.file(source);
        let archive = Archive::parse(file.data(), file.whole());
        let archive = archive.map_err(|problem| CargoOffloadError::of(path, problem))?;
        let members = archive
            .members
            .iter()
            .map(|member| (member.name.to_vec(), member.size, member.content.clone()));
        members.collect()
    };
    let mut members = Vec::new();
    for (name, size, content) in found {
        let content = match content {
            Some(range) => Piece::Copy {
                input: source,
                range,
            },
            None => {
                let outside = sources.open_member(path, &name, size);
                let outside = outside.map_err(CargoOffloadError::new)?;
                sources.all(outside)
            }
        };
        let path = path.to_owned();
        let name = String::from_utf8_lossy(&name).into_owned();
        let member = MergedMember {
            path,
            name,
            content,
        };
        member.check(sources)?;
        members.push(member);
    }
    Ok(members)
}

/// Members of the new archive, in the order of first appearance.
#[derive(Default)]
struct Merged {
    groups: Vec<MemberGroup>,
    /// Index of each stem in the list.
    places: BTreeMap<String, usize>,
}

struct MemberGroup {
    stem: String,
    host: Option<MergedMember>,
    images: Vec<(EntryId, MergedMember)>,
}

impl Merged {
    fn group(&mut self, stem: String) -> &mut MemberGroup {
        let next = self.groups.len();
        let at = *self.places.entry(stem.clone()).or_insert(next);
        if at == next {
            self.groups.push(MemberGroup {
                stem,
                host: None,
                images: Vec::new(),
            });
        }
        &mut self.groups[at]
    }

    fn add_host(&mut self, member: MergedMember) -> Result<(), CargoOffloadError> {
        let original = original_stem(&member.name, |kind| kind == EntryKind::Host);
        let group = self.group(original);
        if group.host.is_some() {
            return Err(member.wrong(format_args!("a second host object for `{}`", group.stem)));
        }
        group.host = Some(member);
        Ok(())
    }

    fn add(&mut self, id: &EntryId, member: MergedMember) -> Result<(), CargoOffloadError> {
        // The entry ID in the name may be another one, whose image serves this target.
        let original = original_stem(&member.name, |kind| kind != EntryKind::Host);
        let group = self.group(original);
        if group.images.iter().any(|(known, _)| known == id) {
            return Err(member.wrong(format_args!(
                "a second image of `{}` for {}",
                group.stem,
                id.as_str()
            )));
        }
        for (known, _) in &group.images {
            if conflict(&[known.clone(), id.clone()], ConflictScope::All).is_some() {
                return Err(member.wrong(format_args!(
                    "{} and {} cannot be in one bundle, that of `{}`: they do not set the same features",
                    known.as_str(),
                    id.as_str(),
                    group.stem
                )));
            }
        }
        group.images.push((id.clone(), member));
        Ok(())
    }
}

fn stem(name: &str) -> String {
    let path = PathBuf::from(name);
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Returns `x` for `x-hip-amdgcn-amd-amdhsa--gfx90ax.bc`, a name that splitting gives to an image of such a kind, and for
/// `x.bc`.
fn original_stem(name: &str, is_kind: impl Fn(EntryKind) -> bool) -> String {
    match bundle_stem(name) {
        Some((original, kind)) if is_kind(kind) => original.to_owned(),
        _ => stem(name),
    }
}

/// A member to write.
struct Plan<'a> {
    name: String,
    pieces: Vec<Piece>,
    symbols: Vec<&'a [u8]>,
    /// Format of its host part.
    host: Magic,
}

impl MemberGroup {
    fn plan<'a>(&self, sources: &'a Sources) -> Result<Plan<'a>, CargoOffloadError> {
        let ids: Vec<String> = self.images.iter().map(|(id, _)| id.to_string()).collect();
        let images = || self.images.iter().map(|(_, image)| image.content.clone());
        let Some(host) = &self.host else {
            return self.bundle(&ids);
        };
        let Piece::Copy { input, range } = &host.content else {
            return self.bundle(&ids);
        };
        let data = sources.file(*input).data();
        let symbols = definitions(data, range.clone()).map_err(|problem| host.wrong(problem))?;
        let pieces = if ids.is_empty() {
            vec![host.content.clone()]
        } else {
            let images: Vec<Piece> = images().collect();
            let mut entries: Vec<NewObjectEntry<'_>> = ids
                .iter()
                .zip(&images)
                .map(|(id, image)| NewObjectEntry {
                    id,
                    size: Some(image.size()),
                })
                .collect();
            let machine = Elf::parse(data, range.clone()).ok().map(|elf| elf.machine);
            let row = HOSTS.iter().find(|(number, _)| Some(*number) == machine);
            entries.push(NewObjectEntry {
                id: row.map_or(NO_HOST, |(_, id)| *id),
                size: None,
            });
            let planned = embed_bundle(data, range.clone(), &entries);
            let planned = planned.map_err(|problem| host.wrong(problem))?;
            planned
                .into_iter()
                .map(|piece| match piece {
                    Piece::Copy { input: 0, range } => Piece::Copy {
                        input: *input,
                        range,
                    },
                    Piece::Copy { input: image, .. } => {
                        images.get(image - 1).cloned().unwrap_or(Piece::Zeros(0))
                    }
                    other => other,
                })
                .collect()
        };
        Ok(Plan {
            name: match stem(&host.name) == self.stem {
                true => plain_name(&host.name),
                false => plain_name(&format!("{}.o", self.stem)),
            },
            pieces,
            symbols,
            host: Magic::at(data, range.clone()),
        })
    }

    /// Plans a bundle without a host object.
    fn bundle<'a>(&self, ids: &[String]) -> Result<Plan<'a>, CargoOffloadError> {
        let host = std::iter::once((NO_HOST, 0));
        let images = self.images.iter().zip(ids);
        let images = images.map(|((_, image), id)| (id.as_str(), image.content.size()));
        let layout = BundleLayout::new(host.chain(images), std::num::NonZeroU64::MIN).map_err(
            |problem| CargoOffloadError::new(format_args!("`{}`: {problem}", self.stem)),
        )?;
        let mut pieces = vec![Piece::Bytes(layout.head)];
        pieces.extend(self.images.iter().map(|(_, image)| image.content.clone()));
        Ok(Plan {
            name: plain_name(&format!("{}.bc", self.stem)),
            pieces,
            symbols: Vec::new(),
            host: Magic::Unknown,
        })
    }
}
