//! Device code of a first crate.

/// `2 * x`, computed on a device.
pub fn run(x: i32) -> i32 {
    unsafe extern "C" {
        fn first_run(x: i32) -> i32;
    }
    // SAFETY: takes and returns a number.
    unsafe { first_run(x) }
}
