//! Commands that LLVM's bundler would run. `-###` prints them; this tool never runs them.

use std::path::{Path, PathBuf};

use offload_build::tools::Search;
use offload_formats::container::object_bundle::BUNDLE_SECTION;

/// Returns the path of `llvm-objcopy`, for printing.
fn program() -> String {
    let search = Search {
        path: std::env::var_os("PATH").unwrap_or_default(),
        ..Search::default()
    };
    let found = search.program("llvm-objcopy");
    found.map_or("llvm-objcopy".into(), |path| path.display().to_string())
}

/// Returns the command that adds the sections of a bundle to an object.
pub(super) fn embed(ids: &[&str], inputs: &[PathBuf], host: usize, output: &Path) -> String {
    let mut words = vec![program()];
    // The host's section holds one zero byte, which LLVM keeps in a file.
    let placeholder = std::env::temp_dir().join("clang-offload-bundler-000000.tmp");
    for (index, (id, input)) in ids.iter().zip(inputs).enumerate() {
        let file = if index == host { &placeholder } else { input };
        words.push(format!(
            "--add-section={BUNDLE_SECTION}{id}={}",
            file.display()
        ));
        words.push(format!(
            "--set-section-flags={BUNDLE_SECTION}{id}=readonly,exclude"
        ));
    }
    words.push("--".into());
    words.push(inputs[host].display().to_string());
    words.push(output.display().to_string());
    line(&words)
}

/// Returns the command that removes the sections of a bundle from an object.
pub(super) fn strip(input: &Path) -> String {
    let output = std::env::temp_dir().join("clang-offload-bundler-000000.tmp");
    line(&[
        program(),
        "--regex".into(),
        format!("--remove-section={BUNDLE_SECTION}.*"),
        "--".into(),
        input.display().to_string(),
        output.display().to_string(),
    ])
}

/// Joins the words, each in double quotes, for a shell.
fn line(words: &[String]) -> String {
    let quoted = words.iter().map(|word| {
        let mut text = String::from('"');
        for char in word.chars() {
            if matches!(char, '"' | '\\' | '$' | '`') {
                text.push('\\');
            }
            text.push(char);
        }
        text.push('"');
        text
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_every_word() {
        let words = ["a b", "$x\"`\\"].map(str::to_owned);
        assert_eq!(line(&words), r#""a b" "\$x\"\`\\""#);
    }
}
