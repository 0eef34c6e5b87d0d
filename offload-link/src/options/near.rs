//! Finds the known name nearest to a mistaken one.

/// Returns how many letters must be inserted, removed or replaced.
pub(crate) fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (index, left) in a.iter().enumerate() {
        let mut before = index;
        let mut last = index + 1;
        for (place, right) in row.iter_mut().skip(1).zip(b) {
            let changed = before + usize::from(left != right);
            before = *place;
            last = changed.min(before + 1).min(last + 1);
            *place = last;
        }
        row[0] = index + 1;
    }
    row[b.len()]
}
