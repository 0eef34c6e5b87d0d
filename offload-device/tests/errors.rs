//! Checks the errors that the compiler reports for functions that cannot be kernels, and that valid kernels compile without
//! warnings.
//!
//! Each file of `offload-device/tests/errors` is a crate of its own. A comment `//~ text` expects an error on its line whose text, up to the
//! first line break, contains that text; errors on other lines and missing ones fail the test.
#![allow(clippy::unwrap_used, reason = "helpers are not tests for clippy")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// An error or a warning, by file and line.
type Messages = BTreeMap<(String, usize), Vec<String>>;

#[test]
fn reports_errors_at_their_place() {
    reports_errors("errors", &[], &["launch.rs"]);
}

/// With launches on GPUs, whose function names the types of the arguments too.
#[test]
fn reports_errors_at_their_place_with_launches() {
    reports_errors("errors-gpu", &["gpu"], &[]);
}

fn reports_errors(name: &str, features: &[&str], left_out: &[&str]) {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors");
    let package = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let expected = write_package(&cases, &package, features, left_out);
    assert!(expected.len() > 30, "the cases were not found");
    let found = check(&package);
    for (place, texts) in &expected {
        let messages = found.get(place).cloned().unwrap_or_default();
        assert_eq!(
            messages.len(),
            texts.len(),
            "{place:?}: expected {texts:?}, found {messages:?}"
        );
        for (text, message) in texts.iter().zip(&messages) {
            assert!(
                message.contains(text),
                "{place:?}: expected {text:?}, found {message:?}"
            );
        }
    }
    for (place, messages) in &found {
        assert!(
            expected.contains_key(place),
            "{place:?}: unexpected {messages:?}"
        );
    }
}

/// Writes a package with each case as an example, and returns the messages that the cases expect.
fn write_package(cases: &Path, package: &Path, features: &[&str], left_out: &[&str]) -> Messages {
    let examples = package.join("examples");
    let _ = fs::remove_dir_all(&examples);
    fs::create_dir_all(&examples).unwrap();
    fs::create_dir_all(package.join("src")).unwrap();
    fs::write(package.join("src/lib.rs"), "").unwrap();
    let manifest = format!(
        "[package]\nname = \"errors\"\nedition = \"2024\"\n\n\
         [dependencies]\noffload-device = {{ path = {:?}, features = {features:?} }}\n\n[workspace]\n",
        env!("CARGO_MANIFEST_DIR")
    );
    fs::write(package.join("Cargo.toml"), manifest).unwrap();
    // The versions that the tests themselves use, which are here already.
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
    fs::copy(lock, package.join("Cargo.lock")).unwrap();

    let mut expected = Messages::new();
    let mut files: Vec<PathBuf> = fs::read_dir(cases)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        if left_out.contains(&name) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        for (index, line) in text.lines().enumerate() {
            for message in line.split("//~ ").skip(1) {
                let place = (format!("examples/{name}"), index + 1);
                expected
                    .entry(place)
                    .or_default()
                    .push(message.trim().to_owned());
            }
        }
        fs::write(examples.join(name), text).unwrap();
    }
    expected
}

/// Checks all examples and returns the messages of the compiler.
fn check(package: &Path) -> Messages {
    let output = Command::new(env!("CARGO"))
        .args([
            "check",
            "--examples",
            "--keep-going",
            "--offline",
            "--message-format=short",
        ])
        .current_dir(package)
        .env("CARGO_TARGET_DIR", package.join("target"))
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let mut found = Messages::new();
    for line in text.lines() {
        // `<file>:7:10: error[E0277]: text`; a message of more than one line continues without a place.
        let Some((place, message)) = line.split_once(": ") else {
            continue;
        };
        let mut parts = place.split(':');
        let (Some(file), Some(Ok(number))) = (parts.next(), parts.next().map(str::parse)) else {
            continue;
        };
        if message.starts_with("error") || message.starts_with("warning") {
            found
                .entry((file.to_owned(), number))
                .or_default()
                .push(message.to_owned());
        }
    }
    assert!(!found.is_empty(), "{text}");
    found
}
