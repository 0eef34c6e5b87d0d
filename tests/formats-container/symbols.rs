//! The symbols that links are about, compared with what `llvm-nm` of LLVM 22 says of the same file.

use crate::support;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use offload_formats::container::symbols;
use support::{run, tool};

const SOURCE: &str = "
extern int needed(void);
extern int perhaps(void) __attribute__((weak));
extern int variable;
int defined(void) { return needed() + variable + (perhaps ? perhaps() : 0); }
__attribute__((weak)) int replaceable(void) { return 1; }
__attribute__((visibility(\"hidden\"))) int inner(void) { return 2; }
int initialized = 3;
int shared __attribute__((common));
static int local(void) { return 4; }
int (*pointer)(void) = local;
";

/// Name, whether it is defined, whether it is weak, whether it is common storage.
type Row = (String, bool, bool, bool);

#[test]
fn finds_the_symbols_that_llvm_nm_prints() {
    let (Some(clang), Some(nm)) = (tool("llvm22", &["clang"]), tool("llvm22", &["llvm-nm"])) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.c"), SOURCE).unwrap();
    let mut compared = 0;
    for arguments in [
        &["--target=x86_64-linux-gnu"][..],
        &["--target=aarch64-linux-gnu", "-O2"],
        &["--target=x86_64-pc-windows-msvc"],
        &["--target=x86_64-linux-gnu", "-flto"],
        &[
            "--target=amdgcn-amd-amdhsa",
            "-nogpulib",
            "-emit-llvm",
            "-fvisibility=default",
        ],
        &["--target=nvptx64-nvidia-cuda", "-nogpulib", "-emit-llvm"],
    ] {
        let object = folder.path().join("s.o");
        let mut compile = Command::new(&clang);
        compile.args(["-ffreestanding", "-c", "s.c", "-o", "s.o"]);
        run(compile.args(arguments).current_dir(folder.path()));
        let theirs: BTreeSet<Row> = run(Command::new(&nm)
            .args(["-g", "--format=posix"])
            .arg(&object))
        .lines()
        .map(|line| {
            let mut words = line.split(' ');
            let (name, letter) = (words.next().unwrap(), words.next().unwrap());
            let defined = !["U", "w", "v"].contains(&letter);
            (
                name.to_owned(),
                defined,
                letter.eq_ignore_ascii_case("w") || letter.eq_ignore_ascii_case("v"),
                letter == "C",
            )
        })
        .collect();
        let bytes = fs::read(&object).unwrap();
        let found = symbols(bytes.as_slice(), 0..bytes.len() as u64).unwrap();
        let ours: BTreeSet<Row> = found
            .iter()
            .map(|symbol| {
                let name = String::from_utf8(symbol.name.to_vec()).unwrap();
                (name, symbol.defined, symbol.weak, symbol.common)
            })
            .collect();
        assert_eq!(ours, theirs, "{arguments:?}");
        let hidden: Vec<&[u8]> = found
            .iter()
            .filter(|symbol| symbol.hidden)
            .map(|symbol| symbol.name)
            .collect();
        let coff = arguments[0].contains("windows");
        assert_eq!(
            hidden,
            if coff { vec![] } else { vec![&b"inner"[..]] },
            "{arguments:?}"
        );
        compared += ours.len();
    }
    assert!(compared > 40, "{compared}");
}
