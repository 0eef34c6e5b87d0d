//! What tests need of the machine: programs of others, which may be missing.
//!
//! A test whose program is missing says so and passes. `OFFLOAD_REQUIRE` lists, with commas, what
//! must be there: then it fails.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(
    unreachable_pub,
    reason = "a module of several crates, none of which exports it"
)]

pub mod bad_archives;
pub mod beside;
pub mod comgr;
pub mod crates;
pub mod cuda_package;
pub mod dependencies;
pub mod device_libraries;
pub mod folder;
pub mod gpu_driver;
pub mod launches;
pub mod package;
pub mod shim_clang;
pub mod sysroots;
pub mod tool_folder;
pub mod wine;

pub use folder::run;

use std::collections::BTreeMap;
use std::io::Write;
use std::panic::Location;
use std::path::{Path, PathBuf};

/// What `OFFLOAD_REQUIRE` may list, and where Debian has it besides `PATH`.
const WORDS: [(&str, &[&str]); 21] = [
    ("llvm16", &["/usr/lib/llvm-16/bin"]),
    ("llvm19", &["/usr/lib/llvm-19/bin"]),
    ("llvm22", &["/usr/lib/llvm-22/bin"]),
    ("omptarget19", &["/usr/lib/llvm-19/lib"]),
    ("omptarget22", &["/usr/lib/llvm-22/lib"]),
    ("comgr", &["/usr/lib/x86_64-linux-gnu"]),
    ("amdhip", &["/usr/lib/x86_64-linux-gnu"]),
    ("cuda", &["/usr/local/cuda/bin"]),
    // By `cuda-12/bin/ptxas`: the `ptxas` of PATH may be of another release.
    (
        "cuda12",
        &[concat!(env!("CARGO_MANIFEST_DIR"), "/../.tools")],
    ),
    ("rustweb", &["/usr/lib/rustlib/src/rust/library/core/src"]),
    // Of toolchains of rustup, which `.ci/setup` leaves alone.
    ("rustlld", &[]),
    ("llvmtools", &[]),
    ("cmake", &[]),
    ("qemu", &[]),
    ("ccache", &[]),
    ("distcc", &[]),
    ("sccache", &[]),
    ("redis", &[]),
    ("mingw", &[]),
    ("mold", &[]),
    ("wine", &["/usr/lib/wine"]),
];

/// The first of `names` that this machine has: programs, or libraries. `word` is what
/// `OFFLOAD_REQUIRE` calls it.
///
/// Without it this says so, and the test shall return.
///
/// # Panics
///
/// When none is there and `OFFLOAD_REQUIRE` lists `word`; when it lists what is not in the table.
pub fn tool(word: &str, names: &[&str]) -> Option<PathBuf> {
    let row = WORDS.iter().find(|(known, _)| *known == word);
    let (_, folders) = row.unwrap_or_else(|| panic!("no word of OFFLOAD_REQUIRE: `{word}`"));
    let found = find(folders, names);
    if found.is_none() {
        skip(word, &names.join(" or "));
    }
    found
}

/// Says that a test, or a part of it, is skipped, since this machine lacks `what`.
///
/// # Panics
///
/// When `OFFLOAD_REQUIRE` lists `word`.
pub fn skip(word: &str, what: &str) {
    let required = required(&std::env::var("OFFLOAD_REQUIRE").unwrap_or_default());
    missing(word, what, required.iter().any(|required| required == word));
}

/// Tells whether CUDA's toolkit in a folder has headers; if not, this does as [`skip`].
pub fn has_cuda_headers(root: &Path) -> bool {
    let is_there = root.join("include/cuda_runtime.h").is_file();
    if !is_there {
        skip("cuda", "cuda_runtime.h");
    }
    is_there
}

/// The same for a program of every development machine, such as `readelf`; required as soon as
/// anything is.
pub fn program(name: &str) -> Option<PathBuf> {
    let required = !required(&std::env::var("OFFLOAD_REQUIRE").unwrap_or_default()).is_empty();
    find(&[], &[name]).or_else(|| {
        missing(name, name, required);
        None
    })
}

/// Argument for links with libomptarget: otherwise GNU's linker reads libLLVM, too, and takes four times as long.
pub const WITHOUT_LIBLLVM: &str = "-Wl,--allow-shlib-undefined";

/// `OFFLOAD_TEST_ALL=1` asks for every case of the tests that have many, as `make test-all` does. Without it they take
/// those that show each shape once.
pub fn tests_all() -> bool {
    std::env::var_os("OFFLOAD_TEST_ALL").is_some_and(|value| value == "1")
}

/// The number of cases of a test: `all` with [`tests_all`], else `few`, in which [`Random::dealt`] has every choice.
pub fn cases(few: usize, all: usize) -> usize {
    if tests_all() { all } else { few }
}

