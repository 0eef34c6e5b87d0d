//! Candidates that take turns, their times and their memory.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A candidate.
pub(crate) struct Row {
    name: String,
    command: Vec<String>,
    variables: Vec<(&'static str, PathBuf)>,
}

impl Row {
    pub(crate) fn new(name: &str, command: &[String]) -> Self {
        Self {
            name: name.to_owned(),
            command: command.to_vec(),
            variables: Vec::new(),
        }
    }

    /// With a variable in its environment.
    #[allow(dead_code, reason = "other benches need none")]
    pub(crate) fn with(mut self, name: &'static str, value: &Path) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }
}

/// The times of each row, sorted.
pub(crate) fn measure(rows: &[Row], rounds: usize) -> Vec<(String, Vec<Duration>)> {
    let mut times: Vec<(String, Vec<Duration>)> = rows
        .iter()
        .map(|row| (row.name.clone(), Vec::new()))
        .collect();
    for round in 0..=rounds {
        for (row, (_, times)) in rows.iter().zip(&mut times) {
            let start = Instant::now();
            let status = Command::new(&row.command[0])
                .args(&row.command[1..])
                .envs(row.variables.iter().map(|(name, value)| (name, value)))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .expect("the tool starts");
            assert!(status.success(), "{} fails: {:?}", row.name, row.command);
            // The first round warms the page cache.
            if round > 0 {
                times.push(start.elapsed());
            }
        }
    }
    times
        .iter_mut()
        .for_each(|(_, times)| times.sort_unstable());
    times
}

pub(crate) fn print(title: &str, rows: Vec<(String, Vec<Duration>)>) {
    println!("\n{title}");
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let base = milliseconds(rows[0].1[rows[0].1.len() / 2]);
    for (name, times) in rows {
        let median = milliseconds(times[times.len() / 2]);
        println!(
            "  {name:<26} median {median:8.1} ms   fastest {:8.1} ms   {:+8.1} ms   x {:.2}",
            milliseconds(times[0]),
            median - base,
            median / base
        );
    }
}

/// The most memory that each row had, in MiB, where GNU time is installed to say it.
#[allow(dead_code, reason = "links are not measured for memory")]
pub(crate) fn print_memory(rows: &[Row]) {
    for row in rows {
        let output = Command::new("/usr/bin/time")
            .args(["-f", "peak %M"])
            .args(&row.command)
            .envs(row.variables.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::null())
            .output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
        let text = text.unwrap_or_default();
        let kilobytes = text.lines().find_map(|line| line.strip_prefix("peak "));
        if let Some(kilobytes) = kilobytes.and_then(|text| text.parse::<f64>().ok()) {
            println!("  {:<26} memory {:8.1} MiB", row.name, kilobytes / 1024.0);
        }
    }
}
