//! The content of the Rust file, as values.

use crate::generate::source_name::SourceName;
use offload_build_core::declare::skipped::Skipped;
use offload_formats::by_name::ByName;
use offload_formats::container::kernels::{Argument, Kernel};
use std::fmt::{self, Write as _};
use std::ops::Range;

/// Content of `$OUT_DIR/<module>.rs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostFile {
    pub(crate) module: String,
    /// Names of kernels and globals, as the runtime knows them, sorted.
    pub(crate) kernels: Vec<String>,
    /// Kernels that the program starts itself, as the images describe them.
    pub(crate) described: Vec<Described>,
    /// Targets without an image.
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) content: Content,
    /// Sources that have images of their own.
    pub(crate) sources: Vec<SourceFile>,
}

/// A source that has images of its own: a Rust module in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceFile {
    pub(crate) name: SourceName,
    pub(crate) described: Vec<Described>,
    pub(crate) content: Content,
    /// Its PTX for each target that is PTX, in the order of the manifest.
    pub(crate) ptx: Vec<Ptx>,
}

/// PTX of one source, which the file has as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ptx {
    /// The target, as Cargo.toml spells it.
    pub(crate) target: String,
    /// Path below `OUT_DIR`; nothing in a build without device code.
    pub(crate) file: Option<String>,
}

/// A kernel, and what the image of each target says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) images: Vec<(String, Kernel)>,
    /// Symbol of the kernel on the host, if there is host code.
    pub(crate) stub: Option<Stub>,
}

/// Place of what stands for a kernel on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stub {
    /// The kernel's offload entry contains it.
    Entry {
        symbol: String,
        /// The entry's size, in words of eight bytes.
        words: usize,
        /// Index of the word that is the address.
        address: usize,
    },
    /// This function stands for the kernel.
    Function { symbol: String },
}

/// Place of the images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// The static library of this module contains them, under these symbols.
    Linked {
        /// A function whose call links the module's object; nothing if the object has only images.
        anchor: Option<String>,
        /// Symbol and size of all images in their container.
        container: (String, u64),
        /// True if a runtime loads the container; false if it only contains images.
        is_container: bool,
        images: Vec<Image>,
    },
    /// `offload-link` has yet to link them.
    Deferred { anchor: String, images: Vec<Image> },
    /// Another compiler has put them in the static library of this module: Rust cannot read their bytes.
    Kept { anchor: String, images: Vec<Image> },
    /// Rust includes them as a file.
    Included {
        /// Path below `OUT_DIR`.
        file: String,
        /// Size in bytes.
        size: u64,
        /// True if a runtime loads the file; false if it only contains images.
        is_container: bool,
        images: Vec<Image>,
    },
    /// Each source has its own.
    OfSources { images: Vec<Image> },
    /// Nowhere, for this reason.
    NotBuilt(String),
}

/// One image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) target: String,
    /// Path of the source that it is made of, from the package; empty if it is made of all sources.
    pub(crate) source: String,
    pub(crate) kind: &'static str,
    pub(crate) compiler: String,
    pub(crate) place: Place,
}

/// Place of an image's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A symbol of the library, and the size in bytes.
    Symbol(String, u64),
    /// A part of the included file.
    Part(Range<u64>),
    /// The image of that number in the Rust module of a source.
    OfSource(String, usize),
    /// Not linked yet, or packed so that nothing has them by themselves.
    Nowhere,
}

/// Images that are made of the same sources, as the file shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartFile {
    /// The source; nothing if the images are made of all sources.
    pub(crate) source: Option<SourceName>,
    pub(crate) described: Vec<Described>,
    pub(crate) content: Content,
    /// PTX of the source for each target that is PTX.
    pub(crate) ptx: Vec<Ptx>,
}

impl HostFile {
    /// Returns the file of a module that consists of `parts`: one of all sources, or one of each source.
    pub(crate) fn of_parts(module: String, parts: Vec<PartFile>, skipped: Vec<Skipped>) -> Self {
        let mut sources = Vec::new();
        for part in parts {
            let PartFile {
                source,
                described,
                content,
                ptx,
            } = part;
            let Some(name) = source else {
                return Self {
                    module,
                    kernels: described.iter().map(|kernel| kernel.name.clone()).collect(),
                    described,
                    skipped,
                    content,
                    sources,
                };
            };
            sources.push(SourceFile {
                name,
                described,
                content,
                ptx,
            });
        }
        Self::of_sources(module, sources, skipped)
    }

    /// Returns the file of a module whose sources have images of their own.
    ///
    /// Kernels that several sources define stand only in the Rust modules of these, unless all agree on them.
    pub(crate) fn of_sources(
        module: String,
        sources: Vec<SourceFile>,
        skipped: Vec<Skipped>,
    ) -> Self {
        let mut kernels: ByName<Option<&Described>> = ByName::default();
        for kernel in sources.iter().flat_map(|source| &source.described) {
            let known = kernels.or_insert(&kernel.name, Some(kernel));
            *known = known.filter(|known| *known == kernel);
        }
        let mut images = Vec::new();
        for source in &sources {
            let of_source = source.content.images().iter().enumerate();
            images.extend(of_source.map(|(index, image)| Image {
                place: Place::OfSource(source.name.module.clone(), index),
                ..image.clone()
            }));
        }
        Self {
            module,
            kernels: kernels.names().map(str::to_owned).collect(),
            described: kernels.values().flatten().copied().cloned().collect(),
            skipped,
            content: Content::OfSources { images },
            sources,
        }
    }

    /// Tells whether its unsafe code only names linked images, which the key `embed` decides.
    pub(crate) fn only_names_images(&self) -> bool {
        let contents = self.sources.iter().map(|source| &source.content);
        let is_linked = |content: &Content| matches!(content, Content::Linked { anchor: None, .. });
        contents.chain([&self.content]).any(is_linked)
    }

    /// Tells whether the file has no unsafe code: nothing in it is linked.
    pub(crate) fn is_safe(&self) -> bool {
        let mut sources = self.sources.iter();
        is_safe(&self.content, &self.described)
            && sources.all(|source| is_safe(&source.content, &source.described))
    }
}

impl Content {
    /// Returns the images.
    pub(crate) fn images(&self) -> &[Image] {
        match self {
            Self::Linked { images, .. }
            | Self::Deferred { images, .. }
            | Self::Kept { images, .. }
            | Self::OfSources { images }
            | Self::Included { images, .. } => images,
            Self::NotBuilt(_) => &[],
        }
    }
}

fn is_safe(content: &Content, described: &[Described]) -> bool {
    let is_linked = match content {
        Content::Linked { .. } | Content::Deferred { .. } | Content::Kept { .. } => true,
        Content::Included { .. } | Content::OfSources { .. } | Content::NotBuilt(_) => false,
    };
    !is_linked && described.iter().all(|kernel| kernel.stub.is_none())
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
