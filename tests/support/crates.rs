//! What Cargo compiles for a build script that uses `offload-build`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Name and version of each crate, `offload-build` itself among them, as a build-dependency without features has them.
pub fn compiled() -> BTreeSet<String> {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--package=offload-build", "--edges=normal,build"])
        .args(["--prefix=none", "--locked", "--offline"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .output()
        .expect("cargo starts");
    let text = String::from_utf8_lossy(&tree.stdout);
    assert!(
        tree.status.success(),
        "{}",
        String::from_utf8_lossy(&tree.stderr)
    );
    let name = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    text.lines().map(name).collect()
}
