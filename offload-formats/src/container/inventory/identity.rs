//! Identifies an image by its first bytes.

use std::ops::Range;

use object::elf;

use crate::container::elf::Elf;
use crate::format::bundle_text::Comment;
use crate::format::bytes::{Cursor, ReadAt};
use crate::format::magic::Magic;
use crate::format::{bitcode, ptx};
use crate::names::elf_flags::target_id_of;
use crate::names::{ImageKind, Triple};

/// Form of an image's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ImageForm {
    /// No bytes.
    Empty,
    /// A linked ELF file for AMD's GPUs.
    CodeObject,
    /// An ELF file for NVIDIA's GPUs.
    Cubin,
    /// An ELF object for AMD's GPUs that is not linked.
    DeviceObject,
    /// An ELF file for a CPU.
    HostElf,
    /// PTX, NVIDIA's assembly.
    Ptx,
    /// NVIDIA's intermediate code, which nvlink compiles.
    LtoIr,
    /// LLVM bitcode.
    Bitcode,
    /// SPIR-V.
    SpirV,
    /// SPIR-V in an ELF file, as Intel's OpenMP runtime reads it.
    SpirVElf,
    /// A container of images.
    Container,
    /// An archive.
    Archive,
    /// Another format.
    Unknown,
}

impl ImageForm {
    /// Returns the form's name, such as `code object`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::CodeObject => "code object",
            Self::Cubin => "cubin",
            Self::DeviceObject => "device object",
            Self::HostElf => "host ELF",
            Self::Ptx => "PTX",
            Self::LtoIr => "LTO IR",
            Self::Bitcode => "bitcode",
            Self::SpirV => "SPIR-V",
            Self::SpirVElf => "SPIR-V in ELF",
            Self::Container => "container",
            Self::Archive => "archive",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the extension of file names of this form, without the dot.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::CodeObject => "co",
            Self::Cubin => "cubin",
            Self::DeviceObject | Self::HostElf => "o",
            Self::Ptx => "ptx",
            Self::LtoIr => "ltoir",
            Self::Bitcode => ImageKind::BITCODE.extension(),
            Self::SpirV => ImageKind::SPIRV.extension(),
            Self::SpirVElf => "elf",
            Self::Archive => "a",
            Self::Empty | Self::Container | Self::Unknown => "bin",
        }
    }
}

/// An image's own statement of what it is.
pub(super) struct Identity {
    pub form: ImageForm,
    pub triple: Option<String>,
    pub target_id: Option<String>,
}

/// Machine of ELF files for Intel's GPUs (the generic ABI's list of machines); the crate `object` does not name it.
const EM_INTELGT: elf::Machine = elf::Machine(205);
/// Section of the first module (`docs/spec/linker-wrapper.md` §4.5). Native code of these GPUs has none.
const INTEL_SPIRV: &str = "__openmp_offload_spirv_0";

/// First bytes of SPIR-V, in both byte orders.
const SPIRV: [[u8; 4]; 2] = [[0x03, 0x02, 0x23, 0x07], [0x07, 0x23, 0x02, 0x03]];

/// Number of bytes at the start of a file that tell whether it may contain images. PTX has its version and target there:
/// compilers write them after a comment.
pub const HEAD_SIZE: u64 = 4096;

/// Tells whether a file that starts with `head` may contain images: it is of a format that is searched. `head` has
/// [`HEAD_SIZE`] bytes or is the whole file.
#[must_use]
pub fn may_contain_images(head: &[u8]) -> bool {
    let all = 0..head.len() as u64;
    Magic::of(head) != Magic::Unknown
        || Comment::at(head, all.clone()).is_some()
        || Identity::of(head, all).is_device_image()
}

impl Identity {
    fn of_form(form: ImageForm) -> Self {
        Self {
            form,
            triple: None,
            target_id: None,
        }
    }

    /// Tells whether the bytes are an image for a GPU without a container.
    pub(super) fn is_device_image(&self) -> bool {
        match self.form {
            ImageForm::CodeObject
            | ImageForm::Cubin
            | ImageForm::DeviceObject
            | ImageForm::Ptx
            | ImageForm::SpirV
            | ImageForm::SpirVElf => true,
            ImageForm::Bitcode => self.triple.as_deref().is_some_and(is_for_gpu),
            _ => false,
        }
    }

    /// Identifies a range of `data`. Reads headers; bitcode as far as its triple.
    pub(super) fn of<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Self {
        if range.is_empty() {
            return Self::of_form(ImageForm::Empty);
        }
        match Magic::at(data, range.clone()) {
            Magic::Elf => Self::of_elf(data, range),
            Magic::Bitcode => Self {
                triple: bitcode::triple(data, range).ok().flatten(),
                ..Self::of_form(ImageForm::Bitcode)
            },
            Magic::Bundle
            | Magic::CompressedBundle
            | Magic::TextBundle
            | Magic::Fatbin
            | Magic::OffloadBinary => Self::of_form(ImageForm::Container),
            Magic::Archive | Magic::ThinArchive => Self::of_form(ImageForm::Archive),
            _ => Self::of_text(data, range),
        }
    }

    fn of_elf<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Self {
        let Ok(elf) = Elf::parse(data, range) else {
            return Self::of_form(ImageForm::Unknown);
        };
        let (form, triple) = match elf::Machine(elf.machine) {
            elf::EM_AMDGPU if elf.file_type == elf::ET_REL.0 => {
                (ImageForm::DeviceObject, "amdgcn-amd-amdhsa")
            }
            elf::EM_AMDGPU => (ImageForm::CodeObject, "amdgcn-amd-amdhsa"),
            elf::EM_CUDA => (ImageForm::Cubin, "nvptx64-nvidia-cuda"),
            EM_INTELGT if elf.find(INTEL_SPIRV).is_ok_and(|found| found.is_some()) => {
                (ImageForm::SpirVElf, "spirv64-intel")
            }
            _ => return Self::of_form(ImageForm::HostElf),
        };
        Self {
            form,
            triple: Some(triple.to_owned()),
            target_id: target_id_of(elf.machine, elf.flags, elf.abi_version),
        }
    }

    fn of_text<'d, R: ReadAt<'d>>(data: R, range: Range<u64>) -> Self {
        let mut cursor = Cursor::new(data, range);
        let size = cursor.end().saturating_sub(cursor.position());
        let Ok(head) = cursor.read(size.min(HEAD_SIZE), "image") else {
            return Self::of_form(ImageForm::Unknown);
        };
        if SPIRV.iter().any(|magic| head.starts_with(magic)) {
            return Self::of_form(ImageForm::SpirV);
        }
        if !ptx::is_start(head) {
            return Self::of_form(ImageForm::Unknown);
        }
        Self {
            form: ImageForm::Ptx,
            triple: Some("nvptx64-nvidia-cuda".to_owned()),
            target_id: ptx::target(head).map(|target| target.replacen("sm_", "compute_", 1)),
        }
    }
}

fn is_for_gpu(triple: &str) -> bool {
    Triple::parse(triple).is_ok_and(|triple| {
        triple.is_amdgpu() || triple.is_nvptx() || triple.arch().starts_with("spir")
    })
}
