//! Unbundling: makes several files of one, each with the image for a target.

use crate::say::Warn;
use std::path::PathBuf;

use offload_formats::escape::terminal;
use offload_formats::format::pieces::Piece;
use offload_formats::names::entry_id::KindRule;
use offload_formats::names::{EntryId, EntryKind};

use super::archive;
use super::contents::{self, Contents, Entry};
use super::file_type::FileType;
use super::objcopy;
use super::request::{From, Manner};
use super::targets::{Target, Targets};
use crate::llvm_tool::{LlvmToolError, Output, Sources};

/// Returns the pieces of each output.
pub(super) fn plan(
    from: &From,
    targets: &Targets,
    outputs: &[PathBuf],
    check_archive: bool,
    sources: &mut Sources,
    manner: &Manner,
    warn: Warn<'_>,
) -> Result<Vec<Output>, LlvmToolError> {
    let contents = contents::read(from, sources, manner)?;
    contents.warn_of_rest(warn);
    if contents.file_type == FileType::Archive {
        if check_archive {
            archive::check(&contents)?;
        }
        return archive::plan(&contents, targets, outputs, sources, manner, warn);
    }
    let images = images(&contents, targets, sources, manner)?;
    let outputs = images.into_iter().zip(outputs);
    let outputs = outputs.map(|(pieces, path)| Output::plain(path.clone(), pieces));
    Ok(outputs.collect())
}

/// Chooses the image for each target.
fn images(
    contents: &Contents,
    targets: &Targets,
    sources: &Sources,
    manner: &Manner,
) -> Result<Vec<Vec<Piece>>, LlvmToolError> {
    let entries: Vec<&Entry> = contents.entries().collect();
    let ids: Vec<Option<EntryId>> = entries.iter().map(|entry| entry.parsed()).collect();
    let choice = |target: &Target| choose(&ids, target, manner.kind_rule());
    let chosen: Vec<Option<usize>> = targets.0.iter().map(choice).collect();
    let missing: Vec<&Target> = targets
        .0
        .iter()
        .zip(&chosen)
        .filter_map(|(target, found)| found.is_none().then_some(target))
        .collect();
    // Like in LLVM, an invalid entry ID is not an error if all images have been found.
    let needed = match missing.is_empty() {
        true => chosen.iter().flatten().max().map_or(0, |last| last + 1),
        false => entries.len(),
    };
    if let Some(entry) = entries.iter().take(needed).find(|entry| !entry.is_shaped()) {
        return Err(
            LlvmToolError::new("invalid bundle id read from the bundle").with_hint(Some(format!(
                "the entry ID is `{}`, in {}",
                terminal(&entry.id),
                terminal(contents.name.as_path())
            ))),
        );
    }
    if !missing.is_empty() && !manner.allow_missing {
        return Err(not_found(&missing));
    }
    // An input without any requested image counts as the host's: it may never have been bundled.
    if missing.len() == targets.0.len() {
        let hosts = targets
            .0
            .iter()
            .map(|target| target.id.kind() == EntryKind::Host);
        return Ok(hosts
            .map(|host| {
                if host {
                    contents.whole.clone()
                } else {
                    Vec::new()
                }
            })
            .collect());
    }
    let pieces = chosen
        .into_iter()
        .map(|found| match found.map(|index| entries[index]) {
            Some(entry) if entry.stripped && manner.print => {
                eprintln!("{}", objcopy::strip(&contents.name));
                Ok(Vec::new())
            }
            Some(entry) => entry.pieces(sources, None),
            None => Ok(Vec::new()),
        });
    pieces.collect()
}

/// Returns the entry for a target: the first with the same ID, else the first that serves it.
fn choose(ids: &[Option<EntryId>], target: &Target, rule: KindRule) -> Option<usize> {
    let position = |wanted: &dyn Fn(&EntryId) -> bool| {
        let mut ids = ids.iter();
        ids.position(|id| id.as_ref().is_some_and(wanted))
    };
    position(&|id| *id == target.id).or_else(|| position(&|id| id.serves(&target.id, rule)))
}

fn not_found(missing: &[&Target]) -> LlvmToolError {
    let mut names: Vec<&str> = missing.iter().map(|target| &*target.written).collect();
    names.sort_unstable();
    let names = match &names[..] {
        [one] => (*one).to_owned(),
        [one, two] => format!("{one} and {two}"),
        [first @ .., last] => format!("{}, and {last}", first.join(", ")),
        [] => String::new(),
    };
    LlvmToolError::new(format!("Can't find bundles for {names}"))
}
