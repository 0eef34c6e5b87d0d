//! Temporary files of programs.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// Returns variables with which compilers write temporary files into `folder`, if the usual folder is not writable.
pub fn variables(folder: &Path) -> Vec<(&'static str, OsString)> {
    static IS_USABLE: OnceLock<bool> = OnceLock::new();
    let is_usable = || {
        let name = format!("offload-build-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let made = fs::File::create_new(&path);
        made.is_ok() && fs::remove_file(&path).is_ok()
    };
    match IS_USABLE.get_or_init(is_usable) {
        true => Vec::new(),
        false => vec![("TMPDIR", folder.into())],
    }
}
