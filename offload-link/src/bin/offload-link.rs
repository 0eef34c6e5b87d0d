//! A linker wrapper: clang's `clang-linker-wrapper`, rustc's `linker`.

fn main() -> std::process::ExitCode {
    offload_link::linker_wrapper()
}
