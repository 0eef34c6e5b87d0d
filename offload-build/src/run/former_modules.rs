//! Rust files of modules that are no longer declared, or whose feature is off now.
//!
//! What an earlier build wrote must not compile in the place of what a clean build does not have.

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

/// Files of the builds of this process: a build script may run several builds.
static DECLARED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Removes the Rust files of other modules than `modules` and those of earlier builds of this build script.
pub(crate) fn remove(out: &Path, modules: &[Module]) -> Result<(), Error> {
    let mut declared = DECLARED.lock().unwrap_or_else(PoisonError::into_inner);
    let list = out.join(LIST);
    let known = fs::read_to_string(&list).unwrap_or_default();
    let mut names: BTreeSet<&str> = known.lines().collect();
    for module in modules {
        names.insert(&module.name);
        declared.insert(host_file(out, &module.name));
    }
    let mut kept = String::new();
    for name in names {
        let path = host_file(out, name);
        match declared.contains(&path) {
            true => kept += &format!("{name}\n"),
            false => files::remove(&path).map_err(error::io(&path))?,
        }
    }
    files::write(&list, kept.as_bytes()).map_err(error::io(&list))
}
