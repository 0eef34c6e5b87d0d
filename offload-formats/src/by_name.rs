//! Values by name, sorted by name: a map whose code is compiled once for all values.
//!
//! [`BTreeMap`] is compiled again for each pair of types: about 3,000 lines of LLVM IR, of which a first build of a build
//! script pays for each. Here the tree contains indices, whatever the values are.

use std::collections::BTreeMap;

/// Values by name. Iterates in the order of the names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByName<T> {
    /// Index of the value of each name.
    places: BTreeMap<String, usize>,
    values: Vec<T>,
}

impl<T> ByName<T> {
    /// Creates an empty map.
    #[must_use]
    pub fn new() -> Self {
        Self {
            places: BTreeMap::new(),
            values: Vec::new(),
        }
    }

    /// Sets the value of a name, which may have one.
    pub fn insert(&mut self, name: String, value: T) {
        match self.get_mut(&name) {
            Some(known) => *known = value,
            None => {
                self.places.insert(name, self.values.len());
                self.values.push(value);
            }
        }
    }

    /// Returns the value of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&T> {
        self.values.get(*self.places.get(name)?)
    }

    /// Returns the value of a name, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        self.values.get_mut(*self.places.get(name)?)
    }

    /// Tells whether a name has a value.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// Returns true if no name has a value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Lists the names with their values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        let places = self.places.iter();
        places.filter_map(|(name, place)| Some((name.as_str(), self.values.get(*place)?)))
    }

    /// Lists the values, sorted by name.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.iter().map(|(_, value)| value)
    }
}

impl<T> Default for ByName<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_by_name_and_keeps_the_last_value() {
        let mut values = ByName::new();
        for (name, value) in [("b", 1), ("a", 2), ("c", 3), ("b", 4)] {
            values.insert(name.to_owned(), value);
        }
        *values.get_mut("c").unwrap() += 1;
        let found: Vec<(&str, &i32)> = values.iter().collect();
        assert_eq!(found, [("a", &2), ("b", &4), ("c", &4)]);
        assert_eq!((values.get("b"), values.get("d")), (Some(&4), None));
    }
}
