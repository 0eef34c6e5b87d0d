//! `cargo offload`.

fn main() -> std::process::ExitCode {
    offload_link::cargo_offload()
}
