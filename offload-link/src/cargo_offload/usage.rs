//! Command lines of `cargo offload`.

/// Text of `--help`.
pub(super) const USAGE: &str = "usage: cargo offload inspect [--max-decompressed-size=SIZE] FILE...
       cargo offload archive list|check|split|merge ...
       cargo offload build [--out DIR] [OPTIONS OF CARGO BUILD]

inspect  list the device images in objects, archives, programs and offload binaries
archive  list, check, split by target and merge archives of bundles
build    run `cargo build`, and list or copy the libraries of device code that it makes";
