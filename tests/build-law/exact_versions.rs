//! Our crates use hidden items of each other, which may change in any release: each requires exactly its own version of
//! the others, so that Cargo never combines two releases.

use std::fs;
use std::path::Path;

/// Manifests that require our crates by version.
const MANIFESTS: [&str; 2] = ["Cargo.toml", "offload-link/cargo-offload/Cargo.toml"];

#[test]
fn our_crates_require_their_own_version_of_each_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let required = format!("version=\"={}\"", env!("CARGO_PKG_VERSION"));
    for path in MANIFESTS {
        let manifest = read(path);
        let ours = manifest.lines().filter(|line| line.starts_with("offload-"));
        let ours: Vec<&str> = ours.collect();
        assert!(!ours.is_empty(), "{path}");
        for line in ours {
            let line = line.replace(' ', "");
            assert!(line.contains(&required), "{path}: {line}");
        }
        let version = format!("\nversion = \"{}\"\n", env!("CARGO_PKG_VERSION"));
        assert!(manifest.contains(&version), "{path}");
    }
    // Members take the requirements of the workspace.
    for member in [
        "offload-build",
        "offload-build/core",
        "offload-device",
        "offload-device/macros",
        "offload-formats",
        "offload-formats/core",
        "offload-link",
    ] {
        let manifest = read(&format!("{member}/Cargo.toml"));
        for line in manifest.lines() {
            let is_ours = line.starts_with("offload-") && line.contains("version =");
            assert!(!is_ours, "{member}: {line}");
        }
    }
}
