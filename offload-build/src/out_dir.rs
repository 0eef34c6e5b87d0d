//! Places of a build's files below `OUT_DIR`.

use offload_build_core::installed::answers::ANSWERS;
use std::path::{Path, PathBuf};

/// Libraries for programs that are linked elsewhere: `cargo offload build` looks there.
pub(crate) const ARTIFACTS: &str = "offload/artifacts";

/// Libraries of a runtime, for linkers.
pub(crate) const RUNTIME: &str = "offload/runtime";

/// Returns the folder of a module's intermediate files. No two modules have one, and it is none of the folders above.
pub(crate) fn module_folder(out: &Path, module: &str) -> PathBuf {
    let folder = format!("offload/{module}");
    let is_taken = |other: &&str| folder.eq_ignore_ascii_case(other);
    match [ANSWERS, ARTIFACTS, RUNTIME].iter().any(is_taken) {
        // No module's name has a hyphen.
        true => out.join(folder + "-module"),
        false => out.join(folder),
    }
}

/// Returns the file of a module that Rust includes.
pub(crate) fn host_file(out: &Path, module: &str) -> PathBuf {
    out.join(format!("{module}.rs"))
}
