//! A global symbol, whatever the format of its file.

/// A global symbol of an object, or of bitcode that becomes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GlobalSymbol<'d> {
    /// Name as in an object file.
    pub name: &'d [u8],
    /// True if the file defines the symbol, false if it needs a definition from another file.
    pub defined: bool,
    /// A weak definition gives way to another one; a weak reference may stay undefined.
    pub weak: bool,
    /// The symbol is not visible outside of the linked file.
    pub hidden: bool,
    /// The symbol is of LTO code, which the host linker compiles: bitcode, or an object of GCC's LTO.
    pub lto: bool,
    /// Common storage, as of Fortran's `COMMON`: a definition that gives way to one with a value.
    pub common: bool,
}

impl<'d> GlobalSymbol<'d> {
    /// Returns a symbol that the file needs and does not define.
    #[doc(hidden)]
    #[must_use]
    pub fn undefined(name: &'d [u8]) -> Self {
        Self {
            name,
            defined: false,
            weak: false,
            hidden: false,
            lto: false,
            common: false,
        }
    }
}
