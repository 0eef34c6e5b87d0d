//! File names of images whose own names repeat.

use std::collections::{HashMap, HashSet};

/// Names that were given out.
#[derive(Default)]
pub(crate) struct DistinctNames {
    taken: HashSet<String>,
    /// The last number that was tried for each name.
    counts: HashMap<String, usize>,
}

impl DistinctNames {
    /// Returns the name, or if it is taken, the first free one that `numbered` makes of it with 1, 2, ….
    pub(crate) fn add(&mut self, name: String, numbered: impl Fn(&str, usize) -> String) -> String {
        if self.taken.insert(name.clone()) {
            return name;
        }
        let count = self.counts.entry(name.clone()).or_default();
        loop {
            *count += 1;
            let new = numbered(&name, *count);
            if self.taken.insert(new.clone()) {
                return new;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_many_equal_names_at_once() {
        let mut names = DistinctNames::default();
        let add = |name: &str| names.add(name.to_owned(), |name, count| format!("{name}.{count}"));
        let added: Vec<String> = ["a", "a.1", "a", "a.1"].map(add).into();
        assert_eq!(added, ["a", "a.1", "a.2", "a.1.1"]);
        // With each number tried for each name, this takes minutes.
        let mut last = String::new();
        for _ in 0..100_000 {
            last = names.add("b".to_owned(), |name, count| format!("{name}.{count}"));
        }
        assert_eq!(last, "b.99999");
    }
}
