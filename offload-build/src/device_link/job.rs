//! Link jobs: images for one target that become one image.

use offload_build_core::installed::device_tools::LinkTarget;
use offload_formats::names::{OffloadKind, Triple};
use std::path::{Path, PathBuf};

/// Images for one target that become one image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkJob {
    /// The device's triple.
    pub triple: Triple,
    /// The processor or target ID; empty when the triple says all.
    pub processor: String,
    /// The managers of the images: each kind once.
    pub kinds: Vec<OffloadKind>,
    /// True if bitcode among the inputs calls functions of OpenMP's device runtime.
    pub uses_openmp_runtime: bool,
    /// The images, in the order in which the linker sees them.
    pub inputs: Vec<DeviceInput>,
}

impl LinkJob {
    /// Returns the target, for the search of programs and files. `llvm-link` merges several inputs of bitcode, one with LLVM's
    /// C library for GPUs, or all into an image of bitcode. clang and lld link AMD's bitcode without it, except with OpenMP's
    /// device runtime; options may need it, too.
    #[must_use]
    pub fn target(&self) -> LinkTarget<'_> {
        LinkTarget {
            triple: &self.triple,
            processor: &self.processor,
            merges_bitcode: match self.triple.is_amdgpu() {
                true => self.needs_openmp_runtime(),
                false => self.has_bitcode(),
            },
        }
    }

    pub(crate) fn has_bitcode(&self) -> bool {
        let is_bitcode = |input: &DeviceInput| matches!(input, DeviceInput::Bitcode(_));
        self.inputs.iter().any(is_bitcode)
    }

    /// Tells whether OpenMP's device runtime has to join here.
    pub(crate) fn needs_openmp_runtime(&self) -> bool {
        self.uses_openmp_runtime && self.kinds.contains(&OffloadKind::OPENMP) && self.has_bitcode()
    }

    /// Tells whether the job makes an OpenMP image for an AMD or NVIDIA GPU.
    pub(crate) fn is_openmp_gpu(&self) -> bool {
        let is_gpu = self.triple.is_amdgpu() || self.triple.is_nvptx();
        is_gpu && self.kinds.contains(&OffloadKind::OPENMP)
    }

    pub(crate) fn is_spirv(&self) -> bool {
        self.triple.arch().starts_with("spirv")
    }

    /// Returns the inputs that are linked as they are.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &Path> {
        self.inputs.iter().filter_map(|input| match input {
            DeviceInput::Object(path) | DeviceInput::Linked(path) => Some(path.as_path()),
            DeviceInput::Bitcode(_) | DeviceInput::Ptx(_) => None,
        })
    }
}

/// An image as the device linker reads it: a file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceInput {
    /// A device object: ELF, or a cubin.
    Object(PathBuf),
    /// LLVM bitcode.
    Bitcode(PathBuf),
    /// PTX.
    Ptx(PathBuf),
    /// A complete cubin, which is an image by itself.
    Linked(PathBuf),
}

impl DeviceInput {
    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Object(path) | Self::Bitcode(path) | Self::Ptx(path) | Self::Linked(path) => path,
        }
    }
}
