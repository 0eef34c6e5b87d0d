//! Host objects that register images with a runtime.
//!
//! A program registers its device code in a constructor. This module writes the objects with that
//! constructor, the images and the tables between them, without a compiler:
//!
//! | module          | object                                                                  |
//! |-----------------|-------------------------------------------------------------------------|
//! | [`openmp`]      | images in a binary descriptor, registered with libomptarget             |
//! | [`fat_binary`]  | one fat binary, registered with CUDA's or HIP's runtime                 |
//! | [`hip_symbols`] | one fat binary, for HIP objects that register themselves                |
//! | [`sycl`]        | images in a descriptor, registered with a SYCL runtime                  |
//! | [`deferred`]    | images not linked yet, for the last link to find; a stock linker refuses |
//!
//! The methods `to_object` write ELF objects, `to_coff` ([`coff`]) COFF objects for Windows
//! hosts, and `to_host_pieces` those of a [`HostFormat`], for images that are too large for memory. `to_c` writes the same as C, for any host, and `to_ir` as an LLVM module. These two,
//! [`sycl`] and [`HipFatBinary`](hip_symbols::HipFatBinary) require the feature `tools`.
//!
//! ```
//! use offload_formats::container::elf::{Elf, Machine};
//! use offload_formats::format::pieces::Embedded;
//! use offload_formats::registration::fat_binary::{FatBinary, Runtime};
//! use offload_formats::registration::hip_symbols::HipSymbols;
//!
//! let registration = FatBinary {
//!     runtime: Runtime::Hip,
//!     bytes: Embedded::Bytes(b"__CLANG_OFFLOAD_BUNDLE__..."),
//!     tables: &[],
//!     symbols: HipSymbols::default(),
//!     globals: &[],
//! };
//! let object = registration.to_object(Machine::X86_64)?;
//! let elf = Elf::parse(&object[..], 0..object.len() as u64)?;
//! assert!(elf.find(".init_array.101")?.is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The machine code is a table for each instruction set (`machine/`), so no process is started for
//! an object.

pub mod anchor;
mod blob_section;
#[cfg(feature = "tools")]
mod c_source;
pub mod coff;
pub mod deferred;
mod elf_host;
mod entries;
mod error;
pub mod fat_binary;
mod global;
pub mod hip_symbols;
mod host_format;
#[cfg(feature = "tools")]
mod llvm_ir;
mod machine;
pub mod openmp;
mod runtime;
#[cfg(feature = "tools")]
pub mod sycl;
mod writer;

pub use deferred::NEEDS_OFFLOAD_LINK;
pub use elf_host::ElfHost;
pub use error::RegistrationError;
pub use global::Global;
pub use host_format::HostFormat;
