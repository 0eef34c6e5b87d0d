//! Device code of a second crate.

// Its device functions are used, whether or not its Rust functions are.
use first as _;

/// `x + 1`, computed on a device.
pub fn run(x: i32) -> i32 {
    unsafe extern "C" {
        fn second_run(x: i32) -> i32;
    }
    // SAFETY: takes and returns a number.
    unsafe { second_run(x) }
}

/// `2 * x + 1`, computed by a kernel of this crate with a device function of `first`.
#[cfg(feature = "joined")]
pub fn joined(x: i32) -> i32 {
    unsafe extern "C" {
        fn second_joined(x: i32) -> i32;
    }
    // SAFETY: takes and returns a number.
    unsafe { second_joined(x) }
}
