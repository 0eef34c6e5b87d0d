//! The README's examples, built and run from its text.

use crate::shared_build;
use crate::support;

use std::fs;
use std::path::Path;
use std::process::Command;

/// A code block: its language, and its text.
type Block = (String, String);

/// Returns the code blocks of a text, in their order.
fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let code = lines.by_ref().take_while(|line| *line != "```");
            let code: String = code.flat_map(|line| [line, "\n"]).collect();
            found.push((language.to_owned(), code));
        }
    }
    found
}

/// Returns the path that the first line of a block names in a comment.
fn path(code: &str) -> Option<&str> {
    let line = code.lines().next()?;
    line.strip_prefix("// ").or_else(|| line.strip_prefix("# "))
}

/// The README may be read from a registry; here its crates are those of this tree.
fn with_local_crates(manifest: &str, root: &Path) -> String {
    let mut text = manifest.to_owned();
    for name in ["offload-build", "offload-device"] {
        let path = format!("path = {:?}", root.join(name));
        text = text.replace(
            &format!("{name} = \"0.1\""),
            &format!("{name} = {{ {path} }}"),
        );
        text = text.replace(
            &format!("{name} = {{ version = \"0.1\""),
            &format!("{name} = {{ {path}"),
        );
    }
    text
}

/// Builds and runs an example, and compares its output with the block `text` at its end.
fn run(title: &str, build_script: &str, blocks: &[Block], root: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let place = folder.path().join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    };
    put("build.rs", build_script);
    let (expected, files) = blocks.split_last().unwrap();
    assert_eq!(expected.0, "text", "{title}: the output comes last");
    for (_, code) in files {
        let name = path(code).unwrap_or_else(|| panic!("{title}: a block without a path: {code}"));
        let lines = code.lines().count() - 1;
        assert!(lines <= 25, "{title}: {name} has {lines} lines");
        let text = match name.ends_with("Cargo.toml") {
            true => {
                let package = name.trim_end_matches("Cargo.toml").trim_end_matches('/');
                let package = if package.is_empty() { "app" } else { package };
                let head = format!(
                    "[package]\nname = \"{package}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n"
                );
                head + &with_local_crates(code, root)
            }
            false => code.clone(),
        };
        put(name, &text);
    }
    let mut cargo = Command::new(env!("CARGO"));
    shared_build::use_template_folder(&mut cargo, folder.path());
    cargo
        .args(["run", "--quiet"])
        .env("OMP_TARGET_OFFLOAD", "MANDATORY");
    let output = cargo.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{title}: {err}");
    assert_eq!(out, expected.1, "{title}: {err}");
}

/// Builds each example as it stands in the README, and runs it.
#[test]
fn runs_the_examples_of_the_readme() {
    let tools = [
        support::tool("llvm19", &["clang-19"]),
        support::tool("omptarget19", &["libomptarget.so"]),
        support::tool("llvm22", &["clang-22"]),
        support::tool("cuda", &["ptxas"]),
        support::tool("rustweb", &["lib.rs"]),
    ];
    if tools.iter().any(Option::is_none) {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = root.canonicalize().unwrap();
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let mut examples = readme.split("<details");
    let before = blocks(examples.next().unwrap());
    let build_script = before
        .iter()
        .find(|(_, code)| path(code) == Some("build.rs"));
    let build_script = &build_script.unwrap().1;
    let mut count = 0;
    for example in examples {
        let (title, rest) = example.split_once("</summary>").unwrap();
        let (body, _) = rest.split_once("</details>").unwrap();
        run(title, build_script, &blocks(body), &root);
        count += 1;
    }
    assert_eq!(count, 4);
}
