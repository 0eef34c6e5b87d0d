//! The content of the Rust file, as values.

use crate::declare::skipped::Skipped;
use offload_formats::container::kernels::{Argument, Kernel};
use std::fmt::{self, Write as _};
use std::ops::Range;

/// What `$OUT_DIR/<module>.rs` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostFile {
    pub(crate) module: String,
    /// Names of kernels and globals, as the runtime knows them, sorted.
    pub(crate) kernels: Vec<String>,
    /// What images say of those kernels that the program starts itself.
    pub(crate) described: Vec<Described>,
    /// Targets without an image.
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) content: Content,
}

/// A kernel, and what the image of each target says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) images: Vec<(String, Kernel)>,
    /// Where there is host code.
    pub(crate) stub: Option<Stub>,
}

/// Where a program has what stands for a kernel on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stub {
    /// In the kernel's offload entry.
    Entry {
        symbol: String,
        /// The entry's size, in words of eight bytes.
        words: usize,
        /// Which of them is the address.
        address: usize,
    },
    /// It is this function.
    Function { symbol: String },
}

/// Where the images are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// In the static library of this module, under these symbols.
    Linked {
        anchor: String,
        /// Symbol and size of all images in their container.
        container: (String, u64),
        images: Vec<Image>,
    },
    /// In the hands of `offload-link`, which has yet to link them.
    Deferred { anchor: String, images: Vec<Image> },
    /// In the static library of this module, where another compiler has put them: nothing has their bytes.
    Kept { anchor: String, images: Vec<Image> },
    /// In a file, which Rust includes.
    Included {
        /// Below `OUT_DIR`.
        file: String,
        /// In bytes.
        size: u64,
        /// Whether the file is something that a runtime loads, or just images.
        is_container: bool,
        images: Vec<Image>,
    },
    /// Nowhere, for this reason.
    NotBuilt(String),
}

/// One image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) target: String,
    pub(crate) kind: &'static str,
    pub(crate) compiler: String,
    pub(crate) place: Place,
}

/// Where the bytes of an image are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Behind a symbol of the library, so many.
    Symbol(String, u64),
    /// In the included file.
    Part(Range<u64>),
    /// Not linked yet, or packed so that nothing has them by themselves.
    Nowhere,
}

impl HostFile {
    /// Tells whether the file has no unsafe code: nothing in it is linked.
    pub(crate) fn is_safe(&self) -> bool {
        let is_linked = match self.content {
            Content::Linked { .. } | Content::Deferred { .. } | Content::Kept { .. } => true,
            Content::Included { .. } | Content::NotBuilt(_) => false,
        };
        !is_linked && self.described.iter().all(|kernel| kernel.stub.is_none())
    }
}

/// A number as Rust code has it: in groups of three digits.
pub(crate) struct Number(pub(crate) u64);

impl From<u32> for Number {
    fn from(number: u32) -> Self {
        Self(number.into())
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (index, digit) in digits.char_indices() {
            if index > 0 && (digits.len() - index) % 3 == 0 {
                f.write_char('_')?;
            }
            f.write_char(digit)?;
        }
        Ok(())
    }
}
