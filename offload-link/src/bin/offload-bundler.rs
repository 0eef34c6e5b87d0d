//! Bundles and unbundles: `clang-offload-bundler`, without LLVM.

fn main() -> std::process::ExitCode {
    offload_link::bundler()
}
