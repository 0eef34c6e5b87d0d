//! Splits a heterogeneous device archive into archives for one target each: `-type=a -unbundle`.

use crate::say::Warn;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use offload_formats::container::archive::{self, Index, MemberPlan};
use offload_formats::container::definitions;
use offload_formats::container::device_archive::member_name;
use offload_formats::escape::terminal;
use offload_formats::format::magic::Magic;
use offload_formats::format::pieces::Piece;
use offload_formats::names::EntryId;
use offload_formats::names::entry_id::{ConflictScope, conflict};

use super::contents::{Contents, Entry};
use super::request::Manner;
use super::targets::{Target, Targets};
use crate::llvm_tool::{self, LlvmToolError, Output, Sources, Style, compression};

/// Returns each target's archive: every image that serves the target, in the order of the input.
pub(super) fn plan(
    contents: &Contents,
    targets: &Targets,
    outputs: &[PathBuf],
    sources: &mut Sources,
    manner: &Manner,
    warn: Warn<'_>,
) -> Result<Vec<Output>, LlvmToolError> {
    let mut members = taken(contents, targets, manner)?;
    for member in &mut members {
        let source = member.entry.object.0;
        // Symbols can only be read from files.
        let done = compression::materialize(sources, source, manner.limit, manner.verbose);
        done.map_err(|problem| compression::failed(sources.name(source), &problem))?;
        member.pieces = member.entry.pieces(sources, Some(member.from))?;
    }
    let symbols: Vec<(Magic, Vec<Vec<u8>>)> = members
        .iter()
        .map(|member| symbols(member, sources, warn))
        .collect();
    for (member, (magic, symbols)) in members.iter_mut().zip(&symbols) {
        member.magic = *magic;
        member.symbols = symbols.iter().map(Vec::as_slice).collect();
    }
    let mut plans = Vec::new();
    for ((index, target), path) in targets.0.iter().enumerate().zip(outputs) {
        let members = members
            .iter()
            .filter(|member| member.served.contains(&index));
        let symbol_index = Index::of(members.clone().map(|member| member.magic));
        let members: Vec<MemberPlan<'_>> = members
            .map(|member| MemberPlan {
                name: &member.name,
                content: &member.pieces,
                symbols: &member.symbols,
            })
            .collect();
        if members.is_empty() && !manner.allow_missing {
            return Err(nothing_for(target, &contents.name));
        }
        let pieces = archive::layout(&members, symbol_index);
        plans.push(Output {
            path: path.clone(),
            pieces: pieces.map_err(|problem| LlvmToolError::input(path, problem))?,
            style: Style::Archive,
        });
    }
    Ok(plans)
}

/// A member of at least one of the archives.
struct Member<'a> {
    name: String,
    /// Name of the input's member that contains it.
    from: &'a str,
    entry: &'a Entry,
    pieces: Vec<Piece>,
    magic: Magic,
    /// Symbols for the symbol index.
    symbols: Vec<&'a [u8]>,
    /// Indices of the targets that it serves.
    served: Vec<usize>,
}

/// Returns the entries that serve a target, without reading their bytes.
fn taken<'a>(
    contents: &'a Contents,
    targets: &Targets,
    manner: &Manner,
) -> Result<Vec<Member<'a>>, LlvmToolError> {
    let mut taken = Vec::new();
    // All members of an archive have the same few targets.
    let mut known: HashMap<&str, Vec<usize>> = HashMap::new();
    for bundle in &contents.bundles {
        let member = bundle.member.as_deref().unwrap_or_default();
        for entry in &bundle.entries {
            if !known.contains_key(&*entry.id) && !entry.is_shaped() {
                let hint = format!(
                    "the entry ID is `{}`, in member `{}` of {}",
                    terminal(&entry.id),
                    terminal(member),
                    terminal(contents.name.as_path())
                );
                let error = LlvmToolError::new("Invalid bundle id read from code object");
                return Err(error.with_hint(Some(hint)));
            }
            let served = known.entry(&entry.id).or_insert_with(|| {
                let id = entry.parsed();
                id.map_or_else(Vec::new, |id| served(&id, targets, manner))
            });
            if !served.is_empty() {
                taken.push(Member {
                    name: member_name(member, &entry.id),
                    from: member,
                    entry,
                    pieces: Vec::new(),
                    magic: Magic::Unknown,
                    symbols: Vec::new(),
                    served: served.clone(),
                });
            }
        }
    }
    Ok(taken)
}

/// Returns the indices of the targets that an image serves.
fn served(id: &EntryId, targets: &Targets, manner: &Manner) -> Vec<usize> {
    let targets = targets.0.iter().enumerate();
    let served = targets.filter(|(_, target)| id.serves(&target.id, manner.kind_rule()));
    served.map(|(index, _)| index).collect()
}

/// Returns the image's format and its symbols for the symbol index; none, with a warning, if the image cannot be read.
/// Only these names of its tables stay in memory.
fn symbols(member: &Member<'_>, sources: &Sources, warn: Warn<'_>) -> (Magic, Vec<Vec<u8>>) {
    let (source, range) = &member.entry.object;
    let data = sources.file(*source).apart();
    let found = definitions(&data, range.clone()).unwrap_or_else(|problem| {
        warn(llvm_tool::without_symbols(&member.name, &problem));
        Vec::new()
    });
    let symbols = found.into_iter().map(<[u8]>::to_vec).collect();
    (Magic::at(&data, range.clone()), symbols)
}

/// `-check-input-archive`: checks the entries of each member for conflicts.
pub(super) fn check(contents: &Contents) -> Result<(), LlvmToolError> {
    for bundle in &contents.bundles {
        let ids: Vec<EntryId> = bundle.entries.iter().filter_map(Entry::parsed).collect();
        if let Some((first, second)) = conflict(&ids, ConflictScope::All) {
            let [first, second] = [first, second].map(|index| ids[index].as_str());
            let member = bundle.member.as_deref().unwrap_or_default();
            let (member, archive) = (terminal(member), terminal(contents.name.as_path()));
            return Err(LlvmToolError::new(format!(
                "conflicting TargetIDs [{first}, {second}] found in {member} of {archive}"
            )));
        }
    }
    Ok(())
}

fn nothing_for(target: &Target, archive: &Path) -> LlvmToolError {
    LlvmToolError::new(format!(
        "no compatible code object found for the target '{}' in heterogeneous archive library: {}",
        target.written,
        terminal(archive)
    ))
}
