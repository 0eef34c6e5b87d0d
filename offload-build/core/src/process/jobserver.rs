//! Work in parallel under the jobserver that Cargo and make share.
//!
//! The crate `jobserver` takes the server's file descriptors over with `unsafe`; opened anew by
//! path they need none, which is all that a client does: read a byte to start, write it back to end.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::sync::{Condvar, Mutex};
use std::thread::Builder;
use std::time::Duration;

/// First pause of a thread that waits for a token.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
/// Pause after many attempts. A compile takes seconds, and a build of an hour would read an empty pipe two million times.
const LAST_PAUSE: Duration = Duration::from_millis(32);

/// Number of pieces of work that may run at a time.
#[derive(Debug)]
pub enum Jobs {
    /// One piece at once, and one more for each token that the server gives.
    Server(Server),
    /// This number.
    Count(usize),
}

/// The two ends of a jobserver's pipe.
#[derive(Debug)]
pub struct Server {
    tokens: File,
    back: File,
    /// Held by the thread that waits for a token. The others sleep until they get it, because each that asks again and
    /// again costs processor time for as long as no token comes.
    turn: Mutex<()>,
    /// Ends the pause of the thread that waits: this process gave a token back, or has no work left.
    news: Condvar,
    /// The lock that `news` needs.
    pause: Mutex<()>,
    /// Number of times that a thread asked for a token.
    #[cfg(test)]
    asked: std::sync::atomic::AtomicUsize,
}

impl Jobs {
    /// The server that `makeflags` names (`CARGO_MAKEFLAGS`, `MAKEFLAGS`), else `count` at a time.
    #[must_use]
    pub fn new(makeflags: Option<&str>, count: usize) -> Self {
        match makeflags.and_then(Server::open) {
            Some(server) => Self::Server(server),
            None => Self::Count(count.max(1)),
        }
    }

