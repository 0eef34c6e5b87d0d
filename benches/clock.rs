//! Time and processor time of programs that a bench starts.

use std::fs;
use std::time::{Duration, Instant};

/// The start of a measurement: the time, and the processor time of all children so far.
pub(crate) struct Clock {
    start: Instant,
    cpu: f64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            start: Instant::now(),
            cpu: cpu(),
        }
    }

    /// Returns the time and the processor time since the start.
    pub(crate) fn stop(&self) -> Spent {
        Spent {
            time: self.start.elapsed(),
            cpu: cpu() - self.cpu,
        }
    }

    pub(crate) fn print(&self, name: &str, what: &str) {
        self.stop().print(name, what);
    }
}

/// Time of one run.
#[derive(Clone, Copy)]
pub(crate) struct Spent {
    pub(crate) time: Duration,
    /// Seconds of all processors, user and system, of the children that ended.
    pub(crate) cpu: f64,
}

impl Spent {
    pub(crate) fn print(self, name: &str, what: &str) {
        let time = self.time.as_secs_f64();
        println!(
            "  {name:<36} {time:7.2} s   processors {:7.2} s   {what}",
            self.cpu
        );
    }
}

/// In seconds, of all that has ended: `cutime` and `cstime` of proc(5), in hundredths.
fn cpu() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name, in parentheses, may have blanks.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(13).take(2);
    ticks
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

/// Returns the number in a variable that makes a bench smaller, or `default`.
pub(crate) fn number(variable: &str, default: usize) -> usize {
    let text = std::env::var(variable).ok();
    text.map_or(default, |text| {
        text.parse().expect("the variable has a number")
    })
}
