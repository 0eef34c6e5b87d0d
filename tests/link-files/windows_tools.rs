//! The tools for Windows, started by Wine: they give the bytes and the lines that they give on Linux.
//!
//! `.ci/hosts` builds them and runs this; OFFLOAD_WINDOWS_TOOLS names their folder.

use crate::support;
use crate::support::folder::Folder;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::bad_archives::tree;
use support::wine::Wine;

/// Folders with the same inputs, one for the tools of each system.
struct Folders {
    linux: Folder,
    windows: Folder,
    tools: PathBuf,
    wine: Wine,
}

impl Folders {
    fn new() -> Self {
        let tools = std::env::var_os("OFFLOAD_WINDOWS_TOOLS");
        Self {
            linux: Folder::new(),
            windows: Folder::new(),
            tools: tools.expect("OFFLOAD_WINDOWS_TOOLS is set").into(),
            wine: Wine::start().expect("Wine is installed"),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        for folder in [&self.linux, &self.windows] {
            folder.write(name, bytes);
        }
    }

    /// Runs the tool of both systems, and compares what they say and all files. Errors of the system have other words.
    #[track_caller]
    fn same(&self, tool: &str, args: &[&str]) -> String {
        let linux = Command::new(tool_of_linux(tool));
        let windows = self.wine.command(&self.tools.join(format!("{tool}.exe")));
        let [linux, windows] = [(linux, &self.linux), (windows, &self.windows)]
            .map(|(mut tool, folder)| self.wine.output(tool.args(args).current_dir(folder.root())));
        let said = format!("{tool} {args:?}: {linux:?}\n{windows:?}");
        assert_eq!(linux.status.code(), windows.status.code(), "{said}");
        // Paths have separators of their own.
        let lines = |text: &[u8]| String::from_utf8_lossy(text).replace('\\', "/");
        let [ours, theirs] = [&linux, &windows].map(|output| lines(&output.stdout));
        let first = ours
            .lines()
            .zip(theirs.lines())
            .find(|(ours, theirs)| ours != theirs);
        assert_eq!(first, None, "{tool} {args:?}");
        assert_eq!(ours.len(), theirs.len(), "{said}");
        if linux.status.success() {
            assert!(linux.stderr == windows.stderr, "{said}");
        }
        let [ours, theirs] = [&self.linux, &self.windows].map(files);
        let differs = |(name, bytes): &(&PathBuf, &Vec<u8>)| theirs.get(*name) != Some(*bytes);
        let first = ours.iter().find(differs).map(|(name, _)| name);
        assert_eq!(first, None, "{said}");
        assert!(ours.keys().eq(theirs.keys()), "{said}");
        String::from_utf8(linux.stdout).unwrap()
    }
}

/// Every file of a folder, by its name from the folder on.
fn files(folder: &Folder) -> BTreeMap<PathBuf, Vec<u8>> {
    let relative = |(name, bytes): (String, Vec<u8>)| {
        let name = Path::new(&name).strip_prefix(folder.root()).unwrap();
        (name.to_owned(), bytes)
    };
    tree(folder.root()).into_iter().map(relative).collect()
}

fn tool_of_linux(tool: &str) -> &'static str {
    match tool {
        "offload-bundler" => env!("CARGO_BIN_EXE_offload-bundler"),
        "offload-packager" => env!("CARGO_BIN_EXE_offload-packager"),
        "offload-link" => env!("CARGO_BIN_EXE_offload-link"),
        _ => env!("CARGO_BIN_EXE_cargo-offload"),
    }
}

/// Writes each golden file, and returns their names.
fn corpus(folders: &Folders) -> Vec<String> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden");
    let mut written = Vec::new();
    for version in fs::read_dir(golden).unwrap() {
        let version = version.unwrap().path();
        for file in fs::read_dir(&version).into_iter().flatten() {
            let file = file.unwrap().path();
            let [version, name] =
                [&version, &file].map(|path| path.file_name().unwrap().to_str().unwrap());
            // Its members are elsewhere, and the system has other words for that.
            if name == "thin.a" {
                continue;
            }
            let name = format!("{version}-{name}");
            folders.write(&name, &fs::read(&file).unwrap());
            written.push(name);
        }
    }
    assert!(written.len() > 20, "{written:?}");
    written
}

