//! The command line of `cargo offload`: help, statuses, completions, manual pages.

use std::process::{Command, Output, Stdio};

fn cargo_offload(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-offload"));
    command.args(arguments).env_remove("CARGO_TERM_COLOR");
    command.output().unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let output = cargo_offload(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the names under `Commands:` in a help text.
fn commands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines.take_while(|line| !line.is_empty());
    let names = names.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names = names.filter(|name| !name.is_empty() && *name != "help");
    names.map(str::to_owned).collect()
}

#[test]
fn prints_its_commands_without_one() {
    let help = printed(&["offload"]);
    assert_eq!(help, printed(&["offload", "-h"]));
    assert!(
        help.contains("Usage: cargo offload [OPTIONS] [COMMAND]"),
        "{help}"
    );
    assert!(commands(&help).contains(&"inspect".to_owned()), "{help}");
    // Without Cargo, the first word is a command of its own.
    let alone = printed(&[]);
    assert!(
        alone.contains("Usage: cargo-offload [OPTIONS] [COMMAND]"),
        "{alone}"
    );
    let version = concat!("cargo-offload ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(printed(&["offload", "--version"]), version);
    assert_eq!(printed(&["-V"]), version);
}

#[test]
fn shows_examples_for_every_command() {
    for name in commands(&printed(&["offload"])) {
        let help = printed(&["offload", &name, "--help"]);
        assert!(help.contains("\nExample"), "{name}: {help}");
        assert!(
            help.contains(&format!("cargo offload {name}")),
            "{name}: {help}"
        );
    }
}

#[test]
fn rejects_invalid_command_lines_with_status_2() {
    for (arguments, expected) in [
        (
            &["offload", "insect"][..],
            "similar subcommands exist: 'install', 'init', 'inspect'",
        ),
        (&["offload", "inspect"], "<FILE>..."),
        (&["offload", "inspect", "--colour=never", "x"], "'--color'"),
        (&["offload", "archive"], "Usage: cargo offload archive"),
        (&["offload", "archive", "merge", "x=y"], "--out <FILE>"),
        (
            &["offload", "archive", "merge", "--out", "x"],
            "<TARGET=FILE>...",
        ),
        (
            &["offload", "prune", "--keep=sm80", "x", "-o", "y"],
            "not a processor; did you mean `sm_80`?",
        ),
        (
            &["offload", "extract", "x", "--target=MI300X"],
            "did you mean `gfx942`?",
        ),
        (
            &["offload", "prune", "--keep=sm_80", "x", "z", "-o", "y"],
            "`--output` needs exactly one input",
        ),
        (
            &["offload", "prune", "--keep=sm_80", "x", "-o", "-"],
            "cannot be written to standard output",
        ),
        (
            &["offload", "inspect", "--max-decompressed-size=3X", "x"],
            "3X",
        ),
    ] {
        let output = cargo_offload(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert_eq!(output.stdout, b"", "{arguments:?}");
    }
}

#[test]
fn makes_completions_and_manual_pages_of_every_command() {
    let names = commands(&printed(&["offload"]));
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = printed(&["offload", "completions", shell]);
        for name in &names {
            assert!(script.contains(name), "{shell}: {name}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.bash");
    std::fs::write(&script, printed(&["offload", "completions", "bash"])).unwrap();
    let ask = "source \"$0\"; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1))\n\
               _cargo__offload \"$1\" \"${@: -1}\" \"${@: -2:1}\"; echo \"${COMPREPLY[*]}\"";
    for (words, expected) in [
        (&["insp"][..], "inspect"),
        (&["inspect", "--ker"], "--kernels"),
        (&["archive", "sp"], "split"),
        (&["prune", "--ptx", "ke"], "keep"),
        (&["completions", "el"], "elvish"),
    ] {
        let mut bash = Command::new("bash");
        bash.args(["-c", ask]).arg(&script).arg("cargo-offload");
        let output = bash.args(words).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.trim(), expected, "{words:?}");
    }
    let pages = folder.path().join("new/man1");
    printed(&["offload", "man", pages.to_str().unwrap()]);
    for name in &names {
        let page = std::fs::read_to_string(pages.join(format!("cargo-offload-{name}.1")));
        assert!(page.unwrap().starts_with(".ie "), "{name}");
    }
    assert!(!pages.join("cargo-offload-help.1").exists());
}

#[test]
fn ends_quietly_when_nobody_reads_its_output() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-offload"));
    command.args(["offload", "completions", "bash"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}
