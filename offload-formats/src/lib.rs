//! Reads and writes the files that contain GPU device code, as pure functions of bytes.
//!
//! Compilers and runtimes keep device images in several containers: offload binaries
//! (`llvm-offload-binary`), bundles (`clang-offload-bundler`), CUDA's fat binaries, sections of
//! object files, and archive members. This crate reads and writes all of them, for every vendor,
//! without LLVM:
//!
//! | module | content |
//! |--------|---------------|
//! | [`names`] | triples, target IDs, bundle entry IDs, kinds of offload code and of images |
//! | [`mod@format`] | formats: offload binaries, bundles, bitcode, PTX, fat binaries, offload entries |
//! | [`container`] | object files and archives that contain those: finding (start with `container::inventory`), adding and removing images; kernels of an image |
//! | [`registration`] | host objects that register images with a runtime when a program starts |
//! | [`md5`] | the digest in compressed bundles |
//! | [`escape`] | strings from files, escaped for terminals, C and LLVM IR |
//!
//! No function opens a file, starts a process or reads a variable. Readers accept any bytes:
//! damaged input is an error that names the entry and the offset, never a panic. They read only the
//! headers of large files.
//!
//! | feature (all on by default) | adds |
//! |---------|---------------|
//! | `zlib`, `zstd` | compressed bundles, offload binaries and images of CUDA (`zstd`; LZ4 needs no feature); without them only their headers can be read |
//! | `tools` | parts that build scripts do not need: images in Mach-O files, offload binaries as YAML, compressing of offload binaries, `HipRuntime`, writing of text bundles, targets on command lines of bundlers, bundles in object files, removal of sections, objects that embed images, registrations in C, as LLVM IR, for SYCL and for HIP objects that register themselves |
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod container;
pub mod registration;

#[doc(hidden)]
pub use offload_formats_core::by_name;
#[doc(inline)]
pub use offload_formats_core::{escape, format, md5, names};

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
