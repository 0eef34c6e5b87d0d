//! Finds the release of LLVM that a tool replaces, by its path.
//!
//! Under LLVM's name in the `bin` folder of an LLVM installation, a tool replaces the one of that release, because
//! the readers of its output have that release.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use offload_formats::names::LlvmRelease;

use super::error::LlvmToolError;
use crate::options::llvm::Started;

/// Variable with the release, for command lines without an option for it.
pub(crate) const VARIABLE: &str = "OFFLOAD_LLVM";

/// Returns the release for a tool: from the variable, or as [`stands_for`] has it.
///
/// # Errors
///
/// Fails if the variable is not a release.
pub(crate) fn release(tool: &Started<'_>) -> Result<LlvmRelease, LlvmToolError> {
    let value = std::env::var_os(VARIABLE);
    let release = of_variable(value.as_deref()).map_err(LlvmToolError::new)?;
    Ok(release.unwrap_or_else(|| stands_for(OsStr::new(tool.path))))
}

/// Parses the value of the option `--llvm`.
///
/// # Errors
///
/// Fails if it is not a release.
pub(crate) fn of_option(value: &OsStr) -> Result<LlvmRelease, LlvmToolError> {
    let release = value.to_string_lossy().parse();
    release.map_err(|error| LlvmToolError::new(format!("--llvm: {error}")))
}

/// Returns the release that the value of the variable names; an empty one names none.
///
/// # Errors
///
/// Fails if it is not a release.
pub(crate) fn of_variable(value: Option<&OsStr>) -> Result<Option<LlvmRelease>, String> {
    let text = value.unwrap_or_default().to_string_lossy();
    if text.is_empty() {
        return Ok(None);
    }
    let release = text.parse();
    release
        .map(Some)
        .map_err(|error| format!("{VARIABLE}: {error}"))
}

/// Returns the release for a tool started as `path`: from its name (`clang-offload-bundler-19`) or from the
/// installation around it; else 22.
pub(crate) fn stands_for(path: &OsStr) -> LlvmRelease {
    known(path).unwrap_or_default()
}

/// Returns the release, if the path shows one.
pub(crate) fn known(path: &OsStr) -> Option<LlvmRelease> {
    let search = std::env::var_os("PATH").unwrap_or_default();
    find(Path::new(path), &search)
}

fn find(path: &Path, search: &OsString) -> Option<LlvmRelease> {
    let name = path.file_name()?.to_str()?;
    let named = name.rsplit_once('-').map(|(_, release)| release.parse());
    if let Some(Ok(release)) = named {
        return Some(release);
    }
    if !name.starts_with("clang-") && !name.starts_with("llvm-") {
        return None;
    }
    let mut folders: Box<dyn Iterator<Item = PathBuf>> = if path.components().count() > 1 {
        Box::new(path.parent().map(Path::to_owned).into_iter())
    } else {
        Box::new(std::env::split_paths(search))
    };
    let bin = folders.find(|folder| folder.join(name).exists())?;
    // clang's headers are in `lib/clang/<release>`, up to LLVM 15 in `<release>.0.6`.
    let mut releases = fs::read_dir(bin.parent()?.join("lib/clang")).ok()?;
    let release = releases.next()?.ok()?.file_name();
    // With several releases, none is certain.
    let only = releases.next().is_none();
    release.to_str()?.parse().ok().filter(|_| only)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_release_of_the_name_or_of_the_installation() {
        let folder = tempfile::tempdir().unwrap();
        let (bin, clang) = (folder.path().join("bin"), folder.path().join("lib/clang"));
        fs::create_dir_all(clang.join("19")).unwrap();
        fs::create_dir(&bin).unwrap();
        for name in ["clang-offload-bundler", "offload-bundler"] {
            fs::write(bin.join(name), "").unwrap();
        }
        let search = bin.clone().into_os_string();
        let find = |path: &Path| find(path, &search);
        let llvm = bin.join("clang-offload-bundler");
        assert_eq!(find(&llvm), Some(LlvmRelease::V19));
        assert_eq!(
            find(Path::new("clang-offload-bundler")),
            Some(LlvmRelease::V19)
        );
        assert_eq!(
            find(Path::new("clang-offload-bundler-20")),
            Some(LlvmRelease::V20)
        );
        assert_eq!(find(&bin.join("offload-bundler")), None);
        assert_eq!(find(Path::new("offload-bundler")), None);
        assert_eq!(find(Path::new("elsewhere/clang-offload-bundler")), None);
        fs::create_dir(clang.join("22")).unwrap();
        assert_eq!(find(&llvm), None);
    }
}
