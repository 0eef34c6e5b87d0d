//! Packs images and extracts them: `llvm-offload-binary`, without LLVM.

fn main() -> std::process::ExitCode {
    offload_link::packager()
}
