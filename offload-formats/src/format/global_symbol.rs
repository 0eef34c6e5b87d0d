//! A symbol that other files see, whatever the format of its file.

/// A global symbol of an object, or of bitcode that becomes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalSymbol<'d> {
    /// Its name, as it is in an object.
    pub name: &'d [u8],
    /// Whether the file defines it; otherwise it needs another file that does.
    pub defined: bool,
    /// Defined: gives way to another definition. Undefined: may stay so.
    pub weak: bool,
    /// Not seen outside of the linked file.
    pub hidden: bool,
}
