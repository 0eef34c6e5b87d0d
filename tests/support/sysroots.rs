//! Sysroots of kernels in Rust, compiled once for all tests: `core` takes 11 s of processor time for each family of GPUs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Makes builds in the target folder `target_dir` share their sysroots with those of other tests.
pub fn share_in(target_dir: &Path) {
    let link = target_dir.join("offload");
    if link.is_symlink() {
        return;
    }
    let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sysroots");
    fs::create_dir_all(&shared).unwrap();
    fs::create_dir_all(target_dir).unwrap();
    // Cargo writes it into target folders that it creates.
    fs::write(target_dir.join("CACHEDIR.TAG"), "").unwrap();
    if let Err(error) = symlink(shared, &link) {
        // A test of another process was first.
        assert!(link.is_symlink(), "{}: {error}", link.display());
    }
}