    /// Calls `work` for every item, several at a time; the results in the order of `items`.
    pub fn run<I: Send, T: Send>(&self, items: Vec<I>, work: impl Fn(I) -> T + Sync) -> Vec<T> {
        let count = items.len();
        let most = match self {
            Self::Server(_) => 64,
            Self::Count(most) => *most,
        };
        let results = Mutex::new(items.iter().map(|_| None).collect::<Vec<Option<T>>>());
        let queue = Mutex::new(items.into_iter().enumerate());
        let step = || {
            let Some((index, item)) = lock(&queue).next() else {
                return false;
            };
            let result = work(item);
            lock(&results)[index] = Some(result);
            true
        };
        let has_work = || lock(&queue).len() > 0;
        std::thread::scope(|scope| {
            for _ in 1..most.min(count) {
                let work = || match self {
                    Self::Count(_) => while step() {},
                    Self::Server(server) => {
                        while let Some(token) = server.wait(has_work) {
                            step();
                            server.release(token);
                        }
                    }
                };
                // If the system refuses a thread, the others do its work.
                if Builder::new().spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            // This thread works on the token that the process was started with.
            while step() {}
            if let Self::Server(server) = self {
                server.news.notify_all();
            }
        });
        let results = results
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let result = |result: Option<T>| result.expect("all items were taken");
        results.into_iter().map(result).collect()
    }
}

/// Returns the device and inode of a pipe, and nothing of other files.
#[cfg(target_os = "linux")]
fn pipe(path: &str) -> Option<(u64, u64)> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let data = std::fs::metadata(path).ok()?;
    data.file_type().is_fifo().then(|| (data.dev(), data.ino()))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Server {
    /// `--jobserver-auth=fifo:PATH`, or `=R,W`: descriptors that this process inherited.
    #[cfg(target_os = "linux")]
    fn open(makeflags: &str) -> Option<Self> {
        use std::fs::OpenOptions;
        use std::os::unix::fs::OpenOptionsExt;
        /// `O_NONBLOCK` of Linux: an empty pipe answers at once.
        const NONBLOCK: i32 = if cfg!(any(target_arch = "mips", target_arch = "mips64")) {
            0o200
        } else {
            0o4000
        };
        let flag = |name: &str| {
            makeflags
                .split_whitespace()
                .filter_map(|word| word.strip_prefix(name))
                .next_back()
        };
        let auth = flag("--jobserver-auth=").or_else(|| flag("--jobserver-fds="))?;
        let (read, write) = match auth.strip_prefix("fifo:") {
            Some(path) => (path.to_owned(), path.to_owned()),
            None => {
                let (read, write) = auth.split_once(',')?;
                let path =
                    |number: &str| Some(format!("/proc/self/fd/{}", number.parse::<u32>().ok()?));
                (path(read)?, path(write)?)
            }
        };
        // make closes the descriptors of commands that it takes for no make (4.3, without `+`), and then their numbers are
        // those of files that this process opened.
        if pipe(&read)? != pipe(&write)? {
            return None;
        }
        let mut options = OpenOptions::new();
        options.custom_flags(NONBLOCK);
        Some(Self {
            tokens: options.read(true).write(read == write).open(&read).ok()?,
            back: OpenOptions::new().write(true).open(&write).ok()?,
            turn: Mutex::new(()),
            news: Condvar::new(),
            pause: Mutex::new(()),
            #[cfg(test)]
            asked: std::sync::atomic::AtomicUsize::new(0),
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn open(_makeflags: &str) -> Option<Self> {
        None
    }

    /// Waits for a token; returns nothing if there is no work left.
    fn wait(&self, has_work: impl Fn() -> bool) -> Option<u8> {
        let _turn = lock(&self.turn);
        let mut pause = FIRST_PAUSE;
        while has_work() {
            if let Some(token) = self.acquire() {
                return Some(token);
            }
            // Other processes give tokens back without news; and news between the two lines is lost.
            drop(self.news.wait_timeout(lock(&self.pause), pause));
            pause = LAST_PAUSE.min(pause * 2);
        }
        None
    }

    fn acquire(&self) -> Option<u8> {
        #[cfg(test)]
        self.asked
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut token = [0];
        loop {
            match (&self.tokens).read(&mut token) {
                Ok(1) => return Some(token[0]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => return None,
            }
        }
    }

    fn release(&self, token: u8) {
        // The pipe holds all tokens there are, so writing one back never blocks. If its other end
        // is gone, so is everyone who could wait for it.
        let _ = (&self.back).write_all(&[token]);
        self.news.notify_one();
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// The largest number of items that `jobs` worked on at once, out of twelve.
    fn peak(jobs: &Jobs) -> usize {
        let (now, peak) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let results = jobs.run((0..12).collect(), |item| {
            peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(15));
            now.fetch_sub(1, Ordering::SeqCst);
            item * 2
        });
        assert_eq!(results, (0..12).map(|item| item * 2).collect::<Vec<_>>());
        peak.into_inner()
    }

    /// A new jobserver without tokens, its path and the flags that name it.
    #[allow(clippy::unwrap_used, reason = "a test's")]
    fn server(name: &str) -> (File, std::path::PathBuf, String) {
        let fifo = format!("offload-jobserver-{name}-{}", std::process::id());
        let fifo = std::env::temp_dir().join(fifo);
        let made = std::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .expect("mkfifo starts");
        assert!(made.success());
        let server = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&fifo)
            .expect("the pipe opens");
        let flags = format!("-j --jobserver-auth=fifo:{}", fifo.display());
        (server, fifo, flags)
    }

    #[test]
    fn runs_no_more_than_the_tokens_allow_and_gives_them_back() {
        let (mut server, fifo, flags) = server("tokens");
        server.write_all(b"ab").unwrap();
        let jobs = Jobs::new(Some(&flags), 9);
        assert!(matches!(jobs, Jobs::Server(_)));
        assert_eq!(peak(&jobs), 3, "two tokens and the one of the process");
        let mut tokens = [0; 2];
        server.read_exact(&mut tokens).unwrap();
        tokens.sort_unstable();
        assert_eq!(&tokens, b"ab");
        std::fs::remove_file(&fifo).unwrap();
    }

    #[test]
    fn asks_for_tokens_in_one_thread_at_a_time() {
        let (_server, fifo, flags) = server("turns");
        let jobs = Jobs::new(Some(&flags), 9);
        let start = std::time::Instant::now();
        assert_eq!(peak(&jobs), 1, "no token but the one of the process");
        // One thread, which pauses longer and longer; the others ask no more when no work is left.
        let most = start.elapsed().as_millis() / 32 + 16;
        let Jobs::Server(server) = &jobs else {
            panic!("a server");
        };
        let asked = server.asked.load(Ordering::Relaxed);
        assert!(asked as u128 <= most, "{asked} of {most}");
        std::fs::remove_file(&fifo).unwrap();
    }

    #[test]
    fn runs_as_many_as_asked_without_a_server() {
        assert_eq!(peak(&Jobs::new(None, 1)), 1);
        assert_eq!(
            peak(&Jobs::new(Some("--jobserver-auth=fifo:/nonexistent"), 2)),
            2
        );
    }

    /// make 4.3 names descriptors that it closed; files of this process may have their numbers.
    #[test]
    fn takes_no_file_for_a_pipe() {
        use std::os::fd::AsRawFd;
        let path = std::env::temp_dir().join(format!("offload-input-{}", std::process::id()));
        std::fs::write(&path, "tokens").unwrap();
        let input = OpenOptions::new().read(true).write(true).open(&path);
        let input = input.unwrap();
        let jobs = |read: &File, write: &File| {
            let (read, write) = (read.as_raw_fd(), write.as_raw_fd());
            Jobs::new(Some(&format!("-j4 --jobserver-auth={read},{write}")), 2)
        };
        let (server, fifo, _) = server("descriptors");
        let (other, second, _) = self::server("another");
        assert!(matches!(jobs(&server, &server), Jobs::Server(_)));
        for (read, write) in [
            (&input, &input),
            (&server, &input),
            (&input, &server),
            (&server, &other),
        ] {
            assert!(matches!(jobs(read, write), Jobs::Count(2)));
        }
        for path in [path, fifo, second] {
            std::fs::remove_file(path).unwrap();
        }
    }
}
