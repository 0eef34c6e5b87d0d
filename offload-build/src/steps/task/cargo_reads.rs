//! Files that a Cargo which a task started has read.
//!
//! Cargo takes a file for unchanged if it is older than what was made of it, whatever its content is: one that `mv` or `cp -p` put in
//! its place. In Cargo's folder lies the digest of each file as it was when Cargo last ran, in lines `<MD5> <path>`.

use crate::steps::digests::Digests;
use crate::steps::folder;
use crate::steps::task::cargo_lists::CargoLists;
use crate::steps::task::depfile;
use offload_build_core::error::{self, Error};
use offload_build_core::files;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Name of the list in Cargo's folder.
const LIST: &str = "offload-reads.txt";

/// Returns the files that Cargo has read in its folder, before it runs again. The folder is removed if Cargo would not notice what
/// changed since, or nobody knows.
pub(crate) fn take(folder: &Path, digests: &Digests) -> Result<Vec<PathBuf>, Error> {
    let list = folder.join(LIST);
    let time = modified(&list);
    let lines = fs::read_to_string(&list).unwrap_or_default();
    let lines = lines.lines().filter_map(|line| line.split_once(' '));
    let known: Vec<(&str, PathBuf)> = lines
        .map(|(digest, path)| (digest, PathBuf::from(path)))
        .collect();
    let is_noticed = |(digest, path): &(&str, PathBuf)| {
        let now = digests.of_now(path);
        now.is_none_or(|now| now == *digest) || newest(path) > time
    };
    // Without it, a Cargo that is interrupted may have read anything.
    let removed = match known.is_empty() || !known.iter().all(is_noticed) {
        true => remove(folder),
        false => files::remove(&list),
    };
    removed.map_err(error::io(folder))?;
    Ok(known.into_iter().map(|(_, path)| path).collect())
}

/// Returns the files that Cargo has read in its folder for what it made before it failed. Nothing if it is not known of one.
///
/// Relative names begin in the root of a workspace or in the folder of a crate; their manifests are among `inputs`. Those of packages
/// from a registry do not change.
pub(crate) fn of_parts(folder: &Path, inputs: &[PathBuf]) -> Option<Vec<PathBuf>> {
    let lists = CargoLists::of(folder);
    let manifests = inputs.iter().filter(|path| path.ends_with("Cargo.toml"));
    let roots: Vec<&Path> = manifests.filter_map(|path| path.parent()).collect();
    let named = |path: &str| -> Vec<PathBuf> {
        let paths = roots.iter().map(|root| root.join(path));
        // What is around Cargo's folder changes in each build.
        let is_apart = |path: &PathBuf| path.exists() && !folder.starts_with(path);
        paths.filter(is_apart).collect()
    };
    let mut found = Vec::new();
    for path in lists.crates.iter().flat_map(|text| depfile::parse(text)) {
        let paths = named(&path);
        if paths.is_empty() {
            return None;
        }
        found.extend(paths);
    }
    found.extend(lists.said("rerun-if-changed").flat_map(named));
    Some(found)
}

/// Keeps the digests of the files that Cargo has read in its folder.
pub(crate) fn keep(folder: &Path, reads: &[PathBuf], digests: &Digests) -> Result<(), Error> {
    let line = |path: &PathBuf| Some(format!("{} {}\n", digests.of(path)?, path.display()));
    let lines: String = reads.iter().filter_map(line).collect();
    let list = folder.join(LIST);
    files::write(&list, lines.as_bytes()).map_err(error::io(&list))
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Returns the time of the last write of a file, or of what is below a folder.
fn newest(path: &Path) -> Option<SystemTime> {
    let below = folder::below(path).unwrap_or_default();
    let all = below.iter().map(PathBuf::as_path).chain([path]);
    all.filter_map(modified).max()
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_what_cargo_made_of_nobody_knows_which_files() {
        let bench = tempfile::tempdir().unwrap();
        let folder = bench.path().join("cargo");
        let made = folder.join("release/made");
        let source = bench.path().join("lib.rs");
        fs::write(&source, "").unwrap();
        let digests = Digests::default();
        let make = || {
            fs::create_dir_all(made.parent().unwrap()).unwrap();
            fs::write(&made, "").unwrap();
        };
        make();
        keep(&folder, std::slice::from_ref(&source), &digests).unwrap();
        assert_eq!(
            take(&folder, &digests).unwrap(),
            std::slice::from_ref(&source)
        );
        assert!(made.is_file());
        // The Cargo that ran then was interrupted: it left no list.
        assert!(take(&folder, &digests).unwrap().is_empty());
        assert!(!folder.exists());
        // It failed, and the files of one crate are not known.
        make();
        keep(&folder, &[], &digests).unwrap();
        assert!(take(&folder, &digests).unwrap().is_empty());
        assert!(!folder.exists());
    }
}
