//! The strings of an entry.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The keys and values of an entry, in file order.
#[derive(Clone)]
pub struct EntryStrings {
    /// Shared by the entries of an offload binary. Many pairs may point at one string, so copies
    /// could be far larger than the file.
    pub(super) table: Arc<[u8]>,
    /// Key and value as ranges of `table`.
    pub(super) pairs: Vec<[Range<usize>; 2]>,
}

impl EntryStrings {
    /// Returns the value of a key; for a repeated key the last one.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&[u8]> {
        let found = self
            .pairs
            .iter()
            .rev()
            .find(|[found, _]| self.get(found) == key.as_bytes());
        found.map(|[_, value]| self.get(value))
    }

    /// Lists all keys with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> + '_ {
        self.pairs
            .iter()
            .map(|[key, value]| (self.get(key), self.get(value)))
    }

    /// Returns the number of pairs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Returns true if there are no pairs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    fn get(&self, range: &Range<usize>) -> &[u8] {
        self.table
            .get(range.clone())
            .expect("pairs are ranges of the table")
    }
}

impl PartialEq for EntryStrings {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for EntryStrings {}

impl fmt::Debug for EntryStrings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = String::from_utf8_lossy;
        f.debug_map()
            .entries(self.iter().map(|(key, value)| (text(key), text(value))))
            .finish()
    }
}
