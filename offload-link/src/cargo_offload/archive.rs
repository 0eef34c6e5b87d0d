//! `cargo offload archive`: archives of bundles (HDAs) and device archives.
//!
//! | command | from                            | to                                      |
//! |---------|---------------------------------|-----------------------------------------|
//! | `list`  | any archive                     | a line for each member and target       |
//! | `check` | archives of bundles             | an error, or nothing; `check.rs`        |
//! | `split` | an archive of bundles           | an archive for each target              |
//! | `merge` | an archive for each target, and perhaps the host's | an archive of bundles |
//!
//! Specification: `docs/spec/bundler.md` §5; for the names of split archives, `docs/spec/linker-wrapper.md` §7.4.

mod check;
mod line;
mod merge;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write;
use std::path::{Path, PathBuf};

use anstyle::Style;
use offload_formats::escape::{terminal, terminal_lines};
use offload_formats::names::library_name::{self, LibraryName};
use offload_formats::names::{EntryId, EntryKind};

use crate::bundler::{self, BundleForm, Contents};
use crate::cargo_offload::error::CargoOffloadError;
use crate::cargo_offload::text::{self, Align, TextTable};
use crate::llvm_tool::{Sources, outputs};
pub(super) use line::ArchiveLine;
use line::{ArchiveCommand, SplitLine};

/// Runs the command.
pub(super) fn run(line: &ArchiveLine, out: &mut impl Write) -> Result<(), CargoOffloadError> {
    match &line.command {
        ArchiveCommand::List(line) => {
            let limit = line.limit.value()?.files();
            let mut files = line.files.iter();
            files.try_for_each(|path| list(path, limit, out))
        }
        ArchiveCommand::Check(line) => {
            let limit = line.limit.value()?.files();
            let mut files = line.files.iter();
            files.try_for_each(|path| check::check(path, limit))
        }
        ArchiveCommand::Split(line) => split(line, out),
        ArchiveCommand::Merge(line) => merge::run(line),
    }
}

fn list(path: &Path, limit: u64, out: &mut impl Write) -> Result<(), CargoOffloadError> {
    let mut sources = Sources::default();
    let contents =
        bundler::read_archive(path, limit, &mut sources).map_err(CargoOffloadError::new)?;
    let plain = Style::new();
    let mut table = TextTable::new([
        (Align::Left, plain),
        (Align::Left, plain),
        (Align::Left, text::TARGET),
        (Align::Right, plain),
        (Align::Left, plain),
    ]);
    table.push(["member", "kind", "target", "size", "form"]);
    let mut count = 0;
    // All members of an archive have the same few targets.
    let mut targets: HashMap<&str, (&str, String)> = HashMap::new();
    for bundle in &contents.bundles {
        let member = terminal(bundle.member.as_deref().unwrap_or_default()).to_string();
        for entry in &bundle.entries {
            let (kind, target) = targets.entry(&entry.id).or_insert_with(|| {
                let id = entry.parsed();
                let kind = id.as_ref().map_or("?", |id| id.kind().name());
                let target = id.as_ref().map_or_else(|| entry.id.clone(), target_text);
                (kind, terminal(&target).to_string())
            });
            let form = match (bundle.form, &bundle.compressed) {
                (BundleForm::Object, _) => "section",
                (BundleForm::Text, _) => "text",
                (BundleForm::Binary, Some(_)) => "compressed",
                (BundleForm::Binary, None) => "bundle",
            };
            count += 1;
            table.push([
                Cow::Owned(member.clone()),
                Cow::Borrowed(*kind),
                Cow::Owned(target.clone()),
                Cow::Owned((entry.range.end - entry.range.start).to_string()),
                Cow::Borrowed(form),
            ]);
        }
    }
    let written = match count {
        0 => writeln!(out, "{}: no bundles", terminal(path)),
        _ => writeln!(out, "{}: {count} entries", terminal(path))
            .and_then(|()| table.print("  ", out)),
    };
    written.map_err(CargoOffloadError::unwritten)
}

/// Returns triple and target ID in the form for people.
fn target_text(id: &EntryId) -> String {
    let triple = id.triple().as_str().trim_end_matches('-').to_owned();
    match id.target_id() {
        "" => triple,
        target_id => format!("{triple} {target_id}"),
    }
}

