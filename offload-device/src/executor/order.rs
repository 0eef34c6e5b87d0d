//! Order of the work-items in a workgroup.

/// Pseudorandom numbers (SplitMix64, Steele, Lea and Flood 2014): well mixed from any seed.
pub(super) struct Random(u64);

impl Random {
    /// Creates the numbers of one workgroup, which are independent of the threads that run the others.
    pub(super) fn new(seed: u64, group: u64) -> Self {
        Self(mix(seed) ^ mix(group.wrapping_add(0x6A09_E667_F3BC_C909)))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// Returns a number less than `end`. The bias is less than `end` / 2⁶⁴.
    fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// Permutes a slice; each permutation has the same probability (Fisher and Yates).
    pub(super) fn shuffle<T>(&mut self, slice: &mut [T]) {
        for end in (2..=slice.len()).rev() {
            slice.swap(end - 1, self.below(end));
        }
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permutation(seed: u64, group: u64) -> Vec<u32> {
        let mut order: Vec<u32> = (0..4).collect();
        Random::new(seed, group).shuffle(&mut order);
        order
    }

    #[test]
    fn permutes_all_ways_equally_often() {
        let mut counts = std::collections::BTreeMap::new();
        for seed in 0..2400 {
            *counts.entry(permutation(seed, 0)).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 24);
        // 100 are expected, with a standard deviation of 10.
        assert!(
            counts.values().all(|count| (55..145).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn differs_between_workgroups() {
        let orders: std::collections::BTreeSet<_> =
            (0..200).map(|group| permutation(7, group)).collect();
        assert_eq!(orders.len(), 24);
    }

    #[test]
    fn repeats_for_a_seed() {
        assert_eq!(permutation(5, 9), permutation(5, 9));
    }
}
