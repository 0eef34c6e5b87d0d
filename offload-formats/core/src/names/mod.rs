//! Names of targets, kinds and releases: strings in, values out.
//!
//! ```
//! # use offload_formats_core as offload_formats;
//! use offload_formats::names::{EntryId, KindRule};
//!
//! let image = EntryId::parse("hip-amdgcn-amd-amdhsa--gfx90a")?;
//! let wanted = EntryId::parse("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+")?;
//! assert!(image.serves(&wanted, KindRule::SameRuntime));
//! assert!(!wanted.serves(&image, KindRule::SameRuntime));
//! # Ok::<(), offload_formats::names::EntryIdError>(())
//! ```

pub mod elf_flags;
pub mod entry_id;
#[doc(hidden)]
pub mod host;
pub mod image_target;
pub mod kind;
pub mod library_name;
pub mod llvm;
pub mod nearest;
pub mod processor;
pub mod products;
pub mod spelling;
pub mod target_id;
pub mod triple;

#[cfg(feature = "tools")]
pub use entry_id::KindRule;
pub use entry_id::{ConflictScope, EntryId, EntryIdError, EntryKind, conflict};
pub use image_target::ImageTarget;
pub use kind::{ImageKind, OffloadKind};
pub use llvm::LlvmRelease;
pub use nearest::nearest;
pub use processor::Processor;
pub use products::ProcessorProducts;
pub use target_id::{TargetId, TargetIdError};
pub use triple::{Triple, TripleError};
