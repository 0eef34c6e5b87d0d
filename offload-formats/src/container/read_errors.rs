//! Every search reports a failed read: it is not a file without images.

use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::bundled::{self, Unpacking};
use super::decompression_limit::DecompressionLimit;
use super::device_library::{self, PlainObjects};
use super::prune::{PruneChoice, PtxChoice, prune};
use super::verify::{VerifySettings, verify};
use super::{bundles, inventory, kernels};
use crate::format::bytes::{ReadAt, ReadCache};
use crate::format::unpacked::Scratch;

/// `EIO`.
const CODE: i32 = 5;

/// A file that succeeds for as many reads as `left`, and then fails once.
struct Failing {
    file: Cursor<&'static [u8]>,
    left: Arc<AtomicUsize>,
}

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.left.fetch_sub(1, Ordering::Relaxed) {
            0 => Err(io::Error::from_raw_os_error(CODE)),
            _ => self.file.read(buffer),
        }
    }
}

impl Seek for Failing {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

type Run = fn(&dyn Fn() -> ReadCache) -> Result<(), String>;

fn done<T, E: ToString>(result: Result<T, E>) -> Result<(), String> {
    result.map(drop).map_err(|problem| problem.to_string())
}

fn unpacking() -> Unpacking {
    Unpacking::in_memory(1 << 20)
}

fn problems(found: &inventory::Inventory) -> Result<(), String> {
    let first = found.problems.first();
    first.map_or(Ok(()), |problem| Err(problem.to_string()))
}

/// Size of the data; another function reports that it cannot be read.
fn size(cache: &ReadCache) -> u64 {
    cache.size().unwrap_or(0)
}

const SEARCHES: &[(&str, Run)] = &[
    ("find", |open| done(super::find(&open()))),
    ("images", |open| done(super::images(&open()))),
    ("link_inputs", |open| {
        done(super::link_inputs(&open(), &mut unpacking()))
    }),
    ("bundles::find", |open| {
        let data = open();
        done(bundles::find(&data, 0..size(&data)))
    }),
    ("bundled::entries", |open| {
        let data = open();
        done(bundled::entries(&data, 0..size(&data), &mut unpacking()))
    }),
    ("device_library::images", |open| {
        let plain = PlainObjects::Images;
        done(device_library::images(&open(), plain, &mut unpacking()))
    }),
    ("symbols", |open| {
        let data = open();
        done(super::symbols(&data, 0..size(&data)))
    }),
    ("dynamic_symbols", |open| {
        let data = open();
        done(super::dynamic_symbols(&data, 0..size(&data)))
    }),
    ("kernels_within", |open| {
        let data = open();
        done(kernels::kernels_within(&data, 0..size(&data)))
    }),
    ("inventory", |open| {
        problems(&inventory::inventory(&open(), &mut unpacking()))
    }),
    ("exhaustive_inventory", |open| {
        problems(&inventory::exhaustive_inventory(&open(), &mut unpacking()))
    }),
    ("prune", |open| {
        let choice = PruneChoice::keep(vec!["gfx90a".to_owned()], PtxChoice::Keep);
        let (limit, scratch) = (DecompressionLimit::default(), Scratch::in_memory());
        done(prune(&open(), &choice, limit, &scratch))
    }),
];

const FILES: &[(&str, &[u8])] = &[
    (
        "object",
        include_bytes!("../../../tests/golden/22.1.8/elf64le.o"),
    ),
    (
        "archive",
        include_bytes!("../../../tests/golden/22.1.8/gnu.a"),
    ),
    (
        "offload binary",
        include_bytes!("../../../tests/golden/22.1.8/two-images.offload-binary"),
    ),
];

/// Runs a search with the first read failing, then the second, until it needs no more reads.
fn fails_at_each_read(
    file: &'static [u8],
    what: &str,
    run: impl Fn(&dyn Fn() -> ReadCache) -> Result<(), String>,
) {
    let system = io::Error::from_raw_os_error(CODE).to_string();
    for read in 0..10_000 {
        let left = Arc::new(AtomicUsize::new(read));
        let open = || {
            let (file, left) = (Cursor::new(file), Arc::clone(&left));
            ReadCache::new(Failing { file, left })
        };
        let found = run(&open);
        let failed = left.load(Ordering::Relaxed) > read;
        match found {
            _ if !failed => return assert!(read > 0, "{what}: reads nothing"),
            Ok(()) => panic!("{what}: success, although read {read} failed"),
            Err(problem) => assert!(problem.ends_with(&system), "{what}: read {read}: {problem}"),
        }
    }
    panic!("{what}: too many reads");
}

#[test]
fn reports_each_failed_read() {
    for (name, file) in FILES {
        for (search, run) in SEARCHES {
            fails_at_each_read(file, &format!("{search} of {name}"), run);
        }
        let found = inventory::inventory(*file, &mut unpacking());
        fails_at_each_read(file, &format!("verify of {name}"), |open| {
            let settings = VerifySettings {
                runtime: None,
                limit: DecompressionLimit::default(),
                scratch: Scratch::in_memory(),
            };
            done(verify(open, &found, settings))
        });
    }
}
