//! offload-link
fn main() {}
