//! Sizes of launches.

/// Number of workgroups and of work-items in each of them, for three dimensions.
///
/// ```
/// use offload_device::cpu::Grid;
///
/// assert_eq!(Grid::new(4, 256), Grid { groups: [4, 1, 1], items: [256, 1, 1] });
/// assert_eq!(Grid::new([8, 8], [16, 16]), Grid { groups: [8, 8, 1], items: [16, 16, 1] });
/// assert_eq!(Grid::covering(1000, 256), Grid::new(4, 256));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grid {
    /// Workgroups of the grid; with a zero, nothing runs.
    pub groups: [u32; 3],
    /// Work-items of a workgroup; with a zero, nothing runs.
    pub items: [u32; 3],
}

impl Grid {
    /// Creates a grid of workgroups, each with a number of work-items. Dimensions that are not given have size 1.
    pub fn new(groups: impl Into<Size>, items: impl Into<Size>) -> Self {
        Self {
            groups: groups.into().0,
            items: items.into().0,
        }
    }

    /// Creates the smallest grid with at least a number of work-items in each dimension.
    pub fn covering(all: impl Into<Size>, items: impl Into<Size>) -> Self {
        let (all, items) = (all.into().0, items.into().0);
        let groups = [0, 1, 2].map(|dimension| match items[dimension] {
            0 => 0,
            size => u32::div_ceil(all[dimension], size),
        });
        Self { groups, items }
    }

    /// Returns true if the grid has no work-item.
    pub(super) fn is_empty(&self) -> bool {
        self.groups.contains(&0) || self.items.contains(&0)
    }

    /// Returns the number of work-items in a workgroup, or `None` if it does not fit.
    pub(super) fn items_len(&self) -> Option<u64> {
        product(self.items)
    }

    /// Returns the number of workgroups, or `None` if it does not fit.
    pub(super) fn groups_len(&self) -> Option<u64> {
        product(self.groups)
    }
}

fn product(sizes: [u32; 3]) -> Option<u64> {
    sizes
        .iter()
        .try_fold(1u64, |product, &size| product.checked_mul(size.into()))
}

/// Returns the place with a linear index; dimension 0 varies fastest.
pub(super) fn place(index: u64, sizes: [u32; 3]) -> [u32; 3] {
    let [x, y, _] = sizes.map(u64::from);
    // The first two are less than a size, and so is the third if the index is less than the product of the sizes.
    [
        (index % x) as u32,
        (index / x % y) as u32,
        (index / x / y) as u32,
    ]
}

/// Sizes of one to three dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size([u32; 3]);

impl From<u32> for Size {
    fn from(x: u32) -> Self {
        Self([x, 1, 1])
    }
}

impl From<[u32; 2]> for Size {
    fn from([x, y]: [u32; 2]) -> Self {
        Self([x, y, 1])
    }
}

impl From<[u32; 3]> for Size {
    fn from(sizes: [u32; 3]) -> Self {
        Self(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_places_in_order() {
        let sizes = [3, 2, 2];
        let places: Vec<_> = (0..12).map(|index| place(index, sizes)).collect();
        let mut expected = Vec::new();
        for z in 0..2 {
            for y in 0..2 {
                for x in 0..3 {
                    expected.push([x, y, z]);
                }
            }
        }
        assert_eq!(places, expected);
    }

    #[test]
    fn multiplies_sizes_without_overflow() {
        assert_eq!(product([u32::MAX; 3]), None);
        assert_eq!(
            product([u32::MAX, u32::MAX, 1]),
            Some(u64::from(u32::MAX).pow(2))
        );
    }

    #[test]
    fn covers_each_dimension() {
        assert_eq!(Grid::covering(1024, 256).groups, [4, 1, 1]);
        assert_eq!(Grid::covering(1025, 256).groups, [5, 1, 1]);
        assert_eq!(
            Grid::covering([100, 10, 1], [16, 16, 1]),
            Grid::new([7, 1, 1], [16, 16, 1])
        );
        assert_eq!(Grid::covering(0, 256).groups, [0, 1, 1]);
        assert_eq!(Grid::covering(7, 0).groups, [0, 1, 1]);
    }
}
