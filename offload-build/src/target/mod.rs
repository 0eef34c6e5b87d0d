//! Floor 0: names. Strings in, values out.

pub mod entry_id;
pub mod kind;
pub mod llvm;
pub mod target_id;
pub mod triple;

pub use entry_id::{EntryId, EntryIdError, EntryKind};
pub use kind::{ImageKind, OffloadKind};
pub use llvm::LlvmRelease;
pub use target_id::{TargetId, TargetIdError};
pub use triple::{Triple, TripleError};
