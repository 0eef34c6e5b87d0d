//! Files and folders that a pattern matches.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The most times that one folder occurs in a path. Links may form loops, and each loop more doubles what there is to find.
const MOST_TIMES: usize = 2;

/// Returns the paths that a pattern matches. `folder` is the one before its first wildcard.
///
/// # Errors
///
/// If the pattern is invalid or a folder cannot be read; the text says which.
pub(super) fn matches(pattern: &str, folder: Option<&Path>) -> Result<Vec<PathBuf>, String> {
    let parsed = || glob::Pattern::new(pattern).map_err(|error| error.to_string());
    let Some(folder) = folder.filter(|_| pattern.contains("**")) else {
        let found = glob::glob(pattern).map_err(|error| error.to_string())?;
        let found = found.map(|path| path.map_err(|error| error.to_string()));
        let beside = folder.and_then(|folder| fs::read_dir(folder).ok());
        let beside = beside.into_iter().flatten().flatten();
        check_names(beside.map(|entry| entry.path()), &parsed()?)?;
        return found.collect();
    };
    // At the end it stands for folders.
    let has_files = !pattern.ends_with("**");
    let pattern = parsed()?;
    let mut all = Vec::new();
    collect(folder, &mut Vec::new(), &mut all)?;
    check_names(all.iter().cloned(), &pattern)?;
    all.retain(|path| pattern.matches_path_with(path, OPTIONS) && (has_files || path.is_dir()));
    Ok(all)
}

const OPTIONS: glob::MatchOptions = glob::MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// Checks that no path that is not UTF-8 would match: patterns do not find them.
fn check_names(
    mut paths: impl Iterator<Item = PathBuf>,
    pattern: &glob::Pattern,
) -> Result<(), String> {
    let is_lost = |path: &PathBuf| {
        let text = path.to_string_lossy();
        path.to_str().is_none() && pattern.matches_with(&text, OPTIONS)
    };
    match paths.find(is_lost) {
        Some(path) => Err(format!("{}: its path is not UTF-8", path.display())),
        None => Ok(()),
    }
}

/// Collects what is below a folder, also behind links; `around` are the folders on the way, without links.
fn collect(folder: &Path, around: &mut Vec<PathBuf>, all: &mut Vec<PathBuf>) -> Result<(), String> {
    let wrong = |error: io::Error| format!("{}: {error}", folder.display());
    let Some(real) = real_folder(folder).map_err(wrong)? else {
        return Ok(());
    };
    if around.iter().filter(|other| **other == real).count() >= MOST_TIMES {
        return Ok(());
    }
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        // Another process removes what it made, such as a compiler in Cargo's target folder.
        Err(error) if leads_nowhere(&error) => return Ok(()),
        Err(error) => return Err(wrong(error)),
    };
    around.push(real);
    for entry in entries {
        let entry = entry.map_err(wrong)?;
        let path = entry.path();
        let kind = entry.file_type().map_err(wrong)?;
        if (kind.is_dir() || kind.is_symlink()) && !is_cache(&path) {
            collect(&path, around, all)?;
        }
        all.push(path);
    }
    around.pop();
    Ok(())
}

/// Tells whether a folder is one of files that a tool makes again: Cargo marks its target folders
/// (<https://bford.info/cachedir/>), and CMake, Meson and Ninja leave these files.
pub(super) fn is_cache(folder: &Path) -> bool {
    const MARKS: [&str; 3] = ["CACHEDIR.TAG", "CMakeCache.txt", "build.ninja"];
    MARKS.iter().any(|mark| folder.join(mark).is_file())
}

/// Returns the path of a folder without links; nothing if the path leads to no folder.
fn real_folder(path: &Path) -> io::Result<Option<PathBuf>> {
    let real = fs::canonicalize(path).and_then(|real| Ok((fs::metadata(&real)?.is_dir(), real)));
    match real {
        Ok((is_folder, real)) => Ok(is_folder.then_some(real)),
        Err(error) if leads_nowhere(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns true for the error of a file that is missing, or of a link that leads to none or to itself.
fn leads_nowhere(error: &io::Error) -> bool {
    /// `ELOOP` of Linux and of macOS.
    const LOOP: [i32; 2] = [40, 62];
    let is_loop = error
        .raw_os_error()
        .is_some_and(|code| LOOP.contains(&code));
    error.kind() == io::ErrorKind::NotFound || is_loop
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn says_which_file_no_pattern_finds() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("k");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("a.cu"), "").unwrap();
        let odd = std::os::unix::ffi::OsStrExt::from_bytes(b"\xe4.cu");
        let odd = folder.join::<&std::ffi::OsStr>(odd);
        let found =
            |pattern: &str| matches(&format!("{}/{pattern}", folder.display()), Some(&folder));
        for pattern in ["*.cu", "**/*.cu"] {
            let _ = fs::remove_file(&odd);
            assert_eq!(found(pattern).unwrap(), [folder.join("a.cu")]);
            fs::write(&odd, "").unwrap();
            let error = found(pattern).unwrap_err();
            assert!(
                error.ends_with("/k/\u{fffd}.cu: its path is not UTF-8"),
                "{error}"
            );
            assert_eq!(found("a.*").unwrap().len(), 1);
        }
    }

    #[test]
    fn finds_what_glob_finds_and_ends_in_loops() {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path().canonicalize().unwrap();
        for folder in ["k/sub/deep", "k/.hidden", "other"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for file in [
            "k/a.cu",
            "k/sub/b.cu",
            "k/sub/deep/c.cu",
            "k/.hidden/d.cu",
            "k/e.cpp",
            "other/f.cu",
        ] {
            fs::write(root.join(file), "").unwrap();
        }
        symlink("../other", root.join("k/linked")).unwrap();
        symlink("nothing", root.join("k/dangling.cu")).unwrap();
        symlink("self.cu", root.join("k/self.cu")).unwrap();
        let found = |pattern: &str, folder: &str| {
            let pattern = format!("{}/{pattern}", root.display());
            let mut found = matches(&pattern, Some(&root.join(folder))).unwrap();
            found.sort();
            found
        };
        let patterns = [
            ("k/**/*.cu", "k"),
            ("k/**/b.cu", "k"),
            ("k/*/**/*.cu", "k"),
            ("k/**/deep/*", "k"),
            ("**/[a-c].cu", "."),
            ("k/**", "k"),
        ];
        for (pattern, folder) in patterns {
            let by_glob = glob::glob(&format!("{}/{pattern}", root.display())).unwrap();
            let mut by_glob: Vec<PathBuf> = by_glob.map(Result::unwrap).collect();
            by_glob.sort();
            let folder = if folder == "." { "" } else { folder };
            assert_eq!(found(pattern, folder), by_glob, "{pattern}");
        }
        symlink("..", root.join("k/sub/loop")).unwrap();
        symlink("sub", root.join("k/alias")).unwrap();
        let all = found("k/**/*.cu", "k");
        for file in [
            "k/a.cu",
            "k/alias/deep/c.cu",
            "k/sub/deep/c.cu",
            "k/sub/loop/a.cu",
        ] {
            assert!(all.contains(&root.join(file)), "{file}");
        }
        assert!(all.len() < 200, "{}", all.len());
    }
}
