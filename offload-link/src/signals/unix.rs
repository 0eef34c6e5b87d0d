//! Unix: passes the signal to the children, waits for them, and removes
//! the temporary files. A tool starts to watch when it creates its first temporary file, so `--version` costs
//! nothing.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::stamp::Stamp;

/// Signals with which users, shells and build tools end a process, and the one with which the system ends a process at its limit on
/// processor time.
const ENDING: [(i32, Signal); 5] = [
    (SIGHUP, Signal::HUP),
    (SIGINT, Signal::INT),
    (SIGQUIT, Signal::QUIT),
    (SIGTERM, Signal::TERM),
    (SIGXCPU, Signal::XCPU),
];

/// Time that children have to end before they are killed.
const PATIENCE: Duration = Duration::from_secs(5);

/// Watches for signals until it is dropped. All of a process share a thread: the first of several would end the process before
/// the others have removed their files.
#[derive(Debug)]
pub(crate) struct Watch(());

/// State that the watches of this process share.
#[derive(Debug)]
struct Shared {
    /// True after a signal.
    ending: AtomicBool,
    files: Mutex<WatchedFiles>,
}

static SHARED: Shared = Shared {
    ending: AtomicBool::new(false),
    files: Mutex::new(WatchedFiles {
        has_thread: false,
        watches: 0,
        temporary: BTreeSet::new(),
        outputs: Vec::new(),
    }),
};

/// Files and folders that a signal removes.
#[derive(Debug)]
struct WatchedFiles {
    has_thread: bool,
    /// Number of watches. With the last one, all files are as they should be.
    watches: usize,
    temporary: BTreeSet<PathBuf>,
    /// Outputs that a child writes under their final names, each with its earlier state.
    outputs: Vec<(PathBuf, Option<Stamp>)>,
}

impl Watch {
    /// Removes `folder` when a signal ends this process.
    pub(crate) fn over(folder: &Path) -> io::Result<Self> {
        let watch = Self::start()?;
        SHARED.lock().temporary.insert(folder.to_owned());
        Ok(watch)
    }

    /// Starts to watch. No file is removed yet.
    pub(crate) fn start() -> io::Result<Self> {
        survive_file_limit();
        let mut files = SHARED.lock();
        if !files.has_thread {
            start_thread()?;
            files.has_thread = true;
        }
        files.watches += 1;
        Ok(Self(()))
    }

    /// Creates a file and registers it for removal; no signal can end this process between the two.
    pub(crate) fn create<T>(
        &self,
        create: impl FnOnce() -> io::Result<T>,
        path: impl FnOnce(&T) -> PathBuf,
    ) -> io::Result<T> {
        let mut files = SHARED.lock();
        let created = create()?;
        files.temporary.insert(path(&created));
        Ok(created)
    }

    /// Gives the file `path` its final name. A signal does not remove it any more.
    pub(crate) fn keep<T>(
        &self,
        path: &Path,
        rename: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let mut files = SHARED.lock();
        let renamed = rename()?;
        files.temporary.remove(path);
        Ok(renamed)
    }
}

/// Starts the thread that waits for a signal, to the end of the process: the handlers of signals stay, too.
fn start_thread() -> io::Result<()> {
    let ignored = ignored();
    let ours = ENDING.iter().filter(|(number, _)| !ignored(*number));
    let mut signals = Signals::new(ours.map(|(number, _)| *number))?;
    let wait = move || {
        if let Some(number) = signals.forever().next() {
            SHARED.ending.store(true, Ordering::SeqCst);
            end(number);
        }
    };
    let thread = thread::Builder::new().name("signals".into());
    thread.spawn(wait).map(drop)
}

impl Watch {
    /// Removes the output `path` if a signal ends this process after a child began to write it: it may be incomplete.
    pub(crate) fn output(&self, path: &Path) {
        let before = stamp(path);
        SHARED.lock().outputs.push((path.to_owned(), before));
    }
}

