//! Launches a registered kernel through host code that one of two compilers made: `launches clang`, `launches nvcc`.

use std::ffi::c_int;
use std::process::ExitCode;

mod clang {
    include!(concat!(env!("OUT_DIR"), "/clang.rs"));
}
mod nvcc {
    include!(concat!(env!("OUT_DIR"), "/nvcc.rs"));
}

unsafe extern "C" {
    safe fn launch_of_clang() -> c_int;
    safe fn launch_of_nvcc() -> c_int;
}

fn main() -> ExitCode {
    let status = match std::env::args().nth(1).as_deref() {
        Some("clang") => launch_of_clang(),
        Some("nvcc") => launch_of_nvcc(),
        _ => {
            println!("usage: launches clang|nvcc");
            1
        }
    };
    ExitCode::from(u8::from(status != 0))
}
