//! The name under which this tool was started, and its consequences.

use std::ffi::OsStr;
use std::path::Path;

use offload_formats::names::LlvmRelease;

/// Names under which this tool is started.
pub(crate) const TOOL_NAMES: [&str; 5] = [
    "offload-link",
    "offload-ld",
    "ld.offload",
    PLAIN_NAME,
    LLVM_NAME,
];
/// Name that compiler drivers look for in the folders of `-B`.
pub(crate) const PLAIN_NAME: &str = "ld";
pub(crate) const LLVM_NAME: &str = "clang-linker-wrapper";

/// Returns the name that selects this tool's behavior: the file name without a release (`-22`).
pub(crate) fn tool_name(path: &OsStr) -> std::borrow::Cow<'_, str> {
    let name = Path::new(path).file_name().unwrap_or_default();
    let digits = |c: char| c.is_ascii_digit() || c == '.';
    match name.to_string_lossy() {
        std::borrow::Cow::Borrowed(name) => {
            let trimmed = name.trim_end_matches(digits);
            let versioned = trimmed.len() < name.len();
            let short = trimmed.strip_suffix('-').filter(|_| versioned);
            short.unwrap_or(name).into()
        }
        owned => owned,
    }
}

/// Rules for archive members and groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rules {
    Ours,
    /// Rules of the release that the tool replaces.
    Llvm(LlvmRelease),
}

impl Rules {
    /// Tells whether output has the form of LLVM's main branch or ours.
    pub(crate) fn writes_for_main(self) -> bool {
        matches!(self, Self::Ours | Self::Llvm(LlvmRelease::Main))
    }

    /// Returns the processor that is written beside a linked image. LLVM 22 (`getLinkerArgs`) writes nothing for
    /// `generic`, LLVM 19 writes the word.
    pub(crate) fn packed_processor(self, processor: &str) -> &str {
        match (self, processor) {
            (Self::Llvm(release), "generic") if release > LlvmRelease::V19 => "",
            (_, processor) => processor,
        }
    }
}
