//! Values by name, sorted by name: a map whose tree is compiled once for all values.
//!
//! Each pair of types for which a program uses [`BTreeMap`] adds about 3,000 lines of LLVM IR to what the first build of a
//! build script compiles. Here the tree has indices, whatever the values are.

use std::collections::BTreeMap;

/// Values by name, in the order of the names.
#[derive(Clone, Debug)]
pub struct ByName<T> {
    /// Index of the value of each name.
    places: BTreeMap<String, usize>,
    values: Vec<T>,
}

impl<T> ByName<T> {
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

    /// Returns the value of a name, which gets `value` if it has none.
    pub fn or_insert(&mut self, name: &str, value: T) -> &mut T {
        let next = self.values.len();
        let place = match self.places.get(name) {
            Some(place) => *place,
            None => {
                self.places.insert(name.to_owned(), next);
                self.values.push(value);
                next
            }
        };
        &mut self.values[place]
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

    /// Removes a name, and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<T> {
        let place = self.places.remove(name)?;
        let later = self.places.values_mut().filter(|other| **other > place);
        later.for_each(|other| *other -= 1);
        Some(self.values.remove(place))
    }

    /// Lists the names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(String::as_str)
    }

    /// Lists the names with their values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        let places = self.places.iter();
        places.map(|(name, place)| (name.as_str(), &self.values[*place]))
    }

    /// Lists the values, sorted by name.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.places.values().map(|place| &self.values[*place])
    }

    /// Lists the values to be changed, in the order in which their names were added.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut()
    }
}

impl ByName<usize> {
    /// Counts how often each name occurs.
    pub fn counted<'n>(names: impl IntoIterator<Item = &'n String>) -> Self {
        let mut counted = Self::default();
        for name in names {
            *counted.or_insert(name, 0) += 1;
        }
        counted
    }
}

impl<T> Default for ByName<T> {
    fn default() -> Self {
        Self {
            places: BTreeMap::new(),
            values: Vec::new(),
        }
    }
}

/// Compares names and values, in whatever order they were added.
impl<T: PartialEq> PartialEq for ByName<T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Eq> Eq for ByName<T> {}

/// Takes the later of two values of a name.
impl<T> FromIterator<(String, T)> for ByName<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(pairs: I) -> Self {
        let mut values = Self::default();
        for (name, value) in pairs {
            values.insert(name, value);
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_name<const N: usize>(pairs: [(&str, u32); N]) -> ByName<u32> {
        let pairs = pairs.into_iter();
        pairs
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    #[test]
    fn counts_names() {
        let names = ["b", "a", "b"].map(str::to_owned);
        let counted = ByName::counted(&names);
        assert_eq!(counted.iter().collect::<Vec<_>>(), [("a", &1), ("b", &2)]);
    }

    #[test]
    fn sorts_by_name_and_keeps_the_last_value() {
        let mut values = by_name([("b", 1), ("a", 2), ("c", 3), ("b", 4)]);
        *values.get_mut("c").unwrap() += 1;
        let found: Vec<(&str, &u32)> = values.iter().collect();
        assert_eq!(found, [("a", &2), ("b", &4), ("c", &4)]);
        assert_eq!(values.names().collect::<String>(), "abc");
        assert_eq!((values.get("b"), values.get("d")), (Some(&4), None));
    }

    #[test]
    fn keeps_the_others_when_a_name_is_removed() {
        let mut values = by_name([("b", 1), ("a", 2), ("c", 3)]);
        assert_eq!((values.remove("b"), values.remove("b")), (Some(1), None));
        *values.or_insert("d", 4) += 1;
        *values.or_insert("a", 4) += 1;
        assert_eq!(values, by_name([("a", 3), ("c", 3), ("d", 5)]));
        assert_ne!(values, by_name([("a", 3), ("c", 3)]));
    }
}
