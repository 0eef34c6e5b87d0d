//! The command lines of `cargo offload`.

/// What `--help` says.
pub(super) const USAGE: &str = "usage: cargo offload inspect [--max-decompressed-size=SIZE] FILE...
       cargo offload archive list|check|split|merge ...
       cargo offload build [--out DIR] [OPTIONS OF CARGO BUILD]

inspect  the device images in objects, archives, programs and offload binaries
archive  archives of bundles: listed, checked, split for their targets, made of such parts
build    `cargo build`, and the libraries of device code that it makes";
