//! `offload-build` and its dependencies, compiled once for all tests that start Cargo.
//!
//! Cargo locks a target folder during a build, so tests that run at the same time need a target folder each. Compiling
//! `offload-build` in each of them takes 27 s of processor time. Instead, one build per linker and profile is copied
//! into them. Cargo compares its fingerprints there as always: a copy that does not fit costs time and changes nothing.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// In the place of an example in its `Cargo.lock`, so that the versions are those of the examples. Another package of
/// the same name would share its build script with this one.
const NAME: &str = "hip-launch-dependencies";
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// With `--target`, Cargo compiles build-dependencies with debug information, otherwise without. It doubles the size of all
/// that is copied here and of each build script. Set, the same build serves both. Incremental compilation costs time for a
/// second build of a crate, and there is none. Cargo's 256 units of code cost a twelfth of the time.
const VARIABLES: [(&str, &str); 3] = [
    ("CARGO_PROFILE_DEV_BUILD_OVERRIDE_DEBUG", "0"),
    ("CARGO_PROFILE_DEV_BUILD_OVERRIDE_CODEGEN_UNITS", "16"),
    ("CARGO_INCREMENTAL", "0"),
];

/// In rustc's place, for a build with another linker, whose path is in Cargo's fingerprints: takes each library from the build
/// without one, as no linker makes a library. Cargo names the libraries of both builds alike if they have the same options.
const TAKE: &str = r#"#!/bin/sh
for arg; do
  case $before in
    --crate-name) name=$arg ;;
    --out-dir) out=$arg ;;
  esac
  case $arg in extra-filename=*) name=$name${arg#*=} ;; esac
  before=$arg
done
folder=$BUILT/${out##*/target/}
[ -f "$folder/lib$name.rlib" ] || exec "$@"
exec cp "$folder/lib$name.rlib" "$folder/lib$name.rmeta" "$folder/$name.d" "$out"
"#;

/// Copies the build-dependencies of a package that uses `offload-build` into the target folder of a Cargo.
///
/// `linker` is the one that Cargo's configuration sets, and `flags` select the profile: both are part of Cargo's
/// fingerprints, of build-dependencies too.
pub fn copy_into(target_dir: &Path, cargo: &mut Command, linker: Option<&str>, flags: &[&str]) {
    cargo.env("CARGO_TARGET_DIR", target_dir).envs(VARIABLES);
    static COPIED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let copy = format!("{target_dir:?} {linker:?} {flags:?}");
    if COPIED.lock().unwrap().contains(&copy) {
        return;
    }
    let built = build(linker, flags);
    fs::create_dir_all(target_dir).unwrap();
    // One copy at a time. Files keep their times, which Cargo compares; files that are there already stay.
    let mut cp = Command::new("flock");
    cp.arg(target_dir)
        .args(["cp", "--archive", "--update", "--reflink=auto"]);
    super::run(cp.arg(built).arg(target_dir));
    COPIED.lock().unwrap().insert(copy);
}

/// Builds them where a test before this one did; gives the folder of the profile.
fn build(linker: Option<&str>, flags: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = root.canonicalize().unwrap();
    let name = linker.map_or("stock", |_| "offload-link").to_owned() + &flags.concat();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("dependencies")
        .join(name.replace(|c| !is_plain(c), "-"));
    let path = root.join("offload-build");
    // Tests of other processes write the same: none may see a file that is cut.
    let put = |name: &str, text: &str| {
        let place = folder.join(name);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        if fs::read_to_string(&place).ok().as_deref() != Some(text) {
            let new = tempfile::NamedTempFile::new_in(&folder).unwrap();
            fs::write(&new, text).unwrap();
            new.persist(place).unwrap();
        }
    };
    put(
        "Cargo.toml",
        &format!(
            "[package]\nname = {NAME:?}\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n\
             [build-dependencies]\noffload-build.path = {path:?}\n"
        ),
    );
    let lock = fs::read_to_string(root.join("examples/hip-launch/Cargo.lock")).unwrap();
    put("Cargo.lock", &lock.replace("hip-launch", NAME));
    put("build.rs", "fn main() {}\n");
    put("src/lib.rs", "");
    let mut cargo = Command::new(env!("CARGO"));
    // With `--target`, build-dependencies have a folder of their own.
    cargo
        .args(["build", "--quiet", "--locked", "--target", TARGET])
        .args(flags)
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .envs(VARIABLES)
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    if let Some(linker) = linker {
        let built = build(None, flags);
        put("take", TAKE);
        let take = folder.join("take");
        fs::set_permissions(&take, fs::Permissions::from_mode(0o755)).unwrap();
        cargo
            .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", linker)
            .env("BUILT", built.parent().unwrap())
            .env("RUSTC_WRAPPER", take);
    }
    super::run(&mut cargo);
    let is_release = flags.contains(&"--release");
    folder
        .join("target")
        .join(if is_release { "release" } else { "debug" })
}
