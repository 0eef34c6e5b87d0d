//! Settings of launches on the CPU.

use std::cell::Cell;
use std::ffi::OsStr;
use std::num::NonZero;
use std::thread;

/// Seed, threads and stacks of launches on the CPU.
///
/// By default, each launch reads these variables; an invalid value panics:
///
/// | variable | setting | default |
/// |---|---|---|
/// | `OFFLOAD_DEVICE_SEED` | seed of the order of work-items, decimal or hexadecimal with `0x` | `0x0ff10ad` |
/// | `OFFLOAD_DEVICE_THREADS` | maximum number of threads | number of processors |
/// | `OFFLOAD_DEVICE_STACK` | size of a work-item's stack in KiB, at least 16 | 256 |
///
/// A test can try many orders:
///
/// ```
/// # use offload_device::{Global, Item, kernel};
/// # #[kernel]
/// # fn count(item: &Item, total: Global<u32>) { total.atomic_add(0, 1); }
/// # fn main() {
/// use offload_device::cpu::{Grid, Settings};
///
/// for seed in 0..100 {
///     let mut total = [0];
///     let settings = Settings { seed, ..Settings::from_variables() };
///     settings.apply(|| count::run(Grid::new(2, 4), Global::new(&mut total)));
///     assert_eq!(total, [8]);
/// }
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Seed of the order of work-items. One seed gives one order, however many threads there are.
    pub seed: u64,
    /// Maximum number of threads; 0 counts as 1. A launch uses no more than it has workgroups, and less if its work-items
    /// might need more than 24,576 stacks: a process has a limited number of memory mappings.
    pub threads: usize,
    /// Size of a work-item's stack in bytes. The operating system provides only the pages that the work-item uses. A work-item
    /// that needs more ends the process with a segmentation fault.
    pub stack_size: usize,
}

/// Seed without the variable: fixed, so that runs repeat.
const SEED: u64 = 0x0FF_10AD;

/// Size of a stack without the variable, in KiB: formatting a panic's message and its backtrace fits in a debug build.
const STACK: u64 = 256;

thread_local! {
    static APPLIED: Cell<Option<Settings>> = const { Cell::new(None) };
}

impl Settings {
    /// Reads the variables.
    ///
    /// # Panics
    /// If the value of a variable is invalid.
    #[must_use]
    pub fn from_variables() -> Self {
        let read = |name: &str, default: &dyn Fn() -> u64, min: u64| match std::env::var_os(name) {
            None => default(),
            Some(value) => number(&value)
                .filter(|&number| number >= min)
                .unwrap_or_else(|| {
                    panic!(
                        "{name}: expected a number of at least {min}, found `{}`",
                        value.to_string_lossy()
                    )
                }),
        };
        let processors = || thread::available_parallelism().map_or(1, NonZero::get) as u64;
        Self {
            seed: read("OFFLOAD_DEVICE_SEED", &|| SEED, 0),
            threads: read("OFFLOAD_DEVICE_THREADS", &processors, 1) as usize,
            stack_size: (read("OFFLOAD_DEVICE_STACK", &|| STACK, 16) as usize).saturating_mul(1024),
        }
    }

    /// Calls a function; launches that it starts on this thread use these settings instead of the variables.
    pub fn apply<R>(self, function: impl FnOnce() -> R) -> R {
        Self::keep(|| {
            APPLIED.set(Some(self));
            function()
        })
    }

    /// Calls a function, and restores the settings of this thread, after a panic too. A kernel changes them for the other work-items
    /// of its thread, if it calls [`apply`](Self::apply) with a barrier in the function.
    pub(super) fn keep<R>(function: impl FnOnce() -> R) -> R {
        struct Restore(Option<Settings>);
        impl Drop for Restore {
            fn drop(&mut self) {
                APPLIED.set(self.0);
            }
        }
        let _restore = Restore(APPLIED.get());
        function()
    }

    /// Returns the settings of a launch that this thread starts now.
    pub(super) fn current() -> Self {
        APPLIED.get().unwrap_or_else(Self::from_variables)
    }
}

/// Parses a decimal or hexadecimal number.
fn number(text: &OsStr) -> Option<u64> {
    let text = text.to_str()?;
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        None if !text.starts_with('+') => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_decimal_and_hexadecimal() {
        let parse = |text: &str| number(OsStr::new(text));
        assert_eq!(parse("42"), Some(42));
        assert_eq!(parse("0x2a"), Some(42));
        assert_eq!(parse("0X2A"), Some(42));
        assert_eq!(parse("0xffffffffffffffff"), Some(u64::MAX));
        for invalid in [
            "",
            "2a",
            "0x",
            "+1",
            "0x+1",
            "-1",
            " 1",
            "0x1ffffffffffffffff",
        ] {
            assert_eq!(parse(invalid), None, "{invalid:?}");
        }
    }

    #[test]
    fn restores_settings_after_a_panic() {
        let before = Settings {
            seed: 1,
            threads: 2,
            stack_size: 1 << 18,
        };
        before.apply(|| {
            let inner = std::panic::catch_unwind(|| {
                Settings { seed: 5, ..before }.apply(|| panic!("expected"))
            });
            assert!(inner.is_err());
            assert_eq!(Settings::current(), before);
        });
    }
}
