//! What a user pays for the build-dependency: crates, each of which is compiled before the first kernel is.

use crate::support::crates;

/// Of the goal in `docs/architecture.md`.
const MOST: usize = 14;

#[test]
fn compiles_no_more_crates_than_the_goal_allows() {
    let compiled = crates::compiled();
    assert!(
        compiled
            .iter()
            .any(|name| name.starts_with("offload-build "))
    );
    assert!(
        compiled.len() <= MOST,
        "{} crates: {compiled:?}",
        compiled.len()
    );
}

/// What the tools have is theirs: a build script pays for none of it.
#[test]
fn compiles_no_library_that_only_features_need() {
    let compiled = crates::compiled();
    for optional in [
        "flate2",
        "zstd",
        "serde",
        "serde_json",
        "rustix",
        "tempfile",
        // Of the writer of `object`; `container/relocatable.rs` writes registrations.
        "indexmap",
        "hashbrown",
        "crc32fast",
        // `md5.rs` and `process/search.rs` have what build scripts need of these, in less to compile.
        "md-5",
        "which",
        "libc",
    ] {
        let named = |name: &&String| name.split(' ').next() == Some(optional);
        assert_eq!(compiled.iter().find(named), None);
    }
}