/// A share of the cases of a test, at least one: all with [`tests_all`], otherwise every `count`th from `first` on. Tests that
/// differ in `first` have each case between them.
pub fn share<T>(
    all: impl IntoIterator<Item = T>,
    first: usize,
    count: usize,
) -> impl Iterator<Item = T> {
    let (first, count) = if tests_all() { (0, 1) } else { (first, count) };
    let mut cases = all.into_iter().skip(first).step_by(count).peekable();
    assert!(cases.peek().is_some(), "no case is left from {first} on");
    cases
}

/// For `env`: a test that runs in the background or under `nohup` must not have a tool inherit ignored signals.
pub const DEFAULT_SIGNALS: &str = "--default-signal=HUP,INT,QUIT,TERM,XCPU";

/// Numbers for random tests, the same in every run; `OFFLOAD_TEST_SEED=<number>` gives others,
/// and `OFFLOAD_TEST_SEED=time` others in every run. The seed is printed with a failure.
pub struct Random {
    state: u64,
    /// By the place of a decision and the number of its choices.
    decks: Option<BTreeMap<(&'static Location<'static>, u64), Deck>>,
}

/// The choices of a decision, dealt in turns.
#[derive(Default)]
struct Deck {
    left: Vec<u64>,
    deals: usize,
}

impl Random {
    pub fn new() -> Self {
        let seed = match std::env::var("OFFLOAD_TEST_SEED").as_deref() {
            Ok("time") => {
                let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                now.unwrap().as_nanos() as u64
            }
            Ok(seed) => seed.parse().unwrap(),
            Err(_) => 1,
        };
        println!("OFFLOAD_TEST_SEED={seed}");
        Self {
            state: seed,
            decks: None,
        }
    }

    /// For a test that takes few cases: each decision takes each of its choices once before it takes one again.
    /// With [`tests_all`] as `new`.
    pub fn dealt() -> Self {
        Self {
            decks: (!tests_all()).then(BTreeMap::new),
            ..Self::new()
        }
    }

    /// Fails unless each decision had each of its choices: the test shall take more cases.
    pub fn expect_every_choice(&self) {
        for ((place, end), deck) in self.decks.iter().flatten() {
            let missing = if deck.deals > 1 { &[][..] } else { &deck.left };
            assert!(
                missing.is_empty(),
                "{place}: no case had {missing:?} of {end}"
            );
        }
    }

    /// A number below `end`: a decision of the test, if there are few.
    #[track_caller]
    pub fn below(&mut self, end: u64) -> u64 {
        /// Larger numbers are content.
        const MOST_CHOICES: u64 = 64;
        let place = Location::caller();
        let Some(mut decks) = self.decks.take_if(|_| end <= MOST_CHOICES) else {
            return self.any_below(end);
        };
        let deck = decks.entry((place, end)).or_default();
        if deck.left.is_empty() {
            deck.left.extend(0..end);
            deck.deals += 1;
            self.shuffle(&mut deck.left);
        }
        let choice = deck.left.pop().expect("a number is below another");
        self.decks = Some(decks);
        choice
    }

    /// A number below `end` that is no decision, as a place in what decisions made.
    pub fn any_below(&mut self, end: u64) -> u64 {
        // splitmix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for index in (1..items.len()).rev() {
            items.swap(index, self.any_below(index as u64 + 1) as usize);
        }
    }

    #[track_caller]
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }

    pub fn bytes(&mut self, below: u64) -> Vec<u8> {
        (0..self.any_below(below))
            .map(|_| self.any_below(256) as u8)
            .collect()
    }
}

/// The first program: under any name in a release's own folder, then in `PATH`. There LLVM's tools find each other, also
/// where `PATH` has them with a suffix only.
fn find(folders: &[&str], names: &[&str]) -> Option<PathBuf> {
    let own = folders.iter().map(Path::new);
    let own = own.flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let others = names
        .iter()
        .flat_map(|name| path.iter().map(move |folder| folder.join(name)));
    own.chain(others).find(|file| file.is_file())
}

/// Splits the list and checks its words.
pub fn required(list: &str) -> Vec<String> {
    let words = list
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty());
    let words = words.inspect(|word| {
        let known = WORDS.iter().any(|(known, _)| known == word);
        assert!(
            known,
            "OFFLOAD_REQUIRE: `{word}` is not one of {:?}",
            WORDS.map(|(word, _)| word)
        );
    });
    words.map(str::to_owned).collect()
}

/// Says that `what` is missing, or panics if it is required.
pub fn missing(word: &str, what: &str, required: bool) {
    assert!(
        !required,
        "OFFLOAD_REQUIRE lists {word}, and there is no {what}"
    );
    // Past the capture of the test harness, so that it is seen.
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "skipped: {test}: no {what} ({word})");
}
