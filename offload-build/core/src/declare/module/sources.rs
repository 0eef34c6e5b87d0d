//! The sources that a module's patterns find, and where a new file would be one.

use crate::declare::language::Language;
use crate::declare::module::flags::Flags;
use crate::declare::module::matches::{is_cache, matches};
use crate::declare::settings::{Reach, Settings};
use crate::error;
use crate::error::Error;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the sources that patterns find, sorted, and warnings; folders that are watched for new ones go to `watched`.
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
            |problem: String| settings.error_at("sources", format_args!("`{text}`: {problem}"));
        // A file of that very name is meant, whatever it says as a pattern.
        let is_plain = root.join(text).is_file();
        let escaped = glob::Pattern::escape;
        let named = if is_plain {
            escaped(text)
        } else {
            text.clone()
        };
        let pattern = match Path::new(text).is_absolute() {
            true => named,
            false => format!("{}/{named}", escaped(&root.to_string_lossy())),
        };
        let star = first_wildcard(text).filter(|_| !is_plain);
        let folder_of_files = star.map(|star| root.join(fixed_folder(text, star)));
        let matches = matches(&pattern, folder_of_files.as_deref()).map_err(problem)?;
        let before = found.len();
        let mut folder = false;
        for path in matches {
            let other = |folder: &PathBuf| is_of_other_scripts(&path, folder, out);
            if folder_of_files.as_ref().is_some_and(other) || is_lock(&path) {
                continue;
            }
            let data = match std::fs::metadata(&path) {
                Ok(data) => data,
                // The system follows no more links; the file was found by a shorter way.
                Err(_) if is_in_loop(&path) => continue,
                Err(error) => return Err(problem(format!("{}: {error}", path.display()))),
            };
            match data.is_dir() {
                true => folder = true,
                false if data.is_file() => found.push(path),
                false => return Err(problem(format!("{}: not a file", path.display()))),
            }
        }
        if found.len() == before {
            let text = text.as_str();
            let problem = match folder && star.is_none() {
                true => is_folder(text, language),
                false => no_file(text, star.is_some(), root),
            };
            return Err(settings.error_at("sources", problem));
        }
        if let Some((star, folder)) = star.zip(folder_of_files) {
            let depth = Depth::of(&text[star..]);
            watched.extend(watch(&folder, out, depth).map_err(error::io(&folder))?);
        }
    }
    let warnings = unmatched(settings, &own.exclude, root, &found);
    let had_some = !found.is_empty();
    found.retain(|path| !excluded(&own.exclude, root, path));
    if had_some && found.is_empty() {
        return Err(settings.error_at("exclude", "`exclude` leaves out every source of the module"));
    }
    let found = each_once(found)?;
    check_extensions(settings, language, root, own, &found)?;
    Ok((found, warnings))
}

/// Returns the problem of a folder in place of a pattern.
fn is_folder(text: &str, language: Language) -> String {
    let known = language.extensions().unwrap_or_default();
    let extension = known.first().unwrap_or(&"*");
    let slash = if text.is_empty() { "" } else { "/" };
    let inside = text.trim_end_matches('/').to_owned() + slash;
    format!(
        "`{text}`: a folder\nhint: `{inside}*.{extension}` lists its sources, `{inside}**/*.{extension}` also those of \
         folders in it"
    )
}

/// Returns the problem of a file or pattern that finds nothing in `root`.
fn no_file(text: &str, is_pattern: bool, root: &Path) -> String {
    let problem = match is_pattern {
        true if Path::new(text).is_absolute() => format!("no file matches `{text}` [OFF506]"),
        true => format!("no file matches `{text}` in {} [OFF506]", root.display()),
        false => format!("`{text}`: no such file [OFF506]"),
    };
    match text.contains('{') {
        true => problem + "\nhint: list one pattern for each: braces are not supported",
        false => problem,
    }
}

/// Returns where the first wildcard of a pattern is. `[[]`, as the value of a variable may contain it, is a plain `[`.
fn first_wildcard(pattern: &str) -> Option<usize> {
    let mut offset = 0;
    while let Some(found) = pattern[offset..].find(['*', '?', '[']) {
        offset += found;
        let mut after = pattern[offset + 1..].chars();
        let is_escaped = after.next().is_some_and(|byte| "[]*?".contains(byte));
        if !pattern[offset..].starts_with('[') || !is_escaped || after.next() != Some(']') {
            return Some(offset);
        }
        offset += "[[]".len();
    }
    None
}

/// Returns the folder that a pattern names before the wildcard at `star`.
fn fixed_folder(pattern: &str, star: usize) -> String {
    let folder = pattern[..star]
        .rsplit_once('/')
        .map_or("", |(folder, _)| folder);
    let mut plain = String::new();
    let mut rest = folder;
    while let Some((before, after)) = rest.split_once('[') {
        // The wildcard comes later, so this is one of `[[]`, `[]]`, `[*]` and `[?]`.
        let (byte, after) = after.split_at(1);
        plain.push_str(before);
        plain.push_str(byte);
        rest = &after[1..];
    }
    plain + rest
}

