//! Sizes of launches, on the CPU and on GPUs.

use crate::description::Description;

/// Maximum number of work-items in a workgroup, as on GPUs.
const MAX_ITEMS: u64 = 1024;

/// Number of workgroups and of work-items in each of them, for three dimensions.
///
/// ```
/// use offload_device::Grid;
///
/// assert_eq!(Grid::new(4, 256), Grid { groups: [4, 1, 1], items: [256, 1, 1] });
/// assert_eq!(Grid::new([8, 8], [16, 16]), Grid { groups: [8, 8, 1], items: [16, 16, 1] });
/// assert_eq!(Grid::covering(1000, 256), Grid::new(4, 256));
/// assert_eq!(Grid::for_len([0.0; 1000].len(), 256), Grid::new(4, 256));
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
    #[must_use]
    pub fn new(groups: impl Into<Size>, items: impl Into<Size>) -> Self {
        Self {
            groups: groups.into().0,
            items: items.into().0,
        }
    }

    /// Creates the smallest grid with at least a number of work-items in each dimension. With a zero in `items` it is empty.
    #[must_use]
    pub fn covering(all: impl Into<Size>, items: impl Into<Size>) -> Self {
        let (all, items) = (all.into().0, items.into().0);
        let groups = [0, 1, 2].map(|dimension| match items[dimension] {
            0 => 0,
            size => u32::div_ceil(all[dimension], size),
        });
        Self { groups, items }
    }

    /// Creates the smallest grid of one dimension with at least a work-item for each element of a slice or buffer of this length. If
    /// `items` is 0, it is empty.
    ///
    /// # Panics
    /// If that needs 2³² or more workgroups. A GPU may refuse fewer.
    #[must_use]
    #[track_caller]
    pub fn for_len(len: usize, items: u32) -> Self {
        let groups = match items {
            0 => 0,
            size => len.div_ceil(size as usize),
        };
        let groups = u32::try_from(groups).unwrap_or_else(|_| {
            panic!("expected less than 2^32 workgroups, found {groups}: {len} work-items in workgroups of {items}")
        });
        Self::new(groups, items)
    }

    /// Returns true if the grid has no work-item.
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.contains(&0) || self.items.contains(&0)
    }

    /// Returns the number of work-items in a workgroup and the number of workgroups of a launch that is not empty.
    ///
    /// # Errors
    /// Returns what a launch of the kernel cannot have: too many work-items in a workgroup; 2⁶⁴ and more in the grid, or several in
    /// a dimension that the kernel's `Item` does not have, of which two would have the same `Item::global_index`.
    pub(crate) fn check(&self, kernel: &Description) -> Result<(u32, u64), String> {
        let name = kernel.name;
        let others = kernel.dimensions..3;
        if others
            .into_iter()
            .any(|d| self.groups[d] != 1 || self.items[d] != 1)
        {
            return Err(format!(
                "kernel `{name}` has an `Item<_, {}>`: expected one work-item in the other dimensions, found {:?} workgroups of {:?}",
                kernel.dimensions, self.groups, self.items
            ));
        }
        let items = product(self.items).filter(|&items| items <= MAX_ITEMS);
        let items = items.ok_or_else(|| {
            format!(
                "kernel `{name}`: expected at most {MAX_ITEMS} work-items in a workgroup, found {:?}",
                self.items
            )
        })?;
        if let Some(threads) = kernel.threads.filter(|&threads| items > threads.into()) {
            return Err(format!(
                "kernel `{name}` has `threads = {threads}`: expected at most {threads} work-items in a workgroup, found {:?}",
                self.items
            ));
        }
        let groups = product(self.groups).filter(|groups| groups.checked_mul(items).is_some());
        let groups = groups.ok_or_else(|| {
            format!(
                "kernel `{name}`: expected less than 2^64 work-items, found {:?} workgroups",
                self.groups
            )
        })?;
        Ok((items as u32, groups))
    }
}

fn product(sizes: [u32; 3]) -> Option<u64> {
    sizes
        .iter()
        .try_fold(1u64, |product, &size| product.checked_mul(size.into()))
}

/// Returns the place with a linear index; dimension 0 varies fastest.
pub(crate) fn place(index: u64, sizes: [u32; 3]) -> [u32; 3] {
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

// No other integer may convert: `Grid::new(4, 256)` would then be one of `i32`, the default of literals.
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

    #[test]
    fn covers_a_length() {
        assert_eq!(Grid::for_len(1025, 256), Grid::new(5, 256));
        assert_eq!(Grid::for_len(0, 256), Grid::new(0, 256));
        assert_eq!(Grid::for_len(7, 0), Grid::new(0, 0));
        // More than a `u32`, as work-items and as workgroups.
        assert_eq!(Grid::for_len((1 << 32) + 1, 256).groups[0], (1 << 24) + 1);
        let error = std::panic::catch_unwind(|| Grid::for_len(1 << 32, 1)).unwrap_err();
        assert_eq!(
            error.downcast_ref::<String>().unwrap(),
            "expected less than 2^32 workgroups, found 4294967296: 4294967296 work-items in workgroups of 1"
        );
    }
}
