//! The sources that a module's patterns find, and where a new file would be one.

use super::{Flags, wrong};
use crate::error::Error;
use crate::language::Language;
use crate::settings::{Reach, Settings};
use std::path::{Path, PathBuf};

/// Those that patterns find, sorted; what is watched for new ones goes to `watched`. Then warnings.
pub(super) fn sources(
    settings: &Settings,
    language: Language,
    root: &Path,
    out: &Path,
    own: &Flags,
    watched: &mut Vec<PathBuf>,
) -> Result<(Vec<PathBuf>, Vec<String>), Error> {
    let mut found = Vec::new();
    for text in settings.list("sources") {
        let problem =
            |problem: String| wrong(settings, "sources", format_args!("`{text}`: {problem}"));
        let pattern = match Path::new(text).is_absolute() {
            true => text.clone(),
            false => format!("{}/{text}", glob::Pattern::escape(&root.to_string_lossy())),
        };
        let star = text.find(['*', '?', '[']);
        let matches = glob::glob(&pattern).map_err(|error| problem(error.to_string()))?;
        let before = found.len();
        for path in matches {
            let path = path.map_err(|error| problem(error.to_string()))?;
            // What a pattern finds there was made by some build script.
            let made = star.is_some()
                && target_folder(root, out).is_some_and(|made| path.starts_with(made));
            if path.is_file() && !made {
                found.push(path);
            }
        }
        if found.len() == before {
            return Err(problem("no such file".to_owned()));
        }
        if let Some(star) = star {
            let (fixed, rest) = text.split_at(star);
            let folder = root.join(fixed.rsplit_once('/').map_or("", |(folder, _)| folder));
            watched.extend(watch(&folder, out, rest.contains('/')));
        }
    }
    let warnings = unmatched(settings, &own.exclude, root, &found);
    found.retain(|path| !excluded(&own.exclude, root, path));
    found.sort();
    found.dedup();
    if !own.flags.iter().any(|flag| flag.starts_with("-x")) {
        let known = language.extensions();
        let is_unknown = |path: &&PathBuf| {
            let extension = path.extension().unwrap_or_default();
            let mut known = known.iter().flatten().peekable();
            known.peek().is_some() && !known.any(|known| extension == *known)
        };
        if let Some(path) = found.iter().find(is_unknown) {
            let shown = path.strip_prefix(root).unwrap_or(path).display();
            let (name, known) = (language.name(), known.unwrap_or_default().join("`, `."));
            let problem = format!("`{shown}` is no source of `{name}` (`.{known}` are)");
            return Err(wrong(settings, "sources", problem));
        }
    }
    Ok((found, warnings))
}

/// What is said of patterns of `exclude`, written for this module, that leave no source out.
pub(super) fn unmatched(
    settings: &Settings,
    exclude: &[glob::Pattern],
    root: &Path,
    sources: &[PathBuf],
) -> Vec<String> {
    let entry = settings.entry("exclude");
    let Some(entry) = entry.filter(|entry| entry.reach == Reach::Module) else {
        return Vec::new();
    };
    let own = settings.list("exclude");
    let is_own = |pattern: &&glob::Pattern| {
        own.iter()
            .any(|text| text.trim_start_matches("./") == pattern.as_str())
    };
    let is_unmatched = |pattern: &&glob::Pattern| {
        let pattern = std::slice::from_ref(*pattern);
        !sources.iter().any(|path| excluded(pattern, root, path))
    };
    let patterns = exclude.iter().filter(is_own).filter(is_unmatched);
    patterns
        .map(|pattern| {
            format!(
                "{}: `exclude`: `{pattern}` leaves out no source",
                entry.origin
            )
        })
        .collect()
}

/// The folder of the package, if any, in which Cargo builds.
fn target_folder(root: &Path, out: &Path) -> Option<PathBuf> {
    let below = out.strip_prefix(root).ok()?;
    Some(root.join(below.components().next()?))
}

/// What is watched for new files in `folder`, and in the folders below it when `deep`.
///
/// Cargo watches a folder with everything in it: one in which it builds itself would change with every build.
fn watch(folder: &Path, out: &Path, deep: bool) -> Vec<PathBuf> {
    if !out.starts_with(folder) {
        return vec![folder.to_owned()];
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let beside = entries.map(|entry| entry.path()).filter(|path| {
        let hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        deep && path.is_dir() && !hidden && !out.starts_with(path)
    });
    let mut beside: Vec<PathBuf> = beside.collect();
    beside.sort();
    beside
}

/// Whether `path` is one of those that `exclude` names, relative to the package.
pub(crate) fn excluded(exclude: &[glob::Pattern], root: &Path, path: &Path) -> bool {
    let relative = path.strip_prefix(root).unwrap_or(path);
    exclude.iter().any(|pattern| pattern.matches_path(relative))
}