/// Tells whether `path` is in a folder that a pattern for files of `folder` is not meant for: intermediate files, a target
/// folder of Cargo's, or another folder that is marked as a cache.
fn is_of_other_scripts(path: &Path, folder: &Path, out: &Path) -> bool {
    let Ok(relative) = path.strip_prefix(folder) else {
        return false;
    };
    let (folder, out) = (real(folder), real(out));
    let path = folder.join(relative);
    let target = target_folder(&folder, &out);
    let between = path.ancestors().skip(1);
    let mut between = between.take_while(|around| *around != folder);
    path.starts_with(out.join("offload"))
        || target.is_some_and(|target| path.starts_with(target))
        || between.any(is_cache)
}

/// Returns the path without links and `..`.
fn real(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

/// Tells whether an extension is usual for kernels in C++. Programs for CUDA and OpenMP often share such files.
fn of_other_kernels(extension: &OsStr) -> bool {
    extension == "cu" || extension == "hip"
}

/// Checks that sources have extensions of their language, unless a flag names it.
fn check_extensions(
    settings: &Settings,
    language: Language,
    root: &Path,
    own: &Flags,
    found: &[PathBuf],
) -> Result<(), Error> {
    if own.named_language(root).is_none() {
        let known = language.extensions();
        let is_unknown = |path: &&PathBuf| {
            let extension = path.extension().unwrap_or_default();
            let mut known = known.iter().flatten().peekable();
            known.peek().is_some() && !known.any(|known| extension == *known)
        };
        if let Some(path) = found.iter().find(is_unknown) {
            let path = path.strip_prefix(root).unwrap_or(path);
            let known = known.expect("a source is unknown where others are known");
            let own = known.first().copied().unwrap_or_default();
            let (name, known, shown) = (language.name(), known.join("`, `."), path.display());
            let mut problem = format!("`{shown}` is not a source of `{name}` (`.{known}` are)");
            let is_c = path.extension().is_some_and(|extension| extension == "c");
            if is_c && matches!(language, Language::Hip | Language::Cuda) {
                let renamed = path.with_extension(own);
                problem += &format!(
                    "\nhint: if it has device code, name it `{}`: kernels are C++; else compile it with the crate `cc` in the build \
                     script, and leave it out here: `exclude = [\"{shown}\"]`",
                    renamed.display()
                );
            } else if language == Language::OpenMp && path.extension().is_some_and(of_other_kernels)
            {
                problem += "\nhint: with `flags = [\"-x\", \"c++\"]` every source is C++, whatever its name";
            }
            return Err(settings.error_at("sources", problem));
        }
    }
    Ok(())
}

/// Tells whether a file is a lock of Emacs: a dangling link beside a file that is being edited.
fn is_lock(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b".#") && path.is_symlink()
}

/// Tells whether a folder of `path` is a link to a folder around it.
fn is_in_loop(path: &Path) -> bool {
    path.ancestors().skip(1).any(|folder| {
        let around = folder
            .parent()
            .and_then(|parent| parent.canonicalize().ok());
        let real = folder.canonicalize().ok();
        folder.is_symlink()
            && around
                .zip(real)
                .is_some_and(|(around, real)| around.starts_with(real))
    })
}

/// Returns each file once, sorted: links may lead to one in several ways, and if they form a loop, in many. The
/// shortest
/// way is kept.
fn each_once(mut paths: Vec<PathBuf>) -> Result<Vec<PathBuf>, Error> {
    paths.sort_by_cached_key(|path| (path.components().count(), path.clone()));
    let mut seen = BTreeSet::new();
    let mut kept = Vec::new();
    for path in paths {
        if seen.insert(path.canonicalize().map_err(error::io(&path))?) {
            kept.push(path);
        }
    }
    kept.sort();
    Ok(kept)
}

/// Returns warnings about patterns of `exclude`, written for this module, that leave no source out.
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
    // Other tools compare names of files.
    let in_folders = |pattern: &glob::Pattern| {
        let pattern = glob::Pattern::new(&format!("*/{pattern}")).ok()?;
        let matches = !is_unmatched(&&pattern);
        matches.then(|| format!("; did you mean `{pattern}`?"))
    };
    let patterns = exclude.iter().filter(is_own).filter(is_unmatched);
    patterns
        .map(|pattern| {
            let meant = in_folders(pattern).unwrap_or_default();
            format!(
                "{}: `exclude`: `{pattern}` leaves out no source{meant}",
                entry.origin
            )
        })
        .collect()
}