const TARGETS: &str = "-targets=host-x86_64-unknown-linux-gnu,hip-amdgcn-amd-amdhsa--gfx90a,hip-amdgcn-amd-amdhsa--gfx1100";

#[test]
#[ignore = "`.ci/hosts` builds the tools for Windows"]
fn gives_the_bytes_of_linux() {
    let folders = Folders::new();
    folders.same("offload-bundler", &["--version"]);
    folders.same("offload-link", &["--help"]);

    let corpus = corpus(&folders);
    let with_files = |args: &[&str]| {
        let files = corpus.iter().map(String::as_str);
        let args: Vec<&str> = args.iter().copied().chain(files).collect();
        folders.same("cargo-offload", &args);
    };
    with_files(&["inspect", "--kernels"]);
    with_files(&["inspect", "--json"]);
    with_files(&["verify"]);
    with_files(&["size"]);
    let mut pruned_files = 0;
    for name in &corpus {
        let ends = ["compressed.bundle", "fatbin", "offload-binary", "elf"];
        if ends.iter().any(|end| name.ends_with(end)) {
            let [images, pruned] = ["images", "pruned"].map(|end| format!("{name}.{end}"));
            folders.same("cargo-offload", &["extract", "--out", &images, name]);
            let keep = ["prune", "--keep", "gfx90a,sm_80", "--output", &pruned, name];
            folders.same("cargo-offload", &keep);
            pruned_files += usize::from(folders.windows.path(&pruned).exists());
        }
    }
    assert!(pruned_files >= 6, "{pruned_files} files");

    for (name, size) in [("host", 100), ("gfx90a", 70_000), ("gfx1100", 5000)] {
        let bytes: Vec<u8> = (0..size)
            .map(|at: u32| (at.wrapping_mul(at) >> 7) as u8)
            .collect();
        folders.write(name, &bytes);
    }
    let inputs = ["-input=host", "-input=gfx90a", "-input=gfx1100"];
    for (kind, options) in [
        ("o", &[][..]),
        ("bc", &["-bundle-align=4096"]),
        ("i", &[]),
        ("o", &["-compress"]),
    ] {
        let kind = format!("-type={kind}");
        let output = format!("-output=bundle{}", options.concat());
        let mut args = vec![&*kind, TARGETS, &*output];
        args.extend(inputs.iter().chain(options));
        folders.same("offload-bundler", &args);
        let input = output.replace("-output", "-input");
        let listed = folders.same("offload-bundler", &["--list", &kind, &input]);
        assert_eq!(listed.lines().count(), 3, "{listed}");
        let mut args = vec!["--unbundle", &*kind, TARGETS, &*input];
        args.extend(["-output=one", "-output=two", "-output=three"]);
        folders.same("offload-bundler", &args);
    }

    folders.same(
        "offload-packager",
        &[
            "-o",
            "packed",
            "--image=file=gfx90a,triple=amdgcn-amd-amdhsa,arch=gfx90a,kind=hip",
            "--image=file=gfx1100,triple=amdgcn-amd-amdhsa,arch=gfx1100,kind=openmp",
        ],
    );
    folders.same(
        "offload-packager",
        &["packed", "--image=file=again,arch=gfx90a"],
    );
    folders.same("cargo-offload", &["inspect", "packed"]);
    folders.same("cargo-offload", &["archive", "--help"]);
    // An input that is not there, and one that is none.
    folders.same("cargo-offload", &["inspect", "nothing"]);
    folders.same("offload-bundler", &["--list", "-type=o", "-input=host"]);
}
