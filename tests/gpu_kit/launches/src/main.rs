//! Launches registered kernels through host code of one of several modules: `launches clang`.

use std::ffi::c_int;
use std::process::ExitCode;

macro_rules! modules {
    ($($name:ident: $launch:ident,)*) => {
        $(mod $name { include!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".rs")); })*

        unsafe extern "C" {
            $(safe fn $launch() -> c_int;)*
        }

        /// Runs the program of a module; its status is 0 if all results are right.
        fn run(module: &str) -> Option<c_int> {
            match module {
                $(stringify!($name) => Some($launch()),)*
                _ => None,
            }
        }
    };
}
modules! {
    clang: launch_of_clang,
    clang_rdc: launch_of_clang_rdc,
    clang_ptx: launch_of_clang_ptx,
    clang_lz4: launch_of_clang_lz4,
    clang_zstd: launch_of_clang_zstd,
    nvcc: launch_of_nvcc,
    nvcc_rdc: launch_of_nvcc_rdc,
    nvcc_zstd: launch_of_nvcc_zstd,
}

fn main() -> ExitCode {
    let status = std::env::args().nth(1).and_then(|module| run(&module));
    if status.is_none() {
        println!("usage: launches MODULE");
    }
    ExitCode::from(u8::from(status != Some(0)))
}
