//! Languages of device code, and the values of keys that depend on them.

use offload_formats_core::names::{OffloadKind, Triple};
use std::path::Path;

/// A value of the key `language`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C and C++ with target regions.
    OpenMp,
    /// The device's side of HIP sources.
    Hip,
    /// The device's side of CUDA sources.
    Cuda,
    /// LLVM IR for a GPU, as bitcode or text: what compilers of other languages make.
    Bitcode,
    /// A crate of kernels.
    Rust,
    /// Images that were made elsewhere.
    Prebuilt,
}

/// Extensions of C++.
const CPP: [&str; 6] = ["C", "cc", "cp", "cpp", "cxx", "c++"];

impl Language {
    pub const NAMES: [&str; 6] = ["openmp", "hip", "cuda", "bitcode", "rust", "prebuilt"];

    /// The language of that name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [
            Self::OpenMp,
            Self::Hip,
            Self::Cuda,
            Self::Bitcode,
            Self::Rust,
            Self::Prebuilt,
        ];
        all.into_iter().find(|language| language.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::OpenMp => "openmp",
            Self::Hip => "hip",
            Self::Cuda => "cuda",
            Self::Bitcode => "bitcode",
            Self::Rust => "rust",
            Self::Prebuilt => "prebuilt",
        }
    }

    /// Returns the manager of its images for `triple`.
    pub fn offload_kind(self, triple: &Triple) -> OffloadKind {
        match self {
            Self::OpenMp => OffloadKind::OPENMP,
            Self::Hip => OffloadKind::HIP,
            Self::Cuda => OffloadKind::CUDA,
            Self::Bitcode | Self::Rust | Self::Prebuilt if triple.is_nvptx() => OffloadKind::CUDA,
            Self::Bitcode | Self::Rust | Self::Prebuilt => OffloadKind::HIP,
        }
    }

    /// Extensions of its sources, C++'s at the end; without a `-x` in `flags` there are no others. Nothing where any
    /// will do.
    pub fn extensions(self) -> Option<Vec<&'static str>> {
        let own: &[&str] = match self {
            Self::OpenMp => &["c"],
            Self::Hip => &["hip", "cu"],
            Self::Cuda => &["cu"],
            Self::Bitcode => return Some(vec!["bc", "ll"]),
            Self::Rust => return Some(vec!["rs"]),
            Self::Prebuilt => return None,
        };
        Some([own, &CPP].concat())
    }
}

/// Tells whether a source is C++, whose objects need its library.
pub fn is_cpp(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    CPP.iter().any(|known| extension == *known)
}

/// A value of the key `container`: what all images of a module are packed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// An LLVM offload binary for each.
    OffloadBinary,
    /// A bundle as HIP's runtime loads it.
    Bundle,
    /// A fat binary as CUDA's runtime and driver load it.
    Fatbin,
    /// No container: each image by itself.
    Raw,
}

impl Container {
    pub const NAMES: [&str; 4] = ["offload-binary", "bundle", "fatbin", "raw"];

    /// The containers for images of `language` for these triples, the usual one first.
    pub fn of(language: Language, triples: &[&Triple]) -> &'static [Self] {
        let is_nvptx = |triple: &&Triple| triple.is_nvptx();
        match language {
            Language::OpenMp => &[Self::OffloadBinary],
            Language::Hip => &[Self::Bundle, Self::OffloadBinary, Self::Raw],
            Language::Cuda => &[Self::Fatbin, Self::OffloadBinary, Self::Raw],
            _ if triples.is_empty() => {
                &[Self::Bundle, Self::Fatbin, Self::OffloadBinary, Self::Raw]
            }
            _ if triples.iter().all(is_nvptx) => Self::of(Language::Cuda, triples),
            _ if triples.iter().any(is_nvptx) => &[Self::OffloadBinary, Self::Raw],
            _ => Self::of(Language::Hip, triples),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::OffloadBinary => "offload-binary",
            Self::Bundle => "bundle",
            Self::Fatbin => "fatbin",
            Self::Raw => "raw",
        }
    }
}

/// A value of the key `images`: the sources that an image is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageSources {
    /// All sources of the module: one image for each target.
    OfModule,
    /// One source: each source has its own images and its own container.
    OfSource,
}

impl ImageSources {
    pub const NAMES: [&str; 2] = ["module", "source"];

    /// Returns the choice of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "module" => Some(Self::OfModule),
            "source" => Some(Self::OfSource),
            _ => None,
        }
    }
}

/// A value of the key `artifact`: a library that a module comes out as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArtifactKind {
    /// An archive of host objects that contain the images of all targets.
    Hda,
    /// An archive of images for each target.
    DeviceArchive,
}

impl ArtifactKind {
    pub const NAMES: [&str; 2] = ["hda", "device-archive"];

    /// Returns the kind of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "hda" => Some(Self::Hda),
            "device-archive" => Some(Self::DeviceArchive),
            _ => None,
        }
    }
}
