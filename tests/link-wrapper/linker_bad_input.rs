//! The linker wrapper and inputs that are cut, changed or made to lie.
//!
//! Whatever an input is, one of three things happens: its images are all in the report; an error names it; or the
//! wrapper leaves it to the host linker, which then refuses it.

use crate::linker_support as support;
use crate::support::folder::Folder;

use std::fs;
use std::ops::Deref;
use std::ops::Range;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use support::{found, text, tool};

const TOOL: &str = env!("CARGO_BIN_EXE_offload-link");

macro_rules! golden {
    ($name:literal) => {
        include_bytes!(concat!("../golden/22.1.8/", $name))
    };
}

/// A file that LLVM's or GNU's tools wrote (`tests/golden/README.md`), and how many images are in it.
#[derive(Clone)]
struct Golden {
    name: &'static str,
    bytes: &'static [u8],
    images: usize,
    /// Places behind a member of an archive: cut there it is a shorter archive, which linkers take.
    ends: &'static [usize],
    /// The bytes by which alone the images are known: `__CLANG_OFFLOAD_BUNDLE__`, and where that name is.
    names: &'static [Range<usize>],
}

#[rustfmt::skip]
const GOLDENS: [Golden; 13] = [
    Golden::new("elf64le.o", golden!("elf64le.o"), 2),
    Golden::new("elf32be.o", golden!("elf32be.o"), 2),
    Golden::new("bundle.o", golden!("bundle-in-object.o"), 1).named_at(&[0x5b..0x73, 0x1c0..0x1c4]),
    Golden::new("bundle.obj", golden!("bundle-in-object.obj"), 1),
    Golden::new("bitcode.o", golden!("embedded.bc"), 4),
    Golden::new("two.bin", golden!("two-images.offload-binary"), 2),
    Golden::new("plain.bc", golden!("without-host.bundle"), 2),
    Golden::new("aligned.bc", golden!("aligned.bundle"), 2),
    Golden::new("ccob.bc", golden!("compressed-without-host.bundle"), 1),
    Golden::new("gnu.a", golden!("gnu.a"), 2).ends_at(&[0x8, 0x5a, 0xb4]),
    Golden::new("bsd.a", golden!("bsd.a"), 2).ends_at(&[0x8]),
    Golden::new("coff.a", golden!("coff.a"), 2).ends_at(&[0x8, 0x5a, 0xb6, 0x10e]),
    Golden::new("thin.a", golden!("thin.a"), 4).ends_at(&[0x8, 0x5a, 0xba, 0xf6]),
];

impl Golden {
    const fn new(name: &'static str, bytes: &'static [u8], images: usize) -> Self {
        Self {
            name,
            bytes,
            images,
            ends: &[],
            names: &[],
        }
    }

    const fn ends_at(self, ends: &'static [usize]) -> Self {
        Self { ends, ..self }
    }

    const fn named_at(self, names: &'static [Range<usize>]) -> Self {
        Self { names, ..self }
    }
}

/// Those, and an object for Windows where clang is here.
fn goldens() -> &'static [Golden] {
    static ALL: OnceLock<Vec<Golden>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = Vec::from(GOLDENS);
        let Some(clang) = tool("llvm22", "clang") else {
            return all;
        };
        let dir = Folder::new();
        fs::write(dir.path("x.c"), "int x;").unwrap();
        dir.write("two.bin", golden!("two-images.offload-binary"));
        let compile = Command::new(clang)
            .args([
                "--target=x86_64-pc-windows-msvc",
                "-c",
                "x.c",
                "-o",
                "x.obj",
            ])
            .args(["-Xclang", "-fembed-offload-object=two.bin"])
            .current_dir(dir.root())
            .status();
        assert!(compile.unwrap().success());
        let bytes = fs::read(dir.path("x.obj")).unwrap();
        all.push(Golden::new("windows.obj", bytes.leak(), 2));
        all
    })
}

/// A folder for one thread, with a file at a time in it.
struct Bench {
    dir: Folder,
}

impl Deref for Bench {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.dir
    }
}

impl Bench {
    fn new() -> Self {
        let dir = Folder::new();
        fs::create_dir(dir.path("tmp")).unwrap();
        symlink(TOOL, dir.path("clang-linker-wrapper")).unwrap();
        // What the thin archive names.
        for name in ["fat.o", "a_rather_long_member_name.o"] {
            dir.write(name, golden!("elf64le.o"));
        }
        Self { dir }
    }

    /// A dry run, with little memory: nothing may be allocated by what a file says.
    fn plan(&self, name: &str, under_llvms_name: bool) -> Output {
        self.plan_with(&[name], under_llvms_name)
    }