/// Returns the folder below `folder`, if any, in which Cargo builds. Cargo marks it if it makes it.
fn target_folder(folder: &Path, out: &Path) -> Option<PathBuf> {
    let below = out.strip_prefix(folder).ok()?;
    let first = folder.join(below.components().next()?);
    let around: Vec<&Path> = out.ancestors().take_while(|path| *path != folder).collect();
    let marked = around.into_iter().rev().find(|path| is_cache(path));
    Some(marked.map_or(first, Path::to_owned))
}

/// The folders that a pattern reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depth {
    /// The one before its first wildcard.
    One,
    /// Folders below it, too.
    All,
}

impl Depth {
    /// Returns the depth of a pattern from its first wildcard on.
    fn of(rest: &str) -> Self {
        match rest.contains('/') {
            true => Self::All,
            false => Self::One,
        }
    }
}

/// Returns the folders to watch for new files: `folder`, and those below it if the pattern reaches there.
///
/// Cargo watches a folder with everything in it: one in which it builds itself would change with every build. So would one in which
/// the build script writes sources.
fn watch(folder: &Path, out: &Path, depth: Depth) -> io::Result<Vec<PathBuf>> {
    let (real_folder, out) = (real(folder), real(out));
    if real_folder.starts_with(&out) {
        return Ok(Vec::new());
    }
    let Some(target) = target_folder(&real_folder, &out) else {
        return Ok(vec![folder.to_owned()]);
    };
    let mut beside = Vec::new();
    let mut around = Some((folder.to_owned(), real_folder)).filter(|_| depth == Depth::All);
    while let Some((folder, real_folder)) = around.take() {
        for entry in folder.read_dir()? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default();
            let real_path = real_folder.join(name);
            let hidden = name.as_encoded_bytes().starts_with(b".");
            if !path.is_dir() || real_path == target {
                continue;
            }
            if target.starts_with(&real_path) && !hidden {
                around = Some((path, real_path));
            } else if !hidden && !is_cache(&path) {
                beside.push(path);
            }
        }
    }
    beside.sort();
    Ok(beside)
}

/// Tells whether `exclude` names `path`, relative to the package.
pub fn excluded(exclude: &[glob::Pattern], root: &Path, path: &Path) -> bool {
    let relative = path.strip_prefix(root).unwrap_or(path);
    exclude.iter().any(|pattern| pattern.matches_path(relative))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn leaves_out_target_folders_and_watches_what_is_beside_them() {
        let temporary = tempfile::tempdir().unwrap();
        let at = |path: &str| temporary.path().join(path);
        for file in [
            "app/kernels/a.cu",
            "app/gpu/src/b.cu",
            "app/gpu/target/debug/build/app-1/out/c.cu",
            "app/gpu/target/debug/build/app-1/out/offload/d.cu",
            "app/target-ci/package/app/e.cu",
            "app/.git/f.cu",
            "other/g.cu",
        ] {
            fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            fs::write(at(file), "").unwrap();
        }
        fs::write(at("app/target-ci/CACHEDIR.TAG"), "").unwrap();
        let out = at("app/gpu/target/debug/build/app-1/out");
        let found = |folder: &str, pattern: &str| {
            let folder = at(folder);
            let pattern = format!("{}/{pattern}", folder.display());
            let mut found = matches(&pattern, Some(&folder)).unwrap();
            found.retain(|path| !is_of_other_scripts(path, &folder, &out));
            found.sort();
            let names = found.iter().map(|path| path.file_stem().unwrap());
            names.map(|name| name.to_str().unwrap()).collect::<String>()
        };
        let watched = |folder: &str, depth| {
            let folder = at(folder);
            let watched = watch(&folder, &out, depth).unwrap();
            let names = watched
                .iter()
                .map(|path| path.strip_prefix(&folder).unwrap());
            let names: Vec<_> = names
                .map(|path| Path::new(".").join(path).to_str().unwrap().to_owned())
                .collect();
            names.join(" ")
        };
        // Somebody made the folder before Cargo did: it is not marked.
        assert_eq!(found("app", "**/*.cu"), "fa");
        assert_eq!(watched("app", Depth::All), "./kernels");
        fs::write(at("app/gpu/target/CACHEDIR.TAG"), "").unwrap();
        for folder in ["app", "other/../app"] {
            assert_eq!(found(folder, "**/*.cu"), "fba");
            assert_eq!(found(folder, "*/*.cu"), "fa");
            assert_eq!(found(folder, "*/*/*/*.cu"), "");
            assert_eq!(watched(folder, Depth::All), "./gpu/src ./kernels");
            assert_eq!(watched(folder, Depth::One), "");
        }
        assert_eq!(found("app/..", "**/*.cu"), "fbag");
        assert_eq!(
            watched("app/..", Depth::All),
            "./app/gpu/src ./app/kernels ./other"
        );
        // The build script wrote them for itself.
        let own = "app/gpu/target/debug/build/app-1/out";
        assert_eq!(found(own, "**/*.cu"), "c");
        assert_eq!(watched(own, Depth::All), "");
        assert_eq!(watched("other", Depth::One), "./");
    }
}
