//! Kernels whose callers get warnings.
use offload_device::{Grid, Item, kernel};

/// Returns the same.
#[deprecated = "use `new`"]
#[kernel]
pub fn old(_item: &Item) {}

fn main() {
    old::run(Grid::new(1, 1)); //~ use of deprecated function
}
