//! `--wrapper-time-trace`: records the time of each phase as JSON for trace viewers.
//!
//! A list of complete events (`"ph": "X"`), times in microseconds from the start of the tool:
//! <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>, the format of
//! LLVM's own traces.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::json;
use crate::linker_wrapper::error::LinkError;
use crate::linker_wrapper::line::arguments::Arguments;
use crate::linker_wrapper::line::options::LinkerOptions;
use crate::linker_wrapper::report::fates::write_beside;

/// Phases and child processes of one run.
#[derive(Debug)]
pub(crate) struct Trace {
    start: Instant,
    /// Set if an option requests the trace; otherwise nothing is recorded.
    wanted: bool,
    granularity: Duration,
    events: Mutex<Vec<Event>>,
}

/// One finished phase or process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Event {
    name: String,
    ph: &'static str,
    /// Start in microseconds since the start of the tool.
    ts: u64,
    /// Duration in microseconds.
    dur: u64,
    pid: u32,
    tid: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Detail>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Detail {
    detail: String,
}

/// A phase, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Phase<'a> {
    trace: &'a Trace,
    name: &'static str,
    detail: String,
    start: Instant,
}

impl Trace {
    pub(crate) fn new(options: &LinkerOptions) -> Self {
        Self {
            start: Instant::now(),
            wanted: options.time_trace.is_some(),
            granularity: Duration::from_micros(options.time_trace_granularity.unwrap_or(500)),
            events: Mutex::default(),
        }
    }

    /// Tells whether an option requests the trace.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Begins a phase; `detail` adds, for example, a command or a target.
    pub(crate) fn phase(&self, name: &'static str, detail: impl ToString) -> Phase<'_> {
        Phase {
            trace: self,
            name,
            detail: match self.wanted {
                true => detail.to_string(),
                false => String::new(),
            },
            start: Instant::now(),
        }
    }

    /// Writes all finished phases to the file of the option, if it was given: to standard output for `-`, beside the output for
    /// an empty name.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub(crate) fn write(&self, arguments: &Arguments) -> Result<(), LinkError> {
        let Some(path) = &arguments.options.time_trace else {
            return Ok(());
        };
        let json = self.to_json();
        if path == Path::new("-") {
            let written = io::stdout().write_all(json.as_bytes());
            return written.map_err(|source| {
                LinkError::io("cannot write to standard output".to_owned(), source)
            });
        }
        let mut beside = arguments.output_path().into_os_string();
        beside.push(".time-trace");
        let path = match path.as_os_str().is_empty() {
            true => Path::new(&beside),
            false => path,
        };
        write_beside(path, json.as_bytes())
    }

    fn to_json(&self) -> String {
        let whole = self.event("Total", String::new(), self.start, Instant::now());
        let events = self.events.lock();
        let mut events = events.expect("no thread panics with the lock").clone();
        events.push(whole);
        events.sort_by_key(|event| (event.ts, std::cmp::Reverse(event.dur)));
        json::text(&Events {
            trace_events: events,
        })
    }

    fn event(&self, name: &str, detail: String, from: Instant, to: Instant) -> Event {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Event {
            name: name.to_owned(),
            ph: "X",
            ts: micros(from.saturating_duration_since(self.start)),
            dur: micros(to.saturating_duration_since(from)),
            pid: std::process::id(),
            tid: thread_number(),
            args: (!detail.is_empty()).then_some(Detail { detail }),
        }
    }
}

impl Drop for Phase<'_> {
    fn drop(&mut self) {
        let now = Instant::now();
        let trace = self.trace;
        if !trace.wanted || now.duration_since(self.start) < trace.granularity {
            return;
        }
        let event = trace.event(self.name, std::mem::take(&mut self.detail), self.start, now);
        if let Ok(mut events) = trace.events.lock() {
            events.push(event);
        }
    }
}

#[derive(Serialize)]
struct Events {
    #[serde(rename = "traceEvents")]
    trace_events: Vec<Event>,
}

/// Returns the number in `ThreadId(1)`. Viewers need a number, and the type has no other accessor.
fn thread_number() -> u64 {
    let text = format!("{:?}", std::thread::current().id());
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(granularity: u64) -> Trace {
        Trace::new(&LinkerOptions {
            time_trace: Some("t".into()),
            time_trace_granularity: Some(granularity),
            ..LinkerOptions::default()
        })
    }

    #[test]
    fn writes_complete_events_inside_each_other() {
        let trace = trace(0);
        std::thread::sleep(Duration::from_millis(2));
        {
            let _outer = trace.phase("outer", "x y");
            let _inner = trace.phase("inner", "");
        }
        let json: serde_json::Value = serde_json::from_str(&trace.to_json()).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        let named = |name: &str| events.iter().find(|event| event["name"] == name).unwrap();
        let (outer, inner, total) = (named("outer"), named("inner"), named("Total"));
        for event in [outer, inner, total] {
            assert_eq!(event["ph"], "X");
            assert_eq!(event["pid"], std::process::id());
        }
        let times = |event: &serde_json::Value| {
            let start = event["ts"].as_u64().unwrap();
            (start, start + event["dur"].as_u64().unwrap())
        };
        assert!(times(total).0 <= times(outer).0 && times(outer).0 <= times(inner).0);
        assert!(times(total).0 == 0 && times(outer).0 >= 2000, "{json}");
        assert_eq!(outer["args"]["detail"], "x y");
        assert!(inner.get("args").is_none());
    }

    #[test]
    fn leaves_out_what_is_shorter_than_the_granularity() {
        let trace = trace(u64::MAX);
        drop(trace.phase("short", ""));
        let json = trace.to_json();
        assert!(
            json.contains("\"Total\"") && !json.contains("short"),
            "{json}"
        );
    }
}