fn split(line: &SplitLine, out: &mut impl Write) -> Result<(), CargoOffloadError> {
    let file = line.file.as_path();
    let limit = line.limit.value()?.files();
    let mut sources = Sources::default();
    let contents =
        bundler::read_archive(file, limit, &mut sources).map_err(CargoOffloadError::new)?;
    bundler::check_archive(&contents).map_err(CargoOffloadError::new)?;
    refuse_texts(&contents)?;
    let ids = targets(&contents, &line.targets, file)?;
    let folder = line.out.clone().unwrap_or_default();
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = LibraryName::parse(&stem).name;
    let paths: Vec<PathBuf> = ids
        .iter()
        .map(|id| folder.join(file_name(name, id)))
        .collect();
    let mut taken = BTreeSet::new();
    if let Some(path) = paths.iter().find(|path| !taken.insert(*path)) {
        return Err(CargoOffloadError::new(format_args!(
            "{}: two targets have the same file name, {}",
            terminal(file),
            terminal(path.as_path())
        )));
    }
    let warn = |text: String| {
        let text = terminal_lines(&text);
        eprintln!("cargo offload archive: warning: {text}");
    };
    let mut planned = Vec::new();
    // Splits for one target at a time: targets that exclude each other in a bundle may be in different members.
    for (id, path) in ids.iter().zip(&paths) {
        let outputs =
            bundler::split_archive(&contents, &id.to_string(), path, limit, &mut sources, &warn);
        planned.extend(outputs.map_err(CargoOffloadError::new)?);
    }
    for bundle in &contents.bundles {
        for entry in bundle
            .entries
            .iter()
            .filter(|entry| entry.parsed().is_none())
        {
            warn(format!(
                "{}: member `{}`: entry `{}` has an unknown kind and is not in any archive",
                terminal(file),
                terminal(bundle.member.as_deref().unwrap_or_default()),
                terminal(&entry.id)
            ));
        }
    }
    if let Some(folder) = &line.out {
        let made = std::fs::create_dir_all(folder);
        made.map_err(|problem| CargoOffloadError::of(folder, problem))?;
    }
    outputs::write(&planned, &sources).map_err(CargoOffloadError::new)?;
    for path in paths {
        writeln!(out, "{}", terminal(path.as_path())).map_err(CargoOffloadError::unwritten)?;
    }
    Ok(())
}

/// Refuses text: it is for compilers, and linkers do not find it in an archive.
fn refuse_texts(contents: &Contents) -> Result<(), CargoOffloadError> {
    let mut bundles = contents.bundles.iter();
    let Some(text) = bundles.find(|bundle| bundle.form == BundleForm::Text) else {
        return Ok(());
    };
    Err(CargoOffloadError::new(format_args!(
        "{}: member `{}`: entry `{}` is text, which no linker finds in an archive\nhint: compile it with -c and without -S",
        terminal(contents.name.as_path()),
        terminal(text.member.as_deref().unwrap_or_default()),
        terminal(text.entries.first().map_or("", |entry| &entry.id))
    )))
}

/// Returns the requested targets of the archive, each once; without a request, all of them.
fn targets(
    contents: &Contents,
    wanted: &[String],
    file: &Path,
) -> Result<Vec<EntryId>, CargoOffloadError> {
    let mut known: BTreeMap<String, EntryId> = BTreeMap::new();
    for id in contents.entries().filter_map(|entry| entry.parsed()) {
        // Kinds that serve each other share an archive.
        if id.kind() != EntryKind::Host {
            known.entry(target_text(&id)).or_insert(id);
        }
    }
    if known.is_empty() {
        return Err(CargoOffloadError::new(format_args!(
            "{}: no images for devices",
            terminal(file)
        )));
    }
    if wanted.is_empty() {
        return Ok(known.into_values().collect());
    }
    let mut found: Vec<EntryId> = Vec::new();
    for wanted in wanted {
        let id = target(contents, &known, wanted, file)?;
        if !found.contains(&id) {
            found.push(id);
        }
    }
    Ok(found)
}

/// Returns a requested target. `known` are those of the archive.
fn target(
    contents: &Contents,
    known: &BTreeMap<String, EntryId>,
    wanted: &str,
    file: &Path,
) -> Result<EntryId, CargoOffloadError> {
    let host = || {
        let mut ids = contents.entries().filter_map(|entry| entry.parsed());
        ids.find(|id| id.kind() == EntryKind::Host)
    };
    if let ("host", Some(id)) = (wanted, host()) {
        return Ok(id);
    }
    let same = |id: &&EntryId| id.target_id() == wanted || id.as_str() == wanted;
    if let Some(id) = known.values().find(same) {
        return Ok(id.clone());
    }
    // Another target is possible, which images of the archive may serve.
    EntryId::parse_target(wanted).map_err(|_| {
        let has: Vec<String> = known.keys().map(|id| terminal(id).to_string()).collect();
        CargoOffloadError::new(format_args!(
            "{}: no images for `{wanted}`; it has {}",
            terminal(file),
            has.join(", ")
        ))
    })
}

/// Returns the file name that linkers look for.
fn file_name(library: &str, id: &EntryId) -> String {
    match id.kind() {
        EntryKind::Host => format!("lib{library}-host.a"),
        _ => library_name::file_name(library, id.triple(), id.target_id()),
    }
}
