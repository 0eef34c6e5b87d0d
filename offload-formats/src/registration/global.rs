//! Symbols that a registration object defines for the rest of the program.

/// A symbol that the object defines for others; the name must be unique in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Global<'a> {
    /// Part of the embedded bytes: how a program reads its own images.
    Bytes {
        /// Symbol name.
        name: &'a str,
        /// Bytes from the start of the embedded bytes.
        offset: u64,
        /// Bytes.
        size: u64,
    },
    /// A function that returns at once. Calling it pulls the object out of its archive.
    Anchor {
        /// Symbol name.
        name: &'a str,
    },
    /// Satisfies references to a name that has no meaning of its own: weak, hidden.
    Marker {
        /// Symbol name.
        name: &'a str,
    },
}

impl<'a> Global<'a> {
    pub(super) fn name(&self) -> &'a str {
        match *self {
            Self::Bytes { name, .. } | Self::Anchor { name } | Self::Marker { name } => name,
        }
    }
}
