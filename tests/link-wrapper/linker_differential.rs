//! What `clang-linker-wrapper` 19 and 22 make of a linker's command line, beside ours, over random lines.
//!
//! LLVM's tool writes some options in another way (`docs/spec/linker-wrapper.md` §0 item 2, §1.3), ours none:
//! [`as_llvm_writes`] is that difference, and nothing else may differ.

use crate::support;
use crate::support::folder::Folder;

use std::collections::BTreeSet;
use std::fs;
use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{Random, cases, run, tool};

/// The linker's: an option or input, with what belongs to it.
const LINKER: &[&[&str]] = &[
    &["a.o"],
    &["d/libfoo.a"],
    &["missing.o"],
    &["d"],
    &["@missing"],
    &["-"],
    &["--"],
    &["-lfoo"],
    &["-l", "foo"],
    &["-l:libfoo.a"],
    &["-Ld"],
    &["-L", "d"],
    &["-library-path=d"],
    &["--library-path", "d"],
    &["--library=d"],
    &["-library", "d"],
    &["-r"],
    &["-relocatable"],
    &["--relocatable"],
    &["-rpath", "x"],
    &["--rpath=x"],
    &["-rpath-link", "x"],
    &["-o", "x"],
    &["-oy"],
    &["--output=x"],
    &["--output", "x"],
    &["-omagic"],
    &["-oformat=x"],
    &["--oformat=elf64-x86-64"],
    &["-output=x"],
    &["--whole-archive"],
    &["-no-whole-archive"],
    &["--sysroot=/"],
    &["-z", "now"],
    &["-znow"],
    &["-m", "elf_x86_64"],
    &["-melf_x86_64"],
    &["-pie"],
    &["-shared"],
    &["-static"],
    &["-Bstatic"],
    &["-Bdynamic"],
    &["--as-needed"],
    &["-no-as-needed"],
    &["--start-group"],
    &["--end-group"],
    &["-dynamic-linker", "/lib64/ld-linux-x86-64.so.2"],
    &["-plugin", "missing.so"],
    &["-plugin-opt=-fresolution=x"],
    &["--hash-style=gnu"],
    &["--build-id"],
    &["--eh-frame-hdr"],
    &["-soname", "x"],
    &["-h", "x"],
    &["-e", "main"],
    &["-u", "main"],
    &["-T", "script"],
    &["-Map=map"],
    &["--Map", "map"],
    &["--defsym=a=1"],
    &["--wrap=main"],
    &["--version-script=v"],
    &["--gc-sections"],
    &["--icf=all"],
    &["-O1"],
    &["-S"],
    &["-y", "main"],
    &["-Ttext=0x1000"],
    &["--threads=4"],
    &["-V"],
    &["-a"],
    &["-b", "binary"],
    &["-c"],
    &["--arch=x"],
    &["--triple=x"],
    &["--whole-program"],
    &["--linker-arg=x"],
    &["--linker-paths=x"],
    &["--unknown", "x"],
    &["-unknown=x"],
];

/// The wrapper's own, in every release.
const OWN: &[&[&str]] = &[
    &["--host-triple=x86_64-pc-linux-gnu"],
    &["--cuda-path=d"],
    &["--device-linker=x"],
    &["--device-linker=amdgcn-amd-amdhsa=-x"],
    &["--embed-bitcode"],
    &["--wrapper-verbose"],
    &["--print-wrapped-module"],
    &["--save-temps"],
    &["--wrapper-jobs=3"],
    &["--compress"],
    &["--compression-level=3"],
    &["-mllvm", "-aarch64-use-aa"],
    &["--offload-opt=-aarch64-use-aa"],
];

/// Those that a release has and others forward.
fn own_of(release: &str) -> &'static [&'static [&'static str]] {
    match release {
        "19" => &[
            &["--opt-level=O3"],
            &["--device-debug"],
            &["--ptxas-arg=-v"],
            &["--clang-backend"],
            &["--builtin-bitcode=nvptx64-nvidia-cuda=x.bc"],
            &["--pass-remarks=x"],
            &["--pass-remarks-missed=x"],
            &["--pass-remarks-analysis=x"],
        ],
        _ => &[
            &["--device-compiler=-O3"],
            &["--device-compiler=amdgcn-amd-amdhsa=-g"],
            &["--should-extract=gfx90a"],
            &["--wrapper-jobs=jobserver"],
        ],
    }
}

