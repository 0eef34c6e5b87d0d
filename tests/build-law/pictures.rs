//! The pictures of `docs/pictures`: for light and dark backgrounds, without script or paths of a machine; the drawn one is
//! what the script draws.

use std::path::PathBuf;
use std::process::Command;

use crate::support::{program, run};

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/pictures"))
}

#[test]
fn are_safe_and_for_both_backgrounds() {
    for name in ["overview", "inspect", "size", "doctor"] {
        let picture = std::fs::read_to_string(folder().join(format!("{name}.svg"))).unwrap();
        assert!(picture.starts_with("<svg "), "{name}");
        assert!(picture.ends_with("</svg>\n"), "{name}");
        assert!(picture.contains("prefers-color-scheme:dark"), "{name}");
        for bad in ["<script", "/home/", "/root", "/tmp", "\u{1b}"] {
            assert!(!picture.contains(bad), "{name}: {bad:?}");
        }
    }
}

#[test]
fn are_what_the_script_draws() {
    let Some(python) = program("python3") else {
        return;
    };
    run(Command::new(python)
        .arg(folder().join("make"))
        .arg("--check"));
}
