//! Starts the C program, `src/main.c`.

use std::ffi::{CString, c_char, c_int};
use std::os::unix::ffi::OsStringExt;

// Links the kernels, which the C program calls.
mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

unsafe extern "C" {
    fn c_main(count: c_int, arguments: *mut *mut c_char) -> c_int;
}

fn main() {
    assert!(!kernels::images().is_empty());
    let arguments = std::env::args_os().map(|text| CString::new(text.into_vec()));
    let arguments: Vec<CString> = arguments.map(|text| text.expect("an argument has no NUL")).collect();
    let mut pointers: Vec<*mut c_char> = arguments.into_iter().map(CString::into_raw).collect();
    let count = c_int::try_from(pointers.len()).expect("arguments are few");
    pointers.push(std::ptr::null_mut());
    // SAFETY: `pointers` are strings that C may change, and a null pointer behind them, as the C standard wants.
    let status = unsafe { c_main(count, pointers.as_mut_ptr()) };
    std::process::exit(status);
}
