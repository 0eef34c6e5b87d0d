//! Containers of linked images, one for each kind.

use std::iter;
use std::ops::Range;
use std::path::PathBuf;

use offload_formats::format::offload_binary::BinaryImage;
use offload_formats::format::pieces::{self, Piece};
use offload_formats::names::{ImageKind, LlvmRelease, OffloadKind};
use offload_formats::registration::fat_binary::Runtime;

use crate::linker_wrapper::error::LinkError;

/// A linked image.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    pub triple: String,
    /// Processor for the device linker; may be empty. `None` if the file of `--override-image` names none: its offload binary
    /// has no key `arch`, as LLVM's.
    pub processor: Option<String>,
    pub kinds: Vec<OffloadKind>,
    pub image_kind: ImageKind,
    /// Size of the image in bytes; 0 in a dry run.
    pub size: u64,
    /// The file with the image.
    pub file: PathBuf,
}

/// Images that are registered with one runtime.
#[derive(Clone, Debug)]
pub(crate) struct Container {
    pub kind: OffloadKind,
    pub content: ContainerContent,
    /// Files that pieces of the content copy.
    pub files: Vec<PathBuf>,
}

/// The content of a container, in pieces: images are copied when a file is written.
#[derive(Clone, Debug)]
pub(crate) enum ContainerContent {
    OpenMp(Vec<Packed>),
    FatBinary(Runtime, Vec<Piece>),
    /// The offload binaries of each file.
    Sycl(Vec<Piece>),
}

/// An image in its offload binary.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    pub binary: Vec<Piece>,
    /// Range of the image in it.
    pub image: Range<u64>,
}

impl Product {
    /// Returns the processor; empty if it is not known.
    pub(crate) fn processor(&self) -> &str {
        self.processor.as_deref().unwrap_or_default()
    }
}

impl Packed {
    /// Packs an image into an offload binary like LLVM 22. Its pieces copy the product's file as `input`.
    pub(crate) fn new(product: &Product, input: usize) -> Result<Self, LinkError> {
        let triple = product.triple.as_str();
        let processor = product.processor.iter();
        let strings =
            iter::once(("triple", triple)).chain(processor.map(|name| ("arch", name.as_str())));
        let strings: Vec<_> = strings.collect();
        let packed = BinaryImage {
            image_kind: product.image_kind,
            offload_kind: OffloadKind::OPENMP,
            flags: 0,
            strings: &strings,
            image: &[],
        };
        let packed = packed.to_pieces(product.size, LlvmRelease::default());
        let (binary, image) = packed.map_err(|problem| LinkError::input(triple, problem))?;
        let binary = pieces::renumbered(binary, |_| input);
        Ok(Self { binary, image })
    }
}
