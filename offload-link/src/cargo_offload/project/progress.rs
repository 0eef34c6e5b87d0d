//! Lines for steps that build scripts finish.
//!
//! Cargo keeps the output of build scripts to itself, so they append to a file, which a thread reads while Cargo runs
//! (`offload-build/src/run/progress.rs` has the form of the lines).

use std::fs::File;
use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use offload_formats::escape::terminal;
use tempfile::TempDir;

use crate::cargo_offload::error::CargoOffloadError;
use crate::signals::Watch;

/// Variable that tells build scripts where to write.
pub(super) const VARIABLE: &str = "OFFLOAD_PROGRESS";

/// Time between two reads of the file.
const INTERVAL: Duration = Duration::from_millis(100);

/// Shows progress until it is dropped.
pub(super) struct ProgressLines {
    path: PathBuf,
    is_over: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
    _folder: TempDir,
    /// Dropped after the folder, so a signal can remove that to the end.
    _watch: Watch,
}

impl ProgressLines {
    /// Creates the file and starts to read it.
    pub(super) fn start() -> Result<Self, CargoOffloadError> {
        let failed = |problem| CargoOffloadError::new(format_args!("no temporary file: {problem}"));
        let folder = TempDir::with_prefix("cargo-offload-").map_err(failed)?;
        let watch = Watch::over(folder.path()).map_err(failed)?;
        let path = folder.path().join("progress");
        File::create(&path).map_err(failed)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let reader = thread::Builder::new().spawn({
            let (path, is_over) = (path.clone(), Arc::clone(&is_over));
            move || read(&path, &is_over)
        });
        Ok(Self {
            path,
            is_over,
            reader: Some(reader.map_err(failed)?),
            _folder: folder,
            _watch: watch,
        })
    }

    /// Returns the value of [`VARIABLE`].
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ProgressLines {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(reader) = self.reader.take() {
            // It shows progress; a failure of it is no failure of the build.
            let _ = reader.join();
        }
    }
}

/// Shows complete lines of the file as they appear.
fn read(path: &Path, is_over: &AtomicBool) {
    let Ok(mut file) = File::open(path) else {
        return;
    };
    let mut left = String::new();
    loop {
        let is_last = is_over.load(Ordering::SeqCst);
        let mut bytes = Vec::new();
        // What cannot be read is not shown.
        let _ = file.read_to_end(&mut bytes);
        left += &String::from_utf8_lossy(&bytes);
        while let Some((line, rest)) = left.split_once('\n') {
            if let Some(line) = shown(line) {
                show(&line);
            }
            left = rest.to_owned();
        }
        if is_last {
            return;
        }
        thread::sleep(INTERVAL);
    }
}

fn show(line: &str) {
    // On a terminal, Cargo's progress bar is in this line; Cargo draws it again.
    let clear = if std::io::stderr().is_terminal() {
        "\r\x1b[K"
    } else {
        ""
    };
    let verb = Style::new().bold().fg_color(Some(AnsiColor::Green.into()));
    let text = format!("{clear}{verb}{:>12}{verb:#} {line}\n", "Device code");
    use std::io::Write as _;
    // Standard error may be closed; the build goes on.
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

/// Returns a line for people: `kernels/saxpy.c for gfx90a (saxpy 3/7, 0.4 s)`.
fn shown(line: &str) -> Option<String> {
    let mut parts = line.splitn(6, '\t');
    let mut next = || parts.next();
    let (package, module, number, steps) = (next()?, next()?, next()?, next()?);
    let took: u64 = next()?.parse().ok()?;
    let title = next()?;
    let package = match module {
        "kernels" => package.to_owned(),
        _ => format!("{package}/{module}"),
    };
    let (seconds, tenths) = (took / 1000, took % 1000 / 100);
    Some(format!(
        "{} ({} {number}/{steps}, {seconds}.{tenths} s)",
        terminal(title),
        terminal(&package)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_lines_of_build_scripts() {
        assert_eq!(
            shown("saxpy\tkernels\t3\t7\t450\tkernels/saxpy.c for gfx90a").unwrap(),
            "kernels/saxpy.c for gfx90a (saxpy 3/7, 0.4 s)"
        );
        assert_eq!(
            shown("saxpy\tfft\t1\t1\t61234\ta\x1b[0m").unwrap(),
            "a\\x1b[0m (saxpy/fft 1/1, 61.2 s)"
        );
        assert_eq!(shown("saxpy\tkernels\t3"), None);
    }
}
