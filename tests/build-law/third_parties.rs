//! The crates of others that the lock file names: their licenses, where they come from, and how often each is there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Each can be combined with MIT and with Apache-2.0, and needs no more than its notice.
const LICENSES: [&str; 8] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "Unicode-3.0",
    "ISC",
    "Zlib",
    "BSD-2-Clause",
    "BSD-3-Clause",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Whether one of the alternatives in each part is allowed: `(MIT OR Apache-2.0) AND Unicode-3.0`. Cargo took `/` for
/// `OR` in older manifests (Cargo's reference, "The license and license-file fields").
fn is_allowed(expression: &str) -> bool {
    let is_part_allowed = |part: &str| {
        let part = part.trim_matches(['(', ')']);
        let mut names = part.split(" OR ").flat_map(|names| names.split('/'));
        names.any(|name| LICENSES.contains(&name))
    };
    expression.split(" AND ").all(is_part_allowed)
}

#[test]
fn reads_license_expressions() {
    for good in [
        "MIT",
        "MIT OR GPL-3.0",
        "GPL-3.0/MIT",
        "(MIT OR Apache-2.0) AND Zlib",
    ] {
        assert!(is_allowed(good), "{good}");
    }
    for bad in [
        "GPL-3.0",
        "GPL-2.0/GPL-3.0",
        "MIT AND GPL-3.0",
        "(GPL-2.0 OR GPL-3.0) AND MIT",
        "",
    ] {
        assert!(!is_allowed(bad), "{bad}");
    }
}

#[test]
fn uses_crates_with_allowed_licenses() {
    let mut metadata = Command::new(env!("CARGO"));
    metadata
        .args(["metadata", "--format-version=1", "--locked", "--offline"])
        // Crates for other platforms were not fetched.
        .arg("--filter-platform=x86_64-unknown-linux-gnu")
        .current_dir(root());
    let metadata: Value = serde_json::from_str(&crate::support::run(&mut metadata)).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 20, "{}", packages.len());
    for package in packages {
        let license = package["license"].as_str().unwrap_or_default();
        assert!(is_allowed(license), "{}: `{license}`", package["name"]);
    }
}

/// Crates with two versions: `corosensei` 0.3 needs an older one than others, and only for Windows.
const TWICE: [&str; 1] = ["windows-sys"];

#[test]
fn uses_one_version_of_each_crate_from_the_registry() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let mut names = Vec::new();
    for package in lock.split("[[package]]\n").skip(1) {
        let value = |key: &str| {
            let start = format!("{key} = \"");
            let line = package.lines().find_map(|line| line.strip_prefix(&start));
            line.map(|line| line.trim_end_matches('"'))
        };
        let name = value("name").unwrap();
        let is_known = TWICE.contains(&name);
        assert!(is_known || !names.contains(&name), "{name} is there twice");
        names.push(name);
        let registry = "registry+https://github.com/rust-lang/crates.io-index";
        let is_ours = name.starts_with("offload-");
        assert_eq!(value("source"), (!is_ours).then_some(registry), "{name}");
    }
    assert!(names.len() > 20, "{names:?}");
}
