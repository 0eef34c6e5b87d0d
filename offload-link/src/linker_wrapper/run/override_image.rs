//! Reads images that were linked before, from `--override-image=<kind>=<file>`.

use std::ffi::OsString;
use std::path::PathBuf;

use object::elf;
use offload_formats::container::elf::Elf;
use offload_formats::format::bytes::ReadAt;
use offload_formats::names::elf_flags::processor_of;
use offload_formats::names::{ImageKind, OffloadKind};

use crate::files::Reading;
use crate::linker_wrapper::error::{LinkError, Problem};
use crate::linker_wrapper::plan::containers::Product;

/// `e_machine` of linked images, with the triple in offload binaries: LLVM's for files of these machines' usual byte order and word
/// size, but for cubins, of which LLVM 22 takes the system from a number that AMD's files have for another.
const MACHINES: [(u16, &str); 8] = [
    (elf::EM_AMDGPU.0, "amdgcn-amd-amdhsa"),
    (elf::EM_CUDA.0, "nvptx64-nvidia-cuda"),
    (elf::EM_X86_64.0, "x86_64--"),
    (elf::EM_AARCH64.0, "aarch64--"),
    (elf::EM_RISCV.0, "riscv64--"),
    (elf::EM_PPC64.0, "powerpc64le--"),
    (elf::EM_S390.0, "s390x--"),
    (elf::EM_386.0, "i386--"),
];

/// Reads the images that `values` name. Only an ELF file shows its target, in its header.
pub(crate) fn products(values: &[OsString]) -> Result<Vec<Product>, LinkError> {
    let products = values.iter().map(|value| {
        let text = value.to_string_lossy();
        let (kind, path) = text.split_once('=').ok_or_else(|| {
            LinkError::Option(format!("--override-image: `{text}` is not `<kind>=<file>`"))
        })?;
        let kind = OffloadKind::from_name(kind).filter(|kind| *kind != OffloadKind::NONE);
        let kind = kind.ok_or_else(|| {
            LinkError::Option(format!(
                "--override-image: `{text}` has no offload kind (openmp, cuda, hip, sycl)"
            ))
        })?;
        let invalid = |problem: Problem| LinkError::input(path, problem);
        let data = Reading::open(path.as_ref()).map_err(|source| invalid(source.into()))?;
        let size = (&data).size().unwrap_or(0);
        let elf = Elf::parse(&data, 0..size).map_err(|source| invalid(source.into()))?;
        let known = MACHINES.iter().find(|(machine, _)| *machine == elf.machine);
        Ok(Product {
            triple: known.map_or("unknown", |(_, triple)| triple).to_owned(),
            processor: processor_of(elf.machine, elf.flags, elf.abi_version),
            kinds: vec![kind],
            image_kind: ImageKind::OBJECT,
            size,
            file: PathBuf::from(path),
        })
    });
    products.collect()
}
