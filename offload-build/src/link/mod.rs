//! Floor 4: link jobs: which images go together, and the device link of each.