    fn plan_with(&self, names: &[&str], under_llvms_name: bool) -> Output {
        let program = match under_llvms_name {
            true => self.path("clang-linker-wrapper"),
            false => PathBuf::from(TOOL),
        };
        Command::new("sh")
            .args(["-c", "ulimit -v 1000000; exec timeout 20 \"$@\"", "sh"])
            .arg(program)
            .args([
                "--dry-run",
                "--report=text",
                "--linker-path=ld",
                "-o",
                "output",
            ])
            .arg("--whole-archive")
            .args(names)
            .current_dir(self.root())
            .env("TMPDIR", self.path("tmp"))
            .env_remove("OFFLOAD_LINK_REPORT")
            .env_remove("OFFLOAD_LINK_ACTIVE")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Whether every host linker that is here refuses a file.
    fn is_refused(&self, name: &str, linkers: &[PathBuf]) -> bool {
        linkers.iter().all(|linker| {
            let mut link = Command::new(linker);
            link.current_dir(self.root());
            link.args(["-r", "-o", "tmp/linked", "--whole-archive", name]);
            let refused = !link.output().unwrap().status.success();
            let _ = fs::remove_file(self.path("tmp/linked"));
            refused
        })
    }

    /// What is wrong with how the wrapper took a file; nothing, if nothing is.
    fn judge(
        &self,
        golden: &Golden,
        bytes: &[u8],
        odd: bool,
        linkers: &[PathBuf],
    ) -> Option<String> {
        fs::write(self.path(golden.name), bytes).unwrap();
        let output = self.plan(golden.name, odd);
        let said = text(&output.stderr);
        let problem = match output.status.code() {
            _ if self.path("output").exists() => "it wrote an output",
            _ if fs::read_dir(self.path("tmp")).unwrap().count() > 0 => "it left files",
            Some(1) if said.contains("panicked") => "it panicked",
            Some(1) if !says_why(&said, golden.name) => "the error names no file",
            Some(1) => return None,
            Some(0) if images(&said, golden) >= golden.images => return None,
            Some(0) if said.contains(&format!("warning: {}", golden.name)) => return None,
            Some(0)
                if is_passed_on(&said, golden.name) && self.is_refused(golden.name, linkers) =>
            {
                return None;
            }
            Some(0) => "images are lost",
            _ => "it ended otherwise",
        };
        Some(format!("{problem}: {}\n{said}", output.status))
    }
}

/// The number of a golden's images in a report.
fn images(report: &str, golden: &Golden) -> usize {
    let line = |line: &&str| line.starts_with(golden.name) && line.contains(" bytes: ");
    report.lines().filter(line).count()
}

/// Tells whether the host link, which is printed, has the file. Under LLVM's name the linker is in quotes.
fn is_passed_on(said: &str, name: &str) -> bool {
    let mut lines = said.lines();
    let link = lines.find(|line| line.starts_with("ld ") || line.starts_with(" \"ld\" "));
    link.is_some_and(|link| link.split(' ').any(|word| word == name))
}

/// Whether an error names the file, or the targets that nothing here links.
fn says_why(said: &str, name: &str) -> bool {
    let errors = said.lines().filter_map(|line| line.split_once(": error: "));
    let mut errors = errors.map(|(_, error)| error);
    errors.any(|error| error.starts_with(name) || error.starts_with("device code was found"))
}

/// Judges a variant of the goldens for each of `places`; `vary` makes it. Without `OFFLOAD_TEST_ALL=1` for every tenth
/// from `first` on: in each golden others, since their counts differ.
fn judge_all(
    first: usize,
    places: impl Fn(&Golden) -> Vec<usize>,
    vary: impl Fn(&Golden, usize) -> Vec<u8> + Sync,
) {
    let linkers = linkers();
    let all: Vec<(&Golden, usize)> = goldens()
        .iter()
        .flat_map(|golden| places(golden).into_iter().map(move |place| (golden, place)))
        .collect();
    let all: Vec<(&Golden, usize)> = crate::support::share(all, first, 10).collect();
    let (next, problems) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                let bench = Bench::new();
                while let Some((golden, place)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let odd = place / 2 % 2 == 1;
                    let problem = bench.judge(golden, &vary(golden, *place), odd, &linkers);
                    let name = format!("{}, at {place:#x}", golden.name);
                    let problem = problem.map(|problem| format!("{name}: {problem}"));
                    problems.lock().unwrap().extend(problem);
                }
            });
        }
    });
    let (problems, count) = (problems.into_inner().unwrap(), all.len());
    let text = problems.join("\n");
    assert!(
        problems.is_empty(),
        "{} of {count}:\n{text}",
        problems.len()
    );
}

/// One at least reads each kind of file.
fn linkers() -> Vec<PathBuf> {
    let lld = tool("llvm22", "ld.lld").or_else(|| tool("llvm19", "ld.lld"));
    let here: Vec<_> = [found("ld.bfd"), lld].into_iter().flatten().collect();
    assert!(!here.is_empty(), "no linker is here");
    here
}

