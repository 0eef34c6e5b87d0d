//! `docs/environment.md` has every variable that the sources name, and no other.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Folders of sources that read variables.
const FOLDERS: [&str; 7] = [
    "offload-formats/core/src",
    "offload-formats/src",
    "offload-build/core/src",
    "offload-build/src",
    "offload-link/src",
    "offload-device/src",
    "offload-device/macros/src",
];

/// Files that list variables: each word in capitals is one.
const LISTS: [&str; 2] = [
    "offload-build/core/src/declare/aliases.rs",
    "offload-build/core/src/declare/family.rs",
];

/// Calls and attributes that read the variable in quotes.
const READS: [&str; 8] = [
    "variable(\"",
    "cargo(\"",
    "required(\"",
    "var(\"",
    "var_os(\"",
    "env = \"",
    "env(\"",
    "named_variable(\"",
];

/// Words of the same shape that are no variables.
const OTHERS: [&str; 28] = [
    "AS_NEEDED",
    "CARGO_REGISTR",
    "CUDA_VERSION",
    "DRY_RUN",
    "FAT_BINARY",
    "FORCE_COMMON_ALLOCATION",
    "FORCE_GROUP_ALLOCATION",
    "HIP_VERSION_MAJOR",
    "HIP_VERSION_MINOR",
    "IMG_LAST",
    "IMG_PTX",
    "INHIBIT_COMMON_ALLOCATION",
    "LARGE_IMAGES",
    "LD_FEATURE",
    "MAX_DECOMPRESSED_SIZE",
    "NOCROSSREFS_TO",
    "OFK_HIP",
    "OFK_LAST",
    "OTHER_LIBRARIES",
    "OUTPUT_ARCH",
    "OUTPUT_FORMAT",
    "OVERWRITE_SECTIONS",
    "PROVIDE_HIDDEN",
    "REGION_ALIAS",
    "RUNTIME_FOLDER",
    "SEARCH_DIR",
    "VERSION_NUMBERS",
    "WARP_SZ",
];

/// Variables that the page has, and that the sources compose or dependencies read.
const COMPOSED: [&str; 12] = [
    "CARGO_FEATURE_<NAME>",
    "CARGO_TARGET_<TRIPLE>_LINKER",
    "CC_<target>",
    "CXX_<target>",
    "DEP_<LINKS>_<KEY>",
    "NO_COLOR",
    "OFFLOAD_<KEY>",
    "OFFLOAD_<KEY>_<Cargo's target>",
    "OFFLOAD_CC_<target>",
    "OFFLOAD_REQUIRE",
    "OFFLOAD_TEST_ALL",
    "OFFLOAD_TEST_SEED",
];

#[test]
fn documents_every_variable() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = fs::read_to_string(root.join("docs/environment.md")).unwrap();
    let documented = documented(&page);
    let mut read = BTreeSet::new();
    for folder in FOLDERS {
        collect(root, &root.join(folder), &mut read);
    }
    let composed: BTreeSet<String> = COMPOSED.iter().map(|&name| name.into()).collect();
    let all = read.union(&composed);
    let undocumented: Vec<&String> = all.filter(|name| !documented.contains(*name)).collect();
    assert!(
        undocumented.is_empty(),
        "docs/environment.md lacks {undocumented:?}"
    );
    let unread = documented.difference(&read);
    let unread: Vec<&String> = unread.filter(|name| !composed.contains(*name)).collect();
    assert!(
        unread.is_empty(),
        "no source reads {unread:?} of docs/environment.md"
    );
}

#[test]
fn finds_variables_in_sources_and_pages() {
    let source = "//! \"A_COMMENT\"\nlet a = environment.variable(\"CC\");\nlet b = [\"HIP_PATH\", \"word\", \"KERNEL_\"];\n\
                  #[cfg(test)]\nmod tests { const C: &str = \"OF_TESTS\"; }\n";
    let found: Vec<String> = named(source, false).into_iter().collect();
    assert_eq!(found, ["CC", "HIP_PATH"]);
    let listed: Vec<String> = named("(\"HIPCXX\", as_it_is)", true).into_iter().collect();
    assert_eq!(listed, ["HIPCXX"]);
    let page = "| `CUDA_PATH`, `OFFLOAD_CC_<target>` | `sm_80` | `OFFLOAD_TARGETS=gfx90a`\n";
    let found: Vec<String> = documented(page).into_iter().collect();
    assert_eq!(found, ["CUDA_PATH", "OFFLOAD_CC_<target>"]);
}

fn collect(root: &Path, folder: &Path, read: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, read);
            continue;
        }
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
        if path.extension().is_some_and(|extension| extension == "rs") && !is_test {
            let is_list = LISTS.iter().any(|list| path == root.join(list));
            read.extend(named(&fs::read_to_string(&path).unwrap(), is_list));
        }
    }
}

/// Returns the variables that a source file names outside of comments and tests.
fn named(text: &str, is_list: bool) -> BTreeSet<String> {
    let tests = ["#[cfg(test)]\nmod ", "#[cfg(test)]\npub(crate) mod "];
    let end = tests.iter().filter_map(|start| text.find(start)).min();
    let mut found = BTreeSet::new();
    let lines = text[..end.unwrap_or(text.len())].lines();
    for line in lines.filter(|line| !line.trim_start().starts_with("//")) {
        for (index, word) in line.split('"').enumerate().skip(1).step_by(2) {
            let before: String = line.split('"').take(index).collect::<Vec<_>>().join("\"") + "\"";
            let is_read = READS.iter().any(|call| before.ends_with(call));
            let has_shape = word.contains('_') && !word.ends_with('_');
            let is_one = is_read || has_shape || is_list;
            if is_variable(word) && is_one && !OTHERS.contains(&word) {
                found.insert(word.to_owned());
            }
        }
    }
    found
}

fn is_variable(word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    word.len() > 1
        && word.chars().all(is_part)
        && word.starts_with(|c: char| c.is_ascii_uppercase())
}

/// Returns the variables that a page has between backticks.
fn documented(page: &str) -> BTreeSet<String> {
    let spans = page.split('`').skip(1).step_by(2);
    let names = spans.filter(|span| {
        let plain: String = span.split(['<', '>']).step_by(2).collect();
        is_variable(&plain)
    });
    let names = names.filter(|name| !["K", "M", "G", "T"].contains(name));
    names.map(str::to_owned).collect()
}
