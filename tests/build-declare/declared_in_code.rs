//! Modules that a build script declares in code, of a package whose manifest has no table for them.

use crate::support;

use std::fs;
use support::package::{Package, text};

const KERNEL: &str = "
#ifdef TILE
extern \"C\" __attribute__((global)) void tiled(int *x) { *x = TILE; }
#else
extern \"C\" __attribute__((global)) void plain(int *x) { *x = 1; }
#endif
";

#[test]
fn builds_modules_that_no_manifest_declares() {
    let Some(package) = Package::new("") else {
        return;
    };
    package.put("Cargo.toml", "[package]\nname = \"pack\"\n[workspace]\n");
    package.put("kernels/k.hip", KERNEL);
    let build = |variables: &[(&str, &str)]| {
        let mut script = package.script_called("declared_in_code");
        text(&script.envs(variables.iter().copied()).output().unwrap())
    };
    let out = package.at("target/build/pack-0123/out");
    let images = |module: &str| {
        let file = fs::read_to_string(out.join(format!("{module}.rs"))).unwrap();
        ["plain", "tiled", "gfx90a", "gfx1100", "gfx942"]
            .into_iter()
            .filter(|word| file.contains(&format!("{word:?}")))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let told = build(&[]);
    assert_eq!(images("plain"), ["plain", "gfx90a"]);
    assert_eq!(images("tiled"), ["tiled", "gfx1100"]);
    let manifest = format!(
        "cargo::rerun-if-changed={}\n",
        package.at("Cargo.toml").display()
    );
    assert!(told.contains(&manifest), "{told}");
    let record = fs::read_to_string(out.join("offload/manifest.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let names: Vec<&str> = record["modules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|module| module["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["plain", "tiled"]);
    // As with a manifest, the build script's own word wins over a variable.
    build(&[("OFFLOAD_TARGETS", "gfx942"), ("GPU_TARGETS", "gfx942")]);
    assert_eq!(images("plain"), ["plain", "gfx90a"]);
    assert_eq!(images("tiled"), ["tiled", "gfx1100"]);
}

#[test]
fn watches_the_workspace_whose_lints_decide_how_images_are_embedded() {
    let Some(package) = Package::new("") else {
        return;
    };
    let lints = "[workspace.lints.rust]\nunsafe_code = \"forbid\"\n";
    package.put(
        "Cargo.toml",
        &format!("[workspace]\nmembers = [\"in\"]\n{lints}"),
    );
    package.put(
        "in/Cargo.toml",
        "[package]\nname = \"pack\"\n[lints]\nworkspace = true\n",
    );
    package.put("in/src/lib.rs", "");
    package.put("in/kernels/k.hip", KERNEL);
    let mut script = package.script_called("declared_in_code");
    script
        .env("CARGO_MANIFEST_DIR", package.at("in"))
        .current_dir(package.at("in"));
    let told = text(&script.output().unwrap());
    assert!(!told.contains("rustc-link-lib"), "{told}");
    let manifest = package.at("Cargo.toml");
    let watched = format!("cargo::rerun-if-changed={}\n", manifest.display());
    assert!(told.contains(&watched), "{told}");
}