/// The command line as LLVM's tool passes it on.
fn as_llvm_writes(line: &[String]) -> Vec<String> {
    let mut written = Vec::new();
    let mut words = line.iter();
    while let Some(word) = words.next() {
        let long = word.trim_start_matches('-');
        let dashes = word.len() - long.len();
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        // `--library` is an alias of the wrong option there.
        let renamed = match (dashes, name) {
            (1 | 2, "library-path" | "library") => Some("-L"),
            // Apart from its value it is no option that LLVM's tool writes again.
            (1 | 2, "rpath") if value.is_some() => Some("--rpath"),
            (2, "output") => Some("-o"),
            _ => None,
        };
        if let Some(renamed) = renamed {
            let value = value.map_or_else(|| words.next().cloned(), |value| Some(value.into()));
            written.extend([renamed.to_owned(), value.unwrap_or_default()]);
            continue;
        }
        match word.as_str() {
            "-r" => written.push("--relocatable".to_owned()),
            "-o" | "-l" | "-L" => {
                written.extend([word.clone(), words.next().cloned().unwrap_or_default()]);
            }
            joined
                if ["-o", "-l", "-L"]
                    .iter()
                    .any(|letter| joined.starts_with(letter)) =>
            {
                written.extend([joined[..2].to_owned(), joined[2..].to_owned()]);
            }
            other => written.push(other.to_owned()),
        }
    }
    written
}

struct Place {
    dir: Folder,
    ours: PathBuf,
}

impl Deref for Place {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.dir
    }
}

impl Place {
    fn new() -> Self {
        let dir = Folder::new();
        let ours = dir.path("clang-linker-wrapper");
        symlink(env!("CARGO_BIN_EXE_offload-link"), &ours).unwrap();
        fs::create_dir(dir.path("d")).unwrap();
        fs::write(dir.path("a.c"), "int a;").unwrap();
        let here = |program: &str| {
            let mut command = Command::new(program);
            command.current_dir(dir.root());
            command
        };
        run(here("cc").args(["-c", "a.c"]));
        run(here("ar").args(["rc", "d/libfoo.a", "a.o"]));
        Self { dir, ours }
    }

    /// The host's command line that a dry run prints, in words without spaces.
    fn host_line(&self, program: &Path, args: &[String]) -> Result<Vec<String>, String> {
        let output = Command::new(program)
            .args(args)
            .current_dir(self.root())
            .env_remove("OFFLOAD_LINK_ACTIVE")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        // After a relocatable link LLVM's tool plans to rename sections, device code or not.
        let line = text.lines().map(str::trim).find_map(|line| {
            let quoted = line.strip_prefix("\"/bin/ld\"");
            quoted.or_else(|| line.strip_prefix("/bin/ld"))
        });
        match (output.status.success(), line) {
            (true, Some(line)) => Ok(line.split_whitespace().map(str::to_owned).collect()),
            _ => Err(text),
        }
    }
}

fn compare(release: &str, word: &str) {
    let Some(theirs) = tool(word, &["clang-linker-wrapper"]) else {
        return;
    };
    let place = Place::new();
    let mut random = Random::new();
    let mut own: Vec<&[&str]> = OWN.to_vec();
    own.extend(own_of(release));
    let mut unused: BTreeSet<&[&str]> = LINKER.iter().chain(&own).copied().collect();
    for _ in 0..cases(100, 400) {
        // A linker's argument first, so that `--` is the linker's; a folder for `-l`.
        let mut line = vec!["a.o".to_owned(), "-Ld".to_owned()];
        for _ in 0..random.below(12) {
            let words = match random.below(4) {
                0 => random.pick(&own),
                _ => random.pick(LINKER),
            };
            unused.remove(words);
            line.extend(words.iter().map(|word| (*word).to_owned()));
        }
        for option in ["--linker-path=/bin/ld", "--dry-run"] {
            // Between two arguments, none of which is the value of the other.
            let end = random.below(2) == 0;
            line.insert(if end { line.len() } else { 0 }, option.to_owned());
        }
        // At the start they end with what is the wrapper's, and a `--` would be too: there is `a.o`.
        let expected = place.host_line(&theirs, &line);
        let found = place.host_line(&place.ours, &line);
        let found = found.map(|line| as_llvm_writes(&line));
        assert_eq!(found, expected, "{release}: {line:?}");
    }
    assert!(unused.is_empty(), "{release}: no line has {unused:?}");
}

#[test]
fn passes_on_what_llvm_22_passes_on() {
    compare("22", "llvm22");
}

#[test]
#[ignore = "`make test-all`: as LLVM 22, beside LLVM 19"]
fn passes_on_what_llvm_19_passes_on() {
    compare("19", "llvm19");
}
