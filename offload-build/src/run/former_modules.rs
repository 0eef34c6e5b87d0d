//! Rust files of modules that are no longer declared, or whose feature is off now.
//!
//! What an earlier build wrote must not compile in the place of what a clean build does not have.

use crate::generate::is_host_file;
use crate::out_dir::host_file;
use offload_build_core::declare::module::Module;
use offload_build_core::error::{self, Error};
use offload_build_core::files;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Names of the modules whose files may be there, one on a line; a path below `OUT_DIR`.
const LIST: &str = "offload/modules.txt";

/// Folders of the builds of this process that succeeded.
static BUILT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Runs the build of a build script. A second one is an error: it would take the files of the first for those of an earlier
/// run. A build script may build something else after a build that failed.
pub(crate) fn once(out: &Path, build: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if built.contains(out) {
        return Err(Error::new(
            "this build script runs two builds\n\
             hint: add the modules of the second one to the first: `Build::module`",
        ));
    }
    build()?;
    built.insert(out.to_owned());
    Ok(())
}

/// Removes the Rust files of other modules than `modules`.
pub(crate) fn remove(out: &Path, modules: &[Module]) -> Result<(), Error> {
    let is_declared = |name: &str| modules.iter().any(|module| module.name == name);
    let mut kept = names(out);
    for name in kept.clone() {
        if is_declared(&name) {
            continue;
        }
        let path = host_file(out, &name);
        // The build script may have written a file of that name since.
        if fs::read(&path).is_ok_and(|text| is_host_file(&text)) {
            files::remove(&path).map_err(error::io(&path))?;
        }
        kept.remove(&name);
    }
    write(out, &kept)
}

/// Adds a module whose file is going to be written.
pub(crate) fn add(out: &Path, module: &Module) -> Result<(), Error> {
    let mut names = names(out);
    names.insert(module.name.clone());
    write(out, &names)
}

fn names(out: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(out.join(LIST)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn write(out: &Path, names: &BTreeSet<String>) -> Result<(), Error> {
    let list = out.join(LIST);
    if names.is_empty() {
        return files::remove(&list).map_err(error::io(&list));
    }
    let text: String = names.iter().map(|name| format!("{name}\n")).collect();
    files::write(&list, text.as_bytes()).map_err(error::io(&list))
}
