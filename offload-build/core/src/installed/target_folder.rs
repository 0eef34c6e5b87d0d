//! Cargo's target folder, which the packages and profiles of a build share.

use std::path::{Path, PathBuf};

/// Returns the folder for files that packages share, `offload` in Cargo's target folder; `None` if `out` is not an
/// `OUT_DIR` of Cargo, and on systems without locks that end with their process. `triple` is Cargo's `TARGET`.
///
/// If `offload` is a link, the result is the folder that it leads to: paths are part of command lines, so several target
/// folders share files only under one path.
///
/// Cargo's `OUT_DIR` is `<target>/[<triple>/]<profile>/build/<package>-<hash>/out`, or `…/build/<package>/<hash>/out` in the
/// layout `build-dir-new-layout`. A file marks the target folder, and the
/// folder of a triple, too. So may the folder in which the target folder is, as in `--target-dir target/ci`.
pub fn shared_folder(out: &Path, triple: &str) -> Option<PathBuf> {
    const MARK: &str = "CACHEDIR.TAG";
    let unit = out.parent()?;
    let has_package = unit.file_name()?.to_string_lossy().contains('-');
    let build = match has_package {
        true => unit.parent()?,
        false => unit.ancestors().nth(2)?,
    };
    let is_usual = out.ends_with("out") && build.ends_with("build");
    if !cfg!(target_os = "linux") || !is_usual {
        return None;
    }
    let is_marked = |root: &&Path| root.join(MARK).is_file();
    let inner = build.ancestors().nth(2)?;
    let outer = inner.parent().filter(is_marked);
    let root = match outer.filter(|_| inner.ends_with(triple)) {
        Some(target) => target,
        None => Some(inner).filter(is_marked).or(outer)?,
    };
    let folder = root.join("offload");
    Some(match folder.is_symlink() {
        true => folder.canonicalize().unwrap_or(folder),
        false => folder,
    })
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    const TRIPLE: &str = "x86_64-unknown-linux-gnu";

    #[test]
    fn finds_the_folder_that_packages_and_profiles_share() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let place = |out: &str| shared_folder(&root.join(out), TRIPLE);
        assert_eq!(place("debug/build/k-01/out"), None);
        std::fs::write(root.join("CACHEDIR.TAG"), "").unwrap();
        let shared = Some(root.join("offload"));
        assert_eq!(place("debug/build/k-01/out"), shared);
        assert_eq!(place("release/build/k-02/out"), shared);
        assert_eq!(place("debug/build/build/0123abcd/out"), shared);
        let of_triple = format!("{TRIPLE}/debug/build/k-01/out");
        assert_eq!(place(&of_triple), shared);
        let mark = |folder: &str| {
            std::fs::create_dir_all(root.join(folder)).unwrap();
            std::fs::write(root.join(folder).join("CACHEDIR.TAG"), "").unwrap();
        };
        // Cargo marks this one, too.
        mark(TRIPLE);
        assert_eq!(place(&of_triple), shared);
        // Target folders of others are around this one.
        mark("ci");
        let shared = Some(root.join("ci/offload"));
        assert_eq!(place("ci/debug/build/k-01/out"), shared);
        assert_eq!(place(&format!("ci/{of_triple}")), shared);
        mark(&format!("ci/{TRIPLE}"));
        assert_eq!(place(&format!("ci/{of_triple}")), shared);
        for other in [
            "build/k-01/out",
            "debug/k-01/out",
            "debug/build/0123abcd/out",
            "debug/build/k-01/o",
            "a/b/c/build/k-01/out",
        ] {
            assert_eq!(place(other), None, "{other}");
        }
    }

    #[test]
    fn follows_a_link_to_a_folder_that_target_folders_share() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let shared = root.join("shared");
        std::fs::create_dir(&shared).unwrap();
        for name in ["one", "other"] {
            let target = root.join(name);
            std::fs::create_dir(&target).unwrap();
            std::fs::write(target.join("CACHEDIR.TAG"), "").unwrap();
            std::os::unix::fs::symlink(&shared, target.join("offload")).unwrap();
            let found = shared_folder(&target.join("debug/build/k-01/out"), TRIPLE);
            assert_eq!(found.as_ref(), Some(&shared));
        }
    }
}
