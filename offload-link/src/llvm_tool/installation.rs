//! Finds the release of LLVM that a tool replaces, by its path and by the clang that started it.
//!
//! Under LLVM's name in the `bin` folder of an LLVM installation, a tool replaces the one of that release, because
//! the readers of its output have that release. Elsewhere it replaces the one of the clang that starts it (`clang -B`).

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use offload_formats::names::LlvmRelease;

use super::error::LlvmToolError;
use crate::options::llvm::Started;
use crate::platform;

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

/// Returns the release for a tool started as `path`: as [`known`] has it, under LLVM's name that of the clang that started it, else 22.
pub(crate) fn stands_for(path: &OsStr) -> LlvmRelease {
    let of_parent = || of_caller().filter(|_| is_llvms(Path::new(path)));
    known(path).or_else(of_parent).unwrap_or_default()
}

/// Returns the release for a tool started as `path`, if the path shows one: its name (`clang-offload-bundler-19`), or for a tool
/// with LLVM's name the installation around it.
pub(crate) fn known(path: &OsStr) -> Option<LlvmRelease> {
    let search = std::env::var_os("PATH").unwrap_or_default();
    find(Path::new(path), &search)
}

/// Returns the release of the clang that started this process, if one did.
pub(crate) fn of_caller() -> Option<LlvmRelease> {
    of_compiler(&platform::parent_program()?)
}

fn find(path: &Path, search: &OsString) -> Option<LlvmRelease> {
    let name = path.file_name()?.to_str()?;
    if let Some(release) = named(name) {
        return Some(release);
    }
    if !is_llvms(path) {
        return None;
    }
    let mut folders: Box<dyn Iterator<Item = PathBuf>> = if path.components().count() > 1 {
        Box::new(path.parent().map(Path::to_owned).into_iter())
    } else {
        Box::new(std::env::split_paths(search))
    };
    around(&folders.find(|folder| folder.join(name).exists())?)
}

/// Tells whether a tool has LLVM's name.
fn is_llvms(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    name.starts_with("clang-") || name.starts_with("llvm-")
}

/// Returns the release of a compiler of LLVM, such as `/usr/lib/llvm-19/bin/clang`; nothing for other programs.
fn of_compiler(program: &Path) -> Option<LlvmRelease> {
    let name = program.file_name()?.to_str()?;
    let is_compiler = ["clang", "flang"]
        .iter()
        .any(|start| name.starts_with(start));
    named(name)
        .or_else(|| around(program.parent()?))
        .filter(|_| is_compiler)
}

/// Returns the release at the end of a program's name.
fn named(name: &str) -> Option<LlvmRelease> {
    name.rsplit_once('-')?.1.parse().ok()
}

/// Returns the release of the installation with this folder of programs.
fn around(bin: &Path) -> Option<LlvmRelease> {
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

    #[test]
    fn is_the_release_of_the_clang_that_started_the_tool() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("lib/clang/21")).unwrap();
        for (program, release) in [
            ("clang", Some(LlvmRelease::V21)),
            ("clang++-20", Some(LlvmRelease::V20)),
            ("flang-new", Some(LlvmRelease::V21)),
            ("make", None),
            ("python-19", None),
        ] {
            let path = folder.path().join("bin").join(program);
            assert_eq!(of_compiler(&path), release, "{program}");
        }
    }
}
