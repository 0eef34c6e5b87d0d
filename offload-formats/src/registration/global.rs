//! Symbols that a registration object defines for the rest of the program.

/// A symbol for other objects; its name must be unique in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Global<'a> {
    /// A part of the embedded bytes, for programs that read their own images.
    Bytes {
        /// Symbol name.
        name: &'a str,
        /// Offset from the start of the embedded bytes.
        offset: u64,
        /// Size in bytes.
        size: u64,
    },
    /// A function that only returns. A call of it links the object from its archive.
    Anchor {
        /// Symbol name.
        name: &'a str,
    },
    /// A symbol that resolves references to its name, and that several objects may define: weak and hidden, and on Windows a
    /// function that only returns.
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