/// Where a file is cut, or changed: in its header everywhere, in its tables often, which are at its start and its
/// end, and now and then in between. `OFFLOAD_TEST_STEP=1` takes every place: minutes.
fn places(size: usize) -> impl Iterator<Item = usize> {
    let step = std::env::var("OFFLOAD_TEST_STEP").ok();
    let step: Option<usize> = step.map(|step| step.parse().unwrap());
    (0..size).filter(move |place| {
        let usual = match place {
            0..40 => 1,
            place if *place < 256 || place + 256 > size => 5,
            _ => 37,
        };
        place % step.unwrap_or(usual) == 0
    })
}

#[test]
fn finds_the_images_of_whole_files() {
    let bench = Bench::new();
    for golden in goldens() {
        for odd in [false, true] {
            let problem = bench.judge(golden, golden.bytes, odd, &[]);
            assert_eq!(problem, None, "{}", golden.name);
            let said = text(&bench.plan(golden.name, odd).stderr);
            assert_eq!(images(&said, golden), golden.images, "{said}");
        }
    }
}

#[test]
fn loses_no_image_of_a_file_that_is_cut() {
    // An empty file is a linker's script for GNU's.
    let has_lost = |golden: &Golden, place: &usize| *place > 0 && !golden.ends.contains(place);
    judge_all(
        0,
        |golden| {
            let places = places(golden.bytes.len());
            places.filter(|place| has_lost(golden, place)).collect()
        },
        |golden, place| golden.bytes[..place].to_vec(),
    );
}

#[test]
fn loses_no_image_of_a_file_that_is_changed() {
    let is_name = |golden: &Golden, place: &usize| {
        let mut names = golden.names.iter();
        names.any(|name| name.contains(place))
    };
    judge_all(
        2,
        |golden| {
            let places = places(golden.bytes.len());
            places.filter(|place| !is_name(golden, place)).collect()
        },
        |golden, place| {
            let mut bytes = golden.bytes.to_vec();
            let old = bytes[place];
            let values = [0xff, 0x00, 0x80, 0x01, old.wrapping_add(1), old ^ 0x10];
            let others = values.iter().filter(|value| **value != old);
            bytes[place] = *others.cycle().nth(place % 6).unwrap();
            bytes
        },
    );
}

#[test]
fn reads_objects_whose_type_gnus_linker_does_not_ask_for() {
    let (bench, golden) = (Bench::new(), &GOLDENS[0]);
    for file_type in [0, 5, 0xfe] {
        let mut bytes = golden.bytes.to_vec();
        bytes[0x10] = file_type;
        let problem = bench.judge(golden, &bytes, false, &[]);
        assert_eq!(problem, None, "{file_type}");
        let said = text(&bench.plan(golden.name, false).stderr);
        assert_eq!(images(&said, golden), golden.images, "{file_type}: {said}");
    }
}

#[test]
fn names_what_it_cannot_read_beside_device_code_and_warns_without_any() {
    let bench = Bench::new();
    let write = |name: &str, bytes: &[u8]| bench.write(name, bytes);
    let gnu = golden!("gnu.a");
    write("whole.bc", golden!("three-images.bundle"));
    let mut untyped = golden!("elf64le.o").to_vec();
    // `sh_type` of `.llvm.offloading`: `SHT_PROGBITS`, which GNU's assembler gives sections that nobody gave a type.
    untyped[0x334..0x338].copy_from_slice(&1u32.to_le_bytes());
    let mut odd_member = gnu.to_vec();
    odd_member[0xf0 + 4] = 3; // `EI_CLASS` of fat.o
    let missing =
        b"!<thin>\ngone.o/         0           0     0     644     1008      `\n".to_vec();
    for (name, bytes, problem) in [
        (
            "cut.a",
            &gnu[..0x200],
            "cut.a: member at offset 0xb4: content at offset 0xf0 with size 0x3f0 runs past the end at 0x200",
        ),
        (
            "untyped.o",
            &untyped,
            "untyped.o: section 4 is `.llvm.offloading` and has type 0x1, not 0x6fff4c0b",
        ),
        (
            "odd.a",
            &odd_member,
            "odd.a(fat.o): ELF class 3 with byte order 1 is not supported (1 and 2 are)",
        ),
        (
            "missing.a",
            &missing,
            "missing.a(gone.o): cannot open `gone.o`: No such file or directory (os error 2)",
        ),
    ] {
        write(name, bytes);
        let alone = bench.plan(name, false);
        let said = text(&alone.stderr);
        let (file, reason) = problem.split_once(": ").unwrap();
        let warning =
            format!(": warning: {file}: device code in it would not be linked: {reason}\n");
        assert!(
            said.contains(&warning) && alone.status.success(),
            "{name}: {said}"
        );
        let both = bench.plan_with(&[name, "whole.bc"], true);
        let said = text(&both.stderr);
        assert!(
            said.contains(&format!(": error: {problem}\n")),
            "{name}: {said}"
        );
        assert_eq!(both.status.code(), Some(1), "{name}");
    }
}
