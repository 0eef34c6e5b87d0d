//! Finds folders of runtime libraries that the loader does not search.
//!
//! Distributions install `libomptarget.so` outside the loader's folders. A build script can set an rpath only for
//! programs of its own package, so a program that depends on such a package would not start.

use std::fs;
use std::path::{Path, PathBuf};

use offload_formats::container::elf::Machine;
use offload_formats::names::OffloadKind;

use crate::linker_wrapper::installed::runtimes::libraries_of;
use crate::linker_wrapper::line::arguments::{Arguments, Item};
use crate::linker_wrapper::line::family::Family;
use crate::linker_wrapper::line::host;

/// Folders that every loader searches, besides those in `/etc/ld.so.conf`.
const LOADER_FOLDERS: [&str; 4] = ["/lib", "/usr/lib", "/lib64", "/usr/lib64"];

const LOADER_LIST: &str = "/etc/ld.so.conf";

/// Finds the folders that the program needs an rpath to, for runtimes of `kinds` that the command line names or
/// that are linked from the folders `added`.
///
/// The result is empty for another machine, where folders of this one mean nothing. It has no folder that is already
/// on the command line.
pub(crate) fn find(
    kinds: &[OffloadKind],
    arguments: &Arguments,
    machine: Machine,
    added: &[PathBuf],
) -> Vec<PathBuf> {
    let no_program = arguments.relocatable || arguments.all_static || arguments.no_libraries;
    let elsewhere = arguments.sysroot.is_some() || !host::is_here(machine);
    if no_program || elsewhere || arguments.family != Family::Gnu {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut loader = None;
    for library in kinds.iter().flat_map(|kind| libraries_of(*kind)) {
        let named = arguments
            .items
            .iter()
            .any(|item| matches!(item, Item::Library { name, .. } if name.as_os_str() == *library));
        let line = arguments.library_dirs.iter().map(Path::new);
        let line = line.filter(|_| named);
        let mut dirs = added.iter().map(PathBuf::as_path).chain(line);
        let file = format!("lib{library}.so");
        let Some(file) = dirs.find_map(|dir| dir.join(&file).canonicalize().ok()) else {
            continue;
        };
        let file = origin(&file).unwrap_or(file);
        let Some(folder) = file.parent().map(Path::to_owned) else {
            continue;
        };
        let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let loader = loader.get_or_insert_with(loader_folders);
        let known = |item: &Item| matches!(item, Item::Rpath(dir) if *dir == *folder.as_os_str());
        let on_line = arguments.items.iter().any(known);
        if !loader.contains(&real) && !on_line && !found.contains(&folder) {
            found.push(folder);
        }
    }
    found
}

/// Returns the library of which `offload-build` made this copy in Cargo's target folder, where it may be gone when the program runs.
/// Links stay as they are: the loader finds the names beside them.
fn origin(copy: &Path) -> Option<PathBuf> {
    let mut note = copy.as_os_str().to_owned();
    note.push(".origin");
    let library = PathBuf::from(fs::read_to_string(note).ok()?);
    library.is_file().then_some(library)
}

/// Returns the loader's folders with links resolved.
fn loader_folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = LOADER_FOLDERS.iter().map(PathBuf::from).collect();
    let mut lists = vec![PathBuf::from(LOADER_LIST)];
    let mut read = 0;
    while let (Some(list), true) = (lists.get(read).cloned(), read < 1000) {
        read += 1;
        // The loader does not get folders from a list that it cannot read, either.
        for line in fs::read_to_string(&list).unwrap_or_default().lines() {
            match line.trim().strip_prefix("include ") {
                Some(pattern) => lists.extend(included(&list, pattern.trim())),
                None if line.trim().starts_with('/') => folders.push(line.trim().into()),
                None => {}
            }
        }
    }
    let real = folders.into_iter();
    real.filter_map(|folder| folder.canonicalize().ok())
        .collect()
}

/// Returns the files that match a pattern such as `/etc/ld.so.conf.d/*.conf`.
fn included(list: &Path, pattern: &str) -> Vec<PathBuf> {
    let pattern = list.parent().unwrap_or(Path::new("/")).join(pattern);
    let (Some(folder), Some(name)) = (pattern.parent(), pattern.file_name()) else {
        return Vec::new();
    };
    let name = name.to_string_lossy();
    let Some((start, end)) = name.split_once('*') else {
        return vec![pattern];
    };
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let fits = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(start) && name.ends_with(end)
    };
    files.map(|file| file.path()).filter(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    #[test]
    fn needs_an_rpath_only_outside_of_the_loaders_folders() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (real, links) = (dir.join("a,b"), dir.join("links"));
        for folder in [&real, &links] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(real.join("libomptarget.so"), "").unwrap();
        let link = links.join("libomptarget.so");
        std::os::unix::fs::symlink(real.join("libomptarget.so"), link).unwrap();
        let named = [format!("-L{}", links.display()), "-lomptarget".to_owned()];
        let needed = |more: &[&str]| {
            let line = named.iter().map(String::as_str).chain(more.iter().copied());
            let line: Vec<OsString> = line.map(OsString::from).collect();
            let arguments = Arguments::parse(line, "offload-link").unwrap();
            let machine = host::machine(&arguments, None);
            find(&[OffloadKind::OPENMP], &arguments, machine, &[])
        };
        assert_eq!(needed(&[]), std::slice::from_ref(&real));
        // A copy of a build script, with the place of the library or of none.
        let copies = links;
        fs::remove_file(copies.join("libomptarget.so")).unwrap();
        fs::write(copies.join("libomptarget.so"), "").unwrap();
        let note = copies.join("libomptarget.so.origin");
        for (library, expected) in [
            ("a,b/libomptarget.so", &real),
            ("gone/libomptarget.so", &copies),
        ] {
            fs::write(&note, dir.join(library).to_str().unwrap()).unwrap();
            assert_eq!(needed(&[]), std::slice::from_ref(expected));
        }
        fs::write(&note, real.join("libomptarget.so").to_str().unwrap()).unwrap();
        for decided in ["-static", "-r", "-nostdlib", "--sysroot=/x"] {
            assert!(needed(&[decided]).is_empty(), "{decided}");
        }
        let on_line = format!("-Wl,-rpath={}", dir.join("other").display());
        assert_eq!(needed(&[&on_line]).len(), 1);
        let foreign = ["--target=aarch64-unknown-linux-gnu"];
        assert!(cfg!(target_arch = "aarch64") || needed(&foreign).is_empty());
        let [one, two, three, four] = ["-Xlinker", "-rpath", "-Xlinker", real.to_str().unwrap()];
        assert!(needed(&[one, two, three, four]).is_empty());
    }

    #[test]
    fn knows_the_folders_of_the_loader() {
        let folders = loader_folders();
        assert!(folders.contains(&Path::new("/usr/lib").canonicalize().unwrap()));
        assert!(!folders.contains(&PathBuf::from("/usr/lib/llvm-19/lib")));
    }
}