/// Makes a write past the limit on the size of files (`ulimit -f`) an error, which a tool reports. By default it ends the
/// process. Children have the default.
pub(crate) fn survive_file_limit() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        if !ignored()(SIGXFSZ) {
            // Nobody reads the flag: the write fails because the signal has a handler. Without one, it ends the process.
            let _ = flag::register(SIGXFSZ, Arc::default());
        }
    });
}

/// Identifies the current content of a file; `None` if it is not a regular file.
fn stamp(path: &Path) -> Option<Stamp> {
    let found = fs::symlink_metadata(path).ok()?;
    found.is_file().then(|| Stamp::of(&found))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, WatchedFiles> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes all files and never unlocks, so no file can be created or renamed any more.
    fn remove(&self) {
        let files = self.lock();
        // Ignores failures: the process ends, and nobody could act on them.
        for (path, before) in &files.outputs {
            let now = stamp(path);
            if now.is_some() && now != *before {
                let _ = fs::remove_file(path);
            }
        }
        for path in &files.temporary {
            let _ = match fs::symlink_metadata(path) {
                Ok(found) if found.is_dir() => fs::remove_dir_all(path),
                _ => fs::remove_file(path),
            };
        }
        std::mem::forget(files);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Waits for the signal to end the process, whatever the result of the work.
        while SHARED.ending.load(Ordering::SeqCst) {
            thread::park();
        }
        let mut files = SHARED.lock();
        files.watches -= 1;
        if files.watches == 0 {
            files.temporary.clear();
            files.outputs.clear();
        }
    }
}

fn end(number: i32) -> ! {
    let known = ENDING.iter().find(|(known, _)| *known == number);
    let signal = known.map_or(Signal::TERM, |(_, signal)| *signal);
    let since = Instant::now();
    let mut started: Vec<u32> = Vec::new();
    let mut quiet = 0;
    // The link may start another child before it learns that one was ended. The children of an ended child move to
    // another parent, so all that were found are kept.
    while quiet < 3 {
        let new: Vec<u32> = descendants()
            .into_iter()
            .filter(|process| !started.contains(process))
            .collect();
        send(&new, signal);
        started.extend(new);
        quiet = match started.iter().any(|process| is_running(*process)) {
            true => 0,
            false => quiet + 1,
        };
        if since.elapsed() > PATIENCE {
            send(&started, Signal::KILL);
            break;
        }
        thread::sleep(Duration::from_millis(2));
    }
    SHARED.remove();
    let _ = emulate_default_handler(number);
    std::process::exit(128 + number)
}

fn send(processes: &[u32], signal: Signal) {
    for process in processes.iter().filter(|process| is_running(**process)) {
        let process = i32::try_from(*process).ok().and_then(Pid::from_raw);
        if let Some(process) = process {
            // The process may have ended meanwhile.
            let _ = kill_process(process, signal);
        }
    }
}

/// Tells whether a process runs. One that has ended and waits for its parent does not.
fn is_running(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}

/// Returns the children and their descendants: compiler drivers do not pass signals on.
fn descendants() -> Vec<u32> {
    let mut found = children(std::process::id());
    let mut next = 0;
    // The limit is more than a link starts.
    while let (Some(process), true) = (found.get(next), next < 10_000) {
        found.extend(children(*process));
        next += 1;
    }
    found
}

/// Returns the children of a process, which only Linux lists; elsewhere the list is empty.
fn children(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(PathBuf::from(format!("/proc/{process}/task")));
    let threads = threads.into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            let numbers = list.split_whitespace().filter_map(|text| text.parse().ok());
            numbers.collect::<Vec<u32>>()
        })
        .collect()
}

/// Returns a test for signals that the parent process wants to be ignored, as `nohup` does.
fn ignored() -> impl Fn(i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let mask = mask.unwrap_or(0);
    move |number| mask & (1 << (number - 1)) != 0
}
